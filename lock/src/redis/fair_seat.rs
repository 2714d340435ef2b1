//! One owner's seat at a fair lock: its place in the queue, its holds, the channel on which it is woken.
//!
//! 1. Each try, release and leave is one script. The commands of one owner come one after the other, so that the seat
//!    always knows how many holds it has.
//! 2. A command that got no answer leaves the seat unsure. It becomes sure again by one script that may run twice: out of
//!    the queue, and no more holds than are known. Nothing else of this owner is sent before.
//! 3. A waiter subscribes to its own channel; the subscription ends with the seat.
//!
//! What it survives: a caller that goes away at any point, a command or a subscription without an answer. **What breaks
//! it**: a command that reaches Redis only after the one that undoes it (on a connection that was cut while Redis was
//! stopped); what it took goes with its lease, or when its score has passed.
//!
//! Next to read: `lua/fair_queue.lua`.

use super::{
    client::{RedisClient, unavailable},
    lease::{self, Held, Lease},
    script::{lock_channel, prefixed},
    station::insist,
};
use crate::{Keeper, LockError, Owner};
use futures::FutureExt;
use parking_lot::Mutex;
use redis::{RedisError, Script, ScriptInvocation};
use std::{
    collections::HashMap,
    sync::{
        Arc, LazyLock, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{Mutex as AsyncMutex, Notify},
    time::{Instant, timeout},
};

macro_rules! script {
    ($name:ident, $file:literal) => {
        static $name: LazyLock<Script> = LazyLock::new(|| {
            Script::new(&[include_str!("lua/fair_queue.lua"), include_str!(concat!("lua/", $file))].concat())
        });
    };
}

script!(ACQUIRE, "fair_acquire.lua");
script!(RELEASE, "fair_release.lua");
script!(LEAVE, "fair_leave.lua");
script!(RENEW, "fair_renew.lua");

/// The seats of owners that were named, who may come again: a second acquire of one owner has the same seat.
#[derive(Debug, Default)]
pub(super) struct Seats(Mutex<HashMap<(String, Owner), Weak<Seat>>>);

/// One owner at one lock.
#[derive(Debug)]
pub(super) struct Seat {
    client: RedisClient,
    owner: Owner,
    name: String,
    queue: String,
    scores: String,
    channels: String,
    channel: String,
    woken: Arc<Notify>,
    subscribing: AtomicBool,
    state: AsyncMutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Counts how often the lock was free when this owner took it: what it held before that is lost.
    round: u64,
    holds: u32,
    /// The wait limit that its place in the queue was made with.
    limit: Duration,
    unsure: bool,
}

/// A hold of the lock. Dropping it gives it back in the background.
#[derive(Debug)]
pub(super) struct FairHold {
    seat: Arc<Seat>,
    lease: Lease,
    round: u64,
    /// When the command was sent that began the lease.
    leased: Instant,
    given_back: bool,
}

/// What one try came to.
pub(super) enum Attempt {
    Had(FairHold),
    /// Another has it, or is before us; nothing changes by itself for so long, or for ever.
    Taken(Option<Duration>),
}

impl Seats {
    /// The seat of `owner` at the lock `name`.
    pub(super) fn at(&self, client: &RedisClient, name: &str, owner: Owner) -> Arc<Seat> {
        let mut seats = self.0.lock();
        let key = (name.to_owned(), owner);
        if let Some(seat) = seats.get(&key).and_then(Weak::upgrade) {
            return seat;
        }
        seats.retain(|_, seat| seat.strong_count() > 0);
        let seat = Arc::new(Seat::new(client.clone(), name, owner));
        seats.insert(key, Arc::downgrade(&seat));
        seat
    }
}

impl Seat {
    pub(super) fn new(client: RedisClient, name: &str, owner: Owner) -> Self {
        let channels = lock_channel(name);
        Self {
            client,
            owner,
            name: name.to_owned(),
            queue: prefixed("redisson_lock_queue", name),
            scores: prefixed("redisson_lock_timeout", name),
            channel: format!("{channels}:{owner}"),
            channels,
            woken: Arc::default(),
            subscribing: AtomicBool::new(false),
            state: AsyncMutex::default(),
        }
    }

    /// One try, by one who waits at most `limit` in all and goes on for `left`. Without a limit it does not queue.
    pub(super) async fn attempt(
        self: &Arc<Self>,
        lease: Lease,
        limit: Duration,
        left: Duration,
    ) -> Result<Attempt, LockError> {
        let mut state = self.state.lock().await;
        self.settle(&mut state).await.map_err(|e| unavailable(&e))?;
        state.limit = limit;
        // What has woken us so far is answered by this try.
        self.woken.notified().now_or_never();
        let sent = Instant::now();
        let mut script = self.script(&ACQUIRE);
        script.arg(lease.millis()).arg(self.owner.to_string()).arg(millis(limit)).arg(millis(left));
        match script.invoke_async::<(i64, i64)>(&mut self.client.connection()).await {
            Ok((1, holds)) => {
                if holds == 1 {
                    state.round += 1;
                    state.holds = 0;
                }
                state.holds += 1;
                let (seat, round) = (Arc::clone(self), state.round);
                Ok(Attempt::Had(FairHold { seat, lease, round, leased: sent, given_back: false }))
            }
            Ok((_, hint)) => Ok(Attempt::Taken(u64::try_from(hint).ok().map(Duration::from_millis))),
            Err(error) => {
                self.settle_later(&mut state);
                Err(unavailable(&error))
            }
        }
    }

    /// Gives up the place in the queue, and waits for that at most as long as one command may take.
    pub(super) async fn leave(self: &Arc<Self>) {
        let mut state = self.state.lock().await;
        state.unsure = true;
        if self.settle(&mut state).await.is_err() {
            self.settle_later(&mut state);
        }
    }

    /// Waits to be woken, at most for `pause`. The first time it only subscribes: what was said until then is missed.
    pub(super) async fn woken(self: &Arc<Self>, pause: Duration) {
        if self.subscribing.swap(true, Ordering::AcqRel) {
            timeout(pause, self.woken.notified()).await.ok();
            return;
        }
        let seat = Arc::clone(self);
        // In a task of its own: a SUBSCRIBE that is given up half-way might stay on the server for ever.
        let subscribed = tokio::spawn(async move {
            let wakeups = seat.client.wakeups();
            wakeups.listen(&seat.channel, &seat.woken);
            if let Err(error) = wakeups.subscribe(&seat.channel).await {
                // The timed re-check goes on without it.
                tracing::debug!(%error, channel = seat.channel, "no wake-ups");
            }
        });
        timeout(pause, subscribed).await.ok();
    }

    async fn renew(&self, lease: Lease, round: u64) -> Result<bool, LockError> {
        if self.state.lock().await.round != round {
            return Ok(false);
        }
        let mut script = self.script(&RENEW);
        script.arg(lease.millis()).arg(self.owner.to_string());
        script.invoke_async(&mut self.client.connection()).await.map_err(|e| unavailable(&e))
    }

    async fn release(self: &Arc<Self>, lease: Lease, round: u64) -> Result<(), LockError> {
        let lost = || LockError::Lost { name: self.name.clone() };
        let mut state = self.state.lock().await;
        if state.round != round || state.holds == 0 {
            return Err(lost());
        }
        state.holds -= 1;
        if state.unsure {
            // The same script takes this hold away.
            let settled = self.settle(&mut state).await;
            return settled.map(|_| ()).map_err(|error| {
                self.settle_later(&mut state);
                unavailable(&error)
            });
        }
        let mut script = self.script(&RELEASE);
        script.arg(lease.millis()).arg(self.owner.to_string());
        match script.invoke_async::<Option<i64>>(&mut self.client.connection()).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => {
                state.holds = 0;
                Err(lost())
            }
            Err(error) => {
                self.settle_later(&mut state);
                Err(unavailable(&error))
            }
        }
    }

    /// Makes an unsure seat sure; `false` where it was.
    async fn settle(&self, state: &mut State) -> Result<bool, RedisError> {
        if !state.unsure {
            return Ok(false);
        }
        let mut script = self.script(&LEAVE);
        script.arg(self.owner.to_string()).arg(millis(state.limit)).arg(state.holds);
        let undone = script.invoke_async(&mut self.client.connection()).await?;
        state.unsure = false;
        Ok(undone)
    }

    fn settle_later(self: &Arc<Self>, state: &mut State) {
        state.unsure = true;
        let seat = Arc::clone(self);
        self.client.spawn(async move { insist(|| async { seat.settle(&mut *seat.state.lock().await).await }).await });
    }

    fn script<'a>(&self, script: &'a Script) -> ScriptInvocation<'a> {
        let mut script = script.key(&self.name);
        script.key(&self.queue).key(&self.scores).key(&self.channels);
        script
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if !*self.subscribing.get_mut() {
            return;
        }
        // Before the task runs: whoever still listens keeps the subscription.
        drop(std::mem::take(&mut self.woken));
        let (client, channel) = (self.client.clone(), std::mem::take(&mut self.channel));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = client.wakeups().unsubscribe(&channel).await {
                    tracing::debug!(%error, channel, "not unsubscribed");
                }
            });
        }
    }
}

impl FairHold {
    /// Keeps it until its holder gives it back.
    pub(super) async fn keep(self, keeper: Keeper) {
        let (lease, leased) = (self.lease, self.leased);
        lease::keep(self, lease, leased, keeper).await;
    }
}

impl Held for FairHold {
    fn name(&self) -> &str {
        &self.seat.name
    }

    async fn renew(&self) -> Result<bool, LockError> {
        self.seat.renew(self.lease, self.round).await
    }

    async fn give_back(mut self) -> Result<(), LockError> {
        self.given_back = true;
        self.seat.release(self.lease, self.round).await
    }
}

impl Drop for FairHold {
    fn drop(&mut self) {
        if self.given_back || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (seat, lease, round) = (Arc::clone(&self.seat), self.lease, self.round);
        self.seat.client.spawn(async move {
            if let Err(error) = seat.release(lease, round).await {
                tracing::debug!(%error, "a dropped hold was not released cleanly");
            }
        });
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
