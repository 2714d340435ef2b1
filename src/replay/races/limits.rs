//! [003] A limit in each instance is no limit of all.
//!
//! 1. A, B and C are three instances. Each has a token bucket of its own, of ten tokens, and is asked ten times.
//! 2. Each lets ten through: thirty in all, where ten were meant.
//!
//! On its cure they share one limiter in Redis: ten are let through, whoever asks.
//!
//! (Both belong to the replay, so that nobody else takes of them; the shared one lets ten through in a minute, so that the
//! result is not left to the clock.)
//!
//! What it survives: with the shared limiter, any number of instances. **What breaks it**: a Redis that is down: nobody is let
//! through.
//!
//! Next: `dead_row.rs`.

use crate::bilingual::Bilingual;
use crate::{
    classroom::limits::{Bucket, pass_limiter},
    ctx::Ctx,
    error::Error,
    replay::{Ends, Line, Replay, acts::Act, play::Play},
    section::{Deducted, Job, Point},
};
use std::time::Duration;

/// So often each instance is asked.
const ASKED: i64 = 10;
/// How long the shared limiter remembers whom it has let through.
const WINDOW: Duration = Duration::from_secs(60);

pub(super) const REPLAY: Replay = Replay {
    lesson: "003.limits",
    title: Bilingual {
        zh: "每台各限十个，一共放过三十个",
        en: "Ten in each instance are thirty in all",
    },
    breaks: Bilingual {
        zh: "令牌桶在进程里，每台一个",
        en: "the token bucket is the process's: each instance has one",
    },
    cure: Bilingual {
        zh: "限流器放到 Redis 里，大家共用",
        en: "the limiter is in Redis, which all share",
    },
    runs: [ACTS[0].name, ACTS[1].name],
    ends: [
        Ends::saw("30 let through", "放行 30 个", "30 let through"),
        Ends::saw("10 let through", "放行 10 个", "10 let through"),
    ],
    needs: &[],
    play: |play, act| Box::pin(played(play, act)),
};

/// Ten requests to one instance, under either limit.
pub(in crate::replay) const ACTS: &[Act] = &[
    Act {
        name: "token-bucket",
        names: &[],
        store: None,
        run: |_, job| Box::pin(in_one(job)),
    },
    Act {
        name: "shared-limiter",
        names: &[],
        store: None,
        run: |ctx, job| Box::pin(in_all(ctx, job)),
    },
];

async fn in_one(job: &Job) -> Result<Deducted, Error> {
    let bucket = Bucket::default();
    let mut let_through = 0;
    for _ in 0..ASKED {
        let_through += answered(job, bucket.pass()).await?;
    }
    Ok(counted(let_through))
}

async fn in_all(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let limiter = limiter(job.request.stock_id);
    let mut let_through = 0;
    for _ in 0..ASKED {
        let_through += answered(job, pass_limiter(ctx, &limiter, WINDOW).await).await?;
    }
    Ok(counted(let_through))
}

/// The name of a replay's own limiter.
fn limiter(stock_id: i64) -> String {
    format!("replay:{stock_id}")
}

async fn answered(job: &Job, passed: Result<(), Error>) -> Result<i64, Error> {
    let is_through = match passed {
        Ok(()) => true,
        Err(Error::Limited) => false,
        Err(error) => return Err(error),
    };
    job.at(if is_through {
        Point::LetThrough
    } else {
        Point::Limited
    })
    .await;
    Ok(i64::from(is_through))
}

fn counted(let_through: i64) -> Deducted {
    Deducted {
        remaining: Some(let_through),
        fence: None,
        retries: 0,
        lock: None,
    }
}

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    let mut let_through = 0;
    for (instance, letter) in ['A', 'B', 'C'].into_iter().enumerate() {
        play.step(
            format!(
                "向第 {} 台实例连发 {ASKED} 个请求（{letter}）",
                instance + 1
            ),
            format!("{letter}: {ASKED} requests to instance {}", instance + 1),
        )
        .await?;
        if let Line::Done {
            remaining: Some(n), ..
        } = play
            .side(&[], letter, instance, act, None)
            .await?
            .ends()
            .await?
        {
            let_through += n;
        }
    }
    play.step(
        format!("一共放过 {let_through} 个"),
        format!("{let_through} were let through in all"),
    )
    .await?;
    play.saw = format!("{let_through} let through");
    // The window ends by itself, the limiter stays until it is deleted.
    let key = format!(
        "oversell_rate:{{{}}}",
        play.ctx.redis_key(&limiter(play.stock_id))
    );
    redis::cmd("DEL")
        .arg(key)
        .exec_async(&mut play.ctx.redis.connection())
        .await?;
    Ok(())
}
