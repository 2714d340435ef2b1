//! What a round measures, and what is wanted of each: the lists of the bench.

use super::{direct::Work as Sql, figure::Wanted, ids::Way};
use crate::{
    load::plan::{Plan, Timed},
    seckill, stock,
};
use std::time::Duration;

/// Connections of the ratios.
pub(super) const CONNECTIONS: usize = 100;
/// How many wait for a lock, from few to many.
pub(super) const WAITERS: [usize; 3] = [10, CONNECTIONS, 1000];

const fn timed(warm_up_ms: u64, measured_ms: u64) -> Timed {
    Timed::closed(
        Duration::from_millis(warm_up_ms),
        Duration::from_millis(measured_ms),
    )
}

/// How long each strategy is measured in each round.
const TIME: Timed = timed(500, 1500);
/// The same of a lock: until 1,000 stand in its queue, and some of them have been served.
const LOCK_TIME: Timed = timed(3000, 2000);
/// The same of a step of the seckill.
const ORDER_TIME: Timed = timed(500, 1000);

/// What is measured.
#[derive(Debug, Clone, Copy)]
pub(super) enum Work {
    /// Pieces that a strategy sells to three instances; `waiters` where it is measured as a lock.
    Sell {
        slug: &'static str,
        waiters: Option<usize>,
    },
    /// Orders by a step of the seckill, each of another user: of three instances; of one where each stays a while inside.
    Order { step: &'static str, hold_ms: u64 },
    /// The SQL of a strategy without HTTP.
    Sql(Sql),
    /// One uncontended client of a lock.
    Alone(Lock),
    /// Numbers of Redis.
    Numbers(Way),
}

/// A lock that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lock {
    Redis,
    ZooKeeper,
}

/// A figure that is the ratio of two measurements, and what is wanted of it.
pub(super) struct Wish {
    pub(super) figure: String,
    /// The measurement.
    pub(super) measured: String,
    /// The measurement that is its ceiling.
    pub(super) ceiling: String,
    /// What the ceiling is called.
    pub(super) of: &'static str,
    pub(super) wanted: Wanted,
    /// What keeps it from being better.
    pub(super) bounded_by: &'static str,
}

/// A strategy, its ceiling, the least ratio and what bounds it. A strategy that the registry does not have is left out.
const STRATEGIES: [(&str, Ceiling, f64, &str); 5] = [
    (
        "single-update",
        Ceiling::Sql(Sql::Update),
        0.6,
        "one row: each commit waits for the one before; HTTP shares the cores",
    ),
    (
        "single-update-merged",
        Ceiling::Sql(Sql::Update),
        1.0,
        "HTTP: one commit is for all who wait",
    ),
    (
        "single-update-buckets",
        Ceiling::Sql(Sql::Update),
        0.6,
        "commits of 16 rows; HTTP shares the cores",
    ),
    (
        "select-for-update",
        Ceiling::Sql(Sql::ForUpdate),
        0.7,
        "one row, locked for four round trips",
    ),
    (
        "redis-watch-merged",
        Ceiling::Strategy("redis-script"),
        0.6,
        "HTTP: one transaction is for all who wait",
    ),
];

enum Ceiling {
    Sql(Sql),
    Strategy(&'static str),
}

/// The step that the text ends with, which the others are compared to.
const RLOCK: &str = "redis-rlock";
/// The step that is to take so many times as many orders.
const STREAM: (&str, f64) = ("script-stream", 5.0);
/// The lock for each user, and the one for all, that it is to take so many times as many orders as, with such a stay inside:
/// that one lock for all users is too coarse shows on one instance, where each order stays a while inside.
const FINE: (&str, &str, f64, u64) = ("user-mutex", "global-mutex", 3.0, 5);

/// How numbers are taken, and what each way must reach of bare commands.
const NUMBERS: [(Way, f64, &str); 2] = [
    (Way::Single, 0.8, "one command for each"),
    (Way::Batch, 20.0, "one command for 100"),
];

impl Lock {
    const ALL: [Self; 2] = [Self::Redis, Self::ZooKeeper];

    pub(super) const fn slug(self) -> &'static str {
        match self {
            Self::Redis => "redis-lock",
            Self::ZooKeeper => "zk-lock",
        }
    }

    /// What its uncontended client does, the least ratio to it, and what bounds it.
    const fn alone(self) -> (&'static str, f64, &'static str) {
        match self {
            Self::Redis => (
                "one client, nobody else",
                0.9,
                "one at a time: lock, two statements, unlock",
            ),
            Self::ZooKeeper => (
                "one client: create, section, delete",
                0.8,
                "one at a time, each with two writes of ZooKeeper",
            ),
        }
    }
}

impl Work {
    /// The strategy that it asks for.
    pub(super) const fn slug(&self) -> Option<&'static str> {
        match self {
            Self::Sell { slug, .. } => Some(slug),
            _ => None,
        }
    }

    /// The load that measures it.
    pub(super) fn plan(&self, base: &str, target: &str) -> Plan {
        let strategy = match self {
            Self::Order { step, .. } => step,
            work => work.slug().unwrap_or_default(),
        };
        let mut plan = Plan::new(base, target, strategy);
        plan.threads = CONNECTIONS;
        match *self {
            Self::Order { hold_ms, .. } => Plan {
                hold_ms,
                ..plan.ordering(1, 1).timed(ORDER_TIME)
            },
            Self::Sell {
                waiters: Some(waiters),
                ..
            } => {
                plan.threads = waiters;
                plan.timed(LOCK_TIME)
            }
            _ => plan.timed(TIME),
        }
    }
}

/// What a round measures, each by its name: every ceiling next to what it is the ceiling of.
pub(super) fn measurements() -> Vec<(String, Work)> {
    let mut all: Vec<(String, Work)> = [Sql::Update, Sql::ForUpdate]
        .map(|sql| (sql.name().to_owned(), Work::Sql(sql)))
        .into();
    let sell = |slug, waiters| Work::Sell { slug, waiters };
    for (slug, ceiling, ..) in in_the_registry() {
        all.push(((*slug).into(), sell(slug, None)));
        if let Ceiling::Strategy(other) = ceiling {
            all.push(((*other).into(), sell(other, None)));
        }
    }
    for lock in Lock::ALL {
        all.push((alone(lock), Work::Alone(lock)));
        all.extend(WAITERS.map(|waiters| {
            let slug = lock.slug();
            (at(slug, waiters), sell(slug, Some(waiters)))
        }));
    }
    let steps = seckill::ALL.iter().map(|step| (step.slug, 0));
    for (step, hold_ms) in steps.chain([(FINE.0, FINE.3), (FINE.1, FINE.3)]) {
        all.push((order(step, hold_ms), Work::Order { step, hold_ms }));
    }
    all.extend(
        [Way::Incr, Way::Single, Way::Batch].map(|way| (way.name().into(), Work::Numbers(way))),
    );
    all
}

fn in_the_registry() -> impl Iterator<Item = &'static (&'static str, Ceiling, f64, &'static str)> {
    STRATEGIES
        .iter()
        .filter(|(slug, ..)| stock::find(slug).is_some())
}

/// The measurement of a lock with so many waiters.
pub(super) fn at(slug: &str, waiters: usize) -> String {
    format!("{slug} {waiters}")
}

fn alone(lock: Lock) -> String {
    format!("{}: {}", lock.slug(), lock.alone().0)
}

fn order(step: &str, hold_ms: u64) -> String {
    let stay = if hold_ms == 0 {
        String::new()
    } else {
        format!(", {hold_ms} ms inside, one instance")
    };
    format!("orders by {step}{stay}")
}

/// What is wanted of the strategies.
pub(super) fn strategies() -> impl Iterator<Item = Wish> {
    in_the_registry().map(|(slug, ceiling, least, bounded_by)| {
        let (ceiling, of) = match ceiling {
            Ceiling::Sql(sql) => (sql.name(), "the same SQL without HTTP"),
            Ceiling::Strategy(other) => (*other, *other),
        };
        Wish {
            figure: (*slug).into(),
            measured: (*slug).into(),
            ceiling: ceiling.into(),
            of,
            wanted: Wanted::Ratio(*least),
            bounded_by,
        }
    })
}

/// What is wanted of the locks with 100 waiters.
pub(super) fn lock_wishes() -> impl Iterator<Item = (Lock, Wish)> {
    Lock::ALL.into_iter().map(|lock| {
        let (of, least, bounded_by) = lock.alone();
        let wish = Wish {
            figure: lock.slug().into(),
            measured: at(lock.slug(), CONNECTIONS),
            ceiling: alone(lock),
            of,
            wanted: Wanted::Ratio(least),
            bounded_by,
        };
        (lock, wish)
    })
}

/// What is wanted of the steps of the seckill. What a lock for each user costs shows against the step that asks for no order at
/// all; what the row in MySQL costs, against the one that asks Redis alone and writes behind.
pub(super) fn orders() -> impl Iterator<Item = Wish> {
    let wish = |step: &'static str, of: &'static str, hold_ms, wanted| Wish {
        figure: order(step, hold_ms),
        measured: order(step, hold_ms),
        ceiling: order(of, hold_ms),
        of,
        wanted,
        bounded_by: match step {
            "global-mutex" => "one order at a time in each instance",
            "script-stream" => "HTTP; the task that writes behind shares the cores",
            _ => "one row of the voucher: each commit waits for the one before",
        },
    };
    let steps = seckill::ALL.iter().map(move |step| {
        let wanted = if step.slug == STREAM.0 {
            Wanted::Ratio(STREAM.1)
        } else {
            Wanted::Nothing
        };
        wish(step.slug, RLOCK, 0, wanted)
    });
    steps.chain([wish(FINE.0, FINE.1, FINE.3, Wanted::Ratio(FINE.2))])
}

/// What is wanted of the global ids.
pub(super) fn numbers() -> impl Iterator<Item = Wish> {
    NUMBERS.into_iter().map(|(way, least, bounded_by)| Wish {
        figure: way.name().into(),
        measured: way.name().into(),
        ceiling: Way::Incr.name().into(),
        of: Way::Incr.name(),
        wanted: Wanted::Ratio(least),
        bounded_by,
    })
}
