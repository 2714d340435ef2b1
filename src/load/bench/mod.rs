//! `oversell bench`: what each strategy reaches of what it could at most.
//!
//! Absolute figures of a shared machine mean little, so each is a ratio to a ceiling that is measured in the same run:
//! the same SQL without HTTP, from as many connections as sell most, or one client that has a lock to itself. Ceiling
//! and strategy take turns, and the ratios of the rounds are compared, so that a slow minute hits both. Only pieces that
//! were sold count, and one request that failed makes a result void.
//!
//! Next: `thresholds.rs`, which lists what is measured and what is wanted of it.

mod ceilings;
mod keys;
mod memory;
mod result;
mod thresholds;

pub use memory::peak_memory_mb;

use super::{
    conditions::Conditions,
    measure::run_with_progress,
    plan::{PLENTIFUL_STOCK, Plan, own_product},
    row::Row,
    run::Snapshot,
    stock_api::StockApi,
    target::{Registry, check, token},
    terminal::{Bar, stopped_by_signal},
};
use crate::stock;
use ceilings::Ceilings;
use oversell_lab::{
    addresses::{Addresses, LAB_JSON},
    terminal::{
        bilingual::Bilingual,
        chinese::localized,
        failure::Failure,
        stdout::{Output, Outputs, say},
    },
};
use result::{BenchResult, Goal, Unit, named, results_table};
use serde::Serialize;
use std::{collections::BTreeMap, path::PathBuf, time::Duration};
use thresholds::{Threshold, WAITERS, Work, measurements, thresholds};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The least ratio of the slowest to the fastest of [`WAITERS`]: more waiters may cost a lock a fifth of its rate.
const MIN_FLATNESS: f64 = 0.8;

/// Measures strategies as ratios to ceilings of the same run.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  oversell bench --lab              a lab of its own
  oversell bench --json bench.json  the lab that runs; the start-up of an instance is left out then
  oversell bench --rounds 9         calmer medians

The loop is closed: see `oversell compare --help`.

Exit status: 0 every figure reached, 1 one was missed, 2 bad usage or no lab, 130 cut short by a signal.")]
pub struct Args {
    /// How often ceiling and strategy take turns
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Writes every figure to this file
    #[arg(long, value_name = "FILE")]
    json: Option<Output>,
    /// Prints the table in Markdown
    #[arg(long)]
    markdown: bool,
    /// Where a running lab has written its addresses
    #[arg(long, value_name = "PATH", default_value = LAB_JSON)]
    lab_json: PathBuf,
}

impl Outputs for Args {
    fn outputs(&self) -> Vec<&Output> {
        self.json.iter().collect()
    }
}

/// The JSON of a bench.
#[derive(Debug, Serialize)]
struct BenchReport {
    conditions: Conditions,
    rounds: u32,
    figures: Vec<BenchResult>,
}

/// One measurement of a round.
#[derive(Debug, Default)]
struct RoundResult {
    /// Pieces sold, commands or ids.
    per_second: f64,
    /// The longest latency over the mean; 0 without HTTP.
    longest: f64,
    /// The 99 % line over the median; 0 without HTTP.
    tail: f64,
    /// Why it does not count.
    broken_promise: Option<String>,
}

/// The measurements of all rounds.
struct Rounds(BTreeMap<Work, Vec<RoundResult>>);

/// Runs the command, against the lab at `at` or the one that the arguments name; `starts` is how long an instance took
/// to start, where that was measured.
/// Errors: [`Failure::Promise`] where a figure is missed, [`Failure::Unusable`] where no lab is running,
/// [`Failure::Interrupted`] where a signal stopped it.
pub async fn run(args: Args, at: Option<Addresses>, starts: Vec<Duration>, stop: CancellationToken) -> Result<(), Failure> {
    let at = at.map_or_else(|| Addresses::read_running_lab(&args.lab_json), Ok)?;
    let has_etcd = !at.etcd.is_empty();
    let works = measurements(has_etcd);
    let slugs: Vec<_> = works.iter().filter_map(|work| work.strategy()).collect();
    check(&at.http, Registry::Strategies, &slugs).await?;
    if !has_etcd {
        say!("{}", localized!("没有 etcd，不测 etcd-lock", "left out, without etcd: etcd-lock"));
    }
    let conditions = Conditions::read(Some(&at)).await;
    // The keys come first, while this process is small.
    let keys = keys::measure_keys(at.first_redis()).await?;
    let rounds = args.rounds;
    say!("{conditions}\n{}", localized!("{rounds} 轮的中位数", "median of {rounds} rounds"));
    let measured = measure(&at, &works, rounds as usize, &stop).await?;
    let mut figures = measured.figures();
    figures.extend(process_figures(&at, &starts)?);
    figures.extend(keys);

    say!("{}", results_table(&figures, args.markdown));
    let missed: Vec<_> = figures.iter().filter(|result| !result.is_reached).map(|result| result.name.localized()).collect();
    if let Some(file) = &args.json {
        file.write_json(&BenchReport { conditions, rounds, figures })?;
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Promise(localized!("没有达到：{}", "missed: {}", missed.join("; "))))
    }
}

/// Measures all of `works` in each round. The ceilings share a product, which is removed at the end; each load has its own.
/// Errors: [`Failure::Interrupted`] on `stop`, [`Failure::Unusable`] where something could not be measured.
async fn measure(at: &Addresses, works: &[Work], rounds: usize, stop: &CancellationToken) -> Result<Rounds, Failure> {
    let token = token(Some(at));
    let product =
        StockApi { base: &at.http, stock_id: own_product(), strategy: stock::find("single-update"), token: token.as_ref() };
    product.put(PLENTIFUL_STOCK).await?;
    let ceilings = Ceilings::open(at, product.stock_id).await?;
    let bar = Bar::new(rounds * works.len());
    let mut measured = Rounds(BTreeMap::new());
    let all = async {
        for work in (0..rounds).flat_map(|_| works) {
            let result = match work.plan(at) {
                Ok(plan) => {
                    let token = token.clone();
                    let plan = Plan { token, ..plan };
                    RoundResult::of(&run_with_progress(&bar, &plan, stop).await?)
                }
                Err(bare) => {
                    let nothing = watch::channel(Snapshot::default()).1;
                    let rate = ceilings.per_second(bare);
                    let per_second = bar.run_step(work.name().localized(), nothing, rate).await?;
                    RoundResult { per_second, ..RoundResult::default() }
                }
            };
            if stop.is_cancelled() {
                return Err(stopped_by_signal());
            }
            measured.0.entry(*work).or_default().push(result);
        }
        Ok(())
    };
    let all = all.await;
    ceilings.close().await;
    all.and(product.remove().await).map(|()| measured)
}

impl RoundResult {
    /// The measurement of a load.
    fn of(row: &Row) -> Self {
        Self {
            per_second: row.sold_per_sec,
            longest: row.stats.max / row.stats.average,
            tail: row.stats.p99_line / row.stats.median,
            broken_promise: row.broken_promise(),
        }
    }
}

impl Rounds {
    /// A figure of a measurement, in each round.
    fn each(&self, work: Work, figure: fn(&RoundResult) -> f64) -> Vec<f64> {
        let rounds = self.0.get(&work).into_iter().flatten();
        rounds.map(figure).collect()
    }

    fn rates(&self, work: Work) -> Vec<f64> {
        self.each(work, |round| round.per_second)
    }

    /// Why the results of a measurement do not count, whatever the number of waiters of its lock; `None` if they do.
    fn void_reason(&self, of: Work) -> Option<String> {
        let is_of = |work: Work| work == of || work.strategy().is_some_and(|slug| of.strategy() == Some(slug));
        let its = self.0.iter().filter(|(work, _)| is_of(**work));
        let mut rounds = its.flat_map(|(_, rounds)| rounds);
        rounds.find_map(|round| round.broken_promise.clone())
    }

    /// The figures of all thresholds.
    fn figures(&self) -> Vec<BenchResult> {
        let mut figures = Vec::new();
        for threshold in thresholds().filter(|threshold| self.0.contains_key(&threshold.measured)) {
            figures.push(self.ratio_of(&threshold));
            if let Work::Wait(slug, _) = threshold.measured {
                figures.extend(self.figures_of_lock(slug, threshold.bounded_by));
            }
        }
        figures
    }

    /// The ratio of a measurement to its ceiling over all rounds, void if one of the two is: a ceiling with errors is too low.
    fn ratio_of(&self, threshold: &Threshold) -> BenchResult {
        let (measured, ceiling) = (threshold.measured, threshold.ceiling);
        BenchResult::ratio(
            measured.name(),
            &self.rates(measured),
            ceiling.ceiling_name(),
            &self.rates(ceiling),
            threshold.goal,
            threshold.bounded_by,
        )
        .void_if([measured, ceiling].iter().find_map(|work| self.void_reason(*work)))
    }

    /// The figures that tell how much its number of waiters slows a lock down, and how long its unluckiest waiters wait.
    fn figures_of_lock(&self, slug: &'static str, bounded_by: Bilingual) -> [BenchResult; 3] {
        let each = WAITERS.map(|waiters| self.rates(Work::Wait(slug, waiters)));
        let extreme = |pick: fn(f64, f64) -> f64| -> Vec<f64> {
            let rounds = each.iter().map(Vec::len).min().unwrap_or(0);
            let of_round = |i: usize| each.iter().map(|rates| rates[i]).reduce(pick);
            (0..rounds).filter_map(of_round).collect()
        };
        let flat = BenchResult::ratio(
            named!("{slug}, 10、100、1,000 人等待时最慢的", "{slug}, slowest of 10, 100 and 1,000 waiters"),
            &extreme(f64::min),
            Bilingual::of("其中最快的", "the fastest of them"),
            &extreme(f64::max),
            Goal::Ratio(MIN_FLATNESS),
            bounded_by,
        );
        let work = Work::Wait(slug, WAITERS[1]);
        let times = |name, figure, most| BenchResult::at_most(name, &self.each(work, figure), Unit::Times, most, bounded_by);
        let longest = named!("{slug}, 最长等待比平均", "{slug}, longest wait over the mean");
        let tail = named!("{slug}, p99 比中位数", "{slug}, p99 over the median");
        [flat, times(longest, |round| round.longest, 20.0), times(tail, |round| round.tail, 10.0)]
            .map(|figure| figure.void_if(self.void_reason(work)))
    }
}

/// The figures of the processes of the instances: their memory, and their start where it was measured.
fn process_figures(at: &Addresses, starts: &[Duration]) -> Result<Vec<BenchResult>, Failure> {
    let mut memory = 0.0_f64;
    for instance in &at.instances {
        memory = memory.max(memory::peak_memory_mb(instance.pid)?);
    }
    let mut figures = vec![BenchResult::at_most(
        Bilingual::of("一个实例的内存峰值", "memory of an instance, its peak"),
        &[memory],
        Unit::Megabytes,
        60.0,
        Bilingual::of("同时 1,000 个连接", "1,000 connections at once"),
    )];
    if !starts.is_empty() {
        let ms = starts.iter().map(|took| took.as_secs_f64() * 1000.0);
        figures.push(BenchResult::at_most(
            Bilingual::of("一个实例的启动", "start-up of an instance"),
            &ms.collect::<Vec<_>>(),
            Unit::Milliseconds,
            1000.0,
            Bilingual::of("ZooKeeper 会话，以及实验环境多久看一次", "a ZooKeeper session, and how often the lab looks"),
        ));
    }
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_void_if_one_of_its_measurements_had_errors() {
        let threshold = thresholds()
            .find(|threshold| threshold.ceiling == Work::Sell("redis-script"))
            .expect("redis-watch-merged is measured against it");
        let round = |per_second, broken_promise: Option<&str>| RoundResult {
            per_second,
            broken_promise: broken_promise.map(str::to_owned),
            ..RoundResult::default()
        };
        for (failed, counts) in [
            (Some(threshold.ceiling), false),
            (Some(threshold.measured), false),
            (Some(Work::Sell("single-update")), true),
            (None, true),
        ] {
            let mut rounds = Rounds(BTreeMap::from([
                (threshold.measured, vec![round(60.0, None)]),
                (threshold.ceiling, vec![round(6.0, None)]),
            ]));
            let broken = failed.map(|work| (work, vec![round(60.0, Some("3 errors"))]));
            rounds.0.extend(broken);
            let figure = rounds.ratio_of(&threshold);
            assert_eq!(figure.is_reached, counts, "{failed:?}");
        }
    }
}
