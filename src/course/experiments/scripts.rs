//! §2.4: what one command is and several are not.

use super::tools::{ask, own};
use crate::course::{Cluster, NoVerdict, Seen, words};
use futures::future::try_join_all;
use redis::Value;
use std::collections::BTreeSet;

const COUNT_TO_THREE_LUA: &str = include_str!("../../replay/lua/count_to_three.lua");

/// Every order in which five commands of each can come; then a hundred clients that send a script.
pub(super) async fn count_to_three(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let (mut redis, counter) = (on.redis().await?, own("counter"));
    let mut seen = BTreeSet::new();
    // Bit n says whose command comes n-th.
    let orders: Vec<u32> = (0..1_u32 << 10)
        .filter(|order| order.count_ones() == 5)
        .collect();
    for order in &orders {
        let mut commands = redis::pipe();
        let mut done = [0, 0];
        for n in 0..10 {
            let client = (order >> n & 1) as usize;
            match done[client] {
                0 => commands.cmd("SET").arg(&counter).arg(0).ignore(),
                4 => commands.cmd("GET").arg(&counter),
                _ => commands.cmd("INCR").arg(&counter).ignore(),
            };
            done[client] += 1;
        }
        let both: [i64; 2] = commands.query_async(&mut redis).await?;
        seen.extend(both);
    }
    let script = match twin {
        true => "return redis.call('INCR', KEYS[1])",
        false => COUNT_TO_THREE_LUA,
    };
    let scripts = (0..100).map(|_| {
        let (mut redis, counter) = (redis.clone(), &counter);
        async move { ask::<i64>(&mut redis, &["EVAL", script, "1", counter]).await }
    });
    let as_a_script: BTreeSet<i64> = try_join_all(scripts).await?.into_iter().collect();
    ask::<()>(&mut redis, &["DEL", &counter]).await?;
    let holds = seen.iter().copied().eq(0..=6) && as_a_script.iter().eq([&3]);
    let words = words!(
        "五条命令的全部 {} 种交错里，看到过 {seen:?}；100 段并发的脚本看到的是 {as_a_script:?}。",
        "In all {} orders of the five commands of each they saw {seen:?}; 100 scripts at once saw {as_a_script:?}.",
        orders.len()
    );
    let seen: Vec<i64> = seen.into_iter().collect();
    Ok(Seen::holds(holds, words)
        .value("by_commands", seen)
        .value("orders", orders.len()))
}

pub(super) async fn no_rollback(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let (mut redis, word, other) = (on.redis().await?, own("word"), own("other"));
    let mut transaction = redis::pipe();
    transaction
        .atomic()
        .cmd("SET")
        .arg(&word)
        .arg(if twin { "1" } else { "abc" })
        .cmd("INCR")
        .arg(&word)
        .cmd("SET")
        .arg(&other)
        .arg(1);
    let said = transaction
        .query_async::<Value>(&mut redis)
        .await
        .map_or_else(|error| error.to_string(), |_| String::new());
    let left = ask::<Option<String>>(&mut redis, &["GET", &other])
        .await?
        .unwrap_or_default();
    ask::<()>(&mut redis, &["DEL", &word, &other]).await?;
    let words = words!(
        "INCR 报错：{said}；它后面的 SET 照样做了，值是 {left}。",
        "INCR failed: {said}; the SET after it was done and wrote {left}."
    );
    Ok(Seen::holds(!said.is_empty() && left == "1", words))
}
