//! The generator and its verdicts against a shop whose faults are known.

use super::{
    Row,
    fake::{Fake, Fault, STALL, run_to_its_end},
    history::OutcomeCounts,
    measure::measure_in_rounds,
    plan::{ONE_INSTANCE, Plan, THREE_BEHIND_NGINX, Timed},
    run::{Snapshot, run},
    terminal::Bar,
    verdict::Verdict,
};
use oversell_lab::terminal::failure::Failure;
use std::{sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

/// A row in one line: verdict, answers, difference, and what is left.
fn seen(row: &Row) -> String {
    let OutcomeCounts { sold, sold_out, errors, unknown } = row.counts;
    let kept = if row.kept { "kept" } else { "broken" };
    let (verdict, oversold, after) = (row.verdict.to_string(), row.oversold, row.stock_change.after);
    format!("{verdict}, {kept}: {sold} sold, {sold_out} out, {errors} errors, {unknown} unknown; {oversold} over, {after} left")
}

/// Checks that the row complains of this.
fn complains(row: &Row, of: &str) {
    let complaint = row.broken_promise().unwrap();
    assert!(complaint.contains(of), "{complaint}");
}

async fn run_silently(plan: &Plan, cancel: &CancellationToken) -> Result<Row, Failure> {
    run(plan, &watch::Sender::new(Snapshot::default()), cancel).await
}

#[tokio::test]
async fn the_table_of_shops() {
    use Fault::{CutAfter, CutBefore, LostUpdate, Refuses, TakesAndDoesNotKnow};
    // 200 requests for a safe strategy; the fault meets every tenth. The last column is what a complaint says.
    for (fault, pieces, wanted, complaint) in [
        (None, 1000, "exact, kept: 200 sold, 0 out, 0 errors, 0 unknown; 0 over, 800 left", None),
        (None, 60, "exact, kept: 60 sold, 140 out, 0 errors, 0 unknown; 0 over, 0 left", None),
        (
            Some(LostUpdate),
            1000,
            "oversold, broken: 200 sold, 0 out, 0 errors, 0 unknown; 20 over, 820 left",
            Some("oversold 20"),
        ),
        (
            Some(Refuses),
            1000,
            "errors, broken: 180 sold, 0 out, 20 errors, 0 unknown; 0 over, 820 left",
            Some("503 lock not had"),
        ),
        // Whether they were done or not, unknown outcomes widen the interval.
        (Some(CutBefore), 1000, "errors, broken: 180 sold, 0 out, 0 errors, 20 unknown; 0 over, 820 left", Some("20 unknown")),
        (Some(CutAfter), 1000, "errors, broken: 180 sold, 0 out, 0 errors, 20 unknown; -20 over, 800 left", Some("20 unknown")),
        (
            Some(TakesAndDoesNotKnow),
            1000,
            "errors, broken: 180 sold, 0 out, 0 errors, 20 unknown; -20 over, 800 left",
            Some("20 unknown"),
        ),
    ] {
        let fake = Fake::open(fault.map(|fault| (fault, 10))).await;
        let row = fake.run("single-update", 8, 25, pieces).await;
        assert_eq!(seen(&row), wanted, "{fault:?}");
        match complaint {
            Some(complaint) => complains(&row, complaint),
            None => assert_eq!(row.broken_promise(), None),
        }
        // None of them is sent twice, also where its connection is cut.
        let stats = &row.stats;
        assert_eq!((fake.requests(), stats.samples), (200, 200), "{fault:?}");
        let failed = row.counts.failed();
        assert_eq!(stats.error_percent, failed as f64 / 2.0, "{fault:?}");
        assert_eq!(row.reasons.values().sum::<u64>(), failed, "{fault:?}");
        assert!(stats.sent_kb_per_sec > 0.0 && stats.received_kb_per_sec > 0.0);
        assert_eq!(row.stock_change.before, pieces);
        if failed == 0 {
            assert_eq!(row.instances["8000"], 200);
        }
    }
}

#[tokio::test]
async fn an_unsafe_strategy_that_does_not_oversell_is_refused() {
    let row = Fake::open(None).await.run("none", 2, 5, 100).await;
    assert_eq!((row.verdict, row.kept), (Verdict::Exact, false));
    complains(&row, "did not show its fault");
}

#[tokio::test]
async fn a_connection_closed_between_requests_is_reopened() {
    let fake = Fake::open(Some((Fault::Closes, 3))).await;
    let row = fake.run("single-update", 4, 30, 1000).await;
    assert_eq!((row.verdict, row.counts.sold), (Verdict::Exact, 120));
    assert_eq!(fake.requests(), 120);
}

#[tokio::test]
async fn a_cancelled_run_ends_and_what_was_under_way_is_unknown() {
    let fake = Fake::open(Some((Fault::Hangs, 1))).await;
    let (progress, mut watching) = watch::channel(Snapshot::default());
    let cancel = CancellationToken::new();
    let plan = fake.plan("single-update", 3, 10, 100);
    let shop = Arc::clone(&fake.shop);
    let stop = async {
        while shop.lock().unwrap().requests < 3 {
            watching.changed().await.unwrap();
        }
        cancel.cancel();
    };
    let (row, ()) = tokio::join!(run(&plan, &progress, &cancel), stop);
    let row = row.unwrap();
    assert_eq!((row.verdict, row.stats.samples), (Verdict::Errors, 3));
    assert_eq!(row.counts.unknown, 3);
}

#[tokio::test]
async fn a_target_that_does_not_answer_is_one_line_that_names_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut plan = Fake::open(None).await.plan("single-update", 1, 1, 1);
    plan.base = base.clone();
    let failure = run_silently(&plan, &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(&failure, Failure::Unusable(line) if line.contains(&base)), "{failure}");
}

#[tokio::test]
async fn a_round_that_cannot_be_made_spoils_no_other() {
    let fake = Fake::open(None).await;
    let good = fake.plan("single-update", 2, 1, 1000);
    // Nobody listens at port 1.
    let dead = Plan { base: "http://127.0.0.1:1".into(), ..good.clone() };
    let timed = Timed::closed(Duration::ZERO, Duration::from_millis(100));
    let (bar, stop) = (Bar::hidden(), CancellationToken::new());
    let (rows, failed) = measure_in_rounds(&[good, dead], timed, 2, &bar, &stop).await;
    let made: Vec<_> = rows.iter().map(Vec::len).collect();
    assert_eq!(made, [2, 0]);
    for (why, round) in failed.iter().zip(["round 1: ", "round 2: "]) {
        assert!(why.contains(round) && why.contains("127.0.0.1:1"), "{why}");
    }
    assert_eq!(failed.len(), 2);
}

#[tokio::test]
async fn a_run_on_product_1_is_caught() {
    let fake = Fake::open(Some((Fault::Reset, 50))).await;
    let plan = fake.plan("single-update", 4, 25, 1000);
    let row = run_to_its_end(&plan).await;
    assert_eq!((row.verdict, row.kept), (Verdict::Exact, true));
    assert_eq!((row.stock_change.before, row.stock_change.after), (1000, 900));
    assert_eq!(fake.products(), [1], "only what somebody else has made is left");

    let twin = Plan { stock_id: 1, ..plan };
    let row = run_to_its_end(&twin).await;
    assert_eq!((row.verdict, row.kept), (Verdict::Oversold, false), "somebody else's reset falsifies it");
}

#[tokio::test]
async fn a_run_that_is_cancelled_or_fails_removes_its_product_too() {
    let fake = Fake::open(Some((Fault::Hangs, 1))).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let plan = fake.plan("single-update", 1, 1, 1);
    run_silently(&plan, &cancel).await.unwrap();
    assert!(fake.products().is_empty());
}

#[tokio::test]
async fn three_means_that_three_have_answered() {
    let fake = Fake::open(None).await;
    let on =
        |base: &str, target: &str| Plan { base: base.into(), target: target.into(), ..fake.plan("single-update", 6, 10, 1000) };
    let row = run_to_its_end(&on(&fake.http, THREE_BEHIND_NGINX)).await;
    assert_eq!((row.verdict, row.kept), (Verdict::Exact, true));
    assert_eq!(row.instances.len(), 3);

    let row = run_to_its_end(&on(&fake.base, THREE_BEHIND_NGINX)).await;
    assert_eq!((row.verdict, row.kept), (Verdict::Errors, false));
    let answered = "target three is 3 instance(s), and 1 answered: 8000";
    assert_eq!(row.notes, [answered]);
    complains(&row, answered);

    let row = run_to_its_end(&on(&fake.http, ONE_INSTANCE)).await;
    assert_eq!(row.verdict, Verdict::Errors, "one is one");
}

#[tokio::test]
async fn failed_requests_break_an_unsafe_strategys_promise() {
    let lossy = Fake::open(Some((Fault::LostUpdate, 2))).await;
    let row = lossy.run("none", 4, 25, 1000).await;
    assert_eq!((row.verdict, row.kept), (Verdict::Oversold, true));
    // The same loss beside a request that was refused: a reset makes the stock grow, which is more sold than gone.
    let fake = Fake::open(Some((Fault::Refuses, 10))).await;
    let plan = Plan { stock_id: 1, ..fake.plan("none", 1, 30, 1000) };
    let row = run_to_its_end(&plan).await;
    assert_eq!((row.verdict, row.kept), (Verdict::Errors, false));
    assert_eq!(fake.requests(), 30);
}

#[tokio::test]
async fn a_stall_shows_in_the_p99_of_an_open_loop_only() {
    let p99 = async |timed: Option<Timed>| {
        let fake = Fake::open(Some((Fault::Stalls, 100))).await;
        // Counted, and not timed: a stall, the shop's or the machine's, meets the 4 requests that are under way, and the
        // line leaves 40 out.
        let counted = fake.plan("single-update", 4, 1000, 4000);
        let row = run_to_its_end(&timed.map_or(counted.clone(), |timed| counted.with_duration(timed))).await;
        assert_eq!((row.verdict, row.counts.failed()), (Verdict::Exact, 0));
        row.stats.p99_line
    };
    let timed = Timed { warm_up: Duration::ZERO, measured: Duration::from_secs(2), rate: Some(200.0) };
    let (closed, open) = (p99(None).await, p99(Some(timed)).await);
    assert!(open > 4.0 * closed, "closed loop {closed} ms, open loop {open} ms");
}

#[tokio::test]
async fn a_rate_that_the_target_does_not_keep_is_said_to_be_behind() {
    let fake = Fake::open(Some((Fault::Stalls, 1))).await;
    let timed = Timed { warm_up: Duration::ZERO, measured: Duration::from_millis(300), rate: Some(100.0) };
    let row = run_to_its_end(&fake.plan("single-update", 1, 1, 0).with_duration(timed)).await;
    assert!(row.behind > 20, "the only connection waited for longer than the load lasts: {}", row.behind);
}

#[tokio::test]
async fn an_instance_is_listed_that_sold_in_the_warm_up_alone() {
    let fake = Fake::open(Some((Fault::Stalls, 5))).await;
    let timed = Timed { warm_up: STALL / 4, measured: STALL / 8, rate: None };
    let row = run_to_its_end(&fake.plan("single-update", 1, 1, 0).with_duration(timed)).await;
    assert_eq!((row.verdict, row.instances["8000"]), (Verdict::Exact, row.counts.sold));
}

#[tokio::test]
async fn a_run_without_an_end_within_reach_is_refused() {
    let fake = Fake::open(None).await;
    for (threads, loops, hold_ms, rule) in [(1000, 10_000, 0, "threads × loops"), (10, 1000, 61, "hold_ms"), (0, 1, 0, "threads")]
    {
        let plan = Plan { hold_ms, ..fake.plan("redis-lock", threads, loops, 1) };
        let refused = run_silently(&plan, &CancellationToken::new()).await.unwrap_err();
        assert!(refused.to_string().contains(rule), "{refused}");
    }
    assert_eq!(fake.requests(), 0);
}
