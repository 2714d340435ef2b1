//! §2.4: a script runs as one command; several commands do not.

use crate::{
    claims::words,
    trials::{
        Cluster, NoVerdict, Observation,
        tools::{ask, clients, own_key},
    },
};
use futures::future::try_join_all;
use redis::{Value, aio::MultiplexedConnection};
use std::collections::BTreeSet;

experiments! {
    "2.4.1" => count_to_three(true), twin(false);
    "2.4.1.multi" => no_rollback("abc"), twin("1");
}

const COUNT_TO_THREE_LUA: &str = include_str!("../../replay/lua/count_to_three.lua");

/// Two clients in every interleaving of their five commands, then at once in no order; then twenty clients with a script.
async fn count_to_three(on: &Cluster, as_script: bool) -> Result<Observation, NoVerdict> {
    /// Rounds in which both send at once.
    const TIMES: usize = 500;
    let (mut clients, counter) = (clients(on, 20).await?, own_key("counter"));
    // Bit n is the client of the n-th command.
    let orders: Vec<u32> = (0..1_u32 << 10)
        .filter(|order| order.count_ones() == 5)
        .collect();
    let (mut seen, mut one_after_the_other) = (BTreeSet::new(), BTreeSet::new());
    for order in &orders {
        let (mut done, mut saw) = ([0, 0], [0, 0]);
        for n in 0..10 {
            let client = (order >> n & 1) as usize;
            saw[client] = command(&mut clients[client], &counter, done[client]).await?;
            done[client] += 1;
        }
        seen.extend(saw);
        if matches!(order, 0b11111 | 0b11111_00000) {
            one_after_the_other.extend(saw);
        }
    }
    let mut unordered = BTreeSet::new();
    for _ in 0..TIMES {
        let both = clients[..2].iter_mut().map(|one| five(one, &counter));
        unordered.extend(try_join_all(both).await?);
    }
    let scripts = clients.iter_mut().map(async |client| match as_script {
        false => five(client, &counter).await,
        true => ask(client, &["EVAL", COUNT_TO_THREE_LUA, "1", &counter]).await,
    });
    let as_a_script: BTreeSet<i64> = try_join_all(scripts).await?.into_iter().collect();
    ask::<()>(&mut clients[0], &["DEL", &counter]).await?;
    let three = BTreeSet::from([3]);
    let holds = seen.iter().copied().eq(0..=6)
        && one_after_the_other == three
        && unordered != three
        && as_a_script == three;
    let words = words!(
        "五条命令的全部 {} 种交错里，看到过 {seen:?}，一个接一个时是 {one_after_the_other:?}；不排先后同时发 {TIMES} 次，看到 {unordered:?}；20 个客户端同时发脚本，看到的是 {as_a_script:?}。",
        "In all {} orders of the five commands of each they saw {seen:?}, and {one_after_the_other:?} one after the other; sent at once {TIMES} times in no order, {unordered:?}; 20 clients that sent a script at once saw {as_a_script:?}.",
        orders.len()
    );
    let seen: Vec<i64> = seen.into_iter().collect();
    Ok(Observation::holds(holds, words)
        .value("by_commands", seen)
        .value("orders", orders.len()))
}

/// Sends the n-th of the five commands; returns the counter after it.
async fn command(
    client: &mut MultiplexedConnection,
    counter: &str,
    n: usize,
) -> Result<i64, NoVerdict> {
    match n {
        0 => {
            ask::<()>(client, &["SET", counter, "0"]).await?;
            Ok(0)
        }
        4 => ask(client, &["GET", counter]).await,
        _ => ask(client, &["INCR", counter]).await,
    }
}

/// Sends all five; returns what the last one reads.
async fn five(client: &mut MultiplexedConnection, counter: &str) -> Result<i64, NoVerdict> {
    let mut saw = 0;
    for n in 0..5 {
        saw = command(client, counter, n).await?;
    }
    Ok(saw)
}

async fn no_rollback(on: &Cluster, value: &str) -> Result<Observation, NoVerdict> {
    let (mut redis, word, other) = (on.redis().await?, own_key("word"), own_key("other"));
    let mut transaction = redis::pipe();
    transaction
        .atomic()
        .cmd("SET")
        .arg(&word)
        .arg(value)
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
    Ok(Observation::holds(!said.is_empty() && left == "1", words))
}
