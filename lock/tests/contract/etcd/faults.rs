//! Faults of etcd: requests whose answers never come, a server that stands still, one that is something else, three nodes of
//! which one is frozen or killed.

use crate::{
    etcd::*,
    family::Capability::Losable,
    programs::{Subject, ensure_rule_broken, ensure_rules_kept},
    support::*,
};
use oversell_lock::etcd::{EtcdClient, EtcdOptions};
use parking_lot::Mutex;
use std::{collections::HashMap, sync::LazyLock};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// A lease of the tests on three nodes: an election ends well before it does.
const NODES_LEASE: Duration = Duration::from_secs(5);
/// A time limit that three nodes share.
const TIMEOUT: Duration = Duration::from_secs(3);

fn client(endpoints: &str, timeout: Duration) -> EtcdClient {
    EtcdClient::new(EtcdOptions::new(endpoints).timeout(timeout).lease(LEASE)).expect("an address")
}

/// The answer to each request in turn never comes, though it is carried out: what the call took is given back.
#[apply(test!)]
async fn what_was_not_answered_is_undone(etcd: &Etcd) -> Result {
    for request in ["/v3/lease/grant", "/v3/kv/txn"] {
        let (name, mute) = (name(), Mute::to(etcd.address())?);
        let process = client(&mute.address(), Duration::from_millis(500));
        let before = etcd.leases().await?;
        mute.mute_at(request);
        ensure_unavailable(request, process.lock(&name).try_acquire().await)?;
        mute.heal();
        let is_free = async || {
            let leases = etcd.leases().await.unwrap_or_default();
            etcd.left(&name).await.is_empty() && leases.len() <= before.len()
        };
        until("key and lease are gone", is_free).await?;
        pass(&process.lock(&name)).await?;
    }
    Ok(())
}

/// The first node carries out the deletion and does not answer, the second finds no key: it is released, not lost. Both are one
/// server here.
#[apply(test!)]
async fn a_release_that_one_node_did_not_answer_is_no_loss(etcd: &Etcd) -> Result {
    let (name, mute) = (name(), Mute::to(etcd.address())?);
    let endpoints = format!("{},{}", mute.address(), etcd.address());
    let process = loop {
        // Each begins with one of them at random.
        let process = client(&endpoints, Duration::from_secs(2));
        process.check().await?;
        if mute.requests() > 0 {
            break process;
        }
    };
    let guard = take(&process.lock(&name)).await?;
    mute.mute_at("request_delete_range");
    guard.release().await.context("by the second node")?;
    until("nothing is left", async || etcd.left(&name).await.is_empty()).await
}

/// Acquires are dropped at every point, beside a holder and without one: no key and no lease of theirs is left.
#[apply(test!)]
async fn what_is_dropped_leaves_neither_key_nor_lease(_: &Etcd) -> Result {
    let lab = lab(Part::Etcd, 1, 0).await?;
    let etcd = Etcd::at(lab.addresses().etcd[0].url.clone());
    // Leases that outlast the test.
    let (name, [process, other]) = (name(), [(), ()].map(|()| etcd.process(&etcd.url, SOON * 3)));
    for is_held in [false, true] {
        let held = if is_held { Some(take(&other.lock(&name)).await?) } else { None };
        for polls in 0..60 {
            drop_after(polls % 5, process.lock(&name).acquire(SOON)).await;
        }
        let wanted = usize::from(is_held);
        let are_left = async || {
            let leases = etcd.leases().await.map(|leases| leases.len());
            etcd.left(&name).await.len() == wanted && leases.is_ok_and(|leases| leases == wanted)
        };
        until("only the holder's are left", are_left).await?;
        drop(held);
    }
    until("nothing is left", async || etcd.leases().await.is_ok_and(|leases| leases.is_empty())).await?;
    lab.stop().await;
    Ok(())
}

/// Nobody listens, a server stands still, speaks something else, or expects TLS: each says so within the time limit.
#[apply(test!)]
async fn a_wrong_address_is_said_in_time(_: &Etcd) -> Result {
    let nobody = oversell_lab::lab::Port::free()?;
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let speaks = async |answer: &'static str| {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    client.read_buf(&mut Vec::with_capacity(4096)).await.ok();
                    client.write_all(answer.as_bytes()).await.ok();
                });
            }
        });
        anyhow::Ok(address)
    };
    for (address, says) in [
        (format!("127.0.0.1:{}", nobody.number()), "refused"),
        (silent.local_addr()?.to_string(), "no answer within"),
        (speaks("-ERR unknown command\r\n").await?, "HTTP"),
        (speaks("HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\nno").await?, "no answer of etcd: 404"),
        // As etcd does where it expects TLS.
        (speaks("").await?, "TLS"),
    ] {
        let begun = std::time::Instant::now();
        let tried = client(&address, Duration::from_secs(1)).lock("/contract/nowhere").acquire(SOON).await;
        let error = tried.as_ref().map_or_else(ToString::to_string, |_| "held".to_owned());
        ensure!(error.contains(says) && error.contains(&address), "{says}: it says {error:?}");
        ensure_unavailable(says, tried)?;
        ensure!(begun.elapsed() < SOON / 2, "{says}: after {:?}", begun.elapsed());
    }
    Ok(())
}

/// The server stands still while a lock is asked for: the caller is told in time, and what the server carries out when it goes on is
/// revoked, long before its lease ends. A holder's lease outlasts a server that is killed and starts again.
#[apply(test!)]
async fn a_server_that_stands_still_or_restarts_keeps_no_lock(_: &Etcd) -> Result {
    let mut lab = lab(Part::Etcd, 1, 0).await?;
    let etcd = Etcd::at(lab.addresses().etcd[0].url.clone());
    let process = EtcdClient::new(EtcdOptions::new(&etcd.url).lease(SOON * 3).timeout(Duration::from_secs(1)))?;
    let (asked, held) = (name(), name());
    let guard = take(&process.lock(&held)).await?;
    lab.pause("etcd")?;
    let begun = std::time::Instant::now();
    ensure_unavailable("while it stands still", process.lock(&asked).try_acquire().await)?;
    ensure!(begun.elapsed() < SOON / 2, "told after {:?}", begun.elapsed());
    lab.resume("etcd")?;
    until("only the holder's lease is left", async || etcd.leases().await.is_ok_and(|leases| leases.len() == 1)).await?;
    ensure_none(etcd.left(&asked).await)?;
    lab.kill("etcd").await?;
    ensure_unavailable("while it is down", process.lock(&asked).try_acquire().await)?;
    lab.restart("etcd").await?;
    ensure_kept("over a restart", &guard)?;
    ensure_equal("the holder's key", etcd.left(&held).await.len(), 1_usize)?;
    guard.release().await.context("after the restart")?;
    pass(&process.lock(&asked)).await?;
    lab.stop().await;
    Ok(())
}

/// A store whose quota is used up refuses locks, and takes them back: until somebody has made room and said so.
#[apply(test!)]
async fn a_full_store_refuses_locks_and_takes_them_back(_: &Etcd) -> Result {
    let lab = lab(Part::Etcd, 1, 0).await?;
    let etcd = Etcd::at(lab.addresses().etcd[0].url.clone());
    let alarm = async |action: &str| {
        let alarm = json!({"action": action, "memberID": "0", "alarm": "NOSPACE"});
        etcd.ask("maintenance/alarm", alarm).await.map(drop)
    };
    let (process, name) = (etcd.client().await, name());
    let guard = take(&process.lock(&name)).await?;
    alarm("ACTIVATE").await?;
    let refused = process.lock(&format!("{name}-other")).try_acquire().await;
    let says = refused.as_ref().map_or_else(ToString::to_string, |_| "held".to_owned());
    ensure!(says.contains("space"), "it says {says:?}");
    ensure_refused("a full store", refused)?;
    guard.release().await.context("a full store")?;
    ensure_none(etcd.left(&name).await)?;
    alarm("DEACTIVATE").await?;
    pass(&process.lock(&name)).await?;
    lab.stop().await;
    Ok(())
}

/// A lab with three nodes, and the endpoints of all.
async fn three_nodes() -> Result<(Lab, String)> {
    let lab = lab(Part::Etcd, 3, 0).await?;
    let endpoints: Vec<_> = lab.addresses().etcd.iter().map(|node| node.url.clone()).collect();
    Ok((lab, endpoints.join(",")))
}

/// Each node stands still in turn, for longer than a lease: no hold of twelve processes is lost, since their renewals go to the
/// next node. The twin knows the frozen node alone.
#[apply(soak_test!)]
async fn each_frozen_node_costs_no_hold(_: &Etcd) -> Result {
    let (lab, endpoints) = three_nodes().await?;
    for (n, node) in ["etcd", "etcd-2", "etcd-3"].into_iter().enumerate() {
        let hold = async |endpoints: &str, name: String| {
            let process = EtcdClient::new(EtcdOptions::new(endpoints).lease(NODES_LEASE).timeout(TIMEOUT))?;
            Ok::<_, anyhow::Error>((take(&process.lock(&name)).await?, process))
        };
        let held = try_join_all((0..12).map(|_| hold(&endpoints, name()))).await?;
        let twin = hold(&lab.addresses().etcd[n].url, name()).await?;
        lab.pause(node)?;
        // The twin's loss shows that the node stood still for longer than a lease.
        let lost = timeout(SOON, twin.0.lost()).await;
        let kept = held.iter().filter(|(guard, _)| !guard.is_lost()).count();
        // The others may still be told.
        tokio::time::sleep(NODES_LEASE / 2).await;
        let then = held.iter().filter(|(guard, _)| !guard.is_lost()).count();
        lost.with_context(|| format!("{node}: its own client kept its lock"))?;
        ensure_equal(node, (kept, then), (held.len(), held.len()))?;
        // Before it goes on, when etcd itself may end leases that were renewed meanwhile: `EtcdLock` says so.
        for (guard, process) in held {
            guard.release().await.with_context(|| format!("beside {node}, which stands still"))?;
            process.close().await;
        }
        lab.resume(node)?;
        drop(twin);
    }
    lab.stop().await;
    Ok(())
}

/// Programs while the leader is killed three times and starts again.
#[apply(test!)]
async fn random_programs_with_a_killed_leader_keep_the_rules(_: &Etcd) -> Result {
    let (mut lab, endpoints) = three_nodes().await?;
    let nodes: &'static Etcd = Box::leak(Box::new(Etcd::at(endpoints)));
    let kills = async {
        for _ in 0..3 {
            let leader = async || lab.etcd_leader().await.is_some();
            until("a leader is elected", leader).await?;
            let leader = lab.etcd_leader().await.context("a leader")?;
            lab.kill(&leader).await?;
            let another = async || lab.etcd_leader().await.is_some_and(|another| another != leader);
            until("another leads", another).await?;
            lab.restart(&leader).await?;
        }
        Ok(())
    };
    ensure_rules_kept("ETCD_NODES", nodes, &Subject::of(&KINDS[0]), kills).await?;
    lab.stop().await;
    Ok(())
}

/// One lease for all holds of a process, as a session of Go's client has it: the key of each of its locks of one name is the same,
/// so both are inside.
async fn with_a_session(client: EtcdClient, name: String, wait: Duration) -> Answer<Guard> {
    let held = client.lock(&name).owner(session_of(&client)).acquire(wait).await?;
    Ok(guard(&name, held.fence(), held.release()))
}

/// The one owner of this process.
fn session_of(client: &EtcdClient) -> Owner {
    static SESSIONS: LazyLock<Mutex<HashMap<String, Owner>>> = LazyLock::new(Mutex::default);
    let owner = client.owner();
    let process = owner.to_string().split(':').next().unwrap_or_default().to_owned();
    *SESSIONS.lock().entry(process).or_insert(owner)
}

#[apply(test!)]
async fn random_programs_catch_a_lease_for_each_process(etcd: &'static Etcd) -> Result {
    static TWIN: Kind<Etcd> =
        Kind::new("twin", &[Losable], |client: &EtcdClient, name, _| fixed_lock(name, client.clone(), with_a_session));
    ensure_rule_broken(etcd, &Subject::of(&TWIN), "comes after").await
}
