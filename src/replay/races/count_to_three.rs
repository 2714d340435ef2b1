//! §2.4.1 A and B each set a counter to 0, count to three, and look.
//!
//! 1. A counts to three; B sets the counter to 0; A looks: 0. B counts to three and looks: 3.
//! 2. Both set it to 0; both count to three; both look: 6 each.
//!
//! These are the two ends of what is possible: Redis runs each command alone, and anything between the commands. On its cure
//! the five commands are one script, between whose lines nothing runs: both see 3, whoever comes first.
//!
//! Next: `compare_and_delete.rs`.

use super::*;
use crate::section::lua;
use redis::Script;
use std::sync::LazyLock;

/// The counter that A and B share.
const COUNTER: &str = "counter";
/// The names that the acts write, and a reset clears.
const NAMES: &[Name] = &[Name::RedisCount(COUNTER)];

static SCRIPT: LazyLock<Script> = LazyLock::new(|| lua::script(include_str!("../lua/count_to_three.lua")));

pub(super) const RACE: Race = Race {
    lessons: &["2.4.1"],
    title: Bilingual::of("各自从 0 数到 3，看到的却是 0 到 6", "Each counts from 0 to 3, and sees 0 to 6"),
    breaks: Bilingual::of("一条命令是原子的，五条就不是", "one command is atomic, five of them are not"),
    cure: Bilingual::of("五条命令写成一段脚本", "the five commands are one script"),
    anomalies: &[Anomaly::Interleaved],
    begin: &[],
    flaw: Variant {
        act: Act::custom("count-by-commands", NAMES, |ctx, job| Box::pin(count_by_commands(ctx, job))),
        steps: &[
            say("A 从 0 数到 3，还没看", "A counts from 0 to 3, and has not looked yet"),
            A.stops_at(Point::Counted),
            say("B 把它设成 0", "B sets it to 0"),
            B.stops_at(Point::Set),
            say("A 看到 0；B 接着数，看到 3", "A sees 0; B counts on, and sees 3"),
            A.finishes(),
            B.finishes(),
            say("再来一次：两个人都先设成 0", "once more: both set it to 0 first"),
            A.stops_at(Point::Set),
            B.stops_at(Point::Set),
            say("两个人各加三次", "both count by three"),
            A.stops_at(Point::Counted),
            B.stops_at(Point::Counted),
            say("两个人看到的都是 6", "both see 6"),
            A.finishes(),
            B.finishes(),
            NoteFrom(seen_counts),
        ],
        expected: ExpectedResult::NOTHING.noting(
            "0 3, 6 6",
            "第 1 次，A 看到 0，B 看到 3；第 2 次，A 看到 6，B 看到 6",
            "time 1: A saw 0 and B saw 3; time 2: A saw 6 and B saw 6",
        ),
    },
    cured: Variant {
        act: Act::custom("count-by-script", NAMES, |ctx, job| Box::pin(count_by_script(ctx, job))),
        steps: &[
            say("A 和 B 各发一段脚本", "A and B each send a script"),
            A.continues(),
            B.continues(),
            A.finishes(),
            B.finishes(),
            say("再来一次：谁先谁后都是 3", "once more: 3, whoever comes first"),
            A.continues(),
            B.continues(),
            A.finishes(),
            B.finishes(),
            NoteFrom(seen_counts),
        ],
        expected: ExpectedResult::NOTHING.noting("3 3, 3 3", "两次，A 和 B 看到的都是 3", "both times A and B saw 3"),
    },
};

/// Sets the counter to 0, increments it three times and reads it, by five commands; another actor can come between any two.
async fn count_by_commands(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let (mut redis, key) = (ctx.redis.connection(), ctx.redis_key(&job.redis_name(COUNTER)));
    redis::cmd("SET").arg(&key).arg(0).exec_async(&mut redis).await?;
    job.reach_with(Point::Set, 0).await;
    for _ in 0..3 {
        let count: i64 = redis::cmd("INCR").arg(&key).query_async(&mut redis).await?;
        job.reach_with(Point::Incr, count).await;
    }
    job.reach(Point::Counted).await;
    report_end(job, redis::cmd("GET").arg(&key).query_async(&mut redis).await?).await
}

/// Does the same five commands as one script.
async fn count_by_script(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let key = ctx.redis_key(&job.redis_name(COUNTER));
    report_end(job, SCRIPT.key(key).invoke_async(&mut ctx.redis.connection()).await?).await
}

/// Passes the point `read` with the count that was seen, which is also the number that the actor reports at its end.
async fn report_end(job: &Job, seen: i64) -> Result<Deduction, Error> {
    job.reach_with(Point::Read, seen).await;
    Ok(Deduction::remaining(seen))
}

/// The counts that A and B saw, round by round.
fn seen_counts(play: &Play) -> String {
    let seen: Vec<_> = play.reported_numbers().map(|count| count.to_string()).collect();
    let times: Vec<_> = seen.chunks(2).map(|both| both.join(" ")).collect();
    times.join(", ")
}
