//! Every public future is `Send`: otherwise `tokio::spawn` and web frameworks refuse it. A mistake here does not
//! compile; nothing runs.

use oversell_lock::{etcd::*, mysql::*, redis::*, zk::*, *};
use std::{num::NonZeroU32, time::Duration};

const WAIT: Duration = Duration::from_secs(1);
const ONE: NonZeroU32 = NonZeroU32::MIN;

fn spawned<F: Future<Output: Send> + Send + 'static>(_: F) {}

/// The methods of every lock.
macro_rules! lock {
    ($lock:expr $(, $more:ident)*) => {{
        let lock = $lock;
        spawned(async move {
            drop(lock.acquire(WAIT).await);
            drop(lock.try_acquire().await);
            drop(lock.with(WAIT, |fence| async move { Ok::<_, String>(fence) }).await);
            $(drop(lock.$more().await);)*
        });
    }};
}

#[expect(dead_code, reason = "it is compiled, and never run")]
fn guards(guards: [Guard; 5], permits: [Permit; 4], layered: MultiLock<Box<dyn DynLock>>, any: std::sync::Arc<dyn DynLock>) {
    let [lost, run, extend, release, kept] = guards;
    spawned(async move { lost.lost().await });
    spawned(async move { run.run(async { 1 }).await });
    spawned(async move { extend.extend(WAIT).await });
    spawned(async move { release.release().await });
    let [lost, run, extend, release] = permits;
    spawned(async move { lost.lost().await });
    spawned(async move { run.run(async { 1 }).await });
    spawned(async move { extend.extend(WAIT).await });
    spawned(async move { release.release().await });
    lock!(layered);
    lock!(any);
    drop(kept);
}

#[expect(dead_code, reason = "it is compiled, and never run")]
fn redis(client: RedisClient) {
    let own = client.clone();
    spawned(async move {
        drop(RedisClient::connect("redis://127.0.0.1").await);
        drop(own.own_connection().await);
        own.close().await;
    });
    lock!(client.lock("a"), holder, force_unlock);
    lock!(client.fenced_lock("a"), holder, force_unlock, forget);
    let fenced = client.fenced_lock("a");
    spawned(async move { fenced.lift(Fence(1)).await });
    lock!(client.fair_lock("a"), holder, force_unlock);
    lock!(client.rw_lock("a").read(), holders, force_unlock);
    lock!(client.rw_lock("a").write(), holder, force_unlock);
    let redlock = RedlockClient::new(std::slice::from_ref(&client)).expect("a node");
    lock!(redlock.lock("a"), holder, force_unlock);
    spawned(async move { redlock.close().await });
    let semaphore = client.semaphore("a").lease(Lease::Fixed(WAIT));
    spawned(async move {
        drop(semaphore.try_set_permits(1).await);
        drop(semaphore.available_permits().await);
        drop(semaphore.acquire(1, WAIT).await);
        drop(semaphore.with(1, WAIT, || async { Ok::<_, String>(()) }).await);
        drop(semaphore.try_acquire(1).await);
    });
    let latch = client.latch("a");
    spawned(async move {
        drop(latch.try_set_count(ONE).await);
        drop(latch.count_down().await);
        drop(latch.get_count().await);
        drop(latch.wait(WAIT).await);
    });
    let limiter = client.rate_limiter("a");
    spawned(async move {
        drop(limiter.try_set_rate(ONE, WAIT).await);
        drop(limiter.acquire(ONE, WAIT).await);
        drop(limiter.try_acquire(ONE).await);
    });
}

#[expect(dead_code, reason = "it is compiled, and never run")]
fn zookeeper(client: ZkClient) {
    lock!(client.lock("/a"), holder, force_unlock);
    lock!(client.rw_lock("/a").read(), holder, force_unlock);
    lock!(client.rw_lock("/a").write(), holder, force_unlock);
    lock!(client.semaphore_mutex("/a"), holder, force_unlock);
    let semaphore = client.semaphore("/a", 2);
    spawned(async move {
        drop(semaphore.acquire(1, WAIT).await);
        drop(semaphore.try_acquire(1).await);
    });
    let barrier = client.barrier("/a");
    spawned(async move {
        drop(barrier.set().await);
        drop(barrier.remove().await);
        drop(barrier.wait(WAIT).await);
    });
    let barrier = client.double_barrier("/a", ONE);
    spawned(async move {
        let member = barrier.enter(WAIT).await?;
        barrier.leave(&member, WAIT).await
    });
    let count = client.shared_count("/a", 0);
    spawned(async move {
        let value = count.get().await?;
        drop(count.set(1).await);
        drop(count.listen().await);
        count.try_set(value, 1).await
    });
    let number = client.atomic_long("/a");
    spawned(async move {
        drop(number.get().await);
        drop(number.add(1).await);
        drop(number.increment().await);
        drop(number.subtract(1).await);
        drop(number.decrement().await);
        drop(number.try_set(1).await);
        drop(number.force_set(1).await);
        drop(number.initialize(1).await);
        drop(number.compare_and_set(1, 1).await);
    });
    spawned(async move {
        drop(ZkClient::connect("127.0.0.1").await);
        client.close().await;
    });
}

#[expect(dead_code, reason = "it is compiled, and never run")]
fn etcd(client: EtcdClient) {
    lock!(client.lock("/a"), holder, force_unlock);
    spawned(async move {
        drop(EtcdClient::connect("127.0.0.1:2379").await);
        drop(client.check().await);
        client.close().await;
    });
}

#[expect(dead_code, reason = "it is compiled, and never run")]
fn mysql(pool: TablePool) {
    lock!(pool.table_lock("a"), holder, force_unlock);
    lock!(pool.table_lease_lock("a"), holder, force_unlock);
    spawned(async move {
        drop(TablePool::connect("mysql://127.0.0.1/test").await);
        drop(pool.create_table().await);
        drop(pool.conn(WAIT).await);
        pool.close().await;
    });
}
