//! What the loss of a member costs those who buy: a ZooKeeper ensemble that loses a follower, its leader and then its majority, and a
//! Galera cluster that loses the node that is written.

use super::{
    galera::{STOCK, Sold},
    own_lab::{ENSEMBLE, ONE_WRITER, OwnLab},
    tools::is_sold,
};
use crate::{
    claims::words,
    fault::Action,
    trials::{Cluster, NoVerdict, Product, Seen},
};
use futures::future::join_all;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use parking_lot::Mutex;
use serde_json::json;
use std::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout};

/// So many sales are service again.
const SERVED: usize = 20;
/// How long that may take while most of the servers live, and once a server is started.
const ELECTED: Duration = Duration::from_secs(20);
const BACK: Duration = Duration::from_secs(60);
/// Some seconds: no longer nobody is served while another one leads.
const SECONDS: Duration = Duration::from_secs(10);
/// A moment: no longer it takes those to go on who were at a server that dies while the leader lives.
const MOMENT: Duration = Duration::from_secs(2);
/// How long it stays without a majority.
const MINORITY: Duration = Duration::from_secs(4);
/// A cluster waits 5 s before it goes on without a node that says nothing, `evs.suspect_timeout`; some seconds more are allowed.
const SUSPECTED: Duration = Duration::from_secs(15);

/// A purchase: when it began and ended, and whether a piece was sold; `None` where that is not known.
type Purchase = (Instant, Instant, Option<bool>);
pub(in crate::trials) type Purchases = Mutex<Vec<Purchase>>;

/// Buyers who go on, while an ensemble of three loses a follower, its leader, then its majority, and has it again.
pub(super) async fn ensemble(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let own = OwnLab::start(on, ENSEMBLE).await?;
    let seen = ensemble_losses(&own, twin).await?;
    own.stop().await?;
    Ok(seen)
}

async fn ensemble_losses(own: &OwnLab, twin: bool) -> Result<Seen, NoVerdict> {
    let on = &own.cluster;
    let servers = own.ensemble("").await?;
    let [leader, another, follower] = &servers[..] else {
        return Err(NoVerdict::failed("three servers are needed"));
    };
    let product = on.product(STOCK).await?;
    let purchases = Purchases::default();
    let losses = async {
        sold_since(&purchases, Instant::now(), ELECTED).await;
        let fault = on.fault(Action::Kill, follower);
        let without_follower = without_service(&purchases, fault).await?;
        on.fault(Action::Start, follower).await?;
        sold_since(&purchases, Instant::now(), ELECTED).await;
        let fault = async {
            on.fault(Action::Kill, leader).await?;
            match twin {
                true => on.fault(Action::Kill, another).await,
                false => Ok(()),
            }
        };
        let without_leader = without_service(&purchases, fault).await?;
        if !twin {
            on.fault(Action::Kill, another).await?;
        }
        let minority = Instant::now();
        sleep(MINORITY).await;
        let mended = Instant::now();
        on.fault(Action::Start, another).await?;
        let back = sold_since(&purchases, mended, BACK).await;
        let back = back.map(|()| first_sale(&purchases.lock(), mended));
        Ok::<_, NoVerdict>((without_follower, without_leader, [minority, mended], back))
    };
    let lost = while_they_buy(&product, "zk-lock", &purchases, losses).await?;
    let (without_follower, without_leader, [minority, mended], back) = lost;
    let purchases = purchases.into_inner();
    let in_minority = purchases
        .iter()
        .filter(|(begun, ended, sold)| *begun > minority && *ended < mended && *sold == Some(true));
    let in_minority = in_minority.count();
    let all = told(&purchases, STOCK - product.left().await?.mysql);
    let [follower_s, leader_s, back_s] = [without_follower, without_leader, back].map(seconds);
    let words = words!(
        "三台里的一个 Follower 被杀：最长 {follower_s} s 没有卖出；它回来以后 Leader 被杀：{leader_s} s；又死一台，{} s 里卖出 {in_minority} 件；它再启动，{back_s} s 后又卖。一共卖出 {} 件，少了 {} 件，{} 个没有回答。",
        "A follower of three is killed: at most {follower_s} s without a sale; it is back, and the leader is killed: {leader_s} s; with a second one dead {in_minority} are sold in {} s; it is started, and {back_s} s later there are sales. {} were sold, {} are gone, {} are unknown.",
        MINORITY.as_secs(),
        all.sold,
        all.gone,
        all.unknown
    );
    let within = |time: Option<Duration>, most| time.is_some_and(|time| time <= most);
    let holds = within(without_follower, MOMENT)
        && within(without_leader, SECONDS)
        && in_minority == 0
        && back.is_some()
        && all.is_exact();
    Ok(Seen::holds(holds, words)
        .value("without_follower_s", without_follower.map(as_secs))
        .value("without_leader_s", without_leader.map(as_secs))
        .value("sold_by_minority", in_minority)
        .value("sales", json!(all)))
}

/// Buyers who go on, while three Galera nodes lose the one that is written by kill -9, and then the next one, which ends in order.
pub(super) async fn dead_writer(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let own = OwnLab::start(on, ONE_WRITER).await?;
    let seen = writers_lost(&own.cluster, twin).await?;
    own.stop().await?;
    Ok(seen)
}

async fn writers_lost(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let second = on.servers()?.galera.first().map(|node| node.pid);
    let second = second.ok_or_else(|| NoVerdict::failed("no second node"))?;
    let second = Pid::from_raw(second.cast_signed());
    let product = on.product(STOCK).await?;
    let purchases = Purchases::default();
    let losses = async {
        sold_since(&purchases, Instant::now(), ELECTED).await;
        let dies = async {
            on.fault(Action::Kill, "mysql").await?;
            match twin {
                true => on.fault(Action::Kill, "mysql-2").await,
                false => Ok(()),
            }
        };
        let killed = without_service(&purchases, dies).await?;
        if killed.is_none() {
            return Ok([None, None]);
        }
        let ended = without_service(&purchases, ends_in_order(second)).await?;
        Ok::<_, NoVerdict>([killed, ended])
    };
    let [killed, ended] = while_they_buy(&product, "single-update", &purchases, losses).await?;
    let [killed_s, ended_s] = [killed, ended].map(seconds);
    // Where nobody sells, nobody can count either.
    let gone = match ended {
        Some(_) => STOCK - product.left().await?.mysql,
        None => 0,
    };
    let all = told(&purchases.into_inner(), gone);
    let words = words!(
        "三个节点，只写一个，它被杀（kill -9）：最长 {killed_s} s 没有卖出；接着写的那个正常关机（SIGTERM）：{ended_s} s，剩下的一个接着卖。一共卖出 {} 件，少了 {} 件，{} 个没有回答，拒绝 {} 个。",
        "Three nodes, of which one is written, and it is killed (kill -9): at most {killed_s} s without a sale; the one that is written next ends in order (SIGTERM): {ended_s} s, and the last one goes on selling. {} were sold, {} are gone, {} are unknown, {} were refused.",
        all.sold,
        all.gone,
        all.unknown,
        all.refused
    );
    let holds = match (killed, ended) {
        (Some(killed), Some(ended)) => ended < killed && killed <= SUSPECTED && all.is_exact(),
        _ => false,
    };
    Ok(Seen::holds(holds, words)
        .value("killed_s", killed.map(as_secs))
        .value("ended_s", ended.map(as_secs))
        .value("sales", json!(all)))
}

/// SIGTERM; returns once it is gone.
async fn ends_in_order(server: Pid) -> Result<(), NoVerdict> {
    kill(server, Signal::SIGTERM).map_err(NoVerdict::failed)?;
    let gone = async {
        while kill(server, None).is_ok() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    let late = |_| NoVerdict::failed("a node does not end");
    timeout(BACK, gone).await.map_err(late)
}

/// Has buyers go on at all instances until `losses` are over.
async fn while_they_buy<T>(
    product: &Product<'_>,
    strategy: &'static str,
    purchases: &Purchases,
    losses: impl Future<Output = Result<T, NoVerdict>>,
) -> Result<T, NoVerdict> {
    const BUYERS: usize = 6;
    let over = AtomicBool::new(false);
    let at = product.on.instances().iter().cycle().take(BUYERS);
    let buyers = join_all(at.map(|at| buy_on(product, strategy, at, purchases, &over)));
    let losses = async {
        let lost = losses.await;
        over.store(true, SeqCst);
        lost
    };
    tokio::join!(losses, buyers).0
}

/// The longest time without a sale, from a loss until there are sales again; `None` where there are none in time.
async fn without_service(
    purchases: &Purchases,
    loss: impl Future<Output = Result<(), NoVerdict>>,
) -> Result<Option<Duration>, NoVerdict> {
    let begun = Instant::now();
    loss.await?;
    let served = sold_since(purchases, Instant::now(), ELECTED).await;
    Ok(served.map(|()| longest_gap(&purchases.lock(), begun, Instant::now())))
}

/// What buyers were told, and what is gone.
fn told(purchases: &[Purchase], gone: i64) -> Sold {
    let mut all = Sold {
        gone,
        ..Sold::default()
    };
    for (.., sold) in purchases {
        match sold {
            Some(true) => all.sold += 1,
            Some(false) => all.refused += 1,
            None => all.unknown += 1,
        }
    }
    all
}

fn as_secs(time: Duration) -> f64 {
    time.as_secs_f64()
}

fn seconds(time: Option<Duration>) -> String {
    time.map_or("-".to_owned(), |time| format!("{:.1}", as_secs(time)))
}

async fn buy_on(
    product: &Product<'_>,
    strategy: &str,
    at: &str,
    purchases: &Purchases,
    over: &AtomicBool,
) {
    while !over.load(SeqCst) {
        let begun = Instant::now();
        let sold = is_sold(&product.buy(at, strategy, "&wait_ms=2000").await);
        purchases.lock().push((begun, Instant::now(), sold));
        if sold != Some(true) {
            sleep(Duration::from_millis(20)).await;
        }
    }
}

/// Waits until [`SERVED`] purchases that began after this have sold a piece; `None` where they do not in time.
pub(in crate::trials) async fn sold_since(
    purchases: &Purchases,
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
pub(in crate::trials) fn longest_gap(
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
        let all = told(&purchases, 5);
        assert_eq!((all.sold, all.refused, all.unknown), (4, 1, 1));
        let exact = [3, 4, 5, 6].map(|gone| told(&purchases, gone).is_exact());
        assert_eq!(exact, [false, true, true, false]);
        assert_eq!(first_sale(&purchases, at(92)).as_millis(), 38);
        assert_eq!(first_sale(&purchases, at(990)).as_millis(), 40);
    }
}
