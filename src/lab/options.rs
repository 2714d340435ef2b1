//! What a lab is to have, how that becomes folders, ports, addresses and members, and their start.

use super::{
    Lab,
    clock::{self, Clock},
    folder::Folder,
    instance::{self, FaultControl, Instance},
    mysql::{self, Galera, MySql},
    nginx::{self, Nginx},
    ports::Port,
    redis::{self, Redis, Role},
    sentinel::{self, Group, Replicated, Sentinel},
    server::{Member, Server, Setting, Tier},
    user::User,
    way::{self, Way},
    zookeeper::{self, Peer, ZooKeeper},
};
use crate::programs::{self, SETPRIV};
use crate::{
    addresses::{self, Addresses, Control, TOKEN, Token},
    stock,
    terminal::{
        chinese::told,
        failure::{Failure, unusable, unusable_told},
        stdout,
    },
};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use futures::future::try_join_all;
use indicatif::ProgressBar;
use std::{
    collections::{BTreeMap, HashSet},
    io,
    net::{IpAddr, Ipv4Addr, UdpSocket},
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{sync::mpsc::UnboundedSender, task::JoinSet};

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

/// Which node of a Galera cluster the instances of a lab write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Writers {
    /// All to the first one that is part of the cluster.
    One,
    /// Each to a node of its own, as far as there are so many.
    Each,
}

/// How many replicas a main Redis has whose instances ask Sentinels: one may go, and one is left to be waited for.
const REPLICAS: usize = 2;

/// What a lab is to have. By default everything, on free ports, in a folder that is removed at the end:
///
/// ```no_run
/// use oversell::lab::{Lab, Options, Part};
/// # async fn example() -> Result<(), oversell::terminal::failure::Failure> {
/// let one_instance = Options { instance_ports: vec![0], redis_ports: vec![0], ..Options::default() };
/// let only_servers = Options { without: vec![Part::Instances, Part::Nginx], ..Options::default() };
/// let lab = Lab::start(only_servers).await?;
/// println!("{}", lab.addresses().mysql.url);
/// lab.stop().await;
/// # Ok(()) }
/// ```
///
/// `oversell lab` takes some of them from its command line, with defaults of its own. A port that is 0 is a free one.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The port of nginx, where requests go
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub http_port: u16,
    /// Let phones in: nginx listens on every address of this machine. Who reaches it may buy, visit lessons and play
    /// races that break no server; to reset the stock, to start runs and to break servers takes the token that is printed
    #[arg(long)]
    pub lan: bool,
    /// The ports of the instances, one for each
    #[arg(
        long = "instances",
        value_name = "PORT,…",
        value_delimiter = ',',
        default_value = "8000,8100,8200"
    )]
    pub instance_ports: Vec<u16>,
    /// How many MariaDB nodes: one alone, or several as one Galera cluster
    #[arg(long, value_name = "NODES", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=5))]
    pub galera: u16,
    /// Which node the instances write to; with --galera
    #[arg(long, value_enum, default_value_t = Writers::One)]
    pub writers: Writers,
    /// The port of MariaDB; further nodes of a cluster have the ports that follow
    #[arg(long, value_name = "PORT", default_value_t = 13306)]
    pub mysql_port: u16,
    /// The ports of the Redis nodes; the first is the main one
    #[arg(
        long,
        value_name = "PORT,…",
        value_delimiter = ',',
        default_value = "16379,16380,16381,16382,16383"
    )]
    pub redis_ports: Vec<u16>,
    /// How many ZooKeeper servers: one alone, or several as one ensemble
    #[arg(long, value_name = "SERVERS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=7))]
    pub zookeeper: u16,
    /// The port of ZooKeeper; further members of an ensemble have the ports that follow
    #[arg(long, value_name = "PORT", default_value_t = 12181)]
    pub zookeeper_port: u16,
    /// Lead each instance to each server through the lab, so that `oversell lab fault cut` can cut it off: it costs some
    /// speed
    #[arg(long)]
    pub ways: bool,
    /// Give the main Redis a replica, and a Redis Sentinel that promotes it when the main one is gone; with --ways
    #[arg(long)]
    pub replica: bool,
    /// Give the main Redis two replicas and this many Sentinels, which the instances ask who leads, and which promote a replica
    /// when the main one is gone
    #[arg(long, value_name = "SENTINELS", default_value_t = 0, conflicts_with = "replica", value_parser = clap::value_parser!(u16).range(0..=5))]
    pub sentinels: u16,
    /// The strategy that sells by `/check/lock`, as stock.strategy of the instances [default: none]
    #[arg(long, value_name = "NAME", value_parser = slugs(), hide_possible_values = true)]
    pub strategy: Option<String>,
    /// Other programs than the system's own.
    #[command(flatten)]
    pub servers: Servers,
    /// The folder for data, logs and lab.json
    // Emptied at the start, left at the end. None: one of its own under `target/`, removed at the end.
    #[arg(long, value_name = "FOLDER", default_value = "target/lab")]
    pub dir: Option<PathBuf>,
    /// What is not started with the lab. It has its address and can be started later, by `Lab::restart`.
    #[arg(skip)]
    pub without: Vec<Part>,
    /// The `oversell` program for the instances. None: the one that runs. A test names its `CARGO_BIN_EXE_oversell`.
    #[arg(skip)]
    pub program: Option<PathBuf>,
    /// More environment for the instances, as `("OVERSELL__LOCK__LEASE_MS", "2000")`.
    #[arg(skip)]
    pub env: Vec<(String, String)>,
    /// Where the lines of the instances' consoles go, each with the instance's name in front. None: into their logs.
    #[arg(skip)]
    pub console: Option<UnboundedSender<String>>,
    /// Where orders to this lab are received. Its instances are told, so that their replays can break it.
    #[arg(skip)]
    pub control: Option<Control>,
    /// Show a progress bar, if stderr is a terminal.
    #[arg(skip)]
    pub progress: bool,
}

/// The names of the strategies; clap says which is meant where one is mistyped.
fn slugs() -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(stock::ALL.iter().map(|strategy| strategy.slug))
}

/// Programs of servers, where the system's own are not meant. What is not named here the environment may name.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Servers {
    /// The program that is Redis or Valkey; or by OVERSELL_REDIS_SERVER. `scripts/servers` gets those of other releases
    #[arg(long, value_name = "PATH")]
    pub redis_server: Option<PathBuf>,
    /// The program that is MariaDB or MySQL: a mariadbd or mysqld; or by OVERSELL_MYSQL_SERVER
    #[arg(long, value_name = "PATH")]
    pub mysql_server: Option<PathBuf>,
    /// The program that is nginx; or by OVERSELL_NGINX
    #[arg(long, value_name = "PATH")]
    pub nginx: Option<PathBuf>,
    /// The folder where ZooKeeper was unpacked; or by ZOOKEEPER_HOME, or its class path by OVERSELL_ZOOKEEPER_CLASSPATH
    #[arg(long, value_name = "FOLDER")]
    pub zookeeper_home: Option<PathBuf>,
}

/// What the servers of a lab are started with.
struct Programs {
    redis: PathBuf,
    mysql: mysql::Program,
    nginx: PathBuf,
    /// None: Debian's.
    class_path: Option<String>,
}

impl Servers {
    fn programs(&self) -> Result<Programs, Failure> {
        let (redis, nginx) = (self.redis_server.as_deref(), self.nginx.as_deref());
        Ok(Programs {
            redis: programs::server(("--redis-server", redis), redis::PROGRAM)?,
            mysql: mysql::Program::chosen(self.mysql_server.as_deref())?,
            nginx: programs::server(("--nginx", nginx), nginx::NAME)?,
            class_path: zookeeper::own_class_path(self.zookeeper_home.as_deref())?,
        })
    }
}

impl Programs {
    /// What they say of themselves. ZooKeeper's version is known once it runs.
    fn versions(&self) -> BTreeMap<String, String> {
        let mysql = format!("{} {}", self.mysql.title(), self.mysql.version);
        [
            (
                mysql::NAME,
                Some(mysql).filter(|_| !self.mysql.version.is_empty()),
            ),
            ("redis", redis::version(&self.redis)),
            (nginx::NAME, nginx::version(&self.nginx)),
        ]
        .into_iter()
        .filter_map(|(name, version)| Some((name.to_owned(), version?)))
        .collect()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            http_port: 0,
            lan: false,
            instance_ports: vec![0; 3],
            galera: 1,
            writers: Writers::One,
            mysql_port: 0,
            redis_ports: vec![0; 5],
            zookeeper: 1,
            zookeeper_port: 0,
            ways: false,
            replica: false,
            sentinels: 0,
            strategy: None,
            servers: Servers::default(),
            dir: None,
            without: Vec::new(),
            program: None,
            env: Vec::new(),
            console: None,
            control: None,
            progress: false,
        }
    }
}

/// The ports that are no options, and the claims on all.
#[derive(Default)]
struct Ports {
    mysql: Vec<u16>,
    nodes: Vec<mysql::Peer>,
    zookeeper: Vec<u16>,
    peers: Vec<Peer>,
    /// The replica's, and the Sentinel's.
    replicas: Option<(u16, u16)>,
    /// Those of a main one whose instances ask who leads.
    group: Option<Group>,
    claimed: Vec<Port>,
}

impl Ports {
    /// Claims this port; where it is 0, a free one.
    fn claim(&mut self, port: u16, server: &str, option: &str) -> Result<u16, Failure> {
        let claimed = Port::claim(port, server, option)?;
        let number = claimed.number();
        self.claimed.push(claimed);
        Ok(number)
    }
}

impl Lab {
    /// Starts what the options ask for and waits until each has answered: the servers side by side, then the
    /// instances, then nginx.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`]: a port that is occupied, a program that is missing, or a server that does not become
    /// healthy, with the end of its log. What had been started is stopped.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future stops what had been started.
    pub async fn start(options: Options) -> Result<Self, Failure> {
        let progress = options.progress;
        let mut lab = options.plan()?;
        let complete = lab
            .members
            .iter()
            .all(|m| m.tier != Tier::Server || m.wanted);
        let progress = if progress {
            stdout::progress(lab.members.iter().filter(|m| m.wanted).count(), false)
        } else {
            ProgressBar::hidden()
        };
        for tier in [Tier::Server, Tier::Instance, Tier::Gate] {
            let members = lab
                .members
                .iter_mut()
                .filter(|m| m.tier == tier && m.wanted);
            try_join_all(members.map(async |member| {
                // All servers start together, and the members of an ensemble with the majority that they need.
                member
                    .start(complete || tier == Tier::Server, &lab.setting)
                    .await?;
                progress.inc(1);
                let name = member.title();
                progress.set_message(told!("{name} 已启动", "{name} is up"));
                Ok(())
            }))
            .await?;
        }
        if let Some(of) = lab.replicated.clone() {
            let (ways, console) = (lab.ways_to_main(), lab.setting.console.clone());
            lab.following.spawn(sentinel::follow(of, ways, console));
        }
        progress.finish_and_clear();
        if let Some(version) = zookeeper::version(&lab.addresses.zookeeper.connect).await {
            let versions = &mut lab.addresses.versions;
            versions.insert(zookeeper::NAME.to_owned(), format!("ZooKeeper {version}"));
        }
        lab.publish()?;
        Ok(lab)
    }
}

impl Options {
    /// The lab before its start: claims ports and folder, and finds the programs.
    fn plan(mut self) -> Result<Lab, Failure> {
        self.check()?;
        let servers = self.servers.programs()?;
        if self.galera > 1 && servers.mysql.kind == mysql::Kind::MySql {
            return Err(unusable_told!(
                "--galera：只有 MariaDB 才能组成 Galera 集群，{} 是 MySQL",
                "--galera: only MariaDB nodes are a Galera cluster, and {} is MySQL",
                servers.mysql.path.display()
            ));
        }
        let ports = self.claim()?;
        let mut addresses = self.addresses(&ports);
        addresses.versions = servers.versions();
        let folder = Folder::open(self.dir.as_deref())?;
        let program = match &self.program {
            Some(program) => program.clone(),
            None => {
                std::env::current_exe().map_err(|e| unusable!("oversell's own program: {e}"))?
            }
        };
        let page = nginx::static_root();
        let page_itself = page.join("index.html");
        let files = [
            &*program,
            &page_itself,
            &servers.redis,
            &servers.mysql.path,
            &servers.nginx,
        ];
        let files: Vec<_> = files
            .into_iter()
            .filter(|file| file.is_absolute())
            .collect();
        let (user, warning) = User::choose(&folder.of(""), &files);
        let mut ways = if self.ways || self.replica {
            way::all(&addresses)?
        } else {
            Vec::new()
        };
        let replicated = match ports.replicas {
            Some((replica, sentinel)) => {
                let main = format!("127.0.0.1:{}", self.redis_ports[0]);
                let main = Arc::new(Way::open(redis::REPLICA, &redis::name(0), &main)?);
                Some(Replicated {
                    main,
                    replica,
                    sentinel,
                })
            }
            None => None,
        };
        let mut unavailable = Vec::new();
        let mut has_clocks = self.ways || self.replica;
        if has_clocks && let Err(why) = clock::put_library(&folder.of(""), &servers.redis) {
            has_clocks = false;
            unavailable.push(told!(
                "拨动 Redis 时钟的课不能演：{why}",
                "lessons in which the clock of a Redis jumps are unavailable: {why}"
            ));
        }
        let clock = |(index, &port): (usize, &u16)| Clock {
            file: folder.of(&redis::name(index)).join(clock::FILE),
            node: redis::name(index),
            port,
        };
        let nodes = self.redis_ports.iter().enumerate();
        let clocks: Vec<_> = match has_clocks {
            true => nodes.map(clock).collect(),
            false => Vec::new(),
        };
        let mut members = self.members(&folder, &ports, &servers, replicated.as_ref(), has_clocks);
        members.extend(self.group(&folder, &ports, &servers.redis));
        let kinds = self.kinds(has_clocks);
        let main = replicated.as_ref();
        members.extend(self.instances(&folder, &program, &addresses, &ways, &kinds, main));
        if let Some(of) = &replicated {
            let (port, main) = (of.sentinel, of.main.proxy.port());
            let server = |name, server| {
                Member::new(&folder, name, server, Tier::Server, self.has(Part::Redis))
            };
            let role = Role::Replica { of: main };
            let replica = Redis {
                program: servers.redis.clone(),
                port: of.replica,
                role,
                has_clock: false,
                grouped: false,
            };
            members.push(server(redis::REPLICA, Box::new(replica)));
            let (of, replicas) = (1, 1);
            let watches = Sentinel {
                program: servers.redis,
                port,
                main,
                of,
                replicas,
                grouped: false,
            };
            members.push(server(sentinel::SENTINEL, Box::new(watches)));
        }
        // nginx cannot be without anyone behind it.
        if !self.instance_ports.is_empty() {
            let nginx = Box::new(Nginx {
                program: servers.nginx,
                port: self.http_port,
                lan: self.lan,
                behind: self.instance_ports.clone(),
                page,
            });
            let wanted = self.has(Part::Nginx) && self.has(Part::Instances);
            members.push(Member::new(&folder, nginx::NAME, nginx, Tier::Gate, wanted));
        }
        let wanted = members.iter().filter(|m| m.wanted);
        let needed = wanted.flat_map(|m| m.server.needs()).copied();
        programs::check(needed.chain([SETPRIV]))?;

        ways.extend(replicated.iter().map(|of| Arc::clone(&of.main)));
        Ok(Lab {
            members,
            ways,
            clocks,
            replicated,
            group: ports.group.clone(),
            isolated: HashSet::new(),
            following: JoinSet::new(),
            folder,
            addresses,
            setting: Setting {
                user,
                console: self.console,
            },
            warning,
            unavailable,
            _ports: ports.claimed,
        })
    }

    fn has(&self, part: Part) -> bool {
        !self.without.contains(&part)
    }

    /// MariaDB, ZooKeeper and the Redis nodes.
    fn members(
        &self,
        folder: &Folder,
        ports: &Ports,
        servers: &Programs,
        main: Option<&Replicated>,
        has_clocks: bool,
    ) -> Vec<Member> {
        let mut members = Vec::new();
        let mut server = |name: &str, part, server: Box<dyn Server>| {
            members.push(Member::new(
                folder,
                name,
                server,
                Tier::Server,
                self.has(part),
            ));
        };
        for (index, &port) in ports.mysql.iter().enumerate() {
            let peers = ports.nodes.clone();
            let node = MySql {
                program: servers.mysql.clone(),
                shared: folder.shared(),
                port,
                galera: (!peers.is_empty()).then_some(Galera {
                    index,
                    first: ports.mysql[0],
                    peers,
                }),
            };
            server(&mysql::name(index), Part::MySql, Box::new(node));
        }
        for (index, &port) in ports.zookeeper.iter().enumerate() {
            let peers = ports.peers.clone();
            let member = ZooKeeper {
                class_path: servers.class_path.clone(),
                index,
                port,
                peers,
            };
            server(&zookeeper::name(index), Part::ZooKeeper, Box::new(member));
        }
        for (index, &port) in self.redis_ports.iter().enumerate() {
            let role = match (index, main) {
                (0, Some(main)) => Role::Main {
                    known_by: main.main.proxy.port(),
                },
                (0, None) => Role::Main { known_by: port },
                _ => Role::Independent,
            };
            let node = Redis {
                program: servers.redis.clone(),
                port,
                role,
                has_clock: has_clocks,
                grouped: index == 0 && ports.group.is_some(),
            };
            server(&redis::name(index), Part::Redis, Box::new(node));
        }
        members
    }

    /// The replicas and Sentinels of a main Redis whose instances ask who leads.
    fn group(&self, folder: &Folder, ports: &Ports, program: &Path) -> Vec<Member> {
        let Some(group) = &ports.group else {
            return Vec::new();
        };
        let main = self.redis_ports[0];
        let server = |name: &str, server| {
            Member::new(folder, name, server, Tier::Server, self.has(Part::Redis))
        };
        let replicas = group.members.iter().skip(1).map(|(name, port)| {
            let replica = Redis {
                program: program.to_owned(),
                port: *port,
                role: Role::Replica { of: main },
                has_clock: false,
                grouped: true,
            };
            server(name, Box::new(replica) as Box<dyn Server>)
        });
        let sentinels = group.sentinels.iter().enumerate().map(|(n, &port)| {
            let watches = Sentinel {
                program: program.to_owned(),
                port,
                main,
                of: group.sentinels.len(),
                replicas: group.members.len() - 1,
                grouped: true,
            };
            server(&sentinel::name(n), Box::new(watches))
        });
        replicas.chain(sentinels).collect()
    }

    fn instances(
        &self,
        folder: &Folder,
        program: &Path,
        at: &Addresses,
        ways: &[Arc<Way>],
        kinds: &[&'static str],
        main: Option<&Replicated>,
    ) -> impl Iterator<Item = Member> {
        let all = self.instance_ports.iter().enumerate();
        all.map(move |(n, &port)| {
            let name = instance::name(port);
            let seen = way::seen_by(&name, &self.seen_by_instance(n, at), ways);
            let named = instance::members(at).chain(instance::members(&seen));
            // By the way to it the Sentinel and the replica know the main one.
            let main = main.map(|of| instance::member(&redis::name(0), &of.main.proxy.address()));
            let named = named.chain(main);
            let members = (
                "OVERSELL__CLUSTER__MEMBERS".to_owned(),
                named.collect::<Vec<_>>().join(","),
            );
            let strategy = self.strategy.clone();
            let strategy = strategy.map(|slug| ("OVERSELL__STOCK__STRATEGY".to_owned(), slug));
            let strategy: Vec<_> = strategy.into_iter().collect();
            let more = [&[members], &strategy[..], &self.env[..]].concat();
            let instance = Box::new(Instance {
                port,
                program: program.to_owned(),
                env: instance::environment(&seen, self.has(Part::Nginx), &more),
                faults: self.control.clone().map(|control| FaultControl {
                    control,
                    kinds: kinds.to_vec(),
                }),
            });
            let wanted = self.has(Part::Instances);
            Member::new(folder, &name, instance, Tier::Instance, wanted)
        })
    }

    /// The addresses for the instance at this place: its own node is the only one that it knows, or all are.
    fn seen_by_instance(&self, place: usize, at: &Addresses) -> Addresses {
        let own = at.mysql_nodes().nth(place % usize::from(self.galera));
        match (self.writers, own) {
            (Writers::Each, Some(own)) => Addresses {
                mysql: own.clone(),
                galera: Vec::new(),
                ..at.clone()
            },
            _ => at.clone(),
        }
    }

    /// What it has for orders besides those that each lab carries out.
    fn kinds(&self, clocks: bool) -> Vec<&'static str> {
        let has = [
            ("ways", self.ways || self.replica),
            ("replica", self.replica),
            ("clocks", clocks),
        ];
        has.into_iter()
            .filter_map(|(kind, has)| has.then_some(kind))
            .collect()
    }

    fn zookeeper_ports(&self) -> Vec<u16> {
        following(self.zookeeper_port, self.zookeeper)
    }

    fn mysql_ports(&self) -> Vec<u16> {
        following(self.mysql_port, self.galera)
    }

    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.redis_ports.is_empty() {
            return Err(unusable_told!(
                "实验环境至少要一个 Redis 节点：--redis-ports",
                "a lab needs at least one Redis node: --redis-ports"
            ));
        }
        if self.zookeeper == 0 {
            return Err(unusable!(
                "a lab needs at least one ZooKeeper server: --zookeeper"
            ));
        }
        if self.galera == 0 {
            return Err(unusable!("a lab needs at least one MariaDB node: --galera"));
        }
        let mut seen = HashSet::new();
        let ports = self.ports();
        let mut all = ports.iter().map(|(_, port, _)| *port);
        match all.find(|port| *port != 0 && !seen.insert(*port)) {
            Some(twice) => Err(unusable_told!(
                "端口 {twice} 用了两次：每个服务器要有自己的",
                "port {twice} is asked for twice: each server needs its own"
            )),
            None => Ok(()),
        }
    }

    /// The ports that it asks for: the server of each, and the option that chooses another.
    pub(super) fn ports(&self) -> Vec<(String, u16, &'static str)> {
        let mut all = vec![(nginx::NAME.to_owned(), self.http_port, "--http-port")];
        let mut add = |ports: &[u16], name: fn(usize) -> String, option| {
            let each = ports.iter().enumerate();
            all.extend(each.map(|(n, port)| (name(n), *port, option)));
        };
        let instance = |n| format!("instance {}", n + 1);
        add(&self.instance_ports, instance, "--instances");
        add(&self.mysql_ports(), mysql::name, "--mysql-port");
        add(&self.redis_ports, redis::name, "--redis-ports");
        add(&self.zookeeper_ports(), zookeeper::name, "--zookeeper-port");
        all
    }

    /// Claims every port; those that are options and 0 become what was claimed for them.
    fn claim(&mut self) -> Result<Ports, Failure> {
        let mut ports = Ports::default();
        let wanted = self.ports().into_iter();
        let claimed: Vec<u16> = wanted
            .map(|(server, port, option)| ports.claim(port, &server, option))
            .collect::<Result<_, _>>()?;
        let mut claimed = claimed.into_iter();
        let mut next = |ports: usize| claimed.by_ref().take(ports).collect::<Vec<_>>();
        self.http_port = next(1)[0];
        self.instance_ports = next(self.instance_ports.len());
        ports.mysql = next(self.galera.into());
        self.redis_ports = next(self.redis_ports.len());
        ports.zookeeper = next(self.zookeeper.into());
        let mut free = |server: &str| ports.claim(0, server, "");
        // More for each member of an ensemble or a cluster, which only the members know.
        let members = |servers| if servers > 1 { servers } else { 0 };
        let nodes: Result<_, Failure> = (0..members(self.galera))
            .map(|_| {
                Ok(mysql::Peer {
                    group: free(mysql::NAME)?,
                    missed: free(mysql::NAME)?,
                    whole: free(mysql::NAME)?,
                })
            })
            .collect();
        let peers: Result<_, Failure> = (0..members(self.zookeeper))
            .map(|_| {
                Ok(Peer {
                    quorum: free(zookeeper::NAME)?,
                    election: free(zookeeper::NAME)?,
                })
            })
            .collect();
        let pair = match self.replica {
            true => Some((free(redis::REPLICA)?, free(sentinel::SENTINEL)?)),
            false => None,
        };
        let group = match self.sentinels {
            0 => None,
            sentinels => {
                let main = Ok((redis::name(0), self.redis_ports[0]));
                let replicas =
                    (0..REPLICAS).map(|n| Ok((redis::replica(n), free(redis::REPLICA)?)));
                let members = [main].into_iter().chain(replicas);
                Some(Group {
                    members: members.collect::<Result<_, Failure>>()?,
                    sentinels: (0..sentinels)
                        .map(|_| free(sentinel::SENTINEL))
                        .collect::<Result<_, _>>()?,
                })
            }
        };
        ports.replicas = pair;
        ports.group = group;
        ports.nodes = nodes?;
        ports.peers = peers?;
        Ok(ports)
    }

    fn addresses(&self, ports: &Ports) -> Addresses {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let process = |url: String| addresses::Process { url, pid: 0 };
        let mysql = |port: &u16| process(format!("mysql://root@127.0.0.1:{port}/test"));
        let redis = |port: u16| process(format!("redis://127.0.0.1:{port}"));
        let group = |of: fn(&Group) -> Vec<u16>| {
            let ports = ports.group.as_ref().map(of).unwrap_or_default();
            ports.into_iter().map(redis).collect()
        };
        let zookeeper = ports.zookeeper.iter();
        let zookeeper: Vec<_> = zookeeper.map(|port| format!("127.0.0.1:{port}")).collect();
        let entry = match self.instance_ports.first() {
            Some(instance) if !self.has(Part::Nginx) => *instance,
            _ => self.http_port,
        };
        let instance = |port: &u16| addresses::Instance {
            name: instance::name(*port),
            url: url(*port),
            pid: 0,
        };
        Addresses {
            http: url(entry),
            instances: self.instance_ports.iter().map(instance).collect(),
            mysql: mysql(&ports.mysql[0]),
            galera: ports.mysql[1..].iter().map(mysql).collect(),
            redis: self.redis_ports.iter().map(|port| redis(*port)).collect(),
            zookeeper: addresses::ZooKeeper {
                connect: zookeeper.join(","),
                pid: 0,
            },
            nginx: process(url(self.http_port)),
            replica: ports.replicas.map(|(replica, _)| redis(replica)),
            sentinel: ports.replicas.map(|(_, sentinel)| redis(sentinel)),
            replicas: group(|group| group.members[1..].iter().map(|(_, port)| *port).collect()),
            sentinels: group(|group| group.sentinels.clone()),
            phones: self
                .lan
                .then(way_out)
                .and_then(Result::ok)
                .map(|ip| format!("http://{ip}:{}", self.http_port)),
            admin: token(self.lan),
            versions: BTreeMap::new(),
            control: self.control.clone(),
        }
    }
}

/// So many ports from the first on; where that is 0, each is a free one.
fn following(first: u16, ports: u16) -> Vec<u16> {
    let follows = |n| match first {
        0 => 0,
        first => first.saturating_add(n),
    };
    (0..ports).map(follows).collect()
}

/// The address from which this machine would send into its network. Nothing is sent.
fn way_out() -> io::Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // An address of the documentation (RFC 5737), which is nobody's.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
    Ok(socket.local_addr()?.ip())
}

/// The admin token that the instances get: the one that the environment has for them, or where others are let in a new one.
fn token(lan: bool) -> Option<Token> {
    let given = std::env::var(TOKEN).ok().filter(|token| !token.is_empty());
    given.map(Token).or_else(|| lan.then(Token::fresh))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_of_an_ensemble_and_of_a_cluster_have_the_ports_that_follow() {
        let options = |first| Options {
            zookeeper: 3,
            zookeeper_port: first,
            galera: 3,
            mysql_port: first,
            ..Options::default()
        };
        for (first, ports) in [(12181, [12181, 12182, 12183]), (0, [0, 0, 0])] {
            assert_eq!(options(first).zookeeper_ports(), ports);
            assert_eq!(options(first).mysql_ports(), ports);
        }
    }

    #[test]
    fn the_instances_write_to_one_node_or_each_to_a_node_of_its_own() {
        let written = |writers| {
            let options = Options {
                instance_ports: vec![1, 2, 3, 4],
                galera: 3,
                writers,
                ..Options::default()
            };
            let ports = Ports {
                mysql: vec![11, 12, 13],
                ..Ports::default()
            };
            let at = options.addresses(&ports);
            let each = (0..4).map(|n| options.seen_by_instance(n, &at).mysql.url);
            each.map(|url| url["mysql://root@127.0.0.1:".len()..].to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(written(Writers::One), ["11/test"; 4]);
        assert_eq!(
            written(Writers::Each),
            ["11/test", "12/test", "13/test", "11/test"]
        );
    }
}
