//! What those leave who are gone while they hold a lock or wait for it: a killed process, and a client that hangs up.

use crate::support::{
    http::{self, MINUTE, check, put_stock, status, until_held},
    labs,
    leftovers::nothing_is_left,
    *,
};
use oversell::stock::{self, Promise};
use reqwest::StatusCode;

const STOCK: i64 = 1000;

/// One of each kind of lock that ends with its holder.
const THAT_END: [&str; 8] = [
    "redis-watchdog",
    "redis-lock",
    "zk-ephemeral",
    "zk-sequential",
    "zk-lock",
    "zk-mutex",
    "table-lock-lease",
    "mysql-named-lock",
];

/// `kill -9` of the instance that holds the lock, with others waiting: they go on once its lease or session has ended,
/// nothing is oversold, and nothing is left.
#[apply(test!)]
#[over(THAT_END.map(|slug| (slug, slug)))]
async fn others_go_on_after_the_holder_is_killed(slug: &'static str) -> Result<()> {
    const WAITERS: usize = 20;
    let mut lab = labs::whole().await?;
    let instances = lab.addresses().instances.clone();
    let (victim, others) = instances.split_first().context("no instance")?;
    let other = &others[0].url;
    put_stock(other, STOCK).await?;
    let held = tokio::spawn(status(check(&victim.url, slug, MINUTE, MINUTE)));
    let mut sold = until_held(other, slug).await?;
    // Far longer than the lease or session lasts: a waiter that is not let in by then is answered 503.
    let waiters: Vec<_> = (0..WAITERS)
        .map(|n| tokio::spawn(status(check(&others[n % 2].url, slug, 0, MINUTE))))
        .collect();
    lab.kill(&victim.name).await?;
    ensure!(
        !held.await.is_ok_and(|answer| answer.is_ok()),
        "the killed instance has answered"
    );
    for waiter in waiters {
        match waiter.await?? {
            StatusCode::OK => sold += 1,
            other => bail!("a waiter was answered {other}"),
        }
    }
    let strategy = stock::find(slug).context("no such strategy")?;
    let gone = STOCK - http::stock(other, strategy.store).await?;
    // The killed one was before its write, which it never sent.
    ensure!(gone == sold, "{sold} were sold, and {gone} left the shelf");
    let free = status(check(other, slug, 0, 0)).await?;
    ensure!(free == StatusCode::OK, "the lock is not free: {free}");
    lab.restart(&victim.name).await?;
    labs::hand_on(lab);
    Ok(())
}

/// Clients that hang up while they are inside, or while they wait, leave nothing: the next gets in at once.
#[apply(test!)]
async fn a_client_that_hangs_up_leaves_nothing() -> Result<()> {
    let lab = labs::whole().await?;
    let [first, second] = [0, 1].map(|n| lab.addresses().instances[n].url.clone());
    for strategy in stock::ALL.iter() {
        let slug = strategy.slug;
        put_stock(&first, STOCK).await?;
        let inside = tokio::spawn(status(check(&first, slug, MINUTE, MINUTE)));
        let exclusive = strategy.promise == Promise::Lease
            || ["select-for-update", "redis-setnx", "table-lock"].contains(&slug);
        let mut sold = 0;
        if exclusive {
            sold = until_held(&second, slug).await?;
        }
        let waiting: Vec<_> = (0..5)
            .map(|_| tokio::spawn(status(check(&second, slug, MINUTE, MINUTE))))
            .collect();
        inside.abort();
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        for base in [&first, &second] {
            match status(check(base, slug, 0, 20_000)).await? {
                StatusCode::OK => sold += 1,
                other => bail!("{slug}: after the hang-up {other}"),
            }
        }
        let gone = STOCK - http::stock(&first, strategy.store).await?;
        ensure!(
            gone == sold || strategy.promise == Promise::Unsafe,
            "{slug}: {sold} were sold, and {gone} left the shelf"
        );
    }
    nothing_is_left(&lab).await?;
    labs::hand_on(lab);
    Ok(())
}
