//! §3.7.5 Curator's semaphore: five leases, each held for ten to twenty seconds.
//!
//! 1. Take one of the five leases of `/locks/semaphore`, waiting for it.
//! 2. Push a line to the Redis list `log`, and print it; stay; a second line. The list shows in which order they came and
//!    went, on all instances. It keeps the last thousand lines.
//! 3. Give the lease back.
//!
//! What it survives: an instance that dies: its session ends, and its leases come back. (`semaphore.rs`, in Redis, loses
//! them.) **What breaks it**: a holder that is paused beyond its session; instances that do not agree on the five.
//!
//! Next: `oversell_lock::zk::ZkSemaphore`, then `zk_counts.rs`.

use crate::classroom::*;

/// How many are inside at once: the course's `new InterProcessSemaphoreV2(client, path, 5)`.
const LEASES: u32 = 5;

/// The path of the semaphore.
const SEMAPHORE: &str = "/locks/semaphore";
/// The Redis list with the lines of all visitors.
const LOG: &str = "log";

pub(super) const LESSON: WindowLesson = WindowLesson {
    names: &[Name::ZooKeeper(SEMAPHORE), Name::Redis(LOG)],
    windows: &[WindowAddress {
        path: "/test/zk/semaphore",
        object: SEMAPHORE,
        summary: "Five are inside at once, each for ten to twenty seconds; both ends are written to the Redis list `log`.",
        done: "It was inside, and has left",
        example: "hello Semaphore",
        may_be_lost: false,
        wait: None,
        stay: Some(random_stay),
        visit: |ctx, job| Box::pin(visit(ctx, job)),
    }],
};

/// The most lines of the log, of which the oldest go first: it is shown as a whole.
const MAX_LOG_LINES: isize = 1000;
/// How long the log stays in Redis after its last line.
const LOG_TTL_SECONDS: i64 = 24 * 60 * 60;
/// The shortest default stay: the course's `sleep(10 + new Random().nextInt(10))`, in seconds.
const MIN_STAY: Duration = Duration::from_secs(10);
/// The longest default stay.
const MAX_STAY: Duration = Duration::from_secs(20);

/// A random default stay, from [`MIN_STAY`] to [`MAX_STAY`].
fn random_stay() -> Duration {
    MIN_STAY + (MAX_STAY - MIN_STAY).mul_f64(fastrand::f64())
}

/// Comes in, stays as long as the job says, and leaves; writes both into the log.
///
/// Cancel safety: Dropping it gives the lease back in the background; the second line is then missing.
async fn visit(ctx: &Ctx, job: &Job) -> Result<Answer, Error> {
    let semaphore = ctx.zk.semaphore(&job.zk_path(SEMAPHORE), LEASES);
    let leases = semaphore.acquire(1, job.wait_left()).await?;
    job.enter();
    log(ctx, job, &format!("10010获取了资源，开始处理业务逻辑。{}", ctx.instance)).await?;
    job.enter_and_stay().await;
    log(ctx, job, &format!("10010处理完业务逻辑，释放资源====================={}", ctx.instance)).await?;
    job.leave();
    for lease in leases {
        if let Err(error) = lease.release().await {
            tracing::warn!(%error, "the lease was not given back cleanly");
        }
    }
    Ok(Answer::text("hello Semaphore"))
}

/// Writes a line to the console, and appends it to the list of all instances.
async fn log(ctx: &Ctx, job: &Job, line: &str) -> Result<(), Error> {
    job.say(line);
    let key = ctx.redis_key(&job.redis_name(LOG));
    let mut lines = redis::pipe();
    lines.atomic().rpush(&key, line).ltrim(&key, -MAX_LOG_LINES, -1).expire(&key, LOG_TTL_SECONDS);
    Ok(lines.exec_async(&mut ctx.redis.connection()).await?)
}
