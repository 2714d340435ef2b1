//! §2.4: a script runs as one command; several commands do not.

use crate::trials::{
    Cluster, NoVerdict, Observation,
    tools::{open_clients, own_key, send_command},
};
use futures::future::try_join_all;
use oversell::claims::words;
use redis::{Value, aio::MultiplexedConnection};
use std::collections::BTreeSet;

experiments! {
    "2.4.1" => count_to_three(true), twin(false);
    "2.4.1.multi" => failed_transaction_is_not_rolled_back("abc"), twin("1");
}

const COUNT_TO_THREE_LUA: &str = include_str!("../../../../src/replay/lua/count_to_three.lua");

/// Claim: two clients that each send SET 0, three INCR and GET read anything from 0 to 6, by the schedule of their commands; clients
/// that send the five commands as a script always read 3.
async fn count_to_three(on: &Cluster, as_script: bool) -> Result<Observation, NoVerdict> {
    /// How often both clients send at once, so that chance shows an interleaving.
    const ROUNDS: usize = 500;
    let (mut clients, counter) = (open_clients(on, 20).await?, own_key("counter"));
    // Bit n of a schedule is the client that sends the n-th of the ten commands; each client sends five.
    let schedules: Vec<u32> = (0..1_u32 << 10)
        .filter(|schedule| schedule.count_ones() == 5)
        .collect();
    let (mut seen, mut one_after_the_other) = (BTreeSet::new(), BTreeSet::new());
    for schedule in &schedules {
        let (mut done, mut saw) = ([0, 0], [0, 0]);
        for n in 0..10 {
            let client = (schedule >> n & 1) as usize;
            saw[client] = run_command(&mut clients[client], &counter, done[client]).await?;
            done[client] += 1;
        }
        seen.extend(saw);
        if matches!(schedule, 0b11111 | 0b11111_00000) {
            one_after_the_other.extend(saw);
        }
    }
    let mut unordered = BTreeSet::new();
    for _ in 0..ROUNDS {
        let both = clients[..2]
            .iter_mut()
            .map(|one| run_five_commands(one, &counter));
        unordered.extend(try_join_all(both).await?);
    }
    let scripts = clients.iter_mut().map(async |client| match as_script {
        false => run_five_commands(client, &counter).await,
        true => send_command(client, &["EVAL", COUNT_TO_THREE_LUA, "1", &counter]).await,
    });
    let as_a_script: BTreeSet<i64> = try_join_all(scripts).await?.into_iter().collect();
    send_command::<()>(&mut clients[0], &["DEL", &counter]).await?;
    let three = BTreeSet::from([3]);
    let holds = seen.iter().copied().eq(0..=6)
        && one_after_the_other == three
        && unordered != three
        && as_a_script == three;
    let words = words!(
        "五条命令的全部 {} 种交错里，看到过 {seen:?}，一个接一个时是 {one_after_the_other:?}；不排先后同时发 {ROUNDS} 次，看到 {unordered:?}；20 个客户端同时发脚本，看到的是 {as_a_script:?}。",
        "In all {} orders of the five commands of each they saw {seen:?}, and {one_after_the_other:?} one after the other; sent at once {ROUNDS} times in no order, {unordered:?}; 20 clients that sent a script at once saw {as_a_script:?}.",
        schedules.len()
    );
    let seen: Vec<i64> = seen.into_iter().collect();
    Ok(Observation::holds(holds, words)
        .value("by_commands", seen)
        .value("orders", schedules.len()))
}

/// Sends the n-th of SET 0, INCR, INCR, INCR, GET; returns the counter after it.
async fn run_command(
    client: &mut MultiplexedConnection,
    counter: &str,
    n: usize,
) -> Result<i64, NoVerdict> {
    match n {
        0 => {
            send_command::<()>(client, &["SET", counter, "0"]).await?;
            Ok(0)
        }
        4 => send_command(client, &["GET", counter]).await,
        _ => send_command(client, &["INCR", counter]).await,
    }
}

/// Sends SET 0, INCR, INCR, INCR, GET; returns the answer of GET.
async fn run_five_commands(
    client: &mut MultiplexedConnection,
    counter: &str,
) -> Result<i64, NoVerdict> {
    let mut saw = 0;
    for n in 0..5 {
        saw = run_command(client, counter, n).await?;
    }
    Ok(saw)
}

/// Claim: after a command of a MULTI has failed, the next command is still executed. `value` makes INCR fail.
async fn failed_transaction_is_not_rolled_back(
    on: &Cluster,
    value: &str,
) -> Result<Observation, NoVerdict> {
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
    let left = send_command::<Option<String>>(&mut redis, &["GET", &other])
        .await?
        .unwrap_or_default();
    send_command::<()>(&mut redis, &["DEL", &word, &other]).await?;
    let words = words!(
        "INCR 报错：{said}；它后面的 SET 照样做了，值是 {left}。",
        "INCR failed: {said}; the SET after it was done and wrote {left}."
    );
    Ok(Observation::holds(!said.is_empty() && left == "1", words))
}
