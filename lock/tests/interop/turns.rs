//! Whether one contender gets its turns beside two busy processes of the other side.

use super::support::*;
use ::redis::AsyncCommands;
use futures::future::{try_join, try_join_all};

/// The sections of all contenders.
const SECTIONS: i64 = 10_000;
/// The contenders of each busy process.
const CROWD: usize = 33;
/// The longest wait, as a multiple of the fair share of the time.
const FAIR: f64 = 20.0;

/// The lone contender's turns against its fair share, which is everybody's.
fn ensure_served(pair: &Pair, who: &str, turns: i64) -> Result<()> {
    let contenders = 2 * CROWD + 1;
    let ratio = turns as f64 * contenders as f64 / SECTIONS as f64;
    let seen = format!("{who} had {turns} of {SECTIONS} turns, {ratio:.3} of its fair share");
    eprintln!("{}: {seen}", pair.peer.library);
    ensure!(ratio * FAIR >= 1.0, "{seen}");
    Ok(())
}

/// Counts one section; returns whether there was one left.
async fn section(pair: &Pair) -> Result<bool> {
    let mut redis = pair.redis().outside();
    let counted: i64 = redis.incr(format!("{}:counter", pair.name), 1).await?;
    Ok(counted <= SECTIONS)
}

/// Runs a contender until all sections are done; returns its number.
async fn busy(pair: &Pair, mut ours: Contender) -> Result<i64> {
    for turns in 0.. {
        ours.take_in_turn().await?;
        let was_one = section(pair).await?;
        ours.release().await?;
        if !was_one {
            return Ok(turns);
        }
    }
    unreachable!("there are only so many sections")
}

/// The same for a Java thread.
async fn busy_java(pair: &Pair, java: &Peer) -> Result<i64> {
    let command = format!("turns lock {} {SECTIONS}", pair.name);
    java.count(&java.new_thread(), command).await
}

#[apply(clause!)]
#[over(redisson, Once)]
async fn a_java_waiter_is_served_among_two_busy_processes_of_ours(pair: Pair) -> Result<()> {
    let crowd = (0..2 * CROWD).map(|n| busy(&pair, pair.ours_in(n % 2)));
    let (java, _) = try_join(busy_java(&pair, pair.peer), try_join_all(crowd)).await?;
    ensure_served(&pair, "java", java)
}

#[apply(clause!)]
#[over(redisson, Once)]
async fn one_of_ours_is_served_among_two_busy_java_processes(pair: Pair) -> Result<()> {
    let second = pair.stage.start(pair.peer.library, "second", None).await?;
    let crowd = [pair.peer, &second].into_iter().flat_map(|java| (0..CROWD).map(|_| busy_java(&pair, java)));
    let (ours, _) = try_join(busy(&pair, pair.ours()), try_join_all(crowd)).await?;
    second.stop().await;
    ensure_served(&pair, "ours", ours)
}

/// The twin hands off within its process while anybody there waits.
#[apply(clause!)]
#[over(redisson, Once)]
async fn one_that_hands_over_without_end_is_caught(pair: Pair) -> Result<()> {
    let mut ours = pair.ours();
    ours.take().await?;
    let java = busy_java(&pair, pair.peer);
    let twin = async {
        until("java waits", async || Ok(pair.waiting().await? == Some(1))).await?;
        while section(&pair).await? {}
        ours.release().await
    };
    let (turns, ()) = try_join(java, twin).await?;
    caught(ensure_served(&pair, "java", turns), "of its fair share")
}
