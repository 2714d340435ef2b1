//! The generator and its verdicts against a shop whose faults are known.

use super::{
    fake::{Fake, Fault},
    run::{Snapshot, run},
    verdict::Verdict,
};
use crate::failure::Failure;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn an_honest_shop_is_exact() {
    let fake = Fake::open(None).await;
    let row = fake.run("single-update", 8, 25, 1000).await;
    assert_eq!(
        (row.verdict, row.kept, row.sold, row.oversold, row.before, row.after),
        (Verdict::Exact, true, 200, 0, 1000, 800)
    );
    assert_eq!((row.stats.samples, row.stats.error_percent, row.instances["fake"]), (200, 0.0, 200));
    assert!(row.stats.sent_kb_per_sec > 0.0 && row.stats.received_kb_per_sec > 0.0);
}

#[tokio::test]
async fn sold_out_is_told_from_an_error() {
    let row = Fake::open(None).await.run("redis-watch", 4, 25, 60).await;
    assert_eq!((row.verdict, row.sold, row.sold_out, row.errors, row.after), (Verdict::Exact, 60, 40, 0, 0));
}

#[tokio::test]
async fn a_shop_that_loses_updates_is_oversold() {
    let row = Fake::open(Some((Fault::LostUpdate, 10))).await.run("single-update", 8, 25, 1000).await;
    assert_eq!((row.verdict, row.kept, row.oversold), (Verdict::Oversold, false, 20));
    assert!(row.complaint().unwrap().contains("oversold 20"), "{:?}", row.complaint());
}

#[tokio::test]
async fn a_strategy_that_should_oversell_and_does_not_has_broken_its_promise() {
    let row = Fake::open(None).await.run("none", 2, 5, 100).await;
    assert_eq!((row.verdict, row.kept), (Verdict::Exact, false));
    assert!(row.complaint().unwrap().contains("did not show its fault"), "{:?}", row.complaint());
}

#[tokio::test]
async fn a_refused_request_is_an_error_and_no_oversell() {
    let row = Fake::open(Some((Fault::Refuses, 10))).await.run("single-update", 8, 25, 1000).await;
    assert_eq!((row.verdict, row.errors, row.unknown, row.oversold), (Verdict::Errors, 20, 0, 0));
    assert_eq!(row.reasons["503 lock not had"], 20);
}

#[tokio::test]
async fn unknown_outcomes_widen_the_interval_whether_they_were_done_or_not() {
    for (fault, gone_unseen) in [(Fault::CutBefore, 0), (Fault::CutAfter, 20), (Fault::TakesAndDoesNotKnow, 20)] {
        let row = Fake::open(Some((fault, 10))).await.run("single-update", 8, 25, 1000).await;
        assert_eq!((row.verdict, row.sold, row.unknown, row.errors), (Verdict::Errors, 180, 20, 0), "{fault:?}");
        assert_eq!(row.oversold, -gone_unseen, "{fault:?}");
    }
}

#[tokio::test]
async fn a_request_whose_connection_is_cut_is_not_sent_again() {
    for fault in [Fault::CutBefore, Fault::CutAfter] {
        let fake = Fake::open(Some((fault, 2))).await;
        let row = fake.run("single-update", 4, 25, 1000).await;
        assert_eq!((fake.requests(), row.stats.samples, row.unknown), (100, 100, 50), "{fault:?}");
    }
}

#[tokio::test]
async fn a_connection_that_the_server_closes_between_requests_is_opened_anew_and_costs_nothing() {
    let fake = Fake::open(Some((Fault::Closes, 3))).await;
    let row = fake.run("single-update", 4, 30, 1000).await;
    assert_eq!((fake.requests(), row.verdict, row.sold), (120, Verdict::Exact, 120));
}

#[tokio::test]
async fn a_thousand_connections_are_served() {
    let row = Fake::open(None).await.run("single-update", 1000, 2, 5000).await;
    assert_eq!((row.verdict, row.sold), (Verdict::Exact, 2000));
}

#[tokio::test]
async fn a_cancelled_run_ends_and_what_was_under_way_is_unknown() {
    let fake = Fake::open(Some((Fault::Hangs, 1))).await;
    let (progress, mut watching) = watch::channel(Snapshot::default());
    let cancel = CancellationToken::new();
    let plan = fake.plan("single-update", 3, 10, 100);
    let shop = std::sync::Arc::clone(&fake.shop);
    let stop = async {
        while shop.lock().unwrap().requests < 3 {
            watching.changed().await.unwrap();
        }
        cancel.cancel();
    };
    let (row, ()) = tokio::join!(run(&plan, &progress, &cancel), stop);
    let row = row.unwrap();
    assert_eq!((row.stats.samples, row.unknown, row.verdict), (3, 3, Verdict::Errors));
}

#[tokio::test]
async fn the_last_snapshot_is_the_whole_run() {
    let fake = Fake::open(None).await;
    let (progress, watching) = watch::channel(Snapshot::default());
    run(&fake.plan("single-update", 4, 25, 1000), &progress, &CancellationToken::new()).await.unwrap();
    let last = watching.borrow();
    assert_eq!((last.samples, last.planned, last.sold, last.instances["fake"]), (100, 100, 100, 100));
}

#[tokio::test]
async fn a_target_that_does_not_answer_is_one_line_that_names_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let mut plan = Fake::open(None).await.plan("single-update", 1, 1, 1);
    plan.base = base.clone();
    let failure = run(&plan, &watch::channel(Snapshot::default()).0, &CancellationToken::new()).await.unwrap_err();
    assert!(matches!(&failure, Failure::Unusable(line) if line.contains(&base)), "{failure}");
}

#[test]
fn a_plan_in_json_has_no_token() {
    let plan = super::run::Plan {
        base: String::new(),
        target: "one".into(),
        strategy: "none".into(),
        threads: 1,
        loops: 1,
        hold_ms: 0,
        stock_id: 1,
        count: 1,
        token: Some("secret".to_owned().into()),
    };
    assert!(!serde_json::to_string(&plan).unwrap().contains("secret"));
    assert!(!format!("{plan:?}").contains("secret"));
}
