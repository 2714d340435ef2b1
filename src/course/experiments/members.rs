//! What the loss of a member costs: a planned fail-over of Redis with Sentinels, and a ZooKeeper ensemble that loses its leader and
//! then its majority.

use super::{
    own_lab::{ENSEMBLE, OwnLab, SENTINELS},
    tools::{ask, own},
};
use crate::{
    course::{Cluster, NoVerdict, Product, Seen, words},
    orders::Action,
    redis_at::redis_at,
};
use futures::future::join_all;
use oversell_lock::{
    Guard, Lease, LockError,
    redis::{RedisClient, RedisOptions, Replicas},
};
use parking_lot::Mutex;
use serde_json::json;
use std::{
    collections::HashMap,
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout};

/// The leases of the locks: longer than a fail-over takes.
const LEASE: Lease = Lease::Fixed(Duration::from_secs(120));
/// How long a lock is tried for, while nobody leads.
const SHORT: Duration = Duration::from_millis(500);

/// Locks that are held while the Sentinels promote a replica that is well: plain ones, those that one of two replicas has, and
/// those that both have.
pub(super) async fn planned_fail_over(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let own = OwnLab::start(on, SENTINELS).await?;
    let waited_for = if twin { [2; 3] } else { [0, 1, 2] };
    let seen = fail_over(&own.cluster, waited_for).await?;
    own.stop().await?;
    Ok(seen)
}

async fn fail_over(on: &Cluster, waited_for: [u32; 3]) -> Result<Seen, NoVerdict> {
    let group = group(on).await?;
    let processes: Vec<_> = (waited_for.iter())
        .map(|replicas| process(on, &group, *replicas))
        .collect::<Result<_, _>>()?;
    let (mut twice, mut of, mut fail_overs) = ([0; 3], [0; 3], 0);
    for to in ["replica-2", "replica", "redis"] {
        let over = AtomicBool::new(false);
        let fault = async {
            let done = on.fault(Action::Promote, to).await;
            over.store(true, SeqCst);
            done
        };
        let held = join_all(processes.iter().map(|process| hold(process, &over)));
        let (done, held) = tokio::join!(fault, held);
        done?;
        fail_overs += 1;
        let other = process(on, &group, 0)?;
        locks_again(&other).await?;
        for (n, held) in held.iter().enumerate() {
            twice[n] += held_twice(&other, held).await?;
            of[n] += held.len();
        }
        if twice[..2].iter().all(|twice| *twice > 0) {
            break;
        }
    }
    let words = words!(
        "计划内的主从切换 {fail_overs} 次，同时有两个持有者的锁：不等从节点的 {} 把里有 {} 把，等一个从节点的 {} 把里有 {} 把，等两个的 {} 把里有 {} 把。",
        "Planned fail-overs: {fail_overs}. Held twice at once: of {} plain locks {}, of {} that one replica had {}, of {} that both had {}.",
        of[0],
        twice[0],
        of[1],
        twice[1],
        of[2],
        twice[2]
    );
    let holds = twice[0] > 0 && twice[1] > 0 && twice[2] == 0 && of[2] > 0;
    Ok(Seen::holds(holds, words)
        .value("fail_overs", fail_overs)
        .value("held_twice", json!(twice))
        .value("held", json!(of)))
}

/// What the Sentinels call the primary and its replicas.
async fn group(on: &Cluster) -> Result<String, NoVerdict> {
    let sentinel = on.servers()?.sentinels.first();
    let sentinel = sentinel.ok_or_else(|| NoVerdict::failed("no Sentinel"))?;
    let mut sentinel = redis_at(&sentinel.url).await?;
    let known: Vec<HashMap<String, String>> = ask(&mut sentinel, &["SENTINEL", "MASTERS"]).await?;
    let name = known.first().and_then(|known| known.get("name")).cloned();
    name.ok_or_else(|| NoVerdict::failed("the Sentinel watches nobody"))
}

/// A process with the lock library, whose locks so many replicas must have.
fn process(on: &Cluster, group: &str, replicas: u32) -> Result<RedisClient, NoVerdict> {
    let at = on.servers()?;
    let sentinels = at.sentinels.iter().map(|one| one.url.as_str());
    let options = RedisOptions::new(at.main_redis())
        .sentinels(sentinels, group)
        .wait_replicas(Replicas::AtLeast(replicas));
    RedisClient::new(options).map_err(NoVerdict::failed)
}

/// Takes locks, one after the other, and holds all of them, until it is over.
async fn hold(process: &RedisClient, over: &AtomicBool) -> Vec<(String, Guard)> {
    let mut held = Vec::new();
    while !over.load(SeqCst) {
        let name = own("lock");
        // While nobody leads there is none to be had.
        if let Ok(guard) = process.lock(&name).lease(LEASE).acquire(SHORT).await {
            held.push((name, guard));
        }
        sleep(Duration::from_millis(1)).await;
    }
    held
}

/// How many of them another one can take, while their guards say that they are held.
async fn held_twice(other: &RedisClient, held: &[(String, Guard)]) -> Result<usize, NoVerdict> {
    let mut twice = 0;
    for (name, guard) in held {
        match other.lock(name).try_acquire().await {
            Ok(second) => {
                twice += usize::from(!guard.is_lost());
                second.release().await.map_err(NoVerdict::failed)?;
            }
            Err(LockError::Taken { .. }) => {}
            Err(error) => return Err(NoVerdict::failed(error)),
        }
    }
    Ok(twice)
}

async fn locks_again(process: &RedisClient) -> Result<(), NoVerdict> {
    let had = async {
        while process.lock(&own("lock")).acquire(SHORT).await.is_err() {
            sleep(Duration::from_millis(50)).await;
        }
    };
    let late = |_| NoVerdict::failed("there are no locks after the fail-over");
    timeout(Duration::from_secs(30), had).await.map_err(late)
}

/// So many sales are service again.
const SERVED: usize = 20;
/// How long that may take while most of the servers live, and once a server is started.
const ELECTED: Duration = Duration::from_secs(20);
const BACK: Duration = Duration::from_secs(60);
/// Some seconds: no longer nobody is served while another leader is elected.
const SECONDS: Duration = Duration::from_secs(10);
/// How long it stays without a majority.
const MINORITY: Duration = Duration::from_secs(4);

/// A purchase: when it began and ended, and whether a piece was sold; `None` where that is not known.
pub(in crate::course) type Purchase = (Instant, Instant, Option<bool>);

/// Buyers who go on, while an ensemble of three loses its leader, then its majority, and has it again.
pub(super) async fn leader_and_majority(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let own = OwnLab::start(on, ENSEMBLE).await?;
    let seen = losses(&own, twin).await?;
    own.stop().await?;
    Ok(seen)
}

async fn losses(own: &OwnLab, twin: bool) -> Result<Seen, NoVerdict> {
    const STOCK: i64 = 1_000_000;
    const BUYERS: usize = 6;
    let on = &own.cluster;
    let servers = own.ensemble("").await?;
    let product = on.product(STOCK).await?;
    let (purchases, over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let at = on.instances().iter().cycle().take(BUYERS);
    let buyers = join_all(at.map(|at| buy_on(&product, at, &purchases, &over)));
    let losses = async {
        let lost = async {
            sold_since(&purchases, Instant::now(), ELECTED).await;
            let without_leader = Instant::now();
            on.fault(Action::Kill, &servers[0]).await?;
            if twin {
                on.fault(Action::Kill, &servers[1]).await?;
            }
            let elected = sold_since(&purchases, Instant::now(), ELECTED).await;
            if !twin {
                on.fault(Action::Kill, &servers[1]).await?;
            }
            let minority = Instant::now();
            sleep(MINORITY).await;
            let mended = Instant::now();
            on.fault(Action::Start, &servers[1]).await?;
            let back = sold_since(&purchases, mended, BACK).await;
            Ok::<_, NoVerdict>((without_leader, elected, [minority, mended], back))
        };
        let lost = lost.await;
        over.store(true, SeqCst);
        lost
    };
    let (lost, _) = tokio::join!(losses, buyers);
    let (without_leader, elected, [minority, mended], back) = lost?;
    let purchases = purchases.into_inner();
    let sold = |sold: &&Purchase| sold.2 == Some(true);
    let (sales, unknown) = (
        purchases.iter().filter(sold).count(),
        purchases.iter().filter(|one| one.2.is_none()).count(),
    );
    let in_minority = purchases.iter().filter(sold);
    let in_minority = in_minority.filter(|(begun, ended, _)| *begun > minority && *ended < mended);
    let in_minority = in_minority.count();
    let gone = STOCK - product.left().await?.mysql;
    let over_and_above = i64::try_from(sales).unwrap_or(i64::MAX) - gone;
    let is_exact = (0..=i64::try_from(unknown).unwrap_or(i64::MAX)).contains(&-over_and_above);
    let without = elected.map(|()| longest_gap(&purchases, without_leader, minority));
    let seconds = |time: Option<Duration>| {
        time.map_or("-".to_owned(), |time| format!("{:.1}", time.as_secs_f64()))
    };
    let (without_s, back_s) = (
        seconds(without),
        seconds(back.map(|()| first_sale(&purchases, mended))),
    );
    let words = words!(
        "三台里的 Leader 被杀：{without_s} s 没有卖出；又死一台，{} s 里卖出 {in_minority} 件；它再启动，{back_s} s 后又卖。一共卖出 {sales} 件，少了 {gone} 件，{unknown} 个没有回答。",
        "The leader of three is killed: {without_s} s without a sale; with a second one dead {in_minority} are sold in {} s; it is started, and {back_s} s later there are sales. {sales} were sold, {gone} are gone, {unknown} are unknown.",
        MINORITY.as_secs()
    );
    let is_short = without.is_some_and(|without| without <= SECONDS);
    let holds = is_short && in_minority == 0 && back.is_some() && is_exact;
    Ok(Seen::holds(holds, words)
        .value("without_service_s", without.map(|time| time.as_secs_f64()))
        .value("sold_by_minority", in_minority)
        .value("sold", sales)
        .value("gone", gone)
        .value("unknown", unknown))
}

async fn buy_on(
    product: &Product<'_>,
    at: &str,
    purchases: &Mutex<Vec<Purchase>>,
    over: &AtomicBool,
) {
    while !over.load(SeqCst) {
        let begun = Instant::now();
        let sold = match product.buy(at, "zk-lock", "&wait_ms=2000").await {
            Ok((200, _)) => Some(true),
            Ok((409 | 503, _)) => Some(false),
            _ => None,
        };
        purchases.lock().push((begun, Instant::now(), sold));
        if sold != Some(true) {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Waits until [`SERVED`] purchases that began after this have sold a piece; `None` where they do not in time.
pub(in crate::course) async fn sold_since(
    purchases: &Mutex<Vec<Purchase>>,
    since: Instant,
    within: Duration,
) -> Option<()> {
    let sold = async {
        let is_one = |(begun, _, sold): &Purchase| *begun > since && *sold == Some(true);
        while purchases.lock().iter().filter(|one| is_one(one)).count() < SERVED {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(within, sold).await.ok()
}

/// The longest time from one sale to the next one.
pub(in crate::course) fn longest_gap(
    purchases: &[Purchase],
    from: Instant,
    to: Instant,
) -> Duration {
    let sales = purchases.iter().filter(|(.., sold)| *sold == Some(true));
    let mut times: Vec<_> = sales.map(|(_, ended, _)| *ended).collect();
    times.retain(|ended| (from..to).contains(ended));
    times.push(from);
    times.sort_unstable();
    let gaps = times.windows(2).map(|two| two[1] - two[0]);
    gaps.max().unwrap_or_default()
}

/// How long after this the next one sold that began after it.
fn first_sale(purchases: &[Purchase], from: Instant) -> Duration {
    let sales = purchases.iter();
    let sales = sales.filter(|(begun, _, sold)| *begun > from && *sold == Some(true));
    let first = sales.map(|(_, ended, _)| *ended - from).min();
    first.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sold_counts_from_one_sale_to_the_next() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let purchases = [
            (at(0), at(90), Some(true)),
            (at(95), at(130), Some(true)),
            (at(140), at(900), Some(false)),
            (at(140), at(950), None),
            (at(1000), at(1030), Some(true)),
            (at(1000), at(9000), Some(true)),
        ];
        let gap = |from, to| longest_gap(&purchases, at(from), at(to)).as_millis();
        assert_eq!(
            [gap(100, 2000), gap(200, 2000), gap(100, 1000)],
            [900, 830, 30]
        );
        assert_eq!(first_sale(&purchases, at(92)).as_millis(), 38);
        assert_eq!(first_sale(&purchases, at(990)).as_millis(), 40);
    }
}
