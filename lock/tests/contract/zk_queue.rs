//! The queue in ZooKeeper over several processes: each waiter is a node, is served in the order of the numbers, and costs
//! a few requests however many wait.

use super::{
    family::Server,
    support::*,
    zk_wire::{GET_DATA, LIST, Wire},
    zookeeper::{JAVA, LONG, ZooKeeper, connected, make, patient},
};
use futures::future::join_all;
use oversell_lock::{
    Fence, Guard, Lock, LockError,
    zk::{ZkClient, ZkLock},
};
use parking_lot::Mutex;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::task::JoinSet;
use zookeeper_client::CreateMode;

/// A wait that ends, and not before a busy machine has seen how far the waiter has come.
const SEEN: Duration = Duration::from_secs(5);

/// Ten of each of three processes wait, and note their fencing tokens when they come in: the token is the zxid of the
/// node's creation, so it grows with the node's number.
async fn thirty_wait<L: Lock + 'static>(
    zookeeper: &ZooKeeper,
    contender: impl Fn(usize, ZkLock) -> L,
) -> Result<()> {
    let name = name();
    let processes = join_all([(); 3].map(|()| zookeeper.client())).await;
    let holder = take(&processes[0].lock(&name)).await?;
    let served = Arc::new(Mutex::new(Vec::<Option<Fence>>::new()));
    let mut waiters = JoinSet::new();
    for n in 0..30 {
        let lock = contender(n % 3, processes[n % 3].lock(&name));
        let served = served.clone();
        waiters.spawn(async move {
            let guard = lock.acquire(SOON * 3).await?;
            served.lock().push(guard.fence());
            guard.release().await
        });
    }
    let queued = zookeeper.until_nodes(&name, 31).await;
    holder.release().await?;
    for waiter in waiters.join_all().await {
        waiter?;
    }
    queued?;
    let served = std::mem::take(&mut *served.lock());
    ensure!(
        served.is_sorted() && served.iter().all(Option::is_some),
        "not in order: {served:?}"
    );
    zookeeper.gone(&name).await
}

#[apply(test!)]
async fn waiters_of_three_processes_are_served_in_the_order_of_their_nodes(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    thirty_wait(zookeeper, |_, lock| lock).await
}

/// A process that lets its own contenders in one by one, before they have a node.
struct OneNode(ZkLock, Arc<tokio::sync::Mutex<()>>);

impl Lock for OneNode {
    fn name(&self) -> &str {
        self.0.name()
    }

    async fn acquire(&self, wait: Duration) -> Result<Guard, LockError> {
        // Here the honest one makes its node.
        let turn = self.1.lock().await;
        let guard = self.0.acquire(wait).await;
        drop(turn);
        guard
    }
}

#[apply(test!)]
async fn a_process_with_a_queue_of_its_own_is_caught(zookeeper: &ZooKeeper) -> Result<()> {
    let queues: [Arc<tokio::sync::Mutex<()>>; 3] = Default::default();
    let twin = |process: usize, lock| OneNode(lock, queues[process].clone());
    caught(thirty_wait(zookeeper, twin).await, "31 nodes are there")
}

/// What a section costs all processes together: requests, listings, notifications.
struct Cost(f64, f64, f64);

/// So many contenders in three processes wait behind a holder, and come in `rounds` times each.
async fn cost(zookeeper: &ZooKeeper, contenders: usize, rounds: usize) -> Result<Cost> {
    let name = name();
    let outsider = zookeeper.client().await;
    let holder = take(&outsider.lock(&name)).await?;
    let mut sides: Vec<(Wire, ZkClient)> = Vec::new();
    for _ in 0..3 {
        let wire = Wire::to(zookeeper.address()).await;
        let client = patient(wire.address()).await?;
        sides.push((wire, client));
    }
    let before = costs(&sides);
    let mut tasks = JoinSet::new();
    for n in 0..contenders {
        let lock = sides[n % 3].1.lock(&name);
        tasks.spawn(async move {
            for _ in 0..rounds {
                lock.acquire(SOON * 5).await?.release().await?;
            }
            Ok::<_, LockError>(())
        });
    }
    zookeeper.until_nodes(&name, contenders + 1).await?;
    holder.release().await?;
    let start = Instant::now();
    for task in tasks.join_all().await {
        task?;
    }
    let sections = (contenders * rounds) as f64;
    let rate = sections / start.elapsed().as_secs_f64();
    let after = costs(&sides);
    zookeeper.gone(&name).await?;
    let [requests, lists, told] = [0, 1, 2].map(|n| (after[n] - before[n]) as f64 / sections);
    eprintln!(
        "{contenders} waiters: {requests:.2} requests, {lists:.3} listings, {told:.2} notifications a section; {rate:.0}/s"
    );
    Ok(Cost(requests, lists, told))
}

fn costs(sides: &[(Wire, ZkClient)]) -> [u64; 3] {
    let sum = |what: fn(&Wire) -> u64| sides.iter().map(|(wire, _)| what(wire)).sum();
    [
        sum(Wire::requests),
        sum(|wire| wire.asked(LIST)),
        sum(Wire::notifications),
    ]
}

/// Create, watch the one before, look at the one or two of other processes in between, look whether the own node is
/// there, delete; and one listing for many.
#[apply(test!)]
async fn a_section_costs_as_much_among_a_thousand_as_among_ten(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    for (contenders, rounds) in [(10, 30), (100, 5), (1000, 2)] {
        let Cost(requests, lists, told) = cost(zookeeper, contenders, rounds).await?;
        let few_lists = contenders < 100 || lists <= 0.2;
        ensure!(
            requests <= 8.0 && told <= 1.5 && few_lists,
            "{requests} requests, {lists} listings, {told} notifications a section with {contenders}"
        );
    }
    Ok(())
}

/// The waiter's node is deleted, and then the one before it, after the waiter has listed them and before it watches: it queues
/// again, behind one that came meanwhile.
#[apply(test!)]
async fn a_waiter_whose_node_is_deleted_before_it_watches_queues_again(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    let (name, wire) = (name(), Wire::to(zookeeper.address()).await);
    let process = zookeeper.process_with(&wire.address(), LONG).await;
    connected(&process).await?;
    let before = zookeeper.node(&format!("{name}/{JAVA}lock-")).await?;
    let lock = process.lock(&name);
    wire.close_to(GET_DATA);
    let waiting = tokio::spawn(async move { lock.acquire(SEEN).await });
    tokio::time::timeout(SOON, wire.holds())
        .await
        .context("it did not want to watch")?;
    let nodes = zookeeper.left(&name).await;
    let its = nodes
        .iter()
        .find(|node| !before.ends_with(*node))
        .context("it has no node")?;
    let meanwhile = zookeeper.node(&format!("{name}/{JAVA}lock-")).await?;
    for gone in [&format!("{name}/{its}"), &before] {
        zookeeper.delete(gone).await?;
    }
    wire.open();
    taken("beside another", waiting.await?)?;
    zookeeper.delete(&meanwhile).await?;
    zookeeper.gone(&name).await
}

/// A writer that reads on leaves its reader at its own number, where nobody stood when the next writer listed the queue:
/// the next writer sees it, though it comes and the writer goes between its listing and its watch.
#[apply(test!)]
async fn a_reader_that_takes_a_writers_place_keeps_the_next_writer_out(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    let (name, wire) = (name(), Wire::to(zookeeper.address()).await);
    let process = zookeeper.process_with(&wire.address(), LONG).await;
    connected(&process).await?;
    let writer = zookeeper.node(&format!("{name}/{JAVA}__WRIT__")).await?;
    let lock = process.client.rw_lock(&name).write();
    wire.close_to(GET_DATA);
    let waiting = tokio::spawn(async move { lock.acquire(SEEN).await });
    tokio::time::timeout(SOON, wire.holds())
        .await
        .context("it did not want to watch")?;
    let reader = writer.replace("__WRIT__", "__READ__");
    make(&zookeeper.outsider().await, &reader, CreateMode::Ephemeral).await?;
    zookeeper.delete(&writer).await?;
    wire.open();
    taken("beside a reader", waiting.await?)?;
    zookeeper.delete(&reader).await?;
    zookeeper.gone(&name).await
}
