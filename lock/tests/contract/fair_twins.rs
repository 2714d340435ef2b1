//! Fair locks that are wrong on purpose, each by one line: the honest one, and beside it a command that leaves its queue or
//! its scores as a lock with this fault would.

use super::{
    clauses::waiters_are_served_in_order_of_arrival as order,
    fair::{drift, queue_key, scores_key},
    support::*,
};
use oversell_lock::redis::RedisClient;
use redis::{Script, Value};

/// The last one that came waits in front of all.
const PUSHES_IN: &str = "return redis.call('rpoplpush', KEYS[1], KEYS[1])";
/// A waiter that goes leaves its wait in the scores of those behind it.
const LEAVES_THE_OTHERS_SCORES: &str = "
    for _, owner in ipairs(redis.call('lrange', KEYS[1], 0, -1)) do
        redis.call('zincrby', KEYS[2], ARGV[1], owner)
    end
    return 1";

/// A fair lock before each acquire of which this script runs, with the length of the wait.
fn meddled(client: &RedisClient, name: &str, script: &'static str) -> AnyLock {
    made(name, client.clone(), move |client, name, wait| async move {
        let script = Script::new(script);
        let mut meddling = script.key(queue_key(&name));
        let wait_ms = wait.as_millis().to_string();
        meddling.key(scores_key(&name)).arg(wait_ms);
        let mut redis = client.connection();
        let meddled: redis::RedisResult<Value> = meddling.invoke_async(&mut redis).await;
        // Those whose test has ended may still be there when the server stops.
        drop(meddled);
        client.fair_lock(&name).acquire(wait).await
    })
}

macro_rules! twins {
    ($($test:ident: $script:ident, $clause:ident, $by:literal;)*) => {$(
        test! {
            async fn $test(redis: &'static Redis) -> Result {
                static TWIN: Kind<Redis> =
                    Kind::new("twin", &[], |client, name, _| meddled(client, name, $script)).queues();
                let twin = Family { server: redis, kind: &TWIN };
                caught($clause(twin).await, $by)
            }
        }
    )*};
}

twins! {
    one_that_pushes_in_is_caught: PUSHES_IN, order, "the turns were";
    one_that_leaves_the_scores_of_the_others_is_caught: LEAVES_THE_OTHERS_SCORES, drift, "too high";
}
