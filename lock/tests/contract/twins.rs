//! Locks that are wrong on purpose, each in one way: a wrapper of a few lines around the honest `RedisLock`, and one lock in
//! ZooKeeper. For each clause there is one that breaks it; a clause that lets its twin pass is a clause that cannot fail.

use super::{
    clauses,
    family::{AnyLock, Ask, Family, Kind, asked},
    holds,
    redis::Redis,
    support::*,
    zookeeper::{Member, ZooKeeper, broken, directory},
};
use oversell_lock::{
    Fence, Guard, Lease, Lock, LockError,
    local::Mutexes,
    redis::{RedisClient, RedisLock},
    zk::ZkClient,
};
use redis::{AsyncTypedCommands, ExistenceCheck, SetExpiry, SetOptions};
use std::{mem, sync::LazyLock, time::Duration};
use tokio::sync::oneshot;
use zookeeper_client::{Acls, Client, CreateMode, Error};

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flaw {
    /// Each process has a lock of its own.
    Apart,
    /// It does not wait.
    Impatient,
    /// It takes away what another holds.
    Sweeping,
    /// A waiter that gives up leaves something on the server.
    Littering,
    /// What is acquired after the caller has gone is kept.
    Detached,
    /// What is given back is kept.
    Keeping,
    /// A server that is down is a lock that is taken.
    Confusing,
    /// A loss is not told, and the process's next one waits until it is found out.
    Deaf,
    /// A loss is told, and the guard cannot tell it by the clock.
    OnlyTold,
    /// Every hold has the same token.
    Stale,
    /// Its release deletes whatever is there.
    Careless,
    /// The release of a lost hold deletes what is there.
    LateRelease,
    /// It is not renewed.
    NotRenewed,
    /// It is renewed where it was to end.
    Renewed,
    /// It does not look at the lease that it is given.
    AnyLease,
    /// A re-entry cuts the lease.
    Cuts,
    /// Each contender is an owner of its own.
    NoOwner,
    /// The first release frees it.
    FreesWithTheFirst,
}

struct Flawed {
    honest: RedisLock,
    client: RedisClient,
    lease: Option<Lease>,
    flaw: Flaw,
}

/// What a process of the deaf one holds.
static DEAF: LazyLock<Mutexes<String>> = LazyLock::new(Mutexes::default);

fn process(client: &RedisClient) -> String {
    let owner = client.owner().to_string();
    owner.split(':').next().unwrap_or_default().to_owned()
}

fn flawed(client: &RedisClient, name: &str, mut ask: Ask, flaw: Flaw) -> AnyLock {
    let lease = ask.lease;
    let name = match flaw {
        Flaw::Apart => format!("{name}-{}", process(client)),
        _ => name.to_owned(),
    };
    match flaw {
        Flaw::NotRenewed => ask.lease = lease.map(|lease| Lease::Fixed(lease.duration())),
        Flaw::Renewed => ask.lease = None,
        Flaw::AnyLease => ask.lease = None,
        Flaw::NoOwner => ask.owner = None,
        _ => {}
    }
    let honest = asked!(client.lock(&name), ask);
    let client = client.clone();
    Flawed {
        honest,
        client,
        lease,
        flaw,
    }
    .boxed()
}

impl Lock for Flawed {
    fn name(&self) -> &str {
        self.honest.name()
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let name = self.name().to_owned();
        let taken = || LockError::Taken {
            name: name.clone(),
            waited: wait,
        };
        let mut redis = self.client.connection();
        match self.flaw {
            Flaw::Impatient => return self.honest.try_acquire().await,
            Flaw::Sweeping => {
                redis.del(&name).await.expect("an answer");
            }
            Flaw::Detached => {
                let (reply, answer) = oneshot::channel();
                let honest = self.honest.clone();
                tokio::spawn(
                    async move { reply.send(honest.acquire(wait).await).map_err(mem::forget) },
                );
                return answer.await.expect("an answer");
            }
            Flaw::Confusing => return self.honest.acquire(wait).await.map_err(|_| taken()),
            Flaw::Careless => {
                let options = SetOptions::default()
                    .conditional_set(ExistenceCheck::NX)
                    .with_expiration(SetExpiry::PX(30_000));
                let set = redis.set_options(&name, "locked", options).await;
                set.expect("an answer").ok_or_else(taken)?;
                return Ok(kept(
                    Guard::new(name.as_str(), None).0,
                    None,
                    async move |_| {
                        // Here the honest lock compares the owner, in the same script.
                        let deleted = redis.del(&name).await.expect("an answer");
                        let lost = || LockError::Lost { name };
                        if deleted > 0 { Ok(()) } else { Err(lost()) }
                    },
                ));
            }
            _ => {}
        }
        let deaf = match self.flaw {
            Flaw::Deaf => {
                let held = format!("{name}-{}", process(&self.client));
                Some(DEAF.lock(&held, wait).await.ok_or_else(taken)?)
            }
            _ => None,
        };
        let honest = self.honest.acquire(wait).await;
        if honest.is_err() && self.flaw == Flaw::Littering {
            let litter = redis.set(format!("{name}-waiter"), "").await;
            litter.expect("an answer");
        }
        let honest = honest?;
        Ok(match self.flaw {
            Flaw::Keeping => kept(honest, None, async |guard| {
                mem::forget(guard);
                Ok(())
            }),
            Flaw::Deaf => kept(honest, None, async move |guard| {
                drop(deaf);
                guard.release().await
            }),
            Flaw::OnlyTold => told_and_then(honest, Guard::release),
            Flaw::Stale => kept(honest, Some(Fence(1)), Guard::release),
            Flaw::LateRelease => told_and_then(honest, async move |guard| {
                let released = guard.release().await;
                // Here the honest lock leaves alone what its owner has by now.
                redis.del(&name).await.expect("an answer");
                released
            }),
            Flaw::Cuts => {
                let millis = self
                    .lease
                    .map_or(1, |lease| lease.duration().as_millis() as i64);
                redis.pexpire(&name, millis).await.expect("an answer");
                honest
            }
            Flaw::FreesWithTheFirst => kept(honest, None, async move |guard| {
                // Here the honest lock looks whether it is the last.
                redis.del(&name).await.expect("an answer");
                guard.release().await.ok();
                Ok(())
            }),
            _ => honest,
        })
    }
}

/// A guard that tells nothing, and does this in the end.
fn kept<F>(
    honest: Guard,
    fence: Option<Fence>,
    end: impl FnOnce(Guard) -> F + Send + 'static,
) -> Guard
where
    F: Future<Output = Result<(), LockError>> + Send + 'static,
{
    let (guard, mut keeper) = Guard::new(honest.name(), fence);
    tokio::spawn(async move {
        let asked = keeper.asked_to_release().await;
        asked.done(end(honest).await);
    });
    guard
}

/// A guard that knows only what it was told, and does this in the end: the honest one has the end of its lease with it.
fn told_and_then<F>(honest: Guard, end: impl FnOnce(Guard) -> F + Send + 'static) -> Guard
where
    F: Future<Output = Result<(), LockError>> + Send + 'static,
{
    let (guard, mut keeper) = Guard::new(honest.name(), None);
    tokio::spawn(async move {
        let asked = tokio::select! {
            asked = keeper.asked_to_release() => asked,
            () = honest.lost() => {
                keeper.tell_lost();
                keeper.asked_to_release().await
            }
        };
        asked.done(end(honest).await);
    });
    guard
}

/// Tests that a lock with this flaw breaks this clause, and for this reason; `in some try` where the flaw is not seen each
/// time: two that are let in at once need not meet, and a try may take as long as a wait.
macro_rules! twins {
    ($($name:ident: $flaw:ident, $clause:expr, $by:literal $($in_some_try:literal)?;)*) => {$(
        test! {
            async fn $name(redis: &'static Redis) -> Result<()> {
                static TWIN: Kind<Redis> = Kind::new("twin", &[], |client, name, ask| {
                    flawed(client, name, ask, Flaw::$flaw)
                });
                let twin = Family { server: redis, kind: &TWIN };
                twins!(@ $clause, twin, $by $($in_some_try)?)
            }
        }
    )*};
    (@ $clause:expr, $twin:ident, $by:literal) => {
        caught($clause($twin).await, $by)
    };
    (@ $clause:expr, $twin:ident, $by:literal $in_some_try:literal) => {
        caught(in_some_try(|| $clause($twin)).await, $by)
    };
}

twins! {
    a_lock_for_each_process_is_caught:
        Apart, clauses::two_processes_exclude_each_other, " overlaps" "in some try";
    one_that_does_not_wait_is_caught:
        Impatient, clauses::a_wait_ends_in_taken_and_leaves_nothing, "gave up after" "in some try";
    one_that_sweeps_a_holder_away_is_caught:
        Sweeping, clauses::a_wait_ends_in_taken_and_leaves_nothing, "after the wait: Ok(Guard";
    one_that_leaves_something_is_caught:
        Littering, clauses::a_wait_ends_in_taken_and_leaves_nothing, "the server had";
    a_release_that_does_not_check_the_owner_is_caught:
        Careless, clauses::a_foreign_release_is_refused, "a lost lock was released: Ok";
    one_that_keeps_what_nobody_waits_for_is_caught:
        Detached, clauses::a_dropped_acquire_leaves_nothing, "must be acquired";
    one_that_keeps_what_is_dropped_is_caught:
        Keeping, clauses::a_dropped_guard_releases, "must be acquired";
    one_that_keeps_what_a_panic_gave_back_is_caught:
        Keeping, clauses::a_panicking_holder_releases, "must be acquired";
    one_that_takes_silence_for_taken_is_caught:
        Confusing, clauses::a_server_that_is_down_is_not_a_lock_that_is_taken, "with the server down: Err(Taken";
    one_whose_waiter_takes_silence_for_taken_is_caught:
        Confusing, clauses::a_waiter_is_told_that_the_server_went_down, "the waiter has: Err(Taken";
    one_that_does_not_hear_of_its_loss_is_caught:
        Deaf, clauses::a_holder_is_told_that_its_lock_is_lost, "never told";
    one_that_keeps_its_own_process_out_is_caught:
        Deaf, clauses::a_lost_hold_lets_its_own_process_try, "must be acquired";
    one_that_knows_only_what_it_was_told_is_caught:
        OnlyTold, clauses::a_process_that_stood_still_knows_at_once, "did not know that its lock is lost";
    one_with_an_old_token_is_caught:
        Stale, clauses::fencing_tokens_grow, "after Some(Fence(1))";
    a_release_that_frees_with_the_first_hold_is_caught:
        FreesWithTheFirst, holds::an_owner_takes_its_lock_again_past_the_waiters, "beside the";
    one_that_does_not_know_its_owner_is_caught:
        NoOwner, holds::tasks_of_one_owner_come_in_together, "both inside";
    one_that_hides_its_loss_is_caught:
        Stale, holds::a_re_entry_does_not_hide_a_loss, "never told";
    a_fixed_lease_that_is_renewed_is_caught:
        Renewed, holds::a_fixed_lease_ends_and_its_late_release_frees_nothing, "must be acquired";
    a_lease_that_is_not_renewed_is_caught:
        NotRenewed, holds::a_renewed_lease_outlives_its_length, "beyond the lease: Ok";
    one_that_takes_any_lease_is_caught:
        AnyLease, holds::a_lease_without_end_or_length_is_refused, ": Ok(Guard";
    a_late_release_that_frees_the_newer_hold_is_caught:
        LateRelease, holds::the_late_release_of_a_lost_hold_leaves_its_owners_newer_one, "another has Ok";
    a_re_entry_that_cuts_the_lease_is_caught:
        Cuts, holds::a_short_lease_inside_does_not_end_the_long_one, "the outer hold ends in";
}

// --- a ZooKeeper lock that does not look again --------------------------------------------------------------------

/// A `ZkLock` that takes the lock when its watch fires, without looking again.
struct QueueJumper(ZkClient, String);

impl Lock for QueueJumper {
    fn name(&self) -> &str {
        &self.1
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        let client = self.0.session()?;
        directory(&client, self.name()).await.map_err(broken)?;
        let node = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
        let prefix = format!("{}/_c_{}-lock-", self.1, uuid::Uuid::new_v4());
        let made = client.create(&prefix, &[], &node).await;
        let own = format!("{prefix}{}", made.map_err(broken)?.1);
        let deleted = Deleted(client.clone(), own.clone());
        let listed = client.list_children(self.name()).await;
        let mut nodes = listed.map_err(broken)?;
        nodes.sort_by_key(|name| name.rsplit('-').next().map(str::to_owned));
        let at = nodes.iter().position(|name| own.ends_with(name));
        if let Some(before) = at.expect("our node").checked_sub(1) {
            let path = format!("{}/{}", self.name(), nodes[before]);
            let fired = async {
                match client.get_and_watch_data(&path).await {
                    Ok((_, _, watch)) => drop(watch.changed().await),
                    Err(Error::NoNode) => {}
                    Err(error) => return Err(broken(error)),
                }
                Ok(())
            };
            let name = self.1.clone();
            let taken = |_| LockError::Taken { name, waited: wait };
            tokio::time::timeout(wait, fired).await.map_err(taken)??;
            // Here the honest lock goes back to the list.
        }
        let (guard, mut keeper) = Guard::new(self.name(), None);
        tokio::spawn(async move {
            let release = keeper.asked_to_release().await;
            drop(deleted);
            release.done(Ok(()));
        });
        Ok(guard)
    }
}

/// Deletes a node when it is dropped.
struct Deleted(Client, String);

impl Drop for Deleted {
    fn drop(&mut self) {
        let (client, path) = (self.0.clone(), self.1.clone());
        tokio::spawn(async move { client.delete(&path, None).await });
    }
}

/// The twin is only wrong where its predecessor gives up after it has looked, which no test can see.
#[apply(test!)]
async fn one_that_does_not_look_again_is_caught(zookeeper: &'static ZooKeeper) -> Result<()> {
    static TWIN: Kind<ZooKeeper> = Kind::new("twin", &[], |member: &Member, name, _| {
        QueueJumper(member.client.clone(), name.to_owned()).boxed()
    })
    .queues();
    let twin = Family {
        server: zookeeper,
        kind: &TWIN,
    };
    let verdict =
        in_some_try(|| clauses::a_waiter_that_gives_up_does_not_let_the_next_one_in(twin)).await;
    caught(verdict, "the third has: Ok(Guard")
}
