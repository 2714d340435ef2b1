//! Broken locks, each in one way: small wrappers around the real `RedisLock`, two around the fair one, and one lock in
//! ZooKeeper. Each breaks a clause; a clause that lets its twin pass cannot fail.

use super::{
    clauses,
    family::{Operator, asked},
    holders, holds,
    redis::fair::{drift, queue_key, scores_key},
    support::*,
    zookeeper::Member,
};
use futures::future::ready;
use oversell_lock::{
    Fence,
    local::Mutexes,
    redis::{RedisClient, RedisLock},
    zk::ZkClient,
};
use redis::{AsyncTypedCommands, Script, Value};
use std::sync::LazyLock;

/// The real lock behind a twin.
#[derive(Clone)]
pub(crate) struct Honest {
    pub(crate) lock: RedisLock,
    client: RedisClient,
    lease: Option<Lease>,
}

impl Honest {
    pub(crate) fn of(client: &RedisClient, name: &str, ask: Ask) -> Self {
        let (lock, lease) = (asked!(client.lock(name), ask), ask.lease);
        let client = client.clone();
        Self { lock, client, lease }
    }

    /// Deletes the entry on the server; returns whether there was one.
    async fn delete(&self) -> bool {
        let deleted = self.client.connection().del(self.lock.name()).await;
        deleted.expect("an answer") > 0
    }

    /// The key of its process's own state.
    fn of_its_process(&self) -> String {
        let owner = self.client.owner().to_string();
        let process = owner.split(':').next().unwrap_or_default();
        format!("{}-{process}", self.lock.name())
    }
}

/// Each process has its own lock.
pub(crate) async fn apart(honest: Honest, wait: Duration) -> Answer<Guard> {
    let own = honest.client.lock(&honest.of_its_process());
    own.acquire(wait).await
}

/// Reports a lost server as a taken lock.
pub(crate) async fn confusing(honest: Honest, wait: Duration) -> Answer<Guard> {
    let held = honest.lock.acquire(wait).await;
    held.map_err(|_| wait_over_error(honest.lock.name(), wait))
}

/// The holds of a process of the deaf twin.
static DEAF: LazyLock<Mutexes<String>> = LazyLock::new(Mutexes::default);

/// Does not report a loss, and the process's next waiter waits until it is found.
async fn deaf(honest: Honest, wait: Duration) -> Answer<Guard> {
    let own = DEAF.lock(&honest.of_its_process(), wait).await;
    let own = own.ok_or_else(|| wait_over_error(honest.lock.name(), wait))?;
    let held = honest.lock.acquire(wait).await?;
    Ok(guard(honest.lock.name(), None, async {
        drop(own);
        held.release().await
    }))
}

/// Reports a loss, but the guard does not know it by the clock.
async fn blind_to_time(honest: Honest, wait: Duration) -> Answer<Guard> {
    Ok(guard_without_expiry(honest.lock.acquire(wait).await?, Guard::release))
}

/// Gives every hold the same token.
async fn stale(honest: Honest, wait: Duration) -> Answer<Guard> {
    let held = honest.lock.acquire(wait).await?;
    Ok(guard(honest.lock.name(), Some(Fence(1)), held.release()))
}

/// Shortens the lease at a re-entry.
async fn cuts(honest: Honest, wait: Duration) -> Answer<Guard> {
    let held = honest.lock.acquire(wait).await?;
    let millis = honest.lease.map_or(1, |lease| lease.duration().as_millis() as i64);
    let cut = honest.client.connection().pexpire(honest.lock.name(), millis).await;
    cut.expect("an answer");
    Ok(held)
}

/// Frees the lock at the first release.
async fn frees_with_the_first(honest: Honest, wait: Duration) -> Answer<Guard> {
    let (name, held) = (honest.lock.name().to_owned(), honest.lock.acquire(wait).await?);
    Ok(guard(&name, None, async move {
        // The real lock checks whether it is the last.
        honest.delete().await;
        held.release().await.ok();
        Ok(())
    }))
}

pub(crate) fn no_owner(ask: &mut Ask) {
    ask.owner = None;
}

/// Ignores the lease, and renews it.
fn any_lease(ask: &mut Ask) {
    ask.lease = None;
}

fn not_renewed(ask: &mut Ask) {
    ask.lease = ask.lease.map(|lease| Lease::Fixed(lease.duration()));
}

/// A guard without an expiry of its own, with this release.
fn guard_without_expiry<F>(honest: Guard, end: impl FnOnce(Guard) -> F + Send + 'static) -> Guard
where
    F: Future<Output = Answer> + Send + 'static,
{
    let (guard, mut keeper) = Guard::new(honest.name(), None);
    tokio::spawn(async move {
        let asked = tokio::select! {
            asked = keeper.release_requested() => asked,
            () = honest.lost() => {
                keeper.tell_lost();
                keeper.release_requested().await
            }
        };
        asked.done(end(honest).await);
    });
    guard
}

/// Puts the last waiter in front of the others.
const PUSHES_IN: &str = "return redis.call('rpoplpush', KEYS[1], KEYS[1])";
/// Leaves a gone waiter's limit in the scores of those behind it.
const LEAVES_THE_OTHERS_SCORES: &str = "
    for _, owner in ipairs(redis.call('lrange', KEYS[1], 0, -1)) do
        redis.call('zincrby', KEYS[2], ARGV[1], owner)
    end
    return 1";

/// A fair lock that runs this script before each acquire, with the length of the wait.
fn meddled(client: &RedisClient, name: &str, script: &'static str) -> AnyLock {
    fixed_lock(name, client.clone(), move |client, name, wait| async move {
        let script = Script::new(script);
        let mut meddling = script.key(queue_key(&name));
        let wait_ms = wait.as_millis().to_string();
        meddling.key(scores_key(&name)).arg(wait_ms);
        let mut redis = client.connection();
        let meddled: redis::RedisResult<Value> = meddling.invoke_async(&mut redis).await;
        // Tests that ended may still have some when the server stops.
        drop(meddled);
        client.fair_lock(&name).acquire(wait).await
    })
}

/// A twin for one clause.
fn twin(redis: &'static Redis, kind: &'static Kind<Redis>) -> Family<Redis> {
    let server = redis;
    Family { server, kind }
}

/// Checks that a twin with this `acquire`, these `asks`, or this script (`runs`) breaks the clause for this reason.
macro_rules! twins {
    ($($name:ident: $($flaw:ident)+, $clause:expr, $by:literal;)*) => {$(
        test! {
            async fn $name(redis: &'static Redis) -> Result {
                static TWIN: Kind<Redis> = twins!(flaw $($flaw)+);
                caught($clause(twin(redis, &TWIN)).await, $by)
            }
        }
    )*};
    (flaw asks $flaw:ident) => {
        Kind::new("twin", &[], |client, name, mut ask| {
            $flaw(&mut ask);
            Honest::of(client, name, ask).lock.boxed()
        })
    };
    (flaw runs $script:ident) => {
        Kind::new("twin", &[], |client, name, _| meddled(client, name, $script)).queues()
    };
    (flaw $flaw:ident) => {
        Kind::new("twin", &[], |client, name, ask| {
            fixed_lock(name, Honest::of(client, name, ask), |honest, _, wait| $flaw(honest, wait))
        })
    };
}

twins! {
    one_whose_waiter_takes_silence_for_taken_is_caught:
        confusing, clauses::a_waiter_is_told_that_the_server_went_down, "the waiter has: Err(Taken";
    one_that_does_not_hear_of_its_loss_is_caught:
        deaf, clauses::a_holder_is_told_that_its_lock_is_lost, "never told";
    one_whose_work_goes_on_is_caught:
        deaf, clauses::work_ends_where_its_lock_is_lost, "goes on without its lock";
    one_whose_work_is_not_alone_is_caught:
        apart, clauses::work_is_done_under_the_lock, "beside the work: Ok";
    one_that_keeps_its_own_process_out_is_caught:
        deaf, clauses::a_lost_hold_lets_its_own_process_try, "must be acquired";
    one_that_knows_only_what_it_was_told_is_caught:
        blind_to_time, clauses::a_process_that_stood_still_knows_at_once, "did not know that its lock is lost";
    a_release_that_frees_with_the_first_hold_is_caught:
        frees_with_the_first, holds::an_owner_takes_its_lock_again_past_the_waiters, "beside the";
    one_that_does_not_know_its_owner_is_caught:
        asks no_owner, holds::tasks_of_one_owner_come_in_together, "both inside";
    one_that_hides_its_loss_is_caught:
        stale, holds::a_re_entry_does_not_hide_a_loss, "never told";
    a_lease_that_is_not_renewed_is_caught:
        asks not_renewed, holds::a_renewed_lease_outlives_its_length, "beyond the lease: Ok";
    one_that_takes_any_lease_is_caught:
        asks any_lease, holds::a_lease_without_end_or_length_is_refused, ": Ok(Guard";
    a_lease_that_nobody_extends_is_caught:
        blind_to_time, holds::a_fixed_lease_is_extended, "at first sure for None";
    a_re_entry_that_cuts_the_lease_is_caught:
        cuts, holds::a_short_lease_of_an_inner_hold_ends_that_hold_alone, "the outer hold ends in";
    one_that_pushes_in_is_caught:
        runs PUSHES_IN, clauses::waiters_are_served_in_order_of_arrival, "the turns were";
    one_that_leaves_the_scores_of_the_others_is_caught:
        runs LEAVES_THE_OTHERS_SCORES, drift, "too high";
}

#[apply(test!)]
async fn one_that_shows_and_frees_nobody_is_caught(redis: &'static Redis) -> Result {
    static TWIN: Kind<Redis> =
        Kind::new("twin", &[], |client, name, ask| Honest::of(client, name, ask).lock.boxed()).shows(|_, _| Operator {
            holder: Box::new(|| Box::pin(ready(Ok(None)))),
            force_unlock: Box::new(|| Box::pin(ready(Ok(false)))),
        });
    let shown = holders::its_holder_is_shown_to_anybody(twin(redis, &TWIN)).await;
    caught(shown, "nobody is shown")?;
    let freed = holders::it_is_freed_by_force_and_its_holder_told(twin(redis, &TWIN)).await;
    caught(freed, "it was held")
}

/// The turns within each process.
static TURNS: LazyLock<Mutexes<String>> = LazyLock::new(Mutexes::default);

/// A process queues its own contenders before they have a node.
async fn in_turn_at_home(client: ZkClient, name: String, wait: Duration) -> Answer<Guard> {
    let owner = client.owner().to_string();
    let process = owner.split(':').next().unwrap_or_default();
    let turn = TURNS.lock(&format!("{name}-{process}"), wait).await;
    let _turn = turn.ok_or_else(|| wait_over_error(&name, wait))?;
    // The real lock creates its node here.
    client.lock(&name).acquire(wait).await
}

#[apply(test!)]
async fn a_process_with_a_queue_of_its_own_is_caught(zookeeper: &'static ZooKeeper) -> Result {
    static TWIN: Kind<ZooKeeper> =
        Kind::new("twin", &[], |member: &Member, name, _| fixed_lock(name, member.client.clone(), in_turn_at_home)).queues();
    let twin = Family { server: zookeeper, kind: &TWIN };
    let verdict = clauses::waiters_are_served_in_order_of_arrival(twin).await;
    caught(verdict, "the waiter is queued")
}
