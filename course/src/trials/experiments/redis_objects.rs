//! §2.10.2 and §2.10.6: the dead waiters of a fair lock, and a semaphore.

use crate::trials::{
    Cluster, NoVerdict, Observation,
    tools::{send_command, wait_for_key},
};
use futures::future::{join_all, try_join_all};
use oversell::claims::words;
use oversell_lab::fault::Action;
use std::time::{Duration, Instant};

experiments! {
    "2.10.2.dead" => dead_waiters_delay_the_next(true), twin(false);
    "2.10.6" => semaphore_admits_three("semaphore"), twin("fair");
}

/// Claim: behind five dead waiters of a fair lock the next one waits for five times five seconds. The five die with their instance.
async fn dead_waiters_delay_the_next(
    on: &Cluster,
    waiters_die: bool,
) -> Result<Observation, NoVerdict> {
    let [first, second, third] = &on.servers()?.instances[..] else {
        return Err(NoVerdict::unavailable(
            "要有三个实例",
            "it takes three instances",
        ));
    };
    let product = on.create_product(5000).await?;
    let (redis, lock, begun) = (
        on.redis().await?,
        format!("fairLock:{}", product.id),
        Instant::now(),
    );
    let queue = format!("redisson_lock_queue:{{{lock}}}");
    let queued = async |waiters: i64| {
        let mut redis = redis.clone();
        while send_command::<i64>(&mut redis, &["LLEN", &queue]).await? < waiters {
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
        wait_for_key(&mut redis.clone(), &lock).await?;
        // No answer comes, because their instance is killed.
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
        if waiters_die {
            on.inject_fault(Action::Kill, &third.name).await?;
        }
        Ok::<_, NoVerdict>(begun.elapsed())
    };
    let ((), (), lives, killed) = tokio::try_join!(held, die, lives, killed)?;
    if waiters_die {
        on.inject_fault(Action::Start, &third.name).await?;
    }
    product.remove().await?;
    let waited = lives.saturating_sub(killed).as_millis();
    let words = words!(
        "五个宕机 {waited} ms 以后，活着的就进去了：每个等待者都留下最后一次来试的时间，5 秒没来的一起出队，不是一个一个地等。",
        "The living one was through {waited} ms after the five had died: each waiter's last try is noted, and those who have not tried \
             for 5 s leave the queue together, not one after the other."
    );
    let waited = u64::try_from(waited).unwrap_or(u64::MAX);
    Ok(Observation::holds(waited >= 25_000, words).value("waited_ms", waited))
}

/// Claim: of ten visits three are inside at once, and never more. Visits that leave within one stay were inside together.
async fn semaphore_admits_three(on: &Cluster, route: &str) -> Result<Observation, NoVerdict> {
    /// How long each visit stays inside: long beside the time in which ten requests arrive.
    const STAY_MS: u128 = 500;
    let (product, begun) = (on.create_product(5000).await?, Instant::now());
    let visits = (0..10).map(|n| {
        let at = format!(
            "{}/test/{route}?stock_id={}&hold_ms={STAY_MS}&who={n}",
            on.nginx(),
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
    // Visits that left within one stay were inside together.
    let together = |from: &u128| {
        let stay = *from..from + STAY_MS * 9 / 10;
        left.iter().filter(|at| stay.contains(at)).count()
    };
    let most = left.iter().map(together).max().unwrap_or_default();
    let words = words!(
        "10 个请求离开的时刻（ms）：{left:?}；同一时刻最多 {most} 个。",
        "The ten left after (ms) {left:?}; at most {most} were inside at once."
    );
    let left: Vec<_> = left
        .into_iter()
        .map(|at| u64::try_from(at).unwrap_or(u64::MAX))
        .collect();
    Ok(Observation::holds(most == 3, words).value("left_ms", left))
}
