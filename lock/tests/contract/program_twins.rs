//! Broken locks, and the rule that the random programs see each of them break: a program's calls are recorded and
//! judged as they are.

use super::{
    family::Capability::*,
    programs::{Subject, ensure_rule_broken},
    support::*,
    twins::{Honest, apart, confusing, no_owner},
};

macro_rules! twins {
    ($($test:ident: $flaw:ident, $by:literal;)*) => {$(
        test! {
            async fn $test(redis: &'static Redis) -> Result {
                static TWIN: Kind<Redis> = Kind::new("twin", &[Losable, Reentrant], |client, name, ask| {
                    fixed_lock(name, Honest::of(client, name, ask), |honest, _, wait| $flaw(honest, wait))
                });
                ensure_rule_broken(redis, &Subject::of(&TWIN), $by).await
            }
        }
    )*};
}

twins! {
    random_programs_catch_a_lock_for_each_process: apart, "both hold it";
    random_programs_catch_one_that_takes_silence_for_taken: confusing, "nobody has it";
}

#[apply(test!)]
async fn random_programs_catch_one_that_does_not_know_its_owner(redis: &'static Redis) -> Result {
    static TWIN: Kind<Redis> = Kind::new("twin", &[Losable, Reentrant], |client, name, mut ask| {
        no_owner(&mut ask);
        Honest::of(client, name, ask).lock.boxed()
    });
    ensure_rule_broken(redis, &Subject::of(&TWIN), "its owner holds it").await
}
