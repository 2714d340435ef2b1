//! `RedisRwLock` and Java's `RReadWriteLock`. The write half alone is under `exclusion.rs`, as every lock is.

use super::{
    exclusion::Kind,
    support::{Sides, Verdict, ensure, is_taken, says, waiting, woken_by_the_message},
};
use oversell_lock::{
    Lock, Process,
    redis::{RedisClient, RedisWriteLock},
};
use redis::AsyncTypedCommands;
use std::sync::Arc;
use tokio::time::Instant;

pub(crate) struct Write;

impl Kind for Write {
    const JAVA: &'static str = "write";
    type Lock = RedisWriteLock;

    fn lock(process: &RedisClient, name: &str) -> RedisWriteLock {
        process.rw_lock(name).write()
    }

    fn field(owner: &str) -> String {
        format!("{owner}:write")
    }
}

async fn mode(sides: &Sides, name: &str) -> Option<String> {
    sides.holders(name).await.remove("mode")
}

/// Java and ours read together, and the writers of both wait for the last reader, whoever it is.
pub(crate) async fn readers_of_both_are_together(sides: Arc<Sides>) -> Verdict {
    let java = &sides.java;
    for java_leaves_last in [true, false] {
        let (name, ours) = (sides.name(), sides.ours());
        let lock = ours.rw_lock(&name);
        java.ask("reader", format!("lock read {name}")).await?;
        let reader = says("beside java", lock.read().try_acquire().await)?;
        java.must("second", format!("try read {name} 0"), "true")
            .await?;
        java.ask("second", format!("unlock read {name}")).await?;
        is_taken(lock.write().try_acquire().await)?;
        java.must("other", format!("try write {name} 0"), "false")
            .await?;
        java.must("other", format!("locked read {name}"), "true")
            .await?;
        java.must("other", format!("locked write {name}"), "false")
            .await?;
        let (holders, field) = (
            sides.holders(&name).await,
            java.ask("reader", "owner").await?,
        );
        ensure(
            holders.len() == 3
                && holders.contains_key(&field)
                && mode(&sides, &name).await.as_deref() == Some("read"),
            || format!("java is {field}, and the holders are {holders:?}"),
        )?;

        if java_leaves_last {
            let writer = waiting(lock.write());
            sides.until_listening(&name, 1).await?;
            says("release", reader.release().await)?;
            java.must("reader", format!("held read {name}"), "true")
                .await?;
            ensure(!writer.is_finished(), || {
                "ours writes while java reads".into()
            })?;
            java.ask("reader", format!("unlock read {name}")).await?;
            let (guard, _) = says("ours", writer.await.map_err(|e| e.to_string())?)?;
            says("release", guard.release().await)?;
        } else {
            let mut writer = java.tell("writer", format!("lock write {name}"));
            sides.until_listening(&name, 1).await?;
            java.ask("reader", format!("unlock read {name}")).await?;
            sides.sleeps_on(&mut writer).await?;
            says("release", reader.release().await)?;
            writer.answer().await?;
            is_taken(lock.read().try_acquire().await)?;
            java.ask("writer", format!("unlock write {name}")).await?;
        }
        sides.until_left(&name, &[]).await?;
    }
    Ok(())
}

/// A writer of either side keeps the readers of the other out, and its release lets all of them in together.
pub(crate) async fn a_writer_keeps_the_readers_of_the_other_out(sides: Arc<Sides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.java, sides.ours());
    let lock = ours.rw_lock(&name);
    java.ask("writer", format!("lock write {name}")).await?;
    is_taken(lock.read().try_acquire().await)?;
    let readers = [waiting(lock.read()), waiting(lock.read())];
    sides.until_listening(&name, 1).await?;
    java.ask("writer", format!("unlock write {name}")).await?;
    for reader in readers {
        let (guard, _) = says("a reader of ours", reader.await.map_err(|e| e.to_string())?)?;
        java.must("other", format!("try write {name} 0"), "false")
            .await?;
        says("release", guard.release().await)?;
    }

    let writer = says("free", lock.write().try_acquire().await)?;
    java.must("other", format!("try read {name} 0"), "false")
        .await?;
    let mut readers = ["reader1", "reader2"].map(|who| java.tell(who, format!("lock read {name}")));
    // The client subscribes once for all its threads.
    sides.until_listening(&name, 2).await?;
    for reader in &mut readers {
        sides.sleeps_on(reader).await?;
    }
    says("release", writer.release().await)?;
    for reader in readers {
        reader.answer().await?;
    }
    is_taken(lock.write().try_acquire().await)?;
    for who in ["reader1", "reader2"] {
        java.ask(who, format!("unlock read {name}")).await?;
    }
    sides.until_left(&name, &[]).await
}

/// A writer that also reads, and then gives up writing, lets the readers of the other side in and keeps its writers out.
pub(crate) async fn who_steps_down_lets_readers_of_the_other_in(sides: Arc<Sides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.java, sides.ours());
    let lock = ours.rw_lock(&name);
    java.ask("both", format!("lock write {name}")).await?;
    java.ask("both", format!("lock read {name}")).await?;
    is_taken(lock.read().try_acquire().await)?;
    java.ask("both", format!("unlock write {name}")).await?;
    ensure(mode(&sides, &name).await.as_deref() == Some("read"), || {
        "java has not stepped down".into()
    })?;
    let reader = says("beside java", lock.read().try_acquire().await)?;
    is_taken(lock.write().try_acquire().await)?;
    java.ask("both", format!("unlock read {name}")).await?;
    says("release", reader.release().await)?;
    sides.until_left(&name, &[]).await?;

    let owner = Process::new().owner();
    let writer = says("free", lock.write().owner(owner).try_acquire().await)?;
    let reader = says(
        "under its own write",
        lock.read().owner(owner).try_acquire().await,
    )?;
    let mut waiter = java.tell("reader", format!("lock read {name}"));
    sides.until_listening(&name, 1).await?;
    sides.sleeps_on(&mut waiter).await?;
    let (mut outside, copy) = (sides.outside().await, format!("copy of {name}"));
    redis::cmd("COPY")
        .arg(&name)
        .arg(&copy)
        .exec_async(&mut outside)
        .await
        .map_err(|e| e.to_string())?;
    says("release", writer.release().await)?;
    waiter.answer().await?;
    ensure(outside.del(&copy).await == Ok(1), || {
        "java has waited for the end of our lease".into()
    })?;
    java.must("other", format!("try write {name} 0"), "false")
        .await?;
    says("release", reader.release().await)?;
    java.must("other", format!("try write {name} 0"), "false")
        .await?;
    java.ask("reader", format!("unlock read {name}")).await?;
    sides.until_left(&name, &[]).await
}

/// Java's last reader tells our writer.
pub(crate) async fn our_writer_is_woken_by_javas_last_reader(sides: Arc<Sides>) -> Verdict {
    woken_by_the_message(async |number, told| {
        let (name, who) = (sides.name(), format!("reader{number}"));
        sides.java.ask(&who, format!("lock read {name}")).await?;
        let ours = sides.ours();
        let waiter = waiting(ours.rw_lock(&name).write());
        sides.until_listening(&name, 1).await?;
        let mut outside = sides.outside().await;
        let freed = Instant::now();
        if told {
            sides.java.ask(&who, format!("unlock read {name}")).await?;
        } else {
            outside.del(&name).await.map_err(|e| e.to_string())?;
        }
        let (guard, had) = says("ours", waiter.await.map_err(|e| e.to_string())?)?;
        says("release", guard.release().await)?;
        Ok(had - freed)
    })
    .await
}
