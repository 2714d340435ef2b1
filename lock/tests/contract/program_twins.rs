//! Locks that are wrong on purpose, and the rule that the random programs see each of them break: what a program comes to is
//! recorded and judged as it is.

use super::{
    checker::Share,
    programs::{Subject, break_a_rule},
    subjects::taking,
    support::*,
    twins::{Honest, apart, confusing},
};
use oversell_lock::redis::RedisClient;

macro_rules! twins {
    ($($test:ident: $flaw:ident, $by:literal;)*) => {$(
        test! {
            async fn $test(redis: &'static Redis) -> Result {
                static TWIN: Subject<Redis> = Subject::lock(|client: &RedisClient, name, ask, wait, _| {
                    let twin = made(name, Honest::of(client, name, ask), |honest, _, wait| $flaw(honest, wait));
                    taking(Share::Alone, twin, wait)
                });
                break_a_rule(redis, &TWIN, $by, std::future::pending()).await
            }
        }
    )*};
}

twins! {
    random_programs_catch_a_lock_for_each_process: apart, "both hold it";
    random_programs_catch_one_that_takes_silence_for_taken: confusing, "nobody has it";
}
