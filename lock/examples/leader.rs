//! A leader that is elected by a lock: each hold is a term, and the fencing token is the term's number.
//!
//! The leader stops at the loss of its lock, and what it writes checks its term: a leader that was paused, and does not
//! know of its loss yet, is refused.
//!
//! `cargo run -p oversell-lock --example leader --features redis -- redis://127.0.0.1:6379`

use oversell_lock::{
    Fence, LockError,
    redis::{RedisClient, RedisOptions},
};
use std::{env, error::Error, time::Duration};
use tokio::{sync::watch, time::sleep};

const LEASE: Duration = Duration::from_secs(3);
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// What the leader writes, and the highest term that has written it.
#[derive(Default)]
struct Plan {
    term: Option<Fence>,
    leader: &'static str,
}

impl Plan {
    /// Refuses a leader of an earlier term.
    fn write(&mut self, term: Option<Fence>, leader: &'static str) -> bool {
        let is_current = term >= self.term;
        if is_current {
            *self = Self { term, leader };
        }
        is_current
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let client = || RedisClient::new(RedisOptions::new(&url).prefix("example:").lease(LEASE));
    let (operator, one, two) = (client()?, client()?, client()?);
    let plan = watch::Sender::new(Plan::default());
    let mut reader = plan.subscribe();
    let candidates =
        [("one", &one), ("two", &two)].map(|(name, redis)| tokio::spawn(campaign(name, redis.clone(), plan.clone())));

    let first = reader.wait_for(|plan| plan.term.is_some()).await?.term;
    println!("the first term is {first:?}");

    // An operator takes the lock away. The other candidate is woken, and the old leader learns of it at its next renewal.
    operator.fenced_lock("leader").force_unlock().await?;
    let next = reader.wait_for(|plan| plan.term > first).await?.leader;
    println!("the plan is now written by {next}");

    let mut is_written = false;
    plan.send_modify(|plan| is_written = plan.write(first, "of the first term"));
    if is_written {
        return Err("a leader of an earlier term has written".into());
    }
    println!("a write of the first term is refused");

    // The candidates step down: a guard that is dropped releases the lock, and `close` waits for that.
    for candidate in candidates {
        candidate.abort();
    }
    for redis in [operator, one, two] {
        redis.close().await;
    }
    Ok(())
}

/// Leads as often as it is elected.
async fn campaign(name: &'static str, redis: RedisClient, plan: watch::Sender<Plan>) -> Result<(), LockError> {
    loop {
        let guard = match redis.fenced_lock("leader").acquire(Duration::MAX).await {
            Ok(guard) => guard,
            Err(LockError::Unavailable { .. }) => {
                sleep(RETRY_PAUSE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        println!("{name} leads, in term {:?}", guard.fence());
        tokio::select! {
            () = guard.lost() => println!("{name} is told of its loss"),
            () = lead(name, guard.fence(), &plan) => println!("{name} is refused"),
        }
        // A lock that is lost needs no release, and its release says so.
        if let Err(error) = guard.release().await {
            println!("{name} no longer leads: {error}");
        }
    }
}

/// Does a leader's work, until a write is refused.
async fn lead(name: &'static str, term: Option<Fence>, plan: &watch::Sender<Plan>) {
    let mut is_leader = true;
    while is_leader {
        plan.send_modify(|plan| is_leader = plan.write(term, name));
        sleep(Duration::from_millis(50)).await;
    }
}
