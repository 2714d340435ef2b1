//! §2.10.2 to §2.10.7: fair locks, several locks as one, read-write locks, semaphores, latches.

use super::tools::{ask, until_there};
use crate::{
    course::{Cluster, NoVerdict, Seen, Words},
    orders::Action,
    redis_at::redis_at,
};
use futures::future::{join_all, try_join_all};
use std::time::{Duration, Instant};

/// One has the lock; five wait in an instance that is killed, and behind them one in another.
pub(super) async fn five_dead(on: &Cluster) -> Result<Seen, NoVerdict> {
    let [first, second, third] = &on.servers()?.instances[..] else {
        return Err(NoVerdict::without(
            "要有三台实例",
            "it takes three instances",
        ));
    };
    let product = on.product(5000).await?;
    let (redis, lock, begun) = (
        on.redis().await?,
        format!("fairLock:{}", product.id),
        Instant::now(),
    );
    let queue = format!("redisson_lock_queue:{{{lock}}}");
    let queued = async |waiters: i64| {
        let mut redis = redis.clone();
        while ask::<i64>(&mut redis, &["LLEN", &queue]).await? < waiters {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok::<_, NoVerdict>(())
    };
    let held = async {
        product
            .buy(&first.url, "redis-fair", "&hold_ms=4000")
            .await?;
        Ok::<_, NoVerdict>(())
    };
    let die = async {
        until_there(&mut redis.clone(), &lock).await?;
        // Nobody answers them any more.
        join_all((0..5).map(|_| product.buy(&third.url, "redis-fair", "&wait_ms=60000"))).await;
        Ok::<_, NoVerdict>(())
    };
    let lives = async {
        queued(5).await?;
        product
            .buy(&second.url, "redis-fair", "&wait_ms=60000")
            .await?;
        Ok::<_, NoVerdict>(begun.elapsed())
    };
    let killed = async {
        queued(6).await?;
        on.fault(Action::Kill, &third.name).await?;
        Ok::<_, NoVerdict>(begun.elapsed())
    };
    let ((), (), lives, killed) = tokio::try_join!(held, die, lives, killed)?;
    on.fault(Action::Start, &third.name).await?;
    product.remove().await?;
    let waited = lives.saturating_sub(killed).as_millis();
    let words = Words::new(
        format!(
            "五个宕机 {waited} ms 以后，活着的就进去了：每个等待者都留下最后一次来试的时间，5 秒没来的一起出队，不是一个一个地等。"
        ),
        format!(
            "The living one was through {waited} ms after the five had died: each waiter's last try is noted, and those who have not tried \
             for 5 s leave the queue together, not one after the other."
        ),
    );
    let waited = u64::try_from(waited).unwrap_or(u64::MAX);
    Ok(Seen::holds(waited >= 25_000, words).value("waited_ms", waited))
}

pub(super) async fn all_or_none(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let [one, two, three] = [1, 2, 3].map(|n| format!("lock{n}:{}", product.id));
    let mut redis = on.redis().await?;
    ask::<()>(&mut redis, &["HSET", &two, "somebody", "1"]).await?;
    let (without, _) = product.buy(on.one(), "redis-multi", "&wait_ms=500").await?;
    let left: i64 = ask(&mut redis, &["EXISTS", &one, &three]).await?;
    ask::<()>(&mut redis, &["DEL", &two]).await?;
    let (with, _) = product
        .buy(on.one(), "redis-multi", "&wait_ms=5000")
        .await?;
    product.remove().await?;
    let words = Words::new(
        format!("lock2 被别人占着：{without}，lock1、lock3 留下 {left} 把；都空着：{with}。"),
        format!(
            "With lock2 another's: {without}, and {left} of lock1 and lock3 are left; with all free: {with}."
        ),
    );
    Ok(Seen::holds((without, left, with) == (503, 0, 200), words))
}

pub(super) async fn most_nodes(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let key = format!("redLock:{}", product.id);
    let nodes = &on.servers()?.redis;
    let mut answers = vec![
        product
            .buy(on.one(), "redis-redlock", "&wait_ms=1000")
            .await?
            .0,
    ];
    for node in nodes {
        let mut node = redis_at(&node.url).await.map_err(NoVerdict::failed)?;
        ask::<()>(&mut node, &["HSET", &key, "somebody", "1"]).await?;
        answers.push(
            product
                .buy(on.one(), "redis-redlock", "&wait_ms=1000")
                .await?
                .0,
        );
    }
    product.remove().await?;
    let words = Words::new(
        format!("0 到 5 个节点被别人占着：{answers:?}。"),
        format!("With 0 to 5 nodes another's: {answers:?}."),
    );
    Ok(Seen::holds(answers == [200, 200, 200, 503, 503, 503], words).value("answers", answers))
}

pub(super) async fn semaphore(on: &Cluster) -> Result<Seen, NoVerdict> {
    const STAY: u128 = 500;
    let (product, begun) = (on.product(5000).await?, Instant::now());
    let visits = (0..10).map(|n| {
        let at = format!(
            "{}/test/semaphore?stock_id={}&hold_ms={STAY}&who={n}",
            on.three(),
            product.id
        );
        async move {
            on.get(&at).await?.success()?;
            Ok::<_, NoVerdict>(begun.elapsed().as_millis())
        }
    });
    let mut left = try_join_all(visits).await?;
    product.remove().await?;
    left.sort_unstable();
    // With three permits, the fourth to leave came in after the first had left.
    let three = left
        .windows(4)
        .all(|four| four[3] - four[0] >= STAY * 9 / 10);
    let words = Words::new(
        format!("10 个请求离开的时刻（ms）：{left:?}；任何一段停留时间里最多 3 个：{three}。"),
        format!("The ten left after (ms) {left:?}; never more than 3 within one stay: {three}."),
    );
    let left: Vec<_> = left
        .into_iter()
        .map(|at| u64::try_from(at).unwrap_or(u64::MAX))
        .collect();
    Ok(Seen::holds(three, words).value("left_ms", left))
}

pub(super) async fn latch(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("latch:{}", product.id));
    let at = |route: &str| format!("{}/test/{route}?stock_id={}", on.three(), product.id);
    let (door, countdown) = (at("latch"), at("countdown"));
    let monitor = on.get(&door);
    tokio::pin!(monitor);
    let five = async {
        until_there(&mut redis, &key).await?;
        for _ in 0..5 {
            on.get(&countdown).await?.success()?;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        Ok::<_, NoVerdict>(())
    };
    let early = tokio::select! {
        answer = &mut monitor => Some(answer?),
        five = five => five.map(|()| None)?,
    };
    let after_six = match &early {
        Some(_) => false,
        None => {
            let (door, last) = tokio::join!(monitor, on.get(&countdown));
            last?.success()?;
            door?.success().is_ok()
        }
    };
    product.remove().await?;
    let words = Words::new(
        format!(
            "五位出来以后门{}锁；第六位出来以后锁门：{after_six}。",
            if early.is_some() { "已" } else { "没" }
        ),
        format!(
            "After five the door is {}; after the sixth it is locked: {after_six}.",
            if early.is_some() { "locked" } else { "open" }
        ),
    );
    Ok(Seen::holds(early.is_none() && after_six, words))
}
