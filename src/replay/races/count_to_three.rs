//! §2.4.1 A and B each set a counter to 0, count to three, and look.
//!
//! 1. A counts to three; B sets the counter to 0; A looks: 0. B counts to three and looks: 3.
//! 2. Both set it to 0; both count to three; both look: 6 each.
//!
//! These are the two ends of what is possible: Redis runs each command alone, and anything between the commands. On its cure
//! the five commands are one script, between whose lines nothing runs: both see 3, whoever comes first.
//!
//! Next: `compare_and_delete.rs`.

use crate::bilingual::Bilingual;
use crate::{
    ctx::Ctx,
    error::Error,
    replay::{Ends, Replay, actor::Line, acts::Act, play::Play},
    section::{Deducted, Job, Name, Point},
};
use redis::Script;
use std::sync::LazyLock;

/// The counter, which both have.
const COUNTER: &str = "counter";
const NAMES: &[Name] = &[Name::RedisCount(COUNTER)];
const FLAWED: &str = "count-by-commands";
const CURED: &str = "count-by-script";

static SCRIPT: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("../lua/count_to_three.lua")));

pub(in crate::replay) const ACTS: &[Act] = &[
    Act {
        name: FLAWED,
        names: NAMES,
        store: None,
        run: |ctx, job| Box::pin(by_commands(ctx, job)),
    },
    Act {
        name: CURED,
        names: NAMES,
        store: None,
        run: |ctx, job| Box::pin(by_script(ctx, job)),
    },
];

pub(super) const REPLAY: Replay = Replay {
    lesson: "2.4.1",
    title: Bilingual {
        zh: "各自从 0 数到 3，看到的却是 0 到 6",
        en: "Each counts from 0 to 3, and sees 0 to 6",
    },
    breaks: Bilingual {
        zh: "一条命令是原子的，五条就不是",
        en: "one command is atomic, five of them are not",
    },
    cure: Bilingual {
        zh: "五条命令写成一段脚本",
        en: "the five commands are one script",
    },
    runs: [FLAWED, CURED],
    ends: [
        Ends::saw(
            "0 3, 6 6",
            "第 1 次，A 看到 0，B 看到 3；第 2 次，A 看到 6，B 看到 6",
            "time 1: A saw 0 and B saw 3; time 2: A saw 6 and B saw 6",
        ),
        Ends::saw(
            "3 3, 3 3",
            "两次，A 和 B 看到的都是 3",
            "both times A and B saw 3",
        ),
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

async fn by_commands(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let (mut redis, key) = (
        ctx.redis.connection(),
        ctx.redis_key(&job.redis_name(COUNTER)),
    );
    redis::cmd("SET")
        .arg(&key)
        .arg(0)
        .exec_async(&mut redis)
        .await?;
    job.tell(Point::Set, 0).await;
    for _ in 0..3 {
        let count: i64 = redis::cmd("INCR").arg(&key).query_async(&mut redis).await?;
        job.tell(Point::Incr, count).await;
    }
    job.at(Point::Counted).await;
    done(
        job,
        redis::cmd("GET").arg(&key).query_async(&mut redis).await?,
    )
    .await
}

async fn by_script(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let key = ctx.redis_key(&job.redis_name(COUNTER));
    done(
        job,
        SCRIPT
            .key(key)
            .invoke_async(&mut ctx.redis.connection())
            .await?,
    )
    .await
}

async fn done(job: &Job, seen: i64) -> Result<Deducted, Error> {
    job.tell(Point::Read, seen).await;
    Ok(Deducted {
        remaining: Some(seen),
        fence: None,
        retries: 0,
        lock: None,
    })
}

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    if act == CURED {
        play.step("A 和 B 各发一段脚本", "A and B each send a script")
            .await?;
        let first = both(play, act).await?;
        play.step(
            "再来一次：谁先谁后都是 3",
            "once more: 3, whoever comes first",
        )
        .await?;
        let second = both(play, act).await?;
        play.saw = format!("{first}, {second}");
        return Ok(());
    }
    play.step(
        "A 从 0 数到 3，还没看",
        "A counts from 0 to 3, and has not looked yet",
    )
    .await?;
    let mut a = play.side_at(Point::Counted, 'A', 0, act, None).await?;
    play.step("B 把它设成 0", "B sets it to 0").await?;
    let mut b = play.side_at(Point::Set, 'B', 1, act, None).await?;
    play.step(
        "A 看到 0；B 接着数，看到 3",
        "A sees 0; B counts on, and sees 3",
    )
    .await?;
    let first = format!("{} {}", seen(&a.ends().await?), seen(&b.ends().await?));
    play.step(
        "再来一次：两个人都先设成 0",
        "once more: both set it to 0 first",
    )
    .await?;
    let mut a = play.side_at(Point::Set, 'A', 0, act, None).await?;
    let mut b = play.side_at(Point::Set, 'B', 1, act, None).await?;
    play.step("两个人各加三次", "both count by three").await?;
    a.to(Point::Counted).await?;
    b.to(Point::Counted).await?;
    play.step("两个人看到的都是 6", "both see 6").await?;
    play.saw = format!(
        "{first}, {} {}",
        seen(&a.ends().await?),
        seen(&b.ends().await?)
    );
    Ok(())
}

/// Both at once: what they see.
async fn both(play: &Play, act: &str) -> Result<String, Error> {
    let mut a = play.side(&[], 'A', 0, act, None).await?;
    let mut b = play.side(&[], 'B', 1, act, None).await?;
    Ok(format!(
        "{} {}",
        seen(&a.ends().await?),
        seen(&b.ends().await?)
    ))
}

/// What it has read at its end; its end where that was another.
fn seen(end: &Line) -> String {
    match end {
        Line::Done {
            remaining: Some(count),
            ..
        } => count.to_string(),
        other => format!("{other:?}"),
    }
}
