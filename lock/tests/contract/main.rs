//! The contract that every lock of this crate keeps, on real servers: one suite of clauses, run over each family of
//! locks, and the broken twins that show that the clauses can fail.
//!
//! In reading order: `clauses.rs` is the contract, `family.rs` what it needs to know of a lock, then one file for each
//! family; `twins.rs` has the locks that are wrong on purpose. `servers.rs` is where the servers come from, `proxy.rs`
//! cuts the way to them.

mod clauses;
mod fair;
mod fair_holds;
mod fair_twins;
mod family;
mod fences;
mod handles;
mod latch;
mod leases;
mod multi;
mod mute;
mod permits;
mod proxy;
mod rate;
mod read_write;
mod redis;
mod redlock;
mod redlock_faults;
mod reentry;
mod rw_holds;
mod rw_line;
mod servers;
mod table;
mod twins;
mod zk_barrier;
mod zk_counts;
mod zk_double_barrier;
mod zk_families;
mod zk_leases;
mod zk_lost;
mod zk_recipes;
mod zookeeper;

use family::Family;
use libtest_mimic::{Arguments, Trial};
use redlock::OnNodes;
use servers::Servers;
use std::{process::ExitCode, sync::Arc, time::Duration};
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

macro_rules! trials {
    ($runtime:expr, $family:expr, $($module:ident :: $test:ident),+ $(,)?) => {
        vec![$(trial($runtime, $family, stringify!($test), $module::$test)),+]
    };
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
    ]
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let runtime = Runtime::new().expect("a runtime");
    let started = if arguments.list { Ok(None) } else { runtime.block_on(Servers::start()).map(Some) };
    let servers = match started {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("the servers must run, for no test is skipped: {error}");
            return ExitCode::FAILURE;
        }
    };
    let at = |server: fn(&Servers) -> String| servers.as_ref().map(server).unwrap_or_default();
    let zookeeper = Arc::new(zookeeper::ZooKeeper::at(at(Servers::zookeeper)));
    let redis = Arc::new(redis::Redis::at(at(Servers::redis)));
    let table = Arc::new(table::Table::at(at(Servers::mysql)));

    let handle = runtime.handle();
    let mut all = contract(handle, &zookeeper);
    all.extend(trials![
        handle,
        &zookeeper,
        clauses::a_holder_is_told_that_its_lock_is_lost,
        clauses::fencing_tokens_grow,
        zookeeper::a_short_cut_is_survived,
        zookeeper::a_holder_learns_of_a_long_cut_before_its_node_goes,
        zookeeper::close_leaves_no_node_even_under_a_holder,
        zookeeper::waiting_requests_of_one_process_are_not_nodes,
        zookeeper::a_deleted_directory_is_made_again,
    ]);
    all.extend(trials![
        handle,
        &zookeeper,
        zk_recipes::the_node_goes_with_the_last_hold_of_its_owner,
        zk_recipes::a_release_that_frees_with_the_first_hold_is_caught,
        zk_recipes::tasks_of_one_owner_do_not_queue_behind_each_other,
        zk_recipes::an_owner_that_lost_the_lock_does_not_come_in_again,
        zk_recipes::a_holder_hears_that_it_is_asked_to_leave,
        zk_recipes::revocation_is_written_as_curator_does,
        zk_recipes::readers_are_together_and_a_writer_is_alone,
        zk_recipes::a_reader_stands_behind_a_writer_that_waits,
        zk_recipes::a_crowd_of_readers_and_writers_keeps_apart,
        zk_recipes::a_reader_that_ignores_writers_is_caught,
        zk_recipes::a_writer_may_read_and_a_reader_may_not_write,
        zk_recipes::nodes_of_other_implementations_are_respected,
        zk_lost::a_creation_that_is_not_answered_leaves_no_orphan,
        zk_lost::a_creation_that_is_blindly_repeated_is_caught,
        zk_lost::a_reader_learns_of_a_long_cut_before_its_node_goes,
        zk_lost::a_reader_that_goes_away_leaves_no_node,
        zk_leases::there_are_no_more_leases_than_the_semaphore_has,
        zk_leases::a_semaphore_that_gives_one_too_many_is_caught,
        zk_leases::a_crowd_is_let_in_by_threes,
        zk_leases::leases_that_cannot_be_had_are_refused_at_once,
        zk_leases::the_nodes_of_a_semaphore_are_curators,
        zk_leases::leases_and_mutex_of_other_implementations_are_respected,
        zk_leases::the_leases_of_a_dead_holder_come_back,
        zk_leases::an_acquire_that_is_not_answered_leaves_no_orphan,
    ]);
    let write = Arc::new(zk_families::Write(zookeeper::ZooKeeper::at(at(Servers::zookeeper))));
    let semaphore = Arc::new(zk_families::Semaphore(zookeeper::ZooKeeper::at(at(Servers::zookeeper))));
    all.extend(contract(handle, &write));
    all.extend(trials![handle, &write, clauses::a_holder_is_told_that_its_lock_is_lost, clauses::fencing_tokens_grow]);
    all.extend(contract(handle, &semaphore));
    all.extend(trials![
        handle,
        &semaphore,
        clauses::a_holder_is_told_that_its_lock_is_lost,
        clauses::fencing_tokens_grow,
    ]);
    all.extend(trials![
        handle,
        &zookeeper,
        zk_barrier::a_closed_barrier_is_a_persistent_node,
        zk_barrier::fifty_wait_and_go_together,
        zk_barrier::a_wait_at_a_barrier_ends_and_leaves_nothing,
        zk_barrier::a_barrier_that_is_closed_again_at_once_lets_its_waiters_go,
        zk_barrier::a_barrier_that_was_opened_during_a_cut_lets_its_waiters_go,
        zk_barrier::a_waiter_that_only_looks_for_a_node_is_caught,
        zk_double_barrier::none_of_five_enters_early_and_none_leaves_early,
        zk_double_barrier::a_member_that_does_not_count_again_is_caught,
        zk_double_barrier::a_member_that_leaves_at_once_is_caught,
        zk_double_barrier::an_enter_that_times_out_leaves_no_member,
        zk_double_barrier::a_member_that_stays_after_its_wait_is_caught,
        zk_double_barrier::a_dropped_enter_leaves_no_member,
        zk_double_barrier::a_dropped_leave_leaves,
        zk_double_barrier::a_member_that_dies_inside_does_not_keep_the_others,
        zk_double_barrier::more_members_than_were_asked_for_are_let_in,
        zk_double_barrier::an_old_ready_lets_nobody_in,
        zk_double_barrier::who_gives_up_was_not_counted,
        zk_double_barrier::a_member_that_counts_and_then_opens_is_caught,
        zk_double_barrier::an_unanswered_enter_leaves_no_member,
        zk_counts::a_shared_count_is_four_bytes,
        zk_counts::an_old_version_is_refused,
        zk_counts::a_count_with_versions_is_exact,
        zk_counts::a_count_without_versions_is_caught,
        zk_counts::a_listener_hears_of_others_through_cuts_and_sessions,
        zk_counts::a_set_without_an_answer_is_unknown_and_not_repeated,
        zk_counts::an_atomic_long_is_eight_bytes,
        zk_counts::an_atomic_long_is_exact_under_contention,
        zk_counts::an_atomic_long_without_versions_is_caught,
        zk_counts::a_mutex_does_not_replace_the_version,
        zk_counts::who_has_lost_waits_for_the_mutex,
        zk_counts::an_increment_without_an_answer_is_unknown_and_counted_once,
        zk_counts::an_increment_that_is_repeated_is_caught,
    ]);
    all.extend(contract(handle, &redis));
    all.extend(leased(handle, &redis));
    all.extend(trials![
        handle,
        &redis,
        reentry::an_owner_takes_its_lock_again_past_who_waits,
        reentry::a_release_that_does_not_count_is_caught,
        reentry::ownership_goes_by_owner_and_not_by_handle,
        reentry::a_re_entry_does_not_hide_a_loss,
        reentry::tasks_of_one_owner_come_in_together,
        reentry::an_unanswered_re_entry_leaves_the_outer_hold_and_no_other,
        reentry::a_short_lease_inside_does_not_end_the_long_one,
        reentry::a_fixed_lease_ends_and_its_late_release_frees_nothing,
        reentry::a_renewed_lease_outlives_its_length,
        reentry::a_thousand_waiters_for_a_lock_are_one_contender,
        fences::tokens_rise_however_the_lock_is_had,
        fences::a_token_that_is_drawn_before_the_lock_is_had_is_caught,
        fences::a_lost_counter_is_lifted_above_what_was_seen,
    ]);
    let spin = Arc::new(handles::Handles::<handles::Spin>::at(at(Servers::redis)));
    let fenced = Arc::new(handles::Handles::<handles::Fenced>::at(at(Servers::redis)));
    let owned = Arc::new(handles::Handles::<handles::Owned>::at(at(Servers::redis)));
    all.extend(contract(handle, &spin));
    all.extend(contract(handle, &fenced));
    all.extend(contract(handle, &owned));
    all.extend(leased(handle, &spin));
    all.extend(leased(handle, &fenced));
    all.extend(trials![handle, &fenced, clauses::fencing_tokens_grow]);
    all.extend(leased(handle, &owned));
    all.extend(trials![
        handle,
        &redis,
        permits::no_more_are_inside_than_there_are_permits,
        permits::a_semaphore_that_looks_before_it_takes_is_caught,
        permits::permits_are_set_once,
        permits::permits_of_a_deleted_semaphore_are_not_given_to_the_next,
        permits::tries_at_once_of_one_process_all_have_their_permit,
        permits::a_waiter_goes_on_after_a_reset,
        permits::a_wait_for_a_permit_ends_and_leaves_nothing,
        permits::a_dropped_acquire_gives_its_permits_back,
        permits::a_thousand_waiters_are_one_contender,
        permits::an_unanswered_acquire_gives_its_permits_back,
        permits::an_unanswered_acquire_that_is_forgotten_is_caught,
        leases::expirable_permits_are_never_more_than_were_set,
        leases::the_permit_of_a_dead_holder_comes_back,
        leases::an_expired_permit_is_not_given_back_twice,
        leases::a_release_that_ignores_expiry_is_caught,
        leases::a_watchdog_keeps_a_permit,
        leases::ids_are_written_as_each_redisson_does,
        leases::an_unanswered_acquire_of_a_lease_comes_back,
        rate::no_window_admits_more_than_the_rate,
        rate::a_fixed_window_is_caught,
        rate::each_client_has_a_rate_of_its_own,
        rate::who_cannot_be_admitted_in_time_hears_it_at_once,
        latch::a_latch_opens_for_all_who_wait_everywhere,
        latch::a_wait_for_a_latch_ends,
        latch::a_latch_that_is_set_anew_at_once_lets_its_waiters_go,
        latch::a_waiter_that_only_looks_at_the_count_is_caught,
    ]);
    let fair = Arc::new(fair::Fair::at(at(Servers::redis)));
    all.extend(contract(handle, &fair));
    all.extend(trials![
        handle,
        &fair,
        clauses::a_holder_is_told_that_its_lock_is_lost,
        clauses::a_lost_hold_lets_its_own_process_try,
        fair::who_comes_first_has_it_first_over_two_processes,
        fair::a_java_waiter_before_us_is_respected_and_told,
        fair::a_dead_waiter_falls_out_when_its_score_has_passed,
        fair::a_dead_first_waiter_does_not_make_the_others_wait_longer,
        fair::waiters_that_leave_do_not_make_the_others_wait_longer,
        fair::who_has_its_turn_takes_its_wait_off_the_others,
        fair::a_living_waiter_keeps_its_score_ahead_of_now,
        fair::who_goes_from_the_middle_leaves_the_order_as_it_was,
        fair::when_the_head_goes_the_next_is_told,
        fair::queue_and_scores_agree_in_a_storm_of_cancels,
        fair::a_lock_that_is_free_without_a_message_is_found,
        fair_holds::an_owner_takes_it_again_and_releases_it_as_often,
        fair_holds::a_lost_hold_does_not_release_the_next_of_its_owner,
        fair_holds::a_fixed_lease_ends_and_its_holder_is_told_first,
        fair_holds::a_watchdog_keeps_it_beyond_its_lease,
        fair_holds::a_short_lease_within_a_long_one_does_not_cut_it,
        fair_holds::an_unanswered_acquire_leaves_neither_hold_nor_place,
        fair_holds::an_unanswered_second_hold_leaves_the_first,
        fair_holds::an_unanswered_release_frees_it_and_wakes_the_next,
        fair_twins::the_lock_of_the_twins_passes_without_a_fault,
        fair_twins::one_that_pushes_in_is_caught,
        fair_twins::one_that_leaves_its_score_is_caught,
        fair_twins::one_that_leaves_the_scores_of_the_others_is_caught,
    ]);
    let read_write = Arc::new(read_write::ReadWrite(redis::Redis::at(at(Servers::redis))));
    all.extend(contract(handle, &read_write));
    all.extend(trials![
        handle,
        &read_write,
        clauses::a_holder_is_told_that_its_lock_is_lost,
        clauses::a_lost_hold_lets_its_own_process_try,
        read_write::readers_are_together_and_a_writer_is_alone,
        read_write::a_reader_that_frees_the_lock_under_another_is_caught,
        read_write::a_writer_that_ignores_readers_is_caught,
        read_write::under_load_no_writer_meets_anybody,
        rw_line::readers_of_one_process_enter_together,
        rw_line::a_writer_is_not_starved_by_readers_of_its_process,
        rw_line::a_writer_that_does_not_stand_in_line_is_caught,
        rw_line::the_line_is_in_order_of_arrival,
        rw_line::a_thousand_waiting_writers_are_one_contender,
        rw_line::who_is_inside_enters_again_past_the_line,
        rw_line::a_message_that_is_never_said_costs_no_more_than_a_second_look,
        rw_holds::holds_are_written_as_a_java_process_expects,
        rw_holds::a_java_reader_lets_readers_in_and_keeps_writers_out,
        rw_holds::a_java_writer_keeps_everybody_out_and_its_message_wakes,
        rw_holds::a_writer_that_steps_down_lets_readers_in,
        rw_holds::each_read_hold_expires_by_itself,
        rw_holds::a_hold_given_back_out_of_order_leaves_the_others,
        rw_holds::a_write_entered_again_lasts_as_long_as_what_is_left,
        rw_holds::a_watchdog_renews_its_own_hold_and_no_fixed_one,
        rw_holds::a_write_that_expired_frees_nothing_of_another,
        rw_holds::a_release_that_deletes_what_is_there_is_caught,
        rw_holds::a_dropped_read_leaves_nothing_of_its_own,
        rw_holds::an_unanswered_entry_takes_nothing_from_the_first,
        rw_holds::a_clean_up_by_owner_alone_is_caught,
    ]);
    all.extend(contract(handle, &table));
    all.extend(trials![
        handle,
        &table,
        table::a_name_that_is_too_long_is_refused_and_not_cut_off,
        table::an_insert_that_is_not_answered_leaves_no_row,
    ]);
    let jumper = Arc::new(twins::QueueJumper::at(at(Servers::zookeeper)));
    all.extend(trials![handle, &jumper, twins::is_caught_when_somebody_gives_up]);
    let careless = Arc::new(twins::Careless::at(at(Servers::redis)));
    all.extend(trials![handle, &careless, twins::is_caught_at_a_foreign_release]);

    let multi = Arc::new(multi::Multi::at(at(Servers::redis)));
    all.extend(contract(handle, &multi));
    all.extend(trials![
        handle,
        &multi,
        clauses::a_holder_is_told_that_its_lock_is_lost,
        multi::who_misses_one_part_keeps_none,
        multi::the_loss_of_one_part_is_told_and_named,
    ]);
    all.extend(trials![handle, &redis, multi::two_of_opposite_orders_both_go_on]);
    all.extend(trials![handle, &zookeeper, multi::two_of_opposite_orders_both_go_on]);
    let greedy = Arc::new(multi::Greedy::at(at(Servers::redis)));
    all.extend(trials![handle, &greedy, multi::is_caught]);
    let nodes = servers.as_ref().map(Servers::redis_nodes).unwrap_or_default();
    let redlock = Arc::new(redlock::Five::on(nodes.clone()));
    // The clauses of one server that is down have their own form here: three nodes of five.
    all.extend(trials![
        handle,
        &redlock,
        clauses::two_processes_exclude_each_other,
        clauses::a_wait_ends_in_taken_and_leaves_nothing,
        clauses::a_foreign_release_is_refused,
        clauses::a_dropped_acquire_leaves_nothing,
        clauses::a_dropped_guard_releases,
        clauses::a_panicking_holder_releases,
        clauses::who_gives_up_does_not_let_the_next_one_in,
        clauses::a_holder_is_told_that_its_lock_is_lost,
        redlock::two_of_five_are_not_enough,
        redlock::three_of_five_are_enough,
        redlock::a_watchdog_keeps_it_on_three_nodes,
        redlock::a_fixed_lease_ends_and_its_holder_hears_of_it_first,
        redlock::one_owner_may_hold_it_twice,
        redlock::no_nodes_are_refused,
        redlock_faults::two_of_five_dead_and_it_goes_on,
        redlock_faults::three_of_five_dead_and_it_refuses_and_says_so,
        redlock_faults::three_nodes_that_hang_are_no_quorum,
        redlock_faults::a_node_that_hangs_holds_up_nobody_and_its_late_answer_is_undone,
        redlock_faults::a_node_that_forgets_lets_a_second_owner_in,
        redlock_faults::a_node_that_comes_back_after_the_longest_lease_does_not,
        redlock_faults::a_clock_that_jumps_lets_a_second_owner_in,
        redlock_faults::without_an_event_there_is_one_owner,
        redlock_faults::a_crowd_of_one_process_asks_no_more_than_one,
        redlock_faults::a_crowd_without_a_line_is_caught,
    ]);
    let one_too_few = Arc::new(redlock::OneTooFew::on(nodes.clone()));
    all.extend(trials![handle, &one_too_few, redlock::one_too_few_is_caught]);
    let silence = Arc::new(redlock::SilenceIsYes::on(nodes));
    all.extend(trials![handle, &silence, redlock_faults::silence_that_counts_as_yes_is_caught]);

    let conclusion = libtest_mimic::run(&arguments, all);
    if let Some(servers) = servers {
        runtime.block_on(servers.stop());
    }
    conclusion.exit_code()
}
