//! §3.4 The herd effect, counted: one gives the lock back, and how many are woken?
//!
//! 1. A holder and `waiters` behind it, each with a session and a numbered node of its own, as if each were a process:
//!    to one session the server tells a change once, however many in it wait.
//! 2. All watch the directory. A release wakes all that wait, and one of them gets in.
//! 3. Each watches the node before its own. A release wakes the one that gets in.
//! 4. Either queue is drained to its end. Nobody leaves before all who were woken have looked again.
//!
//! How exact it is: what a session is told comes to it before any later answer. So each waiter asks for something once
//! the node is gone, and a notification that is not there by then never comes.
//!
//! What it survives: a caller that goes away (the sessions end, and their nodes with them; the directory is deleted).
//! **What breaks it**: a server that limits the connections of one address to fewer than it needs (`maxClientCnxns`).
//!
//! Next: `oversell_lock::zk`, whose `engine/queue.rs` watches the predecessor.

use crate::{
    ctx::Ctx,
    error::Error,
    section::{
        backstop::Backstop,
        zk_node::{repeat_until_answered, unavailable},
    },
};
use futures::{
    FutureExt,
    future::{BoxFuture, try_join_all},
};
use oversell_lock::local::{MutexGuard, Mutexes};
use serde::Serialize;
use std::{ops::RangeInclusive, sync::LazyLock, time::Duration};
use tokio::task::unconstrained;
use utoipa::ToSchema;
use uuid::Uuid;
use zookeeper_client::{Acls, Client, CreateMode, Error as Zk, EventType};

/// How many may wait behind the holder. Each watcher of the directory reads all of it each time, so the work grows with the
/// third power.
pub const WAITERS: RangeInclusive<u16> = 1..=100;

/// The timeout of each session, longer than a drain: no waiter may lose its node in the middle.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

/// One herd at a time in this process, replayed ones included: each has a connection for every waiter.
static HERD_TURN: LazyLock<Mutexes<()>> = LazyLock::new(Mutexes::default);

/// The notifications of both ways to wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Herd {
    /// All watched the directory.
    #[schema(value_type = Vec<u64>, example = json!([50, 49, 48, 0]))]
    pub watch_parent: Drain,
    /// Each watched the node before its own.
    #[schema(value_type = Vec<u64>, example = json!([1, 1, 1, 0]))]
    pub watch_predecessor: Drain,
}

/// The notifications of each release, from that of the holder to that of the last waiter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Drain(pub Vec<u64>);

impl Drain {
    /// The notifications of all releases together.
    pub fn notifications(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The mean number of notifications per release.
    pub fn per_release(&self) -> f64 {
        self.notifications() as f64 / self.0.len().max(1) as f64
    }
}

/// What a waiter watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// The directory of all nodes.
    Parent,
    /// The node before its own.
    Predecessor,
}

/// Drains a queue of `waiters` twice, once for each way to wait. Waits at most `wait` for another herd of this process.
/// Errors: [`Error::Timeout`] if another herd takes longer, [`Error::Unavailable`] if ZooKeeper is down, or has no
/// connection for one of them.
/// Cancel safety: the sessions end, and the directory is deleted in the background.
pub async fn compare(ctx: &Ctx, waiters: u16, wait: Duration) -> Result<Herd, Error> {
    let _turn = wait_for_turn(wait).await?;
    let sessions = open_sessions(ctx, waiters).await?;
    let parent = drain(ctx, &sessions, Watch::Parent).await?;
    let predecessor = drain(ctx, &sessions, Watch::Predecessor).await?;
    Ok(Herd { watch_parent: parent, watch_predecessor: predecessor })
}

/// Drains a queue of `waiters` once, each with this watch; otherwise as [`compare`].
pub async fn drain_once(ctx: &Ctx, waiters: u16, wait: Duration, watch: Watch) -> Result<Drain, Error> {
    let _turn = wait_for_turn(wait).await?;
    let sessions = open_sessions(ctx, waiters).await?;
    drain(ctx, &sessions, watch).await
}

/// Waits for the turn of this process's herds; [`Error::Timeout`] if another takes longer than `wait`.
async fn wait_for_turn(wait: Duration) -> Result<MutexGuard, Error> {
    let turn = HERD_TURN.lock(&(), wait).await;
    turn.ok_or_else(|| Error::Timeout { what: "turn (one herd at a time)".into(), waited: wait })
}

/// Opens a session for each waiter, and one for the holder.
async fn open_sessions(ctx: &Ctx, waiters: u16) -> Result<Vec<Client>, Error> {
    try_join_all((0..=waiters).map(|_| open_session(ctx))).await.map_err(unavailable)
}

/// Opens one session, or fails at once. Its paths are below the configured chroot.
async fn open_session(ctx: &Ctx) -> Result<Client, Zk> {
    let config = &ctx.config.zookeeper;
    let client = Client::connector().with_session_timeout(SESSION_TIMEOUT).with_fail_eagerly().connect(&config.connect).await?;
    if config.chroot.is_empty() {
        return Ok(client);
    }
    client.chroot(config.chroot.clone()).map_err(|_| Zk::BadArguments(&"chroot is not an absolute path"))
}

/// Makes a directory, drains a queue in it, and removes it.
async fn drain(ctx: &Ctx, sessions: &[Client], watch: Watch) -> Result<Drain, Error> {
    let (directory, removal) = make_directory(ctx).await?;
    let drained = drain_in(&directory, sessions, watch).await;
    removal.run_now().await;
    drained.map(Drain).map_err(unavailable)
}

/// Enqueues one contender per session, then lets them leave one by one. Returns the notifications of each release.
async fn drain_in(directory: &str, sessions: &[Client], watch: Watch) -> Result<Vec<u64>, Zk> {
    let mut queue = try_join_all(sessions.iter().map(|client| Contender::enqueue(client, directory, watch))).await?;
    queue.sort_by(|a, b| b.name.cmp(&a.name));
    try_join_all(queue.iter_mut().map(Contender::set_watch)).await?;
    let mut notified = Vec::with_capacity(queue.len());
    // The lowest number is the last of the list.
    while let Some(holder) = queue.pop() {
        holder.leave().await?;
        let woken = try_join_all(queue.iter_mut().map(Contender::reset_watch_if_fired)).await?;
        notified.push(woken.into_iter().map(u64::from).sum());
    }
    Ok(notified)
}

/// One of the queue, the holder or a waiter, in a session of its own: its node, and what it watches.
struct Contender<'a> {
    client: &'a Client,
    directory: &'a str,
    name: String,
    watch: Watch,
    /// Its watch; none at the head of the queue.
    watched: Option<BoxFuture<'static, EventType>>,
}

impl<'a> Contender<'a> {
    /// Creates the node of this contender.
    async fn enqueue(client: &'a Client, directory: &'a str, watch: Watch) -> Result<Self, Zk> {
        let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let (_, number) = client.create(&format!("{directory}/lock-"), &[], &options).await?;
        Ok(Self { client, directory, name: format!("lock-{number}"), watch, watched: None })
    }

    /// Looks for a predecessor. If there is one, watches it or the directory; else nothing.
    async fn set_watch(&mut self) -> Result<(), Zk> {
        self.watched = match self.watch {
            Watch::Parent => {
                let (children, watcher) = self.client.list_and_watch_children(self.directory).await?;
                let waits = self.predecessor(&children).is_some();
                waits.then(|| watcher.changed().map(|event| event.event_type).boxed())
            }
            Watch::Predecessor => {
                let children = self.client.list_children(self.directory).await?;
                match self.predecessor(&children) {
                    None => None,
                    Some(name) => {
                        let path = format!("{}/{name}", self.directory);
                        // Nobody leaves meanwhile, so it is still there.
                        let (_, watcher) = self.client.check_and_watch_stat(&path).await?;
                        Some(watcher.changed().map(|event| event.event_type).boxed())
                    }
                }
            }
        };
        Ok(())
    }

    /// The node before its own.
    fn predecessor<'c>(&self, children: &'c [String]) -> Option<&'c String> {
        children.iter().filter(|child| **child < self.name).max()
    }

    /// Looks again if the watch has fired, and returns whether it has. A session that has ended is an error.
    async fn reset_watch_if_fired(&mut self) -> Result<bool, Zk> {
        self.client.sync(self.directory).await?;
        self.client.check_stat(self.directory).await?;
        // Unconstrained: a task that has done much would otherwise be told that nothing has come.
        match self.watched.as_mut().and_then(|watched| unconstrained(watched).now_or_never()) {
            None => Ok(false),
            Some(EventType::Session) => Err(Zk::SessionExpired),
            Some(_) => self.set_watch().await.map(|()| true),
        }
    }

    async fn leave(self) -> Result<(), Zk> {
        self.client.delete(&format!("{}/{}", self.directory, self.name), None).await
    }
}

/// Creates the directory of this lesson. Returns its path, and the backstop that removes it.
async fn make_directory(ctx: &Ctx) -> Result<(String, Backstop<()>), Error> {
    let client = ctx.zk.session()?;
    let path = format!("/distributed/zk-herd/{}", Uuid::new_v4());
    let removal = Backstop::new(ctx, remove(client.clone(), path.clone()));
    // Not a container: the server may delete one between the two queues.
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    repeat_until_answered(|| client.mkdir(&path, &options)).await.map_err(unavailable)?;
    Ok((path, removal))
}

/// Deletes the directory with its children, those of cancelled callers included. A failure is logged.
async fn remove(client: Client, path: String) {
    loop {
        for child in repeat_until_answered(|| client.list_children(&path)).await.unwrap_or_default() {
            // Gone already with its session.
            repeat_until_answered(|| client.delete(&format!("{path}/{child}"), None)).await.ok();
        }
        match repeat_until_answered(|| client.delete(&path, None)).await {
            Err(Zk::NotEmpty) => {}
            Err(error) if error != Zk::NoNode => {
                return tracing::debug!(%error, path, "the directory was not deleted");
            }
            _ => return,
        }
    }
}
