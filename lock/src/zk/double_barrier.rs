//! A double barrier in ZooKeeper, as Curator's `DistributedDoubleBarrier`: nobody begins before enough have come, and
//! nobody is done before all have left.
//!
//! 1. Enter: make an ephemeral `<path>/<uuid>`. Whoever makes the directory full opens the barrier: one transaction
//!    marks every member as counted (it writes to its node, whose version is then no longer 0) and makes a persistent
//!    `<path>/ready`. The others watch `ready`.
//! 2. A member that has waited for long enough deletes its node on condition that it is unmarked. So either it was
//!    counted and is in, or nobody was let in on its account.
//! 3. Leave: the first of the members, by name, stays until it is alone, and watches the last. Each other deletes its
//!    node and watches the first. Who is alone, or sees nobody, is done, and the last takes `ready` along.
//!
//! One who comes while others are in is let in: more than were asked for are fine. A `ready` that is older than every
//! member was left by a round whose members all died. It lets nobody in, and is replaced when the barrier opens.
//!
//! What it survives: a member that dies, before (it is not counted) or inside (its session ends, and the others need
//! not wait for it), a lost connection, a server restart. Other than in Curator, an `enter` that fails or is dropped
//! takes its member away, and a connection that comes back lets nobody in. **What breaks it**: a session that ends
//! while its member is paused inside, for the others then leave without it; Java members in the same barrier, who
//! neither check whom they count nor tell an old `ready` from a new one.
//!
//! Next to read: `member.rs`.

use super::{
    ZkClient,
    engine::{ANSWER, deadline},
    insist,
    member::Member,
    over,
    request::{PERSISTENT, ask, erase},
    unanswered, unavailable,
};
use crate::LockError;
use std::{num::NonZeroU32, time::Duration};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use uuid::Uuid;
use zookeeper_client::{Client, Error, OneshotWatcher};

const READY: &str = "ready";

/// A double barrier in ZooKeeper; see [`ZkClient::double_barrier`].
#[derive(Debug, Clone)]
pub struct ZkDoubleBarrier {
    client: ZkClient,
    path: String,
    members: usize,
}

impl ZkClient {
    /// The double barrier at `path`, as `/curator/double-barrier`, for so many members. Its parents are made where
    /// they are missing.
    #[must_use]
    pub fn double_barrier(&self, path: &str, members: NonZeroU32) -> ZkDoubleBarrier {
        let members = usize::try_from(members.get()).unwrap_or(usize::MAX);
        ZkDoubleBarrier { client: self.clone(), path: path.to_owned(), members }
    }
}

enum Look {
    Open,
    Closed(OneshotWatcher),
    /// Somebody deleted our node.
    Gone,
    /// Something changed while we looked.
    Again,
}

impl ZkDoubleBarrier {
    /// The path of its directory.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.path
    }

    /// Comes in once enough have come, waiting for them at most `wait`, and says as which member. That is in until
    /// it [leaves](Self::leave), or its client's session ends.
    ///
    /// # Errors
    ///
    /// [`LockError::Taken`] where not enough came, [`LockError::Unavailable`] where there was no connection for a
    /// second. The member is then taken away, in the background where the server does not answer.
    ///
    /// # Cancel safety
    ///
    /// Safe: the member is taken away in the background.
    pub async fn enter(&self, wait: Duration) -> Result<String, LockError> {
        let deadline = deadline(wait);
        loop {
            let client = self.client.connected(deadline.max(Instant::now() + ANSWER)).await?;
            let name = Uuid::new_v4().to_string();
            let mut member = Member::new(client, self.node(&name), self.client.tasks());
            let entered = tokio::select! {
                biased;
                entered = self.gather(&mut member, deadline) => entered,
                error = self.client.given_up() => return Err(error),
            };
            match entered {
                Ok(true) => {
                    member.there = false;
                    return Ok(name);
                }
                Ok(false) => return Err(self.taken(wait)),
                Err(error) if over(&error) => tracing::debug!(%error, path = self.path, "entering anew"),
                Err(error) => return Err(unavailable(error)),
            }
        }
    }

    /// Leaves, and waits at most `wait` until all have left. Any client may do this for a member.
    ///
    /// # Errors
    ///
    /// [`LockError::Lost`] where the member is not in (any more): it has left, or its session has ended;
    /// [`LockError::Taken`] where not all left, [`LockError::Unavailable`] where there was no connection for a second.
    /// Except where there was no connection to begin with, the member has left all the same, in the background where
    /// the server does not answer and as long as this client's session lasts.
    ///
    /// # Cancel safety
    ///
    /// Safe: once it was polled with a connection, the member leaves, in the background.
    pub async fn leave(&self, member: &str, wait: Duration) -> Result<(), LockError> {
        if member.is_empty() || member == READY || member.contains('/') {
            return Err(LockError::Invalid { name: member.into(), rule: "a member's name is what enter gave" });
        }
        let deadline = deadline(wait);
        let first = self.client.connected(Instant::now() + ANSWER).await?;
        let mut own = Member::new(first, self.node(member), self.client.tasks());
        own.there = true;
        let ready = self.ready_since().await?;
        loop {
            let mut inside = self.inside().await?;
            inside.sort_unstable();
            let place = inside.iter().position(|name| name == member);
            if place.is_none() && own.there {
                own.there = false;
                return Err(LockError::Lost { name: self.node(member) });
            }
            match (inside.as_slice(), place) {
                ([], _) => return self.tidy(ready).await,
                ([_], Some(_)) => return self.leave_last(&mut own).await,
                _ => {}
            }
            let other = if place == Some(0) { inside.last() } else { inside.first() };
            let Some(watch) = self.watch(other.map_or(READY, String::as_str)).await? else { continue };
            if own.there && place != Some(0) {
                self.delete(&mut own).await?;
            }
            tokio::select! {
                biased;
                _ = watch.changed() => {}
                error = self.client.given_up() => return Err(error),
                () = sleep_until(deadline) => {
                    if own.there {
                        self.delete(&mut own).await?;
                    }
                    return Err(self.taken(wait));
                }
            }
        }
    }

    /// Whether the barrier opened with our member, which is there.
    async fn gather(&self, own: &mut Member, deadline: Instant) -> Result<bool, Error> {
        own.create().await?;
        loop {
            match self.look(own).await? {
                Look::Open => return Ok(true),
                Look::Gone => own.create().await?,
                Look::Again => {}
                Look::Closed(watch) => {
                    if timeout_at(deadline, watch.changed()).await.is_err() {
                        return timeout(ANSWER, own.withdraw()).await.unwrap_or(Ok(false));
                    }
                }
            }
        }
    }

    async fn look(&self, own: &Member) -> Result<Look, Error> {
        let client = &own.client;
        let (ready, watch) = insist(|| client.check_and_watch_stat(&self.node(READY))).await?;
        let Some(stat) = insist(|| client.check_stat(&own.path)).await? else { return Ok(Look::Gone) };
        let ready = ready.map(|ready| ready.czxid);
        // The second is how Curator opens it.
        if stat.version > 0 || ready.is_some_and(|ready| ready > stat.czxid) {
            return Ok(Look::Open);
        }
        let children = match insist(|| client.list_children(&self.path)).await {
            Err(Error::NoNode) => return Ok(Look::Gone),
            children => without_ready(children?),
        };
        if let Some(ready) = ready
            && self.any_before(client, &children, ready).await?
        {
            return Ok(Look::Open);
        }
        if children.len() < self.members {
            return Ok(Look::Closed(watch));
        }
        match self.open(client, &children, ready.is_some()).await {
            Ok(()) => Ok(Look::Open),
            Err(Error::NoNode | Error::NodeExists | Error::BadVersion) => Ok(Look::Again),
            Err(error) if unanswered(&error) => Ok(Look::Again),
            Err(error) => Err(error),
        }
    }

    /// Marks exactly these members as counted, and makes `ready`: all of it or nothing.
    async fn open(&self, client: &Client, members: &[String], replace: bool) -> Result<(), Error> {
        let mut all = client.new_multi_writer();
        let ready = self.node(READY);
        if replace {
            all.add_delete(&ready, None)?;
        }
        for member in members {
            all.add_set_data(&self.node(member), &[], Some(0))?;
        }
        all.add_create(&ready, &[], &PERSISTENT)?;
        all.commit().await?;
        Ok(())
    }

    /// Whether one of them came before `ready`: then they are in, and so is who comes now.
    async fn any_before(&self, client: &Client, members: &[String], ready: i64) -> Result<bool, Error> {
        for member in members {
            let path = self.node(member);
            if insist(|| client.check_stat(&path)).await?.is_some_and(|stat| stat.czxid < ready) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    async fn inside(&self) -> Result<Vec<String>, LockError> {
        ask(&self.client, |client| async move {
            match client.list_children(&self.path).await {
                Ok(children) => Ok(without_ready(children)),
                Err(Error::NoNode) => Ok(Vec::new()),
                Err(error) => Err(error),
            }
        })
        .await
    }

    async fn ready_since(&self) -> Result<Option<i64>, LockError> {
        let stat = ask(&self.client, |client| async move { client.check_stat(&self.node(READY)).await }).await?;
        Ok(stat.map(|stat| stat.czxid))
    }

    /// A watch on a member, while it is there.
    async fn watch(&self, member: &str) -> Result<Option<OneshotWatcher>, LockError> {
        let path = &self.node(member);
        ask(&self.client, |client| async move {
            match client.get_and_watch_data(path).await {
                Ok((_, _, watch)) => Ok(Some(watch)),
                Err(Error::NoNode) => Ok(None),
                Err(error) => Err(error),
            }
        })
        .await
    }

    async fn delete(&self, own: &mut Member) -> Result<(), LockError> {
        let path = &own.path;
        ask(&self.client, |client| async move { erase(&client, path).await }).await?;
        own.there = false;
        Ok(())
    }

    /// The last one takes `ready` along, at once: nobody finds it alone.
    async fn leave_last(&self, own: &mut Member) -> Result<(), LockError> {
        let (path, ready) = (&own.path, &self.node(READY));
        ask(&self.client, |client| async move {
            let mut both = client.new_multi_writer();
            both.add_delete(path, None)?;
            both.add_delete(ready, None)?;
            match both.commit().await.map_err(Error::from) {
                Err(Error::NoNode) => erase(&client, path).await.map(|_| ()),
                done => done.map(|_| ()),
            }
        })
        .await?;
        own.there = false;
        Ok(())
    }

    /// Deletes the `ready` of the round that is over, where the last one died, and not that of the next round.
    async fn tidy(&self, of_ours: Option<i64>) -> Result<(), LockError> {
        let left = self.ready_since().await?;
        if left.is_some() && left == of_ours {
            let ready = &self.node(READY);
            ask(&self.client, |client| async move { erase(&client, ready).await }).await?;
        }
        Ok(())
    }

    fn node(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    fn taken(&self, waited: Duration) -> LockError {
        LockError::Taken { name: self.path.clone(), waited }
    }
}

fn without_ready(mut children: Vec<String>) -> Vec<String> {
    children.retain(|name| name != READY);
    children
}
