//! One claim to a Redlock: the question to every node, and the way back from each.
//!
//! 1. Each node is asked in a task of its own, and so is given back: on one node the giving back begins when the asking
//!    has ended, so that it cannot overtake it, whoever has gone away meanwhile.
//! 2. A node that does not answer when it is given back is told again until it does, or the lease has ended there too.
//!    An owner is used for one claim only, so nothing of a later claim can be freed by that.
//! 3. An owner who was given by the caller may hold older claims: a node frees one of its holds for each that it has
//!    confirmed, and is told once.
//!
//! What it survives: a caller that goes away (the value gives itself back), silent nodes, late answers. **What breaks
//! it**: what breaks Redlock.
//!
//! Next to read: `quorum.rs`.

use super::{
    client::{RedisClient, unavailable},
    lease::{Held, Lease},
    quorum::{Answer, Count, Outcome, quorum},
    script::{self, EITHER, FIRST},
    station::Place,
};
use crate::{LockError, Owner};
use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, Shared, join_all},
    stream::FuturesUnordered,
};
use std::{future::Future, time::Duration};
use tokio::time::{Instant, sleep, timeout};

/// A node has this part of the lease to answer,
const PATIENCE: u32 = 10;
/// and no longer than this.
const LONGEST_PATIENCE: Duration = Duration::from_millis(500);
/// Clocks drift by this part of the lease, at most,
const DRIFT: u32 = 100;
/// and a key ends on a millisecond; so much more for that.
const EXPIRY: Duration = Duration::from_millis(2);
/// A node that did not answer when it was given back is told again after this, then after twice as long, and so on: a
/// dead node costs each hold a handful of tries.
const RETRY: Duration = Duration::from_millis(100);

/// One of the independent servers, and the lock's key there.
#[derive(Debug, Clone)]
pub(super) struct Node {
    client: RedisClient,
    key: String,
    channel: String,
}

/// A node that was asked.
#[derive(Debug)]
struct Seat {
    node: Node,
    asked: Shared<BoxFuture<'static, Answer>>,
}

/// One contender's claim, from the first question to the last node that was given back. Dropping it gives it back in
/// the background.
#[derive(Debug)]
pub(super) struct Claim {
    name: String,
    owner: Owner,
    lease: Lease,
    /// The owner is this claim's alone.
    own: bool,
    leased: Instant,
    /// None once it has been given back.
    seats: Vec<Seat>,
    place: Option<Place>,
}

impl Node {
    pub(super) fn new(client: &RedisClient, name: &str) -> Self {
        let key = client.stations().key(name);
        Self { client: client.clone(), channel: script::lock_channel(&key), key }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    /// `acquire.lua`, as an answer: in a task of its own, and known to all who want to know.
    fn ask(&self, owner: Owner, lease: Lease, own: bool) -> Seat {
        let node = self.clone();
        let asked = self.answer(lease, async move {
            let mut script = script::ACQUIRE.key(&node.key);
            script.arg(lease.millis()).arg(owner.to_string()).arg(if own { FIRST } else { EITHER });
            let (taken, _): (bool, i64) = script.invoke_async(&mut node.client.connection()).await.ok()?;
            Some(taken)
        });
        Seat { node: self.clone(), asked: asked.boxed().shared() }
    }

    /// `renew.lua`, as an answer.
    fn renew(&self, owner: Owner, lease: Lease) -> impl Future<Output = Answer> + Send + use<> {
        let node = self.clone();
        self.answer(lease, async move {
            let mut script = script::RENEW.key(&node.key);
            script.arg(lease.millis()).arg(owner.to_string());
            script.invoke_async(&mut node.client.connection()).await.ok()
        })
    }

    /// Runs in the background from now on, within the node time-out.
    fn answer<C>(&self, lease: Lease, command: C) -> impl Future<Output = Answer> + Send + use<C>
    where
        C: Future<Output = Option<bool>> + Send + 'static,
    {
        let asked = self.client.spawn(timeout(patience(lease), command));
        async move {
            match asked.await {
                Ok(Ok(Some(true))) => Answer::Yes,
                Ok(Ok(Some(false))) => Answer::No,
                _ => Answer::Silence,
            }
        }
    }

    /// `release.lua`: whether it was the owner's.
    async fn release(&self, owner: Owner) -> Result<bool, LockError> {
        let mut script = script::RELEASE.key(&self.key);
        script.key(&self.channel).arg(owner.to_string()).arg(1);
        let told: Option<i64> =
            script.invoke_async(&mut self.client.connection()).await.map_err(|e| unavailable(&e))?;
        Ok(told.is_some())
    }
}

impl Seat {
    fn has_answered(&self) -> bool {
        matches!(self.asked.clone().now_or_never(), Some(Answer::Yes | Answer::No))
    }

    /// Gives the node back, in the background, as soon as it has been asked. `own`: as often as it takes.
    fn free(self, owner: Owner, lease: Lease, own: bool) -> impl Future<Output = Answer> + Send + use<> {
        let Self { node, asked } = self;
        let client = node.client.clone();
        let freed = client.spawn(async move {
            if asked.await != Answer::Yes && !own {
                return Answer::Silence;
            }
            match timeout(patience(lease), node.release(owner)).await {
                Ok(Ok(true)) => Answer::Yes,
                Ok(Ok(false)) => Answer::No,
                Ok(Err(_)) | Err(_) => {
                    if own {
                        node.client.clone().spawn(insist(node, owner, lease));
                    }
                    Answer::Silence
                }
            }
        });
        async move { freed.await.unwrap_or(Answer::Silence) }
    }
}

impl Claim {
    /// Asks every node. `own`: `owner` is this claim's alone.
    pub(super) fn new(nodes: &[Node], name: &str, owner: Owner, lease: Lease, own: bool, place: Option<Place>) -> Self {
        let leased = Instant::now();
        let seats = nodes.iter().map(|node| node.ask(owner, lease, own)).collect();
        Self { name: name.to_owned(), owner, lease, own, leased, seats, place }
    }

    /// When the nodes were asked: the lease began then or later.
    pub(super) fn leased(&self) -> Instant {
        self.leased
    }

    /// Waits for the answers. Not had: it is given back wherever a node has answered, in the background elsewhere, and
    /// the place in the line is returned.
    pub(super) async fn stand(mut self) -> Result<Result<Self, Option<Place>>, LockError> {
        let outcome = tally(self.seats.iter().map(|seat| seat.asked.clone())).await;
        if outcome == Outcome::Agreed && self.leased.elapsed() < validity(self.lease) {
            return Ok(Ok(self));
        }
        let error = match outcome {
            Outcome::Silent(answered) => Some(too_few(answered, self.seats.len())),
            Outcome::Agreed | Outcome::Refused => None,
        };
        let answered: Vec<_> = self.seats.iter().map(Seat::has_answered).collect();
        let freed = self.free().into_iter().zip(answered).filter_map(|(freed, answered)| answered.then_some(freed));
        join_all(freed).await;
        let place = self.place.take();
        let Some(error) = error else { return Ok(Err(place)) };
        if let Some(place) = place {
            place.fail(&error);
        }
        Err(error)
    }

    /// Gives every node back, each in the background from now on.
    fn free(&mut self) -> Vec<impl Future<Output = Answer> + Send + use<>> {
        let (owner, lease, own) = (self.owner, self.lease, self.own);
        self.seats.drain(..).map(|seat| seat.free(owner, lease, own)).collect()
    }
}

impl Held for Claim {
    fn name(&self) -> &str {
        &self.name
    }

    async fn renew(&self) -> Result<bool, LockError> {
        match tally(self.seats.iter().map(|seat| seat.node.renew(self.owner, self.lease))).await {
            Outcome::Agreed => Ok(true),
            Outcome::Refused => Ok(false),
            Outcome::Silent(answered) => Err(too_few(answered, self.seats.len())),
        }
    }

    fn on_loss(&mut self) {
        self.place.take();
    }

    async fn give_back(mut self) -> Result<(), LockError> {
        let nodes = self.seats.len();
        let outcome = tally(self.free().into_iter()).await;
        match outcome {
            Outcome::Agreed => Ok(()),
            Outcome::Refused => Err(LockError::Lost { name: self.name.clone() }),
            Outcome::Silent(answered) => Err(too_few(answered, nodes)),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if self.seats.is_empty() || tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let (place, home) = (self.place.take(), self.seats[0].node.client.clone());
        let freed = self.free();
        home.spawn(async move {
            join_all(freed).await;
            drop(place);
        });
    }
}

/// The result, as soon as it stands.
async fn tally(answers: impl ExactSizeIterator<Item = impl Future<Output = Answer>>) -> Outcome {
    let mut count = Count::of(answers.len());
    let mut answers: FuturesUnordered<_> = answers.collect();
    while let Some(answer) = answers.next().await {
        if let Some(outcome) = count.add(answer) {
            return outcome;
        }
    }
    Outcome::Silent(0)
}

fn too_few(answered: usize, nodes: usize) -> LockError {
    let reason = format!("{answered} of {nodes} nodes answered, {} needed", quorum(nodes));
    LockError::Unavailable { server: "redis", reason }
}

/// Tells a silent node until it answers, or until the lease has ended there too.
async fn insist(node: Node, owner: Owner, lease: Lease) {
    let (ends, mut pause) = (Instant::now() + lease.duration(), RETRY);
    while Instant::now() < ends {
        sleep(pause).await;
        if node.release(owner).await.is_ok() {
            return;
        }
        pause *= 2;
    }
}

/// How long a node has to answer.
fn patience(lease: Lease) -> Duration {
    (lease.duration() / PATIENCE).min(LONGEST_PATIENCE)
}

/// How long after the question a lock is surely held.
fn validity(lease: Lease) -> Duration {
    lease.duration().saturating_sub(lease.duration() / DRIFT + EXPIRY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_is_the_lease_less_the_drift_of_the_clocks() {
        let valid = |ms| validity(Lease::Fixed(Duration::from_millis(ms)));
        assert_eq!(valid(10_000), Duration::from_millis(9_898));
        assert_eq!(valid(1), Duration::ZERO);
    }

    #[test]
    fn a_node_has_little_time_against_the_lease() {
        let patience = |ms| patience(Lease::Watchdog(Duration::from_millis(ms)));
        assert_eq!(patience(1_000), Duration::from_millis(100));
        assert_eq!(patience(30_000), LONGEST_PATIENCE);
    }
}
