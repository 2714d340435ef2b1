//! The lists of the bench: the threshold of each result, and the measurements of a round.

use super::{
    ceilings::BareWork,
    result::{Goal, named},
};
use crate::{
    load::plan::{ONE_INSTANCE, Plan, THREE_BEHIND_NGINX, Timed},
    seckill,
};
use Work::{Bare, Order, Sell, Wait};
use oversell_lab::{addresses::Addresses, terminal::bilingual::Bilingual};
use std::{collections::BTreeSet, time::Duration};

/// How many wait for a lock, from few to many; its ratio to the ceiling is measured with the second number.
pub(super) const WAITERS: [usize; 3] = [10, 100, 1000];

/// A warm-up and a measured time, in ms, in a closed loop.
const fn timed(warm_up_ms: u64, measured_ms: u64) -> Timed {
    Timed::closed(Duration::from_millis(warm_up_ms), Duration::from_millis(measured_ms))
}

/// How long each strategy is measured in each round: short, so that a slow minute hits the strategy and its ceiling alike.
const MEASURED_TIME: Timed = timed(500, 1500);
/// How long a lock is measured: long enough for a queue of 1,000 to form and move.
const LOCK_TIME: Timed = timed(3000, 2000);
/// How long a step of the seckill is measured: shorter, because there are many steps.
const ORDER_TIME: Timed = timed(500, 1000);

/// One measurement of a round: a rate per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    /// Pieces that a strategy sells to three instances, from 100 connections.
    Sell(&'static str),
    /// Pieces sold under a lock with this many waiters.
    Wait(&'static str, usize),
    /// Orders by a step of the seckill, each of another user: at three instances, or at one if each order stays inside for a while.
    Order { step: &'static str, hold_ms: u64 },
    /// The work of a ceiling, without HTTP.
    Bare(BareWork),
}

/// A ratio of two measurements, its goal, and the bottleneck that keeps the ratio from being better.
pub(super) struct Threshold {
    pub(super) measured: Work,
    /// The measurement that is its ceiling.
    pub(super) ceiling: Work,
    pub(super) goal: Goal,
    pub(super) bounded_by: Bilingual,
}

/// Rows of the table of thresholds: what is measured, its ceiling, the goal, and the bottleneck in Chinese and in English.
macro_rules! thresholds {
    ($($measured:expr, $ceiling:expr, $goal:expr, $zh:literal, $en:literal;)*) => {
        [$(Threshold {
            measured: $measured,
            ceiling: $ceiling,
            goal: $goal,
            bounded_by: Bilingual::of($zh, $en),
        }),*]
    };
}

/// The thresholds for strategies.
const SALES: [Threshold; 8] = thresholds! {
    Sell("single-update"), Bare(BareWork::Update), Goal::Ratio(0.6),
        "一行：提交要等前一个；HTTP 也占核", "one row: each commit waits for the one before; HTTP shares the cores";
    Sell("single-update-merged"), Bare(BareWork::Update), Goal::Ratio(1.0),
        "HTTP：一次提交为所有等着的人", "HTTP: one commit is for all who wait";
    Sell("single-update-buckets"), Bare(BareWork::Update), Goal::Ratio(0.6),
        "16 行的提交；HTTP 也占核", "commits of 16 rows; HTTP shares the cores";
    Sell("select-for-update"), Bare(BareWork::ForUpdate), Goal::Ratio(0.7),
        "一行，锁住四次往返", "one row, locked for four round trips";
    Sell("redis-watch-merged"), Sell("redis-script"), Goal::Ratio(0.6),
        "HTTP：一个事务为所有等着的人", "HTTP: one transaction is for all who wait";
    Wait("redis-lock", WAITERS[1]), Bare(BareWork::RedisLock), Goal::Ratio(0.9),
        "一次一个：加锁、两条语句、解锁", "one at a time: lock, two statements, unlock";
    Wait("zk-lock", WAITERS[1]), Bare(BareWork::ZkNode), Goal::Ratio(0.8),
        "一次一个，各写 ZooKeeper 两次", "one at a time, each with two writes of ZooKeeper";
    Wait("etcd-lock", WAITERS[1]), Bare(BareWork::EtcdLock), Goal::Ratio(0.9),
        "一次一个，各写 etcd 三次", "one at a time, each with three writes of etcd";
};

/// The thresholds for global ids.
const IDS: [Threshold; 2] = thresholds! {
    Bare(BareWork::Id), Bare(BareWork::Incr), Goal::Ratio(0.8), "每个一条命令", "one command for each";
    Bare(BareWork::Ids), Bare(BareWork::Incr), Goal::Ratio(20.0), "一百个一条命令", "one command for 100";
};

/// The thresholds for the steps of the seckill. The cost of a lock for each user shows against the step that the text ends with;
/// the cost of the row in MySQL, against the step that asks Redis alone and writes behind. That one lock for all users is too
/// coarse shows on one instance, where each order stays a while inside.
fn order_thresholds() -> impl Iterator<Item = Threshold> {
    let order = |step, hold_ms| Order { step, hold_ms };
    let steps = seckill::ALL.iter().flat_map(move |step| {
        let (slug, ceiling) = (step.slug, order("redis-rlock", 0));
        match slug {
            "global-mutex" => thresholds! {
                order(slug, 0), ceiling, Goal::Nothing, "每个实例一次一单", "one order at a time in each instance";
            },
            "script-stream" => thresholds! {
                order(slug, 0), ceiling, Goal::Ratio(5.0),
                    "HTTP；后台写库的任务也占核", "HTTP; the task that writes behind shares the cores";
            },
            _ => thresholds! {
                order(slug, 0), ceiling, Goal::Nothing,
                    "优惠券的一行：提交要等前一个", "one row of the voucher: each commit waits for the one before";
            },
        }
    });
    steps.chain(thresholds! {
        order("user-mutex", 5), order("global-mutex", 5), Goal::Ratio(3.0),
            "优惠券的一行：提交要等前一个", "one row of the voucher: each commit waits for the one before";
    })
}

/// All thresholds, in the order of the table.
pub(super) fn thresholds() -> impl Iterator<Item = Threshold> {
    SALES.into_iter().chain(order_thresholds()).chain(IDS)
}

/// The measurements of a round: every ceiling next to the strategy that it bounds, and each lock with all numbers of waiters;
/// those of etcd only with `etcd`.
pub(super) fn measurements(etcd: bool) -> Vec<Work> {
    let mut all = Vec::new();
    for threshold in thresholds().filter(|threshold| etcd || threshold.ceiling != Work::Bare(BareWork::EtcdLock)) {
        all.push(threshold.ceiling);
        match threshold.measured {
            Work::Wait(slug, _) => all.extend(WAITERS.map(|waiters| Work::Wait(slug, waiters))),
            work => all.push(work),
        }
    }
    let mut seen = BTreeSet::new();
    all.retain(|work| seen.insert(*work));
    all
}

impl Work {
    /// The strategy that is measured, if it is one.
    pub(super) const fn strategy(self) -> Option<&'static str> {
        match self {
            Self::Sell(slug) | Self::Wait(slug, _) => Some(slug),
            Self::Order { .. } | Self::Bare(_) => None,
        }
    }

    /// The name of the measurement in the table: the same for all numbers of waiters of a lock.
    pub(super) fn name(self) -> Bilingual {
        match self {
            Self::Sell(slug) | Self::Wait(slug, _) => Bilingual::of(slug, slug),
            Self::Order { step, hold_ms: 0 } => named!("下单：{step}", "orders by {step}"),
            Self::Order { step, hold_ms } => {
                named!("下单：{step}, {hold_ms} 毫秒在临界区，一个实例", "orders by {step}, {hold_ms} ms inside, one instance")
            }
            Self::Bare(bare) => bare.name(),
        }
    }

    /// Its name in the table as the ceiling of another measurement.
    pub(super) fn ceiling_name(self) -> Bilingual {
        match self {
            Self::Order { step, .. } => Bilingual::of(step, step),
            work => work.name(),
        }
    }

    /// The load that measures the rate; an error with the work if that needs no HTTP.
    pub(super) fn plan(self, at: &Addresses) -> Result<Plan, BareWork> {
        let on_three = |slug| Plan::new(&at.http, THREE_BEHIND_NGINX, slug);
        Ok(match self {
            Self::Bare(bare) => return Err(bare),
            Self::Sell(slug) => on_three(slug).with_duration(MEASURED_TIME),
            Self::Wait(slug, threads) => Plan { threads, ..on_three(slug).with_duration(LOCK_TIME) },
            Self::Order { step, hold_ms } => {
                let plan = match (hold_ms, at.instances.first()) {
                    (1.., Some(one)) => Plan::new(&one.url, ONE_INSTANCE, step),
                    _ => on_three(step),
                };
                Plan { hold_ms, ..plan.for_orders(1, 1).with_duration(ORDER_TIME) }
            }
        })
    }
}
