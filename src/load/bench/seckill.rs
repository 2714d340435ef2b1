//! Orders per second of each step of the seckill: every order of another user, pieces plenty, three instances.
//!
//! What a lock per user costs shows against the step that asks for no order at all; what the row in MySQL costs, against the
//! one that asks Redis alone and writes behind. That one lock for all users is too coarse shows on one instance, where each
//! order stays a while inside.

use super::{Bench, CONNECTIONS, figure::Figure};
use crate::{
    failure::Failure,
    load::{
        engine::Timed,
        row::{ONE, THREE},
        run::{PLENTY, Snapshot},
        seckill::run::{Plan, run},
        target::token,
        terminal::stopped,
    },
    seckill::{self, Step},
};
use std::time::Duration;
use tokio::sync::watch;

/// How long each step is measured in each round.
const TIME: Timed = Timed {
    warm_up: Duration::from_millis(500),
    measured: Duration::from_secs(1),
    rate: None,
};

/// The step that the text ends with, which the others are held against.
const RLOCK: &str = "redis-rlock";
/// The step that is to take so many times as many orders.
const WANTED: (&str, f64) = ("script-stream", 5.0);

/// The lock for each user, and the one for all, that it is to take so many times as many orders as, with such a stay inside.
const FINE: (&str, &str, f64, u64) = ("user-mutex", "global-mutex", 3.0, 5);

/// Runs in a round.
pub(super) const RUNS: usize = seckill::ALL.len() + 2;

/// Measures each step once, and the two locks of one process with a stay.
pub(super) async fn round(bench: &mut Bench<'_>) -> Result<(), Failure> {
    let http = bench.at.http.clone();
    for step in seckill::ALL {
        measure(bench, &http, THREE, step, 0).await?;
    }
    let one = bench
        .at
        .instances
        .first()
        .map(|instance| instance.url.clone())
        .unwrap_or_default();
    for step in [FINE.0, FINE.1].into_iter().filter_map(seckill::find) {
        measure(bench, &one, ONE, step, FINE.3).await?;
    }
    Ok(())
}

async fn measure(
    bench: &mut Bench<'_>,
    base: &str,
    target: &str,
    step: &'static Step,
    hold_ms: u64,
) -> Result<(), Failure> {
    let plan = Plan {
        base: base.into(),
        target: target.into(),
        step,
        threads: CONNECTIONS,
        users: u64::MAX,
        repeats: 1,
        pieces: PLENTY,
        hold_ms,
        token: token(),
        timed: Some(TIME),
    };
    let (name, (progress, snapshots)) = (
        name(step.slug, hold_ms),
        watch::channel(Snapshot::default()),
    );
    let row = bench
        .bar
        .during(&name, snapshots, run(&plan, &progress, bench.stop))
        .await?;
    if bench.stop.is_cancelled() {
        return Err(stopped());
    }
    if let Some(why) = row.complaint() {
        bench.void.insert(name.clone(), why);
    }
    bench
        .rates
        .entry(name)
        .or_default()
        .push(row.orders_per_sec);
    Ok(())
}

/// All that was measured comes to.
pub(super) fn figures(bench: &Bench<'_>) -> Vec<Figure> {
    let ratio = |slug: &str, against: &str, hold_ms, wanted| {
        let (name, ceiling) = (name(slug, hold_ms), name(against, hold_ms));
        let figure = Figure::ratio(
            &name,
            bench.rates(&name),
            against,
            bench.rates(&ceiling),
            wanted,
        );
        figure
            .bounded_by(bound(slug))
            .unless(bench.void.get(&name).cloned())
    };
    let against_rlock = |step: &Step| match step.slug == WANTED.0 {
        true => ratio(step.slug, RLOCK, 0, WANTED.1),
        false => ratio(step.slug, RLOCK, 0, 0.0).for_comparison(),
    };
    let fine = ratio(FINE.0, FINE.1, FINE.3, FINE.2);
    seckill::ALL
        .iter()
        .map(against_rlock)
        .chain([fine])
        .collect()
}

fn bound(slug: &str) -> &'static str {
    match slug {
        "global-mutex" => "one order at a time in each instance",
        "script-stream" => "HTTP; whoever writes behind shares the cores",
        _ => "one row of the voucher: each commit waits for the one before",
    }
}

/// Its name among the figures.
fn name(slug: &str, hold_ms: u64) -> String {
    let stay = if hold_ms == 0 {
        String::new()
    } else {
        format!(", {hold_ms} ms inside, one instance")
    };
    format!("orders by {slug}{stay}")
}
