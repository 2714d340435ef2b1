//! The programs that the model is run with. Each comes from a seed; one that fails is cut down to fewer steps that fail as
//! well, and the verdict names both. `OVERSELL_MODEL_SEED=n` plays that
//! seed alone.
//!
//! Next to read: `model_locks.rs`.

use super::{
    Verdict,
    clauses::{SOON, ensure},
    model::{Fault, Modelled, Seen, Step, Who, run},
};
use fastrand::Rng;
use futures::future::join_all;
use oversell_lock::redis::Lease;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;

impl Step {
    fn random(dice: &mut Rng) -> Self {
        let process = dice.usize(0..2);
        match dice.u8(0..20) {
            0..7 => {
                let owner = [None, Some(0), Some(0), Some(1)][dice.usize(0..4)];
                let lease = match dice.u8(0..4) {
                    0 => Lease::Watchdog(SOON * 3),
                    1 => Lease::Watchdog(Duration::from_millis(300)),
                    _ => Lease::Fixed(Duration::from_millis(60)),
                };
                Self::Ask {
                    who: Who { process, owner },
                    lease,
                    wait: dice.u64(0..4) * 100,
                }
            }
            7 => Self::GoAway(dice.usize(0..8)),
            8..12 => Self::Release(dice.usize(0..8)),
            12 => Self::Drop(dice.usize(0..8)),
            13 => Self::Late {
                process,
                by: dice.u64(0..4) * 120,
            },
            14 => Self::Silence {
                process,
                servers: dice.usize(1..=5),
            },
            15 => Self::Heal { process },
            16 => Self::Expire { process },
            _ => Self::Pass(Duration::from_millis(dice.u64(0..40))),
        }
    }
}

fn program<F: Modelled>(seed: u64) -> Vec<Step> {
    let mut dice = Rng::with_seed(seed);
    (0..F::STEPS).map(|_| Step::random(&mut dice)).collect()
}

/// A program that comes to a hold, a re-entry, a lock that is taken, a loss, and silence.
fn through_everything() -> Vec<Step> {
    let ask = |process, owner, wait| {
        let (who, lease) = (
            Who { process, owner },
            Lease::Watchdog(Duration::from_millis(900)),
        );
        Step::Ask { who, lease, wait }
    };
    let pause = |millis| Step::Pass(Duration::from_millis(millis));
    vec![
        ask(0, Some(0), 10_000),
        ask(0, Some(0), 10_000),
        pause(1000),
        ask(1, None, 100),
        pause(1000),
        // As long as a lease that is longer than those of the other programs, and as a session.
        Step::Silence {
            process: 0,
            servers: 5,
        },
        pause(1000),
        Step::Expire { process: 0 },
        Step::Release(0),
        Step::Release(0),
        Step::Silence {
            process: 1,
            servers: 5,
        },
        ask(1, None, 300),
        pause(4000),
        Step::Heal { process: 1 },
    ]
}

/// Without halves, quarters, … of the steps, as long as it still fails.
async fn fewer<F: Modelled>(
    family: &F,
    mut steps: Vec<Step>,
    mut broken: String,
) -> (Vec<Step>, String) {
    let (end, mut part) = (Instant::now() + SOON * 3, steps.len() / 2);
    while part > 0 {
        let mut at = 0;
        while at < steps.len() && Instant::now() < end {
            let mut rest = steps.clone();
            rest.drain(at..(at + part).min(rest.len()));
            match run(family, Fault::None, &rest).await {
                Ok(_) => at += part,
                Err(still) => (steps, broken) = (rest, still),
            }
        }
        part /= 2;
    }
    (steps, broken)
}

/// So many programs run at the same time, beside each other.
const PROGRAMS: u64 = 16;

pub(crate) async fn random_programs_keep_to_the_model<F: Modelled>(family: Arc<F>) -> Verdict {
    let given = std::env::var("OVERSELL_MODEL_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let chosen = given.unwrap_or_else(|| fastrand::u64(..));
    eprintln!("the model of {}: OVERSELL_MODEL_SEED={chosen}", F::NAME);
    let fixed = if given.is_some() { 0 } else { PROGRAMS };
    let seeds: Vec<_> = (0..fixed).chain([chosen]).collect();
    let runs = join_all(
        seeds
            .iter()
            .map(async |seed| run(&*family, Fault::None, &program::<F>(*seed)).await),
    );
    let through = through_everything();
    let (runs, through) = tokio::join!(runs, run(&*family, Fault::None, &through));
    let mut all = through?;
    for (seed, result) in seeds.iter().zip(runs) {
        match result {
            Ok(seen) => all += seen,
            Err(broken) => {
                let (steps, still) = fewer(&*family, program::<F>(*seed), broken.clone()).await;
                return Err(format!(
                    "seed {seed}: {broken}; in short: {still}, after {steps:?}"
                ));
            }
        }
    }
    let Seen {
        holds,
        again,
        taken,
        unanswered,
        lost,
    } = all;
    let all_kinds = [holds, again, taken, unanswered, lost]
        .iter()
        .all(|times| *times > 0);
    ensure(all_kinds, || {
        format!("the programs have not come through everything: {all:?}")
    })
}

/// A lock with this fault must break this rule of the model.
async fn breaks<F: Modelled>(family: &F, fault: Fault, rule: &str) -> Verdict {
    let mut passed = Vec::new();
    for first in [0, PROGRAMS, 2 * PROGRAMS] {
        let seeds = first..first + PROGRAMS;
        let results =
            join_all(seeds.map(async |seed| run(family, fault, &program::<F>(seed)).await)).await;
        if results
            .iter()
            .any(|result| result.as_ref().is_err_and(|broken| broken.contains(rule)))
        {
            return Ok(());
        }
        passed.extend(results);
    }
    Err(format!("{fault:?} passed: {passed:?}"))
}

pub(crate) async fn owners_that_are_mixed_up_break_the_model<F: Modelled>(
    family: Arc<F>,
) -> Verdict {
    breaks(&*family, Fault::OneOwner, "both hold it").await
}

/// An owner loses what it has, takes it again, and then gives the old one back.
pub(crate) async fn a_late_release_by_owner_breaks_the_model<F: Modelled>(
    family: Arc<F>,
) -> Verdict {
    let who = Who {
        process: 0,
        owner: Some(0),
    };
    let ask = |lease| Step::Ask {
        who,
        lease,
        wait: 5000,
    };
    // A node of Redlock has a tenth of the lease to answer.
    let (lease, pause) = (
        Duration::from_millis(500),
        Step::Pass(Duration::from_millis(600)),
    );
    let (first, second) = (ask(Lease::Fixed(lease)), ask(Lease::Watchdog(SOON * 3)));
    let steps = [first, pause, second, pause, Step::Release(0), pause];
    let mut passed = Vec::new();
    // On a busy machine the first may be had too late to be lost.
    for _ in 0..PROGRAMS {
        match run(&*family, Fault::LateRelease, &steps).await {
            Err(broken) if broken.contains("it is not there") => {
                return run(&*family, Fault::None, &steps).await.map(|_| ());
            }
            other => passed.push(other),
        }
    }
    Err(format!("it passed: {passed:?}"))
}

pub(crate) async fn silence_that_is_taken_for_a_yes_breaks_the_model<F: Modelled>(
    family: Arc<F>,
) -> Verdict {
    breaks(&*family, Fault::SilenceIsYes, "it is not there").await
}

pub(crate) async fn a_hold_that_is_kept_breaks_the_model<F: Modelled>(family: Arc<F>) -> Verdict {
    breaks(&*family, Fault::Leak, "the lock is had when all is over").await
}

pub(crate) async fn a_loss_that_is_not_told_breaks_the_model<F: Modelled>(
    family: Arc<F>,
) -> Verdict {
    breaks(&*family, Fault::LossUntold, "released what it had lost").await
}
