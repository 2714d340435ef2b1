//! A Java process that takes its locks with Redisson, and ours: what each does is seen, waited for and undone by the
//! other as among their own. On a real Redis, for the oldest and the newest Redisson that people run.
//!
//! `make interop` builds the Java process and runs this. In reading order: `peer.rs` is the Java process, `support.rs`
//! what every test needs, `exclusion.rs` and `sections.rs` what all locks show; then one file for each primitive.

mod exclusion;
mod fair;
mod latch;
mod lock;
mod peer;
mod read_write;
mod sections;
mod semaphore;
mod support;

use fair::Fair;
use libtest_mimic::{Arguments, Trial};
use lock::Plain;
use oversell::lab::{Lab, Options, Part};
use read_write::Write;
use std::{process::ExitCode, sync::Arc, time::Duration};
use support::{Sides, Verdict};
use tokio::runtime::{Handle, Runtime};

/// The course's, and the newest; both are built by `make interop`.
const REDISSON: [&str; 2] = ["3.13.6", "4.7.0"];

/// A test that has not ended by then hangs.
const HANGS: Duration = Duration::from_secs(300);

/// A trial that runs `test`; where tests are only listed, there is nothing to run it with.
fn trial<T: Future<Output = Verdict>>(
    runtime: &Handle,
    version: &str,
    sides: Option<&Arc<Sides>>,
    name: &str,
    test: impl FnOnce(Arc<Sides>) -> T + Send + 'static,
) -> Trial {
    let (runtime, sides) = (runtime.clone(), sides.cloned());
    Trial::test(format!("redisson-{version}::{name}"), move || {
        let Some(sides) = sides else { return Err("no java process".into()) };
        sides.java.begin();
        match runtime.block_on(async { tokio::time::timeout(HANGS, test(sides)).await }) {
            Ok(verdict) => Ok(verdict?),
            Err(_) => Err(format!("not ended after {HANGS:?}").into()),
        }
    })
}

macro_rules! trials {
    ($runtime:expr, $version:expr, $sides:expr, $($module:ident :: $test:ident $(::<$kind:ident>)?),+ $(,)?) => {
        vec![$(trial(
            $runtime,
            $version,
            $sides,
            concat!(stringify!($module), $("::", stringify!($kind),)? "::", stringify!($test)),
            $module::$test $(::<$kind>)?,
        )),+]
    };
}

fn trials(runtime: &Handle, version: &str, sides: Option<&Arc<Sides>>) -> Vec<Trial> {
    trials![
        runtime,
        version,
        sides,
        exclusion::ours_waits_for_java::<Plain>,
        exclusion::java_waits_for_ours::<Plain>,
        exclusion::a_release_without_a_message_leaves_java_asleep::<Plain>,
        exclusion::ours_is_woken_by_javas_message::<Plain>,
        exclusion::a_foreign_release_is_refused::<Plain>,
        exclusion::what_a_java_thread_forgot_comes_free_with_its_lease::<Plain>,
        sections::ten_thousand_mixed_sections_do_not_overlap::<Plain>,
        sections::a_side_that_takes_another_lock_is_caught::<Plain>,
        exclusion::ours_waits_for_java::<Fair>,
        exclusion::java_waits_for_ours::<Fair>,
        exclusion::a_release_without_a_message_leaves_java_asleep::<Fair>,
        exclusion::ours_is_woken_by_javas_message::<Fair>,
        exclusion::a_foreign_release_is_refused::<Fair>,
        exclusion::what_a_java_thread_forgot_comes_free_with_its_lease::<Fair>,
        sections::ten_thousand_mixed_sections_do_not_overlap::<Fair>,
        sections::a_side_that_takes_another_lock_is_caught::<Fair>,
        exclusion::ours_waits_for_java::<Write>,
        exclusion::java_waits_for_ours::<Write>,
        exclusion::a_release_without_a_message_leaves_java_asleep::<Write>,
        exclusion::ours_is_woken_by_javas_message::<Write>,
        exclusion::a_foreign_release_is_refused::<Write>,
        exclusion::what_a_java_thread_forgot_comes_free_with_its_lease::<Write>,
        sections::ten_thousand_mixed_sections_do_not_overlap::<Write>,
        sections::a_side_that_takes_another_lock_is_caught::<Write>,
        fair::who_comes_first_has_it_first,
        fair::nobody_gets_past_a_living_waiter,
        fair::who_gives_up_leaves_no_place,
        fair::both_get_past_a_dead_waiter,
        read_write::readers_of_both_are_together,
        read_write::a_writer_keeps_the_readers_of_the_other_out,
        read_write::who_steps_down_lets_readers_of_the_other_in,
        read_write::our_writer_is_woken_by_javas_last_reader,
        semaphore::permits_are_seen_by_both,
        semaphore::java_waits_for_our_permit,
        semaphore::a_permit_without_a_message_leaves_java_asleep,
        semaphore::ours_is_woken_by_javas_message,
        semaphore::no_more_are_inside_than_there_are_permits,
        semaphore::a_side_without_permits_is_caught,
        semaphore::a_wait_that_ends_takes_nothing,
        latch::both_count_one_latch_down,
        latch::an_opening_without_a_message_leaves_java_asleep,
        latch::ours_is_woken_by_javas_message,
        latch::a_wait_that_ends_says_so,
    ]
}

/// A Redis for this run alone, and a Java process for each version.
async fn start() -> Result<(Lab, Vec<Arc<Sides>>), String> {
    let without = vec![Part::MySql, Part::ZooKeeper, Part::Instances, Part::Nginx];
    let options = Options { without, redis_ports: vec![0], ..Options::default() };
    let lab = Lab::start(options).await.map_err(|e| e.to_string())?;
    let redis = lab.addresses().redis[0].url.clone();
    let starting = REDISSON.map(|version| Sides::start(version, redis.clone()));
    match futures::future::try_join_all(starting).await {
        Ok(sides) => Ok((lab, sides.into_iter().map(Arc::new).collect())),
        Err(error) => {
            lab.stop().await;
            Err(error)
        }
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One after the other: some compare how long things take.
    arguments.test_threads = Some(1);
    let runtime = Runtime::new().expect("a runtime");
    let started = if arguments.list { Ok(None) } else { runtime.block_on(start()).map(Some) };
    let (lab, sides) = match started {
        Ok(started) => started.unzip(),
        Err(error) => {
            eprintln!("the servers and the java processes must run, for no test is skipped: {error}");
            return ExitCode::FAILURE;
        }
    };
    let sides = sides.unwrap_or_default();
    let all = REDISSON.iter().enumerate().flat_map(|(n, version)| trials(runtime.handle(), version, sides.get(n)));
    let conclusion = libtest_mimic::run(&arguments, all.collect());
    runtime.block_on(async {
        for sides in sides.into_iter().filter_map(Arc::into_inner) {
            sides.java.stop().await;
        }
        if let Some(lab) = lab {
            lab.stop().await;
        }
    });
    conclusion.exit_code()
}
