//! Locks in a Redis Cluster: the contract, and what happens while slots move, replicas are promoted, and connections
//! break.

use crate::{
    checker::{Asks, Promise, Share, Verdict, judge, worst},
    family::Capability::*,
    harness::soak,
    programs::BUSY,
    recorder::{Grant, Recorder},
    redis::{HOLDERS, is_lock, own_cluster::OwnCluster},
    support::*,
};
use oversell_lock::redis::{RedisClient, RedisOptions, Replicas};
use redis::{Cmd, Pipeline, RedisFuture, Value, aio::ConnectionLike};
use std::sync::{
    LazyLock,
    atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
};
use tokio::{
    sync::{Mutex, OnceCell},
    time::sleep,
};

/// The kinds of one Redis, in a cluster.
static KINDS: LazyLock<Vec<Kind<OnCluster>>> = LazyLock::new(|| Redis::kinds().iter().map(on_cluster).collect());

/// A cluster is not one server, and the layer's tests do not use it.
fn on_cluster(kind: &'static Kind<Redis>) -> Kind<OnCluster> {
    let can = kind.can.iter().copied();
    let can: Vec<_> = can.filter(|can| !matches!(can, OneServer | Layered)).collect();
    Kind {
        name: kind.name.replacen("redis", "cluster", 1).leak(),
        can: can.leak(),
        once_more: kind.once_more,
        queues: kind.queues,
        parts: kind.parts,
        make: kind.make,
        read: kind.read,
        shown: kind.shown,
    }
}

/// The cluster of all clauses, started by the first.
#[derive(Default)]
pub(crate) struct OnCluster(OnceCell<Mutex<Option<Arc<OwnCluster>>>>);

impl OnCluster {
    pub(crate) async fn get(&self) -> Arc<OwnCluster> {
        let start = || async {
            let cluster = OwnCluster::start().await.expect("a cluster");
            Mutex::new(Some(Arc::new(cluster)))
        };
        let cluster = self.0.get_or_init(start).await.lock().await;
        Arc::clone(cluster.as_ref().expect("it runs"))
    }

    pub(crate) async fn stop(&self) {
        if let Some(cluster) = self.0.get() {
            cluster.lock().await.take();
        }
    }

    /// The owners in a fair lock's queue.
    async fn queued(&self, name: &str) -> Vec<String> {
        let queue = super::fair::queue_key(name);
        let words = ["LRANGE", &queue, "0", "-1"];
        self.get().await.ask(name, &words).await.expect("a list")
    }
}

impl Server for OnCluster {
    type Client = RedisClient;

    fn kinds() -> &'static [Kind<Self>] {
        &KINDS
    }

    /// Of no use: a client learns the nodes' own addresses.
    fn address(&self) -> String {
        String::new()
    }

    async fn client_at(&self, _: &str) -> RedisClient {
        let client = self.get().await.client(Duration::from_secs(9), SOON);
        client.expect("valid options")
    }

    fn owner(client: &RedisClient) -> Owner {
        client.owner()
    }

    async fn left(&self, name: &str) -> Vec<String> {
        let mut left = self.get().await.keys(name).await;
        left.retain(|key| is_lock(key));
        left.extend(self.queued(name).await);
        left
    }

    async fn holders(&self, name: &str) -> Vec<String> {
        let words = ["EVAL", HOLDERS, "1", name];
        let holders = self.get().await.ask(name, &words).await;
        holders.expect("`HOLDERS` knows its key")
    }

    async fn take_away(&self, _: &RedisClient, name: &str) {
        let deleted: Result<i64> = self.get().await.ask(name, &["DEL", name]).await;
        deleted.expect("deleted");
    }

    async fn is_waited_for(&self, name: &str) -> bool {
        let channels = format!("*{name}*");
        let words = ["PUBSUB", "SHARDCHANNELS", &channels];
        let channels: Result<Vec<String>> = self.get().await.ask(name, &words).await;
        channels.is_ok_and(|channels| !channels.is_empty()) || !self.queued(name).await.is_empty()
    }

    async fn ends_in(&self, name: &str) -> Option<Duration> {
        let millis: i64 = self.get().await.ask(name, &["PTTL", name]).await.ok()?;
        Some(Duration::from_millis(millis.try_into().unwrap_or(0)))
    }
}

/// A connection that sends again what was not answered, as many do.
#[derive(Clone)]
struct Repeating<C>(C);

impl<C: ConnectionLike + Send> ConnectionLike for Repeating<C> {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            for _ in 0..9 {
                if let Ok(answer) = self.0.req_packed_command(cmd).await {
                    return Ok(answer);
                }
            }
            self.0.req_packed_command(cmd).await
        })
    }

    fn req_packed_commands<'a>(&'a mut self, commands: &'a Pipeline, offset: usize, count: usize) -> RedisFuture<'a, Vec<Value>> {
        self.0.req_packed_commands(commands, offset, count)
    }

    fn get_db(&self) -> i64 {
        0
    }
}

/// Long enough that nothing ends by itself within a test.
const LEASE: Duration = Duration::from_secs(60);
/// The time limit of a command.
const LIMIT: Duration = Duration::from_millis(800);

/// A lock is renewed, waited for, taken and released while its slot moves, whether its key is here or there. The twin,
/// which does not follow `ASK`, is refused.
#[apply(test!)]
async fn a_lock_outlives_the_move_of_its_slot(_: &Redis) -> Result {
    let cluster = OwnCluster::start().await?;
    let (name, other) = (name(), name());
    let client = || cluster.client(LEASE, SOON);
    let (one, two) = (client()?, client()?);
    let from = cluster.owner(&name).await?;
    let to = (from + 1) % 3;
    let held = take(&one.lock(&name)).await?;
    let waiter = spawn_acquire(two.lock(&name));
    let waited_for = async || {
        let words = ["PUBSUB", "SHARDCHANNELS", "*contract*"];
        let heard: Result<Vec<String>> = cluster.ask(&name, &words).await;
        heard.is_ok_and(|channels| !channels.is_empty())
    };
    until("it is waited for", waited_for).await?;

    ensure_equal("from", cluster.begin_move(&name, to).await?, from)?;
    held.extend(LEASE).await.context("before its key has moved")?;
    cluster.move_keys(&name, from, to).await?;
    held.extend(LEASE).await.context("after its key has moved")?;
    ensure_taken("beside its holder", two.lock(&name).try_acquire().await)?;
    let plain = oversell_lab::clients::redis_at::redis_at(&cluster.nodes[from].url).await?;
    let twin = RedisClient::over(plain, RedisOptions::new(&cluster.nodes[from].url))?;
    let refused_by = twin.lock(&name).try_acquire().await;
    caught(refused_by.map_err(Into::into), "Ask:")?;
    held.release().await.context("where its key has moved")?;
    let next = waiter.await?.context("the waiter")?;
    next.release().await?;
    pass(&one.lock(&name)).await.context("a new key")?;
    cluster.end_move(&name, from, to).await?;
    pass(&two.lock(&name)).await.context("when it has moved")?;
    pass(&one.lock(&other)).await?;

    // At its new node a waiter is told by a message.
    let held = take(&one.lock(&name)).await?;
    let waiter = spawn_acquire(two.lock(&name));
    ensure_equal("the new owner", cluster.owner(&name).await?, to)?;
    until("it is waited for there", waited_for).await?;
    held.release().await?;
    waiter.await??.release().await?;
    ensure_none(cluster.keys(&name).await)
}

/// A fenced lock is two keys, which a node refuses while only one of them has moved: a waiter waits as long as it was told to, a
/// call that does not wait says what goes on, and a holder keeps its lock, extends and releases it. So it is when
/// `redis-cli --cluster reshard` moves a slot of many keys.
#[apply(test!)]
async fn a_fenced_lock_waits_out_the_move_of_its_slot(_: &Redis) -> Result {
    /// More than are moved within the time limit of a command.
    const KEYS: u32 = 40_000;
    let cluster = OwnCluster::of(3, 0).await?;
    // All are in slot 0, the first that is moved.
    let [free, held, next] = [(); 3].map(|()| format!("{{06S}}{}", name()));
    ensure_equal("the slot", cluster.slot(&free).await?, "0")?;
    let [one, other] = [cluster.client(LEASE, LIMIT)?, cluster.client(LEASE, LIMIT)?];
    pass(&one.fenced_lock(&free)).await.context("its tokens begin")?;
    let guard = take(&one.fenced_lock(&held)).await?;
    let from = cluster.begin_move(&free, 1).await?;
    ensure_equal("from", from, 0)?;

    let waiter = spawn_acquire(one.fenced_lock(&free));
    let tried = other.fenced_lock(&free).try_acquire().await;
    let said = format!("{tried:?}");
    ensure!(said.contains("SlotMoves"), "without a wait: {said}");
    ensure_unavailable("without a wait", tried)?;
    let short = other.fenced_lock(&free).acquire(SHORT).await;
    ensure_unavailable("a wait that ends before the move", short)?;
    ensure!(!waiter.is_finished(), "the waiter has given up: {:?}", waiter.await?);
    guard.extend(LEASE).await.context("the holder extends")?;
    let behind = spawn_acquire(one.fenced_lock(&held));
    guard.release().await.context("the holder releases, beside a waiter of its process")?;
    cluster.move_keys(&free, 0, 1).await?;
    cluster.end_move(&free, 0, 1).await?;
    let waited = waiter.await?.context("the waiter, after the move")?;
    ensure_equal("the next token", waited.fence(), Some(oversell_lock::Fence(2)))?;
    waited.release().await?;
    behind.await?.context("the waiter of the other lock")?.release().await?;

    // Back again, by the tool that people use.
    let fill = "for n = 1, ARGV[1] do redis.call('SET', KEYS[1] .. n, n) end";
    cluster.ask::<()>(&free, &["EVAL", fill, "1", "{06S}", &KEYS.to_string()]).await?;
    let held = take(&one.fenced_lock(&next)).await?;
    let reshard = cluster.reshard_first_slot(1, 0);
    let waits = async {
        while cluster.owner(&free).await? == 1 {
            // It waits as long as the move takes on this machine.
            let waited = one.fenced_lock(&free).acquire(FOR_EVER).await.context("beside redis-cli")?;
            waited.release().await?;
        }
        anyhow::Ok(())
    };
    let tries = async {
        let mut told = 0;
        while cluster.owner(&free).await? == 1 {
            let tried = other.fenced_lock(&free).try_acquire().await;
            told += u32::from(matches!(tried, Err(LockError::Unavailable { .. })));
        }
        anyhow::Ok(told)
    };
    let (moved, waited, told) = tokio::join!(reshard, waits, tries);
    moved?;
    waited?;
    println!("while redis-cli moved {KEYS} keys, {} calls without a wait were told", told?);
    held.release().await.context("the holder through all of it")?;
    pass(&other.fenced_lock(&free)).await.context("at its old node")
}

/// Counts on a node whose answers are lost again and again: what the client was not told, it may have done once. The
/// twin sends it again, and counts more than it was told.
#[apply(test!)]
async fn in_a_broken_cluster_nothing_is_sent_again(_: &Redis) -> Result {
    let cluster = OwnCluster::start().await?;
    let client = cluster.client(LEASE, LIMIT)?;
    counts_right(&cluster, client.connection(), |connection| usize::from(connection.has_sent())).await?;
    let twin = Repeating(client.connection());
    let twin = counts_right(&cluster, twin, |_| 1).await;
    caught(twin, "more than")
}

async fn counts_right<C: ConnectionLike + Send>(cluster: &OwnCluster, mut connection: C, sent: impl Fn(&C) -> usize) -> Result {
    const ROUNDS: usize = 12;
    let name = name();
    let node = &cluster.nodes[cluster.owner(&name).await?];
    let (mut answered, mut unknown) = (0, 0);
    let mut count = async || {
        let answer = redis::cmd("INCR").arg(&name).exec_async(&mut connection).await;
        match answer {
            Ok(()) => answered += 1,
            Err(_) => unknown += sent(&connection),
        }
        answer.is_ok()
    };
    for _ in 0..ROUNDS {
        node.way.mute_at("INCR");
        let heals = async {
            until("its answer is lost", async || node.way.has_muted()).await?;
            sleep(LIMIT + LIMIT / 2).await;
            node.way.heal();
            std::future::pending().await
        };
        tokio::select! {
            _ = count() => node.way.heal(),
            never = heals => return never,
        }
        let again = async { while !count().await {} };
        timeout(SOON, again).await.context("no answer after all is well")?;
    }
    let done: usize = cluster.ask(&name, &["GET", &name]).await?;
    println!("{answered} answered, {unknown} unknown, {done} done");
    ensure!(done >= answered, "{done} done, but {answered} answered");
    ensure!(done <= answered + unknown, "{done} done: more than {answered} answered and {unknown} unknown");
    Ok(())
}

/// A primary dies: its replica has the hold, which is kept, renewed and released there, and its waiter gets in.
#[apply(test!)]
async fn in_a_broken_cluster_a_replica_takes_over(_: &Redis) -> Result {
    let cluster = OwnCluster::start().await?;
    let holder = RedisClient::new(cluster.options().lease(Duration::from_secs(30)).wait_replicas(Replicas::AtLeast(1)))?;
    let other = RedisClient::new(cluster.options())?;
    let (name, elsewhere) = (name(), name());
    let guard = take(&holder.lock(&name)).await?;
    let primary = cluster.owner(&name).await?;
    let replica = cluster.replica_of(primary).await?;
    cluster.kill(primary).await?;
    cluster.until_primary(replica).await?;
    let found = async || matches!(other.lock(&name).try_acquire().await, Err(LockError::Taken { .. }));
    until("another process sees the hold at the new primary", found).await?;
    guard.extend(LEASE).await.context("at the new primary")?;
    let waiter = spawn_acquire(other.lock(&name));
    guard.release().await?;
    waiter.await?.context("the waiter")?.release().await?;
    pass(&other.lock(&elsewhere)).await
}

/// Three processes contend for locks of all kinds while slots move, replicas are promoted, and nodes are cut off or
/// silent. The history of each lock keeps every rule. The twin sends again what was not answered, and blocks a lock
/// that nobody has.
#[apply(test!)]
async fn in_a_broken_cluster_holds_keep_the_rules(_: &Redis) -> Result {
    let cluster = OwnCluster::start().await?;
    let clients = (0..3).map(|_| cluster.client(LEASE, LIMIT));
    let clients: Vec<_> = clients.collect::<Result<_>>()?;
    let faults = if soak() { FAULTS } else { &FAULTS[..5] };
    let verdict = disturbed(&cluster, &clients, &[0, 1, 2, 3], faults).await?;
    ensure!(verdict == Verdict::Kept, "{verdict:?}");
    cluster.until_whole().await?;
    let twins = clients.iter().map(|client| {
        let connection = Repeating(client.connection());
        RedisClient::over(connection, cluster.options().lease(LEASE).timeout(SOON))
    });
    let twins: Vec<_> = twins.collect::<Answer<_>>()?;
    let verdict = disturbed(&cluster, &twins, &[0], &[Fault::Silence; 8]).await?;
    ensure!(matches!(verdict, Verdict::Broken(_)), "the twins passed: {verdict:?}");
    println!("the twins: {verdict:?}");
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    Move,
    FailOver,
    Cut,
    Silence,
}

/// The first five are one of each, and a second move.
const FAULTS: &[Fault] = &[
    Fault::Move,
    Fault::Cut,
    Fault::Move,
    Fault::FailOver,
    Fault::Silence,
    Fault::Move,
    Fault::FailOver,
    Fault::Cut,
    Fault::Move,
    Fault::Silence,
    Fault::FailOver,
    Fault::Move,
];

struct Object {
    name: String,
    kind: usize,
    recorder: Arc<Recorder>,
}

async fn disturbed(cluster: &OwnCluster, clients: &[RedisClient], kinds: &[usize], faults: &[Fault]) -> Result<Verdict> {
    let promise = Promise { permits: 0, members: 0, answer: SOON * 3, news: BUSY * 2 };
    let objects: Vec<_> =
        (0..8).map(|n| Object { name: name(), kind: kinds[n % kinds.len()], recorder: Recorder::new(promise) }).collect();
    let (over, holds, asked) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let tasks = (0..4 * clients.len()).map(async |n| {
        let client = &clients[n % clients.len()];
        while !over.load(SeqCst) {
            one_turn(client, &objects[fastrand::usize(..objects.len())], &holds, &asked).await;
        }
    });
    let disturb = async {
        let done = disturb(cluster, &objects, faults).await;
        over.store(true, SeqCst);
        done
    };
    let (_, done) = tokio::join!(join_all(tasks), disturb);
    done?;
    cluster.until_whole().await?;
    let fresh = cluster.client(LEASE, SOON)?;
    let mut verdicts = Vec::new();
    for object in &objects {
        while let Some(held) = object.recorder.take(0) {
            object.recorder.release(held).await?;
        }
        let lock = (KINDS[object.kind].make)(&fresh, &object.name, Ask::default());
        match lock.acquire(SOON).await {
            Ok(guard) => guard.release().await?,
            Err(error) => object.recorder.left(format!("nobody can have it: {error}")),
        }
        verdicts.push(judge(&object.recorder.history()));
    }
    println!("{} holds of {} asked, {} faults: {faults:?}", holds.load(SeqCst), asked.load(SeqCst), faults.len());
    let verdict = worst(verdicts);
    // A lock that the twin has blocked is held by nobody, so it has fewer.
    ensure!(verdict != Verdict::Kept || holds.load(SeqCst) > 50, "too few holds prove nothing");
    Ok(verdict)
}

/// Takes and releases a lock once.
async fn one_turn(client: &RedisClient, object: &Object, holds: &AtomicUsize, asked: &AtomicUsize) {
    let (kind, recorder) = (&KINDS[object.kind], &object.recorder);
    let read = kind.read.filter(|_| fastrand::bool());
    let wait = match read {
        None => Duration::from_millis(fastrand::u64(0..600)),
        // A wait that ends behind another reader of this process, which has no answer yet while a slot moves, ends with "taken",
        // although nobody has it.
        Some(_) if fastrand::bool() => SOON,
        Some(_) => Duration::ZERO,
    };
    let share = read.map_or(Share::Alone, |_| Share::Reader);
    let by = asked.fetch_add(1, SeqCst);
    let lock = read.unwrap_or(kind.make)(client, &object.name, Ask::default());
    let call = recorder.asks(by, Asks::Hold(share), wait);
    recorder.leased(call, LEASE);
    let came_to = lock.acquire(wait).await;
    let is_held = came_to.is_ok();
    recorder.entered(call, came_to.map(|guard| vec![Grant::Guard(guard)]));
    if is_held {
        holds.fetch_add(1, SeqCst);
        sleep(Duration::from_millis(fastrand::u64(0..20))).await;
        if let Some(held) = recorder.take(fastrand::usize(..8)) {
            recorder.release(held).await.ok();
        }
    } else {
        sleep(Duration::from_millis(5)).await;
    }
}

/// One fault after the other, each while locks are held and waited for.
async fn disturb(cluster: &OwnCluster, objects: &[Object], faults: &[Fault]) -> Result {
    let pause = || sleep(Duration::from_millis(400));
    for (n, fault) in faults.iter().enumerate() {
        pause().await;
        let key = &objects[n % objects.len()].name;
        let owner = cluster.owner(key).await?;
        match fault {
            Fault::Move => {
                let primaries = cluster.nodes.iter().map(|node| node.ask::<String>(&["INFO", "replication"]));
                let roles = join_all(primaries).await;
                let leads = |n: &usize| roles[*n].as_ref().is_ok_and(|role| role.contains("role:master"));
                let to = (0..roles.len()).find(|n| *n != owner && leads(n)).context("another")?;
                cluster.begin_move(key, to).await?;
                pause().await;
                cluster.move_keys(key, owner, to).await?;
                pause().await;
                // Keys that came meanwhile, because they were asked for here.
                cluster.move_keys(key, owner, to).await?;
                cluster.end_move(key, owner, to).await?;
            }
            Fault::FailOver => {
                cluster.until_whole().await?;
                cluster.fail_over(owner).await?;
            }
            Fault::Cut => {
                let way = &cluster.nodes[owner].way;
                way.cut();
                pause().await;
                way.mend();
            }
            Fault::Silence => {
                let way = &cluster.nodes[owner].way;
                way.mute();
                sleep(LIMIT + LIMIT / 2).await;
                way.heal();
            }
        }
    }
    Ok(())
}

/// A client of something else than a cluster says so, and one whose nodes are all gone is unavailable.
#[apply(test!)]
async fn what_is_no_cluster_is_not_taken_for_one(redis: &Redis) -> Result {
    let url = format!("redis://{}", redis.host());
    let none = Vec::<String>::new();
    let alone = RedisClient::new(RedisOptions::new(&url).cluster(none.clone()))?;
    ensure_refused("a single server", alone.lock(&name()).try_acquire().await)?;
    let gone = RedisOptions::new("redis://127.0.0.1:1").cluster(["redis://127.0.0.1:2"]);
    let gone = RedisClient::new(gone.timeout(Duration::from_secs(1)))?;
    ensure_unavailable("no server", gone.lock(&name()).try_acquire().await)?;
    let options = RedisOptions::new(format!("{url}/1")).cluster(none);
    ensure_invalid("a database", RedisClient::new(options).map(drop))?;
    let options = RedisOptions::new(&url).cluster(["cluster:6379"]);
    ensure_invalid("no address", RedisClient::new(options).map(drop))?;
    let both = RedisOptions::new(&url).sentinels([&url], "main").cluster([&url]);
    ensure_invalid("with Sentinels", RedisClient::new(both).map(drop))
}
