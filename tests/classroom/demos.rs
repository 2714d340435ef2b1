//! [004]: the flaws of demo2's lock by a forced interleaving, the library's lock under the same check; and all four demos
//! over three instances.

use super::windows::in_redis;
use crate::support::{
    http::{answered, ask, ask_json, client},
    *,
};
use oversell::{
    classroom::{
        demo_layer,
        demo2::{self, Id},
    },
    ctx::Ctx,
    error::Error,
    lab::Lab,
    section::{Job, LockState, Pause, Point},
};
use oversell_lock::{Guard, Lock, LockError};
use reqwest::StatusCode;
use std::sync::Arc;
use tokio::task::JoinHandle;

const NOW: Duration = Duration::ZERO;
/// The lease of one who is to force the lock: five of these later.
const SHORT: Duration = Duration::from_millis(100);
/// The name of the library's lock in the same play.
const LIBRARY: &str = "demo2Library";

/// One product's lock, and two processes that contend for it.
struct Play {
    site: Site,
    one: Arc<Ctx>,
    other: Arc<Ctx>,
}

/// One who is at work.
type Working = (JoinHandle<Result<Option<LockState>, Error>>, Pause);

impl Play {
    /// Two processes that nobody else uses: their threads are numbered from 1.
    async fn new(servers: &Servers) -> Self {
        Self {
            site: servers.site().await,
            one: servers.with(|_| {}),
            other: servers.with(|_| {}),
        }
    }

    fn job(&self, lease: Duration, wait: Duration) -> Job {
        Job::new(self.site.id, NOW, wait).asked(Some(lease), None)
    }

    /// One on its way, stopped where it says.
    fn start(&self, ctx: &Arc<Ctx>, id: Id, mut job: Job, point: Point) -> Working {
        let (pause, ctx) = (job.pause_at(point), Arc::clone(ctx));
        (
            tokio::spawn(async move { demo2::visit(&ctx, &job, id).await }),
            pause,
        )
    }

    /// One who is at work, with a lease that does not end meanwhile.
    async fn works(&self, ctx: &Arc<Ctx>, id: Id) -> Result<Working> {
        let working = self.start(ctx, id, self.job(LONG, LONG), Point::Worked);
        at(&working.1).await?;
        Ok(working)
    }

    async fn command<T: redis::FromRedisValue>(
        &self,
        name: &str,
        key: &str,
        arguments: &[i64],
    ) -> Result<T> {
        let mut command = redis::cmd(name);
        command
            .arg(self.job(LONG, NOW).redis_name(key))
            .arg(arguments);
        let mut redis = self.one.redis.connection();
        Ok(command.query_async(&mut redis).await?)
    }

    /// Ends the lease of who has this key.
    async fn ends(&self, key: &str) -> Result<()> {
        self.command::<()>("PEXPIRE", key, &[1]).await?;
        until("the lease has ended", || async {
            Ok(!self.command::<bool>("EXISTS", key, &[]).await?)
        })
        .await
    }

    async fn library(&self, ctx: &Ctx, wait: Duration) -> Result<Guard, LockError> {
        demo_layer::lock(ctx, &self.job(LONG, wait), LIBRARY)
            .acquire(wait)
            .await
    }

    async fn close(self) {
        self.one.close(LONG).await;
        self.other.close(LONG).await;
    }
}

async fn at(pause: &Pause) -> Result<()> {
    soon("it comes there", pause.reached()).await
}

/// Lets one go on, to its end: what its unlock has found.
async fn finish((running, pause): Working) -> Result<Option<LockState>> {
    pause.go_on();
    Ok(running.await??)
}

/// The safety time is for a key without a lease whose holder is dead. It cannot tell one who is alive, and it also runs
/// while others have the lock one after the other, each within its lease.
#[apply(test!)]
async fn a_lock_that_is_forced_lets_two_in_and_the_librarys_does_not(
    servers: &Servers,
) -> Result<()> {
    let play = Play::new(servers).await;
    // A holder whose key has no lease, and who is at work.
    let alive = play.works(&play.one, Id::Uuid).await?;
    ensure!(
        play.command::<bool>("PERSIST", "demo2LockKey", &[]).await?,
        "the key had no lease"
    );
    let forces = play.start(&play.other, Id::Uuid, play.job(SHORT, LONG), Point::Worked);
    at(&forces.1)
        .await
        .context("nobody forced a key without a lease")?;
    ensure!(!alive.0.is_finished(), "the first was not inside any more");
    finish(forces).await?;
    ensure!(
        finish(alive).await? == Some(LockState::Lost),
        "the first has not lost its key"
    );

    // One after the other: the second came after the one who waits, and has the lock for its first moment.
    let first = play.works(&play.one, Id::Uuid).await?;
    let waits = play.start(&play.other, Id::Uuid, play.job(SHORT, LONG), Point::Refused);
    at(&waits.1).await?;
    finish(first).await?;
    let second = play.works(&play.one, Id::Uuid).await?;
    let (running, refused) = waits;
    refused.go_on();
    let forced = tokio::time::timeout(LONG, running)
        .await
        .context("it was never forced")?;
    forced??;
    ensure!(
        !second.0.is_finished(),
        "the second was not inside any more"
    );
    ensure!(
        finish(second).await? == Some(LockState::Lost),
        "the second has not lost its key"
    );

    // The library's lock, for as long and longer.
    let held = play.library(&play.one, NOW).await?;
    let tried = play.library(&play.other, SHORT * 10).await;
    ensure!(
        matches!(tried, Err(LockError::Taken { .. })),
        "beside the holder: {tried:?}"
    );
    held.release().await?;
    play.close().await;
    Ok(())
}

/// The lease of the first ends, a second in another process gets in, and the first unlocks. Whether a third gets in beside
/// the second.
#[apply(test!)]
async fn a_late_unlock_by_thread_id_frees_another_processs_lock_until_it_is_by_owner(
    servers: &Servers,
) -> Result<()> {
    let play = Play::new(servers).await;
    for (id, found, beside) in [
        (Id::Thread, LockState::Kept, true),
        (Id::Uuid, LockState::Lost, false),
    ] {
        let late = play.works(&play.one, id).await?;
        play.ends("demo2LockKey").await?;
        let second = play.works(&play.other, id).await?;
        let seen = finish(late).await?;
        ensure!(
            seen == Some(found),
            "{id:?}: the late one has found {seen:?}"
        );
        let third = demo2::visit(&play.one, &play.job(LONG, NOW), id).await;
        ensure!(third.is_ok() == beside, "{id:?}: a third: {third:?}");
        finish(second).await?;
    }
    let late = play.library(&play.one, NOW).await?;
    play.ends(LIBRARY).await?;
    let second = play.library(&play.other, NOW).await?;
    let released = late.release().await;
    ensure!(
        matches!(released, Err(LockError::Lost { .. })),
        "the late owner: {released:?}"
    );
    let third = play.library(&play.one, NOW).await;
    ensure!(
        matches!(third, Err(LockError::Taken { .. })),
        "beside an owner: {third:?}"
    );
    second.release().await?;
    play.close().await;
    Ok(())
}

/// From within its own work.
#[apply(test!)]
async fn a_value_for_each_call_cannot_enter_again_and_an_owner_can(
    servers: &Servers,
) -> Result<()> {
    let play = Play::new(servers).await;
    let outer = play.works(&play.one, Id::Uuid).await?;
    let inner = demo2::visit(&play.one, &play.job(LONG, SHORT), Id::Uuid).await;
    ensure!(
        matches!(inner, Err(Error::NotHad { .. })),
        "by a uuid for each call: {inner:?}"
    );
    finish(outer).await?;
    let lock =
        demo_layer::lock(&play.one, &play.job(LONG, NOW), LIBRARY).owner(play.one.redis.owner());
    let outer = lock.try_acquire().await?;
    let inner = lock.try_acquire().await.context("by an owner")?;
    inner.release().await?;
    outer.release().await?;
    play.close().await;
    Ok(())
}

/// All four over nginx and three instances: one at a time, told at once or after a wait, and released by a client that goes.
pub(crate) async fn over_http(lab: &Lab) -> Result<()> {
    let base = &lab.addresses().http;
    for (demo, key) in [
        ("/demo1?", "demo1LockKey"),
        ("/demo2?", "demo2LockKey"),
        ("/demo3?", "GET /demo3"),
        ("/demo4?whId=1&sku=a_%E5%BA%97&", "demo4#1_a%5F%E5%BA%97"),
    ] {
        let url = format!("{base}{demo}");
        let held = tokio::spawn(ask(format!("{url}hold_ms=60000")));
        until(demo, || async {
            in_redis::<bool>(lab, "EXISTS", key).await
        })
        .await?;
        let now = format!("{url}now=true&hold_ms=0");
        let text = answered(now.clone(), StatusCode::CONFLICT).await?;
        ensure!(text == "获取锁失败，有并发");
        let late = client()
            .get(format!("{url}wait_ms=100&hold_ms=0"))
            .send()
            .await?;
        let told = late.status() == StatusCode::SERVICE_UNAVAILABLE
            && late.headers().contains_key("retry-after");
        ensure!(told, "{demo} {late:?}");
        held.abort();
        // A waiter is let in when the client has gone, and not when its sixty seconds are over.
        let answer = ask_json(format!("{url}wait_ms=30000&hold_ms=10")).await?;
        ensure!(answer["strategy"] == demo[1..6], "{answer}");
        ensure!(answered(now, StatusCode::OK).await? == demo[1..6]);
    }
    // Work beyond its lease goes on in demo1, and is ended under the layer.
    let beyond = async |demo: &str| ask(format!("{base}{demo}lease_ms=200&hold_ms=1000")).await;
    ensure!(beyond("/demo1?").await?.0 == StatusCode::OK, "demo1");
    for demo in ["/demo3?", "/demo4?whId=1&sku=a&"] {
        let lost = beyond(demo).await?;
        ensure!(
            lost == (StatusCode::CONFLICT, "锁已失效".into()),
            "{demo} {lost:?}"
        );
    }
    // Other goods are another lock; what the key names must be there.
    let a = tokio::spawn(ask(format!("{base}/demo4?whId=1&sku=a&hold_ms=60000")));
    until("a is held", || async {
        in_redis::<bool>(lab, "EXISTS", "demo4#1_a").await
    })
    .await?;
    for (goods, wanted) in [("sku=b", 200), ("sku=a", 409), ("sku=", 400)] {
        let (status, text) = ask(format!("{base}/demo4?whId=1&{goods}&now=true&hold_ms=0")).await?;
        ensure!(status == wanted, "{goods}: {status} {text}");
    }
    a.abort();
    let lacks = ask_json(format!("{base}/demo4?whId=1")).await?;
    ensure!(lacks["status"] == 400 && lacks["field"] == "sku", "{lacks}");
    Ok(())
}
