//! Curator's `DistributedDoubleBarrier`: nobody begins before enough have come, and nobody is done before all have left.
//!
//! A member is in once its node is marked: written to, so that its version is no longer 0.
//!
//! 1. Enter: make a node. The member that completes the count opens the barrier in one transaction, which marks every member
//!    and makes or writes `ready`. The others watch `ready`.
//! 2. A member that comes while another is in marks itself, on condition that the other is still in: more members than asked
//!    for are allowed.
//! 3. A member that gives up deletes its node on condition that it is unmarked. So either it was counted and is in, or nobody
//!    was let in on its account.
//! 4. Leave: the first member by name stays until it is alone, and watches the last one. Each other deletes its node and
//!    watches the first. The last one left deletes its node and `ready`.
//!
//! `ready` only wakes waiters, and is all that Curator's members look at. They mark nobody, so a member that is older than
//! `ready` counts as in.
//!
//! Next to read: `engine/request.rs`.

use super::ZkClient;
use super::engine::request::{repeat_request, sync_server};
use super::engine::{
    Wait, check_path, errors_to_none, is_session_over, is_unanswered, node::Node, repeat_until_answered, session::Session,
    to_lock_error,
};
use crate::LockError;
use std::num::NonZeroU32;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use zookeeper_client::{CreateMode, Error, OneshotWatcher, Stat};

/// The name of the node of an open barrier: members that came before it are in.
const READY_NODE: &str = "ready";

/// The most bytes of the request that marks all members: for each its path and [`MARK_BYTES`]. Half of the server's bound
/// (`jute.maxbuffer`, 1 MiB), because more members than asked for may come, and there may be a chroot.
const MAX_MARKS_BYTES: usize = 512 * 1024;
/// The bytes that a member takes of the request that marks all, without the path of the directory: its uuid, its version, the
/// lengths, a header.
const MARK_BYTES: usize = 64;

/// A double barrier in ZooKeeper; see [`ZkClient::double_barrier`]. Source: Curator's `DistributedDoubleBarrier`, and
/// "Double Barriers" in ZooKeeper's "Recipes and Solutions".
///
/// # Survives
///
/// - a member that dies before it is in (it is not counted) or inside (its session ends, and the others do not wait for it);
/// - a lost connection and a server restart;
/// - unlike in Curator, an `enter` that fails or is dropped removes its member, and a connection that comes back lets nobody in.
///
/// # What breaks it
///
/// - a session that ends while its member is paused inside: the others leave without it;
/// - Java members in the same barrier: they do not check whom they count, and are let in by a `ready` that a round left behind
///   whose last member died;
/// - a member that comes early for the next round while this one is still leaving is let in with this one.
///
/// # Cost
///
/// A few requests for each member; one transaction lets all in.
///
/// # Format
///
/// Curator's `DistributedDoubleBarrier`: an ephemeral node `<path>/<uuid>` for each member, and a persistent `<path>/ready`. Ours
/// also writes to the node of each member that is in.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, zk::ZkClient};
/// # use std::time::Duration;
/// # async fn example(zk: ZkClient) -> Result<(), LockError> {
/// use std::num::NonZeroU32;
///
/// const THREE: NonZeroU32 = NonZeroU32::new(3).unwrap();
/// let barrier = zk.double_barrier("/curator/double-barrier", THREE);
/// let member = barrier.enter(Duration::from_secs(600)).await?;
/// // Three are inside.
/// barrier.leave(&member, Duration::from_secs(600)).await?;
/// // All have left.
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ZkDoubleBarrier {
    client: ZkClient,
    path: String,
    members: usize,
}

impl ZkClient {
    /// Makes a handle on the double barrier at `path`, as `/curator/double-barrier`, for `members` members: a few thousand at
    /// most, because one transaction marks them all. [`enter`](ZkDoubleBarrier::enter) refuses more. Missing parents are created.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let barrier = zk.double_barrier("/curator/double-barrier", std::num::NonZeroU32::MIN);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn double_barrier(&self, path: &str, members: NonZeroU32) -> ZkDoubleBarrier {
        let members = usize::try_from(members.get()).unwrap_or(usize::MAX);
        ZkDoubleBarrier { client: self.clone(), path: path.to_owned(), members }
    }
}

/// How one try to enter has ended: our member is in, waits for the watch, or must look again.
enum EnterOutcome {
    Entered,
    WaitForChange(OneshotWatcher),
    /// Something has changed meanwhile, so it must look again.
    TryAgain,
}

/// A member whose node is there, and whether it is in.
struct Member {
    name: String,
    version: i32,
    is_in: bool,
}

impl ZkDoubleBarrier {
    /// Returns the path of its directory.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.path
    }

    /// Waits until enough members have come, at most `wait`, and returns our member's name. It is in until it
    /// [leaves](Self::leave), or its client's session ends.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # use std::time::Duration;
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let barrier = zk.double_barrier("/curator/double-barrier", std::num::NonZeroU32::MIN);
    /// let member = barrier.enter(Duration::from_secs(600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Timeout`] if not enough came: nobody was let in on its account. [`LockError::Unavailable`] if there
    /// was no connection for as long as the session was sure, or no answer: it may have been counted. The member is
    /// then removed in the background. [`LockError::Invalid`] if the paths of all members have more than 512 KiB.
    ///
    /// # Cancel safety
    ///
    /// Safe: the member is removed in the background.
    pub async fn enter(&self, wait: Duration) -> Result<String, LockError> {
        check_path(&self.path)?;
        let marks = self.members.saturating_mul(self.path.len() + MARK_BYTES);
        if marks > MAX_MARKS_BYTES {
            let rule = "members: the paths of all have at most 512 KiB, or the server refuses to mark them";
            return Err(LockError::invalid(&self.path, rule));
        }
        let wait = Wait::new(wait);
        loop {
            let session = self.client.live_session(wait.end.max(Instant::now() + self.client.timeout())).await?;
            let mut member = Node::named_by_uuid(session, &self.path);
            match self.client.while_alive(wait, self.wait_until_inside(&mut member, wait.end)).await? {
                Ok(true) => return Ok(member.keep_on_server()),
                Ok(false) => return Err(wait.timeout_error(&self.path)),
                Err(error) if is_session_over(&error) => {
                    tracing::debug!(%error, path = self.path, "entering again")
                }
                Err(error) => return Err(to_lock_error(error)),
            }
        }
    }

    /// Leaves, and waits at most `wait` until all have left. Any client may do this for a member.
    ///
    /// ```no_run
    /// # use oversell_lock::{LockError, zk::ZkClient};
    /// # use std::time::Duration;
    /// # async fn example(zk: ZkClient) -> Result<(), LockError> {
    /// let barrier = zk.double_barrier("/curator/double-barrier", std::num::NonZeroU32::MIN);
    /// let member = barrier.enter(Duration::from_secs(600)).await?;
    /// barrier.leave(&member, Duration::from_secs(600)).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] for a name that `enter` cannot have given; [`LockError::Lost`] if the member is not in any
    /// more: it has left, or its session has ended; [`LockError::Timeout`] if not all left, [`LockError::Unavailable`] if
    /// there was no connection for as long as the session was sure. After these two the member has left all the same, or
    /// leaves in the background while this client's session lasts, unless there was no connection to begin with.
    ///
    /// # Cancel safety
    ///
    /// Safe: once polled with a connection, the member leaves in the background.
    pub async fn leave(&self, member: &str, wait: Duration) -> Result<(), LockError> {
        check_path(&self.path)?;
        if member.is_empty() || member == READY_NODE || member.contains('/') {
            return Err(LockError::invalid(member, "a member's name is what enter gave"));
        }
        let wait = Wait::new(wait);
        let session = self.client.live_session(Instant::now() + self.client.timeout()).await?;
        let mut own = Node::existing(session, &self.path, member);
        // Our server may not know yet of a member that another client entered.
        sync_server(&self.client, &self.path).await?;
        loop {
            let inside = self.members_inside(member).await?;
            let place = inside.iter().position(|name| name == member);
            if place.is_none() && own.may_exist() {
                own.mark_gone();
                return Err(LockError::lost(self.path_of(member)));
            }
            let other = match inside.as_slice() {
                [] => return Ok(()),
                [_] if place.is_some() => {
                    self.client.while_alive(wait, self.delete_last_with_ready(&mut own)).await?.map_err(to_lock_error)?;
                    // A member that came in meanwhile is still there.
                    continue;
                }
                [.., last] if place == Some(0) => last,
                [first, ..] => first,
            };
            let Some(watch) = self.watch_member(other).await? else {
                continue;
            };
            if place != Some(0) {
                self.client.while_alive(wait, own.delete(None)).await?.map_err(to_lock_error)?;
            }
            if self.client.while_alive(wait, timeout_at(wait.end, watch.changed())).await?.is_err() {
                self.client.while_alive(wait, own.delete(None)).await?.map_err(to_lock_error)?;
                return Err(wait.timeout_error(&self.path));
            }
        }
    }

    /// Makes our member and waits until the barrier opens, until `end`; returns whether the member is in. If it is not, it is
    /// deleted.
    async fn wait_until_inside(&self, own: &mut Node, end: Instant) -> Result<bool, Error> {
        own.create().await?;
        loop {
            let late = match self.try_to_enter(own).await? {
                EnterOutcome::Entered => return Ok(true),
                EnterOutcome::WaitForChange(watch) => timeout_at(end, watch.changed()).await.is_err(),
                EnterOutcome::TryAgain => end < Instant::now(),
            };
            if late {
                return match own.delete(Some(0)).await {
                    Err(Error::BadVersion) => Ok(true),
                    deleted => deleted.map(|_| false),
                };
            }
        }
    }

    /// Opens the barrier if enough members have come, or marks our member if others are in; else returns the watch of `ready`.
    /// Makes our member again if somebody deleted it.
    async fn try_to_enter(&self, own: &mut Node) -> Result<EnterOutcome, Error> {
        let (session, ready_path) = (own.session().clone(), self.path_of(READY_NODE));
        let (ready, watch) = repeat_until_answered(|| session.check_and_watch_stat(&ready_path)).await?;
        let members = self.all_members(&session, ready).await?;
        let Some(mine) = members.iter().find(|member| member.name == own.name()) else {
            // Somebody deleted it.
            own.create().await?;
            return Ok(EnterOutcome::TryAgain);
        };
        if mine.version > 0 {
            return Ok(EnterOutcome::Entered);
        }
        let mut marks = session.new_multi_writer();
        if let Some(inside) = members.iter().find(|member| member.is_in) {
            marks.add_check_version(&self.path_of(&inside.name), inside.version)?;
            marks.add_set_data(&own.path(), &[], Some(0))?;
        } else if members.len() >= self.members {
            for member in &members {
                marks.add_set_data(&self.path_of(&member.name), &[], Some(0))?;
            }
            match ready {
                Some(_) => marks.add_set_data(&ready_path, &[], None)?,
                None => marks.add_create(&ready_path, &[], &session.options(CreateMode::Persistent))?,
            }
        } else {
            return Ok(EnterOutcome::WaitForChange(watch));
        }
        match marks.commit().await.map_err(Error::from) {
            Ok(_) => Ok(EnterOutcome::Entered),
            Err(Error::NoNode | Error::NodeExists | Error::BadVersion) => Ok(EnterOutcome::TryAgain),
            Err(error) if is_unanswered(&error) => Ok(EnterOutcome::TryAgain),
            Err(error) => Err(error),
        }
    }

    /// Returns all members, sorted by name; those older than `ready` count as in.
    async fn all_members(&self, session: &Session, ready: Option<Stat>) -> Result<Vec<Member>, Error> {
        let names = repeat_until_answered(|| session.list_children(&self.path)).await;
        let mut names = errors_to_none(&[Error::NoNode], names)?.unwrap_or_default();
        names.retain(|name| name != READY_NODE);
        names.sort_unstable();
        let paths: Vec<_> = names.iter().map(|name| self.path_of(name)).collect();
        let stats = session.stats(&paths).await?;
        let members = names.into_iter().zip(stats).filter_map(|(name, stat)| {
            let stat = stat?;
            let is_in = stat.version > 0 || ready.is_some_and(|ready| ready.czxid > stat.czxid);
            Some(Member { name, version: stat.version, is_in })
        });
        Ok(members.collect())
    }

    /// Returns the names of the members that are in, and ours if it is there, sorted.
    async fn members_inside(&self, own: &str) -> Result<Vec<String>, LockError> {
        let members = repeat_request(&self.client, &self.path, |session| async move {
            let ready = session.check_stat(&self.path_of(READY_NODE)).await?;
            self.all_members(&session, ready).await
        });
        let inside = members.await?.into_iter().filter(|member| member.is_in || member.name == own);
        Ok(inside.map(|member| member.name).collect())
    }

    /// Watches a member; `None` if it has gone.
    async fn watch_member(&self, member: &str) -> Result<Option<OneshotWatcher>, LockError> {
        let path = &self.path_of(member);
        repeat_request(&self.client, &self.path, |session| async move {
            Ok(errors_to_none(&[Error::NoNode], session.get_and_watch_data(path).await)?.map(|(_, _, watch)| watch))
        })
        .await
    }

    /// Deletes `ready` with the node of the last member, in one step; without a `ready`, the node alone.
    async fn delete_last_with_ready(&self, own: &mut Node) -> Result<(), Error> {
        let (session, path, ready) = (own.session(), own.path(), self.path_of(READY_NODE));
        let both = repeat_until_answered(async || {
            let mut both = session.new_multi_writer();
            both.add_delete(&path, None)?;
            both.add_delete(&ready, None)?;
            both.commit().await.map_err(Error::from)
        });
        // `NoNode` means that `ready` was missing, or that an answer was lost.
        match both.await {
            Err(Error::NoNode) => own.delete(None).await.map(drop),
            left => left.map(|_| own.mark_gone()),
        }
    }

    fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zk::ZkOptions;

    /// Nothing listens there: what is refused has not been sent.
    #[tokio::test]
    async fn more_members_than_one_request_marks_are_refused() {
        let options = ZkOptions::new("127.0.0.1:1").timeout(Duration::from_millis(1));
        let zk = ZkClient::new(options).expect("options");
        let enter = async |members| {
            let members = NonZeroU32::new(members).expect("members");
            zk.double_barrier("/barrier", members).enter(Duration::ZERO).await
        };
        let refused = enter(10_000).await;
        assert!(matches!(refused, Err(LockError::Invalid { .. })), "{refused:?}");
        let sent = enter(5_000).await;
        assert!(matches!(sent, Err(LockError::Unavailable { .. })), "{sent:?}");
    }
}
