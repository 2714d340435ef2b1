//! What permits with a lease promise beyond the random programs.

use crate::{
    redis::{LEASE, client},
    support::*,
};
use oversell_lock::{
    WithError,
    redis::{Permit, RedisClient, RedisSemaphore},
};

const PERMITS: u32 = 3;
/// It ends within a test.
const BRIEF: Lease = Lease::Fixed(Duration::from_millis(500));

fn room(process: &RedisClient, name: &str, lease: Lease) -> RedisSemaphore {
    process.semaphore(name).initially(PERMITS).lease(lease)
}

async fn all_are_back(redis: &Redis, semaphore: &RedisSemaphore) -> Result {
    let back = async || matches!(semaphore.available_permits().await, Ok(3));
    until("all permits are back", back).await?;
    ensure_equal("keys", redis.keys(semaphore.name()).await, [semaphore.name()])
}

async fn wait_until_permit_lost(permit: &Permit) -> Result {
    let loss = timeout(SOON, permit.lost()).await;
    loss.context("the holder was never told of its loss")
}

/// A holder that dies with its process, here with its client's runtime: nothing renews its permits, and nothing releases them.
async fn die_with(permits: u32, semaphore: impl FnOnce(RedisClient) -> RedisSemaphore + Send + 'static, host: String) -> Result {
    let dies = move || {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.enable_all().build()?;
        let permit = runtime.block_on(async {
            let process = client(&Process::new(), &host, BRIEF.duration(), SOON);
            semaphore(process).acquire(permits, SOON).await
        });
        std::mem::forget(permit?);
        anyhow::Ok(())
    };
    tokio::task::spawn_blocking(dies).await?
}

/// The twin has no lease: what its dead holder had never comes back.
#[apply(test!)]
async fn the_permits_of_a_dead_holder_come_back(redis: &Redis) -> Result {
    let (leased, unasked, twin) = (name(), name(), name());
    let living = redis.client().await;
    for (of, kind) in [(&leased, 0), (&unasked, 1), (&twin, 2)] {
        let of = of.clone();
        let dying = move |process: RedisClient| match kind {
            0 => room(&process, &of, BRIEF),
            // Nobody has asked for a lease, or for none.
            1 => process.semaphore(&of).initially(PERMITS),
            _ => process.semaphore(&of).initially(PERMITS).without_lease(),
        };
        die_with(PERMITS, dying, redis.host()).await?;
    }
    let back = living.semaphore(&unasked).acquire(PERMITS, SOON).await.context("without being asked")?;
    ensure!(back.sure_for().is_some(), "{back:?} has no lease");
    back.release().await?;
    let here = room(&living, &leased, Lease::Watchdog(LEASE));
    let permit = here.acquire(PERMITS, SOON).await.context("they come back")?;
    ensure_equal("free", here.available_permits().await?, 0)?;
    permit.release().await?;
    all_are_back(redis, &here).await?;
    let never = living.semaphore(&twin).without_lease().acquire(1, SHORT).await;
    ensure_taken("without a lease", never)
}

#[apply(test!)]
async fn a_late_release_frees_no_permit_of_another(redis: &Redis) -> Result {
    let (name, one, other) = (name(), redis.client().await, redis.client().await);
    let late = room(&one, &name, BRIEF).acquire(2, SOON).await?;
    let here = room(&other, &name, Lease::Watchdog(LEASE));
    ensure_taken("beside it", here.try_acquire(2).await)?;
    wait_until_permit_lost(&late).await?;
    ensure_equal("sure for", late.sure_for(), Some(Duration::ZERO))?;
    let all = here.acquire(PERMITS, SOON).await?;
    ensure_lost("the late release", late.release().await)?;
    ensure_equal("free", here.available_permits().await?, 0)?;
    ensure_taken("beside all of them", here.try_acquire(1).await)?;
    ensure!(!all.is_lost(), "the present holder lost its permits");
    all.release().await?;
    all_are_back(redis, &here).await
}

/// A renewed lease outlasts its length, a fixed one is extended, and without a lease there is nothing to extend.
#[apply(test!)]
async fn permits_are_renewed_and_extended(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let renewed = room(&process, &name, Lease::Watchdog(Duration::from_secs(3)));
    let renewed = renewed.acquire(1, SOON).await?;
    let fixed = room(&process, &name, Lease::Fixed(Duration::from_secs(5)));
    let fixed = fixed.acquire(1, SOON).await?;
    fixed.extend(LEASE * 10).await?;
    ensure!(fixed.sure_for() > Some(LEASE * 5), "{fixed:?}");
    let entries: i64 = redis.ask(&["ZCARD", &format!("{{{name}}}:timeout")]).await?;
    ensure_equal("entries", entries, 2)?;
    for _ in 0..2 {
        let left = || renewed.sure_for().unwrap_or_default();
        until("a renewal is due", async || left() < Duration::from_millis(2300)).await?;
        let decided = async || renewed.is_lost() || left() > Duration::from_millis(2300);
        until("it is renewed or lost", decided).await?;
        ensure!(!renewed.is_lost(), "a renewed permit was lost");
    }
    ensure_equal("work", renewed.run(async { 7 }).await?, 7)?;
    let forever = process.semaphore(&name).without_lease().acquire(1, SOON).await?;
    ensure_equal("sure for", forever.sure_for(), None)?;
    ensure_invalid("without a lease", forever.extend(LEASE).await)?;
    for permit in [renewed, fixed, forever] {
        permit.release().await?;
    }
    all_are_back(redis, &room(&process, &name, BRIEF)).await
}

/// A semaphore that is deleted: its holders are told at the next renewal, and what they release is void.
#[apply(test!)]
async fn permits_of_a_deleted_semaphore_are_lost(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let renewed = room(&process, &name, Lease::Watchdog(Duration::from_secs(3)));
    let fixed = room(&process, &name, Lease::Fixed(LEASE));
    let (renewing, silent) = (renewed.acquire(1, SOON).await?, fixed.acquire(1, SOON).await?);
    let claimed = process.semaphore(&name).without_lease().acquire(1, SOON).await?;
    redis.delete(&name).await;
    redis.delete(&format!("{{{name}}}:timeout")).await;
    wait_until_permit_lost(&renewing).await?;
    ensure_lost("renewed", renewing.release().await)?;
    // Without a lease, as with one, the next semaphore of this name has all of its permits.
    ensure!(process.semaphore(&name).try_set_permits(PERMITS).await?, "not set");
    ensure_lost("not renewed", silent.release().await)?;
    ensure_lost("without a lease", claimed.release().await)?;
    all_are_back(redis, &fixed).await
}

/// Work with permits gives them back, and says how far it came.
#[apply(test!)]
async fn work_is_done_with_permits(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let room = process.semaphore(&name).initially(PERMITS);
    let beside = room.clone();
    let free = room.with(2, SOON, || async move { beside.available_permits().await }).await?;
    ensure_equal("free during the work", free, 1)?;
    let failed = room.with(2, SOON, || async { Err::<(), _>("no paper") }).await;
    ensure!(matches!(failed, Err(WithError::Work("no paper"))), "{failed:?}");
    let all = room.acquire(PERMITS, SOON).await?;
    let never = room.with(1, Duration::ZERO, || async { Ok::<_, LockError>(()) }).await;
    let Err(WithError::NotAcquired(taken)) = never else { bail!("beside all of them: {never:?}") };
    ensure_equal("it says", taken.to_string(), format!("{name} is taken"))?;
    all.release().await?;
    all_are_back(redis, &room).await
}

#[apply(test!)]
async fn too_many_leased_permits_are_refused(redis: &Redis) -> Result {
    let room = room(&redis.client().await, &name(), Lease::Fixed(LEASE));
    ensure_invalid("1,001", room.try_acquire(1001).await)?;
    let never = room.clone().lease(Lease::Fixed(Duration::ZERO));
    ensure_invalid("no lease", never.try_acquire(1).await)?;
    ensure_taken("more than there are", room.try_acquire(1000).await)
}
