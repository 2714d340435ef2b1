//! §5 and [003]: locks of several stores under the same faults. A buyer holds the lock, a fault hits, and another buyer
//! waits. The results are the pieces that were sold twice, and how long the second buyer waited.

use crate::trials::{
    Cluster, NoVerdict, Observation, Product,
    own_lab::{OwnLab, REPLICATED},
    purchases::outcome,
};
use futures::future::{try_join, try_join_all};
use oversell::{
    claims::{Words, words},
    load::history::Outcome,
    server::Server,
    stock::Store,
};
use oversell_lab::{fault::Action, terminal::bilingual::Bilingual, wait::wait_for};
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::{sync::Barrier, time::sleep};

/// The longest wait of the second buyer: longer than a ZooKeeper session, 10 s, and than the lease of 5 s. A lock still taken
/// then needs a repair.
const MAX_WAIT: Duration = Duration::from_secs(16);
/// How long the holder pauses: longer than session and lease, so that it loses the lock; shorter than [`MAX_WAIT`].
const HOLDER_PAUSE: Duration = Duration::from_secs(13);
/// The part of the query that sets the lease; locks without a lease ignore it.
const LEASE: &str = "&lease_ms=5000";
/// How long the holder stays inside, so that the fault comes while it is there.
const STAY_MS: u64 = 6000;

/// What happens while the lock is held: nothing, its holder dies or pauses, or its server is restarted or lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LockFault {
    None,
    /// The holder's instance dies.
    HolderKilled,
    /// The holder's instance stands still, and goes on.
    HolderPaused,
    /// The server that has the lock dies, and is started again.
    ServerRestarted,
    /// The server that has the lock dies for good; another one takes over if there is one.
    ServerLost,
}

/// The faults under which the locks are compared.
pub(super) const FAULTS: [(LockFault, Bilingual); 4] = [
    (LockFault::HolderKilled, Bilingual::of("持有者被杀", "its holder killed")),
    (LockFault::HolderPaused, HOLDER_PAUSED),
    (LockFault::ServerRestarted, Bilingual::of("服务器被杀、又启动", "its server killed and started")),
    (
        LockFault::ServerLost,
        Bilingual::of(
            "服务器被杀、不再回来（Redis、ZooKeeper 有备用的，数据库没有）",
            "its server killed for good (Redis and ZooKeeper have another, the database has none)",
        ),
    ),
];
const HOLDER_PAUSED: Bilingual = Bilingual::of("持有者停顿 13 s", "its holder paused for 13 s");

/// The locks, in the order of reliability that the text claims.
const LOCKS: [&str; 3] = ["zk-lock", "redis-lock", "table-lock"];

/// The result of one lock under one fault: the pieces it oversold, and how long the second buyer waited for it.
#[derive(Debug, Clone, Copy, Serialize)]
struct LockResult {
    /// Sales beyond the pieces that left the stock.
    lost: i64,
    /// How long the second buyer waited; `None` if it never got the lock.
    blocked_ms: Option<u64>,
}

impl LockResult {
    /// Whether the lock oversold, or needs a repair.
    fn fails(self) -> bool {
        self.lost > 0 || self.blocked_ms.is_none()
    }

    fn words(self, strategy: &str) -> Words {
        match (self.lost, self.blocked_ms) {
            (1.., _) => words!("{strategy} 超卖 {} 件", "{strategy} oversold {}", self.lost),
            (_, Some(ms)) => words!("{strategy} 等 {:.1} s", "{strategy} {:.1} s of waiting", ms as f64 / 1000.0),
            (_, None) => words!("{strategy} 一直拿不到", "{strategy} never got the lock"),
        }
    }
}

/// A lock that one buyer holds and another waits for.
struct Contest<'a> {
    on: &'a Cluster,
    strategy: &'static str,
    product: Product<'a>,
}

impl<'a> Contest<'a> {
    /// Makes the product that the buyers buy.
    async fn new(on: &'a Cluster, strategy: &'static str) -> Result<Self, NoVerdict> {
        let product = on.create_product(5000).await?;
        Ok(Self { on, strategy, product })
    }

    /// Buys a piece; returns whether it was sold.
    async fn buy(&self, at: &str, more: String) -> bool {
        let more = format!("{LEASE}{more}");
        let answer = self.product.buy(at, self.strategy, &more).await;
        matches!(outcome(&answer), Outcome::Sold)
    }

    /// Runs `fault` while one buyer holds the lock and another waits, then `repair`. Returns the pieces sold, and the wait in ms
    /// unless it is longer than [`MAX_WAIT`].
    async fn run_with_fault(
        &self,
        stay_ms: u64,
        fault: impl Future<Output = Result<(), NoVerdict>>,
        repair: impl Future<Output = Result<(), NoVerdict>>,
    ) -> Result<(i64, Option<u64>), NoVerdict> {
        let [other, .., holder] = self.on.instances() else {
            return Err(NoVerdict::unavailable("要有两个实例", "it takes two instances"));
        };
        let second = async {
            // A purchase that succeeds shows that the holder is not inside yet.
            let mut sold = 0;
            while self.buy(other, "&wait_ms=500".to_owned()).await {
                sold += 1;
            }
            let begun = Instant::now();
            let waits = async {
                while let Some(left) = MAX_WAIT.checked_sub(begun.elapsed()) {
                    let wait = format!("&wait_ms={}", left.as_millis());
                    if self.buy(other, wait).await {
                        return Ok(Some(begun.elapsed().as_millis()));
                    }
                    sleep(Duration::from_millis(100)).await;
                }
                Ok(None)
            };
            let (waited, ()) = try_join(waits, fault).await?;
            repair.await?;
            let waited = waited.map(|ms| u64::try_from(ms).unwrap_or(u64::MAX));
            Ok::<_, NoVerdict>((sold + i64::from(waited.is_some()), waited))
        };
        let stay = format!("&hold_ms={stay_ms}");
        let (first, second) = tokio::join!(self.buy(holder, stay), second);
        let (sold, blocked_ms) = second?;
        Ok((sold + i64::from(first), blocked_ms))
    }

    /// Compares the sales with the stock, as soon as that can be read again; fails after [`MAX_WAIT`].
    async fn compare_with_stock(&self, (sold, blocked_ms): (i64, Option<u64>)) -> Result<LockResult, NoVerdict> {
        let count = || async { Ok::<_, NoVerdict>(self.product.stock().count(Store::MySql).await.ok()) };
        let left = wait_for(MAX_WAIT, "the stock cannot be read", count).await?;
        Ok(LockResult { lost: sold - (5000 - left), blocked_ms })
    }
}

/// Tries a fault of the holder on several locks at once; all holders are on one instance. Server faults do nothing.
async fn try_fault_of_holder(on: &Cluster, locks: &[&'static str], fault: LockFault) -> Result<Vec<LockResult>, NoVerdict> {
    let contests = try_join_all(locks.iter().map(|lock| Contest::new(on, lock))).await?;
    let holder = on.servers()?.instances.last();
    let holder = holder.map_or("", |instance| instance.name.as_str());
    let all_inside = Barrier::new(contests.len());
    let fault_all = || async {
        if !all_inside.wait().await.is_leader() {
            return Ok(());
        }
        match fault {
            LockFault::HolderKilled => on.inject_fault(Action::Kill, holder).await,
            LockFault::HolderPaused => {
                on.inject_fault(Action::Pause, holder).await?;
                sleep(HOLDER_PAUSE).await;
                on.inject_fault(Action::Resume, holder).await
            }
            _ => Ok(()),
        }
    };
    let stay_ms = if fault == LockFault::HolderKilled { 60_000 } else { STAY_MS };
    let still = || std::future::ready(Ok(()));
    let outcomes = (contests.iter()).map(|contest| contest.run_with_fault(stay_ms, fault_all(), still()));
    let outcomes = try_join_all(outcomes).await?;
    if fault == LockFault::HolderKilled {
        on.inject_fault(Action::Start, holder).await?;
    }
    let cells = contests.iter().zip(outcomes);
    let cells = try_join_all(cells.map(|(contest, outcome)| contest.compare_with_stock(outcome))).await?;
    for contest in contests {
        contest.product.remove().await?;
    }
    Ok(cells)
}

/// Kills the server of a lock while the lock is held. `lags`: the replica of Redis is cut off before the lock is taken.
async fn try_fault_of_server(own: &OwnLab, lock: &'static str, fault: LockFault, lags: bool) -> Result<LockResult, NoVerdict> {
    let on = &own.cluster;
    let server = own.leader(match lock {
        "redis-lock" => Server::Redis,
        "table-lock" => Server::MySql,
        _ => Server::ZooKeeper,
    });
    let server = server.await?;
    if lags {
        on.inject_fault(Action::Cut, "replica-redis").await?;
    }
    let dies = async {
        on.inject_fault(Action::Kill, &server).await?;
        match fault {
            LockFault::ServerRestarted => on.inject_fault(Action::Start, &server).await,
            _ => Ok(()),
        }
    };
    let repair = async {
        // The stock is in the database, so it must come back.
        match (lock, fault) {
            ("table-lock", LockFault::ServerLost) => on.inject_fault(Action::Start, &server).await,
            _ => Ok(()),
        }
    };
    // The lab is stopped, and its product with it.
    let contest = Contest::new(on, lock).await?;
    let outcome = contest.run_with_fault(STAY_MS, dies, repair).await?;
    contest.compare_with_stock(outcome).await
}

/// Claim: of three stores ZooKeeper fails under the fewest faults, and Redis under as many as the database, whether the replica of
/// Redis lags or not.
pub(super) async fn rank_stores_by_failures(on: &Cluster, faults: [LockFault; 4]) -> Result<Observation, NoVerdict> {
    let own = OwnLab::start(on, REPLICATED).await?;
    let mut matrix = Vec::new();
    for (fault, (_, name)) in faults.into_iter().zip(FAULTS) {
        let cells = match fault {
            LockFault::ServerRestarted | LockFault::ServerLost => {
                let [zookeeper, redis, mysql] = LOCKS.map(|lock| try_fault_of_server(&own, lock, fault, false));
                let (zookeeper, redis) = try_join(zookeeper, redis).await?;
                vec![zookeeper, redis, mysql.await?]
            }
            _ => try_fault_of_holder(&own.cluster, &LOCKS, fault).await?,
        };
        matrix.push((name, cells));
    }
    own.stop().await?;
    let lagging = if faults.contains(&LockFault::ServerLost) {
        let own = OwnLab::start(on, REPLICATED).await?;
        let result = try_fault_of_server(&own, "redis-lock", LockFault::ServerLost, true).await?;
        own.stop().await?;
        result
    } else {
        matrix[3].1[1]
    };
    let fails = |n: usize| matrix.iter().filter(|(_, cells)| cells[n].fails()).count();
    let [zookeeper, redis, mysql] = [0, 1, 2].map(fails);
    let redis_lagging = redis - usize::from(matrix[3].1[1].fails()) + usize::from(lagging.fails());
    let mut all: Vec<_> = matrix.iter().map(|(fault, cells)| describe_row(*fault, &LOCKS, cells)).collect();
    let Words { zh, en } = lagging.words("redis-lock");
    all.push(words!(
        "Redis 的服务器被杀、不再回来，而复制在加锁之前已经切断：{zh}。",
        "With the server of Redis killed for good, and its replica cut off before the lock was taken: {en}."
    ));
    all.push(words!(
        "四种故障里，超卖或者一直拿不到的：ZooKeeper {zookeeper} 种，Redis {redis} 种（复制先切断就是 {redis_lagging} 种），数据库 {mysql} 种。",
        "Oversold or never got the lock, of four faults: ZooKeeper under {zookeeper}, Redis under {redis} (with its replica cut off before, {redis_lagging}), the database under {mysql}."
    ));
    let cells: Vec<_> = matrix.iter().map(|(fault, cells)| json!({"fault": fault, "cells": cells})).collect();
    let seen = Observation::holds(
        [redis, redis_lagging].iter().all(|redis| zookeeper < *redis && *redis == mysql),
        Words::join(&all, ["", " "]),
    );
    Ok(seen.value("locks", json!(LOCKS)).value("matrix", json!(cells)))
}

/// Claim: if the holder is paused, Redlock oversells, and locks in ZooKeeper and in the database do not.
pub(super) async fn only_redlock_oversells_after_pause(on: &Cluster, fault: LockFault) -> Result<Observation, NoVerdict> {
    const LOCKS: [&str; 4] = ["redis-redlock", "zk-lock", "select-for-update", "zk-fenced"];
    let cells = try_fault_of_holder(on, &LOCKS, fault).await?;
    let lost: Vec<_> = cells.iter().map(|cell| cell.lost).collect();
    let mut words = vec![describe_row(HOLDER_PAUSED, &LOCKS, &cells)];
    if lost[1] > 0 {
        words.push(words!(
            "ZooKeeper 的锁也会超卖：要对，得由数据库自己来判断，用事务或者 fencing token（防护令牌）。",
            "The lock in ZooKeeper oversells too: to be right the database itself must decide, by a transaction or a fencing token."
        ));
    }
    let holds = lost[0] > 0 && lost[1] == 0 && lost[2] == 0;
    Ok(Observation::holds(holds, Words::join(&words, ["", " "])).value("lost", json!(lost)))
}

/// Describes the results of all locks under one fault: `持有者被杀：zk-lock 等 9.8 s，…。`
fn describe_row(fault: Bilingual, locks: &[&str], cells: &[LockResult]) -> Words {
    let cells: Vec<_> = locks.iter().zip(cells).map(|(lock, cell)| cell.words(lock)).collect();
    let Words { zh, en } = Words::join(&cells, ["，", ", "]);
    Words::new(format!("{}：{zh}。", fault.zh), format!("With {}: {en}.", fault.en))
}
