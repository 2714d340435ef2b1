//! Redis with two replicas and three Sentinels, whose primary is replaced: by plan, because it is cut off, or because it dies.
//! The experiments say which locks are lost, by a crash alone and by one while the replicas lag.

use crate::trials::{
    Cluster, NoVerdict, Observation,
    own_lab::{OwnLab, SENTINELS, connect_to_sentinel, leading_redis},
    tools::{own_key, send_command},
};
use futures::future::join_all;
use oversell::claims::{Words, words};
use oversell_lab::{
    addresses::SENTINEL_GROUP,
    clients::redis_at::redis_at,
    fault::Action,
    wait::{wait_for, wait_until},
};
use oversell_lock::{
    DynLock, Guard, Lease, Lock, LockError,
    redis::{RedisClient, RedisOptions, RedlockClient, Replicas},
};
use serde::Serialize;
use serde_json::json;
use std::{
    fmt,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    time::Duration,
};
use tokio::time::sleep;

/// The lease of each lock: longer than a fail-over takes, so that no lock is lost because its lease ends.
const LEASE: Lease = Lease::Fixed(Duration::from_secs(120));
/// Time limit of each attempt to take a lock.
const ACQUIRE_TIMEOUT: Duration = Duration::from_millis(500);
/// Each holder has at least this many locks before the fault: enough to see a tenth of them lost.
const MIN_LOCKS: usize = 20;
/// Bounds the wait for the first locks: before the fault, and again after the fail-over.
const FIRST_LOCKS_TIMEOUT: Duration = Duration::from_secs(30);
/// Bounds the wait for a fail-over: it takes some seconds, and the Sentinels begin none within 20 s of another one.
const FAILOVER_TIMEOUT: Duration = Duration::from_secs(60);
/// The lab's name of the first primary.
const PRIMARY: &str = "redis";

/// Whether replicas hear of writes until the primary crashes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Replication {
    Up,
    /// It is cut a while before, so that the replicas lag.
    CutBefore,
}

/// The replicas that must have answered of late, or the primary refuses writes: `min-replicas-to-write`.
#[derive(Debug, Clone, Copy)]
pub(super) enum MinReplicas {
    None = 0,
    One = 1,
}

/// How many locks a holder had (`of`), and how many of them another client could take too, unknown to the holder (`twice`).
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct LockCounts {
    twice: usize,
    of: usize,
}

impl LockCounts {
    /// The sum of both counts.
    fn and(self, other: Self) -> Self {
        Self { twice: self.twice + other.twice, of: self.of + other.of }
    }

    /// Whether at least a tenth is held twice. Locks that are taken in the last moment before the fault are fewer.
    fn many_are_lost(self) -> bool {
        self.of > 0 && self.twice * 10 >= self.of
    }

    /// Whether locks were held, and none of them twice.
    fn all_are_kept(self) -> bool {
        self.of > 0 && self.twice == 0
    }
}

impl fmt::Display for LockCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.twice, self.of)
    }
}

/// Claim: a planned fail-over loses locks that no replica or only one is known to have, and none that both have. `waited_for`:
/// how many replicas each of three holders waits for. A coordinated fail-over is tried too, without a verdict, where the Sentinels
/// know it.
pub(super) async fn planned_failover_loses_locks(on: &Cluster, waited_for: [u32; 3]) -> Result<Observation, NoVerdict> {
    let lab = OwnLab::start(on, SENTINELS).await?;
    let on = &lab.cluster;
    let coordinated = hold_locks_through_coordinated_failover(on).await?;
    let (mut held, mut fail_overs) = ([LockCounts::default(); 3], 0);
    for to in ["replica-2", "replica", PRIMARY] {
        let promoted = on.inject_fault(Action::Promote, to);
        let these = hold_locks_of_sentinel_group(on, waited_for, promoted).await?;
        held = [0, 1, 2].map(|n: usize| held[n].and(these[n]));
        fail_overs += 1;
        if held[..2].iter().all(|held| held.twice > 0) {
            break;
        }
    }
    lab.stop().await?;
    let [plain, one, both] = held;
    let mut words = vec![words!(
        "计划内的主从切换 {fail_overs} 次，同时有两个持有者的锁：不等从节点 {plain}，等一个从节点 {one}，等两个从节点 {both}。",
        "Planned fail-overs: {fail_overs}. Locks held twice at once: {plain} plain ones, {one} that one replica had, {both} that both had."
    )];
    words.extend(coordinated.map(|plain| {
        words!("另外试了一次 COORDINATED，不等从节点：{plain}。", "One COORDINATED one besides: {plain} plain ones.")
    }));
    let holds = plain.twice > 0 && one.twice > 0 && both.all_are_kept();
    Ok(Observation::holds(holds, Words::join(&words, ["", " "]))
        .value("fail_overs", fail_overs)
        .value("held", json!(held))
        .value("coordinated", json!(coordinated)))
}

/// The plain locks of a holder during `SENTINEL FAILOVER … COORDINATED`, by which the old primary stops writes, waits until the
/// replica has caught up, and hands over; `None` where the Sentinels do not know it: Valkey's do from version 9 on.
async fn hold_locks_through_coordinated_failover(on: &Cluster) -> Result<Option<LockCounts>, NoVerdict> {
    let mut sentinel = connect_to_sentinel(on).await?;
    let help: Vec<String> = send_command(&mut sentinel, &["SENTINEL", "HELP"]).await?;
    if !help.iter().any(|line| line.contains("COORDINATED")) {
        return Ok(None);
    }
    let promoted = async {
        send_command::<()>(&mut sentinel, &["SENTINEL", "FAILOVER", SENTINEL_GROUP, "COORDINATED"]).await?;
        wait_for_new_leader(on).await
    };
    let [held] = hold_locks_of_sentinel_group(on, [0], promoted).await?;
    on.inject_fault(Action::Promote, PRIMARY).await?;
    Ok(Some(held))
}

/// Claim: a primary that is cut off from replicas and Sentinels but not from clients loses plain locks, none that a replica has,
/// and a tenth as many at most with `min-replicas-to-write` 1 (`min_replicas` is that of the other two). A killed primary is
/// tried too, without a verdict.
pub(super) async fn cut_off_primary_loses_locks(on: &Cluster, min_replicas: MinReplicas) -> Result<Observation, NoVerdict> {
    let lab = OwnLab::start(on, SENTINELS).await?;
    let on = &lab.cluster;
    let is_cut = || lose_primary(on, Action::Cut);
    set_min_replicas(on, min_replicas).await?;
    let [plain, waited] = hold_locks_of_sentinel_group(on, [0, 1], is_cut()).await?;
    restore_first_primary(on).await?;
    set_min_replicas(on, MinReplicas::One).await?;
    let [refused] = hold_locks_of_sentinel_group(on, [0], is_cut()).await?;
    restore_first_primary(on).await?;
    set_min_replicas(on, MinReplicas::None).await?;
    let [killed] = hold_locks_of_sentinel_group(on, [0], lose_primary(on, Action::Kill)).await?;
    lab.stop().await?;
    let words = words!(
        "主节点和从节点、Sentinel 断开，客户端还连着它，同时有两个持有者的锁：不等从节点 {plain}，等一个从节点（WAIT 1）{waited}，min-replicas-to-write 1 而不等 {refused}。另外试了一次主节点被杀（kill -9），不等从节点：{killed}。",
        "The primary is cut off from replicas and Sentinels, and its clients go on. Locks held twice at once: {plain} plain ones, {waited} that one replica had (WAIT 1), {refused} plain ones with min-replicas-to-write 1. One try besides in which the primary was killed (kill -9): {killed} plain ones."
    );
    let holds = plain.many_are_lost() && waited.all_are_kept() && refused.of > 0 && refused.twice * 10 <= plain.twice;
    Ok(Observation::holds(holds, words)
        .value("plain", json!(plain))
        .value("wait_1", json!(waited))
        .value("min_replicas", json!(refused))
        .value("killed", json!(killed)))
}

/// The locks of a holder when the primary is killed (`kill -9`): with the replication up, and a second after it was cut.
#[derive(Debug, Clone, Copy, Serialize)]
struct CrashCounts {
    alone: LockCounts,
    lagging: LockCounts,
}

impl CrashCounts {
    /// Counts the locks on this many nodes in both crashes.
    async fn of(on: &Cluster, nodes: usize, second: Replication) -> Result<Self, NoVerdict> {
        Ok(Self {
            alone: hold_locks_through_crash(on, nodes, Replication::Up).await?,
            lagging: hold_locks_through_crash(on, nodes, second).await?,
        })
    }

    fn words(self, second: Replication) -> Words {
        let Self { alone, lagging } = self;
        let (zh, en) = match second {
            Replication::CutBefore => {
                ("宕机时从节点落后（先断开复制一秒）", "a crash while the replicas lag (the replication is cut a second before)")
            }
            Replication::Up => ("再宕机一次，复制也没断", "another crash, with the replication up again"),
        };
        words!(
            "只是宕机（kill -9，复制没断），同时有两个持有者的锁 {alone}；{zh}，{lagging}。",
            "Locks held twice at once: {alone} by a crash alone (kill -9, with the replication up), {lagging} by {en}."
        )
    }
}

/// Claim: a lock is lost if the primary dies before the replica has heard of it. The words also say what a crash alone loses.
pub(super) async fn crash_of_primary_loses_locks(on: &Cluster, second: Replication) -> Result<Observation, NoVerdict> {
    let seen = CrashCounts::of(on, 1, second).await?;
    let holds = seen.lagging.many_are_lost();
    Ok(Observation::holds(holds, seen.words(second)).value("plain_in_a_crash", json!(seen)))
}

/// Claim: neither crash loses a Redlock on five independent nodes, although the primary is one of them.
pub(super) async fn crash_of_one_node_loses_no_redlock(on: &Cluster, nodes: usize) -> Result<Observation, NoVerdict> {
    let seen = CrashCounts::of(on, nodes, Replication::CutBefore).await?;
    let holds = seen.alone.all_are_kept() && seen.lagging.all_are_kept();
    let Words { zh, en } = seen.words(Replication::CutBefore);
    let words =
        words!("锁在 {nodes} 个节点上，其中一个有从节点。{zh}", "Locks on {nodes} nodes, one of which has replicas. {en}");
    Ok(Observation::holds(holds, words).value("redlock_in_a_crash", json!(seen)))
}

/// Claim: a crash loses a plain lock, and no Redlock on this many nodes.
pub(super) async fn crash_loses_locks_and_no_redlock(
    on: &Cluster,
    second: Replication,
    nodes: usize,
) -> Result<Observation, NoVerdict> {
    let lost = crash_of_primary_loses_locks(on, second).await?;
    Ok(lost.and(crash_of_one_node_loses_no_redlock(on, nodes).await?))
}

/// Holds locks on this many nodes while the first is killed.
/// The first is the primary of a lab of its own; the others are nodes of the common lab.
async fn hold_locks_through_crash(on: &Cluster, nodes: usize, replication: Replication) -> Result<LockCounts, NoVerdict> {
    /// How long the primary is cut off before it is killed: long enough for many locks of which the replicas do not hear.
    const LAG: Duration = Duration::from_secs(1);
    let lab = OwnLab::start(on, SENTINELS).await?;
    let own = &lab.cluster;
    let others = on.servers()?.redis.iter().skip(1).take(nodes - 1);
    let others: Vec<_> =
        others.map(|node| RedisClient::new(RedisOptions::new(&node.url))).collect::<Result<_, _>>().map_err(NoVerdict::failed)?;
    let all = || Ok::<_, NoVerdict>(LockClients([&[connect_to_group(own, 0)?], &others[..]].concat()));
    let crash = async {
        if replication == Replication::CutBefore {
            own.inject_fault(Action::Cut, PRIMARY).await?;
            sleep(LAG).await;
        }
        lose_primary(own, Action::Kill).await
    };
    let [held] = hold_locks_through_fault([all()?], &all()?, crash).await?;
    lab.stop().await?;
    Ok(held)
}

/// Who takes locks: a client of one node for plain locks, or clients of several for a Redlock.
struct LockClients(Vec<RedisClient>);

impl LockClients {
    /// A plain lock on one node, or a Redlock on several.
    fn lock(&self, name: &str) -> Result<Box<dyn DynLock>, NoVerdict> {
        Ok(match &self.0[..] {
            [one] => one.lock(name).lease(LEASE).boxed(),
            all => RedlockClient::new(all).map_err(NoVerdict::failed)?.lock(name).lease(LEASE).boxed(),
        })
    }
}

/// [`hold_locks_through_fault`] with one holder for each entry of `waited_for`, which waits for that many replicas.
async fn hold_locks_of_sentinel_group<const N: usize>(
    on: &Cluster,
    waited_for: [u32; N],
    fault: impl Future<Output = Result<(), NoVerdict>>,
) -> Result<[LockCounts; N], NoVerdict> {
    let one = |replicas| Ok::<_, NoVerdict>(LockClients(vec![connect_to_group(on, replicas)?]));
    let holders = waited_for.into_iter().map(one).collect::<Result<Vec<_>, _>>()?;
    let holders = holders.try_into().map_err(|_| NoVerdict::failed("other holders"))?;
    hold_locks_through_fault(holders, &one(0)?, fault).await
}

/// Has each holder take lock after lock, before and during `fault`, and keep them; then counts those that `other` can take too.
/// `fault` begins once each has [`MIN_LOCKS`].
async fn hold_locks_through_fault<const N: usize>(
    holders: [LockClients; N],
    other: &LockClients,
    fault: impl Future<Output = Result<(), NoVerdict>>,
) -> Result<[LockCounts; N], NoVerdict> {
    let (over, had) = (AtomicBool::new(false), [const { AtomicUsize::new(0) }; N]);
    let fault = async {
        let has_begun = || async { had.iter().all(|had| had.load(SeqCst) >= MIN_LOCKS) };
        let done = match wait_until(FIRST_LOCKS_TIMEOUT, "there are no locks before the fail-over", has_begun).await {
            Ok(()) => fault.await,
            none => none,
        };
        over.store(true, SeqCst);
        done
    };
    let holders = holders.iter().zip(&had);
    let locks = join_all(holders.map(|(holder, taken)| take_locks_until(&over, holder, taken)));
    let (done, locks) = tokio::join!(fault, locks);
    done?;
    wait_for_locks(other).await?;
    let mut held = [LockCounts::default(); N];
    for (held, locks) in held.iter_mut().zip(locks) {
        let locks = locks?;
        held.twice = count_double_holds(other, &locks).await?;
        held.of = locks.len();
    }
    Ok(held)
}

/// Injects the fault and waits for a new primary.
async fn lose_primary(on: &Cluster, fault: Action) -> Result<(), NoVerdict> {
    on.inject_fault(fault, PRIMARY).await?;
    wait_for_new_leader(on).await
}

/// Waits until a Sentinel names another primary than the first.
async fn wait_for_new_leader(on: &Cluster) -> Result<(), NoVerdict> {
    let promoted = || async { Ok((leading_redis(on).await?.0 != PRIMARY).then_some(())) };
    wait_for(FAILOVER_TIMEOUT, "the Sentinels promote nobody", promoted).await
}

/// Mends the first primary and makes it the primary again.
async fn restore_first_primary(on: &Cluster) -> Result<(), NoVerdict> {
    on.inject_fault(Action::Mend, PRIMARY).await?;
    on.inject_fault(Action::Promote, PRIMARY).await
}

/// From now on the leader refuses writes unless this many replicas have answered within 2 s.
async fn set_min_replicas(on: &Cluster, count: MinReplicas) -> Result<(), NoVerdict> {
    let at = on.servers()?;
    let replicas = at.replicas.iter().map(|node| node.url.as_str());
    for url in replicas.chain([at.first_redis()]) {
        let mut member = redis_at(url).await?;
        for (setting, value) in [("to-write", &*(count as u8).to_string()), ("max-lag", "2")] {
            let setting = format!("min-replicas-{setting}");
            send_command::<()>(&mut member, &["CONFIG", "SET", &setting, value]).await?;
        }
    }
    Ok(())
}

/// A client of the lock library that waits for this many replicas after each write.
fn connect_to_group(on: &Cluster, replicas: u32) -> Result<RedisClient, NoVerdict> {
    let at = on.servers()?;
    let sentinels = at.sentinels.iter().map(|one| one.url.as_str());
    let options =
        RedisOptions::new(at.first_redis()).sentinels(sentinels, SENTINEL_GROUP).wait_replicas(Replicas::AtLeast(replicas));
    RedisClient::new(options).map_err(NoVerdict::failed)
}

/// Takes lock after lock until `over`, and returns all of them, still held. `taken` counts them.
async fn take_locks_until(
    over: &AtomicBool,
    holder: &LockClients,
    taken: &AtomicUsize,
) -> Result<Vec<(String, Guard)>, NoVerdict> {
    let mut held = Vec::new();
    while !over.load(SeqCst) {
        let name = own_key("lock");
        // Without a primary no lock can be taken.
        if let Ok(guard) = holder.lock(&name)?.acquire(ACQUIRE_TIMEOUT).await {
            held.push((name, guard));
            taken.store(held.len(), SeqCst);
        }
        sleep(Duration::from_millis(1)).await;
    }
    Ok(held)
}

/// Counts the locks that another client can take although their guards are not lost.
async fn count_double_holds(other: &LockClients, held: &[(String, Guard)]) -> Result<usize, NoVerdict> {
    let mut twice = 0;
    for (name, guard) in held {
        match other.lock(name)?.try_acquire().await {
            Ok(second) => {
                twice += usize::from(!guard.is_lost());
                second.release().await.map_err(NoVerdict::failed)?;
            }
            Err(LockError::Taken { .. }) => {}
            Err(error) => return Err(NoVerdict::failed(error)),
        }
    }
    Ok(twice)
}

/// Waits until these clients can take a lock again.
async fn wait_for_locks(clients: &LockClients) -> Result<(), NoVerdict> {
    let had = || async { Ok(clients.lock(&own_key("lock"))?.acquire(ACQUIRE_TIMEOUT).await.ok()) };
    wait_for(FIRST_LOCKS_TIMEOUT, "there are no locks after the fail-over", had).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_lost_locks_are_not_many_and_no_locks_prove_nothing() {
        for (twice, of, lost, kept) in
            [(2500, 3700, true, false), (5, 3700, false, false), (0, 3700, false, true), (0, 0, false, false)]
        {
            let held = LockCounts { twice, of };
            assert_eq!(held.many_are_lost(), lost, "{held}");
            assert_eq!(held.all_are_kept(), kept, "{held}");
        }
    }
}
