//! Every test that needs real servers, in one binary: the lab starts once, and stops before the binary ends.
//!
//! `cargo test -p oversell --test main -- NAME` runs those whose name contains NAME.

mod breaking;
mod buyers;
mod class_lanes;
mod classroom;
mod course;
mod deadlocks;
mod demos;
mod faults;
mod ids;
mod instances;
mod lab;
mod lights;
mod limits;
mod loads;
mod mysql;
mod replays;
mod resets;
mod seckill;
mod seckill_faults;
mod seckill_load;
mod seckill_stream;
mod stages;
mod strategies;
mod support;
mod zk_classroom;
mod zk_faults;
mod zk_herd;

use futures::future::LocalBoxFuture;
use libtest_mimic::{Arguments, Failed, Trial};
use oversell::{
    lab::{Lab, Options, Part},
    stock,
};
use std::{
    num::NonZero, path::PathBuf, process::ExitCode, sync::Arc, thread::available_parallelism,
};
use support::Servers;
use tokio::{runtime::Runtime, sync::Semaphore};

type Outcome = Result<(), String>;
type Pure = fn() -> Outcome;
type Test = Box<dyn FnOnce(Arc<Servers>) -> LocalBoxFuture<'static, Outcome> + Send>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // Most of them wait for servers most of the time, and the two that type lines by hand nearly always.
    arguments
        .test_threads
        .get_or_insert(1 + 2 * available_parallelism().map_or(1, NonZero::get));
    let runtime = Arc::new(Runtime::new().expect("an async runtime"));
    if arguments.list {
        return libtest_mimic::run(&arguments, trials(&runtime, None)).exit_code();
    }
    if let Ok(connect) = std::env::var(zk_faults::HOLDER) {
        return match runtime.block_on(zk_faults::hold(&connect)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    let lab = match runtime.block_on(Lab::start(options())) {
        Ok(lab) => lab,
        Err(failure) => {
            eprintln!("the servers for the tests did not start: {failure}");
            return failure.exit_code();
        }
    };
    let servers = Arc::new(runtime.block_on(Servers::connect(lab.addresses())));
    let conclusion = libtest_mimic::run(&arguments, trials(&runtime, Some(&servers)));
    runtime.block_on(async {
        servers.close().await;
        lab.stop().await;
    });
    conclusion.exit_code()
}

/// Servers only, with one Redis: what the tests in this process talk to. Tests of whole instances start their own.
fn options() -> Options {
    Options {
        without: vec![Part::Instances, Part::Nginx],
        redis_ports: vec![0],
        ..program()
    }
}

/// A lab whose instances run the binary that these tests were built with.
pub(crate) fn program() -> Options {
    Options {
        program: Some(PathBuf::from(env!("CARGO_BIN_EXE_oversell"))),
        ..Options::default()
    }
}

/// A test with a lab of its own, beside one other: on a machine with many cores all of them at once would have no memory.
async fn in_turn(test: impl Future<Output = Outcome>) -> Outcome {
    static LABS: Semaphore = Semaphore::const_new(2);
    let _one = LABS.acquire().await.map_err(|closed| closed.to_string())?;
    test.await
}

fn trials(runtime: &Arc<Runtime>, servers: Option<&Arc<Servers>>) -> Vec<Trial> {
    let pure: [(&str, Pure); 2] = [
        (
            "every_lesson_that_is_tried_has_lines_to_type",
            course::every_lesson_that_is_tried_has_lines_to_type,
        ),
        (
            "each_replay_is_named_by_a_lesson_and_no_other_is",
            course::each_replay_is_named_by_a_lesson_and_no_other_is,
        ),
    ];
    let mut trials: Vec<_> = pure
        .into_iter()
        .map(|(name, test)| Trial::test(name, move || test().map_err(Failed::from)))
        .collect();
    let with_servers = |name: String, test: Test| {
        let (runtime, servers) = (Arc::clone(runtime), servers.cloned());
        Trial::test(name, move || {
            let servers = servers.ok_or("no servers")?;
            runtime.block_on(test(servers)).map_err(Failed::from)
        })
    };
    macro_rules! own_lab {
        ($($module:ident :: $test:ident),* $(,)?) => {
            $(trials.push(with_servers(stringify!($test).into(), Box::new(|_| Box::pin(in_turn($module::$test())))));)*
        };
    }
    // The longest ones begin first, and beside those that take turns: they mostly wait for leases.
    for (part, chapters) in course::parts() {
        trials.push(with_servers(
            format!("every_line_by_hand_of_{part}_prints_what_the_lesson_says_and_another_print_is_caught"),
            Box::new(move |_| Box::pin(course::every_line_by_hand_prints_what_the_lesson_says(part, chapters))),
        ));
    }
    for strategy in stock::ALL.iter() {
        trials.push(with_servers(
            format!("{}_keeps_its_promise", strategy.slug),
            Box::new(move |servers| {
                Box::pin(async move { strategies::keeps_its_promise(&servers, strategy).await })
            }),
        ));
    }
    for strategy in strategies::exact_ones() {
        trials.push(with_servers(
            format!("{}_sells_no_more_than_there_is", strategy.slug),
            Box::new(move |servers| {
                Box::pin(async move {
                    strategies::sells_no_more_than_there_is(&servers, strategy).await
                })
            }),
        ));
    }
    for (name, store, deduct) in strategies::TWINS {
        trials.push(with_servers(
            name.into(),
            Box::new(move |servers| {
                Box::pin(async move { strategies::is_caught(&servers, store, deduct).await })
            }),
        ));
    }
    macro_rules! trial {
        ($($module:ident :: $test:ident),* $(,)?) => {
            $(trials.push(with_servers(
                stringify!($test).into(),
                Box::new(|servers| Box::pin(async move { $module::$test(&servers).await })),
            ));)*
        };
    }
    trial!(
        strategies::a_merge_that_sells_to_all_who_wait_is_caught,
        strategies::waiters_for_redis_watch_retry_the_more_the_more_there_are,
    );
    trial!(
        mysql::a_write_waits_for_a_row_no_longer_than_it_may,
        mysql::a_write_without_a_bound_is_caught,
        mysql::a_refusal_costs_no_connection,
        mysql::a_refusal_that_drops_its_connection_is_caught,
        mysql::who_stays_without_a_transaction_holds_no_connection,
        mysql::who_finds_another_version_tries_again,
        mysql::pieces_in_buckets_are_never_lost,
        mysql::a_named_lock_goes_with_its_connection,
        mysql::the_row_of_a_table_lock_says_who_holds_it,
        mysql::a_database_of_the_course_is_taken_over_with_its_rows,
        mysql::a_database_of_an_earlier_version_goes_on,
    );
    trial!(
        stages::a_late_unlock_says_lost_where_it_can_tell,
        stages::a_stage_that_is_given_up_leaves_no_key,
        stages::a_lease_that_is_asked_for_replaces_the_strategys_own,
    );
    for lesson in oversell::classroom::deadlocks::ALL {
        trials.push(with_servers(
            format!(
                "deadlock_{}_shows_its_error_and_its_cure_again_and_again",
                lesson.slug
            ),
            Box::new(move |servers| {
                Box::pin(
                    async move { deadlocks::shows_its_error_and_its_cure(&servers, lesson).await },
                )
            }),
        ));
    }
    trial!(
        limits::a_shared_limit_counts_all_instances_and_one_in_each_is_caught,
        deadlocks::a_transaction_that_is_left_open_is_seen,
        deadlocks::a_play_whose_client_goes_away_leaves_nothing,
        deadlocks::an_update_without_an_index_locks_every_row,
        deadlocks::without_the_privilege_a_deadlock_is_played_and_its_account_is_said_to_be_missing,
    );
    trial!(
        demos::a_lock_that_is_forced_lets_two_in_and_the_librarys_does_not,
        demos::a_late_unlock_by_thread_id_frees_another_processs_lock_until_it_is_by_owner,
        demos::a_value_for_each_call_cannot_enter_again_and_an_owner_can,
    );
    for race in oversell::replay::races().filter(|race| !race.breaks_something()) {
        trials.push(with_servers(
            format!(
                "replay_{}_ends_as_the_registry_says_again_and_again",
                race.lesson
            ),
            Box::new(move |servers| {
                Box::pin(async move { replays::ends_as_the_registry_says(&servers, race).await })
            }),
        ));
    }
    for step in seckill::promising() {
        trials.push(with_servers(
            format!("voucher_order_{}_keeps_its_promise", step.slug),
            Box::new(move |servers| {
                Box::pin(async move { seckill::keeps_its_promise(&servers, step).await })
            }),
        ));
    }
    trial!(
        seckill::two_who_read_the_last_piece_both_take_it_until_the_update_looks,
        seckill::one_person_orders_twice_until_somebody_asks,
        seckill::only_the_same_lock_keeps_a_users_second_order_out,
        seckill::one_lock_for_all_makes_others_wait_and_one_per_user_does_not,
        seckill::a_lock_inside_the_transaction_is_unlocked_before_the_commit,
        seckill::a_late_unlock_deletes_anothers_lock_until_compare_and_delete_are_one,
        seckill::an_order_longer_than_its_lease_is_not_alone_until_it_is_renewed_or_the_database_refuses,
        seckill::a_seckill_has_a_begin_an_end_and_a_stock,
    );
    trial!(
        seckill_stream::a_consumer_that_dies_anywhere_loses_no_order_and_doubles_none,
        seckill_stream::a_consumer_that_was_slow_and_not_dead_doubles_no_order,
        seckill_stream::a_consumer_that_acknowledges_first_or_does_not_know_its_order_again_is_caught,
        seckill_stream::what_cannot_be_written_is_buried_with_its_reason_and_the_rest_is_written,
        seckill_stream::a_consumer_that_closes_writes_what_was_answered,
        seckill_stream::a_voucher_that_redis_has_lost_is_not_invented_anew,
    );
    trial!(
        ids::three_hundred_tasks_of_a_hundred_ids_get_each_once_and_in_order,
        ids::at_midnight_the_count_starts_anew_and_no_id_comes_twice,
        ids::a_count_that_is_used_up_is_refused_until_midnight,
        ids::a_clock_that_went_back_gives_no_id_twice,
        ids::a_clock_that_the_seconds_cannot_tell_is_refused,
        ids::without_redis_there_is_no_id,
    );
    trial!(
        resets::a_reset_clears_all_that_strategies_and_lessons_write,
        resets::a_name_that_a_reset_leaves_out_is_seen,
    );
    for slug in [
        "redis-watchdog",
        "redis-lock",
        "zk-ephemeral",
        "zk-sequential",
        "zk-lock",
        "zk-mutex",
        "table-lock-lease",
        "mysql-named-lock",
    ] {
        trials.push(with_servers(
            format!("others_go_on_after_the_holder_of_{slug}_is_killed"),
            Box::new(move |_| {
                Box::pin(in_turn(instances::others_go_on_after_the_holder_is_killed(
                    slug,
                )))
            }),
        ));
    }
    own_lab!(
        lab::no_process_of_a_whole_lab_is_root_and_both_ways_to_the_page_agree,
        lab::a_second_signal_ends_an_instance_at_once,
        lab::a_member_of_a_running_lab_is_broken_and_mended_by_hand,
        lab::a_way_is_cut_slowed_and_mended_and_a_session_ends,
        breaking::an_order_that_cannot_be_carried_out_is_refused_in_words,
        lights::an_instance_is_chosen_by_its_name,
        lights::an_instance_that_is_cut_off_or_was_stopped_is_no_server_that_is_down,
        instances::a_client_that_hangs_up_leaves_nothing,
        instances::an_instance_starts_without_its_servers_and_recovers,
        instances::an_instance_that_is_told_to_end_finishes_what_is_under_way,
        instances::an_instance_that_dies_under_load_is_passed_over,
        instances::a_second_signal_ends_an_instance_at_once,
        limits::nginx_lets_through_what_its_limits_say_and_a_lone_instance_names_them,
        seckill_faults::ten_thousand_orders_survive_the_end_of_a_consumer_of_mysql_and_of_redis,
        seckill_faults::what_redis_has_answered_is_there_with_appendfsync_always_and_lost_without,
        replays::a_replay_goes_step_by_step_over_three_instances_and_is_cancelled,
        loads::a_run_is_exact_whatever_others_do_meanwhile,
        loads::one_run_at_a_time_over_all_instances,
        loads::a_run_says_where_its_requests_wait,
        loads::as_many_are_inside_at_once_as_the_lock_lets_in,
        seckill_load::a_seckill_over_http_goes_as_each_step_promises,
        replays::what_breaks_something_ends_as_the_registry_says_in_a_lab,
        faults::redis_that_is_restarted_under_load_costs_answers_and_no_piece,
        faults::a_way_to_redis_that_is_cut_and_mended_costs_answers_and_no_piece,
        faults::a_main_redis_that_was_restored_is_promoted_away_again,
        faults::a_sentinel_that_was_held_up_promotes_the_replica_all_the_same,
        zk_faults::a_process_that_was_paused_beyond_its_session_is_told_that_its_lock_is_lost,
        zk_faults::zookeeper_that_is_restarted_under_load_costs_answers_and_no_piece,
        zk_faults::an_ensemble_that_loses_its_leader_under_load_loses_no_piece,
        resets::a_reset_needs_what_it_sets_and_names_what_it_could_not_clear,
        resets::no_instance_invents_stock_for_a_redis_that_has_lost_it,
        class_lanes::a_class_sees_the_visits_of_all_instances_in_one_stream,
        class_lanes::thirty_phones_see_each_other_and_three_at_a_time,
        class_lanes::people_who_cannot_be_sent_are_refused_by_field_and_rule,
        classroom::the_lessons_for_several_windows_go_as_the_course_says,
        course::the_verdicts_of_a_run_are_kept_and_are_the_same_on_each_instance,
        zk_herd::a_release_wakes_all_that_watch_the_directory_and_one_that_watches_its_predecessor,
    );
    trials
}
