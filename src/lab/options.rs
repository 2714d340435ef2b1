//! What a lab is to have, and how that becomes folders, ports, addresses and members.

use super::{
    folder::Folder,
    instance::{self, Instance, Orders},
    mysql::{self, MySql},
    nginx::{self, Nginx},
    ports::Port,
    programs::{self, SETPRIV},
    redis::{self, Redis},
    sentinel::{self, Replica, Sentinel},
    server::{Member, Tier},
    user::User,
    way::{self, Way},
    zookeeper::{self, Peer, ZooKeeper},
};
use crate::{
    addresses::{self, Addresses, Control},
    failure::Failure,
};
use std::{collections::HashSet, path::PathBuf, sync::Arc};
use tokio::sync::mpsc::UnboundedSender;

/// A part of a lab that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The database.
    MySql,
    /// All Redis nodes.
    Redis,
    /// All ZooKeeper servers.
    ZooKeeper,
    /// All instances.
    Instances,
    /// The load balancer.
    Nginx,
}

/// What a lab is to have. By default everything, on free ports, in a folder that is removed at the end:
///
/// ```no_run
/// use oversell::lab::{Lab, Options, Part};
/// # async fn example() -> Result<(), oversell::failure::Failure> {
/// let one_instance = Options { instance_ports: vec![0], redis_ports: vec![0], ..Options::default() };
/// let only_servers = Options { without: vec![Part::Instances, Part::Nginx], ..Options::default() };
/// let lab = Lab::start(only_servers).await?;
/// println!("{}", lab.addresses().mysql.url);
/// lab.stop().await;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// nginx' port. This and every other port: 0 is a free one.
    pub http_port: u16,
    /// nginx listens on every address of this machine, so that phones in its network reach it; all else stays on loopback.
    pub lan: bool,
    /// The instances' ports, one for each instance.
    pub instance_ports: Vec<u16>,
    /// MySQL's port.
    pub mysql_port: u16,
    /// The Redis nodes' ports; the first node is the main one.
    pub redis_ports: Vec<u16>,
    /// The ports of ZooKeeper's servers: one is a server on its own, several are one ensemble, of which a majority must
    /// run.
    pub zookeeper_ports: Vec<u16>,
    /// What is not started with the lab. It has its address and can be started later, by `Lab::restart`.
    pub without: Vec<Part>,
    /// The folder for everything that the lab writes: emptied at the start, left at the end. None: one of its own
    /// under `target/`, removed at the end.
    pub dir: Option<PathBuf>,
    /// The `oversell` program for the instances. None: the one that runs. A test names its `CARGO_BIN_EXE_oversell`.
    pub program: Option<PathBuf>,
    /// More environment for the instances, as `("OVERSELL__LOCK__LEASE_MS", "2000")`.
    pub env: Vec<(String, String)>,
    /// Where the lines of the instances' consoles go, each with the instance's name in front. None: into their logs.
    pub console: Option<UnboundedSender<String>>,
    /// Each instance reaches each server on a way of its own, which can be cut and slowed down: see `Lab::cut`.
    pub ways: bool,
    /// The main Redis has a replica, and a Sentinel that promotes it; the instances follow on their ways.
    pub replica: bool,
    /// Where orders to this lab are received. Its instances are told, so that their replays can break it.
    pub control: Option<Control>,
    /// Show a progress bar, if stderr is a terminal.
    pub progress: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            http_port: 0,
            lan: false,
            instance_ports: vec![0; 3],
            mysql_port: 0,
            redis_ports: vec![0; 5],
            zookeeper_ports: vec![0],
            without: Vec::new(),
            dir: None,
            program: None,
            env: Vec::new(),
            console: None,
            ways: false,
            replica: false,
            control: None,
            progress: false,
        }
    }
}

/// A lab before its start.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) members: Vec<Member>,
    pub(super) ways: Vec<Arc<Way>>,
    /// The Sentinel's, where there is one.
    pub(super) sentinel: Option<u16>,
    pub(super) addresses: Addresses,
    pub(super) folder: Folder,
    pub(super) ports: Vec<Port>,
    pub(super) user: User,
    pub(super) warning: Option<String>,
}

impl Options {
    /// Claims ports and folder, and finds the programs.
    pub(super) async fn plan(&self) -> Result<Plan, Failure> {
        self.check()?;
        let http = Port::claim(self.http_port, nginx::NAME, "--http-port")?;
        let instances = claim_all(
            &self.instance_ports,
            |n| format!("instance {}", n + 1),
            "--instances",
        )?;
        let mysql = Port::claim(self.mysql_port, mysql::NAME, "--mysql-port")?;
        let redis = claim_all(&self.redis_ports, redis::name, "--redis-ports")?;
        let zookeeper = claim_all(&self.zookeeper_ports, zookeeper::name, "--zookeeper-port")?;
        // Two more for each member of an ensemble, which only the members know.
        let among = if zookeeper.len() > 1 {
            vec![0; 2 * zookeeper.len()]
        } else {
            Vec::new()
        };
        let among = claim_all(&among, |_| zookeeper::NAME.to_owned(), "--zookeeper-port")?;

        let mut addresses = self.addresses(&http, &instances, &mysql, &redis, &zookeeper);
        programs::check([SETPRIV])?;
        let folder = Folder::open(self.dir.as_deref())?;
        let program = match &self.program {
            Some(program) => program.clone(),
            None => std::env::current_exe()
                .map_err(|e| Failure::Unusable(format!("oversell's own program: {e}")))?,
        };

        let page = nginx::static_root();
        let (user, warning) = User::choose(&folder.of(""), &[&program, &page.join("index.html")]);

        let has = |part| !self.without.contains(&part);
        let mut members = vec![Member::new(
            MySql::new(folder.of(mysql::NAME), folder.shared(), mysql.number()),
            Tier::Server,
            has(Part::MySql),
        )];
        let peers: Vec<_> = among
            .chunks(2)
            .map(|pair| Peer::new(pair[0].number(), pair[1].number()))
            .collect();
        for (n, port) in zookeeper.iter().enumerate() {
            let member = ZooKeeper::new(
                n,
                folder.of(&zookeeper::name(n)),
                port.number(),
                peers.clone(),
            );
            members.push(Member::new(member, Tier::Server, has(Part::ZooKeeper)));
        }
        let followed = if self.replica {
            let main = format!("127.0.0.1:{}", redis[0].number());
            Some(Arc::new(Way::open(redis::REPLICA, &redis::name(0), &main)?))
        } else {
            None
        };
        for (n, port) in redis.iter().enumerate() {
            let mut node = Redis::new(n, folder.of(&redis::name(n)), port.number());
            if let Some(way) = followed.as_ref().filter(|_| n == 0) {
                node = node.known_by(way.proxy.port());
            }
            members.push(Member::new(node, Tier::Server, has(Part::Redis)));
        }
        let mut ways = if self.ways || self.replica {
            way::all(&addresses)?
        } else {
            Vec::new()
        };
        for port in &instances {
            let seen = way::seen_by(&instance::name(port.number()), &addresses, &ways);
            let env = instance::environment(&seen, has(Part::Nginx), &self.env);
            let folder = folder.of(&format!("instance-{}", port.number()));
            let mut instance = Instance::new(port.number(), folder, program.clone(), env);
            instance.orders = self.control.clone().map(|control| Orders {
                control,
                kinds: self.kinds(),
            });
            members.push(Member::new(instance, Tier::Instance, has(Part::Instances)));
        }
        let mut spare = Vec::new();
        if let Some(way) = followed {
            spare = claim_all(&[0, 0], |_| redis::REPLICA.to_owned(), "--replica")?;
            let (replica, watcher, main) = (spare[0].number(), spare[1].number(), way.proxy.port());
            ways.push(way);
            let process = |port| addresses::Process {
                url: format!("redis://127.0.0.1:{port}"),
                pid: 0,
            };
            (addresses.replica, addresses.sentinel) =
                (Some(process(replica)), Some(process(watcher)));
            let replica = Replica {
                folder: folder.of(redis::REPLICA),
                port: replica,
                main,
            };
            let watcher = Sentinel {
                folder: folder.of(sentinel::SENTINEL),
                port: watcher,
                main,
            };
            members.push(Member::new(replica, Tier::Server, has(Part::Redis)));
            members.push(Member::new(watcher, Tier::Server, has(Part::Redis)));
        }
        let sentinel = spare.get(1).map(Port::number);
        // nginx cannot be without anyone behind it.
        if !instances.is_empty() {
            let behind = instances.iter().map(Port::number).collect();
            let nginx = Nginx::new(
                folder.of(nginx::NAME),
                http.number(),
                self.lan,
                behind,
                page,
            );
            members.push(Member::new(
                nginx,
                Tier::Gate,
                has(Part::Nginx) && has(Part::Instances),
            ));
        }
        let needed = members
            .iter()
            .filter(|m| m.wanted)
            .flat_map(|m| m.server.needs())
            .copied();
        programs::check(needed)?;

        let ports = [http, mysql]
            .into_iter()
            .chain(zookeeper)
            .chain(among)
            .chain(instances)
            .chain(redis)
            .chain(spare)
            .collect();
        Ok(Plan {
            members,
            ways,
            sentinel,
            addresses,
            folder,
            ports,
            user,
            warning,
        })
    }

    /// What it has for orders besides those that each lab carries out.
    fn kinds(&self) -> Vec<&'static str> {
        let has = [
            ("ways", self.ways || self.replica),
            ("replica", self.replica),
        ];
        has.into_iter()
            .filter_map(|(kind, has)| has.then_some(kind))
            .collect()
    }

    fn check(&self) -> Result<(), Failure> {
        if self.redis_ports.is_empty() {
            return Err(Failure::Unusable(
                "a lab needs at least one Redis node: --redis-ports".to_owned(),
            ));
        }
        if self.zookeeper_ports.is_empty() {
            return Err(Failure::Unusable(
                "a lab needs at least one ZooKeeper server: --zookeeper".to_owned(),
            ));
        }
        let mut seen = HashSet::new();
        let lists = [
            &[self.http_port, self.mysql_port][..],
            &self.zookeeper_ports,
            &self.instance_ports,
            &self.redis_ports,
        ];
        match lists
            .into_iter()
            .flatten()
            .copied()
            .find(|port| *port != 0 && !seen.insert(*port))
        {
            Some(twice) => Err(Failure::Unusable(format!(
                "port {twice} is asked for twice: each server needs its own"
            ))),
            None => Ok(()),
        }
    }

    fn addresses(
        &self,
        http: &Port,
        instances: &[Port],
        mysql: &Port,
        redis: &[Port],
        zookeeper: &[Port],
    ) -> Addresses {
        let zookeeper: Vec<_> = zookeeper
            .iter()
            .map(|port| format!("127.0.0.1:{}", port.number()))
            .collect();
        let url = |port: &Port| format!("http://127.0.0.1:{}", port.number());
        let process = |url: String| addresses::Process { url, pid: 0 };
        let nginx = url(http);
        let entry = match instances.first() {
            Some(instance) if self.without.contains(&Part::Nginx) => url(instance),
            _ => nginx.clone(),
        };
        Addresses {
            http: entry,
            instances: instances
                .iter()
                .map(|port| addresses::Instance {
                    name: instance::name(port.number()),
                    url: url(port),
                    pid: 0,
                })
                .collect(),
            mysql: process(format!("mysql://root@127.0.0.1:{}/test", mysql.number())),
            redis: redis
                .iter()
                .map(|port| process(format!("redis://127.0.0.1:{}", port.number())))
                .collect(),
            zookeeper: addresses::ZooKeeper {
                connect: zookeeper.join(","),
                pid: 0,
            },
            nginx: process(nginx),
            replica: None,
            sentinel: None,
            control: self.control.clone(),
        }
    }
}

fn claim_all(
    ports: &[u16],
    name: impl Fn(usize) -> String,
    option: &str,
) -> Result<Vec<Port>, Failure> {
    ports
        .iter()
        .enumerate()
        .map(|(n, port)| Port::claim(*port, &name(n), option))
        .collect()
}
