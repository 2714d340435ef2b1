//! Two sides that contend for one name: a clause's input.

use super::{
    Stage,
    contender::{Contender, PendingCall, Side},
    object::{Kind, Object},
    ours::Process,
    peer::{Library, Peer},
    server::Server,
    support::{Result, ensure},
};
use std::ops::Deref;

pub(crate) struct Pair {
    pub(crate) stage: &'static Stage,
    pub(crate) peer: &'static Peer,
    pub(crate) object: Object,
    /// Whether ours come first.
    pub(crate) ours_first: bool,
    /// Two of our processes.
    pub(crate) processes: [Process; 2],
}

impl Deref for Pair {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.object
    }
}

impl Pair {
    pub(crate) async fn new(stage: &'static Stage, library: Library, kind: Kind, ours_first: bool) -> Result<Self> {
        let (peer, server) = stage.peer(library);
        let processes = [server.process().await?, server.process().await?];
        let name = server.name();
        let object = Object { server, kind, name };
        Ok(Self { stage, peer, object, ours_first, processes })
    }

    /// The same sides, for another name.
    pub(crate) fn again(&self) -> Self {
        let name = self.server.name();
        Self { object: Object { name, ..self.object.clone() }, processes: self.processes.clone(), ..*self }
    }

    fn side(&self, ours: bool, process: usize) -> Contender {
        let process = &self.processes[process];
        let who =
            if ours { Side::Ours(process.clone(), process.owner()) } else { Side::Theirs(self.peer, self.peer.new_thread()) };
        Contender::new(self.object.clone(), who)
    }

    pub(crate) fn ours(&self) -> Contender {
        self.side(true, 0)
    }

    /// A contender in this process of ours.
    pub(crate) fn ours_in(&self, process: usize) -> Contender {
        self.side(true, process)
    }

    pub(crate) fn theirs(&self) -> Contender {
        self.side(false, 0)
    }

    pub(crate) fn first(&self) -> Contender {
        self.side(self.ours_first, 0)
    }

    pub(crate) fn second(&self) -> Contender {
        self.side(!self.ours_first, 0)
    }

    /// As [`first`](Self::first), in another process where it is one of ours.
    pub(crate) fn first_elsewhere(&self) -> Contender {
        self.side(self.ours_first, 1)
    }

    /// As [`second`](Self::second), in another process where it is one of ours.
    pub(crate) fn second_elsewhere(&self) -> Contender {
        self.side(!self.ours_first, 1)
    }

    /// Sets a semaphore's permits, if they are stored on the server. Only one side can.
    pub(crate) async fn set_permits(&self) -> Result<()> {
        if let (Server::Redis(_), Kind::Permits { .. }) = (self.server, self.kind) {
            let [first, second] = [self.first(), self.second()];
            ensure!(first.set().await?, "{first}: they were set before");
            ensure!(!second.set().await?, "{second} set what the other side had set");
        }
        Ok(())
    }

    /// Checks the number of free permits, on each side that can tell.
    pub(crate) async fn free_permits(&self, free: u32) -> Result<()> {
        match (self.server, self.kind) {
            (Server::ZooKeeper(_), Kind::Permits { all, .. }) => self.until_queue((all - free) as usize).await,
            _ => self.both_see(free).await,
        }
    }

    pub(crate) async fn both_see(&self, number: u32) -> Result<()> {
        for side in [self.ours(), self.theirs()] {
            side.ensure_sees(number).await?;
        }
        Ok(())
    }

    /// Checks the hold count of `holder`, by its own view and, for Redisson's, by the server's.
    pub(crate) async fn shows(&self, holder: &Contender, holds: u32) -> Result<()> {
        holder.ensure_sees(holds).await?;
        if let Some(field) = holder.id().await? {
            let holders = self.redis().holders(&self.name).await?;
            let shown = holders.get(&field);
            ensure!(shown.is_some_and(|shown| *shown == holds.to_string()), "{holds} holds of {field} are {holders:?}");
        }
        Ok(())
    }

    /// The hold count as an uninvolved Redisson thread sees it.
    pub(crate) async fn ensure_locked(&self, locked: bool) -> Result<()> {
        if let Server::Redis(_) = self.server {
            let bystander = self.theirs();
            bystander.ensure_says("locked", locked).await?;
            bystander.ensure_says("held", false).await?;
            let lease: i64 = bystander.ask("ttl", "").await?.parse()?;
            ensure!((lease > 0) == locked, "{bystander} sees {lease} ms of a lease");
        }
        Ok(())
    }

    /// Releases it, and all of these acquire then, but not because the hold expired: a copy of the lock with the same
    /// remaining lease is still there afterwards.
    pub(crate) async fn lets_in<'a>(
        &self,
        holder: &mut Contender,
        waiting: impl IntoIterator<Item = PendingCall<'a>>,
    ) -> Result<()> {
        let copied = match self.server {
            Server::Redis(redis) => Some(redis).zip(redis.copy(&self.name).await?),
            _ => None,
        };
        holder.release().await?;
        for waiter in waiting {
            waiter.comes().await?;
        }
        if let Some((redis, copy)) = copied {
            redis.remove_copy(&copy).await?;
        }
        Ok(())
    }
}
