//! Groups of requests: with a stock in memory whose first group waits until it is released.

use super::*;
use crate::config::Config;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::{sync::Notify, task::JoinHandle, time::sleep};

const LONG_WAIT: Duration = Duration::from_secs(20);

#[derive(Default)]
struct Till {
    /// How many pieces each group wanted.
    groups: Mutex<Vec<i64>>,
    first: Notify,
    conflicts: AtomicU32,
}

struct Full;

impl TakeMany for Full {
    const AWAITED: &'static str = "till";

    async fn take_many(ctx: &Ctx, _: i64, wanted: i64, _: Duration) -> Result<TakeOutcome, Error> {
        let till = ctx.local.of::<Till>();
        let first = {
            let mut groups = till.groups.lock();
            groups.push(wanted);
            groups.len() == 1
        };
        if first {
            till.first.notified().await;
        } else if till.conflicts.fetch_add(1, Ordering::Relaxed) < 2 {
            return Ok(TakeOutcome::Conflict);
        }
        Ok(TakeOutcome::Pieces(wanted, Some(100)))
    }
}

/// Serves only the first group; later groups time out.
struct Stuck;

impl TakeMany for Stuck {
    const AWAITED: &'static str = "till";

    async fn take_many(ctx: &Ctx, id: i64, wanted: i64, wait: Duration) -> Result<TakeOutcome, Error> {
        if ctx.local.of::<Till>().groups.lock().is_empty() {
            return Full::take_many(ctx, id, wanted, wait).await;
        }
        sleep(wait).await;
        Err(Error::Timeout { what: Self::AWAITED.into(), waited: wait })
    }
}

type Purchase = JoinHandle<Result<Deduction, Error>>;

fn ctx() -> Ctx {
    Ctx::new(Config::load(&[]).expect("the defaults")).expect("good addresses")
}

fn buy<M: TakeMany>(ctx: &Ctx, wait: Duration) -> Purchase {
    let ctx = ctx.clone();
    tokio::spawn(async move { deduct::<M>(&ctx, &Job::new(1, Duration::ZERO, wait)).await })
}

/// Waits until this many requests are in the queue.
async fn wait_until_queued<M: TakeMany>(ctx: &Ctx, so_many: usize) {
    let queue = ctx.local.of::<Queues<M>>().queue_of(1);
    while queue.waiting.lock().buyers.len() != so_many {
        tokio::task::yield_now().await;
    }
}

/// One running request, and one behind it for each of `waits`.
async fn crowd<M: TakeMany>(ctx: &Ctx, waits: &[Duration]) -> (Purchase, Vec<Purchase>) {
    let first = buy::<M>(ctx, LONG_WAIT);
    let till = ctx.local.of::<Till>();
    while till.groups.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    let behind: Vec<_> = waits.iter().map(|wait| buy::<M>(ctx, *wait)).collect();
    wait_until_queued::<M>(ctx, waits.len()).await;
    (first, behind)
}

#[tokio::test]
async fn waiting_requests_are_one_group_and_retries_count_once() {
    let ctx = ctx();
    let (first, behind) = crowd::<Full>(&ctx, &[LONG_WAIT; 5]).await;
    let till = ctx.local.of::<Till>();
    till.first.notify_one();
    assert!(first.await.expect("no panic").is_ok());
    let mut sold = Vec::new();
    for buyer in behind {
        sold.push(buyer.await.expect("no panic").expect("a piece"));
    }
    assert_eq!(*till.groups.lock(), [1, 5, 5, 5], "one group, which was conflicts twice");
    assert_eq!(sold.iter().map(|sold| sold.retries).sum::<u32>(), 2);
    let mut left: Vec<_> = sold.iter().filter_map(|sold| sold.remaining).collect();
    left.sort_unstable();
    assert_eq!(left, [100, 101, 102, 103, 104], "each has a number of its own");
}

#[tokio::test]
async fn nothing_is_taken_for_a_client_that_has_disconnected() {
    let ctx = ctx();
    let (first, behind) = crowd::<Full>(&ctx, &[LONG_WAIT; 3]).await;
    behind[0].abort();
    while !behind[0].is_finished() {
        tokio::task::yield_now().await;
    }
    let till = ctx.local.of::<Till>();
    till.first.notify_one();
    assert!(first.await.expect("no panic").is_ok());
    let served = behind.into_iter().skip(1).map(|buyer| async { buyer.await.expect("no panic").is_ok() });
    assert_eq!(futures::future::join_all(served).await, [true, true]);
    assert_eq!(*till.groups.lock(), [1, 2, 2, 2]);
}

#[tokio::test]
async fn a_request_times_out_before_the_rest_of_its_group() {
    let ctx = ctx();
    let few = Duration::from_millis(100);
    let (first, mut behind) = crowd::<Stuck>(&ctx, &[LONG_WAIT * 1000, few]).await;
    ctx.local.of::<Till>().first.notify_one();
    assert!(first.await.expect("no panic").is_ok());
    let short = behind.pop().expect("the second");
    let answered = tokio::time::timeout(LONG_WAIT, short).await.expect("it does not wait for the patient one");
    assert!(matches!(answered.expect("no panic"), Err(Error::Timeout { .. })));
    assert!(!behind[0].is_finished(), "the patient one waits on");
    behind[0].abort();
}
