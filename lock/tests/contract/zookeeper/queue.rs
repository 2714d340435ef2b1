//! The queue in ZooKeeper over several processes: a waiter costs a few requests, however many wait, and enters beside
//! nobody, whatever happens between its looks. The order is a clause.

use crate::{
    support::*,
    zookeeper::wire::{GET_DATA, LIST, MULTI, Wire},
    zookeeper::*,
};
use oversell_lock::zk::ZkClient;
use std::time::Instant;

/// A wait that ends, but not before a busy machine has seen how far the waiter has come.
const VISIBLE_WAIT: Duration = Duration::from_secs(5);

/// `n` contenders wait behind a holder, each in the process that `of` says, and enter `rounds` times each. Returns the
/// requests, listings and notifications per section, of all processes together.
async fn cost(zookeeper: &ZooKeeper, [contenders, rounds, processes]: [usize; 3], of: fn(usize) -> usize) -> Result<[f64; 3]> {
    let (name, outsider) = (name(), zookeeper.client().await);
    let holder = take(&outsider.lock(&name)).await?;
    let mut sides: Vec<(Wire, ZkClient)> = Vec::new();
    for _ in 0..processes {
        let wire = Wire::to(zookeeper.address()).await;
        let client = patient(wire.address()).await?;
        sides.push((wire, client));
    }
    let costs = || {
        let sum = |what: fn(&Wire) -> u64| sides.iter().map(|(wire, _)| what(wire)).sum::<u64>();
        let lists = sum(|wire| wire.asked(LIST));
        [sum(Wire::requests), lists, sum(Wire::notifications)]
    };
    let before = costs();
    let mut tasks = JoinSet::new();
    for n in 0..contenders {
        let lock = sides[of(n) % processes].1.lock(&name);
        tasks.spawn(async move {
            for _ in 0..rounds {
                lock.acquire(SOON * 5).await?.release().await?;
            }
            Answer::Ok(())
        });
        // In this order, if they are few.
        if contenders <= 100 {
            zookeeper.until_nodes(&name, n + 2).await?;
        }
    }
    zookeeper.until_nodes(&name, contenders + 1).await?;
    holder.release().await?;
    let start = Instant::now();
    for task in tasks.join_all().await {
        task?;
    }
    let sections = (contenders * rounds) as f64;
    let rate = sections / start.elapsed().as_secs_f64();
    let after = costs();
    zookeeper.gone(&name).await?;
    let costs = [0, 1, 2].map(|n| (after[n] - before[n]) as f64 / sections);
    eprintln!("{contenders} waiters in {processes}: {costs:.2?} requests, listings, notifications a section; {rate:.0}/s");
    Ok(costs)
}

/// A node is created and deleted. If the one before it is another process's, that is watched, and then our node and
/// those in between are checked once.
#[apply(test!)]
async fn a_section_costs_as_much_among_a_thousand_as_among_ten(zookeeper: &ZooKeeper) -> Result {
    for (counts, most) in [([1, 50, 1], 3.3), ([20, 20, 3], 4.5), ([100, 3, 3], 4.5), ([1000, 1, 3], 4.5)] {
        let costs = cost(zookeeper, counts, |n| n).await?;
        let [requests, lists, notifications] = costs;
        let few = requests <= most && notifications <= 1.5 && (counts[0] < 100 || lists <= 0.2);
        ensure!(few, "{costs:?} a section with {counts:?}");
    }
    Ok(())
}

/// A contender behind another of its process sends requests only for its own node.
#[apply(test!)]
async fn a_hand_off_within_a_process_costs_two_requests(zookeeper: &ZooKeeper) -> Result {
    for (processes, most) in [(1, 2.2), (3, 3.3)] {
        let costs = cost(zookeeper, [100, 3, processes], |n| n / 3).await?;
        ensure!(costs[0] <= most, "{costs:?} with {processes}");
    }
    Ok(())
}

/// One release is pending, and the next one of its process waits for the answer.
#[apply(test!)]
async fn a_hand_off_waits_for_the_answer_to_the_release(zookeeper: &ZooKeeper) -> Result {
    let (name, wire) = (name(), Wire::to(zookeeper.address()).await);
    let process = zookeeper.process_with(&wire.address(), LONG_SESSION).await;
    let first = take(&process.lock(&name)).await?;
    let mut next = zookeeper.queued(process.lock(&name)).await?;
    // The waiter has listed the queue.
    connected(&process).await?.check_stat(&name).await?;
    wire.close_to(MULTI);
    let release = tokio::spawn(first.release());
    beside(&mut next, wire.holds()).await?;
    ensure_equal("nodes", zookeeper.left(&name).await.len(), 2)?;
    ensure!(!next.is_finished(), "it came in beside the first");
    wire.open();
    release.await??;
    next.await??.release().await?;
    zookeeper.gone(&name).await
}

/// Somebody deletes the next waiter's node, and then the holder goes like this: the next one queues again, behind one
/// that came meanwhile, and enters beside nobody.
async fn queues_again(zookeeper: &ZooKeeper, goes: impl AsyncFnOnce(Guard, &str) -> Result) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let first = take(&process.lock(&name)).await?;
    let held = zookeeper.left(&name).await.concat();
    let next = zookeeper.queued(process.lock(&name)).await?;
    let mut nodes = zookeeper.left(&name).await;
    nodes.retain(|node| *node != held);
    let stranger = zookeeper.node(&format!("{name}/{JAVA}lock-")).await?;
    zookeeper.delete(&format!("{name}/{}", nodes.concat())).await?;
    goes(first, &format!("{name}/{held}")).await?;
    zookeeper.until_nodes(&name, 2).await?;
    ensure!(!next.is_finished(), "it came in beside another");
    zookeeper.delete(&stranger).await?;
    next.await?.context("its turn")?.release().await?;
    zookeeper.gone(&name).await
}

#[apply(test!)]
async fn a_hand_off_to_one_whose_node_is_deleted_is_none(zookeeper: &ZooKeeper) -> Result {
    queues_again(zookeeper, async |first, _| Ok(first.release().await?)).await
}

#[apply(test!)]
async fn a_waiter_whose_node_is_deleted_queues_again(zookeeper: &ZooKeeper) -> Result {
    let deleted = async |first: Guard, node: &str| {
        zookeeper.delete(node).await?;
        ensure_lost("the first", first.release().await)
    };
    queues_again(zookeeper, deleted).await
}

/// A waiter behind a holder of its own process that does not know of its loss and keeps holding.
#[apply(test!)]
async fn a_waiter_in_line_queues_again_when_the_session_ends(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let first = take(&process.lock(&name)).await?;
    let next = zookeeper.queued(process.lock(&name)).await?;
    process.end_session(zookeeper).await;
    next.await?.context("in the next session")?.release().await?;
    ensure_lost("the first", first.release().await)?;
    zookeeper.gone(&name).await
}

/// Its node is deleted, and then the one before it, between its listing and its watch: it queues again, behind one that
/// came meanwhile.
#[apply(test!)]
async fn a_waiter_whose_node_goes_before_its_watch_queues_again(zookeeper: &ZooKeeper) -> Result {
    let (name, wire) = (name(), Wire::to(zookeeper.address()).await);
    let process = zookeeper.process_with(&wire.address(), LONG_SESSION).await;
    let first = zookeeper.node(&format!("{name}/{JAVA}lock-")).await?;
    wire.close_to(GET_DATA);
    let lock = process.lock(&name);
    let waiting = tokio::spawn(async move { lock.acquire(VISIBLE_WAIT).await });
    wire.holds().await?;
    let nodes = zookeeper.left(&name).await;
    let its = nodes.iter().find(|node| !first.ends_with(*node));
    let its = its.context("it has no node")?;
    let next = zookeeper.node(&format!("{name}/{JAVA}lock-")).await?;
    zookeeper.delete(&format!("{name}/{its}")).await?;
    zookeeper.delete(&first).await?;
    wire.open();
    ensure_taken("beside another", waiting.await?)?;
    zookeeper.delete(&next).await?;
    zookeeper.gone(&name).await
}

/// After 2^31 nodes the server's numbers are negative: such a node would sort before the holder's.
#[apply(test!)]
async fn a_contender_whose_number_is_below_0_is_refused(zookeeper: &ZooKeeper) -> Result {
    let (name, holder) = (name(), zookeeper.client().await);
    let wire = Wire::to(zookeeper.address()).await;
    let late = zookeeper.process_with(&wire.address(), LONG_SESSION).await;
    let guard = take(&holder.lock(&name)).await?;
    wire.number_below_0();
    ensure_invalid("beside the holder", late.lock(&name).acquire(SOON).await)?;
    zookeeper.until_nodes(&name, 1).await?;
    Ok(guard.release().await?)
}

/// Two kinds in one directory are two locks, and a wait for one ends while others wait for the other.
#[apply(test!)]
async fn a_mutex_and_a_read_write_lock_at_one_path_are_two_locks(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let lock = process.client.rw_lock(&name);
    let writing = take(&lock.write()).await?;
    let next = zookeeper.queued(lock.write()).await?;
    let passed = timeout(SOON, pass(&process.lock(&name))).await;
    passed.context("a wait had no end")??;
    writing.release().await?;
    next.await??.release().await?;
    zookeeper.gone(&name).await
}
