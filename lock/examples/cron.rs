//! A nightly job that runs once, though a timer starts it on every machine.
//!
//! The lock lets one machine in at a time. That alone is not enough: a machine whose clock is late comes after the first
//! one has finished. So the job records the nights that are done, and looks there while it has the lock.
//!
//! `cargo run -p oversell-lock --example cron --features redis -- redis://127.0.0.1:6379`

use oversell_lock::{
    Fence, LockError, Process, WithError,
    redis::{RedisClient, RedisOptions},
};
use std::{collections::HashSet, env, error::Error, time::Duration};
use tokio::sync::Mutex;

const NIGHT: &str = "2026-11-27";

/// The nights that are done: in a real job a table of the database, whose writes check the token in the same statement.
#[derive(Default)]
struct Runs {
    nights: HashSet<String>,
    highest: Option<Fence>,
}

impl Runs {
    fn record(&mut self, night: &str, fence: Option<Fence>) -> Result<(), String> {
        if fence < self.highest {
            return Err(format!("{fence:?} comes too late, after {:?}", self.highest));
        }
        self.highest = fence;
        self.nights.insert(night.into());
        Ok(())
    }
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Done,
    DoneBefore,
    RunsElsewhere,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    // A client of its own for each machine: the server sees three processes.
    let machine = |name| {
        let process = Process::labelled(name)?;
        RedisClient::new(RedisOptions::new(&url).prefix("example:").process(process))
    };
    let (one, two, late) = (machine("one")?, machine("two")?, machine("late")?);
    let runs = Mutex::new(Runs::default());

    let (first, second) = tokio::join!(nightly(&one, &runs), nightly(&two, &runs));
    let outcomes = [first?, second?, nightly(&late, &runs).await?];
    println!("the machines say: {outcomes:?}");
    let done = outcomes.iter().filter(|outcome| **outcome == Outcome::Done);
    if done.count() != 1 {
        return Err("the job did not run once".into());
    }

    for machine in [one, two, late] {
        machine.close().await;
    }
    Ok(())
}

/// The timer of each machine calls it.
async fn nightly(redis: &RedisClient, runs: &Mutex<Runs>) -> Result<Outcome, Box<dyn Error>> {
    // The lease is renewed as long as the report takes. At a loss the report is dropped, and nothing is recorded.
    let once = async |fence| {
        if runs.lock().await.nights.contains(NIGHT) {
            return Ok(Outcome::DoneBefore);
        }
        report().await;
        runs.lock().await.record(NIGHT, fence)?;
        Ok::<_, String>(Outcome::Done)
    };
    match redis.fenced_lock("nightly-report").with(Duration::ZERO, once).await {
        Err(WithError::NotAcquired(LockError::Taken { .. })) => Ok(Outcome::RunsElsewhere),
        done => Ok(done?),
    }
}

async fn report() {
    tokio::time::sleep(Duration::from_millis(200)).await;
}
