//! §3.7.5 Curator's semaphore: five leases, each held for ten to twenty seconds.
//!
//! 1. Take one of the five leases of `/locks/semaphore`, waiting for it.
//! 2. Push a line to the Redis list `log`; stay; push a second line. The list shows in which order they came and went, on
//!    all instances. It keeps the last thousand lines.
//! 3. Give the lease back.
//!
//! What it survives: an instance that dies: its session ends, and its leases come back. (`semaphore.rs`, in Redis, loses
//! them.) **What breaks it**: a holder that is paused beyond its session; instances that do not agree on the five.
//!
//! Next: `oversell_lock::zk::ZkSemaphore`, then `zk_counts.rs`.

use crate::{ctx::Ctx, error::Error, stock::Job};
use std::time::Duration;

/// How many may be inside at once.
pub const LEASES: u32 = 5;

const LOG: &str = "log";
const LINES: isize = 1000;
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(20);

/// How long one stays, where the request does not say: at random.
#[must_use]
pub fn stay() -> Duration {
    SHORTEST + (LONGEST - SHORTEST).mul_f64(fastrand::f64())
}

/// Comes in, stays as long as the job says, and leaves; writes both into the log.
///
/// # Errors
///
/// [`Error::NotHad`] where nobody has left within the job's wait, [`Error::Unavailable`] where ZooKeeper or Redis is down.
///
/// # Cancel safety
///
/// Dropping it gives the lease back in the background; the second line is then missing.
pub async fn visit(ctx: &Ctx, job: &Job) -> Result<(), Error> {
    let semaphore = ctx.zk.semaphore(&job.zk_path("/locks/semaphore"), LEASES);
    let leases = semaphore.acquire(1, job.wait_left()).await?;
    job.enter();
    log(ctx, &format!("10010获取了资源，开始处理业务逻辑。{}", ctx.instance)).await?;
    job.inside().await;
    log(ctx, &format!("10010处理完业务逻辑，释放资源====================={}", ctx.instance)).await?;
    for lease in leases {
        if let Err(error) = lease.release().await {
            tracing::warn!(%error, "the lease was not given back cleanly");
        }
    }
    Ok(())
}

async fn log(ctx: &Ctx, line: &str) -> Result<(), Error> {
    let key = ctx.redis_key(LOG);
    let mut lines = redis::pipe();
    lines.atomic().rpush(&key, line).ltrim(&key, -LINES, -1);
    Ok(lines.exec_async(&mut ctx.redis.connection()).await?)
}
