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
    section::{Job, Name},
    visits::VisitEventKind,
};
use oversell_lock::LockError;
use parking_lot::Mutex;
use std::{collections::VecDeque, num::NonZeroU32, time::Duration};

/// The path of the double barrier.
pub const ROOM: &str = "/curator/double-barrier";

/// The names that the lesson writes, and a reset clears.
pub(super) const NAMES: &[Name] = &[Name::ZooKeeper(ROOM)];

/// The default wait of a visitor, long enough for people to walk through.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(600);

/// How many of its own members an instance remembers; an older one leaves by its name.
const MAX_KNOWN_MEMBERS: usize = 1000;

/// The path and name of each member that this instance let in and that has not left, newest last; the oldest is forgotten.
#[derive(Debug, Default)]
struct Members(Mutex<VecDeque<(String, String)>>);

impl Members {
    /// Remembers a member that has come in, and forgets the oldest if there are too many.
    fn add(&self, path: &str, member: &str) {
        let mut members = self.0.lock();
        members.push_back((path.to_owned(), member.to_owned()));
        if members.len() > MAX_KNOWN_MEMBERS {
            members.pop_front();
        }
    }

    /// The last member that came in at this path and has not left; `None` if this instance knows none.
    fn newest_member(&self, path: &str) -> Option<String> {
        self.0.lock().iter().rev().find(|(at, _)| at == path).map(|(_, member)| member.clone())
    }

    fn remove(&self, member: &str) {
        self.0.lock().retain(|(_, known)| known != member);
    }
}

/// Comes in once `members` have come, and says as which member.
/// Errors: [`Error::Timeout`] if not enough came within the job's wait: it is out again. [`Error::Unavailable`] if
/// ZooKeeper is down.
/// Cancel safety: dropping it takes the member away.
pub async fn enter(ctx: &Ctx, job: &Job, members: NonZeroU32) -> Result<Answer, Error> {
    let path = job.zk_path(ROOM);
    job.say(format_args!("来了一位，等够 {members} 位"));
    let member = ctx.zk.double_barrier(&path, members).enter(job.wait_left()).await?;
    // A member that is shown as inside can leave, by its name.
    job.report_to_class(VisitEventKind::Member, &member);
    job.enter();
    job.say(format_args!("都到齐了 {member}"));
    ctx.local.of::<Members>().add(&path, &member);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_that_an_instance_knows_do_not_grow_for_ever() {
        let members = Members::default();
        for n in 0..=MAX_KNOWN_MEMBERS {
            members.add(ROOM, &n.to_string());
        }
        assert_eq!(members.0.lock().len(), MAX_KNOWN_MEMBERS);
        assert_eq!(members.newest_member(ROOM), Some(MAX_KNOWN_MEMBERS.to_string()));
        members.remove(&MAX_KNOWN_MEMBERS.to_string());
        assert_eq!(members.newest_member(ROOM), Some((MAX_KNOWN_MEMBERS - 1).to_string()));
        assert_eq!(members.newest_member("/another"), None);
    }
}
