//! Holders and waiters that vanish: a killed process, and a client that hangs up.

use crate::{
    replay::races::ends_so,
    support::{
        http::{
            self, MINUTE, answer, check_url, check_url_of, client, put_stock, put_stock_of, status, stock_of, wait_until_held,
            wait_until_held_of,
        },
        labs,
        leftovers::ensure_nothing_is_left,
        *,
    },
};
use oversell::{
    replay::{A, Act, B, ExpectedResult, RaceScript, Step},
    section::Point,
    stock::{self, Promise},
};
use reqwest::StatusCode;

const STOCK: i64 = 1000;

/// One lock of each kind that ends with its holder.
const LOCKS_WITH_END: [&str; 9] = [
    "redis-watchdog",
    "redis-lock",
    "zk-ephemeral",
    "zk-sequential",
    "zk-lock",
    "zk-mutex",
    "etcd-lock",
    "table-lock-lease",
    "mysql-named-lock",
];

const PRODUCTS: std::ops::RangeFrom<usize> = 20..;

/// `kill -9` of an instance that holds all of them, each for another product, with waiters: they go on once its leases
/// and session have ended, nothing is oversold, and nothing is left.
#[apply(test!)]
async fn others_go_on_after_the_holder_is_killed() -> Result<()> {
    const WAITERS: usize = 20;
    let mut lab = labs::full_lab().await?;
    let instances = lab.addresses().instances.clone();
    let (victim, others) = instances.split_first().context("no instance")?;
    let other = &others[0].url;
    let mut held = Vec::new();
    for (slug, product) in LOCKS_WITH_END.into_iter().zip(PRODUCTS) {
        put_stock_of(other, product, STOCK).await?;
        let holds = status(check_url_of(&victim.url, slug, product, MINUTE, MINUTE));
        held.push(tokio::spawn(holds));
    }
    let mut sold = [0; LOCKS_WITH_END.len()];
    let mut waiters = Vec::new();
    for (n, (slug, product)) in LOCKS_WITH_END.into_iter().zip(PRODUCTS).enumerate() {
        sold[n] = wait_until_held_of(other, slug, product).await?;
        // Far beyond lease and session: a waiter that is not served by then gets 503.
        waiters.extend((0..WAITERS).map(|w| {
            let waits = status(check_url_of(&others[w % 2].url, slug, product, 0, MINUTE));
            (n, tokio::spawn(waits))
        }));
    }
    lab.kill(&victim.name).await?;
    for held in held {
        ensure!(!held.await.is_ok_and(|answer| answer.is_ok()), "the killed instance has answered");
    }
    for (n, waiter) in waiters {
        match waiter.await?? {
            StatusCode::OK => sold[n] += 1,
            other => bail!("{}: a waiter was answered {other}", LOCKS_WITH_END[n]),
        }
    }
    for (n, (slug, product)) in LOCKS_WITH_END.into_iter().zip(PRODUCTS).enumerate() {
        let strategy = stock::find(slug).context("no such strategy")?;
        let gone = STOCK - stock_of(other, product, strategy.spec.store).await?;
        // The killed holder never sent its write.
        let sold = sold[n];
        ensure!(gone == sold, "{slug}: {sold} were sold, and {gone} left the shelf");
        let free = status(check_url_of(other, slug, product, 0, 0)).await?;
        ensure!(free == StatusCode::OK, "{slug}: the lock is not free: {free}");
        let product = format!("{other}/stock?stock_id={product}");
        let (removed, words) = answer(client().delete(product)).await?;
        ensure!(removed.is_success(), "{removed} {words}");
    }
    lab.restart(&victim.name).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// Clients that hang up inside or while waiting leave nothing: the next one gets in at once.
#[apply(test!)]
async fn a_client_that_hangs_up_leaves_nothing() -> Result<()> {
    let lab = labs::full_lab().await?;
    let [first, second] = [0, 1].map(|n| lab.addresses().instances[n].url.clone());
    for strategy in stock::ALL.iter() {
        let slug = strategy.slug;
        put_stock(&first, STOCK).await?;
        let inside = tokio::spawn(status(check_url(&first, slug, MINUTE, MINUTE)));
        let exclusive =
            strategy.spec.promise == Promise::Lease || ["select-for-update", "redis-setnx", "table-lock"].contains(&slug);
        let mut sold = 0;
        if exclusive {
            sold = wait_until_held(&second, slug).await?;
        }
        let waiting: Vec<_> = (0..5).map(|_| tokio::spawn(status(check_url(&second, slug, MINUTE, MINUTE)))).collect();
        inside.abort();
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        for base in [&first, &second] {
            match status(check_url(base, slug, 0, 20_000)).await? {
                StatusCode::OK => sold += 1,
                other => bail!("{slug}: after the hang-up {other}"),
            }
        }
        let gone = STOCK - http::stock(&first, strategy.spec.store).await?;
        ensure!(gone == sold || strategy.spec.promise == Promise::Unsafe, "{slug}: {sold} were sold, and {gone} left the shelf");
    }
    ensure_nothing_is_left(&lab).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// Of the stages of §2.1 to §2.7 such a client leaves no key even before it knows that it has the lock. It is played like the races.
#[apply(test!)]
async fn a_stage_that_is_given_up_leaves_no_key(servers: &Servers) -> Result<()> {
    const WAITS_IN_VAIN: &[Step] = &[B.stops_at(Point::Refused), B.continues(), B.hangs_up()];
    const GIVEN_UP: &[Step] = &[
        A.stops_at(Point::Read),
        Step::All(WAITS_IN_VAIN),
        A.hangs_up(),
        Step::LockIsFree,
        A.stops_at(Point::Taken),
        A.hangs_up(),
        B.stops_at(Point::Refused),
        Step::CancelledRequestsGoOn,
        B.finishes_and_unlocks(),
        Step::LockIsFree,
    ];
    for stage in ["redis-setnx", "redis-setnx-ttl", "redis-setnx-owner", "redis-setnx-lua", "redis-reentrant", "redis-watchdog"] {
        let ends = ExpectedResult::sold(1, 1).inside(1);
        let script = RaceScript::of(Act::Strategy(stage), GIVEN_UP, ends);
        ends_so(&servers.site().await.ctxs, script).await?;
    }
    Ok(())
}
