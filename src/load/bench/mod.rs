//! `oversell bench`: what each strategy reaches of what it could at most.
//!
//! Absolute figures of a shared machine mean little, so each is a ratio to a ceiling that is measured in the same run:
//! the same SQL or Redis commands without HTTP or without contention, a static file for HTTP. Ceiling and strategy take
//! turns, and the medians are compared, so that a slow minute hits both.

mod commands;
mod course;
mod direct;
mod figure;
mod instance;
mod rates;
mod serial;
mod waiters;
mod zk_traffic;

use super::{
    Row, ceiling,
    conditions::Conditions,
    link::Origin,
    row::THREE,
    run::{Plan, Snapshot, run as load},
    stock_api::StockApi,
    target::{check, token},
    terminal::{Bar, stopped, write_json},
    verdict::Verdict,
};
use crate::{
    addresses::Addresses,
    failure::Failure,
    server::Server,
    stock::{self, Strategy},
};
use commands::Commands;
use direct::{Direct, Work};
use figure::{Figure, Unit, median};
use rates::Rates;
use serde::Serialize;
use serial::Serial;
use std::path::PathBuf;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use waiters::{Contended, WAITERS};

/// Connections of the ratios, and of the first look for errors.
const CONNECTIONS: usize = 100;
/// Connections of the second look for errors.
const MANY: usize = 1000;
/// Requests of one run against the service.
const REQUESTS: usize = 5000;
/// Repetitions on each connection to MySQL.
const DIRECT_LOOPS: usize = 80;
/// Repetitions of the one client of `serial`.
const SERIAL_LOOPS: usize = 1500;
/// Requests for the static file on each connection.
const FILE_LOOPS: usize = 200;
/// How often an instance is started.
const STARTS: usize = 3;
/// Few connections for locks that poll, and requests of each: some sell 40 pieces a second.
const FEW: (usize, usize) = (10, 10);
/// Connections while a lock server counts what it is sent, and requests of each: MONITOR is slow.
const COUNTED: (usize, usize) = (30, 20);
/// The steps of a round: two ceilings in SQL, five strategies and the static file; two locks, each with one client and
/// with each of [`WAITERS`]; the stages of the course.
const STEPS: u64 = (8 + 2 * (1 + WAITERS.len()) + course::STAGES.len()) as u64;
/// No ceiling may run out of stock.
const PLENTY: i64 = 100_000_000;

/// Measures each strategy as a ratio to a ceiling of the same run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  oversell bench --lab              a lab of its own
  oversell bench --json bench.json  the lab that runs
  oversell bench --rounds 9         calmer medians

Exit status: 0 every figure reached, 1 one was missed, 2 bad usage or no lab.")]
pub struct Args {
    /// How often ceiling and strategy take turns
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Writes every figure to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where a running lab has written its addresses
    #[arg(long, value_name = "PATH", default_value = super::target::LAB_JSON)]
    lab_json: PathBuf,
}

/// Everything that a bench has found.
#[derive(Debug, Serialize)]
struct Found {
    conditions: Conditions,
    figures: Vec<Figure>,
    /// Every strategy once with 100 connections, and with 1,000 those that do not take 50 ms for each.
    rows: Vec<Row>,
}

/// The lab under measurement.
struct Bench<'a> {
    at: &'a Addresses,
    direct: Direct,
    redis_alone: Serial,
    zk_alone: Serial,
    commands: Commands,
    bar: Bar,
    stop: &'a CancellationToken,
}

/// Runs the command, against the lab at `at` or the one that the arguments name.
///
/// # Errors
///
/// [`Failure::Promise`] where a figure is missed, [`Failure::Unusable`] where no lab is running or a signal stopped it.
pub async fn run(args: Args, at: Option<Addresses>, stop: CancellationToken) -> Result<(), Failure> {
    let at = match at {
        Some(at) => at,
        None => Addresses::of_running_lab(&args.lab_json)?,
    };
    check(&at.http, &stock::ALL.iter().collect::<Vec<_>>()).await?;
    let conditions = Conditions::of(Some(&at)).await;
    println!("{conditions}; median of {} rounds", args.rounds);
    let redis = at.redis.first().map_or("", |node| &node.url);
    let counted = 2 + using(Server::Redis).count() + using(Server::ZooKeeper).count();
    let steps = asked(CONNECTIONS).count() + asked(MANY).count() + counted + STARTS;
    let bench = Bench {
        direct: Direct::new(&at.mysql.url, CONNECTIONS)?,
        redis_alone: Serial::redis(redis, &at.mysql.url)?,
        zk_alone: Serial::zookeeper(&at.zookeeper.connect, &at.mysql.url).await?,
        commands: Commands::new(redis)?,
        bar: Bar::new(u64::from(args.rounds) * STEPS + steps as u64),
        at: &at,
        stop: &stop,
    };
    let (figures, rows) = bench.measure(args.rounds).await?;

    println!("{}", figure::table(&figures));
    for (row, reasons) in rows.iter().filter_map(|row| Some((row, row.reasons_line()?))) {
        println!("{} on {reasons}", row.strategy);
    }
    let missed: Vec<_> = figures.iter().filter(|f| f.reached == Some(false)).map(|f| f.figure.clone()).collect();
    if let Some(path) = &args.json {
        write_json(path, &Found { conditions, figures, rows })?;
    }
    if missed.is_empty() { Ok(()) } else { Err(Failure::Promise(format!("missed: {}", missed.join("; ")))) }
}

impl Bench<'_> {
    async fn measure(self, rounds: u32) -> Result<(Vec<Figure>, Vec<Row>), Failure> {
        let mut starts = Vec::new();
        for _ in 0..STARTS {
            self.step("start-up of an instance")?;
            starts.push(instance::start_up(self.at).await?);
        }
        let mut rates = Rates::new();
        for _ in 0..rounds {
            self.round(&mut rates).await?;
        }
        let hundred = self.every_strategy(CONNECTIONS).await?;
        let thousand = self.every_strategy(MANY).await?;
        let mut costs = self.commands_per_section().await?;
        costs.extend(self.requests_per_section().await?);
        let mut memory = 0.0_f64;
        for instance in &self.at.instances {
            memory = memory.max(instance::peak_memory(instance.pid)?);
        }
        self.redis_alone.close().await;
        self.zk_alone.close().await;

        let mut figures = rates.figures();
        figures.extend(course::figures(CONNECTIONS, |slug| {
            hundred.iter().filter(|row| row.strategy == slug).map(|row| row.stats.throughput).collect()
        }));
        for (rows, connections) in [(&hundred, CONNECTIONS), (&thousand, MANY)] {
            for row in rows.iter().filter(|row| ["version-cas", "redis-watch"].contains(&row.strategy)) {
                figures
                    .push(errors(&format!("{}, {connections} connections", row.strategy), std::slice::from_ref(row)));
            }
            let which = if rows.len() == stock::ALL.len() { "every strategy" } else { "those that do not all poll" };
            figures.push(errors(&format!("{which}, {connections} connections"), rows));
        }
        figures.push(Figure::at_most("memory of an instance, its peak", memory, Unit::Megabytes, 60.0));
        figures.extend(costs);
        figures.push(Figure::at_most("start-up of an instance", median(&starts), Unit::Milliseconds, 1000.0));
        Ok((figures, [hundred, thousand].concat()))
    }

    /// Every ceiling and every strategy once, each strategy next to its ceiling.
    async fn round(&self, rates: &mut Rates) -> Result<(), Failure> {
        self.plenty().await?;
        self.step("UPDATE without HTTP")?;
        rates.update.push(self.direct.per_second(Work::Update, DIRECT_LOOPS).await?);
        rates.single_update.push(self.rate("single-update").await?);
        self.step("FOR UPDATE without HTTP")?;
        rates.transaction.push(self.direct.per_second(Work::ForUpdate, DIRECT_LOOPS).await?);
        rates.select_for_update.push(self.rate("select-for-update").await?);
        rates.version_cas.push(self.rate("version-cas").await?);
        rates.redis_script.push(self.rate("redis-script").await?);
        rates.redis_watch.push(self.rate("redis-watch").await?);
        self.contend(&mut rates.redis_lock, &self.redis_alone).await?;
        self.contend(&mut rates.zk_lock, &self.zk_alone).await?;
        for (strategy, rates) in course::STAGES.into_iter().zip(&mut rates.stages) {
            rates.push(self.load(strategy, FEW.0, FEW.1).await?.stats.throughput);
        }
        self.step("a static file")?;
        rates.file.push(ceiling::static_file(&self.at.http, CONNECTIONS, FILE_LOOPS, self.stop).await?.throughput);
        Ok(())
    }

    /// A lock next to what one client that has it to itself can do.
    async fn contend(&self, lock: &mut Contended, alone: &Serial) -> Result<(), Failure> {
        self.plenty().await?;
        self.step(&format!("what {} has as its ceiling", lock.slug))?;
        let alone = alone.per_second(SERIAL_LOOPS).await?;
        let [few, common, many] = WAITERS;
        let few = self.load(lock.slug, few.0, few.1).await?.stats;
        let common = self.load(lock.slug, common.0, common.1).await?.stats;
        let many = self.load(lock.slug, many.0, many.1).await?.stats;
        lock.note(alone, &[few, common, many]);
        Ok(())
    }

    async fn every_strategy(&self, connections: usize) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        for strategy in asked(connections) {
            rows.push(self.load(strategy.slug, connections, REQUESTS / connections).await?);
        }
        Ok(rows)
    }

    async fn rate(&self, strategy: &str) -> Result<f64, Failure> {
        Ok(self.load(strategy, CONNECTIONS, REQUESTS / CONNECTIONS).await?.stats.throughput)
    }

    /// What a piece costs in commands to the main Redis, for each strategy that needs it.
    async fn commands_per_section(&self) -> Result<Vec<Figure>, Failure> {
        let (connections, loops) = COUNTED;
        let (_, resets) = self.commands.during(self.load("single-update", connections, loops)).await?;
        let mut figures = Vec::new();
        for strategy in using(Server::Redis) {
            let (row, sent) = self.commands.during(self.load(strategy.slug, connections, loops)).await?;
            let each = sent.saturating_sub(resets) as f64 / row.sold.max(1) as f64;
            figures.push(Figure::known(
                &format!("{}, commands to Redis per section", strategy.slug),
                each,
                Unit::Commands,
            ));
        }
        Ok(figures)
    }

    /// What a piece costs in round trips to ZooKeeper and in notifications from it, for each strategy that needs it.
    async fn requests_per_section(&self) -> Result<Vec<Figure>, Failure> {
        let (connections, loops) = COUNTED;
        let connect = &self.at.zookeeper.connect;
        let (_, rest) = zk_traffic::during(connect, self.load("single-update", connections, loops)).await?;
        let mut figures = Vec::new();
        for strategy in using(Server::ZooKeeper) {
            let (row, traffic) = zk_traffic::during(connect, self.load(strategy.slug, connections, loops)).await?;
            let (traffic, sold) = (traffic.beyond(rest), row.sold.max(1) as f64);
            for (what, number, unit) in [
                ("round trips to", traffic.requests, Unit::Requests),
                ("notifications from", traffic.notifications, Unit::Notifications),
            ] {
                let figure = format!("{}, {what} ZooKeeper per section", strategy.slug);
                figures.push(Figure::known(&figure, number as f64 / sold, unit));
            }
        }
        Ok(figures)
    }

    async fn load(&self, strategy: &str, connections: usize, loops: usize) -> Result<Row, Failure> {
        self.step(&format!("{strategy}, {connections} connections"))?;
        let plan = Plan {
            base: self.at.http.clone(),
            target: THREE.into(),
            strategy: strategy.into(),
            threads: connections,
            loops,
            hold_ms: 0,
            stock_id: 1,
            count: (connections * loops) as i64,
            token: token(),
        };
        load(&plan, &watch::Sender::new(Snapshot::default()), self.stop).await
    }

    async fn plenty(&self) -> Result<(), Failure> {
        let origin = Origin::parse(&self.at.http)?;
        StockApi { origin: &origin, stock_id: 1 }.reset(PLENTY, token().as_ref()).await
    }

    fn step(&self, what: &str) -> Result<(), Failure> {
        if self.stop.is_cancelled() {
            return Err(stopped());
        }
        self.bar.step(what);
        Ok(())
    }
}

/// The strategies that need this server.
fn using(server: Server) -> impl Iterator<Item = &'static Strategy> {
    stock::ALL.iter().filter(move |strategy| strategy.needs.contains(&server))
}

/// The strategies that so many connections are sent to: where all who wait poll, the last of 1,000 would get in after
/// 50 s, which is longer than any may wait.
fn asked(connections: usize) -> impl Iterator<Item = &'static Strategy> {
    stock::ALL.iter().filter(move |_| connections <= MANY)
}

/// Requests that failed or cannot be known, and pieces oversold by those that must not oversell.
fn errors(figure: &str, rows: &[Row]) -> Figure {
    let wrong = |row: &Row| {
        let oversold = if row.expected == Verdict::Exact { row.oversold.unsigned_abs() } else { 0 };
        row.errors + row.unknown + oversold
    };
    Figure::at_most(figure, rows.iter().map(wrong).sum::<u64>() as f64, Unit::Errors, 0.0)
}
