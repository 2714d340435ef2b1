//! Orders per second of each step of the seckill: every order of another user, pieces plenty, three instances.
//!
//! What a lock per user costs shows against the step that asks for no order at all; what the row in MySQL costs, against the
//! one that asks Redis alone and writes behind.

use super::{Bench, CONNECTIONS, figure::Figure};
use crate::{
    failure::Failure,
    load::{
        engine::Timed,
        row::THREE,
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
const TIME: Timed = Timed { warm_up: Duration::from_millis(500), measured: Duration::from_secs(1), rate: None };

/// The step that the text ends with, which the others are held against.
const RLOCK: &str = "redis-rlock";
/// The step that is to take so many times as many orders.
const WANTED: (&str, f64) = ("script-stream", 5.0);

/// Measures each step once.
pub(super) async fn round(bench: &mut Bench<'_>) -> Result<(), Failure> {
    for step in seckill::ALL {
        let plan = Plan {
            base: bench.at.http.clone(),
            target: THREE.into(),
            step,
            threads: CONNECTIONS,
            users: u64::MAX,
            repeats: 1,
            pieces: PLENTY,
            hold_ms: 0,
            token: token(),
            timed: Some(TIME),
        };
        let (progress, snapshots) = watch::channel(Snapshot::default());
        let row = bench.bar.during(step.slug, snapshots, run(&plan, &progress, bench.stop)).await?;
        if bench.stop.is_cancelled() {
            return Err(stopped());
        }
        if let Some(why) = row.complaint() {
            bench.void.insert(name(step), why);
        }
        bench.rates.entry(name(step)).or_default().push(row.orders_per_sec);
    }
    Ok(())
}

/// All that was measured comes to.
pub(super) fn figures<'a>(bench: &'a Bench<'_>) -> impl Iterator<Item = Figure> + use<'a> {
    let rlock = seckill::find(RLOCK).map(name).unwrap_or_default();
    seckill::ALL.iter().map(move |step| {
        let rates = [name(step), rlock.clone()].map(|name| bench.rates(&name));
        let figure = Figure::ratio(&name(step), rates[0], RLOCK, rates[1], WANTED.1);
        let figure = if step.slug == WANTED.0 { figure } else { figure.for_comparison() };
        figure.bounded_by(bound(step)).unless(bench.void.get(&name(step)).cloned())
    })
}

fn bound(step: &Step) -> &'static str {
    match step.slug {
        "global-mutex" => "one order at a time in each instance",
        "script-stream" => "HTTP; whoever writes behind shares the cores",
        _ => "one row of the voucher: each commit waits for the one before",
    }
}

/// Its name among the figures.
fn name(step: &Step) -> String {
    format!("orders by {}", step.slug)
}
