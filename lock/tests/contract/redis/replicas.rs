//! A Redis with one replica, and a connection between them that can be muted or delayed: what `wait_replicas` promises
//! on any version of the server. Fail-overs are in `sentinel.rs`.

use crate::{
    redis::{own::OwnRedis, with_lease},
    support::*,
};
use oversell_lock::redis::{RedisClient, RedisOptions, Replicas};

const HOUR: Lease = Lease::Fixed(Duration::from_secs(3600));
/// The refusal by `WAIT`'s answer.
const TOO_FEW: &str = "0 of 1 replicas";

/// The primary, its replica, and the proxy between them.
struct Pair {
    primary: OwnRedis,
    _replica: OwnRedis,
    way: Mute,
}

impl Pair {
    /// Starts the pair, and waits until the replica follows.
    async fn start() -> Result<Self> {
        let (primary, replica) = (OwnRedis::start().await?, OwnRedis::start().await?);
        // The copy must not go through a file, because their folders are deleted.
        primary.set("repl-diskless-sync", "yes").await?;
        primary.set("repl-diskless-sync-delay", "0").await?;
        replica.set("repl-diskless-load", "on-empty-db").await?;
        let way = Mute::to(primary.host())?;
        let address = way.address();
        let (host, port) = address.rsplit_once(':').context("a port")?;
        replica.ask::<()>(&["REPLICAOF", host, port]).await?;
        let pair = Self { primary, _replica: replica, way };
        pair.client().await?;
        Ok(pair)
    }

    async fn client(&self) -> Result<RedisClient> {
        let options = RedisOptions::new(format!("redis://{}", self.primary.host()));
        let options = options.timeout(SOON).wait_replicas(Replicas::AtLeast(1));
        let client = RedisClient::new(options)?;
        let replicated = async || pass(&client.lock(&name())).await.is_ok();
        until("the replica is waited for", replicated).await?;
        Ok(client)
    }
}

fn lock(client: &RedisClient, kind: &Kind<Redis>, name: &str, lease: Lease) -> AnyLock {
    let (owner, lease) = (None, Some(lease));
    (kind.make)(client, name, Ask { owner, lease })
}

/// The acquire and the renewal before `WAIT` mostly fall into one millisecond, so the renewal would have nothing to
/// write: since Redis 7.2, and in Valkey, `WAIT` then answers for an earlier command, which the replica has. So each try
/// has a connection of its own, and they come one after the other, or they would take longer than a millisecond.
#[apply(test!)]
async fn no_lock_is_given_that_no_replica_has(redis: &'static Redis) -> Result {
    let (pair, mut tries) = (Pair::start().await?, Vec::new());
    for Family { kind, .. } in with_lease(redis) {
        tries.push((kind, pair.client().await?));
    }
    pair.way.mute();
    for (kind, client) in tries {
        let tried = lock(&client, kind, &name(), HOUR).acquire(SOON).await;
        let said = tried.err().context(kind.name)?.to_string();
        ensure!(said.contains(TOO_FEW), "{}: {said}", kind.name);
    }
    Ok(())
}

/// The same by the server's count of commands, on any version: a renewal that extends nothing is written too.
#[apply(test!)]
async fn a_renewal_is_written_for_replicas_in_any_case(redis: &'static Redis) -> Result {
    let server = OwnRedis::start().await?;
    let client = RedisClient::connect(format!("redis://{}", server.host())).await?;
    let written = async || -> Result<u64> {
        let stats: String = server.ask(&["INFO", "commandstats"]).await?;
        let calls = stats.lines().find_map(|line| line.strip_prefix("cmdstat_pexpire:calls="));
        let (calls, _) = calls.and_then(|calls| calls.split_once(',')).context("no count")?;
        Ok(calls.parse()?)
    };
    for Family { kind, .. } in with_lease(redis) {
        let guard = take(&lock(&client, kind, &name(), HOUR)).await?;
        let before = written().await?;
        guard.extend(Duration::from_secs(1)).await?;
        ensure!(written().await? > before, "{}: nothing was written", kind.name);
        guard.release().await?;
    }
    Ok(())
}

/// The replica gets it only after its lease has ended.
#[apply(test!)]
async fn a_guard_is_never_lost_because_of_a_slow_replica(redis: &'static Redis) -> Result {
    let pair = Pair::start().await?;
    let client = pair.client().await?;
    pair.way.delay(Duration::from_millis(500));
    let brief = Lease::Watchdog(Duration::from_millis(200));
    for Family { kind, .. } in with_lease(redis) {
        let name = name();
        loop {
            let tried = lock(&client, kind, &name, brief).acquire(SOON).await;
            let said = tried.err().context(kind.name)?.to_string();
            if said.contains("its lease ended") {
                break;
            }
            // On a busy machine the replica may be slower than that.
            ensure!(said.contains(TOO_FEW), "{}: {said}", kind.name);
        }
        let none = async || pair.primary.left(&name).await.is_empty();
        until("it is given back", none).await?;
        let passes = async || pass(&lock(&client, kind, &name, HOUR)).await.is_ok();
        until("a replica has it in time", passes).await?;
    }
    Ok(())
}
