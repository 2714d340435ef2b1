//! The contract that every lock of this crate keeps, on real servers: one suite of clauses, run over each family of
//! locks, and the broken twins that show that the clauses can fail.
//!
//! In reading order: `clauses.rs` is the contract, `family.rs` what it needs to know of a lock, then one file for each
//! family; `twins.rs` and `flaws.rs` have the locks that are wrong on purpose, `model.rs` and its programs what must hold
//! whatever anybody does in whichever order; `redis_trials.rs` and `zk_trials.rs` are the lists.
//! `servers.rs` is where the servers come from, `proxy.rs` and `mute.rs` break the way to them.

// Before the modules, which use it.
macro_rules! trials {
    ($runtime:expr, $family:expr, $($module:ident :: $test:ident),+ $(,)?) => {
        vec![$(trial($runtime, $family, stringify!($test), $module::$test)),+]
    };
}

mod certificates;
mod clauses;
mod examples;
mod fair;
mod fair_holds;
mod fair_twins;
mod family;
mod fences;
mod flaws;
mod handles;
mod latch;
mod late;
mod layer;
mod layers;
mod model;
mod model_locks;
mod model_programs;
mod multi;
mod mute;
mod permits;
mod port;
mod proxy;
mod rate;
mod read_write;
mod redis;
mod redis_access;
mod redis_faults;
mod redis_holders;
mod redis_trials;
mod redlock;
mod redlock_faults;
mod reentry;
mod rw_holds;
mod rw_line;
mod servers;
mod stood_still;
mod table;
mod table_answers;
mod table_lease;
mod table_pool;
mod table_tls;
mod twins;
mod zk_barrier;
mod zk_counts;
mod zk_double_barrier;
mod zk_double_barrier_rounds;
mod zk_ensemble;
mod zk_families;
mod zk_holders;
mod zk_leases;
mod zk_losses;
mod zk_lost;
mod zk_queue;
mod zk_recipes;
mod zk_trials;
mod zk_wire;
mod zookeeper;

use family::Family;
use libtest_mimic::{Arguments, Trial};
use servers::Servers;
use std::{
    num::NonZero, process::ExitCode, sync::Arc, thread::available_parallelism, time::Duration,
};
use tokio::runtime::{Handle, Runtime};

/// What a clause comes to: kept, or how it was broken.
type Verdict = Result<(), String>;

/// A test that has not ended by then hangs.
const HANGS: Duration = Duration::from_secs(120);

/// A trial that runs `test` with a family of its own.
fn trial<F, T>(runtime: &Handle, family: &Arc<F>, name: &str, test: fn(Arc<F>) -> T) -> Trial
where
    F: Family,
    T: Future<Output = Verdict> + Send + 'static,
{
    let (runtime, family) = (runtime.clone(), family.clone());
    Trial::test(format!("{}::{name}", F::NAME), move || {
        let test = runtime.spawn(async move { tokio::time::timeout(HANGS, test(family)).await });
        match runtime.block_on(test) {
            Ok(Ok(verdict)) => Ok(verdict?),
            Ok(Err(_)) => Err(format!("not ended after {HANGS:?}").into()),
            Err(panicked) => Err(panicked.to_string().into()),
        }
    })
}

/// Every clause that all locks keep.
fn contract<F: Family>(runtime: &Handle, family: &Arc<F>) -> Vec<Trial> {
    trials![
        runtime,
        family,
        clauses::two_processes_exclude_each_other,
        clauses::a_wait_ends_in_taken_and_leaves_nothing,
        clauses::a_foreign_release_is_refused,
        clauses::a_dropped_acquire_leaves_nothing,
        clauses::a_dropped_guard_releases,
        clauses::a_panicking_holder_releases,
        clauses::who_gives_up_does_not_let_the_next_one_in,
        clauses::a_server_that_is_down_is_not_a_lock_that_is_taken,
        clauses::a_waiter_is_told_that_the_server_went_down,
    ]
}

/// The clauses for locks with a lease.
fn leased<F: Family>(runtime: &Handle, family: &Arc<F>) -> Vec<Trial> {
    trials![
        runtime,
        family,
        clauses::a_holder_is_told_that_its_lock_is_lost,
        clauses::a_lost_hold_lets_its_own_process_try,
        stood_still::a_process_that_stood_still_knows_at_once,
    ]
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Most of the time a trial waits for a server.
    arguments
        .test_threads
        .get_or_insert(2 * available_parallelism().map_or(1, NonZero::get));
    let runtime = Runtime::new().expect("a runtime");
    let started = if arguments.list {
        Ok(None)
    } else {
        runtime.block_on(Servers::start()).map(Some)
    };
    let servers = match started {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("the servers must run, for no test is skipped: {error}");
            return ExitCode::FAILURE;
        }
    };
    let at = |server: fn(&Servers) -> String| servers.as_ref().map(server).unwrap_or_default();
    let handle = runtime.handle();
    let nodes = servers
        .as_ref()
        .map(Servers::redis_nodes)
        .unwrap_or_default();
    let mut all = zk_trials::all(handle, at(Servers::zookeeper));
    all.extend(redis_trials::all(handle, at(Servers::redis), nodes));
    all.extend(examples::all(handle, servers.as_ref()));
    all.extend(layers::all(handle, servers.as_ref()));
    let table = Arc::new(table::Table::<table::Plain>::at(at(Servers::mysql)));
    all.extend(contract(handle, &table));
    all.extend(trials![
        handle,
        &table,
        table::a_name_that_is_too_long_is_refused_and_not_cut_off,
        table::an_insert_that_is_not_answered_leaves_no_row,
        table_answers::a_row_says_who_holds_it_and_for_how_long,
        table_answers::a_pool_without_a_connection_says_nothing_of_the_lock,
        table_answers::a_table_that_is_not_there_is_a_refusal,
        table_answers::a_service_of_ones_own_makes_the_table,
        table_answers::a_user_with_a_password_is_let_in_and_nobody_else,
        table_tls::a_server_is_reached_by_tls_and_only_one_that_is_vouched_for,
        table_pool::a_dropped_connection_ends_its_waiting_statement,
        table_pool::a_connection_that_is_only_closed_is_caught,
        table_pool::a_dropped_connection_ends_its_transaction,
        table_pool::a_transaction_that_goes_back_open_is_caught,
        table_pool::a_connection_that_is_done_is_used_again,
    ]);
    let leased_table = Arc::new(table::Table::<table_lease::Leased>::at(at(Servers::mysql)));
    all.extend(contract(handle, &leased_table));
    all.extend(leased(handle, &leased_table));
    all.extend(trials![
        handle,
        &leased_table,
        table_lease::the_row_of_a_dead_holder_is_swept_when_its_lease_has_ended,
        table_lease::a_renewed_lease_outlives_its_length,
        table_lease::a_fixed_lease_ends_and_its_late_release_frees_nothing,
        table_lease::an_owner_takes_its_lock_again,
        table_lease::a_release_that_does_not_count_is_caught,
        table_lease::a_re_entry_does_not_hide_a_loss,
        table_lease::an_unanswered_re_entry_leaves_the_outer_hold_and_no_other,
        table_lease::a_deadlock_with_a_stranger_ends_no_hold,
        table_lease::tasks_of_one_owner_come_in_together,
        table_lease::who_waits_holds_no_connection,
    ]);
    let only_told = Arc::new(stood_still::OnlyTold::at(at(Servers::redis)));
    all.extend(trials![handle, &only_told, stood_still::is_caught]);
    let sweeps_all = Arc::new(table::Table::<table_lease::SweepsAll>::at(at(
        Servers::mysql,
    )));
    all.extend(trials![handle, &sweeps_all, table_lease::is_caught]);

    let conclusion = libtest_mimic::run(&arguments, all);
    if let Some(servers) = servers {
        runtime.block_on(servers.stop());
    }
    conclusion.exit_code()
}
