//! Redlock: one lock on several independent Redis nodes, held by whoever has it on most of them.
//!
//! 1. Join this process's line; only its head asks the nodes.
//! 2. Ask all nodes at once with the plain lock's script. A node that is silent for the node timeout (a tenth of the lease, 3 s
//!    at most) has not answered. The result stands as soon as no missing answer can change it ([`quorum`](super::quorum)).
//! 3. Acquired if n/2 + 1 nodes agreed and validity is left: the lease, less the time spent asking, less a twentieth for
//!    clock drift. The nodes keep the key 2 ms longer, for the resolution of its expiry.
//! 4. Otherwise release on every node, silent ones included, because they may have taken it. On each node the release starts
//!    when the request has ended and is repeated until the node answers. Pause for a random time, and ask again.
//! 5. A task renews it on all nodes every third of the lease, and reports a loss if fewer than a quorum renewed it in time.
//! 6. Release on every node, by an identity that belongs to this hold alone.
//!
//! Source of algorithm and drift: "Distributed Locks with Redis" in the Redis documentation; Redisson's `RedissonRedLock` has
//! no drift. Next to read: `quorum.rs`.

use super::{
    acquire::AcquireRequest,
    client::RedisClient,
    engine::{HeadOfLine, SharedObject, TryResult, result_after_failure, undo_in_background},
    failure::{CommandFailure, MAX_COMMAND_DELAY, SERVER},
    hold::{Claim, Hold},
    keys::{lock_channel, prefixed},
    quorum::{NodeAnswer, QuorumOutcome, outcome_so_far, quorum},
    scripts::{self, renewal_call},
};
use crate::{Guard, Holder, Lease, Lock, LockError, Owner, inherent, lease::owner_and_lease, reentry::HoldKind};
use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, Shared, join_all},
    stream::FuturesUnordered,
};
use std::{collections::HashMap, future::Future, sync::Arc, time::Duration};
use tokio::time::{Instant, timeout};

/// The longest pause before the next round. It is random, so that contenders do not split the nodes again.
const MAX_ROUND_PAUSE: Duration = Duration::from_millis(50);
/// A node has a tenth of the lease to answer, so that silent ones leave most of the lease to the holder.
const NODE_TIMEOUT_DIVISOR: u32 = 10;
/// The longest time that a node has to answer, whatever the lease is.
const MAX_NODE_TIMEOUT: Duration = Duration::from_secs(3);
/// The nodes keep a key this much longer than the holder relies on it, because expiry is rounded to a millisecond.
const EXPIRY_MARGIN: Duration = Duration::from_millis(2);

/// One process's clients of several independent Redis, whose majority decides. Cloning it is cheap.
///
/// ```no_run
/// # use oversell_lock::{LockError, redis::{RedisClient, RedisOptions, RedlockClient}};
/// # use std::time::Duration;
/// # async fn example() -> Result<(), LockError> {
/// let nodes = ["redis://10.0.0.1", "redis://10.0.0.2", "redis://10.0.0.3"];
/// let nodes = nodes.map(|url| RedisClient::new(RedisOptions::new(url)));
/// let redlock = RedlockClient::new(&nodes.into_iter().collect::<Result<Vec<_>, _>>()?)?;
/// redlock.lock("lock").acquire(Duration::from_secs(5)).await?.release().await?;
/// redlock.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct RedlockClient(Arc<[RedisClient]>);

/// A handle on one lock on several independent nodes; see [`RedlockClient::lock`].
///
/// # Survives
///
/// The death of fewer than half of the nodes, a node that hangs, a late answer, a holder that dies.
///
/// # What breaks it
///
/// - a holder that is paused beyond its lease, above all in a virtual machine that its host pauses;
/// - a node that comes back without its data before the longest lease has ended: start it later than that;
/// - a clock that jumps on a node, so that its keys end early.
///
/// It is not fair between processes: they retry at random.
///
/// # Cost
///
/// A round trip to all nodes for each acquire, renewal and release.
///
/// # Format
///
/// On each node what Redisson's `RLock` has. Source: "Distributed Locks with Redis" in the Redis documentation.
///
/// # Example
///
/// ```no_run
/// # use oversell_lock::{LockError, redis::{RedisClient, RedlockClient}};
/// # async fn example(nodes: [RedisClient; 5]) -> Result<(), LockError> {
/// let redlock = RedlockClient::new(&nodes)?;
/// let guard = redlock.lock("redLock").acquire(std::time::Duration::from_secs(5)).await?;
/// tokio::select! {
///     () = guard.lost() => println!("fewer than three of the five renewed it in time"),
///     () = async { /* the work */ } => {}
/// }
/// guard.release().await
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Redlock {
    name: Arc<str>,
    nodes: Arc<[RedlockNode]>,
    /// The first node's client names the owners and holds the line.
    object: Arc<SharedObject>,
    owner: Option<Owner>,
    lease: Lease,
}

/// One of the independent servers, and the lock's key and channel there.
#[derive(Debug, Clone)]
struct RedlockNode {
    client: RedisClient,
    key: Arc<str>,
    channel: String,
}

/// One identity on all nodes, a fresh owner for each try.
#[derive(Debug)]
pub(super) struct NodesClaim {
    name: Arc<str>,
    id: Owner,
    lease: Lease,
    nodes: Arc<[RedlockNode]>,
    /// Each node's answer to the acquire.
    answers: Vec<Shared<BoxFuture<'static, NodeAnswer>>>,
}

impl RedlockClient {
    /// Makes a client of `nodes`: an odd number of clients, each of a Redis of its own that replicates from none of the
    /// others, which is not checked. The first one names the owners, and its lease, observer and way of waiting are the locks'.
    ///
    /// # Errors
    ///
    /// [`LockError::Invalid`] without nodes.
    pub fn new(nodes: &[RedisClient]) -> Result<Self, LockError> {
        if nodes.is_empty() {
            let rule = "must have at least one Redis";
            return Err(LockError::invalid("nodes", rule));
        }
        Ok(Self(nodes.into()))
    }

    /// Makes a handle on the lock `name`.
    #[must_use]
    pub fn lock(&self, name: &str) -> Redlock {
        let home = &self.0[0];
        // Not the line of the plain lock of this name.
        let line = prefixed("redlock", &home.key(name)).into();
        let object = home.shared(&line, |registration| SharedObject::without_channel(home, &line, registration));
        let nodes = self.0.iter();
        Redlock {
            name: home.key(name),
            nodes: nodes.map(|node| RedlockNode::new(node, name)).collect(),
            object,
            owner: None,
            lease: home.lease(),
        }
    }

    /// Makes a new owner, to take a lock with more than once.
    #[must_use]
    pub fn owner(&self) -> Owner {
        self.0[0].owner()
    }

    /// Closes the client of each node: [`RedisClient::close`].
    ///
    /// # Cancel safety
    ///
    /// Safe: it may be called again.
    pub async fn close(&self) {
        join_all(self.0.iter().map(RedisClient::close)).await;
    }
}

impl Redlock {
    /// Returns the holder on more than half of the nodes, and the shortest rest of its leases; `None` if there is none.
    ///
    /// # Errors
    ///
    /// [`LockError::Unavailable`] if fewer than a quorum answered in time and without an error.
    ///
    /// # Cancel safety
    ///
    /// Safe.
    pub async fn holder(&self) -> Result<Option<Holder>, LockError> {
        let asked = self.nodes.iter().map(|node| timeout(node_timeout(self.lease), node.client.holders(&node.key)));
        let shown: Vec<_> = join_all(asked).await.into_iter().filter_map(|shown| shown.ok()?.ok()).collect();
        let (answered, quorum) = (shown.len(), quorum(self.nodes.len()));
        if answered < quorum {
            return Err(too_few_answers_failure(answered, self.nodes.len(), self.lease).error);
        }
        let mut by_owner = HashMap::<_, Vec<_>>::new();
        for holder in shown.into_iter().flatten() {
            by_owner.entry(holder.id).or_default().push(holder.remaining);
        }
        let held = by_owner.into_iter().find(|(_, remaining)| remaining.len() >= quorum);
        Ok(held.map(|(id, remaining)| Holder { id, remaining: remaining.into_iter().flatten().min() }))
    }

    /// Frees the lock on every node, whoever holds it, for operators, and returns whether it was held on more than half of
    /// them. Its waiters are not woken: they ask again by themselves. Its holder is told at its next renewal, and one with a
    /// fixed lease when it releases or extends it; waiters of the holder's own process may have to wait until then.
    ///
    /// # Errors
    ///
    /// As [`holder`](Self::holder); it may then be freed on some nodes.
    ///
    /// # Cancel safety
    ///
    /// It may have been freed or not.
    pub async fn force_unlock(&self) -> Result<bool, LockError> {
        let asked = self.nodes.iter().map(|node| node.force_unlock(self.lease));
        let answers = join_all(asked).await;
        let said = |wanted| answers.iter().filter(|answer| **answer == wanted).count();
        let (held, free) = (said(NodeAnswer::Yes), said(NodeAnswer::No));
        let (nodes, quorum) = (self.nodes.len(), quorum(self.nodes.len()));
        if held + free < quorum {
            return Err(too_few_answers_failure(held + free, nodes, self.lease).error);
        }
        Ok(held >= quorum)
    }

    /// Waits in this process's line, and asks the nodes at its head until a quorum agrees; `None` if the wait ended first.
    async fn take_first_hold(
        &self,
        object: &SharedObject,
        request: &AcquireRequest,
    ) -> Result<Option<Hold<NodesClaim>>, LockError> {
        let attempt = |head| self.clone().attempt(head);
        let home = &self.nodes[0].client;
        object.wait_and_try(home, (), request.wait, request.until, attempt).await
    }

    /// Tries once: runs `acquire.lua` on every node and waits for the outcome. Without a quorum, or with one too late for the
    /// lease, it releases on every node.
    async fn attempt(self, head: HeadOfLine) -> Result<TryResult<Hold<NodesClaim>>, LockError> {
        let (lease_start, id) = (Instant::now(), self.nodes[0].client.owner());
        let answers: Vec<_> = self.nodes.iter().map(|node| node.acquire(id, self.lease)).collect();
        let outcome = await_outcome(answers.iter().cloned()).await;
        let claim = Arc::new(NodesClaim { name: self.name, id, lease: self.lease, nodes: self.nodes, answers });
        if outcome == QuorumOutcome::Agreed && !self.lease.is_unsure(lease_start) {
            return Ok(TryResult::Acquired(Hold::new(claim, None, self.lease, lease_start, head)));
        }
        claim.release_where_answered().await;
        match outcome {
            QuorumOutcome::Silent(answered) => {
                let failure = too_few_answers_failure(answered, claim.nodes.len(), claim.lease);
                result_after_failure(claim.client(), head.as_deref(), failure)
            }
            QuorumOutcome::Agreed | QuorumOutcome::Refused => {
                Ok(TryResult::RetryWithin(Some(MAX_ROUND_PAUSE.mul_f64(fastrand::f64()))))
            }
        }
    }
}

owner_and_lease!(Redlock: owner, lease;);

impl Lock for Redlock {
    fn name(&self) -> &str {
        &self.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let (home, object) = (&self.nodes[0], &self.object);
        let request = AcquireRequest::new(&home.client, "Redlock", &self.name, (self.owner, self.lease, wait))?;
        let take_first_hold = |_| self.take_first_hold(object, &request);
        request.acquire_guard(&home.client, &self.name, HoldKind::Exclusive, take_first_hold).await
    }
}

inherent!(Redlock);

impl RedlockNode {
    fn new(client: &RedisClient, name: &str) -> Self {
        let key = client.key(name);
        Self { client: client.clone(), channel: lock_channel(&key), key }
    }

    /// Runs `acquire.lua` in a task of its own, within the node timeout; the answer can be awaited more than once.
    fn acquire(&self, id: Owner, lease: Lease) -> Shared<BoxFuture<'static, NodeAnswer>> {
        let node = self.clone();
        let answer = self.run_in_background(lease, async move {
            let script = scripts::ACQUIRE.call([&*node.key]);
            let script = script.arg(lease_on_nodes(lease).millis()).arg(id);
            let taken = node.client.run_script::<(bool, i64)>(&script).await;
            taken.map(|(taken, _)| taken)
        });
        answer.boxed().shared()
    }

    /// Runs `renew.lua` in a task of its own, within the node timeout.
    fn renew(&self, id: Owner, lease: Lease) -> impl Future<Output = NodeAnswer> + Send + use<> {
        let node = self.clone();
        self.run_in_background(lease, async move {
            let renewal = renewal_call(&node.key, lease_on_nodes(lease), id);
            node.client.run_script(&renewal).await
        })
    }

    /// Runs `force_unlock.lua` on this node; the answer says whether the lock was held.
    fn force_unlock(&self, lease: Lease) -> impl Future<Output = NodeAnswer> + Send + use<> {
        let node = self.clone();
        self.run_in_background(lease, async move {
            let script = node.client.script(&scripts::FORCE_UNLOCK);
            let script = script.call([&*node.key, &node.channel]).arg(0);
            node.client.run_script(&script).await
        })
    }

    /// Runs `release.lua`; returns whether the identity was there.
    async fn release(&self, id: Owner) -> Result<bool, CommandFailure> {
        let script = self.client.script(&scripts::RELEASE);
        let script = script.call([&*self.key]).arg(id).arg(&self.channel);
        Ok(self.client.run_script::<Option<i64>>(&script).await?.is_some())
    }

    /// Releases on this node, in a task of its own, once the acquire there has ended, and then within the node timeout; a
    /// silent node is retried in the background.
    fn release_after(
        &self,
        acquire: &Shared<BoxFuture<'static, NodeAnswer>>,
        id: Owner,
        lease: Lease,
    ) -> impl Future<Output = NodeAnswer> + Send + use<> {
        let (node, acquire) = (self.clone(), acquire.clone());
        let freed = self.client.spawn(async move {
            // An unanswered acquire may still run.
            let late = match acquire.await {
                NodeAnswer::Silence => MAX_COMMAND_DELAY,
                NodeAnswer::Yes | NodeAnswer::No => Duration::ZERO,
            };
            let answer = match timeout(node_timeout(lease), node.release(id)).await {
                Ok(Ok(true)) => NodeAnswer::Yes,
                Ok(Ok(false)) => NodeAnswer::No,
                Ok(Err(_)) | Err(_) => NodeAnswer::Silence,
            };
            if answer == NodeAnswer::Silence || (answer == NodeAnswer::No && !late.is_zero()) {
                let client = node.client.clone();
                undo_in_background(&client, lease.duration(), late, (), move || {
                    let node = node.clone();
                    async move { node.release(id).await }
                });
            }
            answer
        });
        async move { freed.await.unwrap_or(NodeAnswer::Silence) }
    }

    /// Runs a command in the background, within the node timeout; a failure counts as [`NodeAnswer::Silence`].
    fn run_in_background<C>(&self, lease: Lease, command: C) -> impl Future<Output = NodeAnswer> + Send + use<C>
    where
        C: Future<Output = Result<bool, CommandFailure>> + Send + 'static,
    {
        let answer = self.client.spawn(timeout(node_timeout(lease), command));
        async move {
            match answer.await {
                Ok(Ok(Ok(true))) => NodeAnswer::Yes,
                Ok(Ok(Ok(false))) => NodeAnswer::No,
                _ => NodeAnswer::Silence,
            }
        }
    }
}

impl NodesClaim {
    /// Starts the release on every node in the background; returns each one's answer to come.
    fn release_on_all_nodes(&self) -> Vec<impl Future<Output = NodeAnswer> + Send + use<>> {
        self.nodes.iter().zip(&self.answers).map(|(node, acquire)| node.release_after(acquire, self.id, self.lease)).collect()
    }

    /// Releases on every node; waits only for those that answered the acquire.
    async fn release_where_answered(&self) {
        let answered = |acquire: &Shared<_>| matches!(acquire.clone().now_or_never(), Some(NodeAnswer::Yes | NodeAnswer::No));
        let answered: Vec<_> = self.answers.iter().map(answered).collect();
        join_all(self.release_on_all_nodes().into_iter().zip(answered).filter_map(|(freed, answered)| answered.then_some(freed)))
            .await;
    }

    /// Whether a quorum says yes; an error if too few nodes answer.
    async fn quorum_says_yes(
        &self,
        answers: impl ExactSizeIterator<Item = impl Future<Output = NodeAnswer>>,
    ) -> Result<bool, CommandFailure> {
        match await_outcome(answers).await {
            QuorumOutcome::Agreed => Ok(true),
            QuorumOutcome::Refused => Ok(false),
            QuorumOutcome::Silent(answered) => Err(too_few_answers_failure(answered, self.nodes.len(), self.lease)),
        }
    }
}

/// The failure of a round in which fewer than a quorum answered: unavailable. Nobody has to undo or repeat it, because the release of
/// each node repeats itself.
fn too_few_answers_failure(answered: usize, nodes: usize, lease: Lease) -> CommandFailure {
    let (limit, needed) = (node_timeout(lease).as_millis(), quorum(nodes));
    let reason = format!(
        "{answered} of {nodes} nodes answered without an error within {limit} ms (a tenth of the lease, 3 s at most), {needed} needed"
    );
    CommandFailure { error: LockError::unavailable(SERVER, reason), may_have_run: false, retryable: false }
}

impl Claim for NodesClaim {
    type Head = HeadOfLine;

    fn client(&self) -> &RedisClient {
        &self.nodes[0].client
    }

    fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Renews on every node; each has the node timeout as its limit.
    async fn renew(&self, lease: Lease, _: Option<Duration>) -> Result<bool, CommandFailure> {
        self.quorum_says_yes(self.nodes.iter().map(|node| node.renew(self.id, lease))).await
    }

    /// Releases on every node; the release of a silent node repeats itself.
    async fn release(&self) -> Result<bool, CommandFailure> {
        self.quorum_says_yes(self.release_on_all_nodes().into_iter()).await
    }
}

/// Counts the answers as they come, and returns the outcome once no missing answer can change it.
async fn await_outcome(answers: impl ExactSizeIterator<Item = impl Future<Output = NodeAnswer>>) -> QuorumOutcome {
    let (nodes, mut said) = (answers.len(), Vec::new());
    let mut answers: FuturesUnordered<_> = answers.collect();
    while let Some(answer) = answers.next().await {
        said.push(answer);
        if let Some(outcome) = outcome_so_far(&said, nodes) {
            return outcome;
        }
    }
    QuorumOutcome::Silent(0)
}

/// The lease that the nodes get: a little more than the holder relies on.
fn lease_on_nodes(lease: Lease) -> Lease {
    match lease {
        Lease::Watchdog(lease) => Lease::Watchdog(lease + EXPIRY_MARGIN),
        Lease::Fixed(lease) => Lease::Fixed(lease + EXPIRY_MARGIN),
    }
}

/// How long a node has to answer: a tenth of the lease, [`MAX_NODE_TIMEOUT`] at most.
fn node_timeout(lease: Lease) -> Duration {
    (lease.duration() / NODE_TIMEOUT_DIVISOR).min(MAX_NODE_TIMEOUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_has_little_time_against_the_lease() {
        let node_timeout = |ms| node_timeout(Lease::Watchdog(Duration::from_millis(ms)));
        assert_eq!(node_timeout(1_000), Duration::from_millis(100));
        assert_eq!(node_timeout(30_000), MAX_NODE_TIMEOUT);
    }

    #[test]
    fn too_few_answers_are_told_with_their_limit() {
        let failure = too_few_answers_failure(2, 5, Lease::Fixed(Duration::from_secs(1)));
        let says = "redis is not available: 2 of 5 nodes answered without an error within 100 ms (a tenth of the lease, 3 s at most), \
                    3 needed";
        assert_eq!(failure.error.to_string(), says);
    }
}
