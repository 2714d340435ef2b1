//! Runs one fault of an engine: buyers of all strategies buy while a server is broken and mended; then the stock is counted.

use super::{BrokenServer, BuyerAnswers, Engine, Fault, FaultResult, FaultRun};
use crate::trials::{
    Cluster, NoVerdict, Product,
    own_lab::OwnLab,
    purchases::{Purchases, STOCK, outcome, run_buyers_during},
    tools::send_command,
    voucher::TrialVoucher,
};
use futures::future::{join_all, try_join_all};
use oversell::stock::{self, Store};
use oversell_lab::{
    clients::{http_client::HttpError, redis_at::redis_at},
    fault::Action,
};
use parking_lot::Mutex;
use serde_json::Value;
use std::{
    collections::HashMap,
    mem,
    sync::atomic::{AtomicI64, Ordering::Relaxed},
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout};

/// The part of the query that has each purchase hold its lock for 10 ms, so that others must wait, and wait 3 s at most.
const HOLD_AND_WAIT: &str = "&hold_ms=10&wait_ms=3000";
/// The pause between purchases and between looks: short beside a fault of seconds.
const POLL_PAUSE: Duration = Duration::from_millis(50);
/// How long a fault lasts: longer than the other servers wait before they go on without the broken one.
const FAULT_DURATION: Duration = Duration::from_secs(8);
/// The length of a run without a fault: long enough for many sales of each strategy.
const HEALTHY_DURATION: Duration = Duration::from_secs(4);
/// Bounds the start of instances, and the time until all sell again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);
/// An answered order that is not written within this is lost.
const WRITE_BEHIND_LIMIT: Duration = Duration::from_secs(10);

/// A strategy or step with its goods, its purchases, and the answers to its buyers.
struct StrategyUnderTest<'a> {
    slug: &'static str,
    goods: Goods<'a>,
    purchases: Purchases,
    answers: Mutex<BuyerAnswers>,
}

/// The goods that the buyers of one strategy buy: a product, or for a step of the seckill a voucher.
enum Goods<'a> {
    /// A product, and the store that counts its pieces.
    Product(Product<'a>, Store),
    /// A voucher, and the number of its users; each orders once.
    Voucher(TrialVoucher<'a>, AtomicI64),
}

impl<'a> Goods<'a> {
    /// Makes a product for a strategy, or a voucher for a step of the seckill.
    async fn of(on: &'a Cluster, slug: &str) -> Result<Self, NoVerdict> {
        let Some(strategy) = stock::find(slug) else {
            return Ok(Self::Voucher(on.create_voucher_on_sale(STOCK).await?, AtomicI64::new(0)));
        };
        let product = on.create_product_on_each_node(STOCK).await?;
        Ok(Self::Product(product, strategy.spec.store))
    }

    /// Buys a piece, or orders the voucher for a new user; returns the answer and that user, `None` for a piece.
    async fn buy(&self, at: &str, slug: &str) -> (Result<(u16, Value), HttpError>, Option<i64>) {
        match self {
            Self::Product(product, _) => (product.buy(at, slug, HOLD_AND_WAIT).await, None),
            Self::Voucher(voucher, users) => {
                let user = users.fetch_add(1, Relaxed);
                let answer = voucher.order(at, slug, user, HOLD_AND_WAIT).await;
                (answer, Some(voucher.user(user)))
            }
        }
    }

    /// Waits, without a limit, until the stock or the orders can be read, and compares them with the answers; a lost order gets
    /// [`WRITE_BEHIND_LIMIT`] to be written.
    async fn compare_with(&self, told: &BuyerAnswers) -> FaultResult {
        let begun = Instant::now();
        loop {
            let cell = match self {
                Self::Product(product, store) => {
                    let left = product.stock().count(*store).await.ok();
                    left.map(|left| FaultResult::of(told, STOCK - left))
                }
                Self::Voucher(voucher, _) => {
                    let records = voucher.read_records().await.ok();
                    let cell = records.map(|records| FaultResult::of_orders(told, &records));
                    // Orders that are written behind may still be missing.
                    cell.filter(|cell| cell.lost == 0 || begun.elapsed() > WRITE_BEHIND_LIMIT)
                }
            };
            if let Some(cell) = cell {
                return cell;
            }
            sleep(POLL_PAUSE).await;
        }
    }

    /// Removes the product or the voucher at the service.
    async fn remove(self) -> Result<(), NoVerdict> {
        match self {
            Self::Product(product, _) => product.remove().await,
            Self::Voucher(voucher, _) => voucher.remove().await,
        }
    }
}

impl StrategyUnderTest<'_> {
    /// Buys once at an instance, records the purchase, and pauses.
    async fn buy_at(&self, at: &str) {
        let buys = async {
            let (answer, user) = self.goods.buy(at, self.slug).await;
            let outcome = outcome(&answer);
            let body = answer.ok().map(|(_, body)| body);
            self.answers.lock().record(&outcome, body.as_ref(), user);
            outcome
        };
        self.purchases.record(buys).await;
        sleep(POLL_PAUSE).await;
    }

    /// Takes the answers out, and compares them with the goods; fails after [`RECOVERY_TIMEOUT`]. `back`: the strategy has sold
    /// again, so the longest gap since the fault is a figure.
    async fn cell(&self, since: Instant, back: bool) -> Result<FaultResult, NoVerdict> {
        let told = mem::take(&mut *self.answers.lock());
        let late = |_| NoVerdict::failed("the stock cannot be read");
        let counted = timeout(RECOVERY_TIMEOUT, self.goods.compare_with(&told)).await;
        let gap = self.purchases.longest_gap(since, Instant::now());
        Ok(FaultResult {
            strategy: self.slug.to_owned(),
            without_service_ms: back.then(|| u64::try_from(gap.as_millis()).unwrap_or(u64::MAX)),
            ..counted.map_err(late)?
        })
    }
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
    let tried = try_join_all(engine.strategies.iter().map(|slug| async move {
        Ok::<_, NoVerdict>(StrategyUnderTest {
            slug,
            goods: Goods::of(on, slug).await?,
            purchases: Purchases::default(),
            answers: Mutex::default(),
        })
    }))
    .await?;
    let buyers = tried.iter().flat_map(|one| {
        let at = on.instances().iter();
        at.map(move |at| move || one.buy_at(at))
    });
    let all_sell = async |since| {
        let sold = tried.iter().map(|one| one.purchases.wait_for_sales(since, RECOVERY_TIMEOUT));
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
    let (since, back) = run_buyers_during(buyers, broken).await?;
    let mut cells = Vec::new();
    for (one, back) in tried.iter().zip(back) {
        let cell = one.cell(since, back.is_some()).await?;
        let promises = engine.promises(one.slug, fault);
        cells.push(FaultResult { promises, ..cell });
    }
    // A paused node of a cluster may not be part of it yet, and then refuses what removes the goods.
    wait_until_all_ready(on).await?;
    for one in tried {
        one.goods.remove().await?;
    }
    if let Some(cell) = cells.iter().find(|cell| engine.must_be_noticed(fault) && !cell.was_noticed()) {
        let (engine, slug) = (engine.id, &cell.strategy);
        let why = format!("{engine}, {fault:?}: {slug} sold on, as if nothing were broken");
        return Err(NoVerdict::failed(why));
    }
    Ok(FaultRun { engine: engine.id.to_owned(), fault, cells })
}

/// Injects the fault, mends it after [`FAULT_DURATION`], and, if Sentinels lead, waits until the old primary is a replica. A leader of
/// ZooKeeper that was killed or paused is mended only once there is another one. A planned fail-over is not mended;
/// [`Fault::None`] only waits for [`HEALTHY_DURATION`].
async fn break_and_mend(own: &OwnLab, breaks: BrokenServer, fault: Fault) -> Result<(), NoVerdict> {
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
        Fault::Pause => (Action::Pause, Action::Resume),
        Fault::Cut => (Action::Cut, Action::Mend),
    };
    let one_zookeeper = !on.servers()?.zookeeper.connect.contains(',');
    let mut led = None;
    let server = match breaks {
        BrokenServer::MySql => "mysql".to_owned(),
        BrokenServer::Redis if on.servers()?.sentinels.is_empty() => "redis".to_owned(),
        BrokenServer::Redis => {
            let (name, url) = leading_redis(on).await?;
            led = Some(url);
            name.to_owned()
        }
        BrokenServer::ZooKeeper if one_zookeeper => "zookeeper".to_owned(),
        BrokenServer::ZooKeeper => own.wait_for_leader_and_followers("").await?.remove(0),
    };
    on.inject_fault(does, &server).await?;
    sleep(FAULT_DURATION).await;
    if breaks == BrokenServer::ZooKeeper && !one_zookeeper && does != Action::Cut {
        // Buyers may not notice the election: require a new leader, or nothing was broken.
        own.wait_for_leader_and_followers(&server).await?;
    }
    on.inject_fault(mends, &server).await?;
    match led {
        Some(url) => wait_until_replica(&url).await,
        None => Ok(()),
    }
}

/// Asks a Sentinel for the primary Redis; returns its name and address.
async fn leading_redis(on: &Cluster) -> Result<(&'static str, String), NoVerdict> {
    let at = on.servers()?;
    let none = || NoVerdict::failed("the Sentinels know nobody who leads");
    let sentinel = at.sentinels.first().ok_or_else(none)?;
    let mut sentinel = redis_at(&sentinel.url).await?;
    let known: Vec<HashMap<String, String>> = send_command(&mut sentinel, &["SENTINEL", "MASTERS"]).await?;
    let port = known.first().and_then(|known| known.get("port"));
    let port = port.ok_or_else(none)?;
    let members = at.redis.iter().chain(&at.replicas);
    let mut named = members.zip(["redis", "replica", "replica-2"]);
    let leads = named.find(|(member, _)| member.url.rsplit(':').next() == Some(port));
    let (member, name) = leads.ok_or_else(none)?;
    Ok((name, member.url.clone()))
}

/// Waits until the old primary is a replica; until then it takes writes, which are lost. Fails after [`RECOVERY_TIMEOUT`].
async fn wait_until_replica(led: &str) -> Result<(), NoVerdict> {
    let followed = async {
        loop {
            let role = redis::cmd("INFO").arg("replication").to_owned();
            let said: Option<String> = match redis_at(led).await {
                Ok(mut at) => role.query_async(&mut at).await.ok(),
                Err(_) => None,
            };
            if said.is_some_and(|said| said.contains("role:slave")) {
                return;
            }
            sleep(POLL_PAUSE).await;
        }
    };
    let late = |_| NoVerdict::failed("the Redis that led does not follow");
    timeout(RECOVERY_TIMEOUT, followed).await.map_err(late)
}

/// Waits until all instances are ready; fails after [`RECOVERY_TIMEOUT`].
async fn wait_until_all_ready(on: &Cluster) -> Result<(), NoVerdict> {
    let instances = on.instances().iter();
    try_join_all(instances.map(|at| wait_until_ready(on, at))).await.map(drop)
}

async fn wait_until_ready(on: &Cluster, at: &str) -> Result<(), NoVerdict> {
    let url = format!("{at}/health/ready");
    let ready = async {
        while !on.get(&url).await.is_ok_and(|answer| answer.status.is_success()) {
            sleep(POLL_PAUSE).await;
        }
    };
    let late = |_| NoVerdict::failed(format!("{at} is not ready"));
    timeout(RECOVERY_TIMEOUT, ready).await.map_err(late)
}
