//! Processes that take their locks with Redisson, Curator and kazoo, and ours: what each does is seen, waited for and
//! undone by the other as among their own. On a real Redis, for the oldest and the newest Redisson that people run, and
//! on a real ZooKeeper.
//!
//! `make interop` builds those processes and runs this. In reading order: `peer.rs` is such a process, `support.rs`
//! what every test of Redis needs, `exclusion.rs` and `sections.rs` what all its locks show; then one file for each
//! primitive. For ZooKeeper: `zk_sides.rs`, `zk_mutex.rs`, `zk_sections.rs`, and again one file for each primitive.

mod exclusion;
mod fair;
mod latch;
mod lock;
mod peer;
mod read_write;
mod sections;
mod semaphore;
mod support;
mod turns;
mod zk_barriers;
mod zk_mutex;
mod zk_numbers;
mod zk_read_write;
mod zk_sections;
mod zk_semaphore;
mod zk_sides;

use fair::Fair;
use libtest_mimic::{Arguments, Trial};
use lock::Plain;
use oversell::lab::{Lab, Options, Part};
use peer::{Peer, Told};
use read_write::Write;
use std::{process::ExitCode, sync::Arc, time::Duration};
use support::{Sides, Verdict};
use tokio::runtime::{Handle, Runtime};
use zk_sides::{Curator, Kazoo, ZkSides};

/// The course's, and the newest; both are built by `make interop`.
const REDISSON: [&str; 2] = ["3.13.6", "4.7.0"];

/// A test that has not ended by then hangs.
const HANGS: Duration = Duration::from_secs(300);

/// A trial that runs `test`; where tests are only listed, there is nothing to run it with.
fn trial<S: Told, T: Future<Output = Verdict>>(
    runtime: &Handle,
    group: &str,
    sides: Option<&Arc<S>>,
    name: &str,
    test: impl FnOnce(Arc<S>) -> T + Send + 'static,
) -> Trial {
    let (runtime, sides) = (runtime.clone(), sides.cloned());
    Trial::test(format!("{group}::{name}"), move || {
        let Some(sides) = sides else {
            return Err("nobody to play against".into());
        };
        sides.peers().for_each(Peer::begin);
        match runtime.block_on(async { tokio::time::timeout(HANGS, test(sides)).await }) {
            Ok(verdict) => Ok(verdict?),
            Err(_) => Err(format!("not ended after {HANGS:?}").into()),
        }
    })
}

macro_rules! trials {
    ($runtime:expr, $group:expr, $sides:expr, $($module:ident :: $test:ident $(::<$kind:ident>)?),+ $(,)?) => {
        vec![$(trial(
            $runtime,
            $group,
            $sides,
            concat!(stringify!($module), $("::", stringify!($kind),)? "::", stringify!($test)),
            $module::$test $(::<$kind>)?,
        )),+]
    };
}

fn of_redis(runtime: &Handle, version: &str, sides: Option<&Arc<Sides>>) -> Vec<Trial> {
    trials![
        runtime,
        &format!("redisson-{version}"),
        sides,
        exclusion::ours_waits_for_java::<Plain>,
        exclusion::java_waits_for_ours::<Plain>,
        exclusion::a_release_without_a_message_leaves_java_asleep::<Plain>,
        exclusion::ours_is_woken_by_javas_message::<Plain>,
        exclusion::a_foreign_release_is_refused::<Plain>,
        exclusion::what_a_java_thread_forgot_comes_free_with_its_lease::<Plain>,
        sections::ten_thousand_mixed_sections_do_not_overlap::<Plain>,
        sections::a_side_that_takes_another_lock_is_caught::<Plain>,
        turns::a_java_waiter_is_served_among_two_busy_processes_of_ours,
        turns::one_of_ours_is_served_among_two_busy_java_processes,
        turns::one_that_hands_over_without_end_is_caught,
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

fn of_zookeeper(runtime: &Handle, sides: Option<&Arc<ZkSides>>) -> Vec<Trial> {
    trials![
        runtime,
        "zookeeper",
        sides,
        zk_mutex::ours_waits_for_theirs::<Curator>,
        zk_mutex::theirs_waits_for_ours::<Curator>,
        zk_mutex::turns_come_in_the_order_of_arrival::<Curator>,
        zk_mutex::a_wait_that_ends_leaves_nothing::<Curator>,
        zk_mutex::ours_waits_for_theirs::<Kazoo>,
        zk_mutex::theirs_waits_for_ours::<Kazoo>,
        zk_mutex::turns_come_in_the_order_of_arrival::<Kazoo>,
        zk_mutex::a_wait_that_ends_leaves_nothing::<Kazoo>,
        zk_mutex::only_the_last_hold_lets_the_other_in,
        zk_mutex::curator_sees_one_queue_of_both,
        zk_sections::five_thousand_mixed_sections_do_not_overlap,
        zk_sections::a_side_that_takes_another_lock_is_caught,
        zk_sections::kazoo_with_its_own_names_is_caught,
        zk_read_write::readers_of_both_are_together,
        zk_read_write::their_writer_keeps_ours_out,
        zk_read_write::our_writer_keeps_theirs_out,
        zk_read_write::a_reader_stands_behind_a_writer_who_waits,
        zk_read_write::who_steps_down_lets_readers_of_the_other_in,
        zk_read_write::mixed_writers_do_not_overlap,
        zk_read_write::a_side_that_writes_as_a_reader_is_caught,
        zk_semaphore::leases_are_seen_by_both,
        zk_semaphore::each_waits_for_the_leases_of_the_other,
        zk_semaphore::a_wait_that_ends_leaves_nothing,
        zk_semaphore::no_more_are_inside_than_there_are_leases,
        zk_semaphore::a_side_without_leases_is_caught,
        zk_barriers::a_barrier_of_either_holds_up_both,
        zk_barriers::both_enter_and_leave_a_double_barrier_together,
        zk_barriers::a_member_that_gives_up_is_not_counted_by_curator,
        zk_numbers::a_count_set_by_one_is_heard_by_the_other,
        zk_numbers::a_stale_count_is_refused_both_ways,
        zk_numbers::an_atomic_long_tells_both_the_same,
        zk_numbers::no_increment_of_either_is_lost,
        zk_numbers::a_side_that_asks_for_no_version_is_caught,
    ]
}

/// The servers of one run, and the processes that play against ours: a Java process for each Redisson, and those of
/// ZooKeeper.
struct Stage {
    lab: Lab,
    redis: Vec<Arc<Sides>>,
    zookeeper: Arc<ZkSides>,
}

impl Stage {
    async fn start() -> Result<Self, String> {
        let without = vec![Part::MySql, Part::Instances, Part::Nginx];
        let options = Options {
            without,
            redis_ports: vec![0],
            ..Options::default()
        };
        let lab = Lab::start(options).await.map_err(|e| e.to_string())?;
        let redis = lab.addresses().redis[0].url.clone();
        let starting = REDISSON.map(|version| Sides::start(version, redis.clone()));
        let zookeeper = ZkSides::start(lab.addresses().zookeeper.connect.clone());
        match futures::future::try_join(futures::future::try_join_all(starting), zookeeper).await {
            Ok((redis, zookeeper)) => Ok(Self {
                lab,
                redis: redis.into_iter().map(Arc::new).collect(),
                zookeeper: Arc::new(zookeeper),
            }),
            Err(error) => {
                lab.stop().await;
                Err(error)
            }
        }
    }

    async fn stop(self) {
        for sides in self.redis.into_iter().filter_map(Arc::into_inner) {
            sides.java.stop().await;
        }
        if let Some(sides) = Arc::into_inner(self.zookeeper) {
            sides.curator.stop().await;
            sides.kazoo.stop().await;
        }
        self.lab.stop().await;
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // One after the other: some compare how long things take.
    arguments.test_threads = Some(1);
    let runtime = Runtime::new().expect("a runtime");
    let started = if arguments.list {
        Ok(None)
    } else {
        runtime.block_on(Stage::start()).map(Some)
    };
    let stage = match started {
        Ok(stage) => stage,
        Err(error) => {
            eprintln!(
                "the servers and the other processes must run, for no test is skipped: {error}"
            );
            return ExitCode::FAILURE;
        }
    };
    let redis = |n| stage.as_ref().and_then(|stage: &Stage| stage.redis.get(n));
    let all = REDISSON
        .iter()
        .enumerate()
        .flat_map(|(n, version)| of_redis(runtime.handle(), version, redis(n)));
    let all = all.chain(of_zookeeper(
        runtime.handle(),
        stage.as_ref().map(|stage| &stage.zookeeper),
    ));
    let conclusion = libtest_mimic::run(&arguments, all.collect());
    if let Some(stage) = stage {
        runtime.block_on(stage.stop());
    }
    conclusion.exit_code()
}
