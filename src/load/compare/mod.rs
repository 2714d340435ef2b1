//! `oversell compare`: strategies against one instance and against three behind nginx, with a verdict each, and what
//! they sell in a second.
//!
//! The verdict comes from one run of 100 × 50, the course's load: where an unsafe strategy happens not to show its
//! fault, that is said, and not tried again until it does. The rate comes from runs of its own, for which stock is
//! plenty: rounds, each of which goes through all strategies in another order, so that a slow minute hits all.

mod claims;
mod report;
mod table;
#[cfg(test)]
mod tests;

use super::{
    Row,
    ceiling::Ceiling,
    conditions::Conditions,
    engine::Timed,
    rate::{self, Rate},
    row::{ONE, THREE},
    run::{PLENTY, Plan, Snapshot, run as load},
    target::{Where, check, token},
    terminal::{Bar, rate, stopped, write, write_json},
};
use crate::{
    addresses::Addresses,
    failure::Failure,
    stock::{self, Strategy},
};
use claims::Compared;
use serde::Serialize;
use std::{path::PathBuf, time::Duration};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The strategies that everybody knows.
const KNOWN: [&str; 9] = [
    "none",
    "mutex",
    "single-update",
    "select-for-update",
    "version-cas",
    "redis-watch",
    "redis-lock",
    "zk-lock",
    "table-lock",
];

/// Loads strategies and says which oversold, and what each sells in a second.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  oversell compare --lab                                  a lab of its own, the nine that everybody knows
  oversell compare --lab --course --duration 3s           all of the course, and their rates
  oversell compare --strategies none,mutex --targets three   two of them, against the lab that runs
  oversell compare --strategies single-update --duration 10s --rate 500   open loop: 500 requests due each second
  oversell compare --report report.html --json rows.json
  oversell compare --http http://shop:8080 --instance http://shop:8000   any running cluster

Each run takes a product of its own and removes it. `three` means that three instances answered.
The loop is closed: a connection sends its next request once it has its last answer, so a target that stalls is asked
less while it stalls, and the 99 % line looks better than what buyers at a fixed rate would see. --rate N sends open
loop and takes the latency from when a request was due (the timer adds up to 1 ms).

Exit status: 0 every promise kept, 1 one was broken or a fault did not show, 2 bad usage, no lab, a missing server.")]
pub struct Args {
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=5_000))]
    threads: u32,
    /// Requests of each connection, one after the other
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    loops: u32,
    /// Pieces in stock before each run
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(i64).range(0..=PLENTY))]
    count: i64,
    /// How long each request stays inside the critical section, in ms
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=60_000))]
    hold_ms: u64,
    /// Only these strategies, by name [default: the nine that everybody knows]
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = known, conflicts_with_all = ["course", "all"])]
    strategies: Vec<&'static Strategy>,
    /// All strategies of the course
    #[arg(long, conflicts_with = "all")]
    course: bool,
    /// All of the course, and what goes beyond it
    #[arg(long)]
    all: bool,
    /// One instance, three behind nginx, or both
    #[arg(long, value_delimiter = ',', default_values = [ONE, THREE], value_parser = [ONE, THREE])]
    targets: Vec<String>,
    /// Measure rates too: so long for each strategy, target and round, as 3s
    #[arg(long, value_name = "TIME", value_parser = rate::time)]
    duration: Option<Duration>,
    /// How long each measurement runs before it counts
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = rate::time)]
    warm_up: Duration,
    /// How often each rate is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Open loop: so many requests are due each second
    #[arg(long, value_name = "N", requires = "duration", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,
    /// Writes every figure to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes a report to this file: one HTML page that needs nothing else
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Prints the tables in Markdown
    #[arg(long)]
    markdown: bool,
    #[command(flatten)]
    place: Where,
}

/// Everything that a comparison has found.
#[derive(Debug, Serialize)]
struct Comparison {
    threads: usize,
    loops: usize,
    count: i64,
    hold_ms: u64,
    /// How rates were measured; absent where they were not.
    timing: Option<Timing>,
    conditions: Conditions,
    /// Of each target.
    ceilings: Vec<Ceiling>,
    rows: Vec<Row>,
    /// The course's order, and how it came out.
    claims: Vec<Compared>,
    /// Whether every row is as its strategy promises.
    kept: bool,
    /// Runs that could not be made, and why.
    not_run: Vec<String>,
}

/// How rates were measured.
#[derive(Debug, Clone, Copy, Serialize)]
struct Timing {
    warm_up_s: f64,
    duration_s: f64,
    rounds: u32,
    /// Requests due each second, where the loop is open.
    rate: Option<u32>,
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
/// [`Failure::Unusable`] where no cluster answers, a server is missing or a signal stopped it.
pub async fn run(
    args: Args,
    at: Option<Addresses>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let found = compare(&args, at, &stop).await?;

    println!("{}", table::of(&found.rows, args.markdown));
    println!("{}", table::rates(&found.rows, args.markdown));
    for line in table::promises(&found.rows)
        .into_iter()
        .chain(found.claims.iter().map(Compared::line))
    {
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
    match (complaints.is_empty(), found.not_run.is_empty()) {
        (false, _) => Err(Failure::Promise(complaints.join("; "))),
        (true, false) => Err(Failure::Unusable(format!(
            "not run: {}",
            found.not_run.join("; ")
        ))),
        (true, true) => Ok(()),
    }
}

async fn compare(
    args: &Args,
    at: Option<Addresses>,
    stop: &CancellationToken,
) -> Result<Comparison, Failure> {
    let cluster = args.place.find(at)?;
    let strategies = args.strategies();
    let mut targets = Vec::new();
    for name in &args.targets {
        let base = cluster.address(name)?;
        check(base, &strategies).await?;
        targets.push((name.as_str(), base));
    }
    let conditions = Conditions::of(cluster.lab.as_ref()).await;
    println!("{conditions}");
    let threads = args.threads as usize;
    let mut ceilings = Vec::new();
    for (name, base) in &targets {
        let ceiling = Ceiling::of(name, base, threads, stop).await?;
        println!(
            "ceiling of {name}: {}/s, {}",
            rate(ceiling.throughput),
            ceiling.what()
        );
        ceilings.push(ceiling);
    }

    let plans = plans(args, &strategies, &targets);
    plans
        .first()
        .map_or(Ok(()), Plan::check)
        .map_err(Failure::Unusable)?;
    let rounds = if args.duration.is_some() {
        args.rounds as usize
    } else {
        0
    };
    let bar = Bar::new(plans.len() * (1 + rounds));
    let (mut rows, mut not_run) = (Vec::new(), Vec::new());
    let mut rated = Vec::new();
    for plan in plans {
        if stop.is_cancelled() {
            break;
        }
        match one(&bar, &plan, stop).await {
            Ok(row) => {
                rows.push(row);
                rated.push((plan, Vec::new()));
            }
            Err(why) => not_run.push(format!("{} on {}: {why}", plan.strategy, plan.target)),
        }
    }
    let timed = |measured| Timed {
        warm_up: args.warm_up,
        measured,
        rate: args.rate.map(f64::from),
    };
    for timed in args.duration.map(timed).into_iter().cycle().take(rounds) {
        let mut order: Vec<_> = rated.iter_mut().collect();
        fastrand::shuffle(&mut order);
        for (plan, rounds) in order {
            if stop.is_cancelled() {
                break;
            }
            rounds.push(one(&bar, &plan.timed(timed), stop).await?);
        }
    }
    for (row, (_, rounds)) in rows.iter_mut().zip(&rated) {
        row.rate = (!rounds.is_empty()).then(|| Rate::of(rounds));
        let answers = row
            .rate
            .as_ref()
            .map_or(row.stats.throughput, |rate| rate.answers_per_sec);
        row.bounded_by_generator = ceilings
            .iter()
            .any(|c| c.target == row.target && c.bounds(answers));
    }
    let timing = args.duration.map(|duration| Timing {
        warm_up_s: args.warm_up.as_secs_f64(),
        duration_s: duration.as_secs_f64(),
        rounds: args.rounds,
        rate: args.rate,
    });
    let (loops, kept, claims) = (
        args.loops as usize,
        rows.iter().all(|row| row.complaint().is_none()),
        claims::of(&rows),
    );
    let Args { count, hold_ms, .. } = *args;
    Ok(Comparison {
        threads,
        loops,
        count,
        hold_ms,
        timing,
        conditions,
        ceilings,
        rows,
        claims,
        kept,
        not_run,
    })
}

async fn one(bar: &Bar, plan: &Plan, stop: &CancellationToken) -> Result<Row, Failure> {
    let (progress, snapshots) = watch::channel(Snapshot::default());
    bar.during(
        &format!("{} on {}", plan.strategy, plan.target),
        snapshots,
        load(plan, &progress, stop),
    )
    .await
}

impl Args {
    fn strategies(&self) -> Vec<&'static Strategy> {
        let wanted = |s: &&Strategy| match self {
            Self { all: true, .. } => true,
            Self { course: true, .. } => !s.beyond,
            _ => KNOWN.contains(&s.slug),
        };
        if self.strategies.is_empty() {
            stock::ALL.iter().filter(wanted).collect()
        } else {
            self.strategies.clone()
        }
    }
}

fn plans(args: &Args, strategies: &[&Strategy], targets: &[(&str, &str)]) -> Vec<Plan> {
    let of = |strategy: &Strategy, target: &str, base: &str| {
        let mut plan = Plan::new(base, target, strategy.slug);
        (plan.threads, plan.loops) = (args.threads as usize, args.loops as usize);
        (plan.count, plan.hold_ms, plan.token) = (args.count, args.hold_ms, token());
        plan
    };
    strategies
        .iter()
        .flat_map(|s| {
            targets
                .iter()
                .map(move |(target, base)| of(s, target, base))
        })
        .collect()
}
