//! The lists of the bench: the threshold of each result, and the measurements of a round.

use super::{ceilings::BareWork, result::Goal};
use crate::{
    load::plan::{ONE_INSTANCE, Plan, THREE_BEHIND_NGINX, Timed},
    seckill,
};
use oversell_lab::addresses::Addresses;
use std::{collections::BTreeSet, fmt, time::Duration};

/// How many wait for a lock, from few to many; its ratio to the ceiling is measured with the second number.
pub(super) const WAITERS: [usize; 3] = [10, 100, 1000];

/// A warm-up and a measured time, in ms, in a closed loop.
const fn timed(warm_up_ms: u64, measured_ms: u64) -> Timed {
    Timed::closed(
        Duration::from_millis(warm_up_ms),
        Duration::from_millis(measured_ms),
    )
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
    BareWork(BareWork),
}

/// A ratio of two measurements, and its goal.
pub(super) struct Threshold {
    pub(super) measured: Work,
    /// The measurement that is its ceiling.
    pub(super) ceiling: Work,
    /// The name of the ceiling in the table.
    pub(super) ceiling_name: &'static str,
    pub(super) goal: Goal,
    /// The bottleneck that keeps the ratio from being better.
    pub(super) bounded_by: &'static str,
}

/// The ceiling's name in the table, for a strategy of one transaction in MySQL.
const SAME_SQL: &str = "the same SQL without HTTP";

/// The thresholds for strategies.
const SALES: [Threshold; 7] = [
    Threshold {
        measured: Work::Sell("single-update"),
        ceiling: Work::BareWork(BareWork::Update),
        ceiling_name: SAME_SQL,
        goal: Goal::Ratio(0.6),
        bounded_by: "one row: each commit waits for the one before; HTTP shares the cores",
    },
    Threshold {
        measured: Work::Sell("single-update-merged"),
        ceiling: Work::BareWork(BareWork::Update),
        ceiling_name: SAME_SQL,
        goal: Goal::Ratio(1.0),
        bounded_by: "HTTP: one commit is for all who wait",
    },
    Threshold {
        measured: Work::Sell("single-update-buckets"),
        ceiling: Work::BareWork(BareWork::Update),
        ceiling_name: SAME_SQL,
        goal: Goal::Ratio(0.6),
        bounded_by: "commits of 16 rows; HTTP shares the cores",
    },
    Threshold {
        measured: Work::Sell("select-for-update"),
        ceiling: Work::BareWork(BareWork::ForUpdate),
        ceiling_name: SAME_SQL,
        goal: Goal::Ratio(0.7),
        bounded_by: "one row, locked for four round trips",
    },
    Threshold {
        measured: Work::Sell("redis-watch-merged"),
        ceiling: Work::Sell("redis-script"),
        ceiling_name: "redis-script",
        goal: Goal::Ratio(0.6),
        bounded_by: "HTTP: one transaction is for all who wait",
    },
    Threshold {
        measured: Work::Wait("redis-lock", WAITERS[1]),
        ceiling: Work::BareWork(BareWork::RedisLock),
        ceiling_name: "one client, nobody else",
        goal: Goal::Ratio(0.9),
        bounded_by: "one at a time: lock, two statements, unlock",
    },
    Threshold {
        measured: Work::Wait("zk-lock", WAITERS[1]),
        ceiling: Work::BareWork(BareWork::ZkNode),
        ceiling_name: "one client: create, section, delete",
        goal: Goal::Ratio(0.8),
        bounded_by: "one at a time, each with two writes of ZooKeeper",
    },
];

/// The thresholds for global ids.
const IDS: [Threshold; 2] = [
    Threshold {
        measured: Work::BareWork(BareWork::Id),
        ceiling: Work::BareWork(BareWork::Incr),
        ceiling_name: "INCR alone",
        goal: Goal::Ratio(0.8),
        bounded_by: "one command for each",
    },
    Threshold {
        measured: Work::BareWork(BareWork::Ids),
        ceiling: Work::BareWork(BareWork::Incr),
        ceiling_name: "INCR alone",
        goal: Goal::Ratio(20.0),
        bounded_by: "one command for 100",
    },
];

/// The thresholds for the steps of the seckill. The cost of a lock for each user shows against the step that the text ends with;
/// the cost of the row in MySQL, against the step that asks Redis alone and writes behind. That one lock for all users is too
/// coarse shows on one instance, where each order stays a while inside.
fn order_thresholds() -> impl Iterator<Item = Threshold> {
    let threshold = |step, ceiling_name, hold_ms, goal| Threshold {
        measured: Work::Order { step, hold_ms },
        ceiling: Work::Order {
            step: ceiling_name,
            hold_ms,
        },
        ceiling_name,
        goal,
        bounded_by: match step {
            "global-mutex" => "one order at a time in each instance",
            "script-stream" => "HTTP; the task that writes behind shares the cores",
            _ => "one row of the voucher: each commit waits for the one before",
        },
    };
    let steps = seckill::ALL.iter().map(move |step| {
        let goal = match step.slug {
            "script-stream" => Goal::Ratio(5.0),
            _ => Goal::Nothing,
        };
        threshold(step.slug, "redis-rlock", 0, goal)
    });
    steps.chain([threshold("user-mutex", "global-mutex", 5, Goal::Ratio(3.0))])
}

/// All thresholds, in the order of the table.
pub(super) fn thresholds() -> impl Iterator<Item = Threshold> {
    SALES.into_iter().chain(order_thresholds()).chain(IDS)
}

/// The measurements of a round: every ceiling next to the strategy that it bounds, and each lock with all numbers of waiters.
pub(super) fn measurements() -> Vec<Work> {
    let mut all = Vec::new();
    for threshold in thresholds() {
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
            Self::Order { .. } | Self::BareWork(_) => None,
        }
    }

    /// The name of the measurement in the table: the same for all numbers of waiters of a lock.
    pub(super) fn name(self) -> String {
        self.strategy()
            .map_or_else(|| self.to_string(), str::to_owned)
    }

    /// The load that measures the rate; an error with the work if that needs no HTTP.
    pub(super) fn plan(self, at: &Addresses) -> Result<Plan, BareWork> {
        let on_three = |slug| Plan::new(&at.http, THREE_BEHIND_NGINX, slug);
        Ok(match self {
            Self::BareWork(bare) => return Err(bare),
            Self::Sell(slug) => on_three(slug).with_duration(MEASURED_TIME),
            Self::Wait(slug, threads) => Plan {
                threads,
                ..on_three(slug).with_duration(LOCK_TIME)
            },
            Self::Order { step, hold_ms } => {
                let plan = match (hold_ms, at.instances.first()) {
                    (1.., Some(one)) => Plan::new(&one.url, ONE_INSTANCE, step),
                    _ => on_three(step),
                };
                Plan {
                    hold_ms,
                    ..plan.for_orders(1, 1).with_duration(ORDER_TIME)
                }
            }
        })
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sell(slug) => f.write_str(slug),
            Self::Wait(slug, waiters) => write!(f, "{slug} {waiters}"),
            Self::Order { step, hold_ms: 0 } => write!(f, "orders by {step}"),
            Self::Order { step, hold_ms } => {
                write!(f, "orders by {step}, {hold_ms} ms inside, one instance")
            }
            Self::BareWork(bare) => bare.fmt(f),
        }
    }
}
