//! `RedisFairLock` and Java's `RFairLock`: one queue for both.

use super::{
    exclusion::Kind,
    support::{SEEN, Sides, Verdict, ensure, is_taken, says, until, waiting},
};
use oversell_lock::{
    Lock,
    redis::{RedisClient, RedisFairLock},
};
use redis::AsyncTypedCommands;
use std::sync::Arc;

pub(crate) struct Fair;

impl Kind for Fair {
    const JAVA: &'static str = "fair";
    type Lock = RedisFairLock;

    fn lock(process: &RedisClient, name: &str) -> RedisFairLock {
        process.fair_lock(name)
    }
}

fn queue(name: &str) -> String {
    format!("redisson_lock_queue:{{{name}}}")
}

fn scores(name: &str) -> String {
    format!("redisson_lock_timeout:{{{name}}}")
}

/// Who stands in the queue; that the scores are of the same owners is checked at each look.
async fn standing(sides: &Sides, name: &str) -> Result<Vec<String>, String> {
    let mut outside = sides.outside().await;
    let (list, mut scored): (Vec<String>, Vec<String>) = redis::pipe()
        .atomic()
        .lrange(queue(name), 0, -1)
        .zrange(scores(name), 0, -1)
        .query_async(&mut outside)
        .await
        .map_err(|e| e.to_string())?;
    let mut sorted = list.clone();
    sorted.sort();
    scored.sort();
    ensure(sorted == scored, || {
        format!("in the queue {sorted:?}, with a score {scored:?}")
    })?;
    Ok(list)
}

async fn until_standing(sides: &Sides, name: &str, number: usize) -> Verdict {
    until(&format!("{number} in the queue"), || async {
        matches!(sides.outside().await.llen(queue(name)).await, Ok(length) if length == number)
    })
    .await
}

/// Puts one into the queue that never comes, and counts as alive for so many more milliseconds.
async fn stand(sides: &Sides, name: &str, alive: u64) -> Verdict {
    const GONE: &str = "00000000-0000-4000-8000-000000000000:1";
    let mut outside = sides.outside().await;
    let (seconds, _): (u64, u64) = redis::cmd("TIME")
        .query_async(&mut outside)
        .await
        .map_err(|e| e.to_string())?;
    let mut stands = redis::pipe();
    stands
        .atomic()
        .rpush(queue(name), GONE)
        .zadd(scores(name), GONE, seconds * 1000 + alive);
    stands
        .exec_async(&mut outside)
        .await
        .map_err(|e| e.to_string())
}

/// Ours, Java, ours, Java come one after the other, and have it in this order: whoever has it, nobody behind it goes.
pub(crate) async fn who_comes_first_has_it_first(sides: Arc<Sides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.java, [sides.ours(), sides.ours()]);
    let java_owners = [
        java.ask("second", "owner").await?,
        java.ask("fourth", "owner").await?,
    ];
    java.ask("holder", format!("lock fair {name}")).await?;
    let first = waiting(ours[0].fair_lock(&name));
    until_standing(&sides, &name, 1).await?;
    let mut second = java.tell("second", format!("lock fair {name}"));
    until_standing(&sides, &name, 2).await?;
    let third = waiting(ours[1].fair_lock(&name));
    until_standing(&sides, &name, 3).await?;
    let mut fourth = java.tell("fourth", format!("lock fair {name}"));
    until_standing(&sides, &name, 4).await?;
    let queue = standing(&sides, &name).await?;
    for (place, who) in [(1, "second"), (3, "fourth")] {
        let owner = java_owners[place / 2].as_str();
        ensure(queue[place] == owner, || {
            format!("java's {who} is {owner}, and the queue {queue:?}")
        })?;
    }

    java.ask("holder", format!("unlock fair {name}")).await?;
    let (guard, _) = says("first", first.await.map_err(|e| e.to_string())?)?;
    // Who comes now, and does not wait, does not get past those who do.
    is_taken(sides.ours().fair_lock(&name).try_acquire().await)?;
    java.must("late", format!("try fair {name} 0"), "false")
        .await?;
    sides.sleeps_on(&mut second).await?;
    let queue = standing(&sides, &name).await?;
    ensure(queue.len() == 3 && !third.is_finished(), || {
        format!("after the first: {queue:?}")
    })?;
    says("release", guard.release().await)?;
    second.answer().await?;
    sides.sleeps_on(&mut fourth).await?;
    ensure(!third.is_finished(), || {
        "the third has it beside the second".into()
    })?;
    java.ask("second", format!("unlock fair {name}")).await?;
    let (guard, _) = says("third", third.await.map_err(|e| e.to_string())?)?;
    sides.sleeps_on(&mut fourth).await?;
    says("release", guard.release().await)?;
    fourth.answer().await?;
    java.ask("fourth", format!("unlock fair {name}")).await?;
    sides.until_left(&name, &[]).await
}

/// A lock that is free is its first waiter's, though that one has not come yet: whoever comes later is refused by both.
pub(crate) async fn nobody_gets_past_a_living_waiter(sides: Arc<Sides>) -> Verdict {
    let (name, java, mut outside) = (sides.name(), &sides.java, sides.outside().await);
    stand(&sides, &name, 60_000).await?;
    is_taken(sides.ours().fair_lock(&name).try_acquire().await)?;
    java.must("late", format!("try fair {name} 0"), "false")
        .await?;
    until_standing(&sides, &name, 1).await?;
    outside
        .del(&[queue(&name), scores(&name)])
        .await
        .map_err(|e| e.to_string())?;
    java.must("late", format!("try fair {name} 0"), "true")
        .await?;
    java.ask("late", format!("unlock fair {name}")).await?;
    sides.until_left(&name, &[]).await
}

/// One that gives up, on either side, is out of the queue; who stands behind it has its turn.
pub(crate) async fn who_gives_up_leaves_no_place(sides: Arc<Sides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.java, sides.ours());
    java.ask("holder", format!("lock fair {name}")).await?;
    let impatient = tokio::spawn({
        let lock = ours.fair_lock(&name);
        async move { lock.acquire(SEEN).await.map(drop) }
    });
    until_standing(&sides, &name, 1).await?;
    let waiter = java.tell("waiter", format!("lock fair {name}"));
    until_standing(&sides, &name, 2).await?;
    is_taken(impatient.await.map_err(|e| e.to_string())?)?;
    until_standing(&sides, &name, 1).await?;
    standing(&sides, &name).await?;
    java.ask("holder", format!("unlock fair {name}")).await?;
    waiter.answer().await?;

    let impatient = java.tell("impatient", format!("try fair {name} {}", SEEN.as_millis()));
    until_standing(&sides, &name, 1).await?;
    let patient = waiting(ours.fair_lock(&name));
    until_standing(&sides, &name, 2).await?;
    let answer = impatient.answer().await?;
    ensure(answer == "false", || {
        format!("java's short wait came to {answer}")
    })?;
    until_standing(&sides, &name, 1).await?;
    standing(&sides, &name).await?;
    java.ask("waiter", format!("unlock fair {name}")).await?;
    let (guard, _) = says("patient", patient.await.map_err(|e| e.to_string())?)?;
    says("release", guard.release().await)?;
    sides.until_left(&name, &[]).await
}

/// A waiter that is gone without a word, as when its process was killed, holds up neither side once its score has passed.
pub(crate) async fn both_get_past_a_dead_waiter(sides: Arc<Sides>) -> Verdict {
    /// In milliseconds: long enough for the next one to be seen behind it.
    const ALIVE: u64 = 6000;
    let (name, java) = (sides.name(), &sides.java);
    for java_is_next in [true, false] {
        java.ask("holder", format!("lock fair {name}")).await?;
        stand(&sides, &name, ALIVE).await?;
        if java_is_next {
            let waiter = java.tell("waiter", format!("lock fair {name}"));
            until_standing(&sides, &name, 2).await?;
            java.ask("holder", format!("unlock fair {name}")).await?;
            waiter.answer().await?;
            java.ask("waiter", format!("unlock fair {name}")).await?;
        } else {
            let ours = waiting(sides.ours().fair_lock(&name));
            until_standing(&sides, &name, 2).await?;
            java.ask("holder", format!("unlock fair {name}")).await?;
            let (guard, _) = says("ours", ours.await.map_err(|e| e.to_string())?)?;
            says("release", guard.release().await)?;
        }
        sides.until_left(&name, &[]).await?;
    }
    Ok(())
}
