//! [004]: forced schedules show the flaws of demo2's lock, and the library's lock passes them; all four demos run on
//! three instances.

use crate::{
    replay::races::ends_so,
    support::{
        http::{ask, ask_json, body_with_status, client},
        labs::query_redis,
        *,
    },
};
use oversell::{
    classroom::{
        demo_layer,
        demo2::{self, LockValue},
    },
    error::Error,
    replay::{self, A, Act, B, C, ExpectedResult, Play, RaceScript, Step},
    section::{Deduction, Job, Name, Point},
};
use oversell_lab::lab::Lab;
use reqwest::StatusCode;

const NOW: Duration = Duration::ZERO;
const KEY: &str = "demo2LockKey";

/// The text's lock with a unique value for each call, and the library's lock as its cure.
fn course_and_library_locks() -> Result<[Act; 2]> {
    let (_, race) = replay::find("004.force").context("no race")?;
    Ok([race.flaw.act, race.cured.act])
}

/// The text's lock with the id and name of a thread as its value.
const BY_THREAD: Act = Act::custom("demo2 by thread", &[Name::Redis(KEY)], |ctx, job| {
    Box::pin(async {
        let lock = demo2::visit(ctx, job, LockValue::Thread).await?;
        Ok(Deduction { lock, ..Deduction::default() })
    })
});

/// In two processes of its own, so that threads are numbered from 1.
async fn play(servers: &Servers, act: Act, steps: &'static [Step], inside: usize) -> Result<()> {
    let ctxs = [servers.with(|_| {}), servers.with(|_| {})];
    ends_so(&ctxs, RaceScript::of(act, steps, ExpectedResult::NOTHING.inside(inside))).await?;
    for ctx in ctxs {
        ctx.close(TEST_WAIT_LIMIT).await;
    }
    Ok(())
}

/// The safety time is meant for a key without a lease whose holder is dead. It cannot tell a living holder, and it also
/// runs while several owners have the lock one after the other.
#[apply(test!)]
async fn a_lock_that_is_forced_lets_two_in_and_the_librarys_does_not(servers: &Servers) -> Result<()> {
    const WITHOUT_A_LEASE: &[Step] = &[
        A.stops_at(Point::Worked),
        Step::Custom(|play| Box::pin(persist(play))),
        B.self_ending_lease(100, 100).stops_at(Point::Worked),
        B.finishes(),
        A.finishes_with_lock_lost(),
    ];
    // C came after B, which waits, and gets the lock for a moment first.
    const ONE_AFTER_THE_OTHER: &[Step] = &[
        A.stops_at(Point::Worked),
        B.self_ending_lease(100, 100).stops_at(Point::Refused),
        A.finishes_and_unlocks(),
        C.stops_at(Point::Worked),
        B.finishes(),
        C.finishes_with_lock_lost(),
    ];
    const NEVER_FORCED: &[Step] = &[A.stops_at(Point::Worked), B.impatient().times_out(), A.finishes_and_unlocks()];
    let [demo2, library] = course_and_library_locks()?;
    play(servers, demo2, WITHOUT_A_LEASE, 2).await?;
    play(servers, demo2, ONE_AFTER_THE_OTHER, 2).await?;
    play(servers, library, NEVER_FORCED, 1).await
}

/// Removes the lease from the key.
async fn persist(play: &Play) -> Result<(), Error> {
    let key = Job::new(play.stock_id, NOW, NOW).redis_name(KEY);
    let mut persist = redis::cmd("PERSIST");
    let had_one: bool = persist.arg(key).query_async(&mut play.ctx.redis.connection()).await?;
    had_one.then_some(()).ok_or_else(|| Error::Internal("the key had no lease".into()))
}

/// The lease of A ends, B in another process gets in, and A unlocks. Returns whether C, in A's process, gets in beside
/// B.
#[apply(test!)]
async fn an_unlock_by_thread_id_frees_another_processs_lock(servers: &Servers) -> Result<()> {
    const LATE: &[Step] = &[A.stops_at(Point::Worked), Step::LeaseEnds, B.stops_at(Point::Worked)];
    const FREES_ANOTHERS: &[Step] =
        &[Step::All(LATE), A.finishes_and_unlocks(), C.on_instance_of(A).finishes(), B.finishes()];
    const LEAVES_ANOTHERS: &[Step] = &[
        Step::All(LATE),
        A.finishes_with_lock_lost(),
        C.on_instance_of(A).impatient().times_out(),
        B.finishes_and_unlocks(),
    ];
    let [by_uuid, library] = course_and_library_locks()?;
    play(servers, BY_THREAD, FREES_ANOTHERS, 2).await?;
    play(servers, by_uuid, LEAVES_ANOTHERS, 2).await?;
    play(servers, library, LEAVES_ANOTHERS, 2).await
}

/// Re-enters from its own work.
#[apply(test!)]
async fn a_value_for_each_call_cannot_enter_again_and_an_owner_can(servers: &Servers) -> Result<()> {
    const AGAIN: &[Step] =
        &[A.stops_at(Point::Worked), B.on_instance_of(A).impatient().times_out(), A.finishes_and_unlocks()];
    let [by_uuid, _] = course_and_library_locks()?;
    play(servers, by_uuid, AGAIN, 1).await?;
    let site = servers.site().await;
    let job = Job::new(site.id, NOW, NOW);
    let redis = &site.ctxs[0].redis;
    let lock = demo_layer::lock(&site.ctxs[0], &job, "demo2Library").owner(redis.owner());
    let outer = lock.try_acquire().await?;
    let inner = lock.try_acquire().await.context("by an owner")?;
    inner.release().await?;
    outer.release().await?;
    Ok(())
}

/// All four demos behind nginx on three instances: one request at a time, at once or after a wait, and a client that
/// leaves releases the lock.
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
        wait_until(demo, || query_redis(lab, "EXISTS", key)).await?;
        let now = format!("{url}now=true&hold_ms=0");
        let text = body_with_status(now.clone(), StatusCode::CONFLICT).await?;
        ensure!(text == "获取锁失败，有并发");
        let late = client().get(format!("{url}wait_ms=100&hold_ms=0")).send().await?;
        let told = late.status() == StatusCode::SERVICE_UNAVAILABLE && late.headers().contains_key("retry-after");
        ensure!(told, "{demo} {late:?}");
        held.abort();
        // The waiter must get in when the client leaves, not after its sixty seconds.
        let answer = ask_json(format!("{url}wait_ms=30000&hold_ms=10")).await?;
        ensure!(answer["strategy"] == demo[1..6], "{answer}");
        ensure!(body_with_status(now, StatusCode::OK).await? == demo[1..6]);
    }
    // Work beyond its lease goes on in demo1; the layer stops it.
    let beyond = async |demo: &str| ask(format!("{base}{demo}lease_ms=200&hold_ms=1000")).await;
    ensure!(beyond("/demo1?").await?.0 == StatusCode::OK, "demo1");
    for demo in ["/demo3?", "/demo4?whId=1&sku=a&"] {
        let lost = beyond(demo).await?;
        ensure!(lost == (StatusCode::CONFLICT, "锁已失效".into()), "{demo} {lost:?}");
    }
    // Another product has another lock; the fields of the key are required.
    let a = tokio::spawn(ask(format!("{base}/demo4?whId=1&sku=a&hold_ms=60000")));
    wait_until("a is held", || query_redis(lab, "EXISTS", "demo4#1_a")).await?;
    for (goods, wanted) in [("sku=b", 200), ("sku=a", 409), ("sku=", 400)] {
        let (status, text) = ask(format!("{base}/demo4?whId=1&{goods}&now=true&hold_ms=0")).await?;
        ensure!(status == wanted, "{goods}: {status} {text}");
    }
    // The key is made of values: the same warehouse, in another spelling.
    let (status, text) = ask(format!("{base}/demo4?whId=01&sku=%61&now=true&hold_ms=0")).await?;
    ensure!(status == 409, "warehouse 01: {status} {text}");
    a.abort();
    let lacks = ask_json(format!("{base}/demo4?whId=1")).await?;
    ensure!(lacks["status"] == 400 && lacks["field"] == "sku", "{lacks}");
    Ok(())
}
