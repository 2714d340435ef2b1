//! The holder of a lock, and how an operator frees it.

use super::{
    family::{Capability::Leased, Operator},
    redis::redlock::{redlock, until_on},
    register::shown,
    support::*,
    zookeeper::*,
};
use oversell_lock::{
    Holder,
    mysql::{MySqlOptions, TablePool},
    zk::ZkOptions,
};

const HOUR: Duration = Duration::from_secs(60 * 60);
const LEASE: Lease = Lease::Fixed(HOUR);

/// Checks that about an hour is left, or `None` without a lease.
fn ensure_an_hour_left(holder: &Holder, is_leased: bool) -> Result {
    let bounds = HOUR.mul_f64(0.9)..=HOUR.mul_f64(1.1);
    let left = holder.remaining;
    let is_right = left.map_or(!is_leased, |left| is_leased && bounds.contains(&left));
    ensure!(is_right, "an hour's lease: {holder:?}");
    Ok(())
}

/// The holder that is shown is the server's.
async fn ensure_shown<S: Server>(family: Family<S>, name: &str, operator: &Operator) -> Result<Holder> {
    let shown = (operator.holder)().await?.context("nobody is shown")?;
    let alone = async || {
        let held = family.holders(name).await;
        !held.is_empty() && held.iter().all(|id| *id == shown.id)
    };
    let is_had = until("the server has it alone", alone).await;
    is_had.with_context(|| format!("{shown:?} is shown"))?;
    Ok(shown)
}

/// First nobody, then the first holder, then the next.
#[apply(shown!)]
async fn its_holder_is_shown_to_anybody<S: Server>(family: Family<S>) -> Result {
    let (name, one, other) = (name(), family.process().await, family.process().await);
    let third = family.process().await;
    let third = third.operator(&name);
    ensure_equal("nobody has it", (third.holder)().await?, None)?;
    let first = take(&one.leased(&name, LEASE)).await?;
    let holder = ensure_shown(family, &name, &third).await?;
    ensure_an_hour_left(&holder, family.kind.can.contains(&Leased))?;
    let waiting = spawn_acquire(other.lock(&name));
    family.until_queued(&name, 2).await?;
    let still = (third.holder)().await?.map(|holder| holder.id);
    ensure_equal("the holder", still, Some(holder.id))?;
    first.release().await?;
    let next = waiting.await??;
    ensure_shown(family, &name, &third).await?;
    next.release().await?;
    ensure_equal("it is free", (third.holder)().await?, None)
}

/// A waiter gets in, and the holder learns of it: at its next renewal, if there is one, and when it releases.
#[apply(shown!)]
async fn it_is_freed_by_force_and_its_holder_told<S: Server>(family: Family<S>) -> Result {
    let (name, one, other) = (name(), family.process().await, family.process().await);
    let operator = family.process().await;
    let operator = operator.operator(&name);
    ensure!(!(operator.force_unlock)().await?, "nobody had it");
    let held = take(&one.leased(&name, Lease::Watchdog(S::RENEWED))).await?;
    family.until_shown(&name).await?;
    let waiter = spawn_acquire(other.lock(&name));
    family.until_queued(&name, 2).await?;
    until("it is waited for", || family.server.is_waited_for(&name)).await?;
    ensure!((operator.force_unlock)().await?, "it was held");
    let next = waiter.await?.context("it was not let in")?;
    if family.kind.can.contains(&Leased) {
        wait_until_lost(&held).await?;
    }
    ensure_lost("the late release", held.release().await)?;
    ensure_kept("the next hold", &next)?;
    next.release().await?;
    ensure!(!(operator.force_unlock)().await?, "it was free");
    family.nothing_left(&name).await
}

// --- readers ------------------------------------------------------------------------------------------------------

/// A reader's handle frees readers, a writer's does not, and a waiting writer gets in.
macro_rules! readers_are_freed {
    ($($test:ident: $engine:ident, $write:literal, ($client:ident, $name:ident) => $lock:expr;)*) => {$(
        test! {
            async fn $test(engine: &'static $engine) -> Result {
                let ($name, clients) = (name(), engine.clients(3).await);
                let [lock, there, operator] = [0, 1, 2].map(|n| {
                    let $client = &clients[n];
                    $lock
                });
                let readers = [take(&lock.read()).await?, take(&lock.read()).await?];
                ensure!(!operator.write().force_unlock().await?, "nobody writes");
                ensure_kept("a reader", &readers[0])?;
                let writer = spawn_acquire(there.write());
                engine.family($write).until_queued(&$name, 3).await?;
                until("it is waited for", || engine.is_waited_for(&$name)).await?;
                ensure!(operator.read().force_unlock().await?, "two read");
                let writer = writer.await?.context("the writer was not let in")?;
                for reader in readers {
                    ensure_lost("a reader", reader.release().await)?;
                }
                ensure!(!operator.read().force_unlock().await?, "nobody reads");
                ensure_kept("the writer", &writer)?;
                Ok(writer.release().await?)
            }
        }
    )*};
}

readers_are_freed! {
    readers_in_redis_are_freed_together:
        Redis, "redis_write", (client, name) => client.rw_lock(&name);
    readers_in_zookeeper_are_freed_together:
        ZooKeeper, "zookeeper_write", (member, name) => member.client.rw_lock(&name);
}

#[apply(test!)]
async fn readers_are_shown_each_with_its_own_lease(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    let lock = process.rw_lock(&name);
    let long = take(&lock.read().lease(LEASE)).await?;
    let first = lock.read().holders().await?;
    let short = Lease::Fixed(HOUR / 2);
    let short = take(&lock.read().lease(short)).await?;
    let both = lock.read().holders().await?;
    ensure_equal("readers, first and then", (first.len(), both.len()), (1, 2))?;
    let second = both.iter().find(|holder| holder.id != first[0].id);
    let half = second.is_some_and(|holder| holder.remaining <= Some(HOUR / 2));
    ensure!(half, "half an hour's: {second:?}");
    ensure_an_hour_left(&first[0], true)?;
    let writer = lock.write().holder().await?;
    ensure_equal("a writer beside readers", writer, None)?;
    // As after the end of its lease: the field stays until the next call.
    let string = format!("{{{name}}}:{}:rwlock_timeout:1", first[0].id);
    redis.delete(&string).await;
    let left = lock.read().holders().await?;
    let alone = left.len() == 1 && left[0].id != first[0].id;
    ensure!(alone, "expired, and shown: {left:?}");
    drop(long);
    Ok(short.release().await?)
}

// --- what one engine alone shows ----------------------------------------------------------------------------------

#[apply(test!)]
async fn what_is_no_lock_has_no_holder_and_says_so(redis: &Redis) -> Result {
    let (name, process) = (name(), redis.client().await);
    redis.ask::<()>(&["SET", &name, "a text"]).await?;
    let shown = process.lock(&name).holder().await;
    redis.delete(&name).await;
    ensure_refused("a text", shown)
}

/// Held on most nodes; the key is gone on the others.
#[apply(test!)]
async fn a_redlock_is_held_by_the_one_that_most_nodes_show(five: &Five) -> Result {
    let (name, clients) = (name(), five.client().await);
    let lock = redlock(&clients, &name).lease(LEASE);
    let guard = take(&lock).await?;
    // The acquire on the fifth node may still be running.
    until_on(five, &name, 5).await?;
    for (gone, node) in five.0.iter().enumerate().take(3) {
        let shown = lock.holder().await?;
        ensure!(shown.is_some(), "gone from {gone} nodes");
        node.delete(&name).await;
    }
    ensure_equal("on two nodes of five", lock.holder().await?, None)?;
    drop(guard);
    Ok(())
}

#[apply(test!)]
async fn a_row_says_which_process_holds_it(table: &Table) -> Result {
    let process = Process::labelled("shop-3").context("a label")?;
    let pool = TablePool::new(MySqlOptions::new(&table.url).process(process))?;
    let lock = pool.table_lock(&name());
    let guard = take(&lock).await?;
    let holder = lock.holder().await?.context("nobody is shown")?;
    ensure!(holder.id.starts_with("shop-3-"), "{holder:?}");
    Ok(guard.release().await?)
}

/// Curator stores its host's address in the node, ours the configured data.
#[apply(test!)]
async fn a_holder_that_says_where_it_is_is_shown_with_that(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let shows = async |data: &str| {
        let shown = process.lock(&name).holder().await?.map(|holder| holder.id);
        let node = zookeeper.left(&name).await.pop();
        let wanted = node.map(|node| format!("{node} {data}"));
        ensure_equal("the holder", shown, wanted)
    };
    let java = zookeeper.node(&format!("{name}/{JAVA}lock-")).await?;
    zookeeper.set_data(&java, b"10.0.0.7").await?;
    shows("10.0.0.7").await?;
    zookeeper.delete(&java).await?;
    let options = ZkOptions::new(zookeeper.address()).chroot(CHROOT);
    let named = client_of(options.data("8100")).await?;
    let guard = take(&named.lock(&name)).await?;
    shows("8100").await?;
    Ok(guard.release().await?)
}
