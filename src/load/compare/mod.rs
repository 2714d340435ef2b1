//! `oversell compare`: every strategy against one instance and against three behind nginx, with a verdict each.
//!
//! Each run is made once. Where an unsafe strategy happens not to show its fault, that is said, and not tried again
//! until it does.

mod report;
mod table;
#[cfg(test)]
mod tests;

use super::{
    Row,
    ceiling::{self, Ceiling},
    conditions::Conditions,
    row::{ONE, THREE},
    run::{Plan, Snapshot, run as load},
    target::{Cluster, Where, check, token},
    terminal::{Bar, rate, stopped, write, write_json},
};
use crate::{
    addresses::Addresses,
    failure::Failure,
    stock::{self, Strategy},
};
use serde::Serialize;
use std::path::PathBuf;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Requests of each connection against the static file: enough to be past its start.
const CEILING_LOOPS: usize = 200;

/// Loads every strategy and says which oversold, and what each costs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  oversell compare --lab                                  a lab of its own, every strategy
  oversell compare --strategies none,mutex --targets three   two of them, against the lab that runs
  oversell compare --report report.html --json rows.json
  oversell compare --http http://shop:8080 --instance http://shop:8000   any running cluster

Exit status: 0 every promise kept, 1 one was broken or a fault did not show, 2 bad usage or no lab.")]
pub struct Args {
    /// Connections, each of which sends one request after the other
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    threads: u32,
    /// Requests of each connection
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    loops: u32,
    /// Pieces in stock before each run
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(i64).range(0..=1_000_000_000))]
    count: i64,
    /// How long each request stays inside the critical section, in ms
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=60_000))]
    hold_ms: u64,
    /// Only these strategies, by name [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = known)]
    strategies: Vec<&'static Strategy>,
    /// One instance, three behind nginx, or both
    #[arg(long, value_delimiter = ',', default_values = [ONE, THREE], value_parser = [ONE, THREE])]
    targets: Vec<String>,
    /// Writes every figure to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes a report to this file: one HTML page that needs nothing else
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    place: Where,
}

/// Everything that a comparison has found.
#[derive(Debug, Serialize)]
struct Comparison {
    /// What each strategy was sent, unless its row says that it was less.
    threads: usize,
    loops: usize,
    count: i64,
    hold_ms: u64,
    conditions: Conditions,
    /// A static file through the same nginx, or from the same instance where no other target was asked for.
    ceiling: Ceiling,
    rows: Vec<Row>,
    /// Whether every row is as its strategy promises.
    kept: bool,
}

fn known(slug: &str) -> Result<&'static Strategy, String> {
    stock::find(slug).ok_or_else(|| {
        let all: Vec<_> = stock::ALL.iter().map(|s| s.slug).collect();
        format!("the strategies are {}", all.join(", "))
    })
}

/// Runs the command, against the lab at `at` or the one that the arguments name.
///
/// # Errors
///
/// [`Failure::Promise`] where a strategy broke its promise or an unsafe one did not show its fault,
/// [`Failure::Unusable`] where no cluster answers or a signal stopped it.
pub async fn run(args: Args, at: Option<Addresses>, stop: CancellationToken) -> Result<(), Failure> {
    let found = compare(&args, at, &stop).await?;

    println!("{}", table::of(&found.rows));
    for line in table::promises(&found.rows) {
        println!("{line}");
    }
    if let Some(path) = &args.json {
        write_json(path, &found)?;
    }
    if let Some(path) = &args.report {
        write(path, &report::html(&found)?)?;
        println!("report: {}", path.display());
    }
    if stop.is_cancelled() {
        return Err(stopped());
    }
    let complaints: Vec<_> = found.rows.iter().filter_map(Row::complaint).collect();
    if complaints.is_empty() { Ok(()) } else { Err(Failure::Promise(complaints.join("; "))) }
}

async fn compare(args: &Args, at: Option<Addresses>, stop: &CancellationToken) -> Result<Comparison, Failure> {
    let cluster = args.place.find(at)?;
    let strategies: Vec<_> =
        if args.strategies.is_empty() { stock::ALL.iter().collect() } else { args.strategies.clone() };
    let mut targets = Vec::new();
    for name in &args.targets {
        let base = address(&cluster, name)?;
        check(base, &strategies).await?;
        targets.push((name.as_str(), base));
    }
    let (threads, loops) = (args.threads as usize, args.loops as usize);
    let conditions = Conditions::of(cluster.lab.as_ref()).await;
    println!("{conditions}");

    let strongest = targets.iter().find(|(name, _)| *name == THREE).or(targets.first());
    let (_, base) = strongest.ok_or_else(|| Failure::Unusable("--targets names none".into()))?;
    let ceiling = ceiling::static_file(base, threads, CEILING_LOOPS, stop).await?;
    println!(
        "the generator's own ceiling: {}/s (GET {}, {} bytes)",
        rate(ceiling.throughput),
        ceiling.path,
        ceiling.bytes
    );

    let plans = plans(args, &strategies, &targets);
    let bar = Bar::new(plans.iter().map(Plan::planned).sum());
    let mut rows = Vec::new();
    for plan in &plans {
        if stop.is_cancelled() {
            break;
        }
        let (progress, snapshots) = watch::channel(Snapshot::default());
        let what = format!("{} on {}", plan.strategy, plan.target);
        rows.push(bar.during(&what, snapshots, load(plan, &progress, stop)).await?);
    }
    drop(bar);
    let kept = rows.iter().all(|row| row.kept);
    Ok(Comparison { threads, loops, count: args.count, hold_ms: args.hold_ms, conditions, ceiling, rows, kept })
}

fn plans(args: &Args, strategies: &[&Strategy], targets: &[(&str, &str)]) -> Vec<Plan> {
    let of = |strategy: &Strategy, target: &str, base: &str| Plan {
        base: base.into(),
        target: target.into(),
        strategy: strategy.slug.into(),
        threads: args.threads as usize,
        loops: args.loops as usize,
        hold_ms: args.hold_ms,
        stock_id: 1,
        count: args.count,
        token: token(),
    };
    strategies.iter().flat_map(|s| targets.iter().map(move |(target, base)| of(s, target, base))).collect()
}

fn address<'a>(cluster: &'a Cluster, target: &str) -> Result<&'a str, Failure> {
    let (address, option) = if target == ONE { (&cluster.instance, "--instance") } else { (&cluster.http, "--http") };
    address.as_deref().ok_or_else(|| {
        Failure::Unusable(format!("target {target} needs {option}: pass it, or leave it out of --targets"))
    })
}
