//! The fault matrix, like those of Jepsen: strategies × engines × faults, and what buyers observed of each.
//!
//! 1. An `Engine` is a lab, and the server that is broken: the only one, the one that is written, or the leader. All strategies
//!    that need it sell at the same time, each its own product.
//! 2. A `Fault` is injected, stays for some seconds, and is mended. Then each strategy must sell again.
//! 3. A `FaultResult` has the answers to a strategy's buyers, the pieces that left the stock, and the longest time without a sale.
//!    `FaultResult::broken_promise` compares it with the strategy's promise.
//!
//! The matrix does not show which of two buyers owns a piece that was sold to both. It kills processes, not machines, so it does
//! not show what is lost with the cache of a disk.
//!
//! Next: `run.rs` runs it; `page.rs` prints it; `command.rs`.

pub(crate) mod command;
mod page;
mod run;

#[cfg(test)]
pub(super) use page::page;

use crate::trials::buyers::BuyerAnswers;
use oversell::{
    claims::{Words, words},
    seckill::{
        self,
        check::{OrderAnswers, VoucherRecords, check_orders},
    },
    server::Server,
    stock::{self, Promise, Store},
};
use oversell_lab::terminal::bilingual::Bilingual;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A lab, the server of it that is broken, and the faults and strategies that are tried.
#[derive(Debug)]
pub(super) struct Engine {
    id: &'static str,
    title: Bilingual,
    /// The options of `oversell lab`.
    lab: &'static str,
    breaks: Server,
    faults: &'static [Fault],
    strategies: &'static [&'static str],
}

/// What happens to the server: nothing, a kill, a pause, a cut from the network, or a planned fail-over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Fault {
    /// The baseline: nothing breaks.
    None,
    /// `kill -9`, then a start.
    Kill,
    /// SIGSTOP, then SIGCONT, below the session of ZooKeeper.
    Pause,
    /// The same for longer than a session or lease.
    Standstill,
    /// Cut off from the instances, then connected again; a Redis with Sentinels is cut off from its group instead.
    Cut,
    /// A planned fail-over to another server.
    Promote,
}

impl Fault {
    const fn words(self) -> Bilingual {
        match self {
            Self::None => Bilingual::of("无", "none"),
            Self::Kill => Bilingual::of("被杀", "killed"),
            Self::Pause => Bilingual::of("停顿", "paused"),
            Self::Standstill => Bilingual::of("停顿 15 s", "paused for 15 s"),
            Self::Cut => Bilingual::of("断开", "cut off"),
            Self::Promote => Bilingual::of("计划内切换", "planned fail-over"),
        }
    }
}

/// The faults that every server can have.
const COMMON_FAULTS: &[Fault] = &[Fault::None, Fault::Kill, Fault::Pause, Fault::Cut];
/// The faults of a single server that keeps sessions or leases.
const FAULTS_WITH_STANDSTILL: &[Fault] = &[Fault::None, Fault::Kill, Fault::Pause, Fault::Standstill, Fault::Cut];
/// The strategies that sell from MySQL.
const STRATEGIES_IN_MYSQL: &[&str] = &[
    "single-update",
    "single-update-retried",
    "single-update-node-buckets",
    "select-for-update",
    "select-for-update-retried",
    "version-cas",
    "version-cas-retried",
    "mysql-named-lock",
];
/// The strategies and steps that depend on Redis.
const STRATEGIES_IN_REDIS: &[&str] = &["redis-script", "script-stream", "redis-lock", "redis-fenced"];
/// The strategies that depend on ZooKeeper.
const STRATEGIES_IN_ZOOKEEPER: &[&str] = &["zk-lock", "zk-fenced"];
/// The strategies that depend on etcd.
const STRATEGIES_IN_ETCD: &[&str] = &["etcd-lock", "etcd-fenced"];

/// All engines. Engines with the same lab are neighbours, so that it is started once.
static ENGINES: [Engine; 8] = [
    Engine {
        id: "mysql",
        title: Bilingual::of("一个 MariaDB", "One MariaDB"),
        lab: SINGLE_SERVERS,
        breaks: Server::MySql,
        faults: COMMON_FAULTS,
        strategies: STRATEGIES_IN_MYSQL,
    },
    Engine {
        id: "redis",
        title: Bilingual::of("一个 Redis", "One Redis"),
        lab: SINGLE_SERVERS,
        breaks: Server::Redis,
        faults: COMMON_FAULTS,
        strategies: STRATEGIES_IN_REDIS,
    },
    Engine {
        id: "zookeeper",
        title: Bilingual::of("一个 ZooKeeper", "One ZooKeeper"),
        lab: SINGLE_SERVERS,
        breaks: Server::ZooKeeper,
        faults: FAULTS_WITH_STANDSTILL,
        strategies: STRATEGIES_IN_ZOOKEEPER,
    },
    Engine {
        id: "galera-one",
        title: Bilingual::of(
            "三个节点的 Galera，只写一个：`--galera 3 --writers one`",
            "Galera with three nodes, one of which is written: `--galera 3 --writers one`",
        ),
        lab: "--instances 0,0,0 --redis-ports 0 --links --galera 3 --writers one",
        breaks: Server::MySql,
        faults: COMMON_FAULTS,
        strategies: STRATEGIES_IN_MYSQL,
    },
    Engine {
        id: GALERA_EACH_ID,
        title: Bilingual::of(
            "三个节点的 Galera，每个都写：`--galera 3 --writers each`",
            "Galera with three nodes, each of which is written: `--galera 3 --writers each`",
        ),
        lab: "--instances 0,0,0 --redis-ports 0 --links --galera 3 --writers each",
        breaks: Server::MySql,
        faults: COMMON_FAULTS,
        strategies: STRATEGIES_IN_MYSQL,
    },
    Engine {
        id: SENTINELS_ID,
        title: Bilingual::of(
            "Redis 一主两从、三个 Sentinel：`--sentinels 3`",
            "Redis with two replicas and three Sentinels: `--sentinels 3`",
        ),
        lab: "--instances 0,0,0 --redis-ports 0 --sentinels 3",
        breaks: Server::Redis,
        faults: &[Fault::None, Fault::Kill, Fault::Pause, Fault::Cut, Fault::Promote],
        strategies: STRATEGIES_IN_REDIS,
    },
    Engine {
        id: ENSEMBLE_ID,
        title: Bilingual::of("三台 ZooKeeper：`--zookeeper 3`", "Three ZooKeeper servers: `--zookeeper 3`"),
        lab: "--instances 0,0,0 --redis-ports 0 --links --zookeeper 3",
        breaks: Server::ZooKeeper,
        faults: COMMON_FAULTS,
        strategies: STRATEGIES_IN_ZOOKEEPER,
    },
    Engine {
        id: "etcd",
        title: Bilingual::of("一个 etcd，租约 5 s：`--etcd 1`", "One etcd, leases of 5 s: `--etcd 1`"),
        lab: SINGLE_ETCD,
        breaks: Server::Etcd,
        faults: FAULTS_WITH_STANDSTILL,
        strategies: STRATEGIES_IN_ETCD,
    },
];
/// The options of a lab with one server of each kind.
const SINGLE_SERVERS: &str = "--instances 0,0,0 --redis-ports 0 --links";
/// The same with etcd.
const SINGLE_ETCD: &str = "--instances 0,0,0 --redis-ports 0 --links --etcd 1";
// The ids of the engines that rules treat apart.
const GALERA_EACH_ID: &str = "galera-each";
const SENTINELS_ID: &str = "sentinels";
const ENSEMBLE_ID: &str = "ensemble";

/// A time this long without a sale shows a fault: while all is well there is a sale every 0.3 s.
const MIN_NOTICED_GAP_MS: u64 = 1000;

impl Engine {
    /// Whether every strategy must notice the fault, because a killed or paused server serves nobody. If one of several
    /// servers is only cut off, the instances may be connected to another. A planned fail-over or an election can be over
    /// between two purchases, so there the servers are asked for the new leader.
    fn must_be_noticed(&self, fault: Fault) -> bool {
        match fault {
            Fault::None | Fault::Promote => false,
            Fault::Cut => [SINGLE_SERVERS, SINGLE_ETCD].contains(&self.lab),
            Fault::Kill | Fault::Pause | Fault::Standstill => self.id != ENSEMBLE_ID,
        }
    }

    /// Whether a strategy or step promises to sell each piece once and to lose none. A safe one does, unless its stock is in
    /// a Redis whose replica may lack the last sales. One with a lease does while nothing breaks, unless each node has its
    /// own lock.
    fn promises(&self, slug: &str, fault: Fault) -> bool {
        let step = seckill::find(slug).map(|step| (step.spec.promise, Store::Redis));
        let strategy = stock::find(slug).map(|strategy| (strategy.spec.promise, strategy.spec.store));
        match strategy.or(step) {
            Some((Promise::Safe, store)) => store == Store::MySql || fault == Fault::None || self.id != SENTINELS_ID,
            Some((Promise::Lease, _)) => fault == Fault::None && (self.id != GALERA_EACH_ID || slug != "mysql-named-lock"),
            _ => false,
        }
    }
}

/// The results, as `oversell faults --json` writes them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Matrix {
    /// Where and how it was run; empty before the first run.
    conditions: Map<String, Value>,
    runs: Vec<FaultRun>,
}

/// One fault of one engine, with the results of its strategies.
#[derive(Debug, Serialize, Deserialize)]
struct FaultRun {
    engine: String,
    fault: Fault,
    cells: Vec<FaultResult>,
}

/// The result of one strategy under one fault: the answers to its buyers, compared with the pieces that left the stock.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct FaultResult {
    strategy: String,
    /// Whether the strategy promises to sell each piece once under this fault.
    promises: bool,
    sold: i64,
    /// Pieces that were answered as sold and are still in stock.
    lost: i64,
    /// Duplicate sales: answers with the same number left as another.
    doubled: i64,
    /// Pieces that left the stock without an answer that can account for them.
    vanished: i64,
    /// Answers that nothing was changed.
    refused: i64,
    /// Requests with an unknown effect.
    unknown: i64,
    /// The least number of unknown requests that took a piece.
    min_done: i64,
    /// The longest time since the fault from one sale to the next; `None` if the strategy never sold again.
    without_service_ms: Option<u64>,
}

impl FaultResult {
    /// Compares the buyers' answers with the pieces that left the stock; strategy, promise and gap are left empty.
    fn of(told: &BuyerAnswers, gone: i64) -> Self {
        let mut distinct = told.remaining.clone();
        distinct.sort_unstable();
        distinct.dedup();
        let doubled = signed(told.remaining.len() - distinct.len());
        let beyond = told.counts.sold - doubled - gone;
        let untold = (-beyond).max(0);
        Self {
            sold: told.counts.sold,
            lost: beyond.max(0),
            doubled,
            vanished: (untold - told.counts.unknown).max(0),
            refused: told.counts.refused,
            unknown: told.counts.unknown,
            min_done: untold.min(told.counts.unknown),
            ..Self::default()
        }
    }

    /// Compares the buyers' answers with a voucher's orders. An answered order that is not there is lost; a second order of
    /// a user or a number, or one beyond the pieces, is doubled.
    fn of_orders(told: &BuyerAnswers, records: &VoucherRecords) -> Self {
        let answers =
            OrderAnswers { orders: told.orders.clone(), unknown: u64::try_from(told.counts.unknown).unwrap_or_default() };
        let report = check_orders(records, Some(&answers));
        let lost = signed(report.lost_orders);
        let vanished = i64::try_from(report.unasked_orders).unwrap_or(i64::MAX);
        Self {
            sold: told.counts.sold,
            lost,
            doubled: signed(report.duplicate_orders + report.repeated_ids) + report.oversold,
            vanished,
            refused: told.counts.refused,
            unknown: told.counts.unknown,
            min_done: (report.orders - (told.counts.sold - lost) - vanished).max(0),
            ..Self::default()
        }
    }

    /// Whether a buyer noticed the fault: by a refusal, an unknown answer, or no sale for [`MIN_NOTICED_GAP_MS`].
    fn was_noticed(&self) -> bool {
        let waited = self.without_service_ms.is_none_or(|gap| gap >= MIN_NOTICED_GAP_MS);
        waited || self.refused + self.unknown > 0
    }

    /// The broken promise, if any. Every strategy must sell again once the fault is mended.
    fn broken_promise(&self) -> Option<Words> {
        let Self { lost, doubled, vanished, .. } = self;
        if self.promises && lost + doubled + vanished > 0 {
            return Some(words!(
                "丢了 {lost} 件，重复售出 {doubled} 件，凭空减少 {vanished} 件",
                "{lost} lost, {doubled} doubled, {vanished} gone without a buyer"
            ));
        }
        let again = self.without_service_ms.is_some() && self.sold > 0;
        (!again).then(|| Words::new("不再卖出", "no sale any more"))
    }
}

/// The number as `i64`; the greatest `i64` if it is too large.
fn signed(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials::purchases::SaleCounts;
    use oversell::seckill::check::VoucherOrder;

    fn counts(sold: i64, unknown: i64) -> SaleCounts {
        SaleCounts { sold, unknown, ..SaleCounts::default() }
    }

    fn cell(sold: i64, left: &[i64], unknown: i64, gone: i64) -> FaultResult {
        let told = BuyerAnswers { counts: counts(sold, unknown), remaining: left.to_vec(), ..BuyerAnswers::default() };
        FaultResult { promises: true, without_service_ms: Some(7), ..FaultResult::of(&told, gone) }
    }

    /// The twins: each cell breaks a promise in one way.
    #[test]
    fn a_cell_that_breaks_its_promise_is_refused() {
        // Sold, the numbers left, unknown, gone; lost, doubled, vanished, done.
        for (what, told, [lost, doubled, vanished, done], sound) in [
            ("all told", cell(3, &[9, 8, 7], 0, 3), [0, 0, 0, 0], true),
            ("no numbers", cell(3, &[], 0, 3), [0, 0, 0, 0], true),
            ("one of two unknown done", cell(3, &[], 2, 4), [0, 0, 0, 1], true),
            ("unknown, none done", cell(3, &[], 2, 3), [0, 0, 0, 0], true),
            ("sold, still there", cell(3, &[], 0, 2), [1, 0, 0, 0], false),
            ("the same beside unknowns", cell(3, &[], 2, 2), [1, 0, 0, 0], false),
            ("told to two", cell(3, &[9, 8, 8], 0, 2), [0, 1, 0, 0], false),
            ("told to two, and hidden by an unknown", cell(3, &[9, 8, 8], 1, 3), [0, 1, 0, 1], false),
            ("gone, nobody was told", cell(3, &[], 1, 5), [0, 0, 1, 1], false),
            ("nothing sold", cell(0, &[], 0, 0), [0, 0, 0, 0], false),
        ] {
            let seen = [told.lost, told.doubled, told.vanished, told.min_done];
            assert_eq!(seen, [lost, doubled, vanished, done], "{what}");
            assert_eq!(told.broken_promise().is_none(), sound, "{what}: {told:?}");
            let promised_nothing = FaultResult { promises: false, ..told.clone() };
            assert_eq!(promised_nothing.broken_promise().is_none(), told.sold > 0, "{what}");
        }
        let never_again = FaultResult { without_service_ms: None, ..cell(3, &[], 0, 3) };
        assert!(never_again.broken_promise().is_some());
    }

    /// The twins of orders: lost, written twice, and never asked for.
    #[test]
    fn orders_that_are_not_as_they_were_answered_are_refused() {
        let order = |order_id, user_id| VoucherOrder { order_id, user_id };
        let cell = |records: &[VoucherOrder], unknown| {
            let told =
                BuyerAnswers { counts: counts(2, unknown), orders: vec![order(1, 10), order(2, 20)], ..BuyerAnswers::default() };
            let records =
                VoucherRecords { pieces: 100, stock: 100 - signed(records.len()), redis_stock: None, orders: records.to_vec() };
            FaultResult { promises: true, without_service_ms: Some(7), ..FaultResult::of_orders(&told, &records) }
        };
        let [first, second, third] = [order(1, 10), order(2, 20), order(3, 30)];
        for (what, cell, [lost, doubled, vanished, done], sound) in [
            ("as answered", cell(&[first, second], 0), [0, 0, 0, 0], true),
            ("one unknown, done", cell(&[first, second, third], 1), [0, 0, 0, 1], true),
            ("answered, not there", cell(&[first], 0), [1, 0, 0, 0], false),
            ("nobody asked", cell(&[first, second, third], 0), [0, 0, 1, 0], false),
            ("twice for a user", cell(&[first, second, order(3, 10)], 1), [0, 1, 0, 1], false),
        ] {
            let seen = [cell.lost, cell.doubled, cell.vanished, cell.min_done];
            assert_eq!(seen, [lost, doubled, vanished, done], "{what}");
            assert_eq!(cell.broken_promise().is_none(), sound, "{what}: {cell:?}");
        }
    }

    /// The twin: a run without a fault.
    #[test]
    fn a_fault_that_no_buyer_noticed_does_not_count() {
        let seen = |refused, gap| FaultResult { refused, without_service_ms: gap, ..cell(3, &[], 0, 3) };
        assert!(!seen(0, Some(330)).was_noticed(), "all was well");
        assert!(seen(1, Some(330)).was_noticed() && seen(0, Some(5025)).was_noticed() && seen(0, None).was_noticed());
        let must_be = |id: &str| {
            let engine = ENGINES.iter().find(|known| known.id == id);
            let faults = [Fault::None, Fault::Kill, Fault::Pause, Fault::Cut];
            faults.map(|fault| engine.expect("an engine").must_be_noticed(fault))
        };
        assert_eq!(must_be("redis"), [false, true, true, true]);
        assert_eq!(must_be("sentinels"), [false, true, true, false]);
        assert_eq!(must_be("ensemble"), [false; 4]);
    }

    #[test]
    fn only_safe_strategies_promise_under_faults() {
        let promises = |engine: &str, slug: &str, fault| {
            let engine = ENGINES.iter().find(|known| known.id == engine);
            engine.expect("an engine").promises(slug, fault)
        };
        for fault in [Fault::None, Fault::Kill, Fault::Pause, Fault::Cut, Fault::Promote] {
            assert!(promises(SENTINELS_ID, "redis-fenced", fault));
            assert!(promises("ensemble", "zk-fenced", fault));
            assert!(promises(GALERA_EACH_ID, "version-cas-retried", fault));
            for slug in ["redis-script", "script-stream"] {
                assert!(promises("redis", slug, fault));
            }
            for slug in ["redis-lock", "redis-script", "script-stream"] {
                assert_eq!(promises(SENTINELS_ID, slug, fault), fault == Fault::None);
            }
        }
        assert!(promises("galera-one", "mysql-named-lock", Fault::None));
        assert!(!promises(GALERA_EACH_ID, "mysql-named-lock", Fault::None));
    }

    #[test]
    fn each_strategy_of_an_engine_needs_its_server() {
        for engine in &ENGINES {
            for slug in engine.strategies {
                let needs = match stock::find(slug) {
                    Some(strategy) => strategy.spec.needs,
                    None => {
                        assert!(seckill::find(slug).is_some(), "no {slug}");
                        continue;
                    }
                };
                assert!(needs.contains(&engine.breaks), "{slug}");
            }
        }
    }
}
