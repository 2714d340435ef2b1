//! Whether one contender gets its turns among two busy processes of the other side, which would like to keep the lock.

use super::{
    peer::Peer,
    support::{SOON, Sides, Verdict, ensure, says},
};
use futures::future::{try_join, try_join_all};
use oversell_lock::{Lock, redis::RedisClient};
use redis::AsyncCommands;
use std::sync::Arc;

/// In all, of everybody.
const SECTIONS: u32 = 10_000;
/// The contenders of each busy process.
const CROWD: usize = 33;
/// Nobody may wait for more than so many times its fair share of the time.
const FAIR: f64 = 20.0;

/// The lone one's turns against its fair share, which is everybody's.
fn is_served(sides: &Sides, who: &str, turns: u32) -> Verdict {
    let contenders = 2 * CROWD + 1;
    let ratio = f64::from(turns) * contenders as f64 / f64::from(SECTIONS);
    eprintln!(
        "{}: {who} had {turns} of {SECTIONS} turns, {ratio:.2} of its fair share",
        sides.version
    );
    ensure(ratio * FAIR >= 1.0, || {
        format!("{who}: {turns} turns of {SECTIONS}, {ratio:.3} of its fair share")
    })
}

/// Counts one section; `None` where all have been had.
async fn section(process: &RedisClient, name: &str) -> Result<Option<u32>, String> {
    let counted: u32 = process
        .connection()
        .incr(format!("{name}:counter"), 1)
        .await
        .map_err(|e| e.to_string())?;
    Ok((counted <= SECTIONS).then_some(counted))
}

/// One task of ours, until all sections have been had: how many it had.
async fn ours(process: &RedisClient, name: &str) -> Result<u32, String> {
    let (lock, mut turns) = (process.lock(name), 0);
    loop {
        let guard = says("a turn", lock.acquire(SOON).await)?;
        let counted = section(process, name).await?;
        says("release", guard.release().await)?;
        if counted.is_none() {
            return Ok(turns);
        }
        turns += 1;
    }
}

/// One thread of Java's, the same.
async fn javas(java: &Peer, thread: &str, name: &str) -> Result<u32, String> {
    let turns = java
        .ask_long(thread, format!("turns lock {name} {SECTIONS}"))
        .await?;
    turns.parse().map_err(|e| format!("{turns}: {e}"))
}

pub(crate) async fn a_java_waiter_is_served_among_two_busy_processes_of_ours(
    sides: Arc<Sides>,
) -> Verdict {
    let (name, processes) = (sides.name(), [sides.ours(), sides.ours()]);
    let crowd = processes
        .iter()
        .flat_map(|process| (0..CROWD).map(|_| ours(process, &name)));
    let (java, _) = try_join(javas(&sides.java, "alone", &name), try_join_all(crowd)).await?;
    is_served(&sides, "java", java)
}

pub(crate) async fn one_of_ours_is_served_among_two_busy_java_processes(
    sides: Arc<Sides>,
) -> Verdict {
    let (name, process) = (sides.name(), sides.ours());
    let other = Peer::java("java-2", "redisson", sides.version, &sides.url).await?;
    let threads: Vec<_> = (0..CROWD).map(|n| format!("crowd{n}")).collect();
    let crowd = [&sides.java, &other]
        .into_iter()
        .flat_map(|java| threads.iter().map(|who| javas(java, who, &name)));
    let (turns, _) = try_join(ours(&process, &name), try_join_all(crowd)).await?;
    other.stop().await;
    is_served(&sides, "ours", turns)
}

/// The twin hands the lock on inside its process for as long as anybody there wants it.
pub(crate) async fn one_that_hands_over_without_end_is_caught(sides: Arc<Sides>) -> Verdict {
    let (name, process) = (sides.name(), sides.ours());
    let guard = says("the lock", process.lock(&name).acquire(SOON).await)?;
    let java = sides
        .java
        .tell("alone", format!("turns lock {name} {SECTIONS}"));
    sides.until_listening(&name, 1).await?;
    while section(&process, &name).await?.is_some() {}
    says("release", guard.release().await)?;
    let turns = java.answer().await?.parse().map_err(|e| format!("{e}"))?;
    match is_served(&sides, "java", turns) {
        Err(_) => Ok(()),
        Ok(()) => Err(format!("the twin let java in {turns} times")),
    }
}
