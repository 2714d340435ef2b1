//! [003] A limit in each instance is no limit of all.
//!
//! 1. A, B and C are three instances. Each has a token bucket of its own, of ten tokens, and is asked ten times.
//! 2. Each lets ten through: thirty in all, where ten were meant.
//!
//! On its cure they share one limiter in Redis: ten are let through, whoever asks.
//!
//! (Both belong to the replay, so that nobody else uses them up; the shared one lets ten through in a minute, so that the
//! clock does not decide.)
//!
//! What it survives: with the shared limiter, any number of instances. **What breaks it**: a Redis that is down lets nobody in.
//!
//! Next: `dead_row.rs`.

use super::*;
use crate::{
    classroom::limits::{Bucket, pass_limiter},
    section::names,
};

/// The number of requests of each actor: the tokens of one bucket.
const REQUESTS: i64 = 10;
/// The window of the shared limiter.
const WINDOW: Duration = Duration::from_secs(60);

pub(super) const RACE: Race = Race {
    lessons: &["003.limits"],
    title: Bilingual::of("每个实例各限十个，一共放行三十个", "Ten in each instance are thirty in all"),
    breaks: Bilingual::of("令牌桶在进程内，每个实例一个", "the token bucket is the process's: each instance has one"),
    cure: Bilingual::of("限流器放到 Redis 里，大家共用", "the limiter is in Redis, which all share"),
    anomalies: &[Anomaly::OverLimit],
    begin: &[
        say("向第 1 个实例连发 10 个请求（A）", "A: 10 requests to instance 1"),
        A.finishes(),
        say("向第 2 个实例连发 10 个请求（B）", "B: 10 requests to instance 2"),
        B.finishes(),
        say("向第 3 个实例连发 10 个请求（C）", "C: 10 requests to instance 3"),
        C.finishes(),
    ],
    flaw: Variant {
        act: Act::custom("token-bucket", &[], |_, job| Box::pin(pass_bucket(job))),
        steps: &[say("一共放过 30 个", "30 were let through in all"), NoteFrom(let_through_note)],
        expected: ExpectedResult::NOTHING.noting("30 let through", "放行 30 个", "30 let through"),
    },
    cured: Variant {
        act: Act::custom("shared-limiter", &[], |ctx, job| Box::pin(pass_shared_limiter(ctx, job))),
        steps: &[
            say("一共放过 10 个", "10 were let through in all"),
            NoteFrom(let_through_note),
            Custom(|play| Box::pin(delete_limiter(play))),
        ],
        expected: ExpectedResult::NOTHING.noting("10 let through", "放行 10 个", "10 let through"),
    },
};

/// Sends all requests to a new bucket of this actor's own, and reports how many it let through.
async fn pass_bucket(job: &Job) -> Result<Deduction, Error> {
    let bucket = Bucket::default();
    let mut let_through = 0;
    for _ in 0..REQUESTS {
        let_through += report_admission(job, bucket.pass()).await?;
    }
    Ok(report_count(let_through))
}

/// Sends all requests to the limiter in Redis that all actors share, and reports how many it let through.
async fn pass_shared_limiter(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let limiter = limiter_name(job.request.stock_id);
    let mut let_through = 0;
    for _ in 0..REQUESTS {
        let_through += report_admission(job, pass_limiter(ctx, &limiter, WINDOW).await).await?;
    }
    Ok(report_count(let_through))
}

/// Reports a count as the number that an actor reports at its end: what a strategy says is left.
fn report_count(count: i64) -> Deduction {
    Deduction::remaining(count)
}

/// The limiter's name, which no other replay has.
fn limiter_name(stock_id: i64) -> String {
    format!("replay:{stock_id}")
}

/// Passes the point of the answer. Returns 1 if the limit let the request through, else 0.
async fn report_admission(job: &Job, passed: Result<(), Error>) -> Result<i64, Error> {
    let is_through = match passed {
        Ok(()) => true,
        Err(Error::Limited) => false,
        Err(error) => return Err(error),
    };
    job.reach(if is_through { Point::LetThrough } else { Point::Limited }).await;
    Ok(i64::from(is_through))
}

/// How many requests of all actors were let through, as a note.
fn let_through_note(play: &Play) -> String {
    format!("{} let through", play.reported_numbers().sum::<i64>())
}

/// Deletes the key of the limiter, which stays after its window has ended.
async fn delete_limiter(play: &Play) -> Result<(), Error> {
    let key = play.ctx.redis_key(&limiter_name(play.stock_id));
    redis::cmd("DEL")
        .arg(format!("oversell_rate:{}", names::in_braces(&key)))
        .exec_async(&mut play.ctx.redis.connection())
        .await?;
    Ok(())
}
