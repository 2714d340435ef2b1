//! Faults of ZooKeeper, or of a holder, on a lock in ZooKeeper: when they break it and when not.

use crate::support::{
    buyers::{Buyers, under_load},
    leftovers::leftovers,
    *,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use oversell_lab::lab::{Lab, Options};
use oversell_lock::{
    LockError,
    zk::{ZkClient, ZkOptions},
};
use reqwest::StatusCode;
use std::process::Stdio;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{ChildStdout, Command},
};
use zookeeper_client::{Acls, CreateMode};

/// Buyers go on after a lock that was not acquired.
const UNAVAILABLE: &[StatusCode] = &[StatusCode::SERVICE_UNAVAILABLE];

/// ZooKeeper is killed under load and returns with its data. Affected requests get 503; every piece that left the stock
/// has an answer that said so, or one that could not know; then sales go on and no node is left. zxids continue, so no
/// fenced buyer is refused.
#[apply(test!)]
#[over(["zk-lock", "zk-fenced"].map(|slug| (slug, slug)))]
async fn restarting_zookeeper_under_load_costs_no_piece(slug: &'static str) -> Result<()> {
    let mut lab = labs::full_lab().await?;
    under_load(&mut lab, slug, UNAVAILABLE, async |lab, buyers| {
        lab.kill("zookeeper").await?;
        buyers.wait_until_refused().await?;
        Ok(lab.restart("zookeeper").await?)
    })
    .await?;
    a_planted_node_is_seen(&lab).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// The twin leaves its node.
async fn a_planted_node_is_seen(lab: &Lab) -> Result<()> {
    let zookeeper = zookeeper_client::Client::connect(&lab.addresses().zookeeper.connect).await?;
    let directory = CreateMode::Persistent.with_acls(Acls::anyone_all());
    zookeeper.mkdir("/distributed/zk-lock", &directory).await?;
    let node = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
    zookeeper.create("/distributed/zk-lock/left-", b"", &node).await?;
    ensure!(!leftovers(lab).await?.is_empty(), "a node that was left was not seen");
    Ok(())
}

/// The leader of three is killed under load. The others elect a new one and keep the sessions: nothing is oversold,
/// pieces are sold before the third returns, no old fencing token is above a new one, and no node is left. The same
/// buyers without a lock oversell.
#[apply(soak_test!)]
async fn an_ensemble_that_loses_its_leader_under_load_loses_no_piece() -> Result<()> {
    let mut lab = Lab::start(Options { zookeeper: 3, redis_ports: vec![0], ..labs::short_leases() }).await?;
    for slug in ["zk-lock", "zk-fenced"] {
        under_load(&mut lab, slug, UNAVAILABLE, kill_the_leader).await?;
    }
    let without = under_load(&mut lab, "none", UNAVAILABLE, kill_the_leader).await;
    lab.stop().await;
    caught(without.map(drop), "left the shelf")
}

async fn kill_the_leader(lab: &mut Lab, buyers: &Buyers) -> Result<()> {
    let leader = lab.zookeeper_leader().await;
    let leader = leader.context("an ensemble without a leader")?;
    lab.kill(&leader).await?;
    wait_until("another leads", || async {
        let next = lab.zookeeper_leader().await;
        Ok(next.is_some_and(|next| next != leader))
    })
    .await?;
    buyers.buy(200).await?;
    Ok(lab.restart(&leader).await?)
}

/// The address of ZooKeeper for the process that runs [`hold`].
pub(crate) const HOLDER_VARIABLE: &str = "OVERSELL_TEST_HOLD_A_ZOOKEEPER_LOCK";
const PAUSED_LOCK_PATH: &str = "/paused";

/// A session that outlasts the stalls of a busy machine, but not the test's pause.
fn zookeeper_at(connect: &str) -> Result<ZkClient> {
    let options = ZkOptions::new(connect).session(labs::SESSION);
    Ok(ZkClient::new(options)?)
}

/// The holder of the next test, a process of its own. It prints that it has the lock; on each line of input, whether it
/// has lost it; later the loss, and the result of its release. It ends with its input, so it does not outlive the test.
pub(crate) async fn hold(connect: &str) -> Result<()> {
    let client = zookeeper_at(connect)?;
    let guard = client.lock(PAUSED_LOCK_PATH).acquire(TEST_WAIT_LIMIT).await?;
    println!("held");
    let mut input = BufReader::new(tokio::io::stdin()).lines();
    input.next_line().await?.context("not asked")?;
    println!("lost already: {}", guard.is_lost());
    tokio::select! {
        () = guard.lost() => println!("lost"),
        _ = input.next_line() => bail!("the test is over"),
    }
    let refused = matches!(guard.release().await, Err(LockError::Lost { .. }));
    println!("refused: {refused}");
    client.close().await;
    Ok(())
}

/// A stopped process learns nothing: the server ends its session, and another gets the lock. When it goes on it learns
/// the loss at once, and its release frees nobody else's lock.
#[apply(test!)]
async fn a_process_paused_beyond_its_session_learns_its_lock_is_lost(servers: &Servers) -> Result<()> {
    let connect = servers.zookeeper();
    let nodes = async || anyhow::Ok(labs::child_nodes(connect, PAUSED_LOCK_PATH).await?.len());
    let mut holder = Command::new(std::env::current_exe()?)
        .env(HOLDER_VARIABLE, connect)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let pid = Pid::from_raw(holder.id().context("no holder")?.cast_signed());
    let mut input = holder.stdin.take().context("no input")?;
    let mut output = BufReader::new(holder.stdout.take().context("no output")?).lines();
    says(&mut output, "held").await?;
    input.write_all(b"\n").await?;
    says(&mut output, "lost already: false").await?;

    kill(pid, Signal::SIGSTOP)?;
    wait_until("the server ends its session", || async { Ok(nodes().await? == 0) }).await?;
    let other = zookeeper_at(connect)?;
    let guard = other.lock(PAUSED_LOCK_PATH).acquire(TEST_WAIT_LIMIT).await?;
    kill(pid, Signal::SIGCONT)?;
    says(&mut output, "lost").await?;
    says(&mut output, "refused: true").await?;
    let (left, lost) = (nodes().await?, guard.is_lost());
    guard.release().await?;
    other.close().await;
    ensure!((left, lost) == (1, false), "the next holder has {left} nodes; it lost: {lost}");
    Ok(())
}

async fn says(output: &mut Lines<BufReader<ChildStdout>>, what: &str) -> Result<()> {
    let line = within_limit(&format!("the holder says {what}"), output.next_line()).await??;
    ensure!(line.as_deref() == Some(what), "the holder said {line:?} and not {what}");
    Ok(())
}
