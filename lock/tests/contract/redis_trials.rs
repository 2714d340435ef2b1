//! Every trial on Redis, file by file.

use super::{
    clauses, contract, fair, fair_holds, fair_twins, fences, flaws, handles, latch, late, leased,
    model_locks, model_programs, multi, permits, rate, read_write, redis, redis_access,
    redis_faults, redis_holders, redlock, redlock::OnNodes, redlock_faults, reentry, rw_holds,
    rw_line, trial, twins,
};
use libtest_mimic::Trial;
use std::sync::Arc;
use tokio::runtime::Handle;

/// The trials on the Redis at `at`, and on the independent ones at `nodes`.
pub(crate) fn all(handle: &Handle, at: String, nodes: Vec<String>) -> Vec<Trial> {
    let redis = Arc::new(redis::Redis::at(at.clone()));
    let mut all = contract(handle, &redis);
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
    let fenced = Arc::new(handles::Handles::<handles::Fenced>::at(at.clone()));
    let owned = Arc::new(handles::Handles::<handles::Owned>::at(at.clone()));
    all.extend(contract(handle, &fenced));
    all.extend(contract(handle, &owned));
    all.extend(leased(handle, &fenced));
    all.extend(trials![handle, &fenced, clauses::fencing_tokens_grow]);
    let plain = Arc::new(handles::Handles::<handles::Plain>::at(at.clone()));
    all.extend(trials![
        handle,
        &plain,
        model_programs::random_programs_keep_to_the_model,
        model_programs::owners_that_are_mixed_up_break_the_model,
        model_programs::a_late_release_by_owner_breaks_the_model,
        model_programs::silence_that_is_taken_for_a_yes_breaks_the_model,
        model_programs::a_hold_that_is_kept_breaks_the_model,
        model_programs::a_loss_that_is_not_told_breaks_the_model,
    ]);
    let fair = Arc::new(handles::Handles::<model_locks::Fair>::at(at.clone()));
    all.extend(trials![
        handle,
        &fair,
        model_programs::random_programs_keep_to_the_model
    ]);
    let write = Arc::new(handles::Handles::<model_locks::Write>::at(at.clone()));
    all.extend(trials![
        handle,
        &write,
        model_programs::random_programs_keep_to_the_model
    ]);
    all.extend(leased(handle, &owned));
    let owned_fair = Arc::new(handles::Handles::<handles::OwnedFair>::at(at.clone()));
    let owned_write = Arc::new(handles::Handles::<handles::OwnedWrite>::at(at.clone()));
    let read = Arc::new(handles::Handles::<handles::Read>::at(at.clone()));
    all.extend(contract(handle, &owned_fair));
    all.extend(leased(handle, &owned_fair));
    all.extend(contract(handle, &owned_write));
    all.extend(leased(handle, &owned_write));
    all.extend(contract(handle, &read));
    all.extend(leased(handle, &read));
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
        rate::no_window_admits_more_than_the_rate,
        rate::a_fixed_window_is_caught,
        rate::who_cannot_be_admitted_in_time_hears_it_at_once,
        latch::a_latch_opens_for_all_who_wait_everywhere,
        latch::a_wait_for_a_latch_ends,
        latch::a_latch_that_is_set_anew_at_once_lets_its_waiters_go,
        latch::a_waiter_that_only_looks_at_the_count_is_caught,
        late::the_late_release_of_a_lost_hold_leaves_its_owners_newer_one,
        late::an_undo_that_is_late_leaves_its_owners_newer_hold,
        late::whoever_comes_again_as_the_last_guard_ends_has_the_lock,
        late::a_lost_guard_that_ends_last_leaves_nothing,
        redis_faults::the_first_command_to_a_server_that_is_back_is_sent,
        redis_faults::an_answer_after_the_lease_brings_no_lock,
        redis_faults::a_port_that_nobody_listens_on_stays_ours,
        redis_faults::waiters_look_again_though_no_wake_up_can_come,
        redis_faults::a_connection_that_is_dead_and_not_closed_is_replaced,
        redis_faults::an_error_that_redis_answers_is_told_as_one_and_not_repeated,
        redis_faults::every_wait_may_be_for_ever,
        redis_faults::a_lease_without_end_or_length_is_refused,
        redis_faults::a_subscription_that_nobody_waits_for_any_more_ends,
        redis_faults::a_dead_process_with_many_waiters_frees_the_queue_at_once,
        redis_faults::nobody_who_waits_for_a_latch_misses_its_opening,
        redis_faults::a_wait_is_not_longer_than_it_says,
        redis_access::a_user_with_a_password_is_let_in_and_nobody_else,
        redis_access::options_that_break_a_rule_are_refused_and_no_password_is_shown,
        redis_access::a_server_is_reached_by_tls_and_only_one_that_is_vouched_for,
        redis_holders::every_lock_shows_its_holder_and_what_is_left_of_its_lease,
        redis_holders::readers_are_shown_each_with_its_own_lease,
        redis_holders::what_is_no_lock_has_no_holder_and_says_so,
    ]);
    let fair = Arc::new(fair::Fair::at(at.clone()));
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
        fair_holds::a_lock_that_is_free_without_a_message_is_found,
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
    let read_write = Arc::new(read_write::ReadWrite(redis::Redis::at(at.clone())));
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
        rw_holds::guards_of_one_hold_end_in_any_order,
        rw_holds::a_write_entered_again_is_never_shorter,
        rw_holds::a_watchdog_renews_its_own_hold_and_no_fixed_one,
        rw_holds::a_write_that_expired_frees_nothing_of_another,
        rw_holds::a_release_that_deletes_what_is_there_is_caught,
        rw_holds::a_dropped_read_leaves_nothing_of_its_own,
        rw_holds::an_unanswered_entry_takes_nothing_from_the_first,
    ]);
    let multi = Arc::new(multi::Multi::at(at.clone()));
    all.extend(contract(handle, &multi));
    all.extend(trials![
        handle,
        &multi,
        clauses::a_holder_is_told_that_its_lock_is_lost,
        clauses::a_lost_hold_lets_its_own_process_try,
        multi::who_misses_one_part_keeps_none,
        multi::the_loss_of_one_part_is_told_and_named,
    ]);
    all.extend(trials![
        handle,
        &redis,
        multi::two_of_opposite_orders_both_go_on
    ]);
    let greedy = Arc::new(multi::Greedy::at(at.clone()));
    all.extend(trials![handle, &greedy, multi::is_caught]);
    let careless = Arc::new(twins::Careless::at(at.clone()));
    all.extend(trials![
        handle,
        &careless,
        twins::is_caught_at_a_foreign_release
    ]);
    for (flaw, name) in flaws::ALL {
        let flawed = Arc::new(flaws::Flawed::at(at.clone(), flaw));
        all.push(trial(handle, &flawed, name, flaws::is_caught));
    }
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
        clauses::a_lost_hold_lets_its_own_process_try,
        redlock::two_of_five_are_not_enough,
        redlock::three_of_five_are_enough,
        redlock::a_watchdog_keeps_it_on_three_nodes,
        redlock::a_fixed_lease_ends_and_its_holder_hears_of_it_first,
        redlock::one_owner_may_hold_it_twice,
        late::the_late_release_of_a_lost_redlock_leaves_its_owners_newer_one,
        model_programs::random_programs_keep_to_the_model,
        model_programs::owners_that_are_mixed_up_break_the_model,
        model_programs::a_late_release_by_owner_breaks_the_model,
        redlock::no_nodes_are_refused,
        redis_holders::a_redlock_is_held_by_whom_most_nodes_show,
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
    all.extend(trials![
        handle,
        &one_too_few,
        redlock::one_too_few_is_caught
    ]);
    let silence = Arc::new(redlock::SilenceIsYes::on(nodes));
    all.extend(trials![
        handle,
        &silence,
        redlock_faults::silence_that_counts_as_yes_is_caught
    ]);
    all
}
