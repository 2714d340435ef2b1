//! What the tests still use that do not register themselves.

use crate::{
    breaking, class_lanes, deadlocks, demos,
    harness::outcome,
    lights,
    register::{ALONE, SHARED},
    replays, seckill_steps as seckill, stages,
    support::{Servers, labs},
};
use futures::future::LocalBoxFuture;
use libtest_mimic::Trial;
use oversell::{
    addresses::Addresses,
    lab::{Lab, Options},
};
use std::time::Duration;
use tokio::{runtime::Handle, sync::Semaphore};

type Outcome = Result<(), String>;
type Test = Box<dyn FnOnce() -> LocalBoxFuture<'static, Outcome> + Send>;

pub(crate) fn text(error: impl std::fmt::Display) -> String {
    format!("{error:#}")
}

pub(crate) mod instances {
    use super::*;
    pub(crate) use crate::support::http::{MINUTE, check};
    use reqwest::Client;

    pub(crate) async fn cluster_with(options: Options) -> Result<Lab, String> {
        let env = labs::short_leases().env;
        Lab::start(Options {
            env,
            redis_ports: vec![0],
            ..options
        })
        .await
        .map_err(text)
    }
    pub(crate) async fn put_stock(_: &Client, base: &str, count: i64) -> Outcome {
        crate::support::http::put_stock(base, count)
            .await
            .map_err(text)
    }
    pub(crate) async fn shelf(_: &Client, base: &str) -> Result<i64, String> {
        crate::support::http::stock(base, oversell::stock::Store::MySql)
            .await
            .map_err(text)
    }
    pub(crate) async fn until_held(_: &Client, base: &str, slug: &str) -> Result<i64, String> {
        crate::support::http::until_held(base, slug)
            .await
            .map_err(text)
    }
}

pub(crate) mod classroom {
    use super::*;
    use crate::support::http;
    use reqwest::{Client, StatusCode};
    use serde_json::Value;

    pub(crate) fn ask(
        _: &Client,
        url: String,
    ) -> impl Future<Output = Result<(StatusCode, String), String>> + use<> {
        let asked = http::ask(url);
        async { asked.await.map_err(text) }
    }
    pub(crate) async fn ask_json(_: &Client, url: String) -> Result<Value, String> {
        http::ask_json(url).await.map_err(text)
    }
    pub(crate) async fn redis(lab: &Lab, command: &str, name: &str) -> Result<Value, String> {
        let answer = match command {
            "KEYS" => crate::classroom::windows::in_redis::<Vec<String>>(lab, command, name)
                .await
                .map(|keys| serde_json::json!(keys)),
            _ => crate::classroom::windows::in_redis::<Option<i64>>(lab, command, name)
                .await
                .map(|number| serde_json::json!(number)),
        };
        answer.map_err(text)
    }
    pub(crate) async fn until<F: Future<Output = Result<bool, String>>>(
        what: &str,
        condition: impl Fn() -> F,
    ) -> Outcome {
        crate::buyers::until_seen(Duration::from_millis(25), what, condition).await
    }
    pub(crate) fn ensure(condition: bool, broken: impl FnOnce() -> String) -> Outcome {
        if condition { Ok(()) } else { Err(broken()) }
    }
}

pub(crate) async fn in_a_lab(
    options: &[&str],
    test: impl AsyncFnOnce(&Addresses) -> Outcome,
) -> Outcome {
    let options = [&["--instances=0,0,0"], options].concat();
    labs::by_command(&options, async |_: &std::path::Path, at: Addresses| {
        test(&at).await.map_err(anyhow::Error::msg)
    })
    .await
    .map_err(text)
}

async fn shared() -> Result<&'static Servers, String> {
    Servers::shared().await.map_err(text)
}

pub(crate) fn trials(runtime: &Handle) -> Vec<Trial> {
    let trial = |name: String, turns: &'static Semaphore, test: Test| {
        let runtime = runtime.clone();
        Trial::test(name, move || {
            runtime.block_on(async {
                let _turn = turns.acquire().await.map_err(|closed| closed.to_string())?;
                let test = async { test().await.map_err(anyhow::Error::msg) };
                outcome(Box::pin(test), Duration::from_secs(1200)).await
            })
        })
    };
    let mut trials = Vec::new();
    macro_rules! own_lab {
        ($($module:ident :: $test:ident),* $(,)?) => {
            $(trials.push(trial(stringify!($test).into(), &ALONE, Box::new(|| Box::pin($module::$test()))));)*
        };
    }
    macro_rules! trial {
        ($($module:ident :: $test:ident),* $(,)?) => {
            $(trials.push(trial(stringify!($test).into(), &SHARED, Box::new(|| Box::pin(async { $module::$test(shared().await?).await }))));)*
        };
    }
    trial!(
        stages::a_late_unlock_says_lost_where_it_can_tell,
        stages::a_stage_that_is_given_up_leaves_no_key,
        stages::a_lease_that_is_asked_for_replaces_the_strategys_own,
    );
    for lesson in oversell::classroom::deadlocks::ALL {
        trials.push(trial(
            format!(
                "deadlock_{}_shows_its_error_and_its_cure_again_and_again",
                lesson.slug
            ),
            &SHARED,
            Box::new(move || {
                Box::pin(async move {
                    deadlocks::shows_its_error_and_its_cure(shared().await?, lesson).await
                })
            }),
        ));
    }
    trial!(
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
    for replay in oversell::replay::races().filter(|race| !race.breaks_something()) {
        trials.push(trial(
            format!(
                "replay_{}_ends_as_the_registry_says_again_and_again",
                replay.lesson
            ),
            &SHARED,
            Box::new(move || {
                Box::pin(async move {
                    replays::ends_as_the_registry_says(shared().await?, replay).await
                })
            }),
        ));
    }
    for step in seckill::promising() {
        trials.push(trial(
            format!("voucher_order_{}_keeps_its_promise", step.slug),
            &SHARED,
            Box::new(move || {
                Box::pin(async move { seckill::keeps_its_promise(shared().await?, step).await })
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
    own_lab!(
        breaking::an_order_that_cannot_be_carried_out_is_refused_in_words,
        lights::an_instance_is_chosen_by_its_name,
        lights::an_instance_that_is_cut_off_or_was_stopped_is_no_server_that_is_down,
        replays::a_replay_goes_step_by_step_over_three_instances_and_is_cancelled,
        replays::what_breaks_something_ends_as_the_registry_says_in_a_lab,
        class_lanes::a_class_sees_the_visits_of_all_instances_in_one_stream,
        class_lanes::thirty_phones_see_each_other_and_three_at_a_time,
        class_lanes::people_who_cannot_be_sent_are_refused_by_field_and_rule,
    );
    trials
}
