//! `RedisLatch` and Java's `RCountDownLatch`. A Java thread that waits looks again only when it is told.

use super::support::{SOON, Sides, Verdict, ensure, says, woken_by_the_message};
use oversell_lock::{LockError, redis::RedisLatch};
use redis::AsyncCommands;
use std::{num::NonZeroU32, sync::Arc, time::Duration};
use tokio::{task::JoinHandle, time::Instant};

const TWO: NonZeroU32 = NonZeroU32::new(2).unwrap();
/// Longer than [`SOON`]: a Java thread that goes on has been told.
const LONG: Duration = SOON.saturating_mul(10);

fn waiting(latch: &RedisLatch) -> JoinHandle<Result<Instant, LockError>> {
    let latch = latch.clone();
    tokio::spawn(async move { latch.wait(SOON).await.map(|()| Instant::now()) })
}

pub(crate) async fn both_count_one_latch_down(sides: Arc<Sides>) -> Verdict {
    let (java, ours) = (&sides.java, sides.ours());
    // Each side sets one latch, and each opens one.
    for (set_by_java, opened_by_java) in [(true, false), (false, true)] {
        let name = sides.name();
        let latch = ours.latch(&name);
        java.must("a", format!("left {name}"), "0").await?;
        if set_by_java {
            java.must("a", format!("count {name} 2"), "true").await?;
        } else {
            ensure(says("set", latch.try_set_count(TWO).await)?, || {
                "not set".into()
            })?;
        }
        java.must("a", format!("count {name} 9"), "false").await?;
        ensure(!says("set", latch.try_set_count(TWO).await)?, || {
            "ours set it twice".into()
        })?;
        java.must("a", format!("left {name}"), "2").await?;

        let our_waiter = waiting(&latch);
        let mut java_waiter = java.tell("waiter", format!("await {name} {}", LONG.as_millis()));
        sides.until_listening(&name, 2).await?;
        let half = async |by_java: bool| {
            if by_java {
                java.ask("a", format!("down {name}")).await
            } else {
                says("count down", latch.count_down().await).map(|left| format!("{left:?}"))
            }
        };
        half(!opened_by_java).await?;
        let count = says("count", latch.get_count().await)?;
        ensure(count == 1, || {
            format!("one of two counted down, and {count} are left")
        })?;
        java.must("a", format!("left {name}"), "1").await?;
        sides.sleeps_on(&mut java_waiter).await?;
        ensure(!our_waiter.is_finished(), || "ours went on at 1".into())?;
        half(opened_by_java).await?;
        let answer = java_waiter.answer().await?;
        ensure(answer == "true", || format!("java's wait came to {answer}"))?;
        says("our wait", our_waiter.await.map_err(|e| e.to_string())?)?;
        java.must("a", format!("left {name}"), "0").await?;
    }
    Ok(())
}

/// The twin opens the latch and tells nobody.
pub(crate) async fn an_opening_without_a_message_leaves_java_asleep(sides: Arc<Sides>) -> Verdict {
    let (name, mut outside) = (sides.name(), sides.outside().await);
    sides
        .java
        .must("a", format!("count {name} 1"), "true")
        .await?;
    let mut waiter = sides
        .java
        .tell("waiter", format!("await {name} {}", LONG.as_millis()));
    sides.until_listening(&name, 1).await?;
    sides.sleeps_on(&mut waiter).await?;
    outside
        .del::<_, ()>(&name)
        .await
        .map_err(|e| e.to_string())?;
    sides.sleeps_on(&mut waiter).await?;
    sides.publish(&name, 0).await;
    waiter.answer().await.map(|_| ())
}

pub(crate) async fn ours_is_woken_by_javas_message(sides: Arc<Sides>) -> Verdict {
    woken_by_the_message(async |_, told| {
        let (name, ours) = (sides.name(), sides.ours());
        sides
            .java
            .must("a", format!("count {name} 1"), "true")
            .await?;
        let waiter = waiting(&ours.latch(&name));
        sides.until_listening(&name, 1).await?;
        let mut outside = sides.outside().await;
        let opened = Instant::now();
        if told {
            sides.java.ask("a", format!("down {name}")).await?;
        } else {
            outside
                .del::<_, ()>(&name)
                .await
                .map_err(|e| e.to_string())?;
        }
        Ok(says("our wait", waiter.await.map_err(|e| e.to_string())?)? - opened)
    })
    .await
}

pub(crate) async fn a_wait_that_ends_says_so(sides: Arc<Sides>) -> Verdict {
    let (name, latch) = (sides.name(), sides.ours());
    let latch = latch.latch(&name);
    says("set", latch.try_set_count(TWO).await)?;
    sides
        .java
        .must("a", format!("await {name} 100"), "false")
        .await?;
    match latch.wait(Duration::from_millis(100)).await {
        Err(LockError::Taken { .. }) => Ok(()),
        other => Err(format!("our wait came to {other:?}")),
    }
}
