//! `oversell compare`: loads strategies on one instance and on three behind nginx; gives each a verdict, and its sales per second.
//!
//! The verdict comes from one run, by default of 100 × 50, the course's load.

#[cfg(test)]
mod tests;

use super::{
    ceiling::Ceiling,
    measure::{MeasureArgs, Measurement, name_parser},
    plan::{PLENTIFUL_STOCK, Plan, target_name},
    table,
    target::Registry,
    terminal::rate,
};
use crate::{
    server::Server,
    stock::{self, Strategy},
};
use oversell_lab::{
    addresses::Addresses,
    terminal::{
        chinese::localized,
        failure::{Failure, unusable_localized},
        stdout::{Output, Outputs, say},
    },
};
use tokio_util::sync::CancellationToken;

/// The strategies of a comparison without further options: those that everybody knows.
const DEFAULT_STRATEGIES: [&str; 9] =
    ["none", "mutex", "single-update", "select-for-update", "version-cas", "redis-watch", "redis-lock", "zk-lock", "table-lock"];

/// Loads strategies and says which oversold, and what each sells in a second.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  oversell compare --lab                                  a lab of its own, the nine that everybody knows
  oversell compare --lab --course --duration 3s           all of the course, and their rates
  oversell compare --strategies none,mutex --targets three   two of them, against the lab that runs
  oversell compare --strategies single-update --duration 10s --rate 500   open loop: 500 requests due each second
  oversell compare --json rows.json
  oversell compare --http http://shop:8080 --instance http://shop:8000   any running cluster

Each run takes a product of its own and removes it. `three` means that three instances answered.
The loop is closed: a connection sends its next request once it has its last answer, so a target that stalls is asked
less while it stalls, and the 99 % line looks better than what buyers at a fixed rate would see. --rate N sends open
loop and takes the latency from when a request was due (the timer adds up to 1 ms).

Exit status: 0 every promise kept, 1 one was broken or a fault did not show, 2 bad usage, no lab, a missing server,
130 cut short by a signal.")]
pub struct Args {
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=5_000))]
    threads: u32,
    /// Requests of each connection, one after the other
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    loops: u32,
    /// Pieces in stock before each run
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(i64).range(0..=PLENTIFUL_STOCK))]
    count: i64,
    /// How long each request stays inside the critical section, in ms
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=60_000))]
    hold_ms: u64,
    /// Only these strategies, by name [default: the nine that everybody knows]
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = name_parser(stock::ALL.iter(), |one| one.slug), hide_possible_values = true, conflicts_with_all = ["course", "all"])]
    strategies: Vec<&'static Strategy>,
    /// All strategies of the course
    #[arg(long, conflicts_with = "all")]
    course: bool,
    /// All of the course, and what goes beyond it; not a lock of one's own
    #[arg(long)]
    all: bool,
    /// Open loop: so many requests are due each second
    #[arg(long, value_name = "N", requires = "duration", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    rate: Option<u32>,
    #[command(flatten)]
    how: MeasureArgs,
}

impl Outputs for Args {
    fn outputs(&self) -> Vec<&Output> {
        self.how.json.iter().collect()
    }
}

/// Runs the command, against the lab at `at` or the one that the arguments name.
/// Errors: [`Failure::Promise`] where a strategy broke its promise or an unsafe one did not show its fault,
/// [`Failure::Unusable`] where no cluster answers or a server is missing, [`Failure::Interrupted`] after a signal.
pub async fn run(args: Args, at: Option<Addresses>, stop: CancellationToken) -> Result<(), Failure> {
    let found = compare(&args, at, &stop).await?;
    found.report(&args.how, &[table::AGGREGATE_TABLE, table::CONTENTION_TABLE], &stop)
}

/// Measures the ceiling of each target, and then each strategy on each target.
async fn compare(args: &Args, at: Option<Addresses>, stop: &CancellationToken) -> Result<Measurement, Failure> {
    let strategies = args.strategies();
    let mut slugs: Vec<_> = strategies.iter().map(|strategy| strategy.slug).collect();
    let setup = args.how.set_up(at, Registry::Strategies, &slugs).await?;
    if !setup.without_server.is_empty() {
        let named = setup.without_server.join(", ");
        if args.names_strategies() {
            return Err(unusable_localized!(
                "{named} 要用 etcd，那里没有：用 oversell lab --etcd 1 启动",
                "{named} need etcd, and there is none: start the lab with `oversell lab --etcd 1`"
            ));
        }
        say!("{}", localized!("没有 etcd，不测 {named}", "left out, without etcd: {named}"));
        slugs.retain(|slug| !setup.without_server.iter().any(|absent| absent == slug));
    }
    let threads = args.threads as usize;
    let mut ceilings = Vec::new();
    for (name, base) in &setup.targets {
        let ceiling = Ceiling::measure(name, base, threads, stop).await?;
        let (target, most, what) = (target_name(name), rate(ceiling.throughput), ceiling.describe());
        say!("{}", localized!("{target}的上限：{most}/秒，{what}", "ceiling of {target}: {most}/s, {what}"));
        ceilings.push(ceiling);
    }
    let load = |plan| Plan { threads, loops: args.loops as usize, count: args.count, hold_ms: args.hold_ms, ..plan };
    args.how.measure(setup, &slugs, load, args.rate, ceilings, stop).await
}

impl Args {
    /// Whether a chosen strategy needs etcd.
    pub fn needs_etcd(&self) -> bool {
        self.strategies().iter().any(|strategy| strategy.spec.needs.contains(&Server::Etcd))
    }

    /// Whether the strategies are named one by one.
    pub fn names_strategies(&self) -> bool {
        !self.strategies.is_empty()
    }

    /// The strategies that the options choose: those named, all but a student's lock, those of the course, or the default nine.
    fn strategies(&self) -> Vec<&'static Strategy> {
        let wanted = |s: &&Strategy| match self {
            Self { all: true, .. } => !s.is_own_lock(),
            Self { course: true, .. } => !s.spec.rank.is_beyond(),
            _ => DEFAULT_STRATEGIES.contains(&s.slug),
        };
        if self.strategies.is_empty() { stock::ALL.iter().filter(wanted).collect() } else { self.strategies.clone() }
    }
}
