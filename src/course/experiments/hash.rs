//! §2.6 and §2.7: a hash that counts its owner's holds, and a timer that renews it.

use super::tools::{ask, own};
use crate::course::{Cluster, NoVerdict, Seen, Words};
use std::time::Duration;

const ENTER_LUA: &str = include_str!("../../stock/strategies/lua/enter.lua");
const LEAVE_LUA: &str = include_str!("../../stock/strategies/lua/leave.lua");
const LEASE_MS: &str = "30000";

pub(super) async fn enter(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut redis, lock) = (on.redis().await?, own("lock"));
    let mut said = Vec::new();
    for owner in ["A", "A", "B"] {
        said.push(
            ask::<i64>(
                &mut redis,
                &["EVAL", ENTER_LUA, "1", &lock, owner, LEASE_MS],
            )
            .await?,
        );
    }
    let holds: Vec<(String, i64)> = ask(&mut redis, &["HGETALL", &lock]).await?;
    let left: i64 = ask(&mut redis, &["PTTL", &lock]).await?;
    ask::<()>(&mut redis, &["DEL", &lock]).await?;
    let words = Words::new(
        format!("A、A、B 依次来拿，返回 {said:?}；Hash 里是 {holds:?}，租约还剩 {left} ms。"),
        format!(
            "A, A and B came in turn and got {said:?}; the hash is {holds:?}, {left} ms of its lease are left."
        ),
    );
    Ok(Seen::holds(
        said == [1, 1, 0] && holds == [("A".to_owned(), 2)] && left > 0,
        words,
    )
    .value("returned", said))
}

pub(super) async fn leave(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut redis, lock) = (on.redis().await?, own("lock"));
    ask::<()>(&mut redis, &["HSET", &lock, "A", "2"]).await?;
    let (mut had, mut counts) = (Vec::new(), Vec::new());
    for owner in ["B", "A", "A", "A"] {
        had.push(ask::<i64>(&mut redis, &["EVAL", LEAVE_LUA, "1", &lock, owner]).await?);
        counts.push(
            ask::<Option<i64>>(&mut redis, &["HGET", &lock, "A"])
                .await?
                .unwrap_or(0),
        );
    }
    let words = Words::new(
        format!("A 进了两次。B、A、A、A 依次来解，返回 {had:?}，A 的计数随后是 {counts:?}。"),
        format!(
            "A was in twice. B, A, A and A unlocked in turn and got {had:?}; A's count was then {counts:?}."
        ),
    );
    let holds = had == [0, 1, 1, 0] && counts == [2, 1, 0, 0];
    Ok(Seen::holds(holds, words))
}

pub(super) async fn every_third(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let (mut redis, key) = (
        on.redis().await?,
        format!("lock:redis-watchdog:{}", product.id),
    );
    // Nine seconds of work under a lease of three.
    let left = watched(
        product.buy(on.one(), "redis-watchdog", "&lease_ms=3000&hold_ms=9500"),
        &mut redis,
        &key,
    )
    .await?;
    product.remove().await?;
    let renewed = renewals(&left);
    let lowest = left.iter().min().copied().unwrap_or_default();
    let words = Words::new(
        format!("租约 3 s、业务 9.5 s：续了 {renewed} 次，剩得最少时 {lowest} ms。"),
        format!(
            "A lease of 3 s and 9.5 s of work: renewed {renewed} times, and never less than {lowest} ms left."
        ),
    );
    let holds = (8..=9).contains(&renewed) && lowest > 1500;
    Ok(Seen::holds(holds, words)
        .value("renewed", renewed)
        .value("lowest_ms", lowest))
}

/// What is left of a key's lease, every 20 ms until the purchase is through, in milliseconds.
pub(super) async fn watched<T>(
    purchase: impl Future<Output = T>,
    redis: &mut redis::aio::MultiplexedConnection,
    key: &str,
) -> Result<Vec<i64>, NoVerdict> {
    let mut left = Vec::new();
    tokio::pin!(purchase);
    loop {
        tokio::select! {
            _ = &mut purchase => return Ok(left),
            () = tokio::time::sleep(Duration::from_millis(20)) => {
                left.extend(Some(ask::<i64>(redis, &["PTTL", key]).await?).filter(|left| *left >= 0));
            }
        }
    }
}

/// How often the lease was renewed.
pub(super) fn renewals(left: &[i64]) -> usize {
    left.windows(2)
        .filter(|pair| pair[1] > pair[0] + 100)
        .count()
}
