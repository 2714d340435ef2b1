//! The queue in ZooKeeper over several processes: a waiter costs a few requests however many wait, and
//! comes in beside nobody, whatever happens between its looks. That it is served in its turn is a clause.

use super::{
    support::*,
    zk_wire::{GET_DATA, LIST, MULTI, Wire},
    zookeeper::*,
};
use oversell_lock::zk::ZkClient;
use std::time::Instant;
use zookeeper_client::CreateMode;

/// A wait that ends, and not before a busy machine has seen how far the waiter has come.
const SEEN: Duration = Duration::from_secs(5);

/// So many contenders wait behind a holder, each in the process that `of` says, and come in `rounds` times each: how many
/// requests, listings and notifications a section costs all processes together.
async fn cost(
    zookeeper: &ZooKeeper,
    [contenders, rounds, processes]: [usize; 3],
    of: fn(usize) -> usize,
) -> Result<[f64; 3]> {
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
        // In this order, where they are not too many to wait for each.
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
    eprintln!(
        "{contenders} waiters in {processes}: {costs:.2?} requests, listings, notifications a section; {rate:.0}/s"
    );
    Ok(costs)
}

/// A node is made and deleted. Where the one before it is another process's, that is watched, and then there is one look at
/// the own node and at those in between.
#[apply(test!)]
async fn a_section_costs_as_much_among_a_thousand_as_among_ten(zookeeper: &ZooKeeper) -> Result {
    for (counts, most) in [
        ([1, 50, 1], 3.3),
        ([20, 20, 3], 4.5),
        ([100, 3, 3], 4.5),
        ([1000, 1, 3], 4.5),
    ] {
        let costs = cost(zookeeper, counts, |n| n).await?;
        let [requests, lists, told] = costs;
        let few = requests <= most && told <= 1.5 && (counts[0] < 100 || lists <= 0.2);
        ensure!(few, "{costs:?} a section with {counts:?}");
    }
    Ok(())
}

/// Whose turn comes after another of its own process asks the server for nothing but its node.
#[apply(test!)]
async fn a_hand_off_within_a_process_costs_two_requests(zookeeper: &ZooKeeper) -> Result {
    for (processes, most) in [(1, 2.2), (3, 3.3)] {
        let costs = cost(zookeeper, [100, 3, processes], |n| n / 3).await?;
        ensure!(costs[0] <= most, "{costs:?} with {processes}");
    }
    Ok(())
}

/// The release of one is under way, and the next one of its process waits for the answer.
#[apply(test!)]
async fn a_hand_off_waits_for_the_answer_to_the_release(zookeeper: &ZooKeeper) -> Result {
    let (name, wire) = (name(), Wire::to(zookeeper.address()).await);
    let process = zookeeper.process_with(&wire.address(), LONG).await;
    let first = take(&process.lock(&name)).await?;
    let mut next = zookeeper.queued(process.lock(&name)).await?;
    // It has listed the queue.
    connected(&process).await?.check_stat(&name).await?;
    wire.close_to(MULTI);
    let release = tokio::spawn(first.release());
    beside(&mut next, wire.holds()).await?;
    is("nodes", zookeeper.left(&name).await.len(), 2)?;
    ensure!(!next.is_finished(), "it came in beside the first");
    wire.open();
    release.await??;
    next.await??.release().await?;
    zookeeper.gone(&name).await
}

/// Somebody deletes the node of the next one of the process: it queues again, behind one that came meanwhile.
#[apply(test!)]
async fn a_hand_off_to_one_whose_node_is_deleted_is_none(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let first = take(&process.lock(&name)).await?;
    let held = zookeeper.left(&name).await;
    let next = process.lock(&name);
    let next = tokio::spawn(async move { next.acquire(SEEN).await });
    zookeeper.until_nodes(&name, 2).await?;
    let stranger = zookeeper.node(&format!("{name}/{JAVA}lock-")).await?;
    for node in zookeeper.left(&name).await {
        let path = format!("{name}/{node}");
        if path != stranger && !held.contains(&node) {
            zookeeper.delete(&path).await?;
        }
    }
    first.release().await?;
    taken("beside the stranger", next.await?)?;
    zookeeper.delete(&stranger).await?;
    zookeeper.gone(&name).await
}

/// It waits for one of its own process, which does not know yet that it has lost the lock, and goes on to hold it.
#[apply(test!)]
async fn a_waiter_behind_its_own_process_queues_again_when_the_session_ends(
    zookeeper: &ZooKeeper,
) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let first = take(&process.lock(&name)).await?;
    let next = zookeeper.queued(process.lock(&name)).await?;
    process.end_session(zookeeper).await;
    next.await?
        .context("in the next session")?
        .release()
        .await?;
    lost("the first", first.release().await)?;
    zookeeper.gone(&name).await
}

/// A waiter behind `first` has listed the queue and does not watch yet when this happens, and by then another is before
/// it, whose node it says.
async fn between_its_list_and_its_watch<L: Lock + 'static>(
    zookeeper: &ZooKeeper,
    name: &str,
    first: &str,
    waiter: impl FnOnce(&Member) -> L,
    happens: impl AsyncFnOnce(String) -> Result<String>,
) -> Result {
    let wire = Wire::to(zookeeper.address()).await;
    let process = zookeeper.process_with(&wire.address(), LONG).await;
    let first = zookeeper.node(&format!("{name}/{JAVA}{first}")).await?;
    wire.close_to(GET_DATA);
    let lock = waiter(&process);
    let waiting = tokio::spawn(async move { lock.acquire(SEEN).await });
    wire.holds().await?;
    let next = happens(first).await?;
    wire.open();
    taken("beside another", waiting.await?)?;
    zookeeper.delete(&next).await?;
    zookeeper.gone(name).await
}

/// Its node is deleted, and then the one before it: it queues again, behind one that came meanwhile.
#[apply(test!)]
async fn a_waiter_whose_node_is_deleted_before_it_watches_queues_again(
    zookeeper: &ZooKeeper,
) -> Result {
    let name = &name();
    let happens = async |first: String| {
        let nodes = zookeeper.left(name).await;
        let its = nodes.iter().find(|node| !first.ends_with(*node));
        let its = its.context("it has no node")?;
        let next = zookeeper.node(&format!("{name}/{JAVA}lock-")).await?;
        zookeeper.delete(&format!("{name}/{its}")).await?;
        zookeeper.delete(&first).await?;
        Ok(next)
    };
    let waiter = |process: &Member| process.lock(name);
    between_its_list_and_its_watch(zookeeper, name, "lock-", waiter, happens).await
}

/// A writer that reads on leaves its reader at its own number, where nobody stood when the next writer listed the queue:
/// the next writer sees it, though it comes and the writer goes between its listing and its watch.
#[apply(test!)]
async fn a_reader_that_takes_a_writers_place_keeps_the_next_writer_out(
    zookeeper: &ZooKeeper,
) -> Result {
    let name = &name();
    let happens = async |first: String| {
        let reader = first.replace("__WRIT__", "__READ__");
        make(&zookeeper.outsider().await, &reader, CreateMode::Ephemeral).await?;
        zookeeper.delete(&first).await?;
        Ok(reader)
    };
    let waiter = |process: &Member| process.client.rw_lock(name).write();
    between_its_list_and_its_watch(zookeeper, name, "__WRIT__", waiter, happens).await
}

/// After 2^31 nodes the server goes on with numbers below 0: such a node would be before the holder's.
#[apply(test!)]
async fn a_contender_whose_number_is_below_0_is_refused(zookeeper: &ZooKeeper) -> Result {
    let (name, holder) = (name(), zookeeper.client().await);
    let wire = Wire::to(zookeeper.address()).await;
    let late = zookeeper.process_with(&wire.address(), LONG).await;
    let guard = take(&holder.lock(&name)).await?;
    wire.number_below_0();
    invalid("beside the holder", late.lock(&name).acquire(SOON).await)?;
    zookeeper.until_nodes(&name, 1).await?;
    Ok(guard.release().await?)
}

/// They are two locks, and a wait for one ends while others wait for the other.
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
