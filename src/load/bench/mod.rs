//! `oversell bench`: what each strategy reaches of what it could at most.
//!
//! Absolute figures of a shared machine mean little, so each is a ratio to a ceiling that is measured in the same run:
//! the same SQL without HTTP, from as many connections as sell most, or one client that has a lock to itself. Ceiling
//! and strategy take turns, and the ratios of the rounds are compared, so that a slow minute hits both. Only pieces that
//! were sold count, and one request that failed makes a figure void.
//!
//! Next: `wishes.rs`, which lists what is measured and what is wanted of it.

mod direct;
mod figure;
mod ids;
mod keys;
mod memory;
mod repeat;
mod serial;
mod wishes;

use super::{
    conditions::Conditions,
    measure::one,
    plan::{ONE, PLENTY, THREE, own_product},
    run::Snapshot,
    stock_api::StockApi,
    target::{Registry, check, token},
    terminal::{Bar, stopped, write_json},
    verdict::Verdict,
};
use crate::{
    addresses::{Addresses, LAB_JSON},
    failure::Failure,
    stock,
};
use direct::Direct;
use figure::{Figure, Unit, Wanted};
use ids::Ids;
use serde::Serialize;
use serial::Serial;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wishes::{CONNECTIONS, Lock, WAITERS, Wish, Work, at, lock_wishes, measurements};

/// From how many connections the SQL is tried: on one hot row, more of them may sell less.
const SQL_CONNECTIONS: [usize; 3] = [10, 30, CONNECTIONS];
/// How long each ceiling is measured in each round.
const CEILING_TIME: Duration = Duration::from_secs(1);
/// The slowest of [`WAITERS`] against the fastest.
const FLAT: f64 = 0.8;

/// Measures strategies as ratios to ceilings of the same run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  oversell bench --lab              a lab of its own
  oversell bench --json bench.json  the lab that runs; the start-up of an instance is left out then
  oversell bench --rounds 9         calmer medians

The loop is closed: see `oversell compare --help`.

Exit status: 0 every figure reached, 1 one was missed, 2 bad usage or no lab.")]
pub struct Args {
    /// How often ceiling and strategy take turns
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Writes every figure to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Prints the table in Markdown
    #[arg(long)]
    markdown: bool,
    /// Where a running lab has written its addresses
    #[arg(long, value_name = "PATH", default_value = LAB_JSON)]
    lab_json: PathBuf,
}

/// Everything that a bench has found.
#[derive(Debug, Serialize)]
struct Found {
    conditions: Conditions,
    rounds: u32,
    figures: Vec<Figure>,
}

/// The lab under measurement, and what was measured so far.
struct Bench<'a> {
    at: &'a Addresses,
    bar: Bar,
    stop: &'a CancellationToken,
    /// By name, one value for each round.
    rates: BTreeMap<String, Vec<f64>>,
    /// The longest latency over the mean, and the 99 % line over the median, of each lock with 100 waiters.
    waits: BTreeMap<String, [Vec<f64>; 2]>,
    /// By figure: what went wrong.
    void: BTreeMap<String, String>,
}

/// The clients of the ceilings, kept from one round to the next.
struct Ceilings {
    direct: Direct,
    alone: [Arc<Serial>; 2],
    ids: Ids,
}

/// Runs the command, against the lab at `at` or the one that the arguments name; `starts` is how long an instance took
/// to start, where that was measured.
///
/// # Errors
///
/// [`Failure::Promise`] where a figure is missed, [`Failure::Unusable`] where no lab is running or a signal stopped it.
pub async fn run(
    args: Args,
    at: Option<Addresses>,
    starts: Vec<Duration>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let at = match at {
        Some(at) => at,
        None => Addresses::of_running_lab(&args.lab_json)?,
    };
    let works = measurements();
    let slugs: Vec<_> = works.iter().filter_map(|(_, work)| work.slug()).collect();
    check(&at.http, Registry::Strategies, &slugs).await?;
    let conditions = Conditions::of(Some(&at)).await;
    // First, while this process is small.
    let keys = keys::figures(at.redis.first().map_or("", |node| &node.url)).await?;
    println!("{conditions}\nmedian of {} rounds", args.rounds);
    let mut bench = Bench {
        at: &at,
        bar: Bar::new(args.rounds as usize * works.len()),
        stop: &stop,
        rates: BTreeMap::new(),
        waits: BTreeMap::new(),
        void: BTreeMap::new(),
    };
    bench.measure(args.rounds, &works).await?;
    let mut figures = bench.figures(&starts)?;
    figures.extend(keys);
    drop(bench);

    println!("{}", figure::shown(&figures, args.markdown));
    let missed: Vec<_> = figures
        .iter()
        .filter(|f| !f.reached)
        .map(|f| f.figure.clone())
        .collect();
    if let Some(path) = &args.json {
        let rounds = args.rounds;
        write_json(
            path,
            &Found {
                conditions,
                rounds,
                figures,
            },
        )?;
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Promise(format!("missed: {}", missed.join("; "))))
    }
}

impl Bench<'_> {
    async fn measure(&mut self, rounds: u32, works: &[(String, Work)]) -> Result<(), Failure> {
        let Addresses {
            mysql,
            redis,
            zookeeper,
            http,
            ..
        } = self.at;
        let redis = redis.first().map_or("", |node| &node.url);
        let strategy = stock::find("single-update").expect("it is in the registry");
        let (token, stock_id) = (token(), own_product());
        let product = StockApi {
            base: http,
            stock_id,
            strategy,
            token: token.as_ref(),
        };
        product.reset(PLENTY).await?;
        let ceilings = Ceilings {
            direct: Direct::new(&mysql.url, CONNECTIONS, stock_id)?,
            alone: [
                Serial::redis(redis, &mysql.url, stock_id)?,
                Serial::zookeeper(&zookeeper.connect, &mysql.url, stock_id).await?,
            ],
            ids: Ids::new(redis)?,
        };
        let mut measured = Ok(());
        for (name, work) in (0..rounds).flat_map(|_| works) {
            measured = self.once(name, work, &ceilings).await;
            if measured.is_err() {
                break;
            }
        }
        for alone in &ceilings.alone {
            alone.close().await;
        }
        ceilings.ids.close().await;
        drop(ceilings);
        measured.and(product.remove().await)
    }

    async fn once(&mut self, name: &str, work: &Work, on: &Ceilings) -> Result<(), Failure> {
        if self.stop.is_cancelled() {
            return Err(stopped());
        }
        let rate = match *work {
            Work::Sell { .. } | Work::Order { .. } => self.load(name, work).await?,
            Work::Sql(sql) => {
                let best = async {
                    let mut best = 0.0_f64;
                    for connections in SQL_CONNECTIONS {
                        let rate = on.direct.per_second(sql, connections, CEILING_TIME).await?;
                        best = best.max(rate);
                    }
                    Ok(best)
                };
                self.ceiling(name, best).await?
            }
            Work::Alone(lock) => {
                let alone = &on.alone[lock as usize];
                self.ceiling(name, alone.per_second(CEILING_TIME)).await?
            }
            Work::Numbers(way) => {
                let rate = on.ids.per_second(way, CEILING_TIME);
                self.ceiling(name, rate).await?
            }
        };
        self.rates.entry(name.into()).or_default().push(rate);
        Ok(())
    }

    async fn ceiling(
        &self,
        name: &str,
        rate: impl Future<Output = Result<f64, Failure>>,
    ) -> Result<f64, Failure> {
        let nothing = watch::channel(Snapshot::default()).1;
        self.bar.during(name, nothing, rate).await
    }

    async fn load(&mut self, name: &str, work: &Work) -> Result<f64, Failure> {
        let one_instance = || {
            let first = self.at.instances.first();
            first.map_or("", |instance| instance.url.as_str())
        };
        let (base, target) = match work {
            Work::Order { hold_ms: 1.., .. } => (one_instance(), ONE),
            _ => (self.at.http.as_str(), THREE),
        };
        let mut plan = work.plan(base, target);
        plan.token = token();
        let row = one(&self.bar, &plan, self.stop).await?;
        if self.stop.is_cancelled() {
            return Err(stopped());
        }
        match *work {
            Work::Sell { slug, waiters, .. } => {
                if row.verdict != Verdict::Exact {
                    self.void
                        .insert(slug.into(), row.complaint().unwrap_or_default());
                }
                if waiters == Some(CONNECTIONS) {
                    let [longest, tail] = self.waits.entry(slug.into()).or_default();
                    longest.push(row.stats.max / row.stats.average);
                    tail.push(row.stats.p99_line / row.stats.median);
                }
            }
            _ => self
                .void
                .extend(row.complaint().map(|why| (name.to_owned(), why))),
        }
        Ok(row.sold_per_sec)
    }

    fn rates(&self, name: &str) -> &[f64] {
        self.rates.get(name).map_or(&[], Vec::as_slice)
    }

    fn wished(&self, wish: &Wish) -> Figure {
        let (seen, ceiling) = (self.rates(&wish.measured), self.rates(&wish.ceiling));
        Figure::ratio(&wish.figure, seen, wish.of, ceiling, wish.wanted)
            .bounded_by(wish.bounded_by)
            .unless(self.void.get(&wish.figure).cloned())
    }

    /// All that was measured comes to.
    fn figures(&self, starts: &[Duration]) -> Result<Vec<Figure>, Failure> {
        let mut figures: Vec<_> = wishes::strategies()
            .map(|wish| self.wished(&wish))
            .collect();
        for (lock, wish) in lock_wishes() {
            figures.push(self.wished(&wish));
            figures.extend(self.of_lock(lock, wish.bounded_by));
        }
        figures.extend(wishes::orders().map(|wish| self.wished(&wish)));
        figures.extend(wishes::numbers().map(|wish| self.wished(&wish)));
        let mut memory = 0.0_f64;
        for instance in &self.at.instances {
            memory = memory.max(memory::peak(instance.pid)?);
        }
        let what = "memory of an instance, its peak";
        figures.push(
            Figure::at_most(what, &[memory], Unit::Megabytes, 60.0)
                .bounded_by("1,000 connections at once"),
        );
        if !starts.is_empty() {
            let ms = starts.iter().map(|took| took.as_secs_f64() * 1000.0);
            let (ms, what) = (ms.collect::<Vec<_>>(), "start-up of an instance");
            figures.push(
                Figure::at_most(what, &ms, Unit::Milliseconds, 1000.0)
                    .bounded_by("a ZooKeeper session, and how often the lab looks"),
            );
        }
        Ok(figures)
    }

    /// How much its number of waiters slows a lock down, and how long the unluckiest of them wait.
    fn of_lock(&self, lock: Lock, bounded_by: &'static str) -> impl Iterator<Item = Figure> {
        let slug = lock.slug();
        let each = WAITERS.map(|waiters| self.rates(&at(slug, waiters)));
        let extreme = |pick: fn(f64, f64) -> f64| -> Vec<f64> {
            let rounds = each.iter().map(|rates| rates.len()).min().unwrap_or(0);
            let of_round = |i: usize| each.iter().map(|rates| rates[i]).reduce(pick);
            (0..rounds).filter_map(of_round).collect()
        };
        let flat = Figure::ratio(
            &format!("{slug}, slowest of 10, 100 and 1,000 waiters"),
            &extreme(f64::min),
            "the fastest of them",
            &extreme(f64::max),
            Wanted::Ratio(FLAT),
        );
        let [longest, tail] = self.waits.get(slug).cloned().unwrap_or_default();
        let times = |what: &str, seen: &[f64], most| {
            Figure::at_most(&format!("{slug}, {what}"), seen, Unit::Times, most)
        };
        let void = self.void.get(slug).cloned();
        [
            flat,
            times("longest wait over the mean", &longest, 20.0),
            times("p99 over the median", &tail, 10.0),
        ]
        .into_iter()
        .map(move |figure| figure.bounded_by(bounded_by).unless(void.clone()))
    }
}
