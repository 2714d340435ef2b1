//! The memory that keys of the lock library's layer cost: 100,000 keys are held at once, and then 100,000 other keys.
//!
//! The memory is that of this process, in which nothing else has happened yet. An allocator keeps pages that it has freed, so the
//! second keys cost nothing more, unless something of the first keys was kept.

use super::{
    ceilings::{PREFIX, bench_failure},
    memory::resident_memory_mb,
    result::{BenchResult, Unit},
};
use axum::body::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use oversell_lab::terminal::{bilingual::Bilingual, failure::Failure};
use oversell_lock::{
    redis::{RedisClient, RedisOptions},
    tower::LockLayer,
};
use std::{convert::Infallible, sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, SemaphorePermit, mpsc},
    task::JoinSet,
};
use tower::{Layer, ServiceExt, service_fn};

/// The number of held keys that are measured: enough to outweigh what else the process has.
const KEY_COUNT: usize = 100_000;
/// Locks taken or released at a time, so that the figure is of held keys and not of commands in flight.
const BATCH: usize = 500;
/// Locks taken before the measurement, so that the client's own buffers are allocated.
const WARM_UP_KEYS: usize = 1000;
/// The lease and all timeouts: long enough that nothing is renewed or given up during the measurement.
const LEASE_AND_TIMEOUT: Duration = Duration::from_secs(600);

/// Holds [`KEY_COUNT`] keys, and then as many others; returns the memory of the first, and how much more the others took.
/// Errors: [`Failure::Unusable`] where Redis does not answer.
pub(super) async fn measure_keys(redis: &str) -> Result<Vec<BenchResult>, Failure> {
    let options = RedisOptions::new(redis).prefix(PREFIX).lease(LEASE_AND_TIMEOUT).timeout(LEASE_AND_TIMEOUT);
    let client = RedisClient::new(options).map_err(bench_failure)?;
    memory_while_holding(&client, "first", WARM_UP_KEYS).await?;
    let before = resident_memory_mb(std::process::id())?;
    let held = memory_while_holding(&client, "held", KEY_COUNT).await? - before;
    let again = memory_while_holding(&client, "again", KEY_COUNT).await? - before - held;
    let left = client.locks_in_use();
    client.close().await;
    let result = |name, seen: f64, most, bounded_by| BenchResult::at_most(name, &[seen], Unit::Megabytes, most, bounded_by);
    Ok(vec![
        result(
            Bilingual::of("锁层的 100,000 个键，同时持有", "100,000 keys of the layer, held at once"),
            held,
            1000.0,
            Bilingual::of("各有一个任务、一个请求、一个 guard", "a task, a request and a guard for each"),
        ),
        result(
            Bilingual::of("之后另外 100,000 个键：比先前多用的", "100,000 other keys after them: more than the first took"),
            again,
            0.25 * held,
            Bilingual::of("没人用的键什么也不留", "nothing is kept for a key that nobody uses"),
        )
        .void_if((left > 0).then(|| format!("{left} are still used"))),
    ])
}

/// Holds this many keys at once, a multiple of [`BATCH`]; returns the resident memory of this process meanwhile, in MB.
async fn memory_while_holding(client: &RedisClient, name: &str, keys: usize) -> Result<f64, Failure> {
    let (go_on, (entered, mut inside)) = (Arc::new(Semaphore::new(0)), mpsc::unbounded_channel());
    let locks = client.clone();
    let layer: LockLayer<String> = LockLayer::by_key(format!("{name}:{{sku}}"))
        .wait(LEASE_AND_TIMEOUT)
        .locks(move |name| locks.lock(name))
        .map_err(bench_failure)?;
    let work = Arc::clone(&go_on);
    let service = layer.layer(service_fn(move |_: Request<Full<Bytes>>| {
        let (work, entered) = (Arc::clone(&work), entered.clone());
        async move {
            entered.send(()).ok();
            drop(work.acquire().await.map(SemaphorePermit::forget));
            Ok::<_, Infallible>(Response::new(String::new()))
        }
    }));
    let mut requests = JoinSet::new();
    for step in 0..keys / BATCH {
        for sku in step * BATCH..(step + 1) * BATCH {
            let request = Request::get(format!("/?sku={sku}")).body(Full::default()).map_err(bench_failure)?;
            requests.spawn(service.clone().oneshot(request));
        }
        for _ in 0..BATCH {
            tokio::select! {
                Some(()) = inside.recv() => {}
                Some(refused) = requests.join_next() => return Err(bench_failure(format!("a key was not had: {refused:?}"))),
            }
        }
    }
    let held = resident_memory_mb(std::process::id())?;
    while !requests.is_empty() {
        go_on.add_permits(BATCH);
        for _ in 0..BATCH {
            requests.join_next().await;
        }
    }
    Ok(held)
}
