//! [003] The nodes of Redlock have answered, and their answers come after the keys have ended.
//!
//! 1. All five nodes give A the key. Their answers are held up on the way for longer than the lease.
//! 2. The keys end. B gets all five, and reads.
//! 3. Now the answers come. A client that counts nodes and not time believes that the lock is its own, and writes beside B.
//!
//! On its cure, Redlock as the text has it, A counts how long the asking took: what is left of the lease is nothing, and it has
//! no lock. (Ours gives up on a node after a tenth of the lease, so it is refused even before the answers come.)
//!
//! (It is the way that is slow and not the client that is paused: to the client both are the same, and the way can be hit.)
//!
//! Next: `jumping_clock.rs`.

use super::*;
use crate::{section::lua, stock};
use futures::future::join_all;
use redis::Script;
use std::sync::LazyLock;

/// The lease of A in milliseconds.
const LEASE_MS: u64 = 1600;
/// Longer than the lease, and shorter than the reply timeout of the client.
const ANSWER_DELAY_MS: u64 = 1900;

/// Deletes the key on a node if its value is this owner's.
static DELETE_IF_MINE: LazyLock<Script> =
    LazyLock::new(|| lua::script(include_str!("../../stock/strategies/lua/delete_if_mine.lua")));

pub(super) const RACE: Race = Race {
    lessons: &["003.redlock.answers"],
    title: Bilingual::of("红锁的答复来得太晚", "Redlock's answers come too late"),
    breaks: Bilingual::of(
        "只数节点，不算用了多久：锁早已过期，还当成拿到了",
        "it counts nodes and not time: the lock has ended long ago, and it believes that it has it",
    ),
    cure: Bilingual::of("租约减去询问用掉的时间，剩下的才算数", "what counts is the lease, less the time that the asking took"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[
        // It connects to the nodes: with late answers that would take too long.
        say("A 先买一件：各节点都好", "A buys a piece: all nodes are well"),
        A.finishes(),
        say("A 收各节点的答复要 1.9 秒，比租约 1.6 秒还久", "the nodes' answers to A take 1.9 s, and the lease is 1.6 s"),
        A.gets_answers_late(ANSWER_DELAY_MS),
        A.impatient().self_ending_lease(LEASE_MS, LEASE_MS).will_stop_at(Point::Read),
        say(
            "各节点都把锁给了 A，答复还在路上；锁过期了",
            "all nodes give A the lock, their answers are under way, and the lock ends",
        ),
        Custom(|play| Box::pin(wait_until_keys_came_and_ended(play))),
        say("B 拿到锁，读", "B takes the lock, and reads"),
        B.stops_at(Point::Read),
    ],
    flaw: Variant {
        act: Act::custom_selling(Store::MySql, "redis-redlock-untimed", &[Name::RedisNodes("redLock")], |ctx, job| {
            Box::pin(lock_without_time_check(ctx, job))
        }),
        steps: &[
            say("答复到了，五个都同意：A 也进来了", "the answers come, all five agree: A gets in too"),
            A.stops_at(Point::Read),
            A.gets_answers_late(0),
            say("B 写，A 也写", "B writes, and so does A"),
            B.finishes(),
            A.finishes(),
        ],
        expected: ExpectedResult::sold(3, 2).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("redis-redlock"),
        steps: &[
            say("答复太晚，A 不当成拿到了锁", "the answers are too late, and A does not take the lock for its own"),
            A.fails(),
            Note("A refused"),
            say("B 写完，释放锁", "B writes, and releases"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(2, 2).inside(1).noting("A refused", "A 没有拿到", "A does not have it"),
    },
};

/// Waits until A's keys have been seen, by their short lease, and then until they have ended. They must be seen first,
/// because a client that gives up releases its keys.
async fn wait_until_keys_came_and_ended(play: &Play) -> Result<(), Error> {
    play.wait_until_lock_seen(ANSWER_DELAY_MS).await?;
    play.wait_until_lease_ends(false).await
}

/// Takes a piece under a Redlock that counts the nodes that agree, and not the time of asking. Times out without a majority.
async fn lock_without_time_check(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let (name, owner) = (job.redis_name("redLock"), job.owner(ctx).to_string());
    let (key, lease) = (ctx.redis_key(&name), job.lease(ctx).as_millis());
    let lease = u64::try_from(lease).unwrap_or(u64::MAX);
    let asked = ctx.nodes.iter().map(async |node| {
        let mut set = redis::cmd("SET");
        set.arg(&key).arg(&owner).arg("NX").arg("PX").arg(lease);
        let answer: Option<String> = set.query_async(&mut node.connection()).await.ok()?;
        answer
    });
    let agreed = join_all(asked).await.into_iter().flatten().count();
    if agreed <= ctx.nodes.len() / 2 {
        return Err(job.timed_out(&name));
    }
    let section = stock::find("none").ok_or_else(|| Error::NoStrategy("none".to_owned()))?;
    let outcome = (section.spec.deduct)(ctx, job).await;
    for node in ctx.nodes.iter() {
        let mut delete = DELETE_IF_MINE.key(&key);
        let deleted: Result<i64, _> = delete.arg(&owner).invoke_async(&mut node.connection()).await;
        if let Err(error) = deleted {
            tracing::warn!(%error, key, "not released on a node");
        }
    }
    outcome
}
