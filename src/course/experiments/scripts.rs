//! §2.4 and §2.5: what one command is and several are not, EVAL, and the unlock as a script.

use super::{ask, own};
use crate::course::{Cluster, NoVerdict, Seen, Words};
use futures::future::try_join_all;
use redis::{RedisError, Value, aio::MultiplexedConnection};
use std::collections::BTreeSet;

const COUNT_TO_THREE_LUA: &str = include_str!("../../replay/lua/count_to_three.lua");

/// Every order in which five commands of each can come; then a hundred who send a script.
pub(super) async fn count_to_three(on: &Cluster) -> Result<Seen, NoVerdict> {
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
        let both: [i64; 2] = commands
            .query_async(&mut redis)
            .await
            .map_err(NoVerdict::failed)?;
        seen.extend(both);
    }
    let scripts = (0..100).map(|_| {
        let (mut redis, counter) = (redis.clone(), &counter);
        async move { ask::<i64>(&mut redis, &["EVAL", COUNT_TO_THREE_LUA, "1", counter]).await }
    });
    let as_a_script: BTreeSet<i64> = try_join_all(scripts).await?.into_iter().collect();
    ask::<()>(&mut redis, &["DEL", &counter]).await?;
    let holds = seen.iter().copied().eq(0..=6) && as_a_script.iter().eq([&3]);
    let words = Words::new(
        format!(
            "五条命令的全部 {} 种交错里，看到过 {seen:?}；100 段并发的脚本看到的是 {as_a_script:?}。",
            orders.len()
        ),
        format!(
            "In all {} orders of the five commands of each they saw {seen:?}; 100 scripts at once saw {as_a_script:?}.",
            orders.len()
        ),
    );
    let seen: Vec<i64> = seen.into_iter().collect();
    Ok(Seen::holds(holds, words)
        .value("by_commands", seen)
        .value("orders", orders.len()))
}

pub(super) async fn no_rollback(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut redis, word, other) = (on.redis().await?, own("word"), own("other"));
    let mut transaction = redis::pipe();
    transaction
        .atomic()
        .cmd("SET")
        .arg(&word)
        .arg("abc")
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
    let words = Words::new(
        format!("INCR 报错：{said}；它后面的 SET 照样做了，值是 {left}。"),
        format!("INCR failed: {said}; the SET after it was done and wrote {left}."),
    );
    Ok(Seen::holds(!said.is_empty() && left == "1", words))
}

pub(super) async fn local_variables(on: &Cluster) -> Result<Seen, NoVerdict> {
    let mut redis = on.redis().await?;
    let global = eval(&mut redis, "a = 5 return a", &[], &[]).await;
    let local = eval(&mut redis, "local a = 5 return a", &[], &[]).await;
    told(
        &[("a = 5", &global), ("local a = 5", &local)],
        global.is_err() && local == Ok(Value::Int(5)),
    )
}

pub(super) async fn a_number(on: &Cluster) -> Result<Seen, NoVerdict> {
    let ten = eval(&mut on.redis().await?, "return 10", &[], &[]).await;
    told(&[("return 10", &ten)], ten == Ok(Value::Int(10)))
}

const FIVE_KEYS: &str = "return {KEYS[1],KEYS[2],ARGV[1],ARGV[2]}";
const GREATER: &str = "return KEYS[1] > ARGV[1] and 1 or 0";

pub(super) async fn arguments(on: &Cluster) -> Result<Seen, NoVerdict> {
    let mut redis = on.redis().await?;
    let four = eval(
        &mut redis,
        FIVE_KEYS,
        &["10", "20", "30", "40", "50"],
        &["60", "70", "80", "90"],
    )
    .await;
    let texts =
        |texts: [&str; 4]| Value::Array(texts.map(|text| Value::BulkString(text.into())).to_vec());
    let less = eval(&mut redis, GREATER, &["10"], &["20"]).await;
    let more = eval(&mut redis, GREATER, &["20"], &["10"]).await;
    let as_text = eval(&mut redis, GREATER, &["9"], &["10"]).await;
    let holds = four == Ok(texts(["10", "20", "60", "70"]))
        && less == Ok(Value::Int(0))
        && more == Ok(Value::Int(1));
    let asked = [
        ("KEYS, ARGV", &four),
        ("10 > 20", &less),
        ("20 > 10", &more),
        ("9 > 10 (as texts)", &as_text),
    ];
    told(&asked, holds)
}

pub(super) async fn call(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut redis, key) = (on.redis().await?, own("aaa"));
    ask::<()>(&mut redis, &["SET", &key, "10"]).await?;
    let undeclared = eval(
        &mut redis,
        &format!("return redis.call('get', '{key}')"),
        &[],
        &[],
    )
    .await;
    let declared = eval(
        &mut redis,
        "return redis.call('get', KEYS[1])",
        &[&key],
        &[],
    )
    .await;
    ask::<()>(&mut redis, &["DEL", &key]).await?;
    let ten = Ok(Value::BulkString("10".into()));
    told(
        &[("get", &undeclared), ("get KEYS[1]", &declared)],
        undeclared == ten && declared == ten,
    )
}

pub(super) async fn call_with_arguments(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut redis, key) = (on.redis().await?, own("bbb"));
    let set = eval(
        &mut redis,
        "return redis.call('set', KEYS[1], ARGV[1])",
        &[&key],
        &["20"],
    )
    .await;
    let left: Option<i64> = ask(&mut redis, &["GET", &key]).await?;
    ask::<()>(&mut redis, &["DEL", &key]).await?;
    told(&[("set", &set)], set == Ok(Value::Okay) && left == Some(20))
}

pub(super) async fn pcall(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut redis, bbb, ccc) = (on.redis().await?, own("bbb"), own("ccc"));
    let mut done = Vec::new();
    for call in ["call", "pcall"] {
        // `sets` is no command.
        let script = format!(
            "return redis.{call}('sets', KEYS[1], ARGV[1]), redis.{call}('set', KEYS[2], ARGV[2])"
        );
        let said = eval(&mut redis, &script, &[&bbb, &ccc], &["20", "30"]).await;
        let left: Option<i64> = ask(&mut redis, &["GET", &ccc]).await?;
        done.push((said.is_err(), left));
    }
    ask::<()>(&mut redis, &["DEL", &bbb, &ccc]).await?;
    let [after_call, after_pcall] =
        [0, 1].map(|n: usize| done[n].1.map_or("-".to_owned(), |left| left.to_string()));
    let words = Words::new(
        format!("call 之后 ccc 是 {after_call}，pcall 之后是 {after_pcall}；两次都返回错误。"),
        format!(
            "After call ccc is {after_call}, after pcall it is {after_pcall}; both return the error."
        ),
    );
    Ok(Seen::holds(done == [(true, None), (true, Some(30))], words))
}

/// What a script gives: its value, or the error in Redis' words.
async fn eval(
    redis: &mut MultiplexedConnection,
    script: &str,
    keys: &[&str],
    arguments: &[&str],
) -> Result<Value, String> {
    let mut eval = redis::cmd("EVAL");
    eval.arg(script).arg(keys.len()).arg(keys).arg(arguments);
    eval.query_async(redis)
        .await
        .map_err(|error: RedisError| error.to_string())
}

/// What was sent and what came back, as words.
fn told(asked: &[(&str, &Result<Value, String>)], holds: bool) -> Result<Seen, NoVerdict> {
    let answer = |answer: &Result<Value, String>| match answer {
        Ok(Value::Int(number)) => number.to_string(),
        Ok(value) => redis::from_redis_value::<Vec<String>>(value.clone())
            .map_or_else(|_| format!("{value:?}"), |texts| texts.join(" ")),
        Err(error) => error.clone(),
    };
    let lines: Vec<_> = asked
        .iter()
        .map(|(sent, got)| format!("{sent} → {}", answer(got)))
        .collect();
    Ok(Seen::holds(holds, Words::same(lines.join("; "))))
}
