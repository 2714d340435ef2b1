//! §3.7.6 A double barrier: a room that nobody begins in or leaves alone.
//!
//! 1. [`enter`] answers once all members are inside `/curator/double-barrier`; [`leave`], on any instance, once all have left.
//! 2. A member is a node of the instance's session: an instance that dies leaves the room with all of its members.
//!
//! What it survives: instances that die, members that wait in vain (they are taken away). **What breaks it**: callers that
//! do not agree on how many there are.
//!
//! Next: `oversell_lock::zk::ZkDoubleBarrier`, then `zk_herd.rs`.

use super::window::{Answer, LessonDetails};
use crate::{
    ctx::Ctx,
    error::Error,
    permits::Permits,
    section::{Job, Name},
    visits::VisitEventKind,
};
use oversell_lock::LockError;
use parking_lot::Mutex;
use std::{num::NonZeroU32, time::Duration};
use tokio::time::sleep;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The path of the double barrier.
pub const ROOM: &str = "/curator/double-barrier";

/// The names that the lesson writes, and a reset clears.
pub(super) const NAMES: &[Name] = &[Name::ZooKeeper(ROOM)];

/// The default wait of a visitor, long enough for people to walk through.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(600);

/// The most members that an instance has let in and that have not left: each is a node, and a task.
const MAX_MEMBERS: usize = 1000;
/// How long a member is inside at most; then it is taken away, as somebody who has gone home.
const MAX_STAY: Duration = Duration::from_secs(3600);

/// The members that this instance let in and that have not left by it.
#[derive(Default)]
struct Members {
    /// Path and name of each, newest last; its guard ends the task that would take it away.
    inside: Mutex<Vec<(String, String, DropGuard)>>,
    permits: Permits<Self, MAX_MEMBERS>,
}

impl Members {
    /// The last member that came in at this path and has not left; `None` if this instance knows none.
    fn newest_member(&self, path: &str) -> Option<String> {
        self.inside.lock().iter().rev().find(|(at, ..)| at == path).map(|(_, member, _)| member.clone())
    }

    fn remove(&self, member: &str) {
        self.inside.lock().retain(|(_, known, _)| known != member);
    }
}

/// Comes in once `members` have come, and says as which member.
/// Errors: [`Error::Timeout`] if not enough came within the job's wait: it is out again. [`Error::TooMany`] if this instance
/// has let in as many as it may, [`Error::Unavailable`] if ZooKeeper is down.
/// Cancel safety: dropping it takes the member away.
pub async fn enter(ctx: &Ctx, job: &Job, members: NonZeroU32) -> Result<Answer, Error> {
    let (path, all) = (job.zk_path(ROOM), ctx.local.of::<Members>());
    let permit = all.permits.try_take();
    let permit = permit.ok_or_else(|| Error::too_many("members of an instance inside double barriers", MAX_MEMBERS))?;
    job.say(format_args!("来了一位，等够 {members} 位"));
    let room = ctx.zk.double_barrier(&path, members);
    let member = room.enter(job.wait_left()).await?;
    // A member that is shown as inside can leave, by its name.
    job.report_to_class(VisitEventKind::Member, &member);
    job.enter();
    job.say(format_args!("都到齐了 {member}"));
    let (left, name, closing) = (CancellationToken::new(), member.clone(), ctx.closing.clone());
    all.inside.lock().push((path, member.clone(), left.clone().drop_guard()));
    ctx.tasks.spawn(async move {
        tokio::select! {
            () = left.cancelled() => {}
            () = closing.cancelled() => {}
            () = sleep(MAX_STAY) => {
                all.remove(&name);
                // That others are still inside is no concern of a member that has gone home.
                drop(room.leave(&name, Duration::ZERO).await);
            }
        }
        drop(permit);
    });
    Ok(answer("都到齐了", member))
}

/// Leaves, and waits until all have left; without `member`, the last one that this instance has let in.
/// Errors: [`Error::BadInput`] if there is no such member, [`Error::Timeout`] if not all left within the job's wait (this
/// one has), [`Error::Unavailable`] if ZooKeeper is down.
/// Cancel safety: dropping it leaves all the same.
pub async fn leave(ctx: &Ctx, job: &Job, members: NonZeroU32, member: Option<&str>) -> Result<Answer, Error> {
    let path = job.zk_path(ROOM);
    let none = |rule: &str| Error::BadInput { field: "member".into(), rule: rule.into() };
    let member = match member {
        Some(member) => member.to_owned(),
        None => ctx
            .local
            .of::<Members>()
            .newest_member(&path)
            .ok_or_else(|| none("is missing, and this instance has let nobody in"))?,
    };
    ctx.local.of::<Members>().remove(&member);
    job.say(format_args!("要离开 {member}"));
    let room = ctx.zk.double_barrier(&path, members);
    match room.leave(&member, job.wait_left()).await {
        Err(LockError::Lost { .. }) => {
            return Err(none("is not inside: it has left, or its session has ended"));
        }
        left => left?,
    }
    job.enter();
    job.say(format_args!("都离开了 {member}"));
    Ok(answer("都离开了", member))
}

fn answer(text: &str, member: String) -> Answer {
    Answer::new(format!("{text} {member}"), LessonDetails::Member { member })
}
