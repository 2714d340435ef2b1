//! `oversell bench`: what each strategy reaches of what it could at most.
//!
//! Absolute figures of a shared machine mean little, so each is a ratio to a ceiling that is measured in the same run:
//! the same SQL without HTTP, from as many connections as sell most, or one client that has a lock to itself. Ceiling
//! and strategy take turns, and the ratios of the rounds are compared, so that a slow minute hits both. Only pieces that
//! were sold count, and one request that failed makes a figure void.

mod direct;
mod figure;
mod ids;
mod keys;
mod seckill;
mod serial;

use super::{
    Row,
    conditions::Conditions,
    engine::Timed,
    row::THREE,
    run::{PLENTY, Plan, Snapshot, own_product, run as load},
    stock_api::StockApi,
    target::{check, token},
    terminal::{Bar, stopped, write_json},
    verdict::Verdict,
};
use crate::{
    addresses::{Addresses, LAB_JSON},
    failure::Failure,
    stock,
};
use direct::{Direct, Work};
use figure::{Figure, Unit};
use ids::Ids;
use serde::Serialize;
use serial::Serial;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Connections of the ratios.
const CONNECTIONS: usize = 100;
/// How many wait for a lock, from few to many.
const WAITERS: [usize; 3] = [10, CONNECTIONS, 1000];
/// From how many connections the SQL is tried: on one hot row, more of them may sell less.
const SQL_CONNECTIONS: [usize; 3] = [10, 30, CONNECTIONS];
/// How long each strategy is measured in each round.
const TIME: Timed = Timed {
    warm_up: Duration::from_millis(500),
    measured: Duration::from_millis(1500),
    rate: None,
};
/// The same of a lock: until 1,000 stand in its queue, and some of them have been served.
const LOCK_TIME: Timed = Timed {
    warm_up: Duration::from_secs(3),
    measured: Duration::from_secs(2),
    rate: None,
};
/// How long each ceiling is measured in each round.
const CEILING_TIME: Duration = Duration::from_secs(1);
/// The slowest of [`WAITERS`] against the fastest.
const FLAT: f64 = 0.8;

/// A strategy, what it is held against, and what is wanted of it.
struct Wish {
    slug: &'static str,
    against: Against,
    least: f64,
    bounded_by: &'static str,
}

enum Against {
    Sql(Work),
    Strategy(&'static str),
}

/// A strategy that the registry does not have is left out.
const WISHES: [Wish; 5] = [
    Wish {
        slug: "single-update",
        against: Against::Sql(Work::Update),
        least: 0.6,
        bounded_by: "one row: each commit waits for the one before; HTTP shares the cores",
    },
    Wish {
        slug: "single-update-merged",
        against: Against::Sql(Work::Update),
        least: 1.0,
        bounded_by: "HTTP: one commit is for all who wait",
    },
    Wish {
        slug: "single-update-buckets",
        against: Against::Sql(Work::Update),
        least: 0.6,
        bounded_by: "commits of 16 rows; HTTP shares the cores",
    },
    Wish {
        slug: "select-for-update",
        against: Against::Sql(Work::ForUpdate),
        least: 0.7,
        bounded_by: "one row, locked for four round trips",
    },
    Wish {
        slug: "redis-watch-merged",
        against: Against::Strategy("redis-script"),
        least: 0.6,
        bounded_by: "HTTP: one transaction is for all who wait",
    },
];

/// A lock, and what it must reach of one client that has it to itself.
const LOCKS: [(&str, &str, f64, &str); 2] = [
    (
        "redis-lock",
        "one client, nobody else",
        0.9,
        "one at a time: lock, two statements, unlock",
    ),
    (
        "zk-lock",
        "one client: create, section, delete",
        0.8,
        "one at a time, each with two writes of ZooKeeper",
    ),
];

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
    /// The longest latency over the mean, and the 99 % line over the median, of each lock with 100 who wait.
    waits: BTreeMap<&'static str, [Vec<f64>; 2]>,
    /// By strategy: what went wrong.
    void: BTreeMap<String, String>,
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
    let rated: Vec<_> = rated().collect();
    let known = |slug: &&str| stock::find(slug);
    check(
        &at.http,
        &rated
            .iter()
            .chain(&LOCKS.map(|lock| lock.0))
            .filter_map(known)
            .collect::<Vec<_>>(),
    )
    .await?;
    let conditions = Conditions::of(Some(&at)).await;
    // First, while this process is small.
    let keys = keys::figures(at.redis.first().map_or("", |node| &node.url)).await?;
    println!("{conditions}\nmedian of {} rounds", args.rounds);
    let steps = 2 + rated.len() + LOCKS.len() * (1 + WAITERS.len()) + seckill::RUNS + ids::STEPS;
    let steps = args.rounds as usize * steps;
    let (rates, waits, void) = Default::default();
    let mut bench = Bench {
        at: &at,
        bar: Bar::new(steps),
        stop: &stop,
        rates,
        waits,
        void,
    };
    bench.measure(args.rounds).await?;
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
        write_json(
            path,
            &Found {
                conditions,
                rounds: args.rounds,
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

/// The strategies whose rate is asked for, each next to its ceiling.
fn rated() -> impl Iterator<Item = &'static str> {
    WISHES
        .iter()
        .filter(|wish| stock::find(wish.slug).is_some())
        .flat_map(|wish| {
            let other = if let Against::Strategy(other) = wish.against {
                Some(other)
            } else {
                None
            };
            std::iter::once(wish.slug).chain(other)
        })
}

impl Bench<'_> {
    async fn measure(&mut self, rounds: u32) -> Result<(), Failure> {
        let Addresses {
            mysql,
            redis,
            zookeeper,
            http,
            ..
        } = self.at;
        let strategy = stock::find("single-update").expect("it is in the registry");
        let (token, stock_id) = (token(), own_product());
        let product = StockApi {
            base: http,
            stock_id,
            strategy,
            token: token.as_ref(),
        };
        product.reset(PLENTY).await?;
        let direct = Direct::new(&mysql.url, CONNECTIONS, stock_id)?;
        let alone = [
            Serial::redis(
                redis.first().map_or("", |node| &node.url),
                &mysql.url,
                stock_id,
            )?,
            Serial::zookeeper(&zookeeper.connect, &mysql.url, stock_id).await?,
        ];
        let ids = Ids::new(redis.first().map_or("", |node| &node.url))?;
        let mut measured = Ok(());
        for _ in 0..rounds {
            measured = self.round(&direct, &alone, &ids).await;
            if measured.is_err() {
                break;
            }
        }
        for alone in alone {
            alone.close().await;
        }
        ids.close().await;
        drop(direct);
        measured.and(product.remove().await)
    }

    /// Every ceiling, every strategy and every way to have ids once.
    async fn round(
        &mut self,
        direct: &Direct,
        alone: &[Serial; 2],
        ids: &Ids,
    ) -> Result<(), Failure> {
        for work in [Work::Update, Work::ForUpdate] {
            let best = async {
                let mut best = 0.0_f64;
                for connections in SQL_CONNECTIONS {
                    best = best.max(direct.per_second(work, connections, CEILING_TIME).await?);
                }
                Ok(best)
            };
            self.note(work.name(), best).await?;
        }
        for slug in rated() {
            self.load(slug, CONNECTIONS, slug, TIME).await?;
        }
        for ((slug, name, ..), alone) in LOCKS.iter().zip(alone) {
            self.note(&format!("{slug}: {name}"), alone.per_second(CEILING_TIME))
                .await?;
            for waiters in WAITERS {
                let row = self
                    .load(slug, waiters, &format!("{slug} {waiters}"), LOCK_TIME)
                    .await?;
                if waiters == CONNECTIONS {
                    let [longest, tail] = self.waits.entry(slug).or_default();
                    longest.push(row.stats.max / row.stats.average);
                    tail.push(row.stats.p99_line / row.stats.median);
                }
            }
        }
        seckill::round(self).await?;
        ids::round(self, ids).await
    }

    async fn note(
        &mut self,
        name: &str,
        rate: impl Future<Output = Result<f64, Failure>>,
    ) -> Result<(), Failure> {
        if self.stop.is_cancelled() {
            return Err(stopped());
        }
        let rate = self
            .bar
            .during(name, watch::channel(Snapshot::default()).1, rate)
            .await?;
        self.rates.entry(name.into()).or_default().push(rate);
        Ok(())
    }

    async fn load(
        &mut self,
        slug: &str,
        connections: usize,
        name: &str,
        time: Timed,
    ) -> Result<Row, Failure> {
        let mut plan = Plan::new(&self.at.http, THREE, slug);
        (plan.threads, plan.token) = (connections, token());
        let (progress, snapshots) = watch::channel(Snapshot::default());
        let row = self
            .bar
            .during(
                name,
                snapshots,
                load(&plan.timed(time), &progress, self.stop),
            )
            .await?;
        if self.stop.is_cancelled() {
            return Err(stopped());
        }
        if row.verdict != Verdict::Exact {
            let why = row.complaint().unwrap_or_default();
            self.void.insert(slug.into(), why);
        }
        self.rates
            .entry(name.into())
            .or_default()
            .push(row.sold_per_sec);
        Ok(row)
    }

    fn rates(&self, name: &str) -> &[f64] {
        self.rates.get(name).map_or(&[], Vec::as_slice)
    }

    /// All that was measured comes to.
    fn figures(&self, starts: &[Duration]) -> Result<Vec<Figure>, Failure> {
        let mut figures = Vec::new();
        for Wish {
            slug,
            against,
            least,
            bounded_by,
        } in WISHES
            .iter()
            .filter(|wish| stock::find(wish.slug).is_some())
        {
            let (ceiling, of) = match against {
                Against::Sql(work) => (work.name(), "the same SQL without HTTP"),
                Against::Strategy(other) => (*other, *other),
            };
            let figure = Figure::ratio(slug, self.rates(slug), of, self.rates(ceiling), *least);
            figures.push(
                figure
                    .bounded_by(bounded_by)
                    .unless(self.void.get(*slug).cloned()),
            );
        }
        for (slug, name, least, bounded_by) in LOCKS {
            let of = |waiters: usize| self.rates(&format!("{slug} {waiters}"));
            let extreme = |pick: fn(f64, f64) -> f64| -> Vec<f64> {
                let rounds = 0..of(CONNECTIONS).len();
                rounds
                    .map(|i| {
                        WAITERS
                            .iter()
                            .map(|w| of(*w)[i])
                            .reduce(pick)
                            .unwrap_or_default()
                    })
                    .collect()
            };
            let (slowest, fastest) = (extreme(f64::min), extreme(f64::max));
            let waits = self.waits.get(slug).cloned().unwrap_or_default();
            for figure in [
                Figure::ratio(
                    slug,
                    of(CONNECTIONS),
                    name,
                    self.rates(&format!("{slug}: {name}")),
                    least,
                ),
                Figure::ratio(
                    &format!("{slug}, slowest of 10, 100 and 1,000 waiters"),
                    &slowest,
                    "the fastest of them",
                    &fastest,
                    FLAT,
                ),
                Figure::at_most(
                    &format!("{slug}, longest wait over the mean"),
                    &waits[0],
                    Unit::Times,
                    20.0,
                ),
                Figure::at_most(
                    &format!("{slug}, p99 over the median"),
                    &waits[1],
                    Unit::Times,
                    10.0,
                ),
            ] {
                figures.push(
                    figure
                        .bounded_by(bounded_by)
                        .unless(self.void.get(slug).cloned()),
                );
            }
        }
        figures.extend(seckill::figures(self));
        figures.extend(ids::figures(self));
        let mut memory = 0.0_f64;
        for instance in &self.at.instances {
            memory = memory.max(peak_memory(instance.pid)?);
        }
        let largest = Figure::at_most(
            "memory of an instance, its peak",
            &[memory],
            Unit::Megabytes,
            60.0,
        );
        figures.push(largest.bounded_by("1,000 connections at once"));
        if !starts.is_empty() {
            let starts: Vec<_> = starts
                .iter()
                .map(|took| took.as_secs_f64() * 1000.0)
                .collect();
            let start = Figure::at_most(
                "start-up of an instance",
                &starts,
                Unit::Milliseconds,
                1000.0,
            );
            figures.push(start.bounded_by("a ZooKeeper session, and how often the lab looks"));
        }
        Ok(figures)
    }
}

/// The most memory that a process has had resident since it started (`VmHWM`), in MB of 10⁶ bytes.
fn peak_memory(pid: u32) -> Result<f64, Failure> {
    memory(pid, "VmHWM")
}

/// The memory that a process has resident now (`VmRSS`), in the same unit.
fn resident(pid: u32) -> Result<f64, Failure> {
    memory(pid, "VmRSS")
}

fn memory(pid: u32, line: &str) -> Result<f64, Failure> {
    let path = format!("/proc/{pid}/status");
    let status =
        std::fs::read_to_string(&path).map_err(|e| Failure::Unusable(format!("{path}: {e}")))?;
    kilobytes(&status, line)
        .map(|kb| kb * 1024.0 / 1e6)
        .ok_or_else(|| Failure::Unusable(format!("{path} has no line {line}")))
}

fn kilobytes(status: &str, wanted: &str) -> Option<f64> {
    let mut values = status
        .lines()
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| *name == wanted);
    values.find_map(|(_, value)| value.trim().strip_suffix("kB")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_the_line_that_has_it() {
        let status = "Name:\toversell\nVmHWM:\t   39064 kB\nVmRSS:\t   30000 kB\n";
        assert_eq!(
            (kilobytes(status, "VmHWM"), kilobytes(status, "VmRSS")),
            (Some(39064.0), Some(30000.0))
        );
        assert_eq!(kilobytes("Name:\toversell\n", "VmHWM"), None);
        assert!(peak_memory(std::process::id()).unwrap() > 0.5);
    }
}
