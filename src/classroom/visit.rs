//! What a lesson on a lock tells its visitor: who it was, and what it did, step by step.

use crate::{ctx::Ctx, error::Error, stock::Job};
use oversell_lock::Owner;
use redis::AsyncCommands;
use serde::Serialize;
use std::fmt;
use utoipa::ToSchema;

/// One visit to a lock.
#[derive(Debug, Clone)]
pub struct Visit {
    /// Who held it, as the field in the lock's hash names it.
    pub holder: Owner,
    /// What it did, in order.
    pub steps: Vec<Step>,
}

/// One step of a visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Step {
    /// What was done.
    pub did: Did,
    /// The lock.
    #[schema(example = "fairLock")]
    pub lock: String,
    /// Its number: of the arrival, of the hold, of the part, as the lesson counts.
    #[schema(example = 1)]
    pub order: u64,
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Did {
    /// Entered the queue.
    Came,
    /// Had the lock.
    Took,
    /// Gave it back.
    Left,
}

impl Visit {
    pub(super) fn of(ctx: &Ctx) -> Self {
        Self {
            holder: ctx.redis.owner(),
            steps: Vec::new(),
        }
    }

    /// One more step, which the console shows.
    pub(super) fn step(&mut self, job: &Job, did: Did, lock: &str, order: u64) {
        let step = Step {
            did,
            lock: lock.to_owned(),
            order,
        };
        job.say(&step);
        self.steps.push(step);
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let did = match self.did {
            Did::Came => "来到",
            Did::Took => "拿到",
            Did::Left => "放掉",
        };
        write!(f, "{did} {} #{}", self.lock, self.order)
    }
}

/// The next number of what is counted beside a lock.
pub(super) async fn next(ctx: &Ctx, lock: &str, counted: &str) -> Result<u64, Error> {
    let key = format!("{{{}}}:{counted}", ctx.redis_key(lock));
    Ok(ctx.redis.connection().incr(key, 1).await?)
}
