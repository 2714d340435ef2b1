//! What a loss, a cut or a refusal may do to a lock in ZooKeeper, and must not.

use super::{
    family::Server,
    mute::Mute,
    support::*,
    zk_double_barrier::TWO,
    zk_wire::{SYNC, Wire},
    zookeeper::{CHROOT, JAVA, LONG, Member, ZooKeeper, connected, patient},
};
use oversell::lab::Proxy;
use oversell_lock::{
    Guard, Lock, LockError,
    zk::{ZkClient, ZkOptions},
};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use zookeeper_client::{Acl, AuthId, Error, Permission};

/// The server refused because of the node's access control list.
fn not_allowed<T: std::fmt::Debug>(what: &str, result: Result<T, LockError>) -> Result<()> {
    let said = matches!(&result, Err(LockError::Refused { reason, .. }) if reason.to_string().contains("auth"));
    ensure!(said, "{what}: {result:?}");
    Ok(())
}

/// Told that the lock may be lost, and then the session comes back: it stays lost, and the node goes all the same.
#[apply(test!)]
async fn a_lock_that_was_told_lost_stays_lost_though_its_session_comes_back(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    const TRIES: usize = 6;
    for _ in 0..TRIES {
        let (name, way) = (name(), Proxy::to(zookeeper.address())?);
        let process = zookeeper.client_at(&way.address()).await;
        let guard = take(&process.lock(&name)).await?;
        let session = connected(&process).await?.session_id();
        way.cut();
        zookeeper
            .is_told_before_its_node_goes(&name, &guard)
            .await?;
        way.mend();
        let same = connected(&process).await?.session_id() == session;
        ensure!(guard.is_lost(), "found again");
        lost("its release", guard.release().await)?;
        zookeeper.gone(&name).await?;
        pass(&process.lock(&name)).await?;
        if same {
            return Ok(());
        }
    }
    bail!("the session never came back in {TRIES} tries: the test shows nothing")
}

/// Holders that lost their session and do not know yet stand in nobody's way, in their own process either.
#[apply(test!)]
async fn any_number_of_lost_holds_let_their_own_process_try(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let mut lost_ones = Vec::new();
    for _ in 0..3 {
        lost_ones.push(take(&process.lock(&name)).await?);
        zookeeper.take_away(&process, &name).await;
    }
    let held = take(&process.lock(&name)).await?;
    for guard in lost_ones {
        lost("a lost one", guard.release().await)?;
    }
    ensure!(!held.is_lost(), "the last hold went with the others");
    held.release().await?;
    zookeeper.gone(&name).await
}

/// A directory in which nodes may be made and not deleted, as a careless ACL has it.
#[apply(test!)]
async fn a_node_whose_deletion_is_refused_goes_once_it_may(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process, outsider) = (name(), zookeeper.client().await, zookeeper.outsider().await);
    let guard = take(&process.lock(&name)).await?;
    let but_delete = Permission::READ | Permission::CREATE | Permission::ADMIN;
    let may = async |permission| {
        let acl = [Acl::new(permission, AuthId::anyone())];
        outsider.set_acl(&name, &acl, None).await.map(drop)
    };
    may(but_delete).await?;
    not_allowed("a release that is refused", guard.release().await)?;
    ensure!(
        zookeeper.left(&name).await.len() == 1,
        "it was deleted: the test shows nothing"
    );
    may(Permission::ALL).await?;
    zookeeper.gone(&name).await
}

#[apply(test!)]
async fn a_name_that_is_no_path_is_refused(zookeeper: &ZooKeeper) -> Result<()> {
    let process = zookeeper.client().await;
    connected(&process).await?;
    for bad in ["door", "/a//b", "/a/", "", "/", "/a/../b"] {
        let client = &process.client;
        let refusals = [
            process.lock(bad).acquire(SOON).await.map(|_| ()),
            client.rw_lock(bad).read().acquire(SOON).await.map(|_| ()),
            client.semaphore_mutex(bad).acquire(SOON).await.map(|_| ()),
            client.barrier(bad).wait(SOON).await,
            client.shared_count(bad, 0).get().await.map(|_| ()),
            client.atomic_long(bad).increment().await.map(|_| ()),
        ];
        for refused in refusals {
            invalid(bad, refused)?;
        }
    }
    Ok(())
}

/// On a way on which nothing is answered, a try ends long before the connection is given up.
#[apply(test!)]
async fn a_try_without_an_answer_ends_in_time(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, mute) = (name(), Mute::to(zookeeper.address())?);
    let client = patient(mute.address()).await?;
    let lock = client.lock(&name);
    pass(&lock).await?;
    mute.mute();
    let tried = tokio::time::timeout(SOON, lock.try_acquire()).await?;
    unavailable("without an answer", tried)?;
    mute.heal();
    zookeeper.gone(&name).await
}

/// A member that gives up and is not answered may have been counted: it does not say that nobody came.
#[apply(test!)]
async fn an_enter_whose_end_is_not_answered_is_not_said_to_be_late(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    let (name, mute) = (name(), Mute::to(zookeeper.address())?);
    let client = patient(mute.address()).await?;
    let barrier = client.double_barrier(&name, TWO);
    let entering = tokio::spawn(async move { barrier.enter(Duration::from_secs(5)).await });
    zookeeper.until_nodes(&name, 1).await?;
    mute.mute();
    let entered = tokio::time::timeout(SOON, entering)
        .await
        .context("no end")??;
    unavailable("without an answer", entered)?;
    mute.heal();
    zookeeper.gone(&name).await
}

/// Nodes of a client that authenticates itself, and wants them for itself alone: a process that says the same contends with it,
/// and a stranger can neither queue there nor delete them.
#[apply(test!)]
async fn nodes_for_ourselves_are_out_of_a_strangers_reach(zookeeper: &ZooKeeper) -> Result<()> {
    // Not below the directory of the other tests, which would become ours.
    let (name, outsider) = (format!("/ours{}", name()), zookeeper.outsider().await);
    let us = || {
        ZkOptions::new(zookeeper.address())
            .chroot(CHROOT)
            .auth("digest", "shop:secret")
            .only_for_ourselves()
    };
    let [one, other] = [ZkClient::new(us())?, ZkClient::new(us())?];
    until("connected", || async {
        one.session().is_ok() && other.session().is_ok()
    })
    .await?;
    let guard = take(&one.lock(&name)).await?;
    taken("beside ourselves", other.lock(&name).try_acquire().await)?;
    let stranger = zookeeper.client().await;
    connected(&stranger).await?;
    not_allowed("a stranger", stranger.lock(&name).try_acquire().await)?;
    let node = one.session()?.list_children(&name).await?.remove(0);
    let deleted = outsider.delete(&format!("{name}/{node}"), None).await;
    ensure!(
        deleted == Err(Error::NoAuth),
        "a stranger deleted it: {deleted:?}"
    );
    guard.release().await?;
    pass(&other.lock(&name)).await
}

#[apply(test!)]
async fn options_that_can_never_connect_are_refused(zookeeper: &ZooKeeper) -> Result<()> {
    let there = || ZkOptions::new(zookeeper.address());
    let bad = [
        ZkOptions::new(""),
        ZkOptions::new("127.0.0.1:2181/chroot"),
        there().chroot("tests"),
        there().chroot("/tests/"),
        there().chroot("/"),
        there().session(Duration::ZERO),
        there().only_for_ourselves(),
    ];
    for options in bad {
        let shown = format!("{options:?}");
        invalid(&shown, ZkClient::new(options))?;
    }
    Ok(())
}

/// What is no lock for one alone; the clause has the others.
#[apply(test!)]
async fn a_wait_without_end_is_a_wait(zookeeper: &ZooKeeper) -> Result<()> {
    const MAX: Duration = Duration::MAX;
    let (name, process) = (name(), zookeeper.client().await);
    let client = &process.client;
    let guard = client.rw_lock(&name).read().acquire(MAX).await?;
    guard.release().await?;
    client.barrier(&format!("{name}-barrier")).wait(MAX).await?;
    let double = client.double_barrier(&format!("{name}-double"), std::num::NonZeroU32::MIN);
    let member = double.enter(MAX).await?;
    Ok(double.leave(&member, MAX).await?)
}

/// Another client entered, and the server of the one that leaves for it may not have heard of that yet.
#[apply(test!)]
async fn a_leave_for_another_clients_member_asks_for_the_latest_first(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let wire = Wire::to(zookeeper.address()).await;
    let one = std::num::NonZeroU32::MIN;
    let barrier = process.client.double_barrier(&name, one);
    let member = barrier.enter(SOON).await?;
    // Its heartbeat, which is a sync too, is a quarter of a minute apart.
    let other = patient(wire.address()).await?;
    until("it is connected", || async {
        other.session().is_ok() && wire.asked(SYNC) == 1
    })
    .await?;
    let barrier = other.double_barrier(&name, one);
    barrier.leave(&member, SOON).await?;
    ensure!(
        wire.asked(SYNC) == 2,
        "it looked at what its server happened to know"
    );
    Ok(())
}

// --- waiters --------------------------------------------------------------------------------------------------

/// A waiter, with its node in the queue.
async fn waits<L: Lock + 'static>(
    zookeeper: &ZooKeeper,
    lock: L,
) -> Result<JoinHandle<Result<Guard, LockError>>> {
    let name = lock.name().to_owned();
    let before = zookeeper.left(&name).await.len();
    let waiting = acquiring(lock);
    zookeeper.until_nodes(&name, before + 1).await?;
    Ok(waiting)
}

/// The one before it goes while the waiter's way is cut: it hears of that when the way is mended.
async fn hears_of_it_after_a_cut<L: Lock + 'static>(
    zookeeper: &ZooKeeper,
    before: impl Lock,
    waiter: impl FnOnce(&Member) -> L,
) -> Result<()> {
    let (name, way) = (before.name().to_owned(), Proxy::to(zookeeper.address())?);
    let process = zookeeper.process_with(&way.address(), LONG).await;
    let session = connected(&process).await?;
    let guard = take(&before).await?;
    let waiting = waits(zookeeper, waiter(&process)).await?;
    // Answers come in order: the watch is set.
    session.check_stat(&name).await?;
    way.cut();
    guard.release().await?;
    way.mend();
    let guard = waiting.await?.context("after the cut")?;
    // It may have the lock before its client is said to be connected again.
    let now = connected(&process).await?.session_id();
    ensure!(
        now == session.session_id(),
        "the session is another: the test shows nothing"
    );
    guard.release().await?;
    zookeeper.gone(&name).await
}

#[apply(test!)]
async fn a_waiter_hears_after_a_cut_that_the_one_before_it_went(
    zookeeper: &ZooKeeper,
) -> Result<()> {
    let other = zookeeper.client().await;
    let path = name();
    hears_of_it_after_a_cut(zookeeper, other.lock(&path), |process| process.lock(&path)).await?;
    let path = name();
    let writer = other.client.rw_lock(&path).write();
    hears_of_it_after_a_cut(zookeeper, writer, |process| {
        process.client.rw_lock(&path).read()
    })
    .await
}

/// The waiter's session ends: it queues again, and leaves no node of the old one.
#[apply(test!)]
async fn a_waiter_whose_session_ends_queues_again(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, holder, process) = (name(), zookeeper.client().await, zookeeper.client().await);
    let guard = take(&holder.lock(&name)).await?;
    let waiting = waits(zookeeper, process.lock(&name)).await?;
    let old = zookeeper.left(&name).await;
    process.end_session(zookeeper).await;
    until("it has queued again", || async {
        let now = zookeeper.left(&name).await;
        now.len() == 2 && now.iter().filter(|node| old.contains(node)).count() == 1
    })
    .await?;
    guard.release().await?;
    let guard = waiting.await?.context("in the new session")?;
    guard.release().await?;
    zookeeper.gone(&name).await
}

/// The node is deleted and the answer is lost, and with it the connection. A release waits for its answer for two seconds,
/// and a busy machine may need longer until it is connected again: such a try shows nothing.
#[apply(test!)]
async fn a_release_without_an_answer_is_a_release(zookeeper: &ZooKeeper) -> Result<()> {
    const TRIES: usize = 3;
    const ANSWER: Duration = Duration::from_secs(2);
    for _ in 0..TRIES {
        let (name, mute) = (name(), Mute::to(zookeeper.address())?);
        let guard = take(&patient(mute.address()).await?.lock(&name)).await?;
        mute.mute();
        let asked = Instant::now();
        let release = tokio::spawn(async move { (guard.release().await, asked.elapsed()) });
        zookeeper.gone(&name).await?;
        mute.heal();
        match release.await? {
            (Err(LockError::Unavailable { .. }), after) if after >= ANSWER => {}
            (released, _) => return Ok(released?),
        }
    }
    bail!("it was never connected again in time in {TRIES} tries: the test shows nothing")
}

/// Somebody deletes the nodes of the waiters, as a reset does: they queue again, and none comes in beside the holder.
#[apply(test!)]
async fn a_waiter_whose_node_is_deleted_queues_again(zookeeper: &ZooKeeper) -> Result<()> {
    let (name, process) = (name(), zookeeper.client().await);
    let first = take(&process.lock(&name)).await?;
    let waiting = waits(zookeeper, process.lock(&name)).await?;
    let mut nodes = zookeeper.left(&name).await;
    nodes.sort_by_key(|node| node.rsplit_once('-').map(|(_, number)| number.to_owned()));
    let stranger = zookeeper.node(&format!("{name}/{JAVA}lock-")).await?;
    // The waiter's first: where the holder's goes before it, the waiter's turn has come.
    for node in nodes.iter().rev() {
        zookeeper.delete(&format!("{name}/{node}")).await?;
    }
    lost("the first", first.release().await)?;
    zookeeper.until_nodes(&name, 2).await?;
    ensure!(!waiting.is_finished(), "it came in beside another");
    zookeeper.delete(&stranger).await?;
    waiting.await?.context("its turn")?.release().await?;
    zookeeper.gone(&name).await
}
