//! What every lock that excludes all others shows against its Java namesake, both ways.

use super::support::{
    Sides, Verdict, ensure, is_taken, says, until, waiting, woken_by_the_message,
};
use oversell_lock::{Lock, LockError, redis::RedisClient};
use redis::AsyncTypedCommands;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

/// A lock of ours, and what the Java process calls its namesake.
pub(crate) trait Kind: 'static {
    const JAVA: &'static str;
    type Lock: Lock + 'static;

    fn lock(process: &RedisClient, name: &str) -> Self::Lock;

    /// The field of the hash that says that `owner` holds it.
    fn field(owner: &str) -> String {
        owner.to_owned()
    }
}

pub(crate) async fn ours_waits_for_java<K: Kind>(sides: Arc<Sides>) -> Verdict {
    let (name, kind, ours) = (sides.name(), K::JAVA, sides.ours());
    let java = &sides.java;
    let field = K::field(&java.ask("holder", "owner").await?);
    java.ask("holder", format!("lock {kind} {name}")).await?;
    java.ask("holder", format!("lock {kind} {name}")).await?;
    java.must("holder", format!("holds {kind} {name}"), "2")
        .await?;
    let holders = sides.holders(&name).await;
    ensure(holders.get(&field).is_some_and(|n| n == "2"), || {
        format!("two holds of {field} are {holders:?}")
    })?;
    is_taken(K::lock(&ours, &name).try_acquire().await)?;

    let waiter = waiting(K::lock(&ours, &name));
    sides.until_listening(&name, 1).await?;
    java.ask("holder", format!("unlock {kind} {name}")).await?;
    is_taken(K::lock(&sides.ours(), &name).try_acquire().await)?;
    ensure(!waiter.is_finished(), || {
        "java has one hold left, and ours has it too".into()
    })?;
    java.ask("holder", format!("unlock {kind} {name}")).await?;
    let (guard, _) = says(
        "after java's release",
        waiter.await.map_err(|e| e.to_string())?,
    )?;

    java.must("other", format!("locked {kind} {name}"), "true")
        .await?;
    java.must("other", format!("held {kind} {name}"), "false")
        .await?;
    java.must("other", format!("try {kind} {name} 0"), "false")
        .await?;
    let left: i64 = java
        .ask("other", format!("ttl {kind} {name}"))
        .await?
        .parse()
        .map_err(|_| "no number")?;
    ensure(left > 0, || format!("java sees {left} ms of our lease"))?;
    says("release", guard.release().await)?;
    java.must("other", format!("locked {kind} {name}"), "false")
        .await?;
    sides.until_left(&name, &[]).await
}

pub(crate) async fn java_waits_for_ours<K: Kind>(sides: Arc<Sides>) -> Verdict {
    let (name, kind, ours) = (sides.name(), K::JAVA, sides.ours());
    let java = &sides.java;
    let guard = says("free", K::lock(&ours, &name).acquire(Duration::ZERO).await)?;
    java.must("waiter", format!("try {kind} {name} 0"), "false")
        .await?;
    let mut waiter = java.tell("waiter", format!("lock {kind} {name}"));
    sides.until_listening(&name, 1).await?;
    sides.sleeps_on(&mut waiter).await?;

    // A copy lives as long as the hold had still to live: while it is there, Java has not waited for the hold's end.
    let (mut outside, copy) = (sides.outside().await, format!("copy of {name}"));
    redis::cmd("COPY")
        .arg(&name)
        .arg(&copy)
        .exec_async(&mut outside)
        .await
        .map_err(|e| e.to_string())?;
    says("release", guard.release().await)?;
    waiter.answer().await?;
    ensure(outside.del(&copy).await == Ok(1), || {
        "java has waited for the end of our lease".into()
    })?;

    java.must("waiter", format!("holds {kind} {name}"), "1")
        .await?;
    let (field, holders) = (
        K::field(&java.ask("waiter", "owner").await?),
        sides.holders(&name).await,
    );
    ensure(holders.contains_key(&field), || {
        format!("java is {field}, and the holders are {holders:?}")
    })?;
    is_taken(K::lock(&ours, &name).try_acquire().await)?;
    java.ask("waiter", format!("unlock {kind} {name}")).await?;
    says(
        "free again",
        K::lock(&ours, &name).acquire(Duration::ZERO).await,
    )?
    .release()
    .await
    .ok();
    sides.until_left(&name, &[]).await
}

/// The twin of our release: it deletes the hold and tells nobody.
pub(crate) async fn a_release_without_a_message_leaves_java_asleep<K: Kind>(
    sides: Arc<Sides>,
) -> Verdict {
    let (name, kind, ours) = (sides.name(), K::JAVA, sides.ours());
    let guard = says("free", K::lock(&ours, &name).acquire(Duration::ZERO).await)?;
    let mut waiter = sides.java.tell("waiter", format!("lock {kind} {name}"));
    sides.until_listening(&name, 1).await?;
    // What it does between its subscription and its sleep.
    sides.sleeps_on(&mut waiter).await?;
    sides
        .outside()
        .await
        .del(&name)
        .await
        .map_err(|e| e.to_string())?;
    sides.sleeps_on(&mut waiter).await?;
    sides.publish(&name, 0).await;
    waiter.answer().await?;
    drop(guard);
    sides
        .java
        .ask("waiter", format!("unlock {kind} {name}"))
        .await?;
    sides.until_left(&name, &[]).await
}

pub(crate) async fn ours_is_woken_by_javas_message<K: Kind>(sides: Arc<Sides>) -> Verdict {
    let kind = K::JAVA;
    woken_by_the_message(async |number, told| {
        // A hold that went behind its thread's back cannot be unlocked: each round has a thread of its own.
        let (name, who) = (sides.name(), format!("holder{number}"));
        sides.java.ask(&who, format!("lock {kind} {name}")).await?;
        let ours = sides.ours();
        let waiter = waiting(K::lock(&ours, &name));
        sides.until_listening(&name, 1).await?;
        let mut outside = sides.outside().await;
        let freed = Instant::now();
        if told {
            sides
                .java
                .ask(&who, format!("unlock {kind} {name}"))
                .await?;
        } else {
            outside.del(&name).await.map_err(|e| e.to_string())?;
        }
        let (guard, had) = says("ours", waiter.await.map_err(|e| e.to_string())?)?;
        says("release", guard.release().await)?;
        Ok(had - freed)
    })
    .await
}

/// Neither side can end a hold of the other.
pub(crate) async fn a_foreign_release_is_refused<K: Kind>(sides: Arc<Sides>) -> Verdict {
    let (name, kind, ours) = (sides.name(), K::JAVA, sides.ours());
    let guard = says("free", K::lock(&ours, &name).acquire(Duration::ZERO).await)?;
    let before = sides.holders(&name).await;
    match sides
        .java
        .ask("stranger", format!("unlock {kind} {name}"))
        .await
    {
        Err(refused) if refused.contains("IllegalMonitorState") => {}
        other => return Err(format!("java's unlock of our hold came to {other:?}")),
    }
    let after = sides.holders(&name).await;
    ensure(before == after, || format!("{before:?} became {after:?}"))?;

    sides
        .outside()
        .await
        .del(&name)
        .await
        .map_err(|e| e.to_string())?;
    sides
        .java
        .ask("next", format!("lock {kind} {name}"))
        .await?;
    match guard.release().await {
        Err(LockError::Lost { .. }) => {}
        other => return Err(format!("our release of java's hold came to {other:?}")),
    }
    sides
        .java
        .must("next", format!("held {kind} {name}"), "true")
        .await?;
    sides
        .java
        .ask("next", format!("unlock {kind} {name}"))
        .await?;
    sides.until_left(&name, &[]).await
}

pub(crate) async fn what_a_java_thread_forgot_comes_free_with_its_lease<K: Kind>(
    sides: Arc<Sides>,
) -> Verdict {
    let (name, kind, ours) = (sides.name(), K::JAVA, sides.ours());
    // Its lease begins before its answer comes, which on a busy machine takes seconds.
    sides
        .java
        .ask("forgetful", format!("lock {kind} {name} 6000"))
        .await?;
    is_taken(K::lock(&ours, &name).try_acquire().await)?;
    let (guard, _) = says(
        "ours",
        waiting(K::lock(&ours, &name))
            .await
            .map_err(|e| e.to_string())?,
    )?;
    sides
        .java
        .must("forgetful", format!("held {kind} {name}"), "false")
        .await?;
    says("release", guard.release().await)?;
    until("free", || async { sides.holders(&name).await.is_empty() }).await
}
