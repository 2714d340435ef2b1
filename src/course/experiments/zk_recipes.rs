//! §3.7.1 to §3.7.6: the locks, leases and barriers of Curator.

use super::tools::{below, got, until_below};
use crate::{
    course::{Cluster, NoVerdict, Product, Seen, Words},
    orders::Action,
};
use futures::future::try_join_all;
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// A visit that takes locks and leaves them: the claim is in which order, as `took #1, took #2, left #2, left #1`.
pub(super) async fn visit(on: &Cluster, route: &str, steps: &str) -> Result<Seen, NoVerdict> {
    let visit = got(on, &format!("{}{route}", on.one())).await?;
    let done = visit["steps"].as_array().into_iter().flatten();
    let done: Vec<_> = done
        .filter_map(|step| {
            Some(format!(
                "{} #{}",
                step["did"].as_str()?,
                step["order"].as_u64()?
            ))
        })
        .collect();
    let done = done.join(", ");
    let words = Words::new(format!("依次：{done}。"), format!("In turn: {done}."));
    Ok(Seen::holds(done == steps, words))
}

/// The lines that those who came in and left have written.
async fn log(on: &Cluster, product: &Product<'_>) -> Result<Vec<bool>, NoVerdict> {
    let mut redis = on.redis().await?;
    let lines: Result<Vec<String>, _> = redis::cmd("LRANGE")
        .arg(format!("log:{}", product.id))
        .arg(0)
        .arg(-1)
        .query_async(&mut redis)
        .await;
    Ok(lines
        .map_err(NoVerdict::failed)?
        .iter()
        .map(|line| line.contains("获取了资源"))
        .collect())
}

pub(super) async fn leases(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let visits = (0..7).map(|n| {
        let at = &on.instances()[n % on.instances().len()];
        let url = format!(
            "{at}/test/zk/semaphore?stock_id={}&hold_ms=500&who=v{n}",
            product.id
        );
        async move { on.get(&url).await?.success() }
    });
    try_join_all(visits).await?;
    let (mut inside, mut most) = (0_i64, 0);
    for came in log(on, &product).await? {
        inside += if came { 1 } else { -1 };
        most = most.max(inside);
    }
    product.remove().await?;
    let words = Words::new(
        format!("七个人同时来：同时在里面的最多 {most} 个，最后都出来了（还剩 {inside} 个）。"),
        format!(
            "Seven came at once: at most {most} were inside, and all came out ({inside} left)."
        ),
    );
    Ok(Seen::holds((most, inside) == (5, 0), words).value("inside", most))
}

pub(super) async fn leases_of_the_dead(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (product, zookeeper) = (on.product(5000).await?, on.zookeeper().await?);
    let instances = &on.servers()?.instances;
    let [alive, .., dies] = &instances[..] else {
        return Err(NoVerdict::without("要有两台实例", "it takes two instances"));
    };
    let url = |at: &str, wait: u32| {
        format!(
            "{at}/test/zk/semaphore?stock_id={}&hold_ms=60000&wait_ms={wait}",
            product.id
        )
    };
    let taken = format!("/locks/semaphore-{}/leases", product.id);
    let all = try_join_all((0..5).map(|n| {
        let url = format!("{}&who=v{n}", url(&dies.url, 60_000));
        async move { on.get(&url).await }
    }));
    let killed = async {
        until_below(&zookeeper, &taken, 5).await?;
        let before = on.get(&url(&alive.url, 500)).await?.status.as_u16();
        on.fault(Action::Kill, &dies.name).await?;
        // Once the session has ended, by itself.
        while below(&zookeeper, &taken).await? > 0 {
            sleep(Duration::from_millis(100)).await;
        }
        let after = on
            .get(&format!(
                "{}/test/zk/semaphore?stock_id={}&hold_ms=0",
                alive.url, product.id
            ))
            .await?;
        Ok::<_, NoVerdict>((before, after.status.as_u16()))
    };
    // Those who were inside have no answer: their instance is dead.
    let (_, answers) = tokio::join!(all, killed);
    let (before, after) = answers?;
    on.fault(Action::Start, &dies.name).await?;
    product.remove().await?;
    let words = Words::new(
        format!(
            "五个租约都在 {} 手里时：{before}；它被杀、会话结束以后：{after}。",
            dies.name
        ),
        format!(
            "With all five leases in {}: {before}; after it was killed and its session ended: {after}.",
            dies.name
        ),
    );
    Ok(Seen::holds((before, after) == (503, 200), words))
}

pub(super) async fn barrier(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(1).await?;
    let ask = async |at: &str, what: &str, wait: u32| {
        let url = format!(
            "{at}/test/zk/barrier/{what}?stock_id={}&wait_ms={wait}",
            product.id
        );
        Ok::<_, NoVerdict>(on.get(&url).await?.status.as_u16())
    };
    ask(on.one(), "set", 1000).await?;
    let closed = ask(on.one(), "wait", 500).await?;
    let waiting = try_join_all(on.instances().iter().map(|at| ask(at, "wait", 20_000)));
    let removed = ask(on.one(), "remove", 1000);
    let (waited, removed) = tokio::join!(waiting, removed);
    let (waited, removed) = (waited?, removed?);
    product.remove().await?;
    let words = Words::new(
        format!("栅栏关着，等半秒：{closed}；移除 {removed} 以后，每台上等的：{waited:?}。"),
        format!(
            "Closed, after half a second: {closed}; removed {removed}, and those who wait, on each instance: {waited:?}."
        ),
    );
    Ok(Seen::holds(
        closed == 503 && removed == 200 && waited.iter().all(|status| *status == 200),
        words,
    ))
}

pub(super) async fn threshold(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(1).await?;
    let enter = async |wait: u32| {
        let url = format!(
            "{}/test/zk/double-barrier/enter?members=2&stock_id={}&wait_ms={wait}",
            on.one(),
            product.id
        );
        Ok::<_, NoVerdict>(on.get(&url).await?.status.as_u16())
    };
    let alone = enter(500).await?;
    let (first, second) = tokio::join!(enter(20_000), enter(20_000));
    let together = [first?, second?];
    let third = enter(5_000).await?;
    product.remove().await?;
    let words = Words::new(
        format!("阈值 2：一个人等半秒 {alone}，两个人 {together:?}，第三个 {third}。"),
        format!(
            "A threshold of 2: one alone, half a second, {alone}; two {together:?}; a third {third}."
        ),
    );
    Ok(Seen::holds(
        json!([alone, together, third]) == json!([503, [200, 200], 200]),
        words,
    ))
}
