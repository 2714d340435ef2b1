//! `oversell seckill`: has users order a voucher, each more than once, at one instance and at three behind nginx; gives each step the
//! verdict of the checker, and its orders per second.
//!
//! A verdict comes from one run in which each order stays inside for a while, so that the unsafe steps show their fault. A rate comes
//! from runs of its own, in rounds, in which no order stays inside, each user orders once, and pieces are plenty.

use super::{
    measure::{MeasureArgs, name_parser},
    plan::Plan,
    table,
    target::Registry,
};
use crate::seckill::{self, SeckillStep};
use oversell_lab::{
    addresses::Addresses,
    terminal::{
        failure::Failure,
        stdout::{Output, Outputs},
    },
};
use tokio_util::sync::CancellationToken;

/// Has users order a voucher by each step of \[002\], and says which oversold, or let one user order twice.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  oversell seckill --lab                                  a lab of its own, all steps, one instance and three
  oversell seckill --strategies user-mutex,redis-rlock    two of them, against the lab that runs
  oversell seckill --lab --duration 2s --targets three    and how many orders a second each takes
  oversell seckill --http http://shop:8080 --targets three --json rows.json   any running cluster

Each run takes a voucher of its own and users of its own, and removes both. The repeats of a user come at the same time.
--hold-ms is how long each order stays inside the section in which its step breaks: without it an unsafe step may happen to
be right. More connections than pieces, and fewer than pieces × (repeats - 1): so the last pieces are read by more than get
one, and the pieces cannot all go to different users by chance.

Exit status: 0 every promise kept, 1 one was broken or a fault did not show, 2 bad usage, no lab, a missing server,
130 cut short by a signal.")]
pub struct Args {
    /// Users
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    users: u64,
    /// Orders of each user
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(2..=10))]
    repeats: u64,
    /// Pieces of the voucher
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(i64).range(1..=100_000))]
    pieces: i64,
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 150, value_parser = clap::value_parser!(u32).range(2..=5_000))]
    threads: u32,
    /// How long each order stays inside, in ms
    #[arg(long, value_name = "MS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(..=60_000))]
    hold_ms: u64,
    /// Only these steps, by name [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = name_parser(seckill::ALL.iter(), |one| one.slug), hide_possible_values = true)]
    strategies: Vec<&'static SeckillStep>,
    #[command(flatten)]
    how: MeasureArgs,
}

impl Outputs for Args {
    fn outputs(&self) -> Vec<&Output> {
        self.how.json.iter().collect()
    }
}

/// Runs the command, against the lab at `at` or the one that the arguments name.
/// Errors: [`Failure::Promise`] where a step broke its promise or an unsafe one did not show its fault,
/// [`Failure::Unusable`] where no cluster answers or a server is missing, [`Failure::Interrupted`] after a signal.
pub async fn run(args: Args, at: Option<Addresses>, stop: CancellationToken) -> Result<(), Failure> {
    let steps: Vec<_> = if args.strategies.is_empty() { seckill::ALL.iter().collect() } else { args.strategies.clone() };
    let slugs: Vec<_> = steps.iter().map(|step| step.slug).collect();
    let setup = args.how.set_up(at, Registry::Steps, &slugs).await?;
    let load = |plan| {
        let plan = Plan { threads: args.threads as usize, count: args.pieces, hold_ms: args.hold_ms, ..plan };
        plan.for_orders(args.users, args.repeats)
    };
    let found = args.how.measure(setup, &slugs, load, None, Vec::new(), &stop).await?;
    found.report(&args.how, &[table::ORDERS_TABLE], &stop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_command_takes_what_its_examples_say_and_refuses_the_rest() {
        let parse = |line: &str| Cli::try_parse_from(["seckill"].into_iter().chain(line.split_whitespace()));
        let args = parse("--strategies user-mutex,redis-rlock --targets three --duration 2s").expect("good").args;
        assert_eq!(args.strategies.iter().map(|step| step.slug).collect::<Vec<_>>(), ["user-mutex", "redis-rlock"]);
        assert_eq!((args.users, args.pieces, args.repeats), (1000, 100, 3));
        for bad in ["--repeats 1", "--users 0", "--strategies nope", "--targets two", "--duration 11m"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
