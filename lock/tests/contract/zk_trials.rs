//! Every trial on ZooKeeper, file by file.

use super::{
    clauses, contract, leased, model_programs, multi, trial, twins, zk_barrier, zk_counts,
    zk_double_barrier, zk_double_barrier_rounds, zk_ensemble, zk_families, zk_holders, zk_leases,
    zk_losses, zk_lost, zk_queue, zk_recipes, zookeeper,
};
use libtest_mimic::Trial;
use std::sync::Arc;
use tokio::runtime::Handle;

/// The trials on the ZooKeeper at `at`.
pub(crate) fn all(handle: &Handle, at: String) -> Vec<Trial> {
    let zookeeper = Arc::new(zookeeper::ZooKeeper::at(at.clone()));
    let mut all = contract(handle, &zookeeper);
    all.extend(trials![
        handle,
        &zookeeper,
        clauses::a_holder_is_told_that_its_lock_is_lost,
        clauses::fencing_tokens_grow,
        model_programs::random_programs_keep_to_the_model,
        model_programs::owners_that_are_mixed_up_break_the_model,
        zookeeper::a_short_cut_is_survived,
        zookeeper::a_holder_learns_of_a_long_cut_before_its_node_goes,
        zookeeper::close_leaves_no_node_even_under_a_holder,
        zookeeper::a_deleted_directory_is_made_again,
        zk_queue::waiters_of_three_processes_are_served_in_the_order_of_their_nodes,
        zk_queue::a_process_with_a_queue_of_its_own_is_caught,
        zk_queue::a_section_costs_as_much_among_a_thousand_as_among_ten,
        zk_queue::a_waiter_whose_node_is_deleted_before_it_watches_queues_anew,
        zk_queue::a_reader_that_takes_a_writers_place_keeps_the_next_writer_out,
        clauses::a_lost_hold_lets_its_own_process_try,
        zk_losses::a_process_that_stood_still_knows_at_once_that_its_lock_is_lost,
        zk_losses::a_lock_that_was_told_lost_stays_lost_though_its_session_comes_back,
        zk_losses::any_number_of_lost_holds_let_their_own_process_try,
        zk_losses::a_node_whose_deletion_is_refused_goes_once_it_may,
        zk_losses::a_name_that_is_no_path_is_refused,
        zk_losses::a_try_without_an_answer_ends_in_time,
        zk_ensemble::who_is_served_by_a_follower_without_a_leader_is_told,
        zk_losses::nodes_for_ourselves_are_out_of_a_strangers_reach,
        zk_losses::options_that_can_never_connect_are_refused,
        zk_losses::an_enter_whose_end_is_not_answered_is_not_said_to_be_late,
        zk_losses::a_waiter_hears_after_a_cut_that_the_one_before_it_went,
        zk_losses::a_waiter_whose_session_ends_queues_anew,
        zk_losses::a_waiter_whose_node_is_deleted_queues_anew,
        zk_losses::a_release_without_an_answer_is_a_release,
        zk_losses::a_wait_without_end_is_a_wait,
        zk_losses::a_leave_for_another_clients_member_asks_for_the_latest_first,
        zk_holders::anybody_may_ask_who_holds_a_lock,
        zk_holders::a_holder_that_says_where_it_is_is_shown_with_that,
    ]);
    all.extend(trials![
        handle,
        &zookeeper,
        zk_recipes::the_node_goes_with_the_last_hold_of_its_owner,
        zk_recipes::a_release_that_frees_with_the_first_hold_is_caught,
        zk_recipes::tasks_of_one_owner_do_not_queue_behind_each_other,
        zk_recipes::an_owner_that_lost_the_lock_does_not_come_in_again,
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
        zk_leases::a_request_for_the_mutex_that_is_not_answered_leaves_no_orphan,
        zk_leases::a_request_for_a_lease_that_is_not_answered_leaves_no_orphan,
        zk_leases::a_waiter_for_a_lease_that_is_cut_off_leaves_nothing,
    ]);
    all.extend(handles::<zk_families::Write>(handle, &at));
    all.extend(handles::<zk_families::Read>(handle, &at));
    all.extend(handles::<zk_families::Owned>(handle, &at));
    let multi_lock = Arc::new(zk_families::Handles::<zk_families::Multi>::at(at.clone()));
    all.extend(contract(handle, &multi_lock));
    all.extend(leased(handle, &multi_lock));
    let semaphore = Arc::new(zk_families::Semaphore(zookeeper::ZooKeeper::at(at.clone())));
    all.extend(contract(handle, &semaphore));
    all.extend(trials![
        handle,
        &semaphore,
        clauses::a_holder_is_told_that_its_lock_is_lost,
        clauses::a_lost_hold_lets_its_own_process_try,
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
        zk_double_barrier_rounds::more_members_than_were_asked_for_are_let_in,
        zk_double_barrier_rounds::an_old_ready_lets_nobody_in,
        zk_double_barrier::who_gives_up_was_not_counted,
        zk_double_barrier::a_member_that_counts_and_then_opens_is_caught,
        zk_double_barrier::an_unanswered_enter_leaves_no_member,
        zk_double_barrier_rounds::who_comes_while_others_are_in_is_let_in_without_a_ready,
        zk_double_barrier_rounds::a_late_member_is_in_like_the_first_ones,
        zk_double_barrier_rounds::who_waits_for_the_next_round_holds_up_nobody,
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
    all.extend(trials![
        handle,
        &zookeeper,
        multi::two_of_opposite_orders_both_go_on
    ]);
    let jumper = Arc::new(twins::QueueJumper::at(at.clone()));
    all.extend(trials![
        handle,
        &jumper,
        twins::is_caught_when_somebody_gives_up
    ]);
    all
}

/// One kind of handle that has one token, under the contract.
fn handles<K: zk_families::Kind>(handle: &Handle, at: &str) -> Vec<Trial> {
    let family = Arc::new(zk_families::Handles::<K>::at(at.to_owned()));
    let mut all = contract(handle, &family);
    all.extend(leased(handle, &family));
    all.extend(trials![handle, &family, clauses::fencing_tokens_grow]);
    all
}
