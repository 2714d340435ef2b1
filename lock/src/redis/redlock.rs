//! Redlock: one lock on several Redis nodes that know nothing of each other; most of them must give it.
//!
//! 1. Wait in this process's line; only its head asks the nodes.
//! 2. Ask all nodes at once, each with the script of the plain lock. One that is silent for the node time-out (a tenth
//!    of the lease, 500 ms at most) has not answered. The result stands as soon as the answers that are still out
//!    cannot change it ([`quorum`](super::quorum)).
//! 3. Had on n/2 + 1 nodes, and there is validity left (the lease, less the time that the asking took, less the drift of
//!    the clocks: a hundredth of the lease and 2 ms): it is ours for as long.
//! 4. If not: give it back on every node, also on those that did not answer, for they may have done it all the same.
//!    Pause for a random time, so that contenders who have split the nodes between them do not meet again; ask anew.
//! 5. Had: a task keeps it ([`lease`](super::lease)). Every third of the lease it is renewed on all nodes; the holder is
//!    told of the loss when fewer than a quorum renewed it while it was valid.
//! 6. Give it back on every node, by owner.
//!
//! What it survives: the death of fewer than half of the nodes, a node that hangs, an answer that comes late, a holder
//! that dies. **What breaks it**: a holder that is paused beyond its lease; a node that comes back without its data
//! before the longest lease has ended (start it later, and it is safe); a clock that jumps on a node, so that its keys
//! end early. Between processes it is not fair: they try at random.
//!
//! Formats: on each node what `RLock` of Redisson has. Source of algorithm and drift: "Distributed Locks with Redis" in
//! the Redis documentation; Redisson's `RedissonRedLock` has no drift. Next to read: `quorum.rs`, then `election.rs`.

use super::{
    client::RedisClient,
    election::{Claim, Node},
    lease::{self, Lease},
    script,
    station::{Place, Station, to_the_end},
};
use crate::{Guard, Lock, LockError, Owner};
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};

/// Who did not get it asks again after a random part of this.
const BACK_OFF: Duration = Duration::from_millis(50);

/// A handle on one lock on several independent nodes.
///
/// ```no_run
/// # use oversell_lock::{Lock, LockError, redis::{RedisClient, Redlock}};
/// # async fn example(nodes: [RedisClient; 5]) -> Result<(), LockError> {
/// let guard = Redlock::new(&nodes, "redLock").acquire(std::time::Duration::from_secs(5)).await?;
/// tokio::select! {
///     () = guard.lost() => println!("fewer than three of the five renewed it in time"),
///     () = async { /* the work */ } => {}
/// }
/// guard.release().await
/// # }
/// ```
#[derive(Debug)]
pub struct Redlock {
    name: String,
    nodes: Arc<[Node]>,
    home: Option<Home>,
    owner: Option<Owner>,
}

/// The client of the first node: it names the owners, and its process's contenders wait in its line.
#[derive(Debug)]
struct Home {
    client: RedisClient,
    station: Arc<Station>,
    lease: Lease,
}

impl Redlock {
    /// The lock `name` on `nodes`: an odd number of clients, each of a Redis of its own that replicates from none of
    /// the others. The first one's process names the owners, and its lease is the lock's.
    #[must_use]
    pub fn new(nodes: &[RedisClient], name: &str) -> Self {
        let home = nodes.first().map(|client| {
            // Nobody subscribes here: only the line is used, and it must not be the plain lock's of this name.
            let station = client.stations().at(script::prefixed("redlock", &client.stations().key(name)));
            Home { client: client.clone(), station, lease: client.lease() }
        });
        let nodes: Arc<[Node]> = nodes.iter().map(|client| Node::new(client, name)).collect();
        let name = nodes.first().map_or(name, Node::key).to_owned();
        Self { name, nodes, home, owner: None }
    }

    /// Takes it as `owner`, who may hold it more than once. Without this each acquire is an owner of its own.
    ///
    /// Such an owner does not wait in the process's line, where it might stand behind itself. What it took on a node
    /// that did not answer stays there until the lease ends: to give it back might end an older hold.
    #[must_use]
    pub fn owner(mut self, owner: Owner) -> Self {
        self.owner = Some(owner);
        self
    }

    /// Its lease, where it is not to be the client's.
    #[must_use]
    pub fn lease(mut self, lease: Lease) -> Self {
        if let Some(home) = &mut self.home {
            home.lease = lease;
        }
        self
    }

    /// Asks until it is had or the wait is over.
    async fn contend(&self, home: &Home, mut place: Option<Place>, until: Instant) -> Result<Option<Claim>, LockError> {
        loop {
            let owner = self.owner.unwrap_or_else(|| home.client.owner());
            let claim = Claim::new(&self.nodes, &self.name, owner, home.lease, self.owner.is_none(), place);
            // To its end even if the caller goes away: what was taken is then dropped, which gives it back.
            match to_the_end(&home.client, claim.stand()).await? {
                Ok(had) => return Ok(Some(had)),
                Err(given_back) => place = given_back,
            }
            let pause = BACK_OFF.mul_f64(fastrand::f64());
            sleep(pause.min(until.saturating_duration_since(Instant::now()))).await;
            if Instant::now() >= until {
                return Ok(None);
            }
        }
    }
}

impl Lock for Redlock {
    fn name(&self) -> &str {
        &self.name
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let Some(home) = &self.home else {
            return Err(LockError::Invalid { name: self.name.clone(), rule: "nodes: must have at least one Redis" });
        };
        let until = Instant::now() + wait;
        let claim = if self.owner.is_some() {
            self.contend(home, None, until).await?
        } else if let Some(place) = home.station.turn(home.client.owner(), wait).await? {
            self.contend(home, Some(place), until).await?
        } else {
            None
        };
        let claim = claim.ok_or_else(|| LockError::Taken { name: self.name.clone(), waited: wait })?;
        let (guard, keeper) = Guard::new(self.name.as_str(), None);
        let (lease, leased) = (home.lease, claim.leased());
        home.client.spawn(lease::keep(claim, lease, leased, keeper));
        Ok(guard)
    }
}
