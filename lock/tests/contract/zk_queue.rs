//! The queue in ZooKeeper over several processes: each waiter is a node, is served in the order of the numbers, and costs
//! a few requests however many wait.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    zk_losses::patient,
    zk_recipes::{JAVA, gone, node, refused, take},
    zk_wire::{GET_DATA, LIST, Wire},
    zookeeper::{LONG, ZooKeeper, connected, text},
};
use futures::future::BoxFuture;
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
use zookeeper_client::{Acls, CreateMode};

/// A wait that ends, and not before a busy machine has seen how far the waiter has come.
const SEEN: Duration = Duration::from_secs(5);

/// Ten of each of three processes wait, and note their fencing tokens when they come in: the token is the zxid of the
/// node's creation, so it grows with the node's number.
async fn thirty_wait<L: Lock + 'static>(
    zookeeper: &ZooKeeper,
    contender: impl Fn(usize, ZkLock) -> L,
) -> Verdict {
    let name = name();
    let processes = [
        zookeeper.process().await,
        zookeeper.process().await,
        zookeeper.process().await,
    ];
    let holder = take(&processes[0].lock(&name)).await?;
    let served = Arc::new(Mutex::new(Vec::<Option<Fence>>::new()));
    let mut waiters = JoinSet::new();
    for n in 0..30 {
        let (lock, served) = (
            contender(n % 3, processes[n % 3].lock(&name)),
            served.clone(),
        );
        waiters.spawn(async move {
            let guard = says("a turn", lock.acquire(SOON * 3).await)?;
            served.lock().push(guard.fence());
            says("release", guard.release().await)
        });
    }
    let queued = until("each of thirty waiters is a node", || async {
        zookeeper.left(&name).await.len() == 31
    })
    .await;
    says("release", holder.release().await)?;
    for waiter in waiters.join_all().await {
        waiter?;
    }
    queued?;
    let served = std::mem::take(&mut *served.lock());
    ensure(
        served.is_sorted() && served.iter().all(Option::is_some),
        || format!("not in order: {served:?}"),
    )?;
    gone(zookeeper, &name).await
}

pub(crate) async fn waiters_of_three_processes_are_served_in_the_order_of_their_nodes(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    thirty_wait(&zookeeper, |_, lock| lock).await
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

pub(crate) async fn a_process_with_a_queue_of_its_own_is_caught(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let queues: [Arc<tokio::sync::Mutex<()>>; 3] = Default::default();
    match thirty_wait(&zookeeper, |process, lock| {
        OneNode(lock, queues[process].clone())
    })
    .await
    {
        Err(broken) if broken.contains("each of thirty waiters is a node") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}

/// What a section costs all processes together: requests, listings, notifications.
struct Cost(f64, f64, f64);

/// So many contenders in three processes wait behind a holder, and come in `rounds` times each.
async fn cost(zookeeper: &ZooKeeper, contenders: usize, rounds: usize) -> Result<Cost, String> {
    let name = name();
    let outsider = zookeeper.process().await;
    let holder = take(&outsider.lock(&name)).await?;
    let mut sides: Vec<(Wire, ZkClient)> = Vec::new();
    for _ in 0..3 {
        let wire = Wire::to(zookeeper.server()).await;
        let client = patient(wire.address()).await?;
        sides.push((wire, client));
    }
    let before = [
        sum(&sides, Wire::requests),
        sum(&sides, |wire| wire.asked(LIST)),
        sum(&sides, Wire::notifications),
    ];
    let mut tasks: Vec<BoxFuture<'static, Verdict>> = Vec::new();
    for n in 0..contenders {
        let lock = sides[n % 3].1.lock(&name);
        tasks.push(Box::pin(async move {
            for _ in 0..rounds {
                says(
                    "release",
                    says("a turn", lock.acquire(SOON * 5).await)?
                        .release()
                        .await,
                )?;
            }
            Ok(())
        }));
    }
    let tasks: Vec<_> = tasks.into_iter().map(tokio::spawn).collect();
    until("all wait", || async {
        zookeeper.left(&name).await.len() == contenders + 1
    })
    .await?;
    says("release", holder.release().await)?;
    let start = Instant::now();
    for task in tasks {
        task.await.map_err(text)??;
    }
    let sections = (contenders * rounds) as f64;
    let rate = sections / start.elapsed().as_secs_f64();
    let after = [
        sum(&sides, Wire::requests),
        sum(&sides, |wire| wire.asked(LIST)),
        sum(&sides, Wire::notifications),
    ];
    gone(zookeeper, &name).await?;
    let [requests, lists, told] = [0, 1, 2].map(|n| (after[n] - before[n]) as f64 / sections);
    eprintln!(
        "{contenders} waiters: {requests:.2} requests, {lists:.3} listings, {told:.2} notifications a section; {rate:.0}/s"
    );
    Ok(Cost(requests, lists, told))
}

fn sum(sides: &[(Wire, ZkClient)], what: impl Fn(&Wire) -> u64) -> u64 {
    sides.iter().map(|(wire, _)| what(wire)).sum()
}

/// Create, watch the one before, look at the one or two of other processes in between, look whether the own node is
/// there, delete; and one listing for many.
pub(crate) async fn a_section_costs_as_much_among_a_thousand_as_among_ten(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    for (contenders, rounds) in [(10, 30), (100, 5), (1000, 2)] {
        let Cost(requests, lists, told) = cost(&zookeeper, contenders, rounds).await?;
        ensure(requests <= 8.0, || {
            format!("{requests} requests a section with {contenders} waiters")
        })?;
        ensure(told <= 1.5, || {
            format!("{told} notifications a section with {contenders} waiters")
        })?;
        ensure(contenders < 100 || lists <= 0.2, || {
            format!("{lists} listings a section with {contenders} waiters")
        })?;
    }
    Ok(())
}

/// The waiter's node is deleted, and then the one before it, after the waiter has listed them and before it watches: it queues
/// anew, behind who came meanwhile.
pub(crate) async fn a_waiter_whose_node_is_deleted_before_it_watches_queues_anew(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, wire, outsider) = (
        name(),
        Wire::to(zookeeper.server()).await,
        zookeeper.outsider().await,
    );
    let process = zookeeper.process_with(&wire.address(), LONG).await;
    connected(&process).await?;
    let before = node(&outsider, &format!("{name}/{JAVA}lock-")).await?;
    let lock = process.lock(&name);
    wire.close_to(GET_DATA);
    let waiting = tokio::spawn(async move { lock.acquire(SEEN).await });
    tokio::time::timeout(SOON, wire.holds())
        .await
        .map_err(|_| "it did not want to watch")?;
    let nodes = zookeeper.left(&name).await;
    let its = nodes
        .iter()
        .find(|node| !before.ends_with(*node))
        .ok_or("it has no node")?;
    let meanwhile = node(&outsider, &format!("{name}/{JAVA}lock-")).await?;
    for gone in [&format!("{name}/{its}"), &before] {
        outsider.delete(gone, None).await.map_err(text)?;
    }
    wire.open();
    refused("beside another", &waiting.await.map_err(text)?)?;
    outsider.delete(&meanwhile, None).await.map_err(text)?;
    gone(&zookeeper, &name).await
}

/// A writer that reads on leaves its reader at its own number, where nobody stood when the next writer listed the queue:
/// the next writer sees it, though it comes and the writer goes between its listing and its watch.
pub(crate) async fn a_reader_that_takes_a_writers_place_keeps_the_next_writer_out(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, wire, outsider) = (
        name(),
        Wire::to(zookeeper.server()).await,
        zookeeper.outsider().await,
    );
    let process = zookeeper.process_with(&wire.address(), LONG).await;
    connected(&process).await?;
    let writer = node(&outsider, &format!("{name}/{JAVA}__WRIT__")).await?;
    let lock = process.client.rw_lock(&name).write();
    wire.close_to(GET_DATA);
    let waiting = tokio::spawn(async move { lock.acquire(SEEN).await });
    tokio::time::timeout(SOON, wire.holds())
        .await
        .map_err(|_| "it did not want to watch")?;
    let reader = writer.replace("__WRIT__", "__READ__");
    outsider
        .create(
            &reader,
            &[],
            &CreateMode::Ephemeral.with_acls(Acls::anyone_all()),
        )
        .await
        .map_err(text)?;
    outsider.delete(&writer, None).await.map_err(text)?;
    wire.open();
    refused("beside a reader", &waiting.await.map_err(text)?)?;
    outsider.delete(&reader, None).await.map_err(text)?;
    gone(&zookeeper, &name).await
}
