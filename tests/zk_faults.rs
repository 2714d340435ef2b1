//! What a fault of ZooKeeper, or of a holder, does to a lock in ZooKeeper: shown where it breaks it, and where it does
//! not.
//!
//! Each test has servers of its own, so that it may break them.

use crate::{
    buyers::{Buyers, LONG, PIECES, text, until},
    instances::{cluster, cluster_with, leftovers, nothing_is_left, put_stock, shelf},
    program,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use oversell::lab::{Lab, Options, Part};
use oversell_lock::{
    Lock, LockError,
    zk::{ZkClient, ZkOptions},
};
use reqwest::{Client, StatusCode};
use std::{process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{ChildStdout, Command},
};
use zookeeper_client::{Acls, CreateMode, Error};

type Outcome = Result<(), String>;

/// A lock that is not had is no reason to wait any longer.
const UNAVAILABLE: &[StatusCode] = &[StatusCode::SERVICE_UNAVAILABLE];

/// ZooKeeper is killed under load and comes back with its data. Who is caught by it is answered 503; every piece that
/// left the shelf has an answer that said so or one that could not know; then it goes on by itself, and no node is left.
/// Its zxids go on where they were: no fenced buyer is refused.
pub(crate) async fn zookeeper_that_is_restarted_under_load_costs_answers_and_no_piece() -> Outcome {
    restart_zookeeper_under("zk-lock").await?;
    restart_zookeeper_under("zk-fenced").await
}

async fn restart_zookeeper_under(slug: &'static str) -> Outcome {
    let mut lab = cluster(vec![]).await?;
    let (client, nginx) = (Client::new(), lab.addresses().http.clone());
    put_stock(&client, &nginx, PIECES).await?;
    let buyers = Buyers::send(&client, &nginx, slug, UNAVAILABLE);
    buyers.buy(200).await?;
    lab.kill("zookeeper").await.map_err(text)?;
    buyers.are_told().await?;
    lab.restart("zookeeper").await.map_err(text)?;
    buyers.buy(200).await?;
    let count = buyers.go_home().await?;
    let gone = PIECES - shelf(&client, &nginx).await?;
    nothing_is_left(&lab).await?;
    a_planted_node_is_seen(&lab).await?;
    lab.stop().await;
    count.explains(gone).map_err(|e| format!("{slug}: {e}"))
}

/// The twin of a lock that leaves its node.
async fn a_planted_node_is_seen(lab: &Lab) -> Outcome {
    let zookeeper = zookeeper_client::Client::connect(&lab.addresses().zookeeper.connect)
        .await
        .map_err(text)?;
    let directory = CreateMode::Persistent.with_acls(Acls::anyone_all());
    zookeeper
        .mkdir("/distributed/zk-lock", &directory)
        .await
        .map_err(text)?;
    let node = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    zookeeper
        .create("/distributed/zk-lock/left-", b"", &node)
        .await
        .map_err(text)?;
    if leftovers(lab).await?.is_empty() {
        Err("a node that was left was not seen".into())
    } else {
        Ok(())
    }
}

/// The leader of three is killed under load. The other two elect another and keep the sessions: nothing is oversold,
/// pieces are sold before the third is back, no fencing token of the old leader is above one of the new, and no node is
/// left. The same crowd without a lock is caught.
pub(crate) async fn an_ensemble_that_loses_its_leader_under_load_loses_no_piece() -> Outcome {
    kill_the_leader_under("zk-lock").await?;
    kill_the_leader_under("zk-fenced").await?;
    match kill_the_leader_under("none").await {
        Err(broken) if broken.contains("left the shelf") => Ok(()),
        other => Err(format!("without a lock it came to {other:?}")),
    }
}

async fn kill_the_leader_under(slug: &'static str) -> Outcome {
    let mut lab = cluster_with(Options {
        zookeeper_ports: vec![0; 3],
        ..program()
    })
    .await?;
    let (client, nginx) = (Client::new(), lab.addresses().http.clone());
    put_stock(&client, &nginx, PIECES).await?;
    let buyers = Buyers::send(&client, &nginx, slug, UNAVAILABLE);
    buyers.buy(200).await?;
    let leader = lab
        .zookeeper_leader()
        .await
        .ok_or("an ensemble without a leader")?;
    lab.kill(&leader).await.map_err(text)?;
    until("another leads", || async {
        Ok(lab
            .zookeeper_leader()
            .await
            .is_some_and(|next| next != leader))
    })
    .await?;
    buyers.buy(200).await?;
    lab.restart(&leader).await.map_err(text)?;
    buyers.buy(200).await?;
    let count = buyers.go_home().await?;
    let gone = PIECES - shelf(&client, &nginx).await?;
    nothing_is_left(&lab).await?;
    lab.stop().await;
    count.explains(gone).map_err(|e| format!("{slug}: {e}"))
}

/// Where ZooKeeper is, for the process that [`hold`] is.
pub(crate) const HOLDER: &str = "OVERSELL_TEST_HOLD_A_ZOOKEEPER_LOCK";
const PAUSED: &str = "/paused";

/// A client whose session outlasts what a busy machine does to it, and not what the test waits for.
fn zookeeper_at(connect: &str) -> Result<ZkClient, String> {
    ZkClient::new(ZkOptions::new(connect).session(Duration::from_secs(10))).map_err(text)
}

/// The holder of the next test, as a process of its own: says that it holds the lock; at a line, whether it has lost it;
/// then when it has, and what its release came to. It ends at the end of its input, so it does not outlive the test.
pub(crate) async fn hold(connect: &str) -> Outcome {
    let client = zookeeper_at(connect)?;
    let guard = client.lock(PAUSED).acquire(LONG).await.map_err(text)?;
    println!("held");
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    input.next_line().await.map_err(text)?.ok_or("not asked")?;
    println!(
        "{}",
        if guard.is_lost() {
            "lost already"
        } else {
            "not lost"
        }
    );
    tokio::select! {
        () = guard.lost() => println!("lost"),
        _ = input.next_line() => return Err("the test is over".into()),
    }
    println!(
        "{}",
        if matches!(guard.release().await, Err(LockError::Lost { .. })) {
            "refused"
        } else {
            "released"
        }
    );
    client.close().await;
    Ok(())
}

/// A process that is stopped learns nothing meanwhile: the server ends its session, and another has the lock. As soon as
/// it goes on it is told, and its release frees nobody else's lock.
pub(crate) async fn a_process_that_was_paused_beyond_its_session_is_told_that_its_lock_is_lost()
-> Outcome {
    let without = vec![Part::MySql, Part::Redis, Part::Instances, Part::Nginx];
    let lab = Lab::start(Options {
        without,
        redis_ports: vec![0],
        ..program()
    })
    .await
    .map_err(text)?;
    let connect = lab.addresses().zookeeper.connect.clone();
    let outsider = zookeeper_client::Client::connect(&connect)
        .await
        .map_err(text)?;
    let nodes = async || match outsider.list_children(PAUSED).await {
        Err(Error::NoNode) => Ok(0),
        children => children.map(|children| children.len()).map_err(text),
    };
    let mut holder = Command::new(std::env::current_exe().map_err(text)?)
        .env(HOLDER, &connect)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(text)?;
    let pid = Pid::from_raw(holder.id().ok_or("no holder")?.cast_signed());
    let mut input = holder.stdin.take().ok_or("no input")?;
    let mut output = BufReader::new(holder.stdout.take().ok_or("no output")?).lines();
    says(&mut output, "held").await?;
    input.write_all(b"\n").await.map_err(text)?;
    says(&mut output, "not lost").await?;

    kill(pid, Signal::SIGSTOP).map_err(text)?;
    until("the server ends its session", || async {
        Ok(nodes().await? == 0)
    })
    .await?;
    let other = zookeeper_at(&connect)?;
    let guard = other.lock(PAUSED).acquire(LONG).await.map_err(text)?;
    kill(pid, Signal::SIGCONT).map_err(text)?;
    says(&mut output, "lost").await?;
    says(&mut output, "refused").await?;
    let (left, lost) = (nodes().await?, guard.is_lost());
    guard.release().await.map_err(text)?;
    other.close().await;
    lab.stop().await;
    if (left, lost) == (1, false) {
        Ok(())
    } else {
        Err(format!("the next holder has {left} nodes; it lost: {lost}"))
    }
}

async fn says(output: &mut Lines<BufReader<ChildStdout>>, what: &str) -> Outcome {
    let line = tokio::time::timeout(LONG, output.next_line()).await;
    match line
        .map_err(|_| format!("the holder never said: {what}"))?
        .map_err(text)?
    {
        Some(line) if line == what => Ok(()),
        other => Err(format!("the holder said {other:?} and not {what}")),
    }
}
