//! `RedisSemaphore` and Java's `RSemaphore`. A Java thread that waits for permits looks again only when it is told.

use super::{
    sections::crowd,
    support::{SOON, Sides, Verdict, ensure, is_taken, says, woken_by_the_message},
};
use redis::AsyncCommands;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

pub(crate) async fn permits_are_seen_by_both(sides: Arc<Sides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.java, sides.ours());
    let semaphore = ours.semaphore(&name);
    java.must("a", format!("permits {name} 3"), "true").await?;
    ensure(!says("set", semaphore.try_set_permits(5).await)?, || {
        "ours set what java had set".into()
    })?;
    let two = says("two of three", semaphore.try_acquire(2).await)?;
    java.must("a", format!("available {name}"), "1").await?;
    java.must("a", format!("tryacquire {name} 2 0"), "false")
        .await?;
    java.must("a", format!("tryacquire {name} 1 0"), "true")
        .await?;
    is_taken(semaphore.try_acquire(1).await)?;
    java.must("a", format!("permits {name} 5"), "false").await?;
    says("release", two.release().await)?;
    java.must("b", format!("tryacquire {name} 2 0"), "true")
        .await?;
    java.ask("b", format!("release {name} 3")).await?;
    let free = says("available", semaphore.available_permits().await)?;
    ensure(free == 3, || {
        format!("all were given back, and {free} are free")
    })?;

    let other = sides.name();
    ensure(
        says("set", ours.semaphore(&other).try_set_permits(2).await)?,
        || "not set".into(),
    )?;
    java.must("a", format!("permits {other} 5"), "false")
        .await?;
    java.must("a", format!("available {other}"), "2").await
}

pub(crate) async fn java_waits_for_our_permit(sides: Arc<Sides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.java, sides.ours());
    let semaphore = ours.semaphore(&name);
    says("set", semaphore.try_set_permits(2).await)?;
    let both = says("both", semaphore.try_acquire(2).await)?;
    let mut waiter = java.tell("waiter", format!("acquire {name} 2"));
    sides.until_listening(&name, 1).await?;
    sides.sleeps_on(&mut waiter).await?;
    says("release", both.release().await)?;
    waiter.answer().await?;
    is_taken(semaphore.try_acquire(1).await)?;
    java.ask("waiter", format!("release {name} 2")).await?;
    sides.until_left(&name, &[&name]).await
}

/// The twin gives its permit back and tells nobody.
pub(crate) async fn a_permit_without_a_message_leaves_java_asleep(sides: Arc<Sides>) -> Verdict {
    let (name, mut outside) = (sides.name(), sides.outside().await);
    sides
        .java
        .must("waiter", format!("permits {name} 1"), "true")
        .await?;
    sides
        .java
        .ask("holder", format!("acquire {name} 1"))
        .await?;
    let mut waiter = sides.java.tell("waiter", format!("acquire {name} 1"));
    sides.until_listening(&name, 1).await?;
    sides.sleeps_on(&mut waiter).await?;
    outside
        .incr::<_, _, ()>(&name, 1)
        .await
        .map_err(|e| e.to_string())?;
    sides.sleeps_on(&mut waiter).await?;
    sides.publish(&name, 1).await;
    waiter.answer().await.map(|_| ())
}

pub(crate) async fn ours_is_woken_by_javas_message(sides: Arc<Sides>) -> Verdict {
    woken_by_the_message(async |_, told| {
        let (name, semaphore) = (sides.name(), sides.ours());
        let semaphore = semaphore.semaphore(&name);
        sides
            .java
            .must("holder", format!("permits {name} 1"), "true")
            .await?;
        sides
            .java
            .ask("holder", format!("acquire {name} 1"))
            .await?;
        is_taken(semaphore.try_acquire(1).await)?;
        let waiter =
            tokio::spawn(async move { Ok((semaphore.acquire(1, SOON).await?, Instant::now())) });
        sides.until_listening(&name, 1).await?;
        let mut outside = sides.outside().await;
        let freed = Instant::now();
        if told {
            sides
                .java
                .ask("holder", format!("release {name} 1"))
                .await?;
        } else {
            outside
                .incr::<_, _, ()>(&name, 1)
                .await
                .map_err(|e| e.to_string())?;
        }
        let (permit, had) = says("ours", waiter.await.map_err(|e| e.to_string())?)?;
        says("release", permit.release().await)?;
        Ok(had - freed)
    })
    .await
}

const PERMITS: i64 = 3;

pub(crate) async fn no_more_are_inside_than_there_are_permits(sides: Arc<Sides>) -> Verdict {
    let (name, processes) = (sides.name(), [sides.ours(), sides.ours()]);
    sides
        .java
        .must("a", format!("permits {name} {PERMITS}"), "true")
        .await?;
    let semaphores = processes.each_ref().map(|p| p.semaphore(&name));
    let enter = |n: usize| {
        let semaphore = &semaphores[n % 2];
        async move { says("a turn", semaphore.acquire(1, SOON).await) }
    };
    let outcome = crowd(&sides, "semaphore", &name, 1000, enter, async |p| {
        says("release", p.release().await)
    })
    .await?;
    ensure(outcome.most == PERMITS, || {
        format!("{} of {PERMITS} were inside at once", outcome.most)
    })?;
    let free = says("available", semaphores[0].available_permits().await)?;
    ensure(free == PERMITS, || format!("{free} are free at the end"))
}

/// The twin comes in without a permit.
pub(crate) async fn a_side_without_permits_is_caught(sides: Arc<Sides>) -> Verdict {
    let name = sides.name();
    sides
        .java
        .must("a", format!("permits {name} {PERMITS}"), "true")
        .await?;
    let outcome = crowd(
        &sides,
        "semaphore",
        &name,
        400,
        async |_| Ok(()),
        async |()| Ok(()),
    )
    .await?;
    ensure(outcome.most > PERMITS, || "the twin was not seen".into())
}

/// Who does not wait long enough leaves nothing behind, on either side.
pub(crate) async fn a_wait_that_ends_takes_nothing(sides: Arc<Sides>) -> Verdict {
    const SHORT: Duration = Duration::from_millis(100);
    let (name, java, semaphore) = (sides.name(), &sides.java, sides.ours());
    let semaphore = semaphore.semaphore(&name);
    java.must("a", format!("permits {name} 1"), "true").await?;
    java.ask("a", format!("acquire {name} 1")).await?;
    is_taken(semaphore.acquire(1, SHORT).await)?;
    java.ask("a", format!("release {name} 1")).await?;
    let permit = says("free", semaphore.try_acquire(1).await)?;
    java.must(
        "b",
        format!("tryacquire {name} 1 {}", SHORT.as_millis()),
        "false",
    )
    .await?;
    says("release", permit.release().await)?;
    java.must("b", format!("available {name}"), "1").await
}
