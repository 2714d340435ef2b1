//! The global ids, one by one and in batches, against bare `INCR` commands: from as many tasks, on the same connection.

use super::{Bench, CEILING_TIME, direct::failed, figure::Figure};
use crate::{config::Config, ctx::Ctx, failure::Failure, seckill::id_worker};
use futures::future::try_join_all;
use std::time::{Duration, Instant};

/// Keeps the keys apart from those of the instances.
const PREFIX: &str = "oversell-bench:";
/// How many ask at once.
const TASKS: usize = 100;
/// Ids of a batch.
const BATCH: u32 = 100;

/// How ids are had, and what each way must reach of bare commands.
const WAYS: [(Way, f64, &str); 2] = [
    (Way::Single, 0.8, "one command for each"),
    (Way::Batch, 20.0, "one command for 100"),
];

/// What a round measures.
pub(super) const STEPS: usize = 1 + WAYS.len();

/// How numbers are had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `INCR` alone.
    Incr,
    /// An id for each command.
    Single,
    /// Many ids for each command.
    Batch,
}

impl Way {
    const fn name(self) -> &'static str {
        match self {
            Self::Incr => "INCR alone",
            Self::Single => "ids, one by one",
            Self::Batch => "ids, in batches of 100",
        }
    }
}

/// A client of Redis.
pub(super) struct Ids(Ctx);

impl Ids {
    /// A client of the Redis at `url`; connects when first used.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where `url` is not an address.
    pub(super) fn new(url: &str) -> Result<Self, Failure> {
        let config = Config::load(&[
            ("redis.url", url.to_owned()),
            ("redis.prefix", PREFIX.to_owned()),
        ]);
        Ok(Self(Ctx::new(config.map_err(failed)?).map_err(failed)?))
    }

    /// Numbers in a second, measured for so long.
    async fn per_second(&self, way: Way, time: Duration) -> Result<f64, Failure> {
        let begun = Instant::now();
        let tasks = (0..TASKS).map(|_| {
            let ctx = self.0.clone();
            tokio::spawn(async move {
                let mut numbers = 0;
                while begun.elapsed() < time {
                    numbers += once(&ctx, way).await?;
                }
                Ok::<_, Failure>(numbers)
            })
        });
        let numbers = try_join_all(tasks).await.map_err(failed)?;
        let numbers: u32 = numbers.into_iter().sum::<Result<_, _>>()?;
        Ok(f64::from(numbers) / begun.elapsed().as_secs_f64())
    }

    /// Takes away what is not bound to go by itself, and closes the client.
    pub(super) async fn close(self) {
        let gone = redis::cmd("DEL")
            .arg(self.0.redis_key("incr"))
            .exec_async(&mut self.0.redis.connection())
            .await;
        if let Err(error) = gone {
            tracing::debug!(%error, "{PREFIX}incr is left");
        }
        self.0.close(Duration::from_secs(1)).await;
    }
}

/// Every way to have numbers, once.
pub(super) async fn round(bench: &mut Bench<'_>, ids: &Ids) -> Result<(), Failure> {
    for way in [Way::Incr].into_iter().chain(WAYS.map(|(way, ..)| way)) {
        bench
            .note(way.name(), ids.per_second(way, CEILING_TIME))
            .await?;
    }
    Ok(())
}

/// What was measured comes to.
pub(super) fn figures(bench: &Bench<'_>) -> impl Iterator<Item = Figure> {
    WAYS.into_iter().map(|(way, least, bounded_by)| {
        let (name, incr) = (way.name(), Way::Incr.name());
        Figure::ratio(name, bench.rates(name), incr, bench.rates(incr), least)
            .bounded_by(bounded_by)
    })
}

async fn once(ctx: &Ctx, way: Way) -> Result<u32, Failure> {
    let count = if way == Way::Batch { BATCH } else { 1 };
    if way == Way::Incr {
        let mut redis = ctx.redis.connection();
        redis::cmd("INCR")
            .arg(ctx.redis_key("incr"))
            .exec_async(&mut redis)
            .await
            .map_err(failed)?;
    } else {
        id_worker::batch(ctx, "bench", count)
            .await
            .map_err(failed)?;
    }
    Ok(count)
}
