//! The global ids, one by one and in batches, against bare `INCR` commands: from as many tasks, on the same connection.

use super::repeat::{Repeated, failed, per_second};
use crate::{config::Config, ctx::Ctx, failure::Failure, seckill::id_worker};
use std::time::Duration;

/// Keeps the keys apart from those of the instances.
const PREFIX: &str = "oversell-bench:";
/// How many ask at once.
const TASKS: usize = 100;
/// Ids of a batch.
const BATCH: u32 = 100;

/// How numbers are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// `INCR` alone.
    Incr,
    /// An id for each command.
    Single,
    /// Many ids for each command.
    Batch,
}

impl Way {
    pub(super) const fn name(self) -> &'static str {
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
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where Redis does not answer.
    pub(super) async fn per_second(&self, way: Way, time: Duration) -> Result<f64, Failure> {
        per_second((0..TASKS).map(|_| Asker(self.0.clone(), way)), time).await
    }

    /// Removes the key that does not expire, and closes the client.
    pub(super) async fn close(&self) {
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

struct Asker(Ctx, Way);

impl Repeated for Asker {
    async fn once(&mut self) -> Result<u32, Failure> {
        let Self(ctx, way) = self;
        let count = if *way == Way::Batch { BATCH } else { 1 };
        if *way == Way::Incr {
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
}
