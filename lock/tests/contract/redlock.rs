//! `Redlock` on five nodes under the contract, what it promises beyond it, and the twins that count wrongly.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    redis::{Redis, client},
};
use ::redis::{AsyncTypedCommands, ExistenceCheck, SetExpiry, SetOptions};
use futures::future::join_all;
use oversell::redis_at::redis_at;
use oversell_lock::{
    Guard, Lock, LockError,
    redis::{Lease, RedisClient, Redlock},
};
use std::{sync::Arc, time::Duration};

/// A node has a tenth of it to answer, which is for longer than a busy machine usually stands still.
const LEASE: Duration = Duration::from_secs(15);

/// So long that a node has as much time to answer as one can have, and that none under it ends while a test looks.
pub(crate) const LONG: Lease = Lease::Fixed(Duration::from_secs(600));

/// A family of locks on several nodes.
pub(crate) trait OnNodes: Family {
    /// On these nodes.
    fn on(urls: Vec<String>) -> Self;

    /// The nodes.
    fn nodes(&self) -> &[Redis];
}

/// Five independent nodes.
pub(crate) struct Five(Vec<Redis>);

/// A process with a client for each node.
pub(crate) struct Voters(pub(crate) Vec<RedisClient>);

impl Voters {
    /// A process that reaches the nodes at these addresses, and leaves it to the lock how long it waits for one.
    pub(crate) fn at(addresses: &[String]) -> Self {
        Self::with(addresses, SOON)
    }

    /// A process that gives each command so long.
    pub(crate) fn with(addresses: &[String], timeout: Duration) -> Self {
        let process = oversell_lock::Process::new();
        Self(
            addresses
                .iter()
                .map(|address| client(&process, address, LEASE, timeout))
                .collect(),
        )
    }
}

impl OnNodes for Five {
    fn on(urls: Vec<String>) -> Self {
        Self(urls.into_iter().map(Redis::at).collect())
    }

    fn nodes(&self) -> &[Redis] {
        &self.0
    }
}

impl Family for Five {
    const NAME: &'static str = "redlock";
    const QUEUES: bool = false;
    type Process = Voters;

    fn server(&self) -> String {
        self.0[0].host()
    }

    /// The first node is at `address`.
    async fn process_at(&self, address: &str) -> Voters {
        let mut addresses: Vec<_> = self.0.iter().map(Redis::host).collect();
        addresses[0] = address.to_owned();
        Voters::at(&addresses)
    }

    async fn left(&self, name: &str) -> Vec<String> {
        join_all(self.0.iter().map(|node| node.left(name)))
            .await
            .concat()
    }

    async fn is_everywhere(&self, name: &str) -> bool {
        self.left(name).await.len() == self.0.len()
    }

    async fn take_away(&self, _: &Voters, name: &str) {
        for node in &self.0 {
            node.outsider().await.del(name).await.expect("deleted");
        }
    }
}

impl Process for Voters {
    type Lock = Redlock;

    fn lock(&self, name: &str) -> Redlock {
        Redlock::new(&self.0, name)
    }

    async fn close(&self) {
        join_all(self.0.iter().map(RedisClient::close)).await;
    }
}

/// Another's lock on these nodes.
pub(crate) async fn occupy(nodes: &[Redis], name: &str) {
    for node in nodes {
        node.outsider()
            .await
            .hset(name, "another:1", 1)
            .await
            .expect("set");
    }
}

pub(crate) async fn two_of_five_are_not_enough<F: OnNodes>(family: Arc<F>) -> Verdict {
    let (name, process) = (name(), family.process().await);
    occupy(&family.nodes()[2..], &name).await;
    match process.lock(&name).acquire(LEASE / 4).await {
        Err(LockError::Taken { .. }) => {}
        other => return Err(format!("with two nodes of five: {other:?}")),
    }
    // What a node has given is given back in the background.
    until("another's three alone are left", || async {
        family.left(&name).await.len() == 3
    })
    .await
}

pub(crate) async fn three_of_five_are_enough<F: OnNodes>(family: Arc<F>) -> Verdict {
    let (name, process) = (name(), family.process().await);
    occupy(&family.nodes()[3..], &name).await;
    let guard = says("three nodes", process.lock(&name).acquire(SOON).await)?;
    says("release", guard.release().await)?;
    // Three answers are a release; the other nodes may still be about to.
    until("another's two alone are left", || async {
        family.left(&name).await.len() == 2
    })
    .await
}

pub(crate) async fn a_watchdog_keeps_it_on_three_nodes(family: Arc<Five>) -> Verdict {
    // With two nodes gone it takes one silent node to lose it, and each has a tenth of this to answer.
    let lease = Lease::Watchdog(SOON);
    let (name, process, other) = (name(), family.process().await, family.process().await);
    let guard = says(
        "the lock",
        process.lock(&name).lease(lease).acquire(SOON).await,
    )?;
    // It is had as soon as three have said yes; the other two may still be about to.
    until("all five have said yes", || async {
        for node in &family.0 {
            if !node
                .outsider()
                .await
                .exists(&name)
                .await
                .expect("an answer")
            {
                return false;
            }
        }
        true
    })
    .await?;
    for node in &family.0[..2] {
        node.outsider().await.del(&name).await.expect("deleted");
    }
    let tried = other
        .lock(&name)
        .lease(LONG)
        .acquire(lease.duration() * 5 / 4)
        .await;
    ensure(matches!(tried, Err(LockError::Taken { .. })), || {
        format!("beyond the lease: {tried:?}")
    })?;
    ensure(!guard.is_lost(), || "lost, with three nodes of five".into())?;
    family.0[2]
        .outsider()
        .await
        .del(&name)
        .await
        .expect("deleted");
    tokio::time::timeout(SOON, guard.lost())
        .await
        .map_err(|_| "never told, with two nodes of five")?;
    let released = guard.release().await;
    ensure(matches!(released, Err(LockError::Lost { .. })), || {
        format!("a lost lock was released: {released:?}")
    })
}

pub(crate) async fn a_fixed_lease_ends_and_its_holder_hears_of_it_first(
    family: Arc<Five>,
) -> Verdict {
    let (name, process, other) = (name(), family.process().await, family.process().await);
    let lease = Lease::Fixed(SOON / 2);
    let first = says(
        "the lock",
        process.lock(&name).lease(lease).acquire(SOON).await,
    )?;
    let second = says(
        "the lock, after the lease",
        other.lock(&name).lease(LONG).acquire(SOON).await,
    )?;
    ensure(first.is_lost(), || {
        "another has it, and the first was not told".into()
    })?;
    let released = first.release().await;
    ensure(matches!(released, Err(LockError::Lost { .. })), || {
        format!("a lost lock was released: {released:?}")
    })?;
    says("release", second.release().await)
}

pub(crate) async fn one_owner_may_hold_it_twice(family: Arc<Five>) -> Verdict {
    let (name, process) = (name(), family.process().await);
    let owner = oversell_lock::Process::new().owner();
    let outer = says(
        "the lock",
        process.lock(&name).owner(owner).acquire(SOON).await,
    )?;
    let inner = says(
        "the same again",
        process.lock(&name).owner(owner).acquire(SOON).await,
    )?;
    says("release of the inner hold", inner.release().await)?;
    let tried = process.lock(&name).try_acquire().await;
    ensure(matches!(tried, Err(LockError::Taken { .. })), || {
        format!("the outer hold is left: {tried:?}")
    })?;
    says("release of the outer hold", outer.release().await)?;
    until("nothing is left", || async {
        family.left(&name).await.is_empty()
    })
    .await
}

pub(crate) async fn no_nodes_are_refused(_: Arc<Five>) -> Verdict {
    let refused = Redlock::new(&[], "lock").try_acquire().await;
    ensure(matches!(refused, Err(LockError::Invalid { .. })), || {
        format!("without nodes: {refused:?}")
    })
}

// --- those that count wrongly -------------------------------------------------------------------------------------

/// Wrong on purpose: `NEEDED` nodes are enough, and where `SILENCE` counts a node that did not answer has said yes.
pub(crate) struct Flawed<const NEEDED: usize, const SILENCE: bool>(Five);

/// Two of five are enough.
pub(crate) type OneTooFew = Flawed<2, false>;
/// No answer is a yes.
pub(crate) type SilenceIsYes = Flawed<3, true>;

/// Its process, and its contender.
#[derive(Clone)]
pub(crate) struct FlawedLock<const NEEDED: usize, const SILENCE: bool>(Vec<String>, String);

impl<const NEEDED: usize, const SILENCE: bool> OnNodes for Flawed<NEEDED, SILENCE> {
    fn on(urls: Vec<String>) -> Self {
        Self(Five::on(urls))
    }

    fn nodes(&self) -> &[Redis] {
        &self.0.0
    }
}

impl<const NEEDED: usize, const SILENCE: bool> Family for Flawed<NEEDED, SILENCE> {
    const NAME: &'static str = if SILENCE {
        "twin_redlock_silence_is_yes"
    } else {
        "twin_redlock_one_too_few"
    };
    const QUEUES: bool = false;
    type Process = FlawedLock<NEEDED, SILENCE>;

    fn server(&self) -> String {
        self.0.server()
    }

    async fn process_at(&self, _: &str) -> Self::Process {
        FlawedLock(
            self.0
                .0
                .iter()
                .map(|node| format!("redis://{}", node.host()))
                .collect(),
            String::new(),
        )
    }

    async fn left(&self, name: &str) -> Vec<String> {
        self.0.left(name).await
    }

    async fn take_away(&self, _: &Self::Process, name: &str) {
        self.0.take_away(&Voters(Vec::new()), name).await;
    }
}

impl<const NEEDED: usize, const SILENCE: bool> Process for FlawedLock<NEEDED, SILENCE> {
    type Lock = Self;

    fn lock(&self, name: &str) -> Self {
        Self(self.0.clone(), name.to_owned())
    }

    async fn close(&self) {}
}

impl<const NEEDED: usize, const SILENCE: bool> Lock for FlawedLock<NEEDED, SILENCE> {
    fn name(&self) -> &str {
        &self.1
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let options = SetOptions::default()
            .conditional_set(ExistenceCheck::NX)
            .with_expiration(SetExpiry::PX(1_000));
        let answers = join_all(self.0.iter().map(async |url| {
            let asked = async {
                redis_at(url)
                    .await?
                    .set_options(&self.1, "mine", options.clone())
                    .await
            };
            // Only a node that hangs says nothing for so long.
            let answer = tokio::time::timeout(SOON / 2, asked)
                .await
                .ok()
                .and_then(Result::ok);
            answer.map_or(SILENCE, |set| set.is_some())
        }));
        let yes = answers.await.into_iter().filter(|yes| *yes).count();
        if yes < NEEDED {
            return Err(LockError::Taken {
                name: self.1.clone(),
                waited: wait,
            });
        }
        Ok(Guard::new(self.1.as_str(), None).0)
    }
}

pub(crate) async fn one_too_few_is_caught(twin: Arc<OneTooFew>) -> Verdict {
    super::twins::caught(
        two_of_five_are_not_enough(twin).await,
        "with two nodes of five: Ok",
    )
}
