//! What Redlock survives, and what breaks it: five nodes of its own for each test, for they die here.

use super::{
    redlock::{LONG, clients, occupy, until_on},
    support::*,
};
use futures::StreamExt;
use oversell::lab::{Lab, Options, Part};
use oversell_lock::redis::{RedisClient, Redlock};
use redis::Script;
use tokio::time::Instant;

/// A lease that a test waits for. A node has a tenth of it to answer, which on a busy machine may take more than one try.
const BRIEF: Duration = Duration::from_secs(5);
const NAMES: [&str; 5] = ["redis", "redis-2", "redis-3", "redis-4", "redis-5"];

/// What it comes to on five nodes of its own, in a lab.
async fn on_five<T>(test: impl AsyncFnOnce(&mut Lab, &Five) -> Result<T>) -> Result<T> {
    let without = vec![Part::MySql, Part::ZooKeeper, Part::Instances, Part::Nginx];
    let redis_ports = vec![0; 5];
    let options = Options {
        without,
        redis_ports,
        ..Options::default()
    };
    let mut lab = Lab::start(options).await?;
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

/// Asks for so long, and goes on until enough nodes have answered: with two dead none of the others may be silent for
/// longer than a node is waited for, and on a busy machine one is now and then.
async fn asked_for(wait: Duration, lock: Redlock) -> Answer<Guard> {
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

#[apply(test!)]
async fn two_of_five_dead_and_it_goes_on(_: &Five) -> Result {
    on_five(async |lab, nodes| {
        let (name, process, other) = (name(), nodes.client().await, nodes.client().await);
        // Renewed several times over before the other gives up.
        let lease = Lease::Watchdog(SOON);
        let held = take(&Redlock::new(&process, &name).lease(lease)).await?;
        kill(lab, &NAMES[..2]).await?;
        let lock = Redlock::new(&other, &name).lease(LONG);
        let tried = asked_for(lease.duration() * 5 / 4, lock).await;
        taken("while it is held", tried)?;
        kept("what three nodes renew", &held)?;
        held.release().await?;
        for process in [other, process] {
            let lock = Redlock::new(&process, &name).lease(LONG);
            asked_for(SOON, lock).await?.release().await?;
        }
        Ok(())
    })
    .await
}

#[apply(test!)]
async fn three_of_five_dead_and_it_refuses_and_says_so(_: &Five) -> Result {
    on_five(async |lab, nodes| {
        let (name, process) = (name(), nodes.client().await);
        let held = take(&Redlock::new(&process, &name)).await?;
        kill(lab, &NAMES[..3]).await?;
        let other = Redlock::new(&process, "another").lease(LONG);
        match other.acquire(SOON).await {
            Err(LockError::Unavailable { server, reason }) => {
                let reason = (server, reason.to_string());
                let expected = ("redis", "2 of 5 nodes answered, 3 needed".to_owned());
                is("with two nodes", reason, expected)?;
            }
            other => bail!("with two nodes: {other:?}"),
        }
        told(&held).await?;
        ensure!(held.release().await.is_err(), "a lost lock was released");
        for node in &nodes.0[3..] {
            node.no_key_left("another").await?;
        }
        Ok(())
    })
    .await
}

/// The process knew the node before it hung, so that the command waits there and runs when it goes on.
#[apply(test!)]
async fn a_node_that_hangs_holds_up_nobody_and_its_late_answer_is_undone(_: &Five) -> Result {
    on_five(async |lab, nodes| {
        let (name, process) = (name(), nodes.client().await);
        let lock = Redlock::new(&process, &name);
        pass(&lock).await?;
        lab.pause(NAMES[0])?;
        let lock = lock.lease(LONG);
        pass(&lock).await?;
        // Two say yes and two no: it hangs on the one that hangs.
        occupy(&nodes.0[1..3], &name).await;
        taken("with two nodes and silence", lock.try_acquire().await)?;
        lab.resume(NAMES[0])?;
        // Late answers are undone.
        until_on(nodes, &name, 2).await
    })
    .await
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
async fn two_owners(lab: &mut Lab, nodes: &Five, event: Event) -> Result<bool> {
    let mut addresses = nodes.hosts();
    let other = clients(&addresses);
    // The first process does not reach the last two nodes.
    let gone = Proxy::to(addresses[3].clone())?;
    gone.cut();
    addresses[3..].fill(gone.address());
    // Long enough for all that happens, and no longer: what nodes that have gone are to give back is asked for until then.
    let (name, long) = (name(), Lease::Fixed(SOON * 3));
    let lease = match event {
        Event::DelayedRestart => Lease::Fixed(BRIEF),
        _ => long,
    };
    let first = Redlock::new(&clients(&addresses), &name).lease(lease);
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
    // On a busy machine a node may be silent while it is connected to: that says nothing of the lock. Where the second
    // is to have it, it may need another try for the same reason.
    let wait = match event {
        Event::Nothing => Duration::ZERO,
        _ => SOON,
    };
    match asked_for(wait, Redlock::new(&other, &name).lease(long)).await {
        Ok(_second) => Ok(!first.is_lost()),
        Err(LockError::Taken { .. }) if event == Event::Nothing => Ok(false),
        Err(error) => bail!("the second: {error}"),
    }
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

macro_rules! owners {
    ($($name:ident: $event:ident, $two:literal;)*) => {$(
        test! {
            async fn $name(_: &Five) -> Result {
                let owners = async |lab: &mut Lab, nodes: &Five| two_owners(lab, nodes, Event::$event).await;
                is("two owners at the same time", on_five(owners).await?, $two)
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

/// A crowd of one process waits, one of another process alone beside it, and a third has the lock. `in_line`: as it is
/// meant to be used. While a node is asked so often by the one alone it is asked not much more by the crowd: at the same
/// time, so that a machine that stands still holds up both.
async fn no_storm(nodes: &Five, in_line: bool) -> Result {
    const CROWD: usize = 300;
    const ENOUGH: u64 = 40;
    let (name, holder) = (name(), nodes.client().await);
    let [crowded, single] = [nodes.client().await, nodes.client().await];
    let held = take(&Redlock::new(&holder, &name).lease(LONG)).await?;
    let mut commands = nodes.0[4].monitor().await?.into_on_message::<String>();
    let mut waiters = JoinSet::new();
    let join = |process: &Vec<RedisClient>, in_line: bool| {
        let lock = Redlock::new(process, &name).lease(LONG);
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
    let id = |process: &Vec<RedisClient>| {
        let owner = process[0].owner().to_string();
        owner.split(':').next().unwrap_or_default().to_owned()
    };
    let (by_crowd, by_one) = (id(&crowded), id(&single));
    let (mut crowd, mut alone) = (0, 0);
    while alone < ENOUGH {
        let command = timeout(SOON, commands.next()).await;
        let command = command.context("nobody asks")?;
        let command = command.context("the monitor ended")?;
        // Not what the script does in its turn.
        let word = command.split('"').nth(1);
        if word.is_some_and(|word| word.eq_ignore_ascii_case("evalsha")) {
            crowd += u64::from(command.contains(&by_crowd));
            alone += u64::from(command.contains(&by_one));
        }
    }
    if in_line {
        held.release().await?;
        for had in waiters.join_all().await {
            had?;
        }
    }
    let storms = crowd >= alone * 4;
    ensure!(
        !storms,
        "the crowd storms: {crowd} scripts, one alone {alone}"
    );
    Ok(())
}

#[apply(test!)]
async fn a_crowd_of_one_process_asks_no_more_than_one(_: &Five) -> Result {
    on_five(async |_, nodes| no_storm(nodes, true).await).await
}

#[apply(test!)]
async fn a_crowd_without_a_line_is_caught(_: &Five) -> Result {
    let verdict = on_five(async |_, nodes| no_storm(nodes, false).await).await;
    caught(verdict, "the crowd storms")
}
