//! A lesson for several browser windows: a value with its addresses and what each does. One handler of `http` serves all.

use crate::{
    ctx::Ctx,
    error::Error,
    permits::Permits,
    section::{Job, LockState, Name, names},
};
use futures::future::BoxFuture;
use oversell_lock::{Guard, Lock, Owner};
use serde::Serialize;
use std::{
    fmt::{self, Write},
    time::{Duration, SystemTime},
};
use tokio::sync::OwnedSemaphorePermit;
use utoipa::ToSchema;

/// A lesson for several browser windows: its addresses, and the names that it writes in the servers, for a reset to clear.
pub(crate) struct WindowLesson {
    pub(crate) names: &'static [Name],
    pub(crate) windows: &'static [WindowAddress],
}

/// An address of a lesson, for a browser window: its texts, its defaults, and the function that serves it.
pub struct WindowAddress {
    pub path: &'static str,
    /// The object that is visited, as answers and events name it.
    pub object: &'static str,
    /// One sentence about it.
    pub summary: &'static str,
    /// The meaning of an answer.
    pub done: &'static str,
    /// The text of an answer.
    pub example: &'static str,
    /// Whether the lock may be lost inside; the visit then answers an error.
    pub may_be_lost: bool,
    /// The default wait; without it the configured one.
    pub wait: Option<Duration>,
    /// The default stay; without it none.
    pub stay: Option<fn() -> Duration>,
    /// Serves one request; its job carries wait and stay.
    pub visit: for<'a> fn(&'a Ctx, &'a Job) -> BoxFuture<'a, Result<Answer, Error>>,
}

/// What a visit to a lesson answers: the text of the course, and details for JSON.
#[derive(Debug)]
pub struct Answer {
    pub text: String,
    pub facts: LessonDetails,
}

/// The fields of a JSON answer that depend on the lesson.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum LessonDetails {
    /// Of something that was taken, opened or closed.
    Taken {
        /// How many must still go out, if the lesson counts.
        #[schema(example = 5)]
        remaining: Option<u64>,
        /// None of these has a fencing token.
        fence: Option<u64>,
        /// The state of the lock at the unlock, if the lesson unlocks by itself.
        #[serde(skip_serializing_if = "Option::is_none")]
        lock: Option<LockState>,
    },
    /// Of a visit to a lock, step by step.
    Visit {
        /// The holder: the field in the hash of the lock.
        #[schema(example = "6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b:7")]
        holder: String,
        /// The holder's steps, in order.
        steps: Vec<VisitStep>,
    },
    /// Of the shared count.
    Shared {
        #[schema(example = 0)]
        before: i32,
        #[schema(example = 617)]
        after: i32,
    },
    /// Of the atomic long.
    #[serde(rename_all = "camelCase")]
    Changed {
        /// Whether it was changed. If not, others were faster all the time, and nothing was changed.
        succeeded: bool,
        #[schema(example = 41)]
        pre_value: i64,
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
    /// An answer without a count or a lock.
    pub fn text(text: impl Into<String>) -> Self {
        Self::with_details(text, None, None)
    }

    /// An answer of something that was taken, opened or closed: how many must still go out, and how the unlock found the lock.
    /// There is no fencing token.
    pub fn with_details(text: impl Into<String>, remaining: Option<u64>, lock: Option<LockState>) -> Self {
        let fence = None;
        Self::new(text, LessonDetails::Taken { remaining, fence, lock })
    }

    pub(super) fn new(text: impl Into<String>, facts: LessonDetails) -> Self {
        Self { text: text.into(), facts }
    }
}

/// One visitor: the owner of its locks, and the steps that it has taken with them so far.
pub(super) struct LockVisit {
    pub(super) holder: Owner,
    steps: Vec<VisitStep>,
}

/// One step of a visit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct VisitStep {
    pub action: VisitAction,
    #[schema(example = "fairLock")]
    pub lock: String,
    /// Its number: of the arrival, of the hold, of the part, as the lesson counts.
    #[schema(example = 1)]
    pub order: u64,
}

/// What a visitor does with a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VisitAction {
    Arrived,
    Acquired,
    Released,
}

impl LockVisit {
    /// A visitor with an owner of its own, who has taken no step yet.
    pub(super) fn with_new_owner(ctx: &Ctx) -> Self {
        Self { holder: ctx.redis.owner(), steps: Vec::new() }
    }

    /// Records one more step and shows it on the console.
    pub(super) fn record_step(&mut self, job: &Job, action: VisitAction, lock: &str, order: u64) {
        let step = VisitStep { action, lock: lock.to_owned(), order };
        job.say(&step);
        self.steps.push(step);
    }

    /// Records the parts as acquired, stays as long as the job says, releases `guard`, and records the parts as released in
    /// reverse order. A lock that was lost is an error.
    pub(super) async fn stay_inside(mut self, ctx: &Ctx, job: &Job, parts: &[String], guard: Guard) -> Result<Answer, Error> {
        let mut ordered: Vec<_> = (1..).zip(parts).collect();
        for (order, part) in &ordered {
            self.record_step(job, VisitAction::Acquired, part, *order);
        }
        job.enter_and_stay().await;
        job.leave();
        guard.release().await?;
        ordered.reverse();
        for (order, part) in &ordered {
            self.record_step(job, VisitAction::Released, part, *order);
        }
        Ok(self.answer(ctx))
    }

    /// Takes `lock` twice as one owner, stays as long as the job says, and gives it back twice. The numbers are the owner's
    /// holds. A lock that was lost is an error.
    pub(super) async fn take_twice(mut self, ctx: &Ctx, job: &Job, name: &str, lock: impl Lock) -> Result<Answer, Error> {
        let mut guards = Vec::new();
        for _ in 0..2 {
            guards.push(lock.acquire(job.wait_left()).await?);
            self.record_step(job, VisitAction::Acquired, name, guards.len() as u64);
        }
        job.say("测试可重入锁。。。。");
        job.enter_and_stay().await;
        job.leave();
        while let Some(guard) = guards.pop() {
            guard.release().await?;
            self.record_step(job, VisitAction::Released, name, guards.len() as u64);
        }
        Ok(self.answer(ctx))
    }

    /// The answer with all steps, a line for each.
    pub(super) fn answer(self, ctx: &Ctx) -> Answer {
        let holder = self.holder.to_string();
        let mut text = format!("持有者 {holder}，实例 {}\n", ctx.instance);
        for step in &self.steps {
            writeln!(text, "{step}").ok();
        }
        let steps = self.steps;
        Answer::new(text, LessonDetails::Visit { holder, steps })
    }
}

/// A line of the plain answer: came to, acquired or released; the lock; the visit's number.
impl fmt::Display for VisitStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let action = match self.action {
            VisitAction::Arrived => "来到",
            VisitAction::Acquired => "拿到",
            VisitAction::Released => "释放",
        };
        write!(f, "{action} {} #{}", self.lock, self.order)
    }
}

/// The seconds that an object of a lesson stays in Redis after the last visit: it must expire, as visitors name any product.
const TTL_SECONDS: i64 = 24 * 3600;

/// Increments a counter beside the lock in Redis, and returns its new value; the counter expires a day after its last number.
pub(super) async fn next_number(ctx: &Ctx, lock: &str, counted: &str) -> Result<u64, Error> {
    let key = format!("{}:{counted}", names::in_braces(&ctx.redis_key(lock)));
    let mut count = redis::pipe();
    count.incr(&key, 1).expire(&key, TTL_SECONDS).ignore();
    let (next,) = count.query_async(&mut ctx.redis.connection()).await?;
    Ok(next)
}

/// Lets an object in Redis, and the key `beside` it, expire a day from now.
pub(super) async fn renew_expiry(ctx: &Ctx, name: &str, beside: &str) -> Result<(), Error> {
    let name = ctx.redis_key(name);
    let mut keep = redis::pipe();
    keep.expire(&name, TTL_SECONDS).expire(format!("{}:{beside}", names::in_braces(&name)), TTL_SECONDS);
    Ok(keep.exec_async(&mut ctx.redis.connection()).await?)
}

/// The most locks that an instance holds after their answers: each is a key or a node, and a task. A class has forty.
const MAX_HELD_AFTER_ANSWER: usize = 500;

/// The right to hold a lock after the answer; taken before the lock, so that nothing is acquired in vain.
/// Errors: [`Error::TooMany`] if the instance holds as many as it may.
pub(super) fn hold_permit(ctx: &Ctx) -> Result<OwnedSemaphorePermit, Error> {
    let permit = ctx.local.of::<Permits<Guard, MAX_HELD_AFTER_ANSWER>>().try_take();
    permit.ok_or_else(|| Error::too_many("locks held after their answers", MAX_HELD_AFTER_ANSWER))
}

/// Enters, and holds a lock beyond the answer, in a task: for `stay`, or until the instance closes; then releases it. If its
/// lease ends at `end`, the visit counts as over then, however late the task runs.
pub(super) fn hold_after_answer(
    ctx: &Ctx,
    job: &Job,
    (guard, permit): (Guard, OwnedSemaphorePermit),
    stay: Duration,
    end: Option<SystemTime>,
) {
    job.enter();
    // A task that stalled beyond the lease reports the present, not the past.
    let end = end.map(|end| end.max(SystemTime::now()));
    let (closing, visit) = (ctx.closing.clone(), job.observation.visit());
    ctx.tasks.spawn(async move {
        closing.run_until_cancelled(tokio::time::sleep(stay)).await;
        if let Some(visit) = visit {
            visit.leave_by(end);
        }
        drop((guard, permit));
    });
}
