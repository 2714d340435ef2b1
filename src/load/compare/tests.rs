//! The command against shops whose faults are known.

use super::*;
use crate::load::{
    fake::{Fake, Fault},
    plan::{ONE_INSTANCE, THREE_BEHIND_NGINX},
    verdict::Verdict,
};
use clap::Parser;

#[derive(Debug, Parser)]
struct Cli {
    #[command(flatten)]
    args: Args,
}

fn args(line: &str) -> Result<Args, clap::Error> {
    let words = ["compare"].into_iter().chain(line.split_whitespace());
    Cli::try_parse_from(words).map(|cli| cli.args)
}

/// The result of the command with these options, against this shop.
async fn found_in(fake: &Fake, line: &str) -> Measurement {
    let args = args(&format!("--http {} --instance {} --threads 4 --loops 10 {line}", fake.http, fake.base));
    let stop = CancellationToken::new();
    compare(&args.unwrap(), None, &stop).await.unwrap()
}

#[tokio::test]
async fn each_strategy_runs_once_against_each_target() {
    let fake = Fake::open(None).await;
    let found = found_in(&fake, "--strategies single-update,redis-lock --count 60").await;
    let rows: Vec<_> =
        found.rows.iter().map(|r| (r.strategy, r.target.as_str(), r.stock_change.before, r.stock_change.after)).collect();
    assert_eq!(
        rows,
        [
            ("single-update", "one", 60, 20),
            ("single-update", "three", 60, 20),
            ("redis-lock", "one", 60, 20),
            ("redis-lock", "three", 60, 20)
        ]
    );
    assert!(found.kept);
    assert_eq!(fake.requests(), 160);
}

#[test]
fn strategies_are_the_nine_the_course_or_all() {
    let slugs = |line| {
        let strategies = args(line).unwrap().strategies();
        strategies.iter().map(|s| s.slug).collect::<Vec<_>>()
    };
    assert_eq!(slugs(""), DEFAULT_STRATEGIES);
    let course = stock::ALL.iter().filter(|s| !s.spec.rank.is_beyond());
    let course: Vec<_> = course.map(|s| s.slug).collect();
    assert_eq!(slugs("--course"), course);
    assert_eq!(slugs("--all").len(), stock::ALL.len() - 1);
    assert!(!slugs("--all").contains(&"mine") && slugs("--strategies mine") == ["mine"]);
    assert_eq!(slugs("--strategies mutex"), ["mutex"]);
    assert!(args("--all --course").is_err() && args("--all --strategies mutex").is_err());
}

#[tokio::test]
async fn rates_come_from_rounds_of_their_own_and_count_what_was_sold() {
    let fake = Fake::open(None).await;
    let found = found_in(&fake, "--strategies single-update,redis-lock --duration 400ms --warm-up 20ms --rounds 2").await;
    for row in &found.rows {
        let rate = row.rate.as_ref().unwrap();
        assert_eq!(
            (row.counts.sold, row.verdict, rate.verdict, rate.sold_per_sec.rounds),
            (40, Verdict::Exact, Verdict::Exact, 2)
        );
        // A busy machine may leave nothing of one round.
        assert!(rate.sold_per_sec.median > 0.0 && rate.sold_per_sec.max >= rate.sold_per_sec.median);
    }
    assert!(found.kept && fake.products().is_empty(), "every run has removed its product: {:?}", fake.products());

    let empty = Fake::open(Some((Fault::Refuses, 2))).await;
    let line = "--strategies redis-lock --duration 400ms --warm-up 0s";
    let found = found_in(&empty, line).await;
    let rate = found.rows[0].rate.as_ref().unwrap();
    assert!(rate.errors > 0 && rate.sold_per_sec.median < 0.6 * rate.answers_per_sec, "{rate:?}");
}

#[tokio::test]
async fn a_row_near_its_ceiling_is_bounded_by_the_generator() {
    let fake = Fake::open(None).await;
    let found = found_in(&fake, "--strategies single-update").await;
    let ceilings: Vec<_> = found.ceilings.iter().map(|c| (c.target.as_str(), c.path)).collect();
    assert_eq!(ceilings, [(ONE_INSTANCE, "/health/live"), (THREE_BEHIND_NGINX, "/")]);
    let ceiling = |target: &str, throughput| Ceiling { target: target.into(), throughput, ..found.ceilings[0].clone() };
    assert!(ceiling(ONE_INSTANCE, 100.0).is_reached_by(71.0) && !ceiling(ONE_INSTANCE, 100.0).is_reached_by(70.0));
}

#[tokio::test]
async fn broken_promises_and_missing_faults_are_failures() {
    for (fault, strategies, wanted, line) in [
        // Exact in one process is as promised, on three it is not.
        (None, "mutex", &[true, false][..], "mutex [one-process]: exact on one instance, exact on three instances"),
        (Some((Fault::LostUpdate, 3)), "mutex,redis-lock", &[false, true, false, false], "redis-lock [lease]: oversold 1"),
    ] {
        let shop = Fake::open(fault).await;
        let found = found_in(&shop, &format!("--strategies {strategies}")).await;
        let kept: Vec<_> = found.rows.iter().map(|row| row.kept).collect();
        assert_eq!(kept, wanted, "{fault:?}");
        assert!(!found.kept);
        let lines = table::promise_lines(&found.rows);
        let line = format!("✗ NOT as promised  {line}");
        assert!(lines.iter().any(|found| found.starts_with(&line)), "{lines:?}");
    }
}

#[tokio::test]
async fn a_stop_ends_the_comparison_in_its_ceilings_too() {
    let fake = Fake::open(None).await;
    let args = args(&format!("--http {} --instance {}", fake.http, fake.base));
    let stop = CancellationToken::new();
    stop.cancel();
    let stopped = compare(&args.unwrap(), None, &stop).await;
    assert!(matches!(stopped, Err(Failure::Interrupted(_))));
}

#[test]
fn an_unknown_strategy_or_target_is_bad_usage() {
    for bad in [
        "--strategies nonsense",
        "--targets two",
        "--threads 0",
        "--rate 100", // an open loop needs a duration
    ] {
        assert_eq!(args(bad).unwrap_err().exit_code(), 2, "{bad}");
    }
    let error = args("--strategies nonsense").unwrap_err();
    assert!(error.to_string().contains("single-update"), "{error}");
}
