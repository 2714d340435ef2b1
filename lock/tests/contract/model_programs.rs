//! The programs that the model is run with. Each comes from a seed; one that fails is cut down to fewer steps that fail as
//! well, and the verdict names both. `OVERSELL_MODEL_SEED=n` plays that seed
//! alone.
//!
//! Next to read: `model_locks.rs`.

use super::{
    model::{EVERYTHING, Fault, Modelled, Seen, Step, Who, run},
    support::*,
};
use fastrand::Rng;
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
                ask(process, owner, lease, dice.u64(0..4) * 100)
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

fn ask(process: usize, owner: Option<usize>, lease: Lease, wait: u64) -> Step {
    let who = Who { process, owner };
    Step::Ask { who, lease, wait }
}

fn program<F: Modelled>(seed: u64) -> Vec<Step> {
    let mut dice = Rng::with_seed(seed);
    (0..F::STEPS).map(|_| Step::random(&mut dice)).collect()
}

/// A program that comes to a hold, a re-entry, a lock that is taken, a loss, and silence.
fn through_everything() -> Vec<Step> {
    // A node of Redlock has a tenth of it to answer, on a busy machine as well.
    let lease = Lease::Watchdog(Duration::from_secs(3));
    let ask = |process, owner, wait| ask(process, owner, lease, wait);
    let silence = |process| Step::Silence {
        process,
        servers: 5,
    };
    let pause = |millis| Step::Pass(Duration::from_millis(millis));
    vec![
        ask(0, Some(0), 10_000),
        ask(0, Some(0), 10_000),
        pause(1000),
        ask(1, None, 100),
        pause(1000),
        // As long as a lease that is longer than those of the other programs, and as a session.
        silence(0),
        pause(3500),
        Step::Expire { process: 0 },
        Step::Release(0),
        Step::Release(0),
        silence(1),
        ask(1, None, 300),
        pause(4000),
        Step::Heal { process: 1 },
    ]
}

/// Without halves, quarters, … of the steps, as long as it still fails.
async fn fewer<F: Modelled>(family: Family<F>, mut steps: Vec<Step>) -> (Vec<Step>, String) {
    let (end, mut part) = (Instant::now() + SOON * 3, steps.len() / 2);
    let mut broken = "no shorter one fails".to_owned();
    while part > 0 {
        let mut at = 0;
        while at < steps.len() && Instant::now() < end {
            let mut rest = steps.clone();
            rest.drain(at..(at + part).min(rest.len()));
            match run(family, Fault::None, &rest).await {
                Ok(_) => at += part,
                Err(still) => (steps, broken) = (rest, still.to_string()),
            }
        }
        part /= 2;
    }
    (steps, broken)
}

/// So many programs run at the same time, beside each other.
const PROGRAMS: u64 = 16;

async fn programs_keep_to_the_model<F: Modelled>(family: Family<F>) -> Result {
    let given = std::env::var("OVERSELL_MODEL_SEED");
    let given = given.ok().and_then(|seed| seed.parse().ok());
    let (chosen, kind) = (given.unwrap_or_else(|| fastrand::u64(..)), family.kind.name);
    eprintln!("the model of {kind}: OVERSELL_MODEL_SEED={chosen}");
    let fixed = if given.is_some() { 0 } else { PROGRAMS };
    let seeds: Vec<_> = (0..fixed).chain([chosen]).collect();
    let play = async |seed: &u64| run(family, Fault::None, &program::<F>(*seed)).await;
    let mut all = Seen::default();
    for (seed, result) in seeds.iter().zip(join_all(seeds.iter().map(play)).await) {
        match result {
            Ok(seen) => all.extend(seen),
            Err(broken) => {
                let (steps, still) = fewer(family, program::<F>(*seed)).await;
                bail!("seed {seed}: {broken}; in short: {still}, after {steps:?}");
            }
        }
    }
    // By itself; on a busy machine its first lock may come too late to be had, and then nothing is lost.
    for _ in 0..PROGRAMS {
        all.extend(run(family, Fault::None, &through_everything()).await?);
        if all == Seen::from(EVERYTHING) {
            return Ok(());
        }
    }
    bail!("programs came to no more than {all:?}")
}

/// A lock with this fault must break this rule of the model.
async fn breaks<F: Modelled>(family: Family<F>, fault: Fault, rule: &str) -> Result {
    let mut passed = Vec::new();
    for first in [0, PROGRAMS, 2 * PROGRAMS] {
        let play = async |seed| run(family, fault, &program::<F>(seed)).await;
        for result in join_all((first..first + PROGRAMS).map(play)).await {
            match result {
                Err(broken) if broken.to_string().contains(rule) => return Ok(()),
                other => passed.push(other),
            }
        }
    }
    bail!("{fault:?} passed: {passed:?}")
}

/// An owner loses what it has, takes it again, and then gives the old one back.
async fn a_late_release_by_owner_breaks<F: Modelled>(family: Family<F>) -> Result {
    let ask = |lease| ask(0, Some(0), lease, 5000);
    // A node of Redlock has a tenth of the lease to answer.
    let first = ask(Lease::Fixed(Duration::from_millis(500)));
    let pause = Step::Pass(Duration::from_millis(600));
    let second = ask(Lease::Watchdog(SOON * 3));
    let steps = [first, pause, second, pause, Step::Release(0), pause];
    let mut passed = Vec::new();
    // On a busy machine the first may come too late to be lost.
    for _ in 0..PROGRAMS {
        match run(family, Fault::LateRelease, &steps).await {
            Err(broken) if broken.to_string().contains("it is not there") => {
                return run(family, Fault::None, &steps).await.map(|_| ());
            }
            other => passed.push(other),
        }
    }
    bail!("it passed: {passed:?}")
}

macro_rules! programs {
    ($($name:ident: $kind:literal on $engine:ty, $test:expr $(, $fault:ident, $rule:literal)?;)*) => {$(
        test! {
            async fn $name(engine: &'static $engine) -> Result {
                $test(engine.family($kind) $(, Fault::$fault, $rule)?).await
            }
        }
    )*};
}

programs! {
    random_programs_with_a_redis_lock_keep_to_the_model:
        "redis" on Redis, programs_keep_to_the_model;
    random_programs_with_a_fair_lock_keep_to_the_model:
        "redis_fair" on Redis, programs_keep_to_the_model;
    random_programs_with_a_write_lock_keep_to_the_model:
        "redis_write" on Redis, programs_keep_to_the_model;
    random_programs_with_a_redlock_keep_to_the_model:
        "redlock" on Five, programs_keep_to_the_model;
    random_programs_with_a_zookeeper_lock_keep_to_the_model:
        "zookeeper" on ZooKeeper, programs_keep_to_the_model;
    owners_that_are_mixed_up_break_the_model:
        "redis" on Redis, breaks, OneOwner, "both hold it";
    owners_of_a_redlock_that_are_mixed_up_break_the_model:
        "redlock" on Five, breaks, OneOwner, "both hold it";
    owners_in_zookeeper_that_are_mixed_up_break_the_model:
        "zookeeper" on ZooKeeper, breaks, OneOwner, "both hold it";
    silence_that_is_taken_for_a_yes_breaks_the_model:
        "redis" on Redis, breaks, SilenceIsYes, "it is not there";
    a_hold_that_is_kept_breaks_the_model:
        "redis" on Redis, breaks, Leak, "the lock is free when all is over";
    a_loss_that_is_not_told_breaks_the_model:
        "redis" on Redis, breaks, LossUntold, "released what it had lost";
    a_late_release_by_owner_breaks_the_model:
        "redis" on Redis, a_late_release_by_owner_breaks;
    a_late_release_of_a_redlock_by_owner_breaks_the_model:
        "redlock" on Five, a_late_release_by_owner_breaks;
}
