//! Random programs during fail-overs: on three ZooKeeper servers whose leader is killed, and on a Redis whose replica
//! becomes the primary and back without loss; and with loss, which is the twin.

use super::{
    programs::{Subject, ensure_loss_is_seen, ensure_rules_kept},
    subjects::{semaphore, zk_semaphore},
    support::*,
};
use oversell_lab::clients::redis_at::redis_at;
use tokio::time::sleep;

/// How long a server leads.
const LEADERSHIP_TIME: Duration = Duration::from_secs(4);

/// The leader is killed, and comes back as a follower, three times.
async fn leaders(lab: &mut Lab) -> Result {
    for _ in 0..3 {
        sleep(LEADERSHIP_TIME).await;
        let leader = lab.zookeeper_leader().await.context("no leader")?;
        lab.kill(&leader).await?;
        sleep(LEADERSHIP_TIME).await;
        lab.restart(&leader).await?;
    }
    Ok(())
}

#[apply(soak_test!)]
async fn programs_keep_the_rules_while_leaders_are_killed(_: &ZooKeeper) -> Result {
    let mut lab = lab(Part::ZooKeeper, 3, 0).await?;
    let connect = lab.addresses().zookeeper.connect.clone();
    // Kept until the process ends, because tasks of a program may still use it.
    let ensemble: &ZooKeeper = Box::leak(Box::new(ZooKeeper::at(connect)));
    let locks = ["zookeeper", "zookeeper_write"].map(|name| ensemble.family(name).kind);
    let subjects = locks.map(|kind| (kind.name, Subject::of(kind)));
    for (of, subject) in subjects.into_iter().chain([("ZK_SEMAPHORE", zk_semaphore())]) {
        ensure_rules_kept(of, ensemble, &subject, leaders(&mut lab)).await?;
    }
    lab.stop().await;
    Ok(())
}

/// `host:port` of a URL, in two.
fn host_and_port(url: &str) -> Result<(&str, &str)> {
    let host = url.trim_start_matches("redis://").trim_end_matches('/');
    host.rsplit_once(':').context("no port")
}

/// Promotes `to`, after it has copied everything from `from`.
async fn hand_over(from: &str, to: &str) -> Result {
    let role = async |of: &str| {
        let asked = redis::cmd("ROLE").query_async::<Vec<redis::Value>>(&mut redis_at(of).await?).await?;
        let role = asked.into_iter().next().context("no role")?;
        anyhow::Ok(redis::from_redis_value::<String>(role)?)
    };
    let (host, port) = host_and_port(to)?;
    let order = async || {
        let mut failover = redis::cmd("FAILOVER");
        failover.arg(&["TO", host, port, "TIMEOUT", "10000"]);
        let asked = async { anyhow::Ok(failover.exec_async(&mut redis_at(from).await?).await?) };
        // The replica may not have caught up yet.
        asked.await.is_ok()
    };
    until("the replica is asked to take over", order).await?;
    let leads = async || role(to).await.is_ok_and(|role| role == "master");
    until("the replica has taken over", leads).await
}

/// The primary changes there and back; the clients' proxy follows.
async fn primaries(way: &Proxy, [one, other]: &[String; 2]) -> Result {
    for (from, to) in [(one, other), (other, one)] {
        sleep(LEADERSHIP_TIME).await;
        hand_over(from, to).await?;
        let (host, port) = host_and_port(to)?;
        way.redirect(&format!("{host}:{port}"));
    }
    Ok(())
}

/// Two Redis servers, and the clients' proxy, which leads to the first.
async fn two(lab: &Lab) -> Result<(&'static Redis, Proxy, [String; 2])> {
    let nodes = lab.addresses().redis.iter();
    let urls: Vec<_> = nodes.map(|node| node.url.clone()).collect();
    let urls: [String; 2] = urls.try_into().ok().context("two")?;
    let (host, port) = host_and_port(&urls[0])?;
    let way = Proxy::to(format!("{host}:{port}"))?;
    // Kept until the process ends, because tasks of a program may still use it.
    let redis = Box::leak(Box::new(Redis::behind(urls[0].clone(), way.address())));
    Ok((redis, way, urls))
}

#[apply(soak_test!)]
async fn programs_keep_the_rules_while_the_primary_changes(_: &Redis) -> Result {
    let lab = lab(Part::Redis, 2, 0).await?;
    let (redis, way, both) = two(&lab).await?;
    let (host, port) = host_and_port(&both[0])?;
    let mut follow = redis::cmd("REPLICAOF");
    follow.arg(host).arg(port).exec_async(&mut redis_at(&both[1]).await?).await?;
    let locks = ["redis", "redis_fair", "redis_write"].map(|name| redis.family(name).kind);
    let subjects = locks.map(|kind| (kind.name, Subject::of(kind)));
    for (of, subject) in subjects.into_iter().chain([("SEMAPHORE", semaphore())]) {
        ensure_rules_kept(of, redis, &subject, primaries(&way, &both)).await?;
    }
    lab.stop().await;
    Ok(())
}

/// The twin: the new primary has none of the old one's data, so a held lock is free there.
#[apply(soak_test!)]
async fn programs_see_that_a_primary_changes_with_a_loss(_: &Redis) -> Result {
    let lab = lab(Part::Redis, 2, 0).await?;
    let (redis, way, both) = two(&lab).await?;
    let loss = async {
        until("one waits for another", || redis.is_waited_for("contract")).await?;
        let (host, port) = host_and_port(&both[1])?;
        way.redirect(&format!("{host}:{port}"));
        Ok(())
    };
    ensure_loss_is_seen(redis, &Subject::of(redis.family("redis").kind), loss).await?;
    lab.stop().await;
    Ok(())
}
