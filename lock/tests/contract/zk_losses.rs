//! What a loss, a cut or a refusal may do to a lock in ZooKeeper, and must not.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    mute::Mute,
    proxy::Proxy,
    zk_recipes::{gone, node, refused, take},
    zk_wire::{SYNC, Wire},
    zookeeper::{CHROOT, LONG, Member, SESSION, ZooKeeper, connected, text},
};
use oversell_lock::{
    Lock, LockError,
    zk::{ZkClient, ZkOptions},
};
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;
use zookeeper_client::{Acl, AuthId, Error, Permission};

/// A session so long that a connection that is silent is not given up while a test runs.
const LONG_SESSION: Duration = Duration::from_secs(120);

fn client_at(connect: String, session: Duration) -> Result<ZkClient, String> {
    says(
        "options",
        ZkClient::new(ZkOptions::new(connect).chroot(CHROOT).session(session)),
    )
}

/// A client that does not give a silent connection up while a test runs.
pub(crate) async fn patient(address: String) -> Result<ZkClient, String> {
    let client = client_at(address, LONG_SESSION)?;
    until("connected", || async { client.session().is_ok() }).await?;
    Ok(client)
}

fn lost(what: &str, released: Result<(), LockError>) -> Verdict {
    ensure(matches!(released, Err(LockError::Lost { .. })), || {
        format!("{what}: {released:?}")
    })
}

/// A process that stands still (its one thread does nothing) while its way is cut, its session ends and another has the
/// lock: the first thing that it hears when it goes on is that the lock is lost.
pub(crate) async fn a_process_that_stood_still_knows_at_once_that_its_lock_is_lost(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, way) = (name(), Proxy::to(zookeeper.server()));
    let (address, path) = (way.address(), name.clone());
    let (has, held) = oneshot::channel();
    let (go_on, stands) = std::sync::mpsc::channel();
    let process = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(text)?;
        runtime.block_on(async move {
            let client = client_at(address, SESSION)?;
            // Who asks before the first connection is there waits no longer for it than for a lost one.
            until("connected", || async { client.session().is_ok() }).await?;
            let guard = take(&client.lock(&path)).await?;
            ensure(!guard.is_lost(), || "lost as soon as it was had".into())?;
            has.send(()).map_err(|()| "the test has ended")?;
            stands.recv().map_err(text)?;
            ensure(guard.is_lost(), || {
                "it went on and did not know that its lock is lost".into()
            })?;
            tokio::time::timeout(SOON, guard.lost())
                .await
                .map_err(|_| "never told")?;
            lost("its release", guard.release().await)
        })
    });
    held.await.map_err(|_| "it never had the lock")?;
    way.cut().await;
    gone(&zookeeper, &name).await?;
    let other = zookeeper.process().await;
    let next = take(&other.lock(&name)).await?;
    go_on.send(()).map_err(text)?;
    let verdict = tokio::task::spawn_blocking(|| process.join())
        .await
        .map_err(text)?;
    verdict.map_err(|_| "it panicked")??;
    ensure(!next.is_lost(), || {
        "the next holder's lock went with it".into()
    })?;
    says("release", next.release().await)?;
    gone(&zookeeper, &name).await
}

/// Told that the lock may be lost, and then the session comes back: it stays lost, and the node goes all the same.
pub(crate) async fn a_lock_that_was_told_lost_stays_lost_though_its_session_comes_back(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    const TRIES: usize = 6;
    for _ in 0..TRIES {
        let (name, way) = (name(), Proxy::to(zookeeper.server()));
        let process = zookeeper.process_at(&way.address()).await;
        let guard = take(&process.lock(&name)).await?;
        let session = connected(&process).await?.session_id();
        way.cut().await;
        zookeeper
            .is_told_before_its_node_goes(&name, &guard)
            .await?;
        way.mend();
        let same = connected(&process).await?.session_id() == session;
        ensure(guard.is_lost(), || "found again".into())?;
        lost("its release", guard.release().await)?;
        gone(&zookeeper, &name).await?;
        says("release", take(&process.lock(&name)).await?.release().await)?;
        if same {
            return Ok(());
        }
    }
    Err(format!(
        "the session never came back in {TRIES} tries: the test shows nothing"
    ))
}

/// Holders that lost their session and do not know yet stand in nobody's way, in their own process either.
pub(crate) async fn any_number_of_lost_holds_let_their_own_process_try(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process) = (name(), zookeeper.process().await);
    let mut lost_ones = Vec::new();
    for _ in 0..3 {
        lost_ones.push(take(&process.lock(&name)).await?);
        zookeeper.take_away(&process, &name).await;
    }
    let held = take(&process.lock(&name)).await?;
    for guard in lost_ones {
        lost("a lost one", guard.release().await)?;
    }
    ensure(!held.is_lost(), || {
        "the last hold went with the others".into()
    })?;
    says("release", held.release().await)?;
    gone(&zookeeper, &name).await
}

/// A directory in which nodes may be made and not deleted, as a careless ACL has it.
pub(crate) async fn a_node_whose_deletion_is_refused_goes_once_it_may(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process, outsider) = (
        name(),
        zookeeper.process().await,
        zookeeper.outsider().await,
    );
    let guard = take(&process.lock(&name)).await?;
    let but_delete = Permission::READ | Permission::CREATE | Permission::ADMIN;
    let may = async |permission| {
        let acl = [Acl::new(permission, AuthId::anyone())];
        outsider
            .set_acl(&name, &acl, None)
            .await
            .map(|_| ())
            .map_err(text)
    };
    may(but_delete).await?;
    match guard.release().await {
        Err(LockError::Refused { reason, .. }) if reason.to_string().contains("auth") => {}
        other => return Err(format!("a release that is refused: {other:?}")),
    }
    ensure(zookeeper.left(&name).await.len() == 1, || {
        "it was deleted: the test shows nothing".into()
    })?;
    may(Permission::ALL).await?;
    gone(&zookeeper, &name).await
}

pub(crate) async fn a_name_that_is_no_path_is_refused(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let process = zookeeper.process().await;
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
            ensure(matches!(refused, Err(LockError::Invalid { .. })), || {
                format!("{bad:?} came to {refused:?}")
            })?;
        }
    }
    Ok(())
}

/// On a way on which nothing is answered, a try ends long before the connection is given up.
pub(crate) async fn a_try_without_an_answer_ends_in_time(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, mute) = (name(), Mute::to(zookeeper.server()).await);
    let client = patient(mute.address()).await?;
    let lock = client.lock(&name);
    says("warm", take(&lock).await?.release().await)?;
    mute.mute();
    let tried = tokio::time::timeout(SOON, lock.try_acquire())
        .await
        .map_err(|_| "a try had no end")?;
    ensure(matches!(tried, Err(LockError::Unavailable { .. })), || {
        format!("without an answer: {tried:?}")
    })?;
    mute.heal().await;
    gone(&zookeeper, &name).await
}

/// Who gives up and is not answered may have been counted: it does not say that nobody came.
pub(crate) async fn an_enter_whose_end_is_not_answered_is_not_said_to_be_late(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, mute) = (name(), Mute::to(zookeeper.server()).await);
    let client = patient(mute.address()).await?;
    let barrier = client.double_barrier(&name, std::num::NonZeroU32::new(2).ok_or("two")?);
    let entering = tokio::spawn(async move { barrier.enter(Duration::from_secs(5)).await });
    until("the member is there", || async {
        zookeeper.left(&name).await.len() == 1
    })
    .await?;
    mute.mute();
    let entered = tokio::time::timeout(SOON, entering)
        .await
        .map_err(|_| "no end")?
        .map_err(text)?;
    ensure(
        matches!(entered, Err(LockError::Unavailable { .. })),
        || format!("without an answer: {entered:?}"),
    )?;
    mute.heal().await;
    gone(&zookeeper, &name).await
}

/// Nodes of a client that says who it is, and wants them for itself alone: a process that says the same contends with it,
/// and a stranger can neither queue there nor delete them.
pub(crate) async fn nodes_for_ourselves_are_out_of_a_strangers_reach(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    // Not below the directory of the other tests, which would become ours.
    let (name, outsider) = (format!("/ours{}", name()), zookeeper.outsider().await);
    let us = || {
        ZkOptions::new(zookeeper.server())
            .chroot(CHROOT)
            .auth("digest", "shop:secret")
            .only_for_ourselves()
    };
    let [one, other] = [
        says("options", ZkClient::new(us()))?,
        says("options", ZkClient::new(us()))?,
    ];
    until("connected", || async {
        one.session().is_ok() && other.session().is_ok()
    })
    .await?;
    let guard = take(&one.lock(&name)).await?;
    refused("beside ourselves", &other.lock(&name).try_acquire().await)?;
    let stranger = zookeeper.process().await;
    connected(&stranger).await?;
    match stranger.lock(&name).try_acquire().await {
        Err(LockError::Refused { reason, .. }) if reason.to_string().contains("auth") => {}
        other => return Err(format!("a stranger: {other:?}")),
    }
    let node = says("a session", one.session())?
        .list_children(&name)
        .await
        .map_err(text)?
        .remove(0);
    let deleted = outsider.delete(&format!("{name}/{node}"), None).await;
    ensure(deleted == Err(Error::NoAuth), || {
        format!("a stranger deleted it: {deleted:?}")
    })?;
    says("release", guard.release().await)?;
    says("release", take(&other.lock(&name)).await?.release().await)
}

pub(crate) async fn options_that_can_never_connect_are_refused(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let there = || ZkOptions::new(zookeeper.server());
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
        let refused = ZkClient::new(options);
        ensure(matches!(refused, Err(LockError::Invalid { .. })), || {
            format!("{shown} came to {refused:?}")
        })?;
    }
    Ok(())
}

pub(crate) async fn a_wait_without_end_is_a_wait(zookeeper: Arc<ZooKeeper>) -> Verdict {
    const MAX: Duration = Duration::MAX;
    let (name, process) = (name(), zookeeper.process().await);
    let (client, at) = (&process.client, |what: &str| format!("{name}-{what}"));
    says("lock", client.lock(&at("lock")).acquire(MAX).await)?
        .release()
        .await
        .map_err(text)?;
    let owned = client.lock(&at("lock")).owner(client.owner());
    says("owned", owned.acquire(MAX).await)?
        .release()
        .await
        .map_err(text)?;
    says("read", client.rw_lock(&at("rw")).read().acquire(MAX).await)?
        .release()
        .await
        .map_err(text)?;
    says(
        "write",
        client.rw_lock(&at("rw")).write().acquire(MAX).await,
    )?
    .release()
    .await
    .map_err(text)?;
    says(
        "mutex",
        client.semaphore_mutex(&at("mutex")).acquire(MAX).await,
    )?
    .release()
    .await
    .map_err(text)?;
    says("barrier", client.barrier(&at("barrier")).wait(MAX).await)?;
    let double = client.double_barrier(&at("double"), std::num::NonZeroU32::MIN);
    let member = says("enter", double.enter(MAX).await)?;
    says("leave", double.leave(&member, MAX).await)
}

/// Another client entered, and the server of the one who leaves for it may not have heard of that yet.
pub(crate) async fn a_leave_for_another_clients_member_asks_for_the_latest_first(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process, wire) = (
        name(),
        zookeeper.process().await,
        Wire::to(zookeeper.server()).await,
    );
    let one = std::num::NonZeroU32::MIN;
    let member = says(
        "enter",
        process.client.double_barrier(&name, one).enter(SOON).await,
    )?;
    // Its heartbeat, which is a sync too, is a quarter of a minute apart.
    let other = client_at(wire.address(), LONG_SESSION)?;
    until("it is connected", || async {
        other.session().is_ok() && wire.asked(SYNC) == 1
    })
    .await?;
    says(
        "leave",
        other.double_barrier(&name, one).leave(&member, SOON).await,
    )?;
    ensure(wire.asked(SYNC) == 2, || {
        "it looked at what its server happened to know".into()
    })
}

// --- those who wait -----------------------------------------------------------------------------------------------

/// One who waits, with its node in the queue.
async fn waits<L: Lock + 'static>(
    zookeeper: &ZooKeeper,
    lock: L,
) -> Result<tokio::task::JoinHandle<Result<oversell_lock::Guard, LockError>>, String> {
    let name = lock.name().to_owned();
    let before = zookeeper.left(&name).await.len();
    let waiting = tokio::spawn(async move { lock.acquire(SOON).await });
    until("the waiter is queued", || async {
        zookeeper.left(&name).await.len() == before + 1
    })
    .await?;
    Ok(waiting)
}

/// The one before it goes while the waiter's way is cut: it hears of that when the way is mended.
async fn hears_of_it_after_a_cut<L: Lock + 'static>(
    zookeeper: &ZooKeeper,
    before: impl Lock,
    waiter: impl FnOnce(&Member) -> L,
) -> Verdict {
    let (name, way) = (before.name().to_owned(), Proxy::to(zookeeper.server()));
    let process = zookeeper.process_with(&way.address(), LONG).await;
    let session = connected(&process).await?;
    let guard = take(&before).await?;
    let waiting = waits(zookeeper, waiter(&process)).await?;
    // Answers come in order: the watch is set.
    session.check_stat(&name).await.map_err(text)?;
    way.cut().await;
    says("release", guard.release().await)?;
    way.mend();
    let guard = says("after the cut", waiting.await.map_err(text)?)?;
    // It may have the lock before its client is said to be connected again.
    let now = connected(&process).await?.session_id();
    ensure(now == session.session_id(), || {
        "the session is another: the test shows nothing".into()
    })?;
    says("release", guard.release().await)?;
    gone(zookeeper, &name).await
}

pub(crate) async fn a_waiter_hears_after_a_cut_that_the_one_before_it_went(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let other = zookeeper.process().await;
    let path = name();
    hears_of_it_after_a_cut(&zookeeper, other.lock(&path), |process| process.lock(&path)).await?;
    let path = name();
    let writer = other.client.rw_lock(&path).write();
    hears_of_it_after_a_cut(&zookeeper, writer, |process| {
        process.client.rw_lock(&path).read()
    })
    .await
}

/// The waiter's session ends: it queues anew, and leaves no node of the old one.
pub(crate) async fn a_waiter_whose_session_ends_queues_anew(zookeeper: Arc<ZooKeeper>) -> Verdict {
    let (name, holder, process) = (name(), zookeeper.process().await, zookeeper.process().await);
    let guard = take(&holder.lock(&name)).await?;
    let waiting = waits(&zookeeper, process.lock(&name)).await?;
    let old = zookeeper.left(&name).await;
    process.end_session(&zookeeper).await;
    until("it has queued anew", || async {
        let now = zookeeper.left(&name).await;
        now.len() == 2 && now.iter().filter(|node| old.contains(node)).count() == 1
    })
    .await?;
    says("release", guard.release().await)?;
    says(
        "release",
        says("in the new session", waiting.await.map_err(text)?)?
            .release()
            .await,
    )?;
    gone(&zookeeper, &name).await
}

/// The node is deleted and the answer is lost, and with it the connection. A release waits for its answer for two seconds,
/// and a busy machine may need longer until it is connected again: such a try shows nothing.
pub(crate) async fn a_release_without_an_answer_is_a_release(zookeeper: Arc<ZooKeeper>) -> Verdict {
    const TRIES: usize = 3;
    const ANSWER: Duration = Duration::from_secs(2);
    for _ in 0..TRIES {
        let (name, mute) = (name(), Mute::to(zookeeper.server()).await);
        let guard = take(&patient(mute.address()).await?.lock(&name)).await?;
        mute.mute();
        let asked = Instant::now();
        let release = tokio::spawn(async move { (guard.release().await, asked.elapsed()) });
        gone(&zookeeper, &name).await?;
        mute.heal().await;
        match release.await.map_err(text)? {
            (Err(LockError::Unavailable { .. }), after) if after >= ANSWER => {}
            (released, _) => return says("released once", released),
        }
    }
    Err(format!(
        "it was never connected again in time in {TRIES} tries: the test shows nothing"
    ))
}

/// Somebody deletes the nodes of those who wait, as a reset does: they queue anew, and none comes in beside the holder.
pub(crate) async fn a_waiter_whose_node_is_deleted_queues_anew(
    zookeeper: Arc<ZooKeeper>,
) -> Verdict {
    let (name, process, outsider) = (
        name(),
        zookeeper.process().await,
        zookeeper.outsider().await,
    );
    let first = take(&process.lock(&name)).await?;
    let waiting = waits(&zookeeper, process.lock(&name)).await?;
    let mut nodes = zookeeper.left(&name).await;
    nodes.sort_by_key(|node| node.rsplit_once('-').map(|(_, number)| number.to_owned()));
    let stranger = node(
        &outsider,
        &format!("{name}/{}lock-", super::zk_recipes::JAVA),
    )
    .await?;
    // The waiter's first: where the holder's goes before it, the waiter's turn has come.
    for node in nodes.iter().rev() {
        outsider
            .delete(&format!("{name}/{node}"), None)
            .await
            .map_err(text)?;
    }
    lost("the first", first.release().await)?;
    until("it has queued anew", || async {
        zookeeper.left(&name).await.len() == 2
    })
    .await?;
    ensure(!waiting.is_finished(), || {
        "it came in beside another".into()
    })?;
    outsider.delete(&stranger, None).await.map_err(text)?;
    says(
        "release",
        says("its turn", waiting.await.map_err(text)?)?
            .release()
            .await,
    )?;
    gone(&zookeeper, &name).await
}
