//! What acquiring and releasing costs where nobody else wants the lock: round trips, as README's table says, and
//! allocations. Both are counted, so they are the same on each machine. The twins cost more, and are refused.
//!
//! One test at a time, because all allocations of the process count.

#[path = "../../benches/locks/counts.rs"]
mod counts;
#[path = "../contract/harness.rs"]
#[allow(dead_code, reason = "nothing here is a soak test")]
mod harness;

use anyhow::{Result, ensure};
use counts::{RoundTrips, allocations};
use harness::{caught, outcome};
use libtest_mimic::{Arguments, Trial};
use oversell_lab::lab::{Lab, Options, Part};
use oversell_lock::{Lock, LockError, redis::RedisClient};
use std::{hint::black_box, process::ExitCode, time::Duration};
use tokio::runtime::{Builder, Handle};

/// To acquire and to release.
const MAX_ROUND_TRIPS: u64 = 2;

/// Allocations of the plain lock.
const MOST_OF_LOCK: u64 = 29;

/// How often each is repeated.
const TIMES: u64 = 100;

/// A test that runs longer hangs.
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

const WAIT: Duration = Duration::from_secs(10);

/// Counts what `once` costs, and fails if it is too much. `most` bounds the allocations of the library, the `redis` crate and
/// tokio together; the scripts alone make 24 (`make lockbench`).
async fn check<E, F>(url: &str, most: u64, once: impl Fn() -> F) -> Result<()>
where
    F: Future<Output = Result<(), E>>,
    E: std::error::Error + Send + Sync + 'static,
{
    // The first time connects, and loads the scripts.
    once().await?;
    let commands = RoundTrips::begin(url).await?;
    for _ in 0..TIMES {
        once().await?;
    }
    let commands = commands.end().await?;
    ensure!(commands == MAX_ROUND_TRIPS * TIMES, "round trips: {commands} for {TIMES}");
    let before = allocations();
    for _ in 0..TIMES {
        once().await?;
    }
    let count = allocations() - before;
    // Ten more for what happens once in a while.
    ensure!(count <= most * TIMES + 10, "allocations: {count} for {TIMES}, more than {most} each");
    Ok(())
}

async fn pass(lock: impl Lock) -> Result<(), LockError> {
    lock.acquire(WAIT).await?.release().await
}

/// The tests; without a client they are only listed.
fn all(runtime: &Handle, server: Option<(&str, &RedisClient)>) -> Vec<Trial> {
    let test = |name: &str, of: fn(String, RedisClient) -> harness::Ends| {
        let (runtime, server) = (runtime.clone(), server.map(|(url, client)| (url.to_owned(), client.clone())));
        Trial::test(name, move || {
            let (url, client) = server.ok_or("it is only listed")?;
            runtime.block_on(outcome(of(url, client), TEST_TIMEOUT))
        })
    };
    macro_rules! costs {
        ($($name:literal, $most:expr, |$redis:ident| $once:expr;)+) => {
            vec![$(test($name, |url, $redis| Box::pin(async move { check(&url, $most, || $once).await }))),+]
        };
    }
    let mut all = costs! {
        "the_lock_costs_what_is_said", MOST_OF_LOCK, |redis| pass(redis.lock("lock"));
        "the_fenced_lock_costs_what_is_said", 32, |redis| pass(redis.fenced_lock("fenced"));
        "the_read_lock_costs_what_is_said", 38, |redis| pass(redis.rw_lock("readers").read());
        "the_write_lock_costs_what_is_said", 33, |redis| pass(redis.rw_lock("writers").write());
    };
    all.push(test("the_fair_lock_costs_what_is_said", |url, redis| {
        Box::pin(async move {
            let once = || pass(redis.fair_lock("fair"));
            let mut patterns = redis::cmd("PUBSUB");
            patterns.arg("NUMPAT");
            // Its process subscribes once, by a connection that is made in the background.
            while patterns.query_async::<u64>(&mut redis.connection()).await? == 0 {
                once().await?;
            }
            check(&url, 38, once).await
        })
    }));
    all.push(test("a_permit_costs_what_is_said", |url, redis| {
        Box::pin(async move {
            redis.semaphore("permits").try_set_permits(1).await?;
            let once = || async { redis.semaphore("permits").acquire(1, WAIT).await?.release().await };
            check(&url, 36, once).await
        })
    }));
    all.push(test("a_third_round_trip_is_refused", |url, redis| {
        Box::pin(async move {
            let once = || async {
                redis.lock("twin").holder().await?;
                pass(redis.lock("twin")).await
            };
            caught(check(&url, MOST_OF_LOCK, once).await, "round trips: 300 for 100")
        })
    }));
    all.push(test("more_allocations_are_refused", |url, redis| {
        Box::pin(async move {
            let once = || async {
                for n in 0..=MOST_OF_LOCK {
                    black_box(Box::new(n));
                }
                pass(redis.lock("twin")).await
            };
            caught(check(&url, MOST_OF_LOCK, once).await, "allocations: ")
        })
    }));
    all
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.expect("a runtime");
    if arguments.list {
        return libtest_mimic::run(&arguments, all(runtime.handle(), None)).exit_code();
    }
    let started = runtime.block_on(async {
        let lab = Lab::start(Options {
            without: vec![Part::MySql, Part::ZooKeeper, Part::Instances, Part::Nginx],
            redis_ports: vec![0],
            ..Options::default()
        });
        let lab = lab.await?;
        let client = RedisClient::connect(lab.addresses().first_redis()).await;
        anyhow::Ok((lab, client?))
    });
    let (lab, client) = match started {
        Ok(started) => started,
        Err(error) => {
            eprintln!("the server must run, for no test is skipped: {error}");
            return ExitCode::FAILURE;
        }
    };
    let tests = all(runtime.handle(), Some((lab.addresses().first_redis(), &client)));
    let conclusion = libtest_mimic::run(&arguments, tests);
    runtime.block_on(lab.stop());
    conclusion.exit_code()
}
