//! §2.4 and §2.5: what one command is and several are not, EVAL, and the unlock as a script.

use super::{ask, own};
use crate::bilingual::Bilingual;
use crate::course::{
    Cluster, Lesson, Line, NoVerdict, Run, Seen, Target, Words, experiments::exact,
    replay::flaw_and_cure,
};
use futures::future::try_join_all;
use redis::{RedisError, Value, aio::MultiplexedConnection};
use std::collections::BTreeSet;

const COUNT_TO_THREE_LUA: &str = include_str!("../../replay/lua/count_to_three.lua");

pub(super) const ATOMIC: Lesson = Lesson {
    id: "2.4",
    title: Bilingual {
        zh: "脚本是原子的",
        en: "A script is atomic",
    },
    claim: Bilingual {
        zh: "一段脚本运行时，别的脚本和命令都不会运行：把判断和扣减写进脚本，不用锁也不超卖",
        en: "While a script runs, no other script or command does: check and deduct in a script, and nothing is oversold without a lock",
    },
    place: "000 §2.4.1",
    strategies: &["redis-script"],
    tries: &["/check/lock/redis-script?who={who}"],
    quick: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            "curl -sZ --parallel-max 100 -o /dev/null '{http}/check/lock/redis-script?who=[1-500]'",
            "",
        ),
        Line::new("redis-cli {redis} get stock", "4500"),
    ],
    run: Run::Experiment(|on| Box::pin(exact(on, "redis-script", &[Target::Three]))),
    ..Lesson::PLAIN
};

pub(super) const COUNT_TO_THREE: Lesson = Lesson {
    id: "2.4.1",
    title: Bilingual {
        zh: "从 0 数到 3",
        en: "From 0 to 3",
    },
    claim: Bilingual {
        zh: "A、B 各自把计数器设为 0、加三次、再看：一个接一个时都是 3，并发时可能是 0 到 6；写成脚本就总是 3",
        en: "A and B each set a counter to 0, add one three times and look: one after the other both see 3, at the same time anything from 0 to 6; as a script always 3",
    },
    place: "000 §2.4.1",
    replay: Some("2.4.1"),
    quick: true,
    by_hand: &[
        Line::new("redis-cli {redis} set counter 0", "OK"),
        Line::new("redis-cli {redis} -r 3 incr counter", "1\n2\n3"),
        Line::at(2, "redis-cli {redis} set counter 0", "OK"),
        Line::new("redis-cli {redis} get counter", "0"),
        Line::at(2, "redis-cli {redis} -r 3 incr counter", "1\n2\n3"),
        Line::at(2, "redis-cli {redis} get counter", "3"),
        Line::new("redis-cli {redis} del counter", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(count_to_three(on))),
    ..Lesson::PLAIN
};

/// Every order in which five commands of each can come; then a hundred who send a script.
async fn count_to_three(on: &Cluster) -> Result<Seen, NoVerdict> {
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

pub(super) const NO_ROLLBACK: Lesson = Lesson {
    id: "2.4.1.multi",
    title: Bilingual {
        zh: "MULTI 不回滚",
        en: "MULTI does not roll back",
    },
    claim: Bilingual {
        zh: "MULTI/EXEC 里有一条命令报错（给字符串自增），其他的照样执行，不会回滚",
        en: "In MULTI/EXEC one command fails (INCR of a text), and the others are done all the same: nothing is rolled back",
    },
    place: "000 §2.4.1",
    by_hand: &[
        Line::new(
            r"printf 'multi\nset word:by-hand abc\nincr word:by-hand\nset other:by-hand 1\nexec\n' | redis-cli {redis}",
            "OK\nQUEUED\nQUEUED\nQUEUED\nOK\nERR value is not an integer…OK",
        ),
        Line::new("redis-cli {redis} get other:by-hand", "1"),
        Line::new("redis-cli {redis} del word:by-hand other:by-hand", "2"),
    ],
    run: Run::Experiment(|on| Box::pin(no_rollback(on))),
    ..Lesson::PLAIN
};

async fn no_rollback(on: &Cluster) -> Result<Seen, NoVerdict> {
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

pub(super) const SMALL: Lesson = Lesson {
    id: "2.4.2",
    title: Bilingual {
        zh: "Lua 很小",
        en: "Lua is small",
    },
    claim: Bilingual {
        zh: "Lua 编译后只有一百多 K，容易嵌入",
        en: "Lua is a little over 100 KB, and easy to embed",
    },
    place: "000 §2.4.2",
    run: Run::NotRun(Bilingual {
        zh: "说的是 Lua 自己，不是锁；这里的 Lua 编译在 Redis 里面",
        en: "this is about Lua itself and no lock; the Lua here is compiled into Redis",
    }),
    ..Lesson::PLAIN
};

pub(super) const LOCAL_VARIABLES: Lesson = Lesson {
    id: "2.4.3",
    title: Bilingual {
        zh: "只有局部变量",
        en: "Local variables only",
    },
    claim: Bilingual {
        zh: "Redis 的脚本只支持局部变量",
        en: "In Redis a script may have local variables only",
    },
    place: "000 §2.4.3",
    by_hand: &[
        Line::new("redis-cli {redis} eval 'a = 5 return a' 0", "ERR …"),
        Line::new("redis-cli {redis} eval 'local a = 5 return a' 0", "5"),
    ],
    run: Run::Experiment(|on| Box::pin(local_variables(on))),
    ..Lesson::PLAIN
};

async fn local_variables(on: &Cluster) -> Result<Seen, NoVerdict> {
    let mut redis = on.redis().await?;
    let global = eval(&mut redis, "a = 5 return a", &[], &[]).await;
    let local = eval(&mut redis, "local a = 5 return a", &[], &[]).await;
    told(
        &[("a = 5", &global), ("local a = 5", &local)],
        global.is_err() && local == Ok(Value::Int(5)),
    )
}

pub(super) const A_NUMBER: Lesson = Lesson {
    id: "2.4.4.1",
    title: Bilingual {
        zh: "EVAL 案例 1：返回 10",
        en: "EVAL 1: returns 10",
    },
    claim: Bilingual {
        zh: "EVAL \"return 10\" 0 得到整数 10",
        en: "EVAL \"return 10\" 0 gives the number 10",
    },
    place: "000 §2.4.4",
    by_hand: &[Line::new("redis-cli {redis} eval 'return 10' 0", "10")],
    run: Run::Experiment(|on| Box::pin(a_number(on))),
    ..Lesson::PLAIN
};

async fn a_number(on: &Cluster) -> Result<Seen, NoVerdict> {
    let ten = eval(&mut on.redis().await?, "return 10", &[], &[]).await;
    told(&[("return 10", &ten)], ten == Ok(Value::Int(10)))
}

const FIVE_KEYS: &str = "return {KEYS[1],KEYS[2],ARGV[1],ARGV[2]}";
const GREATER: &str = "return KEYS[1] > ARGV[1] and 1 or 0";

pub(super) const ARGUMENTS: Lesson = Lesson {
    id: "2.4.4.2",
    title: Bilingual {
        zh: "EVAL 案例 2：KEYS 和 ARGV",
        en: "EVAL 2: KEYS and ARGV",
    },
    claim: Bilingual {
        zh: "numkeys 是 5 时前五个进 KEYS、其余进 ARGV：输出 10 20 60 70；10 比 20 大吗：0，反过来：1",
        en: "With numkeys 5 the first five are KEYS and the others ARGV: 10 20 60 70; is 10 greater than 20: 0, the other way round: 1",
    },
    place: "000 §2.4.4",
    by_hand: &[
        Line::new(
            "redis-cli {redis} eval 'return {KEYS[1],KEYS[2],ARGV[1],ARGV[2]}' 5 10 20 30 40 50 60 70 80 90",
            "10\n20\n60\n70",
        ),
        Line::new(
            "redis-cli {redis} eval 'return KEYS[1] > ARGV[1] and 1 or 0' 1 10 20",
            "0",
        ),
        Line::new(
            "redis-cli {redis} eval 'return KEYS[1] > ARGV[1] and 1 or 0' 1 20 10",
            "1",
        ),
        Line::new(
            "redis-cli {redis} eval 'return KEYS[1] > ARGV[1] and 1 or 0' 1 9 10",
            "1",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(arguments(on))),
    ..Lesson::PLAIN
};

async fn arguments(on: &Cluster) -> Result<Seen, NoVerdict> {
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

pub(super) const CALL: Lesson = Lesson {
    id: "2.4.4.3",
    title: Bilingual {
        zh: "EVAL 案例 3：redis.call",
        en: "EVAL 3: redis.call",
    },
    claim: Bilingual {
        zh: "脚本里用 redis.call('get', …) 读键并返回；键应由 KEYS 传入，但不强制",
        en: "A script reads a key by redis.call('get', …) and returns it; keys should be passed in KEYS, but need not",
    },
    place: "000 §2.4.4",
    by_hand: &[
        Line::new("redis-cli {redis} set aaa:by-hand 10", "OK"),
        Line::new(
            r#"redis-cli {redis} eval "return redis.call('get', 'aaa:by-hand')" 0"#,
            "10",
        ),
        Line::new("redis-cli {redis} del aaa:by-hand", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(call(on))),
    ..Lesson::PLAIN
};

async fn call(on: &Cluster) -> Result<Seen, NoVerdict> {
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

pub(super) const CALL_WITH_ARGUMENTS: Lesson = Lesson {
    id: "2.4.4.4",
    title: Bilingual {
        zh: "EVAL 案例 4：带参数的 set",
        en: "EVAL 4: set with arguments",
    },
    claim: Bilingual {
        zh: "redis.call('set', KEYS[1], ARGV[1]) 把 20 写进 bbb，得到 OK",
        en: "redis.call('set', KEYS[1], ARGV[1]) writes 20 into bbb, and gives OK",
    },
    place: "000 §2.4.4",
    by_hand: &[
        Line::new(
            r#"redis-cli {redis} eval "return redis.call('set', KEYS[1], ARGV[1])" 1 bbb:by-hand 20"#,
            "OK",
        ),
        Line::new("redis-cli {redis} get bbb:by-hand", "20"),
        Line::new("redis-cli {redis} del bbb:by-hand", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(call_with_arguments(on))),
    ..Lesson::PLAIN
};

async fn call_with_arguments(on: &Cluster) -> Result<Seen, NoVerdict> {
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

pub(super) const PCALL: Lesson = Lesson {
    id: "2.4.4.5",
    title: Bilingual {
        zh: "EVAL 案例 5：call 和 pcall",
        en: "EVAL 5: call and pcall",
    },
    claim: Bilingual {
        zh: "call 出错，脚本停下，后面的 set 不做；pcall 出错，后面的 set 照做",
        en: "Where call fails, the script stops and the set after it is not done; where pcall fails, it is done",
    },
    place: "000 §2.4.4",
    by_hand: &[
        Line::new(
            r#"redis-cli {redis} eval "return redis.call('sets', KEYS[1], ARGV[1]), redis.call('set', KEYS[2], ARGV[2])" 2 bbb:by-hand ccc:by-hand 20 30"#,
            "ERR …",
        ),
        Line::new("redis-cli {redis} exists ccc:by-hand", "0"),
        Line::new(
            r#"redis-cli {redis} eval "return redis.pcall('sets', KEYS[1], ARGV[1]), redis.pcall('set', KEYS[2], ARGV[2])" 2 bbb:by-hand ccc:by-hand 20 30"#,
            "ERR …",
        ),
        Line::new("redis-cli {redis} get ccc:by-hand", "30"),
        Line::new("redis-cli {redis} del ccc:by-hand", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(pcall(on))),
    ..Lesson::PLAIN
};

async fn pcall(on: &Cluster) -> Result<Seen, NoVerdict> {
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

pub(super) const COMPARE_AND_DELETE: Lesson = Lesson {
    id: "2.5",
    title: Bilingual {
        zh: "用脚本比较并删除",
        en: "Compare and delete as a script",
    },
    claim: Bilingual {
        zh: "判断和删除写成一段脚本，租约什么时候到期都删不到别人的锁",
        en: "With compare and delete as one script nobody deletes another's lock, whenever the lease ends",
    },
    place: "000 §2.5",
    strategies: &["redis-setnx-lua"],
    replay: Some("2.5"),
    quick: true,
    by_hand: &[
        Line::new("redis-cli {redis} set lock:by-hand B ex 60 nx", "OK"),
        Line::new(
            r#"redis-cli {redis} eval "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])" 1 lock:by-hand A"#,
            "0",
        ),
        Line::at(
            2,
            r#"redis-cli {redis} eval "if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])" 1 lock:by-hand B"#,
            "1",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "2.5"))),
    ..Lesson::PLAIN
};

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
