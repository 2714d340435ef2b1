//! The experiments that fit no kind of [`Run`](oversell::claims::Run): they try the lessons whose `run` is `"custom"`, by a count, a
//! rate or a fault. One table, [`ALL`], has them all: what is tried, under which fault, and what the twin has in its place.
//!
//! Strategies under faults without a lesson are rows of the [fault matrix](super::fault_matrix).

mod fail_over;
mod galera;
mod members;
mod redisson;
mod reliability;
mod several_nodes;
mod throughput;
mod zk_recipes;

use crate::trials::{Cluster, NoVerdict, Observation};
use fail_over::{MinReplicas, Replication};
use futures::future::LocalBoxFuture;
use galera::Reads;
use members::Killed;
use reliability::{FAULTS, LockFault};
use several_nodes::Delay;
use throughput::{OVERLOAD_STREAM, STEADY_STREAMS};

/// Tries a claim on a cluster.
type ExperimentFn = for<'a> fn(&'a Cluster) -> LocalBoxFuture<'a, Result<Observation, NoVerdict>>;

/// One lesson's own experiment: the function that tries its claim, and the one that tries its twin.
pub(super) struct Experiment {
    /// The lesson's section.
    pub(super) lesson: &'static str,
    pub(super) claim: ExperimentFn,
    /// The same on a system in which the claim is false.
    pub(super) twin: ExperimentFn,
}

/// `"3.7.5.numbers" => zk_recipes::clients_disagree_on_leases(5), twin(2);`: the lesson, the function that tries it, its arguments after the
/// cluster, and its twin's.
macro_rules! experiments {
    ($($lesson:literal => $file:ident::$function:ident($($claim:expr),*), twin($($twin:expr),*);)*) => {
        /// All experiments.
        pub(super) const ALL: &[Experiment] = &[$(
            Experiment {
                lesson: $lesson,
                claim: |on| Box::pin($file::$function(on, $($claim),*)),
                twin: |on| Box::pin($file::$function(on, $($twin),*)),
            }
        ),*];
    };
}

experiments! {
    // Locks in Redis, when the primary crashes, is cut off, or hands over.
    "2.8" => fail_over::crash_of_primary_loses_locks(Replication::CutBefore), twin(Replication::Up);
    "2.9" => fail_over::crash_of_one_node_loses_no_redlock(5), twin(1);
    "003.master" => fail_over::crash_loses_locks_and_no_redlock(Replication::CutBefore, 5), twin(Replication::Up, 1);
    "beyond.fail-over" => fail_over::planned_failover_loses_locks([0, 1, 2]), twin([2; 3]);
    "beyond.cut-off" => fail_over::cut_off_primary_loses_locks(MinReplicas::None), twin(MinReplicas::One);

    // Locks of several stores, when the holder pauses or dies, or the server does.
    "5.reliability" => reliability::rank_stores_by_failures(FAULTS.map(|(fault, ..)| fault)), twin([LockFault::None; 4]);
    "003.correctness" => reliability::only_redlock_oversells_after_pause(LockFault::HolderPaused), twin(LockFault::None);

    // Sales, when members of a ZooKeeper ensemble or of a Galera cluster die; and rows that several Galera nodes write.
    "beyond.ensemble" => members::measure_ensemble_outages(Killed::OneByOne), twin(Killed::TwoAtOnce);
    "beyond.dead-writer" => members::measure_writer_outages(Killed::OneByOne), twin(Killed::TwoAtOnce);
    "beyond.stale-read" => galera::stale_read_oversells(Reads::Plain), twin(Reads::Causal);
    "beyond.writers" => galera::compare_one_and_three_writers(3), twin(1);

    // Rates on several nodes of Redis, two of them beside a node that dies.
    "2.9.random" => several_nodes::compare_equal_and_random_delays(Delay::Random), twin(Delay::Equal);
    "003.aof" => several_nodes::compare_flush_policies("always"), twin("everysec");
    "001.two-masters" => several_nodes::compare_one_and_two_masters(2), twin(1);

    // Counts of one client or service.
    "002.watchdog" => redisson::waiter_sleeps_until_lease_ends("redis-lock", "lock"), twin("redis-watchdog", "lock:redis-watchdog");
    "003.qps" => throughput::throughput_is_concurrency_by_response_time(&STEADY_STREAMS), twin(&OVERLOAD_STREAM);
    "3.7.5.numbers" => zk_recipes::clients_disagree_on_leases(5), twin(2);
}
