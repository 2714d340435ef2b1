//! What a lesson for several browser windows is: a value that says at which address it is visited and what is done there, and
//! what it answers. `http` serves them all by one handler.

use crate::{
    ctx::Ctx,
    error::Error,
    section::{Job, LockState, Name, names},
};
use futures::future::BoxFuture;
use oversell_lock::{Guard, Lock, Owner};
use serde::Serialize;
use std::{
    fmt::{self, Write},
    time::Duration,
};
use utoipa::ToSchema;

/// A lesson: its windows, and what it writes in the servers, for a reset to clear.
pub(crate) struct Lesson {
    pub(crate) names: &'static [Name],
    pub(crate) windows: &'static [Window],
}

/// An address at which a lesson is visited.
pub struct Window {
    /// The address.
    pub path: &'static str,
    /// The object that is visited, as answers and events name it.
    pub object: &'static str,
    /// What it is for, in one sentence.
    pub summary: &'static str,
    /// What an answer means.
    pub done: &'static str,
    /// The text of an answer.
    pub example: &'static str,
    /// Whether the lock may be lost inside, which is refused.
    pub may_be_lost: bool,
    /// How long to wait, where the request does not say; without it as long as the configuration says.
    pub wait: Option<Duration>,
    /// How long to stay, where the request does not say; without it not at all.
    pub stay: Option<fn() -> Duration>,
    /// Visits it.
    pub visit: for<'a> fn(&'a Ctx, &'a Job) -> BoxFuture<'a, Result<Answer, Error>>,
}

/// What a lesson answers: the text of the course, and the facts behind it.
#[derive(Debug)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// The facts.
    pub facts: AnswerDetails,
}

/// What an answer in JSON says besides what all of them say.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = Facts)]
pub enum AnswerDetails {
    /// Of something that was taken, opened or closed.
    Taken {
        /// How many must still go out, where the lesson counts.
        #[schema(example = 5)]
        remaining: Option<u64>,
        /// None of these has a fencing token.
        fence: Option<u64>,
        /// What the unlock found, where the lesson unlocks by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        lock: Option<LockState>,
    },
    /// Of a visit to a lock, step by step.
    Visit {
        /// Who held it: the field in the lock's hash.
        #[schema(example = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b:7")]
        holder: String,
        /// What the holder did, in order.
        steps: Vec<Step>,
    },
    /// Of the shared count.
    Shared {
        /// What it was.
        #[schema(example = 0)]
        before: i32,
        /// What it is.
        #[schema(example = 617)]
        after: i32,
    },
    /// Of the atomic long.
    #[serde(rename_all = "camelCase")]
    Changed {
        /// Whether it was changed. If not, others were faster all the time, and nothing was changed.
        succeeded: bool,
        /// What it was.
        #[schema(example = 41)]
        pre_value: i64,
        /// What it is.
        #[schema(example = 42)]
        post_value: i64,
        /// Whether it took the mutex, because others were faster at first.
        promoted: bool,
    },
    /// Of a double barrier.
    Member {
        /// The node that was made, or is gone.
        #[schema(example = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b")]
        member: String,
    },
}

impl Answer {
    /// A text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self::taken(text, None, None)
    }

    /// A text, and how many must still go out.
    pub(super) fn counted(text: &str, remaining: u64) -> Self {
        Self::taken(text, Some(remaining), None)
    }

    /// A text, and what the unlock found.
    pub fn unlocked(text: &str, lock: Option<LockState>) -> Self {
        Self::taken(text, None, lock)
    }

    fn taken(text: impl Into<String>, remaining: Option<u64>, lock: Option<LockState>) -> Self {
        let fence = None;
        Self::new(
            text,
            AnswerDetails::Taken {
                remaining,
                fence,
                lock,
            },
        )
    }

    pub(super) fn new(text: impl Into<String>, facts: AnswerDetails) -> Self {
        Self {
            text: text.into(),
            facts,
        }
    }
}

/// One visit to a lock, as it is told its visitor.
pub(super) struct Visit {
    /// Who holds it.
    pub(super) holder: Owner,
    steps: Vec<Step>,
}

/// One step of a visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Step {
    /// What was done.
    pub did: StepKind,
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
#[schema(as = Did)]
pub enum StepKind {
    /// Entered the queue.
    #[serde(rename = "came")]
    Arrived,
    /// Had the lock.
    #[serde(rename = "took")]
    Acquired,
    /// Gave it back.
    #[serde(rename = "left")]
    Released,
}

impl Visit {
    pub(super) fn of(ctx: &Ctx) -> Self {
        Self {
            holder: ctx.redis.owner(),
            steps: Vec::new(),
        }
    }

    /// One more step, which the console shows.
    pub(super) fn step(&mut self, job: &Job, did: StepKind, lock: &str, order: u64) {
        let step = Step {
            did,
            lock: lock.to_owned(),
            order,
        };
        job.say(&step);
        self.steps.push(step);
    }

    /// With these parts of a lock: stays as long as the job says, and gives them back in the reverse order.
    pub(super) async fn inside(
        mut self,
        ctx: &Ctx,
        job: &Job,
        parts: &[String],
        guard: Guard,
    ) -> Result<Answer, Error> {
        let mut ordered: Vec<_> = (1..).zip(parts).collect();
        for (order, part) in &ordered {
            self.step(job, StepKind::Acquired, part, *order);
        }
        job.enter_and_stay().await;
        job.leave();
        guard.release().await?;
        ordered.reverse();
        for (order, part) in &ordered {
            self.step(job, StepKind::Released, part, *order);
        }
        Ok(self.answer(ctx))
    }

    /// Takes `lock` twice as one owner, stays as long as the job says, and gives it back twice. The numbers are the owner's
    /// holds.
    pub(super) async fn twice(
        mut self,
        ctx: &Ctx,
        job: &Job,
        name: &str,
        lock: impl Lock,
    ) -> Result<Answer, Error> {
        let mut guards = Vec::new();
        for _ in 0..2 {
            guards.push(lock.acquire(job.wait_left()).await?);
            self.step(job, StepKind::Acquired, name, guards.len() as u64);
        }
        job.say("测试可重入锁。。。。");
        job.enter_and_stay().await;
        job.leave();
        while let Some(guard) = guards.pop() {
            guard.release().await?;
            self.step(job, StepKind::Released, name, guards.len() as u64);
        }
        Ok(self.answer(ctx))
    }

    /// A line for each step.
    pub(super) fn answer(self, ctx: &Ctx) -> Answer {
        let holder = self.holder.to_string();
        let mut text = format!("持有者 {holder}，实例 {}\n", ctx.instance);
        for step in &self.steps {
            writeln!(text, "{step}").ok();
        }
        let steps = self.steps;
        Answer::new(text, AnswerDetails::Visit { holder, steps })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let did = match self.did {
            StepKind::Arrived => "来到",
            StepKind::Acquired => "拿到",
            StepKind::Released => "释放",
        };
        write!(f, "{did} {} #{}", self.lock, self.order)
    }
}

/// What a lesson leaves in Redis, and no lease ends, is kept for so long after the last visit: a visitor may name any product.
const TTL_SECONDS: i64 = 24 * 3600;

/// The next number of what is counted beside a lock.
pub(super) async fn next(ctx: &Ctx, lock: &str, counted: &str) -> Result<u64, Error> {
    let key = format!("{}:{counted}", names::in_braces(&ctx.redis_key(lock)));
    let mut count = redis::pipe();
    count.incr(&key, 1).expire(&key, TTL_SECONDS).ignore();
    let (next,) = count.query_async(&mut ctx.redis.connection()).await?;
    Ok(next)
}

/// Keeps this object, with what stands beside it.
pub(super) async fn keep(ctx: &Ctx, name: &str, beside: &str) -> Result<(), Error> {
    let name = ctx.redis_key(name);
    let mut keep = redis::pipe();
    keep.expire(&name, TTL_SECONDS)
        .expire(format!("{}:{beside}", names::in_braces(&name)), TTL_SECONDS);
    Ok(keep.exec_async(&mut ctx.redis.connection()).await?)
}
