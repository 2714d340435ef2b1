//! How long buyers are not served when a member is lost: a ZooKeeper ensemble loses a follower, its leader and then its
//! majority; a Galera cluster loses the node that is written.

use crate::trials::{
    Cluster, NoVerdict, Observation,
    buyers::{Buyers, buy_during},
    own_lab::{ENSEMBLE, ONE_WRITER, OwnLab},
    purchases::{SaleCounts, Sales},
};
use nix::{
    sys::signal::{self, Signal},
    unistd::Pid,
};
use oversell::claims::words;
use oversell_lab::{fault::Action, wait::wait_until};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Whether a majority of three members lives on when one is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Killed {
    OneByOne,
    /// The next one dies with the first, so that there is no majority.
    TwoAtOnce,
}

/// The query of each purchase.
const QUERY: &str = "&wait_ms=2000";
/// The number of buyers at each of the two instances.
const BUYERS_EACH: usize = 3;
/// Bounds the wait for sales while a majority lives; longer than each outage that a claim allows.
const SERVICE_TIMEOUT: Duration = Duration::from_secs(20);
/// Bounds the wait after a server was started or told to end.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);
/// The longest allowed outage when the leader is lost: the session timeout of 10 s, which an election must not exceed.
const MAX_OUTAGE_ON_FAILOVER: Duration = Duration::from_secs(10);
/// The longest allowed outage when a follower is lost: its clients connect to another server, on a slow machine within 2 s.
const MAX_RECONNECT_OUTAGE: Duration = Duration::from_secs(2);
/// How long one server of three lives alone, and nothing may be sold; buyers try many times in it.
const MINORITY_DURATION: Duration = Duration::from_secs(4);
/// The longest allowed outage when a Galera node is lost: 5 s until it is dropped (`evs.suspect_timeout`), and some more.
const MAX_OUTAGE_OF_GALERA: Duration = Duration::from_secs(15);

/// Claim: an ensemble of three that loses a follower or its leader sells again within seconds; without a majority it sells nothing
/// until a server is back. With [`Killed::TwoAtOnce`] the one more dies with the leader.
pub(super) async fn measure_ensemble_outages(on: &Cluster, killed: Killed) -> Result<Observation, NoVerdict> {
    let own = OwnLab::start(on, ENSEMBLE).await?;
    let on = &own.cluster;
    let servers = own.wait_for_leader_and_followers("").await?;
    let [leader, another, follower] = &servers[..] else {
        return Err(NoVerdict::failed("three servers are needed"));
    };
    let buyers = [Buyers::new(on, "zk-lock", QUERY).await?];
    let sales = &buyers[0].sales;
    let faults = async {
        sales.wait_for_sales(Instant::now(), SERVICE_TIMEOUT).await;
        let without_follower = outage_after(sales, on.inject_fault(Action::Kill, follower)).await?;
        on.inject_fault(Action::Start, follower).await?;
        sales.wait_for_sales(Instant::now(), SERVICE_TIMEOUT).await;
        let without_leader = outage_after(sales, kill(on, killed, leader, another)).await?;
        if killed == Killed::OneByOne {
            on.inject_fault(Action::Kill, another).await?;
        }
        let minority = Instant::now();
        sleep(MINORITY_DURATION).await;
        let mended = Instant::now();
        on.inject_fault(Action::Start, another).await?;
        let back = sales.wait_for_sales(mended, RECOVERY_TIMEOUT).await;
        let back = back.map(|()| sales.first_sale(mended));
        Ok::<_, NoVerdict>((without_follower, without_leader, [minority, mended], back))
    };
    let lost = buy_during(on, &buyers, BUYERS_EACH, faults).await?;
    let (without_follower, without_leader, [minority, mended], back) = lost;
    let in_minority = sales.count_sales(minority, Some(mended));
    let all = SaleCounts { gone: buyers[0].gone().await?, ..buyers[0].take_answers().counts };
    own.stop().await?;
    let [follower_s, leader_s, back_s] = [without_follower, without_leader, back].map(format_seconds);
    let words = words!(
        "三台里的一个 Follower 被杀：最长 {follower_s} s 没有卖出；它回来以后 Leader 被杀：{leader_s} s；又死一台，{} s 里卖出 {in_minority} 件；它再启动，{back_s} s 后又卖。一共卖出 {} 件，库存减少 {} 件，{} 个没有应答。",
        "A follower of three is killed: at most {follower_s} s without a sale; it is back, and the leader is killed: {leader_s} s; with a second one dead {in_minority} are sold in {} s; it is started, and {back_s} s later there are sales. {} were sold, {} are gone, {} are unknown.",
        MINORITY_DURATION.as_secs(),
        all.sold,
        all.gone,
        all.unknown
    );
    let within = |time: Option<Duration>, most| time.is_some_and(|time| time <= most);
    let holds = within(without_follower, MAX_RECONNECT_OUTAGE)
        && within(without_leader, MAX_OUTAGE_ON_FAILOVER)
        && in_minority == 0
        && back.is_some()
        && all.is_exact();
    Ok(Observation::holds(holds, words)
        .value("without_follower_s", without_follower.map(|time| time.as_secs_f64()))
        .value("without_leader_s", without_leader.map(|time| time.as_secs_f64()))
        .value("sold_by_minority", in_minority)
        .value("sales", json!(all)))
}

/// Claim: three Galera nodes sell again within seconds after the writer was killed, and sooner after the next writer was shut down.
/// With [`Killed::TwoAtOnce`] the next one is killed with the first.
pub(super) async fn measure_writer_outages(on: &Cluster, killed: Killed) -> Result<Observation, NoVerdict> {
    let own = OwnLab::start(on, ONE_WRITER).await?;
    let on = &own.cluster;
    let second = on.servers()?.galera.first().map(|node| node.pid);
    let second = second.ok_or_else(|| NoVerdict::failed("no second node"))?;
    let buyers = [Buyers::new(on, "single-update", QUERY).await?];
    let sales = &buyers[0].sales;
    let faults = async {
        sales.wait_for_sales(Instant::now(), SERVICE_TIMEOUT).await;
        let without_first = outage_after(sales, kill(on, killed, "mysql", "mysql-2")).await?;
        if without_first.is_none() {
            return Ok([None, None]);
        }
        let without_second = outage_after(sales, shut_down(Pid::from_raw(second.cast_signed()))).await?;
        Ok::<_, NoVerdict>([without_first, without_second])
    };
    let [killed, ended] = buy_during(on, &buyers, BUYERS_EACH, faults).await?;
    let [killed_s, ended_s] = [killed, ended].map(format_seconds);
    // Without a node that sells, the stock cannot be read.
    let gone = match ended {
        Some(_) => buyers[0].gone().await?,
        None => 0,
    };
    let all = SaleCounts { gone, ..buyers[0].take_answers().counts };
    own.stop().await?;
    let words = words!(
        "三个节点，只写一个，它被杀（kill -9）：最长 {killed_s} s 没有卖出；接着写的那个正常关机（SIGTERM）：{ended_s} s，剩下的一个接着卖。一共卖出 {} 件，库存减少 {} 件，{} 个没有应答，拒绝 {} 个。",
        "Three nodes, of which one is written, and it is killed (kill -9): at most {killed_s} s without a sale; the one that is written next ends in order (SIGTERM): {ended_s} s, and the last one goes on selling. {} were sold, {} are gone, {} are unknown, {} were refused.",
        all.sold,
        all.gone,
        all.unknown,
        all.refused
    );
    let holds = match (killed, ended) {
        (Some(killed), Some(ended)) => ended < killed && killed <= MAX_OUTAGE_OF_GALERA && all.is_exact(),
        _ => false,
    };
    Ok(Observation::holds(holds, words)
        .value("killed_s", killed.map(|time| time.as_secs_f64()))
        .value("ended_s", ended.map(|time| time.as_secs_f64()))
        .value("sales", json!(all)))
}

/// Kills a server, and with [`Killed::TwoAtOnce`] another one.
async fn kill(on: &Cluster, killed: Killed, server: &str, another: &str) -> Result<(), NoVerdict> {
    on.inject_fault(Action::Kill, server).await?;
    match killed {
        Killed::TwoAtOnce => on.inject_fault(Action::Kill, another).await,
        Killed::OneByOne => Ok(()),
    }
}

/// Sends SIGTERM to a server and waits for its end.
async fn shut_down(server: Pid) -> Result<(), NoVerdict> {
    signal::kill(server, Signal::SIGTERM).map_err(NoVerdict::failed)?;
    wait_until(RECOVERY_TIMEOUT, "a node does not end", || async { signal::kill(server, None).is_err() }).await
}

/// Runs `fault`; returns the longest gap between sales from then on, or `None` if sales do not resume within [`SERVICE_TIMEOUT`].
async fn outage_after(sales: &Sales, fault: impl Future<Output = Result<(), NoVerdict>>) -> Result<Option<Duration>, NoVerdict> {
    let begun = Instant::now();
    fault.await?;
    let served = sales.wait_for_sales(Instant::now(), SERVICE_TIMEOUT).await;
    Ok(served.map(|()| sales.longest_gap(begun, Instant::now())))
}

/// Seconds with one decimal; `-` without a time.
fn format_seconds(time: Option<Duration>) -> String {
    time.map_or("-".to_owned(), |time| format!("{:.1}", time.as_secs_f64()))
}
