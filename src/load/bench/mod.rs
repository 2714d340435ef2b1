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
mod words;

pub use memory::peak_memory_mb;

use super::{
    conditions::Conditions,
    measure::run_with_progress,
    plan::{PLENTIFUL_STOCK, Plan, own_product},
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
        chinese::localized,
        failure::Failure,
        stdout::{Output, Outputs, say},
    },
};
use result::{BenchResult, Goal, Unit, results_table};
use serde::Serialize;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};
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

/// The lab that is measured, and the measurements so far.
struct Bench<'a> {
    at: &'a Addresses,
    bar: Bar,
    stop: &'a CancellationToken,
    /// The rate of each round.
    rates: BTreeMap<Work, Vec<f64>>,
    /// For each lock with 100 waiters, in each round: the longest latency over the mean, and the 99 % line over the median.
    waits: BTreeMap<&'static str, [Vec<f64>; 2]>,
    /// Why the results of a measurement do not count, by its name ([`Work::name`]).
    void_reasons: BTreeMap<String, String>,
}

/// Runs the command, against the lab at `at` or the one that the arguments name; `starts` is how long an instance took
/// to start, where that was measured.
/// Errors: [`Failure::Promise`] where a figure is missed, [`Failure::Unusable`] where no lab is running,
/// [`Failure::Interrupted`] where a signal stopped it.
pub async fn run(
    args: Args,
    at: Option<Addresses>,
    starts: Vec<Duration>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let at = match at {
        Some(at) => at,
        None => Addresses::read_running_lab(&args.lab_json)?,
    };
    let works = measurements();
    let slugs: Vec<_> = works.iter().filter_map(|work| work.strategy()).collect();
    check(&at.http, Registry::Strategies, &slugs).await?;
    let conditions = Conditions::read(Some(&at)).await;
    // The keys come first, while this process is small.
    let keys = keys::measure_keys(at.first_redis()).await?;
    let rounds = args.rounds;
    say!(
        "{conditions}\n{}",
        localized!("{rounds} 轮的中位数", "median of {rounds} rounds")
    );
    let mut bench = Bench {
        at: &at,
        bar: Bar::new(args.rounds as usize * works.len()),
        stop: &stop,
        rates: BTreeMap::new(),
        waits: BTreeMap::new(),
        void_reasons: BTreeMap::new(),
    };
    bench.measure(args.rounds, &works).await?;
    let mut figures = bench.results(&starts)?;
    figures.extend(keys);
    drop(bench);

    say!("{}", results_table(&figures, args.markdown));
    let missed: Vec<_> = figures
        .iter()
        .filter(|result| !result.is_reached)
        .map(|result| words::localized(&result.name))
        .collect();
    if let Some(file) = &args.json {
        let rounds = args.rounds;
        file.write_json(&BenchReport {
            conditions,
            rounds,
            figures,
        })?;
    }
    if missed.is_empty() {
        Ok(())
    } else {
        Err(Failure::Promise(localized!(
            "没有达到：{}",
            "missed: {}",
            missed.join("; ")
        )))
    }
}

/// Why a ratio does not count: the measurement had errors, or its ceiling had, which is too low then. `None` if it counts.
fn void_reason(void_reasons: &BTreeMap<String, String>, threshold: &Threshold) -> Option<String> {
    let sides = [threshold.measured, threshold.ceiling];
    sides
        .iter()
        .find_map(|work| void_reasons.get(&work.name()).cloned())
}

impl Bench<'_> {
    /// Measures all of `works` in each round. The ceilings share a product, which is removed at the end; each load has its own.
    async fn measure(&mut self, rounds: u32, works: &[Work]) -> Result<(), Failure> {
        let strategy = stock::find("single-update").expect("it is in the registry");
        let (token, stock_id) = (token(Some(self.at)), own_product());
        let product = StockApi {
            base: &self.at.http,
            stock_id,
            strategy: Some(strategy),
            token: token.as_ref(),
        };
        product.put(PLENTIFUL_STOCK).await?;
        let ceilings = Ceilings::open(self.at, stock_id).await?;
        let measured = async {
            for work in (0..rounds).flat_map(|_| works) {
                self.measure_once(*work, &ceilings).await?;
            }
            Ok(())
        };
        let measured = measured.await;
        ceilings.close().await;
        measured.and(product.remove().await)
    }

    /// Measures once, and adds the rate to those of the earlier rounds.
    async fn measure_once(&mut self, work: Work, on: &Arc<Ceilings>) -> Result<(), Failure> {
        if self.stop.is_cancelled() {
            return Err(stopped_by_signal());
        }
        let rate = match work.plan(self.at) {
            Ok(plan) => self.send_load(work, plan).await?,
            Err(bare) => {
                let nothing = watch::channel(Snapshot::default()).1;
                let rate = on.per_second(bare);
                self.bar.run_step(&work.to_string(), nothing, rate).await?
            }
        };
        self.rates.entry(work).or_default().push(rate);
        Ok(())
    }

    /// Sends a load; returns the pieces sold per second. Notes a broken promise as a void reason, and the waits for a lock.
    async fn send_load(&mut self, work: Work, plan: Plan) -> Result<f64, Failure> {
        let plan = Plan {
            token: token(Some(self.at)),
            ..plan
        };
        let row = run_with_progress(&self.bar, &plan, self.stop).await?;
        if self.stop.is_cancelled() {
            return Err(stopped_by_signal());
        }
        let complaint = row.broken_promise().map(|why| (work.name(), why));
        self.void_reasons.extend(complaint);
        if let Work::Wait(slug, waiters) = work
            && waiters == WAITERS[1]
        {
            let [longest, tail] = self.waits.entry(slug).or_default();
            longest.push(row.stats.max / row.stats.average);
            tail.push(row.stats.p99_line / row.stats.median);
        }
        Ok(row.sold_per_sec)
    }

    /// Pieces sold per second, in each round so far.
    fn rates(&self, work: Work) -> &[f64] {
        self.rates.get(&work).map_or(&[], Vec::as_slice)
    }

    /// The ratio of a measurement to its ceiling over all rounds, void if one of the two is.
    fn ratio_of(&self, threshold: &Threshold) -> BenchResult {
        let (seen, ceiling) = (
            self.rates(threshold.measured),
            self.rates(threshold.ceiling),
        );
        BenchResult::ratio(
            &threshold.measured.name(),
            seen,
            threshold.ceiling_name,
            ceiling,
            threshold.goal,
        )
        .bounded_by(threshold.bounded_by)
        .void_if(void_reason(&self.void_reasons, threshold))
    }

    /// The results of all measurements.
    fn results(&self, starts: &[Duration]) -> Result<Vec<BenchResult>, Failure> {
        let mut figures = Vec::new();
        for threshold in thresholds() {
            figures.push(self.ratio_of(&threshold));
            if let Work::Wait(slug, _) = threshold.measured {
                figures.extend(self.results_of_lock(slug, threshold.bounded_by));
            }
        }
        let mut memory = 0.0_f64;
        for instance in &self.at.instances {
            memory = memory.max(memory::peak_memory_mb(instance.pid)?);
        }
        let what = "memory of an instance, its peak";
        figures.push(
            BenchResult::at_most(what, &[memory], Unit::Megabytes, 60.0)
                .bounded_by("1,000 connections at once"),
        );
        if !starts.is_empty() {
            let ms = starts.iter().map(|took| took.as_secs_f64() * 1000.0);
            let (ms, what) = (ms.collect::<Vec<_>>(), "start-up of an instance");
            figures.push(
                BenchResult::at_most(what, &ms, Unit::Milliseconds, 1000.0)
                    .bounded_by("a ZooKeeper session, and how often the lab looks"),
            );
        }
        Ok(figures)
    }

    /// The results that tell how much its number of waiters slows a lock down, and how long its unluckiest waiters wait.
    fn results_of_lock(
        &self,
        slug: &'static str,
        bounded_by: &'static str,
    ) -> impl Iterator<Item = BenchResult> {
        let each = WAITERS.map(|waiters| self.rates(Work::Wait(slug, waiters)));
        let extreme = |pick: fn(f64, f64) -> f64| -> Vec<f64> {
            let rounds = each.iter().map(|rates| rates.len()).min().unwrap_or(0);
            let of_round = |i: usize| each.iter().map(|rates| rates[i]).reduce(pick);
            (0..rounds).filter_map(of_round).collect()
        };
        let flat = BenchResult::ratio(
            &format!("{slug}, slowest of 10, 100 and 1,000 waiters"),
            &extreme(f64::min),
            "the fastest of them",
            &extreme(f64::max),
            Goal::Ratio(MIN_FLATNESS),
        );
        let [longest, tail] = self.waits.get(slug).cloned().unwrap_or_default();
        let times = |what: &str, seen: &[f64], most| {
            BenchResult::at_most(&format!("{slug}, {what}"), seen, Unit::Times, most)
        };
        let void_reason = self.void_reasons.get(slug).cloned();
        [
            flat,
            times("longest wait over the mean", &longest, 20.0),
            times("p99 over the median", &tail, 10.0),
        ]
        .into_iter()
        .map(move |figure| figure.bounded_by(bounded_by).void_if(void_reason.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_void_if_one_of_its_measurements_had_errors() {
        let threshold = thresholds()
            .find(|threshold| threshold.ceiling == Work::Sell("redis-script"))
            .expect("redis-watch-merged is measured against it");
        let failed = |of: Work| BTreeMap::from([(of.name(), "3 errors".to_owned())]);
        for (errors, counts) in [
            (failed(threshold.ceiling), false),
            (failed(threshold.measured), false),
            (failed(Work::Sell("single-update")), true),
            (BTreeMap::new(), true),
        ] {
            let ratio = BenchResult::ratio(
                "x",
                &[60.0],
                threshold.ceiling_name,
                &[6.0],
                Goal::Ratio(0.6),
            );
            let figure = ratio.void_if(void_reason(&errors, &threshold));
            assert_eq!(figure.is_reached, counts, "{errors:?}");
        }
    }
}
