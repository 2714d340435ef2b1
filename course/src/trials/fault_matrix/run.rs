//! Runs one fault of an engine: buyers of all strategies buy while a server is broken and mended; then the stock is counted.

use super::{Engine, Fault, FaultResult, FaultRun};
use crate::trials::{
    Cluster, NoVerdict,
    buyers::{Buyers, Left, buy_during},
    own_lab::{OwnLab, leading_redis},
};
use futures::future::{join_all, try_join_all};
use oversell::server::Server;
use oversell_lab::{
    clients::redis_at::redis_at,
    fault::Action,
    wait::{wait_for, wait_until},
};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// The part of the query that has each purchase hold its lock for 10 ms, so that others must wait, and wait 3 s at most.
const HOLD_AND_WAIT: &str = "&hold_ms=10&wait_ms=3000";
/// The same with a lease of 5 s, shorter than a standstill.
const WITH_SHORT_LEASE: &str = "&hold_ms=10&wait_ms=3000&lease_ms=5000";
/// How long a standstill lasts: longer than a session of ZooKeeper (10 s).
const STANDSTILL_DURATION: Duration = Duration::from_secs(15);
/// How long other faults last: longer than the other servers wait before they go on without the broken one.
const FAULT_DURATION: Duration = Duration::from_secs(8);
/// The length of a run without a fault: long enough for many sales of each strategy.
const HEALTHY_DURATION: Duration = Duration::from_secs(4);
/// Bounds the start of instances, and the time until all sell again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);
/// An answered order that is not written within this is lost.
const WRITE_BEHIND_LIMIT: Duration = Duration::from_secs(10);

/// Compares the answers with the goods, once these can be read; fails after [`RECOVERY_TIMEOUT`]. `back`: the strategy has sold
/// again, so the longest gap since the fault is a figure.
async fn result_of(buyers: &Buyers<'_>, since: Instant, back: bool) -> Result<FaultResult, NoVerdict> {
    let (told, begun) = (&buyers.take_answers(), Instant::now());
    let counted = || async move {
        Ok::<_, NoVerdict>(match buyers.left().await {
            Ok(Left::Gone(gone)) => Some(FaultResult::of(told, gone)),
            Ok(Left::Orders(records)) => {
                let result = FaultResult::of_orders(told, &records);
                // Orders that are written behind may still be missing.
                (result.lost == 0 || begun.elapsed() > WRITE_BEHIND_LIMIT).then_some(result)
            }
            Err(_) => None,
        })
    };
    let counted = wait_for(RECOVERY_TIMEOUT, "the stock cannot be read", counted).await?;
    let gap = buyers.sales.longest_gap(since, Instant::now());
    Ok(FaultResult {
        strategy: buyers.slug.to_owned(),
        without_service_ms: back.then(|| u64::try_from(gap.as_millis()).unwrap_or(u64::MAX)),
        ..counted
    })
}

/// Restarts the instances, and has all strategies of an engine sell while its server is broken and mended; returns their
/// results. Fails if one does not sell before, or does not notice a fault that it must notice.
pub(super) async fn run(own: &OwnLab, engine: &'static Engine, fault: Fault) -> Result<FaultRun, NoVerdict> {
    let on = &own.cluster;
    // Restarted instances connect to their first server again, also if the last fault has sent them to another.
    for instance in &on.servers()?.instances {
        on.inject_fault(Action::Kill, &instance.name).await?;
        on.inject_fault(Action::Start, &instance.name).await?;
    }
    wait_until_all_ready(on).await?;
    let query = if engine.breaks == Server::Etcd { WITH_SHORT_LEASE } else { HOLD_AND_WAIT };
    let tried = engine.strategies.iter().map(|slug| Buyers::new(on, slug, query));
    let tried = try_join_all(tried).await?;
    let all_sell = async |since| {
        let sold = tried.iter().map(|one| one.sales.wait_for_sales(since, RECOVERY_TIMEOUT));
        join_all(sold).await
    };
    let broken = async {
        let sells = all_sell(Instant::now()).await;
        if let Some((one, _)) = tried.iter().zip(&sells).find(|(_, sold)| sold.is_none()) {
            let slug = one.slug;
            return Err(NoVerdict::failed(format!("{slug} does not sell, and nothing is broken")));
        }
        let since = Instant::now();
        break_and_mend(own, engine.breaks, fault).await?;
        Ok((since, all_sell(Instant::now()).await))
    };
    let (since, back) = buy_during(on, &tried, 1, broken).await?;
    let mut cells = Vec::new();
    for (one, back) in tried.iter().zip(back) {
        let cell = result_of(one, since, back.is_some()).await?;
        let promises = engine.promises(one.slug, fault);
        cells.push(FaultResult { promises, ..cell });
    }
    // A paused node of a cluster may not be part of it yet, and then refuses what removes the goods.
    wait_until_all_ready(on).await?;
    for one in tried {
        one.remove().await?;
    }
    if let Some(cell) = cells.iter().find(|cell| engine.must_be_noticed(fault) && !cell.was_noticed()) {
        let (engine, slug) = (engine.id, &cell.strategy);
        let why = format!("{engine}, {fault:?}: {slug} sold on, as if nothing were broken");
        return Err(NoVerdict::failed(why));
    }
    Ok(FaultRun { engine: engine.id.to_owned(), fault, cells })
}

/// Injects the fault, mends it after [`FAULT_DURATION`] or [`STANDSTILL_DURATION`], and, if Sentinels lead, waits until the old primary
/// is a replica. A leader of ZooKeeper that was killed or paused is mended only once there is another one. A planned fail-over is not
/// mended; [`Fault::None`] only waits for [`HEALTHY_DURATION`].
async fn break_and_mend(own: &OwnLab, breaks: Server, fault: Fault) -> Result<(), NoVerdict> {
    let on = &own.cluster;
    let (does, mends) = match fault {
        Fault::None => {
            sleep(HEALTHY_DURATION).await;
            return Ok(());
        }
        Fault::Promote => {
            let leads = leading_redis(on).await?;
            let to = match leads.0 {
                "replica" => "replica-2",
                _ => "replica",
            };
            on.inject_fault(Action::Promote, to).await?;
            return wait_until_replica(&leads.1).await;
        }
        Fault::Kill => (Action::Kill, Action::Start),
        Fault::Pause | Fault::Standstill => (Action::Pause, Action::Resume),
        Fault::Cut => (Action::Cut, Action::Mend),
    };
    let is_ensemble = on.servers()?.zookeeper.connect.contains(',');
    let server = own.leader(breaks).await?;
    let led = match breaks {
        Server::Redis if !on.servers()?.sentinels.is_empty() => Some(leading_redis(on).await?.1),
        _ => None,
    };
    on.inject_fault(does, &server).await?;
    sleep(if fault == Fault::Standstill { STANDSTILL_DURATION } else { FAULT_DURATION }).await;
    if breaks == Server::ZooKeeper && is_ensemble && does != Action::Cut {
        // Buyers may not notice the election: require a new leader, or nothing was broken.
        own.wait_for_leader_and_followers(&server).await?;
    }
    on.inject_fault(mends, &server).await?;
    match led {
        Some(url) => wait_until_replica(&url).await,
        None => Ok(()),
    }
}

/// Waits until the old primary is a replica; until then it takes writes, which are lost. Fails after [`RECOVERY_TIMEOUT`].
async fn wait_until_replica(led: &str) -> Result<(), NoVerdict> {
    let follows = || async {
        let Ok(mut at) = redis_at(led).await else { return false };
        let said = redis::cmd("INFO").arg("replication").query_async::<String>(&mut at).await;
        said.is_ok_and(|said| said.contains("role:slave"))
    };
    wait_until(RECOVERY_TIMEOUT, "the Redis that led does not follow", follows).await
}

/// Waits until all instances are ready; fails after [`RECOVERY_TIMEOUT`].
async fn wait_until_all_ready(on: &Cluster) -> Result<(), NoVerdict> {
    let all = on.instances().iter().map(async |at| {
        let url = format!("{at}/health/ready");
        let is_ready = || async { on.get(&url).await.is_ok_and(|answer| answer.status.is_success()) };
        wait_until(RECOVERY_TIMEOUT, format!("{at} is not ready"), is_ready).await
    });
    try_join_all(all).await.map(drop)
}
