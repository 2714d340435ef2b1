//! Locks in a Redis with replicas and Sentinels: the client follows a fail-over, and a lock that waited for replicas is
//! not held twice.

use crate::{redis::with_lease, support::*};
use oversell_lab::clients::redis_at::redis_at;
use oversell_lock::redis::{RedisClient, RedisOptions, Replicas};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

const NONE: Replicas = Replicas::AtLeast(0);
const BOTH: Replicas = Replicas::AtLeast(2);

/// A primary, two replicas, three Sentinels.
async fn group() -> Result<Lab> {
    lab(Part::Redis, 1, 3).await
}

fn first(lab: &Lab) -> &str {
    &lab.addresses().redis[0].url
}

fn options(lab: &Lab, replicas: Replicas) -> RedisOptions {
    let sentinels = lab.addresses().sentinels.iter();
    RedisOptions::new(first(lab)).sentinels(sentinels.map(|one| one.url.as_str()), "main").wait_replicas(replicas)
}

fn process(lab: &Lab, replicas: Replicas) -> RedisClient {
    RedisClient::new(options(lab, replicas)).expect("valid options")
}

async fn leader(lab: &Lab) -> Option<String> {
    let at = lab.addresses();
    Some(match lab.main_redis().await?.as_str() {
        "redis" => at.redis[0].url.clone(),
        "replica" => at.replicas[0].url.clone(),
        _ => at.replicas[1].url.clone(),
    })
}

/// Kills the primary and waits for another.
async fn dies(lab: &Lab) -> Result {
    lab.kill("redis").await?;
    let other = async || leader(lab).await.is_some_and(|url| url != first(lab));
    until("another one leads", other).await
}

async fn passes(process: &RedisClient) -> bool {
    pass(&process.lock(&name())).await.is_ok()
}

/// A hold that replicas had stays held and is released at the new primary, which also wakes the waiter. The twin has
/// one connection and never looks again.
#[apply(test!)]
async fn a_main_redis_that_dies_is_left_for_the_one_that_is_promoted(_: &Redis) -> Result {
    let lab = group().await?;
    let (holder, other) = (process(&lab, BOTH), process(&lab, NONE));
    let connection = redis_at(first(&lab)).await?;
    let twin = RedisClient::over(connection, RedisOptions::new(first(&lab)))?;
    let name = name();
    ensure!(passes(&twin).await, "the twin works while the first leads");
    let guard = take(&holder.lock(&name)).await?;
    ensure_taken("while it is held", other.lock(&name).acquire(SHORT).await)?;

    dies(&lab).await?;
    until("the other process has locks again", || passes(&other)).await?;
    let leader = Redis::at(leader(&lab).await.context("none leads")?);
    let waits = spawn_acquire(other.lock(&name));
    let channel = format!("redisson_lock__channel:{{{name}}}");
    leader.until_heard_by(&channel, 1).await?;
    ensure_kept("what both replicas had", &guard)?;
    guard.release().await?;
    waits.await??.release().await?;
    ensure_unavailable("the twin", twin.lock(&name).acquire(SHORT).await)?;
    lab.stop().await;
    Ok(())
}

/// For every kind, with one of two replicas stopped. The twin waits for one replica, and acquires.
#[apply(test!)]
async fn a_lock_that_too_few_replicas_have_is_not_acquired(redis: &'static Redis) -> Result {
    let lab = group().await?;
    let both = process(&lab, BOTH);
    let clients = [&both, &process(&lab, Replicas::All)];
    let (one, loose) = (process(&lab, Replicas::AtLeast(1)), process(&lab, NONE));
    until("both replicas are waited for", || passes(&both)).await?;
    lab.pause("replica")?;
    let tries = clients.into_iter().flat_map(|client| {
        let (loose, lab) = (&loose, &lab);
        with_lease(redis).map(async move |Family { kind, .. }| {
            let name = name();
            let lock = (kind.make)(client, &name, Ask::default());
            let error = lock.acquire(SOON).await.err().context(kind.name)?;
            let said = error.to_string();
            let few = said.starts_with("redis is not available") && said.contains("of 2 replicas");
            ensure!(few, "{}: {said}", kind.name);
            let primary = Redis::at(first(lab).to_owned());
            until("it is given back", async || primary.left(&name).await.is_empty()).await?;
            pass(&loose.rw_lock(&name).write()).await
        })
    });
    try_join_all(tries).await?;
    caught(ensure_unavailable("the twin", one.lock(&name()).acquire(SOON).await), "the twin: Ok")?;
    // The connections for `WAIT` are reused, and the primary forgets a replica that is gone.
    lab.resume("replica")?;
    until("both replicas answer again", || passes(&both)).await?;
    lab.kill("replica").await?;
    until("all is one", || passes(clients[1])).await?;
    ensure_unavailable("both", both.lock(&name()).acquire(SOON).await)?;
    lab.stop().await;
    Ok(())
}

/// In a planned fail-over the new primary serves at once, and the old one until it is told. Plain locks are then held
/// twice, but none that both replicas had.
#[apply(test!)]
async fn a_fail_over_doubles_no_lock_that_all_replicas_had(_: &Redis) -> Result {
    let lab = group().await?;
    let mut doubled = 0;
    for to in ["replica", "replica-2", "redis"] {
        doubled += doubled_by(&lab, "planned", async { Ok(lab.fail_over(to).await?) }).await?;
        if doubled > 0 {
            break;
        }
    }
    ensure!(doubled > 0, "the twins passed: no plain lock is held twice");
    lab.stop().await;
    Ok(())
}

/// A primary that dies grants no more locks: only the few that no replica had yet are lost.
#[apply(test!)]
async fn a_main_redis_that_dies_doubles_no_lock_that_all_replicas_had(_: &Redis) -> Result {
    let lab = group().await?;
    let killed = async {
        tokio::time::sleep(SHORT).await;
        dies(&lab).await
    };
    doubled_by(&lab, "killed", killed).await?;
    lab.stop().await;
    Ok(())
}

/// Three processes take locks during `fault`: plain ones, and ones that wait for one or both replicas. Returns how many
/// plain ones are held twice; of those that both replicas had, none may be.
async fn doubled_by(lab: &Lab, what: &str, fault: impl Future<Output = Result>) -> Result<usize> {
    let (over, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
    let fault = async {
        let all_hold = async || begun.load(SeqCst) == 3;
        let done = match until("each holds a lock", all_hold).await {
            Ok(()) => fault.await,
            late => late,
        };
        over.store(true, SeqCst);
        done
    };
    let [plain, one, both] = [NONE, Replicas::AtLeast(1), BOTH].map(|n| process(lab, n));
    let (done, plain, one, both) =
        tokio::join!(fault, hold(&plain, &begun, &over), hold(&one, &begun, &over), hold(&both, &begun, &over));
    done?;
    let other = process(lab, NONE);
    until("there are locks again", || passes(&other)).await?;
    let mut twice = Vec::new();
    for held in [&plain, &one, &both] {
        twice.push((held_twice(&other, held).await?, held.len()));
    }
    println!("{what}: held twice, of all: plain {:?}, by one replica {:?}, by both {:?}", twice[0], twice[1], twice[2]);
    ensure_equal("those that both replicas had, held twice", twice[2].0, 0)?;
    Ok(twice[0].0)
}

/// Takes and holds one lock after the other until it is over; counts those that began.
async fn hold(process: &RedisClient, begun: &AtomicUsize, over: &AtomicBool) -> Vec<(String, Guard)> {
    let (mut held, minute) = (Vec::new(), Lease::Fixed(Duration::from_secs(60)));
    while !over.load(SeqCst) {
        let name = name();
        // Without a primary no lock can be acquired.
        if let Ok(guard) = process.lock(&name).lease(minute).acquire(SHORT).await {
            begun.fetch_add(usize::from(held.is_empty()), SeqCst);
            held.push((name, guard));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    held
}

/// How many of them another process can take.
async fn held_twice(other: &RedisClient, held: &[(String, Guard)]) -> Result<usize> {
    let mut twice = 0;
    for (name, guard) in held {
        ensure_kept("a fixed lease", guard)?;
        match other.lock(name).try_acquire().await {
            Ok(second) => {
                twice += 1;
                second.release().await?;
            }
            Err(LockError::Taken { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(twice)
}

/// A silent Sentinel is skipped, and one that names a wrong primary, or does not know the name, is not believed.
#[apply(test!)]
async fn a_sentinel_that_is_silent_or_wrong_leads_nobody_astray(_: &Redis) -> Result {
    let lab = group().await?;
    let [one, two, _] = &lab.addresses().sentinels[..] else {
        bail!("three Sentinels");
    };
    lab.pause("sentinel")?;
    ensure!(passes(&process(&lab, NONE)).await, "a silent one is in the way");
    let only = |url: &str, master: &str| RedisClient::new(RedisOptions::new(first(&lab)).sentinels([url], master));
    let silent = only(&one.url, "main")?;
    ensure_unavailable("a silent one alone", silent.lock(&name()).acquire(SHORT).await)?;
    let replica = Redis::at(lab.addresses().replicas[0].url.clone()).host();
    let (host, port) = replica.rsplit_once(':').context("a port")?;
    let monitor = ["SENTINEL", "MONITOR", "behind", host, port, "1"];
    Redis::at(two.url.clone()).ask::<()>(&monitor).await?;
    for (master, why) in [("behind", "no primary"), ("nobody", "no primary of this name")] {
        let ended = only(&two.url, master)?.lock(&name()).acquire(SHORT).await;
        caught(ended.map_err(Into::into), why)?;
    }
    ensure_invalid("without a name", only(&two.url, "").map(drop))?;
    ensure_invalid("no address", only("sentinel:26379", "main").map(drop))?;
    lab.resume("sentinel")?;
    lab.stop().await;
    Ok(())
}

/// The first Sentinel still names the old primary, which accepts connections and is silent; the others know the new
/// one.
#[apply(test!)]
async fn a_silent_old_primary_is_left_for_the_new_one(_: &Redis) -> Result {
    let lab = group().await?;
    let old = Mute::to(Redis::at(first(&lab).to_owned()).host())?;
    old.mute();
    let [behind, knows, _] = &lab.addresses().sentinels[..] else {
        bail!("three Sentinels");
    };
    for (sentinel, primary) in [(behind, old.address()), (knows, Redis::at(first(&lab).to_owned()).host())] {
        let (host, port) = primary.rsplit_once(':').context("a port")?;
        let monitor = ["SENTINEL", "MONITOR", "moved", host, port, "3"];
        Redis::at(sentinel.url.clone()).ask::<()>(&monitor).await?;
    }
    let options = |urls: &[&str]| RedisOptions::new(first(&lab)).sentinels(urls.to_vec(), "moved");
    let alone = RedisClient::new(options(&[&behind.url]))?;
    ensure_unavailable("the twin", alone.lock(&name()).acquire(SHORT).await)?;
    let client = RedisClient::new(options(&[&behind.url, &knows.url]))?;
    let found = async || passes(&client).await;
    until("the new one is found", found).await?;
    lab.stop().await;
    Ok(())
}
