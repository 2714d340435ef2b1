//! The generator and its verdicts against a shop whose faults are known.

use super::{
    Row,
    fake::{Fake, Fault, STALL, run_to_its_end},
    plan::{Plan, THREE, Timed},
    run::{Snapshot, run},
    verdict::Verdict,
};
use crate::failure::Failure;
use std::{sync::Arc, time::Duration};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

/// A row in one line: verdict, answers, difference, and what is left.
fn seen(row: &Row) -> String {
    let Row {
        sold,
        sold_out,
        errors,
        unknown,
        oversold,
        after,
        ..
    } = row;
    let kept = if row.kept { "kept" } else { "broken" };
    let verdict = row.verdict.word();
    format!(
        "{verdict}, {kept}: {sold} sold, {sold_out} out, {errors} errors, {unknown} unknown; {oversold} over, {after} left"
    )
}

/// What a broken promise is said to be.
fn complains(row: &Row, of: &str) {
    let complaint = row.complaint().unwrap();
    assert!(complaint.contains(of), "{complaint}");
}

async fn run_silently(plan: &Plan, cancel: &CancellationToken) -> Result<Row, Failure> {
    run(plan, &watch::Sender::new(Snapshot::default()), cancel).await
}

#[tokio::test]
async fn an_honest_shop_is_exact() {
    let fake = Fake::open(None).await;
    let row = fake.run("single-update", 8, 25, 1000).await;
    assert_eq!(
        seen(&row),
        "exact, kept: 200 sold, 0 out, 0 errors, 0 unknown; 0 over, 800 left"
    );
    let stats = &row.stats;
    assert_eq!((row.before, row.instances["8000"]), (1000, 200));
    assert_eq!((stats.samples, stats.error_percent), (200, 0.0));
    assert!(stats.sent_kb_per_sec > 0.0 && stats.received_kb_per_sec > 0.0);
}

#[tokio::test]
async fn sold_out_is_told_from_an_error() {
    let row = Fake::open(None).await.run("redis-watch", 4, 25, 60).await;
    assert_eq!(
        seen(&row),
        "exact, kept: 60 sold, 40 out, 0 errors, 0 unknown; 0 over, 0 left"
    );
}

#[tokio::test]
async fn a_shop_that_loses_updates_is_oversold() {
    let fake = Fake::open(Some((Fault::LostUpdate, 10))).await;
    let row = fake.run("single-update", 8, 25, 1000).await;
    assert_eq!(
        seen(&row),
        "oversold, broken: 200 sold, 0 out, 0 errors, 0 unknown; 20 over, 820 left"
    );
    complains(&row, "oversold 20");
}

#[tokio::test]
async fn a_strategy_that_should_oversell_and_does_not_has_broken_its_promise() {
    let row = Fake::open(None).await.run("none", 2, 5, 100).await;
    assert_eq!((row.verdict, row.kept), (Verdict::Exact, false));
    complains(&row, "did not show its fault");
}

#[tokio::test]
async fn a_refused_request_is_an_error_and_no_oversell() {
    let fake = Fake::open(Some((Fault::Refuses, 10))).await;
    let row = fake.run("single-update", 8, 25, 1000).await;
    assert_eq!(
        seen(&row),
        "errors, broken: 180 sold, 0 out, 20 errors, 0 unknown; 0 over, 820 left"
    );
    assert_eq!(row.reasons["503 lock not had"], 20);
}

#[tokio::test]
async fn unknown_outcomes_widen_the_interval_whether_they_were_done_or_not() {
    for (fault, over_and_left) in [
        (Fault::CutBefore, "0 over, 820 left"),
        (Fault::CutAfter, "-20 over, 800 left"),
        (Fault::TakesAndDoesNotKnow, "-20 over, 800 left"),
    ] {
        let fake = Fake::open(Some((fault, 10))).await;
        let row = fake.run("single-update", 8, 25, 1000).await;
        assert_eq!(
            seen(&row),
            format!("errors, broken: 180 sold, 0 out, 0 errors, 20 unknown; {over_and_left}"),
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn a_request_whose_connection_is_cut_is_not_sent_again() {
    for fault in [Fault::CutBefore, Fault::CutAfter] {
        let fake = Fake::open(Some((fault, 2))).await;
        let row = fake.run("single-update", 4, 25, 1000).await;
        assert_eq!(
            (fake.requests(), row.stats.samples, row.unknown),
            (100, 100, 50),
            "{fault:?}"
        );
    }
}

#[tokio::test]
async fn a_connection_that_the_server_closes_between_requests_is_opened_again_and_costs_nothing() {
    let fake = Fake::open(Some((Fault::Closes, 3))).await;
    let row = fake.run("single-update", 4, 30, 1000).await;
    assert_eq!(
        (fake.requests(), row.verdict, row.sold),
        (120, Verdict::Exact, 120)
    );
}

#[tokio::test]
async fn a_thousand_connections_are_served() {
    let row = Fake::open(None)
        .await
        .run("single-update", 1000, 2, 5000)
        .await;
    assert_eq!((row.verdict, row.sold), (Verdict::Exact, 2000));
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
    assert_eq!(
        (row.stats.samples, row.unknown, row.verdict),
        (3, 3, Verdict::Errors)
    );
}

#[tokio::test]
async fn the_last_snapshot_is_the_whole_run() {
    let fake = Fake::open(None).await;
    let (progress, watching) = watch::channel(Snapshot::default());
    run(
        &fake.plan("single-update", 4, 25, 1000),
        &progress,
        &CancellationToken::new(),
    )
    .await
    .unwrap();
    let last = watching.borrow();
    assert_eq!(
        (
            last.samples,
            last.planned,
            last.sold,
            last.instances["8000"]
        ),
        (100, 100, 100, 100)
    );
}

#[tokio::test]
async fn a_target_that_does_not_answer_is_one_line_that_names_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut plan = Fake::open(None).await.plan("single-update", 1, 1, 1);
    plan.base = base.clone();
    let failure = run_silently(&plan, &CancellationToken::new())
        .await
        .unwrap_err();
    assert!(
        matches!(&failure, Failure::Unusable(line) if line.contains(&base)),
        "{failure}"
    );
}

#[tokio::test]
async fn a_run_has_a_product_of_its_own_and_removes_it_and_a_twin_on_product_1_is_caught() {
    let fake = Fake::open(Some((Fault::Reset, 50))).await;
    let row = fake.run("single-update", 4, 25, 1000).await;
    assert_eq!(
        (row.verdict, row.kept, row.before, row.after),
        (Verdict::Exact, true, 1000, 900)
    );
    assert_eq!(
        fake.products(),
        [1],
        "only what somebody else has made is left"
    );

    let twin = Plan {
        stock_id: 1,
        ..fake.plan("single-update", 4, 25, 1000)
    };
    let row = run_to_its_end(&twin).await;
    assert_eq!(
        (row.verdict, row.kept),
        (Verdict::Oversold, false),
        "somebody else's reset falsifies it"
    );
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
    let row = fake.run_on_three("single-update", 6, 10, 1000).await;
    assert_eq!(
        (row.verdict, row.instances.len(), row.kept),
        (Verdict::Exact, 3, true)
    );
    for (base, answered) in [(
        &fake.base,
        "target three is 3 instance(s), and 1 answered: 8000",
    )] {
        let plan = Plan {
            base: base.clone(),
            target: THREE.into(),
            ..fake.plan("single-update", 6, 10, 1000)
        };
        let row = run_to_its_end(&plan).await;
        assert_eq!((row.verdict, row.kept), (Verdict::Errors, false));
        assert_eq!(row.notes, [answered]);
        complains(&row, answered);
    }
    let plan = Plan {
        base: fake.http.clone(),
        ..fake.plan("single-update", 6, 10, 1000)
    };
    assert_eq!(
        run_to_its_end(&plan).await.verdict,
        Verdict::Errors,
        "one is one"
    );
}

#[tokio::test]
async fn an_unsafe_strategy_whose_requests_fail_has_not_kept_its_promise() {
    let lossy = Fake::open(Some((Fault::LostUpdate, 2))).await;
    let row = lossy.run("none", 4, 25, 1000).await;
    assert_eq!((row.verdict, row.kept), (Verdict::Oversold, true));
    // The same loss beside a request that was refused: a reset makes the stock grow, which is more sold than gone.
    let fake = Fake::open(Some((Fault::Refuses, 10))).await;
    let shop = Arc::clone(&fake.shop);
    let row = Plan {
        stock_id: 1,
        ..fake.plan("none", 1, 30, 1000)
    };
    let row = run_to_its_end(&row).await;
    assert_eq!((row.verdict, row.kept), (Verdict::Errors, false));
    assert_eq!(shop.lock().unwrap().requests, 30);
}

#[tokio::test]
async fn what_the_answers_say_stands_in_the_row_and_what_they_do_not_say_is_absent() {
    let row = Fake::open(Some((Fault::Says, 1)))
        .await
        .run("version-cas", 2, 10, 100)
        .await;
    assert_eq!(
        (row.retries, row.retries_per_sold, row.lock_lost),
        (Some(40), Some(2.0), Some(20))
    );
    assert_eq!(
        (row.waited_mean_ms, row.waited_max_ms),
        (Some(5.0), Some(5))
    );
    let row = Fake::open(None).await.run("version-cas", 2, 10, 100).await;
    assert_eq!(
        (
            row.retries,
            row.retries_per_sold,
            row.lock_lost,
            row.waited_mean_ms
        ),
        (None, None, None, None)
    );
}

#[tokio::test]
async fn a_stall_is_hidden_from_the_99_percent_line_of_a_closed_loop_and_seen_by_an_open_one() {
    let p99 = async |timed: Option<Timed>| {
        let fake = Fake::open(Some((Fault::Stalls, 100))).await;
        // Counted, and not timed: a stall, the shop's or the machine's, meets the 4 requests that are under way, and the
        // line leaves 40 out.
        let counted = fake.plan("single-update", 4, 1000, 4000);
        let row =
            run_to_its_end(&timed.map_or(counted.clone(), |timed| counted.timed(timed))).await;
        assert_eq!((row.verdict, row.errors + row.unknown), (Verdict::Exact, 0));
        row.stats.p99_line
    };
    let timed = Timed {
        warm_up: Duration::ZERO,
        measured: Duration::from_secs(2),
        rate: Some(200.0),
    };
    let (closed, open) = (p99(None).await, p99(Some(timed)).await);
    assert!(
        open > 4.0 * closed,
        "closed loop {closed} ms, open loop {open} ms"
    );
}

#[tokio::test]
async fn a_rate_that_the_target_does_not_keep_is_said_to_be_behind() {
    let fake = Fake::open(Some((Fault::Stalls, 1))).await;
    let timed = Timed {
        warm_up: Duration::ZERO,
        measured: Duration::from_millis(300),
        rate: Some(100.0),
    };
    let row = run_to_its_end(&fake.plan("single-update", 1, 1, 0).timed(timed)).await;
    assert!(
        row.behind > 20,
        "the only connection waited for longer than the load lasts: {}",
        row.behind
    );
}

#[tokio::test]
async fn who_answered_in_the_warm_up_has_answered() {
    let fake = Fake::open(Some((Fault::Stalls, 5))).await;
    let timed = Timed {
        warm_up: STALL / 4,
        measured: STALL / 8,
        rate: None,
    };
    let row = run_to_its_end(&fake.plan("single-update", 1, 1, 0).timed(timed)).await;
    assert_eq!(
        (row.verdict, row.instances["8000"]),
        (Verdict::Exact, row.sold)
    );
}

#[tokio::test]
async fn a_run_without_an_end_within_reach_is_refused() {
    let fake = Fake::open(None).await;
    for (threads, loops, hold_ms, rule) in [
        (1000, 10_000, 0, "threads × loops"),
        (10, 1000, 61, "hold_ms"),
        (0, 1, 0, "threads"),
    ] {
        let plan = Plan {
            hold_ms,
            ..fake.plan("redis-lock", threads, loops, 1)
        };
        let refused = run_silently(&plan, &CancellationToken::new())
            .await
            .unwrap_err();
        assert!(refused.to_string().contains(rule), "{refused}");
    }
    assert_eq!(fake.requests(), 0);
}
