//! Tests and clauses register themselves: `#[apply(test!)]` on a test of one engine; `#[apply(clause!)]`, or a macro
//! with its needs (`losable!`, `leased!` …), on a clause of the contract, which runs over every kind of lock with these
//! capabilities.

use super::{
    etcd::Etcd,
    family::{Capability, Family, Server},
    harness::{Ends, outcome, soak},
    redis::Redis,
    redis::{cluster::OnCluster, redlock::Five},
    table::Table,
    zookeeper::ZooKeeper,
};
use libtest_mimic::Trial;
use oversell_lab::lab::Lab;
use std::{sync::OnceLock, time::Duration};
use tokio::{runtime::Handle, sync::Semaphore};

/// A test that runs longer hangs. On a shared core two sound tests took more than 120 s.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) struct Test {
    pub(crate) module: &'static str,
    pub(crate) name: &'static str,
    pub(crate) run: fn(&'static Engines) -> Ends,
    /// Takes long: ignored without `OVERSELL_SOAK=1`.
    pub(crate) soak: bool,
}
inventory::collect!(Test);

/// A clause of the contract, over the locks of each engine with these capabilities.
pub(crate) struct Clause {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Capability],
    pub(crate) redis: fn(Family<Redis>) -> Ends,
    pub(crate) five: fn(Family<Five>) -> Ends,
    pub(crate) zookeeper: fn(Family<ZooKeeper>) -> Ends,
    pub(crate) etcd: fn(Family<Etcd>) -> Ends,
    pub(crate) table: fn(Family<Table>) -> Ends,
    /// `None` for random programs, which break the connection of one process: in a cluster the nodes tell all processes
    /// the same addresses.
    pub(crate) cluster: Option<fn(Family<OnCluster>) -> Ends>,
}
inventory::collect!(Clause);

pub(crate) struct Engines {
    pub(crate) redis: Redis,
    pub(crate) five: Five,
    pub(crate) zookeeper: ZooKeeper,
    pub(crate) etcd: Etcd,
    pub(crate) table: Table,
    pub(crate) cluster: OnCluster,
}

/// Picks a test's engine.
pub(crate) trait Engine {
    fn of(all: &'static Engines) -> &'static Self;
}

macro_rules! engines {
    ($($field:ident: $engine:ty),*) => {$(
        impl Engine for $engine {
            fn of(all: &'static Engines) -> &'static Self {
                &all.$field
            }
        }
    )*};
}
engines!(redis: Redis, five: Five, zookeeper: ZooKeeper, etcd: Etcd, table: Table, cluster: OnCluster);

impl Engine for Engines {
    fn of(all: &'static Engines) -> &'static Self {
        all
    }
}

impl Engines {
    /// The engines of these servers; `None` is enough to list the tests.
    pub(crate) fn at(servers: Option<&Lab>) -> &'static Self {
        static ENGINES: OnceLock<Engines> = OnceLock::new();
        ENGINES.get_or_init(|| {
            let servers = servers.map(Lab::addresses);
            let redis = servers.iter().flat_map(|all| &all.redis);
            let redis: Vec<_> = redis.map(|node| node.url.clone()).collect();
            Self {
                redis: Redis::at(redis.first().cloned().unwrap_or_default()),
                five: Five::on(redis),
                zookeeper: ZooKeeper::at(servers.map(|all| all.zookeeper.connect.clone()).unwrap_or_default()),
                etcd: Etcd::at(servers.and_then(|all| all.etcd.first()).map(|node| node.url.clone()).unwrap_or_default()),
                table: Table::at(servers.map(|all| all.mysql.url.clone()).unwrap_or_default()),
                cluster: OnCluster::default(),
            }
        })
    }
}

/// `#[apply(test!)]`: the function is a test of the engine that it takes.
macro_rules! test {
    ($(#[$meta:meta])* async $($test:tt)*) => {
        $crate::register::test! { [false] $(#[$meta])* async $($test)* }
    };
    ([$soak:literal] $(#[$meta:meta])* async fn $name:ident($engine:tt: $kind:ty $(,)?) -> Result $body:block) => {
        $(#[$meta])*
        async fn $name($engine: $kind) -> Result $body

        inventory::submit!(Test {
            module: module_path!(),
            name: stringify!($name),
            run: |all| Box::pin($name($crate::register::Engine::of(all))),
            soak: $soak,
        });
    };
}
pub(crate) use test;

/// `#[apply(soak_test!)]`: a test that takes long.
macro_rules! soak_test {
    ($($test:tt)*) => {
        $crate::register::test! { [true] $($test)* }
    };
}
pub(crate) use soak_test;

/// `#[apply(clause!)]`: the function is a clause for every lock, or for those with the capabilities in brackets.
macro_rules! clause {
    ([$($needs:ident),*] $(#[$meta:meta])* async fn $name:ident<S: $server:ident>($family:ident: Family<S> $(,)?) -> Result $body:block) => {
        $(#[$meta])*
        pub(crate) async fn $name<S: $server>($family: Family<S>) -> Result $body

        inventory::submit!($crate::register::Clause {
            name: stringify!($name),
            needs: &[$($crate::family::Capability::$needs),*],
            redis: |family| Box::pin($name(family)),
            five: |family| Box::pin($name(family)),
            zookeeper: |family| Box::pin($name(family)),
            etcd: |family| Box::pin($name(family)),
            table: |family| Box::pin($name(family)),
            cluster: $crate::register::on_cluster!($server $name),
        });
    };
    ($(#[$meta:meta])* async $($clause:tt)*) => {
        $crate::register::clause! { [Contract] $(#[$meta])* async $($clause)* }
    };
}
pub(crate) use clause;

macro_rules! on_cluster {
    (Server $name:ident) => {
        Some(|family| Box::pin($name(family)))
    };
    ($server:ident $name:ident) => {
        None
    };
}
pub(crate) use on_cluster;

/// Macros for clauses with these needs.
macro_rules! needing {
    ($dollar:tt $($name:ident: [$($needs:ident),*]),*) => {$(
        macro_rules! $name {
            ($dollar($clause:tt)*) => {
                $crate::register::clause! { [$($needs),*] $dollar($clause)* }
            };
        }
        pub(crate) use $name;
    )*};
}
needing! { $
    driven: [Contract],
    one_server: [Contract, OneServer],
    losable: [Losable],
    in_turn: [InTurn],
    leased: [Leased],
    reentrant: [Reentrant],
    leased_by_owner: [Reentrant, Leased],
    shown: [Shown],
    layered: [Layered],
    layered_and_losable: [Layered, Losable]
}

/// The tests that run at once; most of the time each waits for a server.
static TESTS: Semaphore = Semaphore::const_new(16);
/// The twins that run besides: they wait for what never comes.
static TWINS: Semaphore = Semaphore::const_new(4);
/// The program tests that run at once: they wait for leases and sessions to end.
static PLAYERS: Semaphore = Semaphore::const_new(12);
/// Whether it runs many random programs, or breaks nodes of a cluster. Beside other tests the machine would be too busy for
/// its leases and time limits, so it is an ignored test with a run of its own.
fn plays(test: &str) -> bool {
    let runs_programs = test.trim_start_matches("random_").starts_with("programs_");
    runs_programs || test.starts_with("in_a_broken_cluster_")
}

/// Every test, of these servers.
pub(crate) fn all(runtime: &Handle, servers: Option<&Lab>) -> Vec<Trial> {
    let engines = Engines::at(servers);
    let trial = |name: String, run: Box<dyn FnOnce() -> Ends + Send>| {
        let runtime = runtime.clone();
        let turns = match name.rsplit_once("::") {
            Some(("twins", _)) => &TWINS,
            Some((_, test)) if plays(test) => &PLAYERS,
            _ => &TESTS,
        };
        let hangs = if soak() { TEST_TIMEOUT * 4 } else { TEST_TIMEOUT };
        Trial::test(name, move || {
            runtime.block_on(async {
                let _turn = turns.acquire().await.map_err(|closed| closed.to_string())?;
                outcome(run(), hangs).await
            })
        })
    };
    let mut all = Vec::new();
    for test in inventory::iter::<Test> {
        let module = test.module.split_once("::").map_or("", |(_, module)| module);
        let run = test.run;
        let trial = trial(format!("{module}::{}", test.name), Box::new(move || run(engines)));
        let ignored = plays(test.name) || test.soak && !soak();
        all.push(trial.with_ignored_flag(ignored));
    }
    for clause in inventory::iter::<Clause> {
        macro_rules! over {
            ($($engine:ident),*) => {$(
                let able = || engines.$engine.families().filter(|family| family.kind.can_all(clause.needs));
                let is_shown = able().any(|family| !family.kind.once_more);
                for family in able() {
                    let (kind, run) = (family.kind, clause.$engine);
                    let name = format!("{}::{}", kind.name, clause.name);
                    let trial = trial(name, Box::new(move || run(family)));
                    let once = kind.once_more && !clause.needs.contains(&Capability::Shown);
                    let ignored = plays(clause.name) || once && is_shown && !soak();
                    all.push(trial.with_ignored_flag(ignored));
                }
            )*};
        }
        over!(redis, five, zookeeper, etcd, table);
        let Some(run) = clause.cluster else {
            continue;
        };
        for family in engines.cluster.families().filter(|family| family.kind.can_all(clause.needs)) {
            let name = format!("{}::{}", family.kind.name, clause.name);
            all.push(trial(name, Box::new(move || run(family))));
        }
    }
    // What waits for leases to end takes longest, so it starts first.
    all.sort_by_key(|trial| !["two_nodes_may_die", "lease"].iter().any(|long| trial.name().contains(long)));
    all
}
