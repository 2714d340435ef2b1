//! A contender: an owner in one of our processes, or a thread of a peer process. Both have the same methods.

use super::{
    object::{Kind, Object},
    ours::{Grant, Handle, Outcome, Process},
    peer::{Library, Peer, Pending},
    support::{Context, Result, SOON, bail, ensure, until},
};
use futures::future::{BoxFuture, FutureExt};
use oversell_lock::{LockError, Owner};
use std::{
    fmt::{self, Display},
    time::Duration,
};
use tokio::{task::JoinHandle, time::Instant};

/// The wait of a call that must succeed at once: a peer needs time to answer.
const AT_ONCE: Duration = Duration::from_secs(5);

/// The round trips that show that a waiter was not woken: earlier messages have arrived by then.
const ROUND_TRIPS: usize = 50;

pub(crate) struct Contender {
    pub(crate) object: Object,
    who: Side,
    /// Of ours, as is what it holds; a thread of theirs knows itself.
    handle: Option<Handle>,
    held: Vec<Grant>,
}

#[derive(Clone)]
pub(crate) enum Side {
    Ours(Process, Owner),
    Theirs(&'static Peer, String),
}

impl Contender {
    pub(crate) fn new(object: Object, who: Side) -> Self {
        let handle = match &who {
            Side::Ours(process, owner) => Some(process.handle(*owner, &object)),
            Side::Theirs(..) => None,
        };
        let held = Vec::new();
        Self { object, who, handle, held }
    }

    /// The same owner, or thread, with a lock of another kind.
    pub(crate) fn with(&self, kind: Kind) -> Self {
        Self::new(Object { kind, ..self.object.clone() }, self.who.clone())
    }

    /// What the server calls it, where that is known: a thread of Redisson's.
    pub(crate) async fn id(&self) -> Result<Option<String>> {
        let Side::Theirs(peer @ Peer { library: Library::Redisson(_), .. }, thread) = &self.who else {
            return Ok(None);
        };
        let owner = peer.ask(thread, "owner").await?;
        Ok(Some(match self.object.kind {
            Kind::Write => format!("{owner}:write"),
            _ => owner,
        }))
    }

    pub(crate) fn is_theirs(&self) -> bool {
        self.handle.is_none()
    }

    /// Tells theirs what to do with what it contends for.
    fn tell(&self, verb: &str, argument: impl Display) -> Pending {
        let Side::Theirs(peer, thread) = &self.who else {
            panic!("{verb}: only theirs are told");
        };
        peer.tell(thread, format!("{verb} {} {argument}", self.object))
    }

    /// What theirs answers.
    pub(crate) async fn ask(&self, verb: &str, argument: impl Display) -> Result<String> {
        self.tell(verb, argument).within(SOON).await
    }

    /// That theirs says so of what it contends for.
    pub(crate) async fn ensure_says(&self, verb: &str, expected: impl Display) -> Result<()> {
        let said = self.ask(verb, "").await?;
        ensure!(said == expected.to_string(), "{self}: {verb} is {said}, not {expected}");
        Ok(())
    }

    /// Takes what must be free.
    pub(crate) async fn take(&mut self) -> Result<()> {
        let wait = if self.is_theirs() { AT_ONCE } else { Duration::ZERO };
        ensure!(self.try_within(wait).await?, "{self}: it is not free");
        Ok(())
    }

    /// Takes what must be free and gives it back, or goes through what must be open.
    pub(crate) async fn pass(&mut self) -> Result<()> {
        self.take().await?;
        self.release_lock().await
    }

    /// Makes others wait: takes what must be free, or closes what is open.
    pub(crate) async fn hold_up(&mut self) -> Result<()> {
        if !self.object.kind.is_gate() {
            return self.take().await;
        }
        ensure!(self.set().await?, "{self} was closed before");
        Ok(())
    }

    /// Gives it back, where there is something to give back.
    pub(crate) async fn release_lock(&mut self) -> Result<()> {
        if self.object.kind.is_gate() { Ok(()) } else { self.release().await }
    }

    /// Takes it when its turn comes.
    pub(crate) async fn take_in_turn(&mut self) -> Result<()> {
        self.begin(SOON).comes().await.map(drop)
    }

    /// Whether it got it within `wait`.
    pub(crate) async fn try_within(&mut self, wait: Duration) -> Result<bool> {
        Ok(self.begin(wait).ends().await?.is_some())
    }

    /// Begins to wait for it, and goes on.
    pub(crate) fn begin(&mut self, wait: Duration) -> PendingCall<'_> {
        let coming = match &self.handle {
            Some(handle) => PendingAnswer::of(handle(wait)),
            None if wait == SOON => PendingAnswer::Theirs(self.tell("acquire", "")),
            None => PendingAnswer::Theirs(self.tell("try", wait.as_millis())),
        };
        PendingCall { contender: self, coming }
    }

    /// Starts to wait, and returns once that is visible: in a queue, or as a subscription. If another contender of its
    /// process may have subscribed already, it gets the time of some round trips.
    pub(crate) async fn waits(&mut self) -> Result<PendingCall<'_>> {
        self.waits_for(SOON).await
    }

    /// [`waits`](Self::waits) with a limit.
    pub(crate) async fn waits_for(&mut self, wait: Duration) -> Result<PendingCall<'_>> {
        let object = self.object.clone();
        let is_counted = object.queue().await?.is_some();
        let before = object.waiting().await?;
        let mut waiting = self.begin(wait);
        if is_counted || before == Some(0) {
            until("one more waits", async || Ok(object.waiting().await? > before)).await?;
        } else {
            waiting.ensure_sleeping().await?;
        }
        Ok(waiting)
    }

    /// Releases its last hold, or lets one through.
    pub(crate) async fn release(&mut self) -> Result<()> {
        self.begin_release().comes().await.map(drop)
    }

    /// Begins to release its last hold.
    pub(crate) fn begin_release(&mut self) -> PendingCall<'_> {
        let coming = match &self.who {
            Side::Ours(process, _) => PendingAnswer::of(process.release(self.held.pop(), &self.object)),
            Side::Theirs(..) => PendingAnswer::Theirs(self.tell("release", "")),
        };
        PendingCall { contender: self, coming }
    }

    /// That what it took is not its own any more.
    pub(crate) async fn release_is_refused(&mut self) -> Result<()> {
        let Err(refused) = self.release().await else {
            bail!("{self} released what it did not have");
        };
        let lost = refused.downcast_ref::<LockError>();
        let known = matches!(lost, Some(LockError::Lost { .. })) || format!("{refused:#}").contains("IllegalMonitorState");
        if known { Ok(()) } else { Err(refused) }
    }

    /// Sets the count of a semaphore or of a latch, closes a barrier: whether it was not so before.
    pub(crate) async fn set(&self) -> Result<bool> {
        match &self.who {
            Side::Ours(process, _) => Ok(process.set(&self.object).await?),
            // Curator's takes a barrier that is there for its own.
            Side::Theirs(..) => Ok(self.ask("set", "").await? != "false"),
        }
    }

    /// Checks the number of free permits, remaining counts, or own holds that it sees; for Curator's and kazoo's,
    /// whether it holds it at all.
    pub(crate) async fn ensure_sees(&self, number: u32) -> Result<()> {
        let (seen, expected) = match &self.who {
            Side::Ours(process, _) => {
                let seen = process.number(&self.object).await?;
                (seen.unwrap_or(self.held.len() as i64), number)
            }
            Side::Theirs(peer, _) => {
                let most = match peer.library {
                    Library::Redisson(_) => u32::MAX,
                    Library::Curator | Library::Kazoo | Library::Go => 1,
                };
                (self.ask("number", "").await?.parse()?, number.min(most))
            }
        };
        ensure!(seen == i64::from(expected), "{self} sees {seen}, not {expected}");
        Ok(())
    }
}

impl Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.who {
            Side::Ours(..) => write!(f, "ours ({})", self.object),
            Side::Theirs(peer, _) => write!(f, "{} ({})", peer.library, self.object),
        }
    }
}

/// A pending call.
#[must_use]
pub(crate) struct PendingCall<'a> {
    contender: &'a mut Contender,
    coming: PendingAnswer,
}

enum PendingAnswer {
    Ours(JoinHandle<(Outcome, Instant)>),
    Theirs(Pending),
}

impl PendingAnswer {
    fn of(outcome: BoxFuture<'static, Outcome>) -> Self {
        Self::Ours(tokio::spawn(outcome.map(|outcome| (outcome, Instant::now()))))
    }
}

impl PendingCall<'_> {
    /// Checks that it still waits, after its process has received all of the server's messages.
    pub(crate) async fn ensure_sleeping(&mut self) -> Result<()> {
        for _ in 0..ROUND_TRIPS {
            match &self.contender.who {
                Side::Ours(process, _) => process.round_trip().await?,
                Side::Theirs(peer, _) => peer.round_trip().await?,
            }
        }
        match &mut self.coming {
            PendingAnswer::Ours(task) => ensure!(!task.is_finished(), "{} went on", self.contender),
            PendingAnswer::Theirs(answer) => answer.ensure_pending()?,
        }
        Ok(())
    }

    /// Checks that it acquires; returns when.
    pub(crate) async fn comes(self) -> Result<Instant> {
        let who = self.contender.to_string();
        self.ends().await?.with_context(|| format!("{who} waited in vain"))
    }

    /// Checks that its wait ends without the lock.
    pub(crate) async fn gives_up(self) -> Result<()> {
        let who = self.contender.to_string();
        ensure!(self.ends().await?.is_none(), "{who} got it");
        Ok(())
    }

    /// When it acquired; `None` if its wait ended before.
    async fn ends(self) -> Result<Option<Instant>> {
        match self.coming {
            PendingAnswer::Theirs(pending) => {
                let answer = pending.within(SOON).await?;
                Ok((answer != "false").then(Instant::now))
            }
            PendingAnswer::Ours(task) => {
                let (result, at) = task.await?;
                match result {
                    Ok(Some(Grant::Done)) => {}
                    Ok(Some(got)) => self.contender.held.push(got),
                    Ok(None) | Err(LockError::Taken { .. } | LockError::Timeout { .. }) => {
                        return Ok(None);
                    }
                    Err(error) => return Err(error.into()),
                }
                Ok(Some(at))
            }
        }
    }
}
