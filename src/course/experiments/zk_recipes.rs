//! §3.7.5: the leases of Curator.

use super::tools::{below, until_below};
use crate::{
    course::{Cluster, NoVerdict, Product, Seen, words},
    orders::Action,
};
use futures::future::try_join_all;
use std::time::Duration;
use tokio::time::sleep;

/// The lines that those who came in and left have written.
async fn log(on: &Cluster, product: &Product<'_>) -> Result<Vec<bool>, NoVerdict> {
    let mut redis = on.redis().await?;
    let lines: Result<Vec<String>, _> = redis::cmd("LRANGE")
        .arg(format!("log:{}", product.id))
        .arg(0)
        .arg(-1)
        .query_async(&mut redis)
        .await;
    Ok(lines?
        .iter()
        .map(|line| line.contains("获取了资源"))
        .collect())
}

pub(super) async fn leases(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let of = if twin { "" } else { "zk/" };
    let visits = (0..7).map(|n| {
        let at = &on.instances()[n % on.instances().len()];
        let url = format!(
            "{at}/test/{of}semaphore?stock_id={}&hold_ms=500&who=v{n}",
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
    let words = words!(
        "七个人同时来：同时在里面的最多 {most} 个，最后都出来了（还剩 {inside} 个）。",
        "Seven came at once: at most {most} were inside, and all came out ({inside} left)."
    );
    Ok(Seen::holds((most, inside) == (5, 0), words).value("inside", most))
}

pub(super) async fn leases_of_the_dead(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let (product, zookeeper) = (on.product(5000).await?, on.zookeeper().await?);
    let instances = &on.servers()?.instances;
    let [alive, .., dies] = &instances[..] else {
        return Err(NoVerdict::without("要有两个实例", "it takes two instances"));
    };
    let hold = if twin { 3000 } else { 60_000 };
    let url = |at: &str, wait: u32| {
        format!(
            "{at}/test/zk/semaphore?stock_id={}&hold_ms={hold}&wait_ms={wait}",
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
        if !twin {
            on.fault(Action::Kill, &dies.name).await?;
        }
        // Once the session has ended, by itself.
        while !twin && below(&zookeeper, &taken).await? > 0 {
            sleep(Duration::from_millis(100)).await;
        }
        let after = on
            .get(&format!(
                "{}/test/zk/semaphore?stock_id={}&hold_ms=0&wait_ms=500",
                alive.url, product.id
            ))
            .await?;
        Ok::<_, NoVerdict>((before, after.status.as_u16()))
    };
    // Those who were inside have no answer: their instance is dead.
    let (_, answers) = tokio::join!(all, killed);
    let (before, after) = answers?;
    if !twin {
        on.fault(Action::Start, &dies.name).await?;
    }
    product.remove().await?;
    let words = words!(
        "五个租约都在 {} 手里时：{before}；它被杀、会话结束以后：{after}。",
        "With all five leases in {}: {before}; after it was killed and its session ended: {after}.",
        dies.name
    );
    Ok(Seen::holds((before, after) == (503, 200), words))
}
