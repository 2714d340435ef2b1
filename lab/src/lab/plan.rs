//! A lab before its start: its programs, folder, addresses and members, none of which runs yet.

use super::{
    Lab, Options, Part, Servers, Writers,
    clock::{self, Clock},
    etcd::{self, Etcd},
    folder::{Folder, LAB_JSON},
    instance::{self, FaultControl, LabInstance},
    link::{self, ProxyLink},
    mysql::{self, Galera, MySql},
    nginx::{self, Nginx},
    port_plan::PortPlan,
    redis::{self, Redis, Role},
    sentinel::{self, ProxiedReplica, Sentinel, SentinelGroup},
    server::{Member, MemberSettings, Server, Tier},
    user::User,
    zookeeper::{self, ZooKeeper},
};
use crate::{
    addresses::{self, ADMIN_TOKEN_VARIABLE, Addresses, Token},
    programs::{self, SETPRIV},
    terminal::chinese::localized,
    terminal::failure::{Failure, unusable, unusable_localized},
};
use std::{
    collections::{BTreeMap, HashSet},
    io,
    net::{IpAddr, Ipv4Addr, UdpSocket},
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::task::JoinSet;

/// The paths of the programs that a lab starts; for ZooKeeper its class path.
struct Programs {
    redis: PathBuf,
    mysql: mysql::MySqlProgram,
    nginx: PathBuf,
    etcd: PathBuf,
    /// None: the class path of Debian's package.
    class_path: Option<String>,
}

impl Servers {
    /// Finds the programs; fails if one that the user names cannot be run. A missing one of the system is no error here.
    fn programs(&self) -> Result<Programs, Failure> {
        let (redis, nginx, etcd) = (self.redis_server.as_deref(), self.nginx.as_deref(), self.etcd_server.as_deref());
        Ok(Programs {
            redis: programs::server_program(("--redis-server", redis), redis::PROGRAM)?,
            mysql: mysql::MySqlProgram::choose(self.mysql_server.as_deref())?,
            nginx: programs::server_program(("--nginx", nginx), nginx::NAME)?,
            etcd: programs::server_program(("--etcd-server", etcd), etcd::NAME)?,
            class_path: zookeeper::own_class_path(self.zookeeper_home.as_deref())?,
        })
    }
}

impl Programs {
    /// The versions that the programs print, by server; a program that prints none is left out. ZooKeeper's version is known only
    /// once it runs; etcd's is left out in a lab without it.
    fn versions(&self, has_etcd: bool) -> BTreeMap<String, String> {
        let mysql = format!("{} {}", self.mysql.title(), self.mysql.version);
        [
            (mysql::NAME, Some(mysql).filter(|_| !self.mysql.version.is_empty())),
            ("redis", redis::version(&self.redis)),
            (nginx::NAME, nginx::version(&self.nginx)),
            (etcd::NAME, has_etcd.then(|| etcd::version(&self.etcd)).flatten()),
        ]
        .into_iter()
        .filter_map(|(name, version)| Some((name.to_owned(), version?)))
        .collect()
    }
}

impl Options {
    /// Finds the programs, claims the ports, empties the folder, opens the links, and builds every member. Fails if the options
    /// contradict each other, or a program of a member that starts with the lab is missing.
    pub(super) fn plan(mut self) -> Result<Lab, Failure> {
        self.check()?;
        let servers = self.servers.programs()?;
        if self.galera > 1 && servers.mysql.kind == mysql::Vendor::MySql {
            return Err(unusable_localized!(
                "--galera：只有 MariaDB 才能组成 Galera 集群，{} 是 MySQL",
                "--galera: only MariaDB nodes are a Galera cluster, and {} is MySQL",
                servers.mysql.path.display()
            ));
        }
        let ports = self.claim_ports()?;
        let mut addresses = self.addresses(&ports);
        addresses.versions = servers.versions(self.etcd > 0);
        let folder = Folder::open(self.dir.as_deref())?;
        let program = self.instance_program()?;
        let page = nginx::static_root();
        let page_file = page.join("index.html");
        let files = [&*program, &page_file, &servers.redis, &servers.mysql.path, &servers.nginx, &servers.etcd];
        let files: Vec<_> = files.into_iter().filter(|file| file.is_absolute()).collect();
        let (user, warning) = User::choose(&folder.path_of(""), &files);
        let mut links = if self.has_links() { link::open_all(&addresses)? } else { Vec::new() };
        let replica_pair = self.replica_pair(&ports)?;
        let (clocks, unavailable) = match self.clocks(&folder, &servers.redis) {
            Ok(clocks) => (clocks, Vec::new()),
            Err(why) => (Vec::new(), vec![why]),
        };
        let has_clocks = !clocks.is_empty();
        let main = replica_pair.as_ref();
        let mut members = self.server_members(&folder, &ports, &servers, main, has_clocks);
        if let Some(SentinelGroup { members: all, sentinels }) = &ports.group {
            members.extend(self.replicas_and_sentinels(&folder, &servers.redis, self.redis_ports[0], &all[1..], sentinels, true));
        }
        let kinds = self.fault_kinds(has_clocks);
        members.extend(self.instance_members(&folder, &program, &addresses, &links, &kinds, main));
        if let Some(ProxiedReplica { main, replica, sentinel }) = main {
            let (replicas, main) = ([(redis::REPLICA.to_owned(), *replica)], main.proxy.port());
            members.extend(self.replicas_and_sentinels(&folder, &servers.redis, main, &replicas, &[*sentinel], false));
        }
        // nginx needs an instance behind it.
        if !self.instance_ports.is_empty() {
            members.push(self.nginx_member(&folder, servers.nginx, page));
        }
        let wanted = members.iter().filter(|m| m.starts_with_lab);
        let needed = wanted.flat_map(|m| m.server.requirements()).copied();
        programs::check_installed(needed.chain([SETPRIV]))?;

        links.extend(replica_pair.iter().map(|of| Arc::clone(&of.main)));
        Ok(Lab {
            members,
            links,
            clocks,
            replica_pair,
            group: ports.group.clone(),
            isolated: HashSet::new(),
            follower_tasks: JoinSet::new(),
            folder,
            addresses,
            settings: MemberSettings { user, console: self.console },
            warning,
            unavailable,
            _ports: ports.claimed,
        })
    }

    /// The members for MySQL, ZooKeeper, etcd, the Redis nodes and students' Redis; replicas and Sentinels are made apart.
    fn server_members(
        &self,
        folder: &Folder,
        ports: &PortPlan,
        servers: &Programs,
        main: Option<&ProxiedReplica>,
        has_clocks: bool,
    ) -> Vec<Member> {
        let mut members = Vec::new();
        let mut server = |name: &str, part, server: Box<dyn Server>| {
            members.push(Member::new(folder, name, server, Tier::Server, self.has(part)));
        };
        for (index, &port) in ports.mysql.iter().enumerate() {
            let peers = ports.nodes.clone();
            let node = MySql {
                program: servers.mysql.clone(),
                shared: folder.shared_files_folder(),
                port,
                galera: (!peers.is_empty()).then_some(Galera { index, first: ports.mysql[0], peers }),
            };
            server(&mysql::name(index), Part::MySql, Box::new(node));
        }
        for (index, &port) in ports.zookeeper.iter().enumerate() {
            let peers = ports.peers.clone();
            let member = ZooKeeper { class_path: servers.class_path.clone(), index, port, peers };
            server(&zookeeper::name(index), Part::ZooKeeper, Box::new(member));
        }
        for (index, &port) in ports.etcd.iter().enumerate() {
            let node = Etcd { program: servers.etcd.clone(), index, port, peers: ports.etcd_peers.clone() };
            server(&etcd::name(index), Part::Etcd, Box::new(node));
        }
        for (index, &port) in self.redis_ports.iter().enumerate() {
            let role = match (index, main) {
                (0, Some(main)) => Role::Main { announced_port: main.main.proxy.port() },
                (0, None) => Role::Main { announced_port: port },
                _ => Role::Independent,
            };
            let node = Redis {
                program: servers.redis.clone(),
                port,
                role,
                has_clock: has_clocks,
                in_sentinel_group: index == 0 && ports.group.is_some(),
            };
            server(&redis::name(index), Part::Redis, Box::new(node));
        }
        let mine = Redis {
            program: servers.redis.clone(),
            port: ports.mine,
            role: Role::Mine,
            has_clock: false,
            in_sentinel_group: false,
        };
        server(redis::MINE, Part::Redis, Box::new(mine));
        members
    }

    /// Whether instances reach the servers by links, as they must for a replica.
    fn has_links(&self) -> bool {
        self.links || self.replica
    }

    /// The program of the instances: the one in the options, else this very program.
    fn instance_program(&self) -> Result<PathBuf, Failure> {
        match &self.program {
            Some(program) => Ok(program.clone()),
            None => std::env::current_exe().map_err(|e| unusable!("oversell's own program: {e}")),
        }
    }

    /// Opens the link to the main Redis for its replica and its Sentinel; `None` in a lab without a replica.
    fn replica_pair(&self, ports: &PortPlan) -> Result<Option<ProxiedReplica>, Failure> {
        let Some((replica, sentinel)) = ports.replica_and_sentinel else {
            return Ok(None);
        };
        let main = format!("127.0.0.1:{}", self.redis_ports[0]);
        let main = Arc::new(ProxyLink::open(redis::REPLICA, &redis::name(0), &main)?);
        Ok(Some(ProxiedReplica { main, replica, sentinel }))
    }

    /// The clocks of all Redis nodes; none in a lab without links. The error says why no clock can jump.
    fn clocks(&self, folder: &Folder, program: &Path) -> Result<Vec<Clock>, String> {
        if !self.has_links() {
            return Ok(Vec::new());
        }
        clock::install_library(&folder.path_of(""), program).map_err(|why| {
            localized!("拨动 Redis 时钟的课不能演：{why}", "lessons in which the clock of a Redis jumps are unavailable: {why}")
        })?;
        let nodes = self.redis_ports.iter().enumerate();
        Ok(nodes
            .map(|(index, &port)| Clock {
                file: folder.path_of(&redis::name(index)).join(clock::OFFSET_FILE),
                node: redis::name(index),
                port,
            })
            .collect())
    }

    fn nginx_member(&self, folder: &Folder, program: PathBuf, page: PathBuf) -> Member {
        let nginx = Box::new(Nginx { program, port: self.http_port, lan: self.lan, behind: self.instance_ports.clone(), page });
        let starts = self.has(Part::Nginx) && self.has(Part::Instances);
        Member::new(folder, nginx::NAME, nginx, Tier::Gate, starts)
    }

    /// Replicas and Sentinels of the main Redis at the port `main`; `in_sentinel_group` if the instances ask them.
    fn replicas_and_sentinels(
        &self,
        folder: &Folder,
        program: &Path,
        main: u16,
        replicas: &[(String, u16)],
        sentinels: &[u16],
        in_sentinel_group: bool,
    ) -> Vec<Member> {
        let server = |name: &str, server| Member::new(folder, name, server, Tier::Server, self.has(Part::Redis));
        let replica = |(name, port): &(String, u16)| {
            let role = Role::Replica { of: main };
            let replica = Redis { program: program.to_owned(), port: *port, role, has_clock: false, in_sentinel_group };
            server(name, Box::new(replica) as Box<dyn Server>)
        };
        let sentinel = |(n, &port): (usize, &u16)| {
            let (sentinels, replicas) = (sentinels.len(), replicas.len());
            let sentinel = Sentinel { program: program.to_owned(), port, main, sentinels, replicas, in_sentinel_group };
            server(&sentinel::name(n), Box::new(sentinel))
        };
        replicas.iter().map(replica).chain(sentinels.iter().enumerate().map(sentinel)).collect()
    }

    /// The instances, each configured with the addresses as it sees them.
    fn instance_members(
        &self,
        folder: &Folder,
        program: &Path,
        at: &Addresses,
        links: &[Arc<ProxyLink>],
        kinds: &[&'static str],
        main: Option<&ProxiedReplica>,
    ) -> impl Iterator<Item = Member> {
        let all = self.instance_ports.iter().enumerate();
        all.map(move |(n, &port)| {
            let name = instance::name(port);
            let visible = link::addresses_through_links(&name, &self.addresses_for_instance(n, at), links);
            let named = instance::cluster_members(at).chain(instance::cluster_members(&visible));
            // The Sentinel and the replica know the main Redis by the address of its link.
            let main = main.map(|of| instance::cluster_member(&redis::name(0), &of.main.proxy.address()));
            let named = named.chain(main);
            let members = ("OVERSELL__CLUSTER__MEMBERS".to_owned(), named.collect::<Vec<_>>().join(","));
            let strategy = self.strategy.clone();
            let strategy = strategy.map(|slug| ("OVERSELL__STOCK__STRATEGY".to_owned(), slug));
            let strategy: Vec<_> = strategy.into_iter().collect();
            let more = [&[members], &strategy[..], &self.env[..]].concat();
            let instance = Box::new(LabInstance {
                port,
                program: program.to_owned(),
                env: instance::environment(&visible, self.has(Part::Nginx), &more),
                faults: self.control.clone().map(|control| FaultControl {
                    control,
                    lab_json: folder.path_of(LAB_JSON),
                    kinds: kinds.to_vec(),
                }),
            });
            let wanted = self.has(Part::Instances);
            Member::new(folder, &name, instance, Tier::Instance, wanted)
        })
    }

    /// The addresses as this instance sees them: with one writer each it knows only its own database node.
    fn addresses_for_instance(&self, index: usize, at: &Addresses) -> Addresses {
        let own = at.mysql_nodes().nth(index % usize::from(self.galera));
        match (self.writers, own) {
            (Writers::Each, Some(own)) => Addresses { mysql: own.clone(), galera: Vec::new(), ..at.clone() },
            _ => at.clone(),
        }
    }

    /// The kinds of faults that this lab can inject and others cannot, as [`FaultControl`] has them.
    fn fault_kinds(&self, has_clocks: bool) -> Vec<&'static str> {
        let has = [("links", self.has_links()), ("replica", self.replica), ("clocks", has_clocks)];
        has.into_iter().filter_map(|(kind, has)| has.then_some(kind)).collect()
    }

    /// The addresses of all parts; every pid is 0.
    fn addresses(&self, ports: &PortPlan) -> Addresses {
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let process = |url: String| addresses::Process { url, pid: 0 };
        let mysql = |port: &u16| process(format!("mysql://root@127.0.0.1:{port}/test"));
        let redis = |port: u16| process(format!("redis://127.0.0.1:{port}"));
        let group = |of: fn(&SentinelGroup) -> Vec<u16>| {
            let ports = ports.group.as_ref().map(of).unwrap_or_default();
            ports.into_iter().map(redis).collect()
        };
        let zookeeper = ports.zookeeper.iter();
        let zookeeper: Vec<_> = zookeeper.map(|port| format!("127.0.0.1:{port}")).collect();
        let entry = match self.instance_ports.first() {
            Some(instance) if !self.has(Part::Nginx) => *instance,
            _ => self.http_port,
        };
        let instance = |port: &u16| addresses::InstanceAddress { name: instance::name(*port), url: url(*port), pid: 0 };
        Addresses {
            http: url(entry),
            instances: self.instance_ports.iter().map(instance).collect(),
            mysql: mysql(&ports.mysql[0]),
            galera: ports.mysql[1..].iter().map(mysql).collect(),
            redis: self.redis_ports.iter().map(|port| redis(*port)).collect(),
            zookeeper: addresses::ZooKeeper { connect: zookeeper.join(","), pid: 0 },
            etcd: ports.etcd.iter().map(|port| process(url(*port))).collect(),
            nginx: process(url(self.http_port)),
            mine: Some(redis(ports.mine)),
            replica: ports.replica_and_sentinel.map(|(replica, _)| redis(replica)),
            sentinel: ports.replica_and_sentinel.map(|(_, sentinel)| redis(sentinel)),
            replicas: group(|group| group.members[1..].iter().map(|(_, port)| *port).collect()),
            sentinels: group(|group| group.sentinels.clone()),
            phones: self.lan.then(lan_address).and_then(Result::ok).map(|ip| format!("http://{ip}:{}", self.http_port)),
            admin: admin_token(self.lan),
            versions: BTreeMap::new(),
            control: self.control.clone(),
        }
    }
}

/// This machine's address in its network; an error without a network. Connecting a UDP socket sends nothing.
fn lan_address() -> io::Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // A documentation address (RFC 5737), which belongs to nobody.
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9))?;
    Ok(socket.local_addr()?.ip())
}

/// The token from the environment; without one, a new one with `--lan`, else `None`.
fn admin_token(lan: bool) -> Option<Token> {
    let given = std::env::var(ADMIN_TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
    given.map(Token).or_else(|| lan.then(Token::fresh))
}
