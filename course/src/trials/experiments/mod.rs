//! The experiments that fit no kind of [`Run`](oversell::claims::Run): they try the lessons whose `run` is `"custom"`.
//!
//! A file says at its head which lessons it tries, see `experiments!`; `files!` names the files.

use crate::trials::{Cluster, NoVerdict, Observation};
use futures::future::LocalBoxFuture;

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

/// `"3.7.5.numbers" => clients_disagree_on_leases(5), twin(2);`: the lesson, the function that tries it, its arguments after the cluster, and its
/// twin's.
macro_rules! experiments {
    ($($lesson:literal => $function:ident($($claim:expr),*), twin($($twin:expr),*);)*) => {
        /// The experiments of this file; `FILES` collects them.
        pub(super) const EXPERIMENTS: &[$crate::trials::experiments::Experiment] = &[$(
            $crate::trials::experiments::Experiment {
                lesson: $lesson,
                claim: |on| Box::pin($function(on, $($claim),*)),
                twin: |on| Box::pin($function(on, $($twin),*)),
            }
        ),*];
    };
}

/// A file, and its experiments.
macro_rules! files {
    ($($file:ident)*) => {
        $(mod $file;)*
        const FILES: &[&[Experiment]] = &[$($file::EXPERIMENTS),*];
    };
}

files! {
    fail_over
    galera
    members
    redisson
    reliability
    several_nodes
    throughput
    zk_recipes
}

/// The experiments of all files.
pub(super) fn all() -> impl Iterator<Item = &'static Experiment> {
    FILES.iter().copied().flatten()
}
