//! What Redlock survives, and what breaks it: each test has five nodes of its own, because they die here.

use crate::{
    redis::redlock::{LONG_LEASE, clients, occupy, redlock, until_on},
    support::*,
};
use oversell_lock::redis::Redlock;
use redis::Script;
use tokio::time::Instant;

/// A lease that a test can wait for. A node may take a tenth of it to answer, which on a busy machine may need more
/// than one try.
const BRIEF: Duration = Duration::from_secs(5);
const NAMES: [&str; 5] = ["redis", "redis-2", "redis-3", "redis-4", "redis-5"];

/// Runs a test on five nodes of its own.
async fn on_five<T>(test: impl AsyncFnOnce(&mut Lab, &Five) -> Result<T>) -> Result<T> {
    let mut lab = lab(Part::Redis, 5, 0).await?;
    let nodes = lab.addresses().redis.iter().map(|node| node.url.clone());
    let five = Five::on(nodes.collect());
    let came_to = test(&mut lab, &five).await;
    lab.stop().await;
    came_to
}

async fn kill(lab: &Lab, names: &[&str]) -> Result {
    for name in names {
        lab.kill(name).await?;
    }
    Ok(())
}

/// Retries until enough nodes have answered: with two dead nodes, none of the others may exceed the node timeout, and
/// on a busy machine one sometimes does.
async fn asked_for(wait: Duration, lock: Redlock) -> Answer<Guard> {
    let end = Instant::now() + wait;
    loop {
        match lock.acquire(end.saturating_duration_since(Instant::now())).await {
            Err(LockError::Unavailable { .. }) => {}
            result => return result,
        }
    }
}

/// It works with two of five nodes dead; with three it reports that they are unavailable.
#[apply(test!)]
async fn two_nodes_may_die_and_a_third_is_told(_: &Five) -> Result {
    on_five(async |lab, nodes| {
        let (name, process, other) = (name(), nodes.client().await, nodes.client().await);
        // It is renewed several times before the other gives up.
        let lease = Lease::Watchdog(SOON);
        let held = take(&redlock(&process, &name).lease(lease)).await?;
        // Three nodes are enough to take it, so with two of these dead it would be on one.
        until_on(nodes, &name, 5).await?;
        kill(lab, &NAMES[..2]).await?;
        let lock = redlock(&other, &name).lease(LONG_LEASE);
        let tried = asked_for(lease.duration() * 5 / 4, lock.clone()).await;
        ensure_kept("what three nodes renew", &held)?;
        ensure_taken("while it is held", tried)?;
        held.release().await?;
        asked_for(SOON, lock).await?.release().await?;
        let held = asked_for(SOON, redlock(&process, &name)).await?;
        kill(lab, &NAMES[2..3]).await?;
        let lock = redlock(&other, "another").lease(LONG_LEASE);
        match lock.acquire(SOON).await {
            Err(LockError::Unavailable { server, reason }) => {
                let reason = (server, reason.to_string());
                let says = "2 of 5 nodes answered without an error within 3000 ms (a tenth of the lease, 3 s at most), 3 needed";
                let expected = ("redis", says.to_owned());
                ensure_equal("with two nodes", reason, expected)?;
            }
            other => bail!("with two nodes: {other:?}"),
        }
        wait_until_lost(&held).await?;
        ensure!(held.release().await.is_err(), "a lost lock was released");
        for node in &nodes.0[3..] {
            node.no_key_left("another").await?;
        }
        Ok(())
    })
    .await
}

/// The process was connected to the node before it hung, so the command waits there and runs later.
#[apply(test!)]
async fn a_hanging_node_delays_nobody_and_its_answer_is_undone(_: &Five) -> Result {
    on_five(async |lab, nodes| {
        let (name, process) = (name(), nodes.client().await);
        let lock = redlock(&process, &name);
        pass(&lock).await?;
        lab.pause(NAMES[0])?;
        let lock = lock.lease(LONG_LEASE);
        pass(&lock).await?;
        // Two nodes say yes and two no: the hanging one decides.
        occupy(&nodes.0[1..3], &name).await;
        ensure_taken("with two nodes and silence", lock.try_acquire().await)?;
        lab.resume(NAMES[0])?;
        // Late answers are undone.
        until_on(nodes, &name, 2).await
    })
    .await
}

/// A fault of the third node, while the first process holds the lock on it, the first and the second.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Nothing,
    /// It restarts at once, empty.
    Restart,
    /// It restarts after every lease that it may have forgotten has ended.
    DelayedRestart,
    /// Its clock jumps forward by a lease.
    Jump,
}

/// Whether two processes believe that they hold the lock at the same time.
async fn two_owners(lab: &mut Lab, nodes: &Five, event: Event) -> Result<bool> {
    let mut addresses = nodes.hosts();
    let other = clients(&addresses);
    // The first process does not reach the last two nodes.
    let gone = Proxy::to(addresses[3].clone())?;
    gone.cut();
    addresses[3..].fill(gone.address());
    // Long enough for the test, and no longer: an undo at a dead node is repeated until then.
    let (name, long) = (name(), Lease::Fixed(SOON * 3));
    let lease = match event {
        Event::DelayedRestart => Lease::Fixed(BRIEF),
        _ => long,
    };
    let first = redlock(&clients(&addresses), &name).lease(lease);
    let first = asked_for(SOON, first).await?;
    match event {
        Event::Nothing => {}
        Event::Restart | Event::DelayedRestart => {
            lab.kill(NAMES[2]).await?;
            if event == Event::DelayedRestart {
                tokio::time::sleep(BRIEF).await;
            }
            lab.restart(NAMES[2]).await?;
        }
        Event::Jump => jump(&nodes.0[2], lease.duration()).await,
    }
    // On a busy machine a node may be too slow, which says nothing about the lock: the second process may need another
    // try.
    let wait = match event {
        Event::Nothing => Duration::ZERO,
        _ => SOON,
    };
    match asked_for(wait, redlock(&other, &name).lease(long)).await {
        Ok(_second) => Ok(!first.is_lost()),
        Err(LockError::Taken { .. }) if event == Event::Nothing => Ok(false),
        Err(error) => bail!("the second: {error}"),
    }
}

/// Ends keys earlier, as a clock that jumps forward does. The clock itself stays: a lesson moves the clocks of the
/// lab's nodes.
async fn jump(node: &Redis, by: Duration) {
    let script = Script::new(
        "for _, key in ipairs(redis.call('keys', '*')) do
           redis.call('pexpire', key, redis.call('pttl', key) - ARGV[1])
         end",
    );
    let by = by.as_millis().to_string();
    let () = script.arg(by).invoke_async(&mut node.outsider().await).await.expect("an answer");
}

macro_rules! owners {
    ($($name:ident: $event:ident, $two:literal;)*) => {$(
        test! {
            async fn $name(_: &Five) -> Result {
                let owners = async |lab: &mut Lab, nodes: &Five| two_owners(lab, nodes, Event::$event).await;
                ensure_equal("two owners at the same time", on_five(owners).await?, $two)
            }
        }
    )*};
}

owners! {
    a_node_that_forgets_lets_a_second_owner_in: Restart, true;
    a_node_that_comes_back_after_the_longest_lease_does_not: DelayedRestart, false;
    a_clock_that_jumps_lets_a_second_owner_in: Jump, true;
    without_an_event_there_is_one_owner: Nothing, false;
}
