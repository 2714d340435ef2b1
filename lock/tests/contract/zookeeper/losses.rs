//! What a loss, a cut or a refusal may do to a lock in ZooKeeper.

use crate::{
    support::*,
    zookeeper::double_barrier::TWO,
    zookeeper::wire::{SYNC, Wire},
    zookeeper::*,
};
use oversell_lock::zk::{ZkClient, ZkOptions};
use zookeeper_client::{Acl, Acls, AuthId, Client, CreateMode, Error, Permission};

/// The server refused because of the node's access control list.
fn not_allowed<T: std::fmt::Debug>(what: &str, result: Result<T, LockError>) -> Result {
    let said = matches!(&result, Err(LockError::Refused { reason, .. }) if reason.to_string().contains("auth"));
    ensure!(said, "{what}: {result:?}");
    Ok(())
}

/// The holder's connection is cut: it knows by the clock that its lock may be lost, before its node goes. Then the
/// session comes back: the lock stays lost, and the node goes all the same.
#[apply(test!)]
async fn a_lost_lock_stays_lost_though_its_session_comes_back(zookeeper: &ZooKeeper) -> Result {
    const TRIES: usize = 6;
    for _ in 0..TRIES {
        let (name, process) = (name(), zookeeper.brief_session().await);
        let guard = take(&process.lock(&name)).await?;
        let session = connected(&process).await?.session_id();
        process.way.cut();
        // First the node, then the guard: if the node has gone, the guard must know it.
        let either = || async { zookeeper.left(&name).await.is_empty() || guard.is_lost() };
        until("the holder is told, or its node goes", either).await?;
        ensure!(guard.is_lost(), "its node went before it was told");
        wait_until_lost(&guard).await?;
        process.way.mend();
        let same = connected(&process).await?.session_id() == session;
        ensure!(guard.is_lost(), "found again");
        ensure_lost("its release", guard.release().await)?;
        zookeeper.gone(&name).await?;
        pass(&process.lock(&name)).await?;
        if same {
            return Ok(());
        }
    }
    bail!("the session never came back in {TRIES} tries: the test shows nothing")
}

/// A directory in which nodes may be created but not deleted, as a careless ACL has it.
#[apply(test!)]
async fn a_node_whose_deletion_is_refused_goes_once_it_may(zookeeper: &ZooKeeper) -> Result {
    let (name, process, outsider) = (name(), zookeeper.client().await, zookeeper.outsider().await);
    let guard = take(&process.lock(&name)).await?;
    let but_delete = Permission::READ | Permission::CREATE | Permission::ADMIN;
    let may = async |permission| {
        let acl = [Acl::new(permission, AuthId::anyone())];
        outsider.set_acl(&name, &acl, None).await.map(drop)
    };
    may(but_delete).await?;
    not_allowed("a release that is refused", guard.release().await)?;
    ensure_equal("the node", zookeeper.left(&name).await.len(), 1)?;
    may(Permission::ALL).await?;
    zookeeper.gone(&name).await
}

#[apply(test!)]
async fn a_name_that_is_no_path_is_refused(zookeeper: &ZooKeeper) -> Result {
    let process = zookeeper.client().await;
    connected(&process).await?;
    for bad in ["door", "/a//b", "/a/", "", "/", "/a/../b", "/a\n", "/\u{e000}", "/\u{fff0}", "/🔒"] {
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
            ensure_invalid(bad, refused)?;
        }
    }
    Ok(())
}

/// On a muted connection a try ends long before the connection is abandoned.
#[apply(test!)]
async fn a_try_without_an_answer_ends_in_time(zookeeper: &ZooKeeper) -> Result {
    let (name, mute) = (name(), Mute::to(zookeeper.address())?);
    let client = hasty(mute.address()).await?;
    let lock = client.lock(&name);
    pass(&lock).await?;
    mute.mute();
    let tried = timeout(SOON, lock.try_acquire()).await?;
    ensure_unavailable("without an answer", tried)?;
    mute.heal();
    zookeeper.gone(&name).await
}

/// A member that gives up without an answer may have been counted, so it does not report that nobody came.
#[apply(test!)]
async fn an_enter_whose_end_is_not_answered_is_not_said_to_be_late(zookeeper: &ZooKeeper) -> Result {
    let (name, mute) = (name(), Mute::to(zookeeper.address())?);
    let client = hasty(mute.address()).await?;
    let barrier = client.double_barrier(&name, TWO);
    let entering = tokio::spawn(async move { barrier.enter(Duration::from_secs(5)).await });
    zookeeper.until_nodes(&name, 1).await?;
    mute.mute();
    let entered = timeout(SOON, entering).await.context("no end")?;
    ensure_unavailable("without an answer", entered?)?;
    mute.heal();
    zookeeper.gone(&name).await
}

/// Nodes restricted to an identity: a process with the same identity, by a connector of the program's own, contends; a
/// stranger can neither queue nor free the lock nor delete its node.
#[apply(test!)]
async fn nodes_for_ourselves_are_out_of_a_strangers_reach(zookeeper: &ZooKeeper) -> Result {
    // Not below the other tests' directory, which would become restricted.
    let (name, outsider) = (format!("/ours{}", name()), zookeeper.outsider().await);
    let us = || ZkOptions::new(zookeeper.address()).chroot(CHROOT);
    let one = us().auth("digest", "shop:secret").only_for_ourselves();
    let connector = Client::connector().with_auth("digest", b"shop:secret");
    let other = us().connector(connector).only_for_ourselves();
    let (one, other) = (client_of(one).await?, client_of(other).await?);
    let guard = take(&one.lock(&name)).await?;
    ensure_taken("beside ourselves", other.lock(&name).try_acquire().await)?;
    let stranger = zookeeper.client().await;
    connected(&stranger).await?;
    let theirs = stranger.lock(&name);
    not_allowed("a stranger", theirs.try_acquire().await)?;
    ensure_refused("freed by a stranger", theirs.force_unlock().await)?;
    let node = one.session()?.list_children(&name).await?.remove(0);
    let deleted = outsider.delete(&format!("{name}/{node}"), None).await;
    ensure_equal("deleted by a stranger", deleted, Err(Error::NoAuth))?;
    guard.release().await?;
    pass(&other.lock(&name)).await
}

#[apply(test!)]
async fn options_that_can_never_connect_are_refused(zookeeper: &ZooKeeper) -> Result {
    let there = || ZkOptions::new(zookeeper.address());
    let bad = [
        ZkOptions::new(""),
        ZkOptions::new("127.0.0.1:2181/chroot"),
        ZkOptions::new("127.0.0.1"),
        ZkOptions::new("127.0.0.1:99999"),
        ZkOptions::new("127.0.0.1:0"),
        ZkOptions::new("127.0.0.1:abc"),
        ZkOptions::new(":2181"),
        ZkOptions::new(","),
        ZkOptions::new("127.0.0.1:2181,"),
        there().chroot("tests"),
        there().chroot("/tests/"),
        there().chroot("/"),
        there().session(Duration::ZERO),
        there().session(Duration::MAX),
        there().timeout(Duration::ZERO),
        there().timeout(Duration::MAX),
        there().only_for_ourselves(),
    ];
    for options in bad {
        let shown = format!("{options:?}");
        ensure_invalid(&shown, ZkClient::new(options))?;
    }
    Ok(())
}

/// Another client has changed the value, and this one's server may lag behind.
#[apply(test!)]
async fn what_another_client_may_have_changed_is_read_after_a_sync(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let wire = Wire::to(zookeeper.address()).await;
    let one = std::num::NonZeroU32::MIN;
    let barrier = process.client.double_barrier(&name, one);
    let member = barrier.enter(SOON).await?;
    // Its heartbeats, which sync too, are a quarter of a minute apart.
    let other = patient(wire.address()).await?;
    until("it is connected", async || wire.asked(SYNC) == 1).await?;
    other.double_barrier(&name, one).leave(&member, SOON).await?;
    ensure_equal("syncs with a leave", wire.asked(SYNC), 2)?;
    let [barrier, count, long] = ["barrier", "count", "long"].map(|of| format!("{name}-{of}"));
    other.barrier(&barrier).wait(SOON).await?;
    ensure_equal("syncs with a barrier", wire.asked(SYNC), 3)?;
    other.shared_count(&count, 0).get().await?;
    ensure_equal("syncs with a count", wire.asked(SYNC), 4)?;
    other.atomic_long(&long).get().await?;
    ensure_equal("syncs with a long", wire.asked(SYNC), 5)?;
    other.atomic_long(&long).compare_and_set(0, 1).await?;
    ensure_equal("syncs with a comparison", wire.asked(SYNC), 6)
}

// --- the chroot ----------------------------------------------------------------------------------------------------

/// A client below `chroot`, a full path.
async fn below(zookeeper: &ZooKeeper, chroot: &str) -> Result<ZkClient> {
    client_of(ZkOptions::new(zookeeper.address()).chroot(chroot)).await
}

/// The chroot exists, and its parent belongs to somebody else.
#[apply(test!)]
async fn a_chroot_below_what_only_others_may_change_is_taken(zookeeper: &ZooKeeper) -> Result {
    let (name, outsider) = (name(), zookeeper.outsider().await);
    let chroot = format!("{name}/ours");
    let persistent = CreateMode::Persistent.with_acls(Acls::anyone_all());
    outsider.mkdir(&chroot, &persistent).await?;
    let acl = [Acl::new(Permission::READ, AuthId::anyone())];
    outsider.set_acl(&name, &acl, None).await?;
    let client = below(zookeeper, &format!("{CHROOT}{chroot}")).await?;
    pass(&client.lock("/door")).await
}

/// Somebody deletes the chroot of a connected client: the next node creates it again.
#[apply(test!)]
async fn a_chroot_that_is_deleted_is_made_again(zookeeper: &ZooKeeper) -> Result {
    let (name, outsider) = (name(), zookeeper.outsider().await);
    let client = below(zookeeper, &format!("{CHROOT}{name}")).await?;
    let deleted = async || -> Result {
        for child in outsider.list_children(&name).await? {
            outsider.delete(&format!("{name}/{child}"), None).await?;
        }
        Ok(outsider.delete(&name, None).await?)
    };
    deleted().await?;
    pass(&client.lock("/door")).await?;
    deleted().await?;
    ensure!(client.barrier("/barrier").set().await?, "it was closed");
    deleted().await?;
    ensure_equal("the seed", client.shared_count("/count", 7).get().await?.value, 7)?;
    deleted().await?;
    client.atomic_long("/long").add(1).await?;
    deleted().await
}

#[apply(test!)]
async fn a_client_waits_until_it_is_connected(zookeeper: &ZooKeeper) -> Result {
    let way = Proxy::to(zookeeper.address())?;
    way.cut();
    let client = ZkClient::new(ZkOptions::new(way.address()))?;
    let refused = client.wait_until_connected(REPLY_TIMEOUT).await;
    ensure_unavailable("without a connection", refused)?;
    let connected = client.wait_until_connected(SOON);
    way.mend();
    connected.await?;
    client.session()?;
    client.close().await;
    ensure_unavailable("closed", client.wait_until_connected(SOON).await)
}

// --- waiters --------------------------------------------------------------------------------------------------

/// During a leader election, for example, a waiter's session is sure for long enough, and it keeps its turn. A
/// contender that is not yet in the queue need not wait.
#[apply(test!)]
async fn a_waiter_stays_in_the_queue_while_its_session_is_sure(zookeeper: &ZooKeeper) -> Result {
    let (name, way) = (name(), Proxy::to(zookeeper.address())?);
    let impatient = client_at(way.address(), LONG_SESSION, REPLY_TIMEOUT).await?;
    let holder = zookeeper.client().await;
    let guard = take(&holder.lock(&name)).await?;
    let mut waiting = zookeeper.queued(impatient.lock(&name)).await?;
    let nodes = zookeeper.left(&name).await;
    way.cut();
    until("the loss is known", async || impatient.session().is_err()).await?;
    let tried = async {
        let tried = impatient.lock(&name).acquire(SOON).await;
        ensure_unavailable("without a connection", tried)
    };
    beside(&mut waiting, tried).await?;
    way.mend();
    ensure_equal("the queue", zookeeper.left(&name).await, nodes)?;
    guard.release().await?;
    waiting.await?.context("its turn")?.release().await?;
    zookeeper.gone(&name).await
}

#[apply(test!)]
async fn a_waiter_whose_session_ends_queues_again(zookeeper: &ZooKeeper) -> Result {
    let (name, holder, process) = (name(), zookeeper.client().await, zookeeper.client().await);
    let guard = take(&holder.lock(&name)).await?;
    let waiting = zookeeper.queued(process.lock(&name)).await?;
    let old = zookeeper.left(&name).await;
    process.end_session(zookeeper).await;
    until("it has queued again", || async {
        let now = zookeeper.left(&name).await;
        now.len() == 2 && now.iter().filter(|node| old.contains(node)).count() == 1
    })
    .await?;
    guard.release().await?;
    waiting.await??.release().await?;
    zookeeper.gone(&name).await
}

/// The node is deleted, and the answer is lost with the connection.
#[apply(test!)]
async fn a_release_without_an_answer_is_a_release(zookeeper: &ZooKeeper) -> Result {
    let (name, mute) = (name(), Mute::to(zookeeper.address())?);
    let guard = take(&patient(mute.address()).await?.lock(&name)).await?;
    mute.mute();
    let release = tokio::spawn(guard.release());
    zookeeper.gone(&name).await?;
    mute.heal();
    Ok(release.await??)
}
