//! What Redlock survives, and what breaks it: five nodes of its own for each test, for they die here.

use super::{
    Verdict,
    clauses::{SOON, ensure, says},
    family::{Family, Process, name, until},
    proxy::Proxy,
    redis::Redis,
    redlock::{Five, LONG, OnNodes, SilenceIsYes, Voters, occupy},
};
use ::redis::Script;
use futures::StreamExt;
use oversell::lab::{Lab, Options, Part};
use oversell_lock::{
    Guard, Lock, LockError,
    redis::{Lease, Redlock},
};
use std::{sync::Arc, time::Duration};
use tokio::{task::JoinSet, time::Instant};

/// A lease that a test waits for. A node has a tenth of it to answer, which on a busy machine may take more than one try.
const BRIEF: Duration = Duration::from_secs(5);
const NAMES: [&str; 5] = ["redis", "redis-2", "redis-3", "redis-4", "redis-5"];

/// A lab of five nodes, and the locks on them.
async fn five<F: OnNodes>() -> Result<(Lab, F), String> {
    let without = vec![Part::MySql, Part::ZooKeeper, Part::Instances, Part::Nginx];
    let options = Options {
        without,
        redis_ports: vec![0; 5],
        ..Options::default()
    };
    let lab = Lab::start(options)
        .await
        .map_err(|error| error.to_string())?;
    let family = F::on(
        lab.addresses()
            .redis
            .iter()
            .map(|node| node.url.clone())
            .collect(),
    );
    Ok((lab, family))
}

async fn kill(lab: &Lab, names: &[&str]) -> Verdict {
    for name in names {
        lab.kill(name).await.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Asks for so long, and goes on until enough nodes have answered: with two dead none of the others may be silent for
/// longer than a node is waited for, and on a busy machine one is now and then.
async fn asked_for(wait: Duration, lock: Redlock) -> Result<Guard, LockError> {
    let end = Instant::now() + wait;
    loop {
        match lock
            .acquire(end.saturating_duration_since(Instant::now()))
            .await
        {
            Err(LockError::Unavailable { .. }) => {}
            result => return result,
        }
    }
}

pub(crate) async fn two_of_five_dead_and_it_goes_on(_: Arc<Five>) -> Verdict {
    let (lab, family) = five::<Five>().await?;
    let (name, process, other) = (name(), family.process().await, family.process().await);
    // Renewed several times over before the other gives up.
    let lease = Lease::Watchdog(SOON);
    let held = says(
        "with all nodes",
        process.lock(&name).lease(lease).acquire(SOON).await,
    )?;
    kill(&lab, &NAMES[..2]).await?;
    let tried = asked_for(lease.duration() * 5 / 4, other.lock(&name).lease(LONG)).await;
    ensure(matches!(tried, Err(LockError::Taken { .. })), || {
        format!("while it is held: {tried:?}")
    })?;
    ensure(!held.is_lost(), || {
        "lost, though three nodes renew it".into()
    })?;
    says("release on three", held.release().await)?;
    for process in [&other, &process] {
        let guard = says(
            "with three nodes",
            asked_for(SOON, process.lock(&name).lease(LONG)).await,
        )?;
        says("release", guard.release().await)?;
    }
    lab.stop().await;
    Ok(())
}

pub(crate) async fn three_of_five_dead_and_it_refuses_and_says_so(_: Arc<Five>) -> Verdict {
    let (lab, family) = five::<Five>().await?;
    let (name, process) = (name(), family.process().await);
    let held = says("with all nodes", process.lock(&name).acquire(SOON).await)?;
    kill(&lab, &NAMES[..3]).await?;
    match process.lock("another").lease(LONG).acquire(SOON).await {
        Err(LockError::Unavailable {
            server: "redis",
            reason,
        }) if reason.to_string() == "2 of 5 nodes answered, 3 needed" => {}
        other => return Err(format!("with two nodes: {other:?}")),
    }
    tokio::time::timeout(SOON, held.lost())
        .await
        .map_err(|_| "never told that three nodes are dead")?;
    ensure(held.release().await.is_err(), || {
        "a lost lock was released".into()
    })?;
    for node in &family.nodes()[3..] {
        until("nothing is left", || async {
            node.left("another").await.is_empty()
        })
        .await?;
    }
    lab.stop().await;
    Ok(())
}

/// Three nodes hang. What they do when they go on is undone.
async fn three_hang<F: OnNodes>() -> Verdict {
    let (lab, family) = five::<F>().await?;
    let (name, process) = (name(), family.process().await);
    for node in &NAMES[..3] {
        lab.pause(node).map_err(|error| error.to_string())?;
    }
    match process.lock(&name).acquire(SOON).await {
        Err(LockError::Unavailable { .. }) => {}
        other => return Err(format!("with three nodes that hang: {other:?}")),
    }
    for node in &NAMES[..3] {
        lab.resume(node).map_err(|error| error.to_string())?;
    }
    until("late answers are undone", || async {
        family.left(&name).await.is_empty()
    })
    .await?;
    lab.stop().await;
    Ok(())
}

pub(crate) async fn three_nodes_that_hang_are_no_quorum(_: Arc<Five>) -> Verdict {
    three_hang::<Five>().await
}

pub(crate) async fn silence_that_counts_as_yes_is_caught(_: Arc<SilenceIsYes>) -> Verdict {
    super::twins::caught(
        three_hang::<SilenceIsYes>().await,
        "with three nodes that hang: Ok",
    )
}

/// The process knew the node before it hung, so that the command waits there and runs when it goes on.
pub(crate) async fn a_node_that_hangs_holds_up_nobody_and_its_late_answer_is_undone(
    _: Arc<Five>,
) -> Verdict {
    let (lab, family) = five::<Five>().await?;
    let (name, process) = (name(), family.process().await);
    says(
        "release",
        says("all nodes", process.lock(&name).acquire(SOON).await)?
            .release()
            .await,
    )?;
    lab.pause(NAMES[0]).map_err(|error| error.to_string())?;
    let guard = says(
        "with four nodes",
        process.lock(&name).lease(LONG).acquire(SOON).await,
    )?;
    says("release", guard.release().await)?;
    // Two say yes and two no: it hangs on the one that hangs.
    occupy(&family.nodes()[1..3], &name).await;
    let missed = process.lock(&name).lease(LONG).try_acquire().await;
    ensure(matches!(missed, Err(LockError::Taken { .. })), || {
        format!("with two nodes and silence: {missed:?}")
    })?;
    lab.resume(NAMES[0]).map_err(|error| error.to_string())?;
    until("late answers are undone", || async {
        family.left(&name).await.len() == 2
    })
    .await?;
    lab.stop().await;
    Ok(())
}

/// What happens to the third node, while the first process has the lock there, on the first and on the second.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Nothing,
    /// It comes back at once, empty.
    Restart,
    /// It comes back when every lease has ended that it may have forgotten.
    DelayedRestart,
    /// Its clock jumps forward by a lease.
    Jump,
}

/// Whether two processes have the lock at the same time, as far as they know.
async fn two_owners(event: Event) -> Result<bool, String> {
    let (mut lab, family) = five::<Five>().await?;
    let mut addresses: Vec<_> = family.nodes().iter().map(Redis::host).collect();
    let other = Voters::at(&addresses);
    // The first process does not reach the last two nodes.
    let gone = Proxy::to(addresses[3].clone());
    gone.cut().await;
    addresses[3..].fill(gone.address());
    // Long enough for all that happens, and no longer: what nodes that have gone are to give back is asked for until then.
    let (name, long) = (name(), Lease::Fixed(SOON * 3));
    let lease = if event == Event::DelayedRestart {
        Lease::Fixed(BRIEF)
    } else {
        long
    };
    let first = says(
        "three nodes",
        asked_for(SOON, Voters::at(&addresses).lock(&name).lease(lease)).await,
    )?;
    match event {
        Event::Nothing => {}
        Event::Restart | Event::DelayedRestart => {
            kill(&lab, &NAMES[2..3]).await?;
            if event == Event::DelayedRestart {
                tokio::time::sleep(BRIEF).await;
            }
            lab.restart(NAMES[2])
                .await
                .map_err(|error| error.to_string())?;
        }
        Event::Jump => jump(&family.nodes()[2], lease.duration()).await,
    }
    // On a busy machine a node may be silent while it is connected to: that says nothing of the lock. Where the second
    // is to have it, it may need another try for the same reason.
    let wait = if event == Event::Nothing {
        Duration::ZERO
    } else {
        SOON
    };
    let second = asked_for(wait, other.lock(&name).lease(long)).await;
    let both = match &second {
        Ok(_) => !first.is_lost(),
        Err(LockError::Taken { .. }) if event == Event::Nothing => false,
        Err(error) => return Err(format!("the second: {error}")),
    };
    drop((first, second));
    lab.stop().await;
    Ok(both)
}

/// What a clock that jumps forward does to keys: each ends so much earlier. (Debian's Redis, on jemalloc, does not start
/// under libfaketime, so the clock itself stays as it is.)
async fn jump(node: &Redis, by: Duration) {
    let script = Script::new(
        "for _, key in ipairs(redis.call('keys', '*')) do
           redis.call('pexpire', key, redis.call('pttl', key) - ARGV[1])
         end",
    );
    let by = by.as_millis().to_string();
    let () = script
        .arg(by)
        .invoke_async(&mut node.outsider().await)
        .await
        .expect("an answer");
}

pub(crate) async fn a_node_that_forgets_lets_a_second_owner_in(_: Arc<Five>) -> Verdict {
    ensure(two_owners(Event::Restart).await?, || {
        "the second owner was to be shown".into()
    })
}

pub(crate) async fn a_node_that_comes_back_after_the_longest_lease_does_not(
    _: Arc<Five>,
) -> Verdict {
    ensure(!two_owners(Event::DelayedRestart).await?, || {
        "two owners, though the restart was delayed".into()
    })
}

pub(crate) async fn a_clock_that_jumps_lets_a_second_owner_in(_: Arc<Five>) -> Verdict {
    ensure(two_owners(Event::Jump).await?, || {
        "the second owner was to be shown".into()
    })
}

pub(crate) async fn without_an_event_there_is_one_owner(_: Arc<Five>) -> Verdict {
    ensure(!two_owners(Event::Nothing).await?, || {
        "two owners, and nothing had happened".into()
    })
}

/// A crowd of one process waits, one of another process alone beside it, and a third has the lock. `in_line`: as it is
/// meant to be used. Says how often a node was asked by the crowd while it was asked so often by the one alone: at the
/// same time, so that a machine that stands still holds up both.
async fn asked(in_line: bool) -> Result<(u64, u64), String> {
    const CROWD: usize = 300;
    const ENOUGH: u64 = 40;
    let (lab, family) = five::<Five>().await?;
    let (name, holder) = (name(), family.process().await);
    let [crowded, single] = [family.process().await, family.process().await];
    let held = says(
        "the lock",
        holder.lock(&name).lease(LONG).acquire(SOON).await,
    )?;
    let client = ::redis::Client::open(format!("redis://{}", family.nodes()[4].host()))
        .map_err(|e| e.to_string())?;
    let mut commands = client
        .get_async_monitor()
        .await
        .map_err(|e| e.to_string())?
        .into_on_message::<String>();
    let mut waiters = JoinSet::new();
    let join = |process: &Voters, in_line: bool| {
        let lock = process.lock(&name).lease(LONG);
        async move {
            if in_line {
                return asked_for(SOON * 3, lock).await?.release().await;
            }
            // Each asks for itself.
            loop {
                match asked_for(Duration::ZERO, lock.clone()).await {
                    Err(LockError::Taken { .. }) => {
                        tokio::time::sleep(Duration::from_millis(60)).await
                    }
                    had => return had?.release().await,
                }
            }
        }
    };
    waiters.spawn(join(&single, true));
    for _ in 0..CROWD {
        waiters.spawn(join(&crowded, in_line));
    }
    // Each hold is written `<process>:<number>`.
    let id = |process: &Voters| {
        process.0[0]
            .owner()
            .to_string()
            .split(':')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let (by_crowd, by_one) = (id(&crowded), id(&single));
    let (mut crowd, mut alone) = (0, 0);
    while alone < ENOUGH {
        let command = tokio::time::timeout(SOON, commands.next())
            .await
            .map_err(|_| "nobody asks")?;
        let command = command.ok_or("the monitor ended")?;
        // Not what the script does in its turn.
        if command
            .split('"')
            .nth(1)
            .is_some_and(|word| word.eq_ignore_ascii_case("evalsha"))
        {
            crowd += u64::from(command.contains(&by_crowd));
            alone += u64::from(command.contains(&by_one));
        }
    }
    if in_line {
        says("release", held.release().await)?;
        for had in waiters.join_all().await {
            says("a turn", had)?;
        }
    }
    lab.stop().await;
    Ok((crowd, alone))
}

fn no_storm((crowd, alone): (u64, u64)) -> Verdict {
    ensure(alone > 0 && crowd < alone * 4, || {
        format!("the crowd storms: {crowd} scripts, one alone {alone}")
    })
}

pub(crate) async fn a_crowd_of_one_process_asks_no_more_than_one(_: Arc<Five>) -> Verdict {
    no_storm(asked(true).await?)
}

pub(crate) async fn a_crowd_without_a_line_is_caught(_: Arc<Five>) -> Verdict {
    super::twins::caught(no_storm(asked(false).await?), "the crowd storms")
}
