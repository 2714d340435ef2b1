//! What a lab is to have: the options of `oversell lab`, their defaults, and the ports that they ask for.

use super::{etcd, mysql, nginx, redis, zookeeper};
use crate::{
    addresses::Control,
    terminal::failure::{Failure, unusable, unusable_localized},
};
use std::{collections::HashSet, path::PathBuf};
use tokio::sync::mpsc::UnboundedSender;

/// A kind of server that a lab need not start at once: see [`Options::without`], which the command line does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    MySql,
    Redis,
    ZooKeeper,
    Etcd,
    Instances,
    Nginx,
}

/// Which node of a Galera cluster the instances of a lab write to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Writers {
    /// All to the first node of the cluster
    One,
    /// Each to its own node; with more instances than nodes they share
    Each,
}

/// The parts of a lab. By default every part, on free ports, in a folder that is removed at the end:
///
/// ```no_run
/// use oversell_lab::lab::{Lab, Options, Part};
/// # async fn example() -> Result<(), oversell_lab::terminal::failure::Failure> {
/// let only_servers = Options { without: vec![Part::Instances, Part::Nginx], ..Options::default() };
/// let lab = Lab::start(only_servers).await?;
/// println!("{}", lab.addresses().mysql.url);
/// lab.stop().await;
/// # Ok(()) }
/// ```
///
/// `oversell lab` takes most of them from its command line, with defaults of its own. Port 0 means any free port.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The port of nginx, where requests go
    #[arg(long, value_name = "PORT", default_value_t = 8080)]
    pub http_port: u16,
    /// Let phones in: nginx listens on every address of this machine. Who reaches it may buy, visit lessons and play
    /// races that break no server; to reset the stock, to start runs and to break servers takes the token that is
    /// printed
    #[arg(long)]
    pub lan: bool,
    /// For a class: --lan, --links and --replica, a code that phones read, and an address at which the teacher's browser has
    /// the token
    #[arg(long, conflicts_with = "sentinels")]
    pub class: bool,
    /// The ports of the instances, one for each
    #[arg(long = "instances", value_name = "PORT,…", value_delimiter = ',', default_value = "8000,8100,8200")]
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
    #[arg(long, value_name = "PORT,…", value_delimiter = ',', default_value = "16379,16380,16381,16382,16383")]
    pub redis_ports: Vec<u16>,
    /// How many ZooKeeper servers: one alone, or several as one ensemble
    #[arg(long, value_name = "SERVERS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=7))]
    pub zookeeper: u16,
    /// The port of ZooKeeper; further members of an ensemble have the ports that follow
    #[arg(long, value_name = "PORT", default_value_t = 12181)]
    pub zookeeper_port: u16,
    /// How many etcd nodes: none, one alone, or several as one cluster
    #[arg(long, value_name = "NODES", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=5))]
    pub etcd: u16,
    /// The port of etcd; further nodes of a cluster have the ports that follow
    #[arg(long, value_name = "PORT", default_value_t = 12379)]
    pub etcd_port: u16,
    /// Lead each instance to each server through the lab, so that `oversell lab fault cut` can cut it off: it costs
    /// some speed
    #[arg(long)]
    pub links: bool,
    /// Give the main Redis a replica, and a Redis Sentinel that promotes it when the main one is gone; with --links
    #[arg(long)]
    pub replica: bool,
    /// Give the main Redis two replicas and this many Sentinels, which the instances ask who leads, and which promote a
    /// replica when the main one is gone
    #[arg(long, value_name = "SENTINELS", default_value_t = 0, conflicts_with = "replica", value_parser = clap::value_parser!(u16).range(0..=5))]
    pub sentinels: u16,
    /// The strategy that sells by `/check/lock`, as stock.strategy of the instances [default: none]
    // Any text: the command line of the program takes the names of its strategies only.
    #[arg(long, value_name = "NAME")]
    pub strategy: Option<String>,
    /// Other programs than the system's own.
    #[command(flatten)]
    pub servers: Servers,
    /// The folder for data, logs and lab.json
    // A named folder is emptied at the start and kept. None: a new one under `target/`, removed at the end.
    #[arg(long, value_name = "FOLDER", default_value = "target/lab")]
    pub dir: Option<PathBuf>,
    /// Parts that are not started with the lab. They have addresses, and `Lab::restart` starts them later.
    #[arg(skip)]
    pub without: Vec<Part>,
    /// The `oversell` program for the instances. None: the one that runs. A test names its `CARGO_BIN_EXE_oversell`.
    #[arg(skip)]
    pub program: Option<PathBuf>,
    /// More environment for the instances, as `("OVERSELL__LOCK__LEASE_MS", "2000")`.
    #[arg(skip)]
    pub env: Vec<(String, String)>,
    /// Where console lines of the instances go, prefixed with the instance's name. None: into their logs.
    #[arg(skip)]
    pub console: Option<UnboundedSender<String>>,
    /// Where this lab receives faults. Its instances are told, so that their replays can inject them.
    #[arg(skip)]
    pub control: Option<Control>,
    /// Show a progress bar, if stderr is a terminal.
    #[arg(skip)]
    pub progress: bool,
}

/// Server programs other than the system's own. The environment may name those that are not given here.
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
    /// The program that is etcd; or by OVERSELL_ETCD_SERVER
    #[arg(long, value_name = "PATH")]
    pub etcd_server: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            http_port: 0,
            lan: false,
            class: false,
            instance_ports: vec![0; 3],
            galera: 1,
            writers: Writers::One,
            mysql_port: 0,
            redis_ports: vec![0; 5],
            zookeeper: 1,
            zookeeper_port: 0,
            etcd: 0,
            etcd_port: 0,
            links: false,
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

impl Options {
    /// The options, with `lan`, `links` and `replica` if `class` is set.
    pub fn for_class(self) -> Self {
        let class = self.class;
        Self { lan: self.lan || class, links: self.links || class, replica: self.replica || class, ..self }
    }

    /// Whether the lab is to start this part.
    pub(super) fn has(&self, part: Part) -> bool {
        !self.without.contains(&part)
    }

    /// Fails if a kind of server has no member, or a port is asked for twice.
    pub(super) fn check(&self) -> Result<(), Failure> {
        if self.redis_ports.is_empty() {
            return Err(unusable_localized!(
                "实验环境至少要一个 Redis 节点：--redis-ports",
                "a lab needs at least one Redis node: --redis-ports"
            ));
        }
        if self.zookeeper == 0 {
            return Err(unusable!("a lab needs at least one ZooKeeper server: --zookeeper"));
        }
        if self.galera == 0 {
            return Err(unusable!("a lab needs at least one MariaDB node: --galera"));
        }
        let mut used = HashSet::new();
        let ports = self.requested_ports();
        let mut all = ports.iter().map(|(_, port, _)| *port);
        match all.find(|port| *port != 0 && !used.insert(*port)) {
            Some(twice) => Err(unusable_localized!(
                "端口 {twice} 用了两次：每个服务器要有自己的",
                "port {twice} is asked for twice: each server needs its own"
            )),
            None => Ok(()),
        }
    }

    /// The requested ports: for each its server and the option that chooses another.
    pub(super) fn requested_ports(&self) -> Vec<(String, u16, &'static str)> {
        let mut all = vec![(nginx::NAME.to_owned(), self.http_port, "--http-port")];
        let mut add = |ports: &[u16], name: fn(usize) -> String, option| {
            let each = ports.iter().enumerate();
            all.extend(each.map(|(n, port)| (name(n), *port, option)));
        };
        let instance = |n| format!("instance {}", n + 1);
        add(&self.instance_ports, instance, "--instances");
        add(&consecutive_ports(self.mysql_port, self.galera), mysql::name, "--mysql-port");
        add(&self.redis_ports, redis::name, "--redis-ports");
        add(&consecutive_ports(self.zookeeper_port, self.zookeeper), zookeeper::name, "--zookeeper-port");
        add(&consecutive_ports(self.etcd_port, self.etcd), etcd::name, "--etcd-port");
        all
    }
}

/// Consecutive ports from `first` on; if that is 0, all are 0, for any free one.
fn consecutive_ports(first: u16, ports: u16) -> Vec<u16> {
    let follows = |n| match first {
        0 => 0,
        first => first.saturating_add(n),
    };
    (0..ports).map(follows).collect()
}
