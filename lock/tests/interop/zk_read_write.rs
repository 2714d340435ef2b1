//! `ZkRwLock` and Curator's `InterProcessReadWriteLock`.

use super::{
    support::{Verdict, is_taken, says, waiting},
    zk_mutex::had,
    zk_sections::with_curator,
    zk_sides::{ZkSides, ours_sleeps_on, they_sleep_on},
};
use oversell_lock::Lock;
use std::sync::Arc;

pub(crate) async fn readers_of_both_are_together(sides: Arc<ZkSides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    let lock = ours.rw_lock(&name);
    // Each side comes first once, and is the last to leave once.
    for java_first in [true, false] {
        if java_first {
            java.ask("reader", format!("acquire read {name}")).await?;
        }
        let reader = says("a read", lock.read().try_acquire().await)?;
        if !java_first {
            java.must("reader", format!("try read {name} 5000"), "true")
                .await?;
        }
        is_taken(lock.write().try_acquire().await)?;
        java.must("writer", format!("try write {name} 0"), "false")
            .await?;
        if java_first {
            let mut writer = java.tell("writer", format!("acquire write {name}"));
            sides.until_there(&name, 3).await?;
            java.ask("reader", format!("release read {name}")).await?;
            they_sleep_on(java, &mut writer).await?;
            says("release", reader.release().await)?;
            writer.answer().await?;
            java.ask("writer", format!("release write {name}")).await?;
        } else {
            let writer = waiting(lock.write());
            sides.until_there(&name, 3).await?;
            says("release", reader.release().await)?;
            ours_sleeps_on(&ours, &writer).await?;
            java.ask("reader", format!("release read {name}")).await?;
            says("release", had(writer).await?.release().await)?;
        }
        sides.until_there(&name, 0).await?;
    }
    Ok(())
}

pub(crate) async fn their_writer_keeps_ours_out(sides: Arc<ZkSides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    let lock = ours.rw_lock(&name);
    java.ask("writer", format!("acquire write {name}")).await?;
    is_taken(lock.read().try_acquire().await)?;
    is_taken(lock.write().try_acquire().await)?;
    let readers = [waiting(lock.read()), waiting(lock.read())];
    sides.until_there(&name, 3).await?;
    for reader in &readers {
        ours_sleeps_on(&ours, reader).await?;
    }
    java.ask("writer", format!("release write {name}")).await?;
    let mut inside = Vec::new();
    for reader in readers {
        inside.push(had(reader).await?);
    }
    java.must("writer", format!("try write {name} 0"), "false")
        .await?;
    for reader in inside {
        says("release", reader.release().await)?;
    }
    java.must("writer", format!("try write {name} 5000"), "true")
        .await?;
    let writer = waiting(lock.write());
    sides.until_there(&name, 2).await?;
    ours_sleeps_on(&ours, &writer).await?;
    java.ask("writer", format!("release write {name}")).await?;
    says("release", had(writer).await?.release().await)
}

pub(crate) async fn our_writer_keeps_theirs_out(sides: Arc<ZkSides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    let lock = ours.rw_lock(&name);
    let writer = says("free", lock.write().try_acquire().await)?;
    java.must("a", format!("try read {name} 0"), "false")
        .await?;
    java.must("a", format!("try write {name} 0"), "false")
        .await?;
    let (mut a, mut b) = (
        java.tell("a", format!("acquire read {name}")),
        java.tell("b", format!("acquire read {name}")),
    );
    sides.until_there(&name, 3).await?;
    they_sleep_on(java, &mut a).await?;
    they_sleep_on(java, &mut b).await?;
    says("release", writer.release().await)?;
    a.answer().await?;
    b.answer().await?;
    is_taken(lock.write().try_acquire().await)?;
    java.ask("a", format!("release read {name}")).await?;
    java.ask("b", format!("release read {name}")).await?;

    let writer = says("free", lock.write().try_acquire().await)?;
    let mut waiter = java.tell("a", format!("acquire write {name}"));
    sides.until_there(&name, 2).await?;
    they_sleep_on(java, &mut waiter).await?;
    says("release", writer.release().await)?;
    waiter.answer().await?;
    java.ask("a", format!("release write {name}"))
        .await
        .map(|_| ())
}

/// Whoever the readers, the writer and the reader after it belong to.
pub(crate) async fn a_reader_stands_behind_a_writer_who_waits(sides: Arc<ZkSides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    let lock = ours.rw_lock(&name);
    java.ask("reader", format!("acquire read {name}")).await?;
    let mut writer = java.tell("writer", format!("acquire write {name}"));
    sides.until_there(&name, 2).await?;
    let reader = waiting(lock.read());
    sides.until_there(&name, 3).await?;
    ours_sleeps_on(&ours, &reader).await?;
    they_sleep_on(java, &mut writer).await?;
    java.ask("reader", format!("release read {name}")).await?;
    writer.answer().await?;
    ours_sleeps_on(&ours, &reader).await?;
    java.ask("writer", format!("release write {name}")).await?;
    let reader = had(reader).await?;

    let writer = waiting(lock.write());
    sides.until_there(&name, 2).await?;
    let mut late = java.tell("reader", format!("acquire read {name}"));
    sides.until_there(&name, 3).await?;
    they_sleep_on(java, &mut late).await?;
    ours_sleeps_on(&ours, &writer).await?;
    says("release", reader.release().await)?;
    let writer = had(writer).await?;
    they_sleep_on(java, &mut late).await?;
    says("release", writer.release().await)?;
    late.answer().await?;
    java.ask("reader", format!("release read {name}")).await?;
    sides.until_there(&name, 0).await
}

/// A writer that also reads and then gives the write lock back: the nodes of the two have one sequence.
pub(crate) async fn who_steps_down_lets_readers_of_the_other_in(sides: Arc<ZkSides>) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    let lock = ours.rw_lock(&name);
    java.ask("owner", format!("acquire write {name}")).await?;
    java.ask("owner", format!("acquire read {name}")).await?;
    is_taken(lock.read().try_acquire().await)?;
    let reader = waiting(lock.read());
    sides.until_there(&name, 3).await?;
    ours_sleeps_on(&ours, &reader).await?;
    java.ask("owner", format!("release write {name}")).await?;
    let reader = had(reader).await?;
    says("release", reader.release().await)?;
    is_taken(lock.write().try_acquire().await)?;
    let writer = waiting(lock.write());
    sides.until_there(&name, 2).await?;
    java.ask("owner", format!("release read {name}")).await?;
    says("release", had(writer).await?.release().await)?;

    let owner = ours.owner();
    let writing = says("free", lock.write().owner(owner).try_acquire().await)?;
    let reading = says("beside it", lock.read().owner(owner).try_acquire().await)?;
    java.must("reader", format!("try read {name} 0"), "false")
        .await?;
    let mut reader = java.tell("reader", format!("acquire read {name}"));
    sides.until_there(&name, 3).await?;
    they_sleep_on(java, &mut reader).await?;
    says("release", writing.release().await)?;
    reader.answer().await?;
    java.ask("reader", format!("release read {name}")).await?;
    java.must("writer", format!("try write {name} 0"), "false")
        .await?;
    let writer = java.tell("writer", format!("acquire write {name}"));
    sides.until_there(&name, 2).await?;
    says("release", reading.release().await)?;
    writer.answer().await?;
    java.ask("writer", format!("release write {name}")).await?;
    sides.until_there(&name, 0).await
}

pub(crate) async fn mixed_writers_do_not_overlap(sides: Arc<ZkSides>) -> Verdict {
    let (name, process) = (sides.name(), sides.ours().await?);
    with_curator(&sides, "write", &name, 100, |_| {
        process.rw_lock(&name).write()
    })
    .await?
    .exact()
}

/// The twin changes what it should only read.
pub(crate) async fn a_side_that_writes_as_a_reader_is_caught(sides: Arc<ZkSides>) -> Verdict {
    let (name, process) = (sides.name(), sides.ours().await?);
    with_curator(&sides, "write", &name, 100, |_| {
        process.rw_lock(&name).read()
    })
    .await?
    .caught()
}
