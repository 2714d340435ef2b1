//! `oversell seckill`: users who order a voucher, each of them more than once, against one instance and against three behind
//! nginx; what the checker says of the orders, and how many a second each step takes.
//!
//! A verdict comes from one run in which each order stays a while inside: there the unsafe steps show their fault. A rate
//! comes from runs of its own, in rounds, where nobody stays, everybody orders once, and pieces are plenty.

pub(super) mod row;
pub(super) mod run;

use super::{
    conditions::Conditions,
    engine::Timed,
    rate::{self, Spread},
    row::{ONE, THREE},
    run::Snapshot,
    stock_api::{base, slugs},
    target::{Cluster, Where, token},
    terminal::{Bar, ms, rate, stopped, table, whole, write_json},
};
use crate::{
    addresses::Addresses,
    failure::Failure,
    seckill::{self, Step, check::Verdict},
};
use comfy_table::{Cell, Color, Table};
use row::Row;
use run::Plan;
use serde::Serialize;
use std::{path::PathBuf, time::Duration};
use tokio::sync::watch;
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

Exit status: 0 every promise kept, 1 one was broken or a fault did not show, 2 bad usage, no lab, a missing server.")]
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
    #[arg(long, value_name = "A,B", value_delimiter = ',', value_parser = known)]
    strategies: Vec<&'static Step>,
    /// One instance, three behind nginx, or both
    #[arg(long, value_delimiter = ',', default_values = [ONE, THREE], value_parser = [ONE, THREE])]
    targets: Vec<String>,
    /// Measure rates too: so long for each step, target and round, as 2s
    #[arg(long, value_name = "TIME", value_parser = rate::time)]
    duration: Option<Duration>,
    /// How long each measurement runs before it counts
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = rate::time)]
    warm_up: Duration,
    /// How often each rate is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Writes every figure to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Prints the table in Markdown
    #[arg(long)]
    markdown: bool,
    #[command(flatten)]
    place: Where,
}

/// Everything that was found.
#[derive(Debug, Serialize)]
struct Found {
    threads: usize,
    hold_ms: u64,
    conditions: Conditions,
    rows: Vec<Row>,
    /// Whether every row is as its step promises.
    kept: bool,
}

fn known(slug: &str) -> Result<&'static Step, String> {
    seckill::find(slug).ok_or_else(|| {
        let all: Vec<_> = seckill::ALL.iter().map(|step| step.slug).collect();
        format!("the steps are {}", all.join(", "))
    })
}

/// Runs the command, against the lab at `at` or the one that the arguments name.
///
/// # Errors
///
/// [`Failure::Promise`] where a step broke its promise or an unsafe one did not show its fault, [`Failure::Unusable`] where no
/// cluster answers, a server is missing or a signal stopped it.
pub async fn run(
    args: Args,
    at: Option<Addresses>,
    stop: CancellationToken,
) -> Result<(), Failure> {
    let cluster = args.place.find(at)?;
    let plans = args.plans(&cluster).await?;
    let conditions = Conditions::of(cluster.lab.as_ref()).await;
    println!("{conditions}");
    let rounds = if args.duration.is_some() {
        args.rounds as usize
    } else {
        0
    };
    let bar = Bar::new(plans.len() * (1 + rounds));
    let mut rows = Vec::new();
    for plan in &plans {
        rows.push(one(&bar, plan, &stop).await?);
    }
    let timed = |measured| Timed {
        warm_up: args.warm_up,
        measured,
        rate: None,
    };
    let mut rates = vec![Vec::new(); plans.len()];
    let mut broken = Vec::new();
    for timed in args.duration.map(timed).into_iter().cycle().take(rounds) {
        let mut order: Vec<_> = plans.iter().zip(&mut rates).collect();
        fastrand::shuffle(&mut order);
        for (plan, rates) in order {
            let row = one(&bar, &plan.timed(timed), &stop).await?;
            broken.extend(
                row.complaint()
                    .map(|why| format!("while its rate was measured: {why}")),
            );
            rates.push(row.orders_per_sec);
        }
    }
    drop(bar);
    for (row, rates) in rows.iter_mut().zip(rates) {
        row.rate = (!rates.is_empty()).then(|| Spread::of(rates));
    }

    println!("{}", shown(&rows, args.markdown));
    let complaints: Vec<_> = rows
        .iter()
        .filter_map(Row::complaint)
        .chain(broken)
        .collect();
    if let Some(path) = &args.json {
        let (threads, kept) = (args.threads as usize, complaints.is_empty());
        write_json(
            path,
            &Found {
                threads,
                hold_ms: args.hold_ms,
                conditions,
                rows,
                kept,
            },
        )?;
    }
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(Failure::Promise(complaints.join("\n")))
    }
}

async fn one(bar: &Bar, plan: &Plan, stop: &CancellationToken) -> Result<Row, Failure> {
    let (progress, snapshots) = watch::channel(Snapshot::default());
    let what = format!("{} on {}", plan.step.slug, plan.target);
    let row = bar
        .during(&what, snapshots, run::run(plan, &progress, stop))
        .await?;
    if stop.is_cancelled() {
        Err(stopped())
    } else {
        Ok(row)
    }
}

impl Args {
    /// A plan for each step and target; the targets know the steps.
    async fn plans(&self, cluster: &Cluster) -> Result<Vec<Plan>, Failure> {
        let steps = if self.strategies.is_empty() {
            seckill::ALL.iter().collect()
        } else {
            self.strategies.clone()
        };
        let mut plans = Vec::new();
        for target in &self.targets {
            let at = cluster.address(target)?;
            let there = slugs(&format!("{}/voucher-order/strategies", base(at)))
                .await
                .map_err(|why| {
                    Failure::Unusable(format!(
                        "no cluster answers ({why}): start a lab with `make lab`, or pass --lab"
                    ))
                })?;
            if let Some(missing) = steps
                .iter()
                .find(|step| !there.iter().any(|slug| slug == step.slug))
            {
                return Err(Failure::Unusable(format!(
                    "{at} does not know the step {}",
                    missing.slug
                )));
            }
            plans.extend(steps.iter().map(|&step| Plan {
                base: at.to_owned(),
                target: target.clone(),
                step,
                threads: self.threads as usize,
                users: self.users,
                repeats: self.repeats,
                pieces: self.pieces,
                hold_ms: self.hold_ms,
                token: token(),
                timed: None,
            }));
        }
        plans.sort_by_key(|plan| steps.iter().position(|step| step.slug == plan.step.slug));
        Ok(plans)
    }
}

/// The rows as a table. Latencies are in ms.
fn shown(rows: &[Row], markdown: bool) -> Table {
    let columns = [
        "strategy",
        "target",
        "samples",
        "ordered",
        "sold out",
        "already",
        "under way",
        "errors",
        "median",
        "99%",
        "left",
        "written",
        "oversold",
        "twice",
        "lost",
        "verdict",
        "orders/s",
        "from",
        "to",
    ];
    table(&columns, &[0, 1, 15], rows.iter().map(cells), markdown)
}

fn cells(row: &Row) -> Vec<Cell> {
    let Row { stats, report, .. } = row;
    let unsigned = |n: u64| whole(i64::try_from(n).unwrap_or(i64::MAX));
    let counts = [
        stats.samples,
        row.ordered,
        row.sold_out,
        row.already_ordered,
        row.under_way,
        row.errors + row.unknown,
    ];
    let spread = |value: fn(&Spread) -> f64| {
        row.rate
            .as_ref()
            .map_or(String::new(), |spread| rate(value(spread)))
    };
    let mut cells: Vec<Cell> = vec![row.strategy.into(), row.target.as_str().into()];
    cells.extend(counts.map(|n| Cell::from(unsigned(n))));
    cells.extend([ms(stats.median), ms(stats.p99_line)].map(Cell::from));
    cells.extend([report.stock, report.orders, report.oversold].map(|n| Cell::from(whole(n))));
    cells.extend(
        [report.duplicate_orders, report.lost_orders].map(|n| Cell::from(unsigned(n as u64))),
    );
    let verdict = Cell::from(report.verdict.word());
    cells.push(if report.verdict == Verdict::Exact {
        verdict
    } else {
        verdict.fg(Color::Red)
    });
    cells.extend([spread(|s| s.median), spread(|s| s.min), spread(|s| s.max)].map(Cell::from));
    cells
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
        let parse = |line: &str| {
            Cli::try_parse_from(["seckill"].into_iter().chain(line.split_whitespace()))
        };
        let args = parse("--strategies user-mutex,redis-rlock --targets three --duration 2s")
            .expect("good")
            .args;
        assert_eq!(
            args.strategies
                .iter()
                .map(|step| step.slug)
                .collect::<Vec<_>>(),
            ["user-mutex", "redis-rlock"]
        );
        assert_eq!((args.users, args.pieces, args.repeats), (1000, 100, 3));
        for bad in [
            "--repeats 1",
            "--users 0",
            "--strategies nope",
            "--targets two",
            "--duration 11m",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
