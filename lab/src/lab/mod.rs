//! The lab: real servers on loopback, the system's own programs, started here and stopped here and nowhere else.
//!
//! Tests, demo and `oversell lab` use the same one. A lab has ports that nobody else has (`ports.rs`), a folder of its
//! own (`folder.rs`), and one file for each kind of server that says how to start it and how to ask whether it is well.
//! What is started ends with the lab, however the lab ends (`process.rs`).

mod breakable;
mod clock;
mod etcd;
mod fault;
mod folder;
mod instance;
mod link;
mod mysql;
mod nginx;
mod options;
mod plan;
mod port_plan;
mod ports;
mod process;
mod redis;
mod sentinel;
mod server;
mod start;
mod user;
mod zookeeper;

pub mod command;
pub mod doctor;

#[cfg(test)]
mod tests;

pub use options::{Options, Part, Servers, Writers};

use crate::{
    addresses::{Addresses, Process},
    clients::proxy::Condition,
    fault::MemberState,
    terminal::failure::{Failure, unusable},
};
use clock::Clock;
use folder::Folder;
use futures::future::join_all;
use futures::stream::{FuturesUnordered, Stream};
use link::ProxyLink;
use nix::sys::signal::Signal;
pub use ports::Port;
use sentinel::{ProxiedReplica, SentinelGroup};
use server::{Member, MemberSettings, Tier, has_base_name};
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::task::JoinSet;

/// After SIGTERM an instance may finish its requests and release its locks for this long: `server.shutdown_ms` and a quarter.
const INSTANCE_STOP_TIMEOUT: Duration = Duration::from_secs(13);
/// After SIGTERM a server may write its data for this long.
const SERVER_STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// A running lab. [`Lab::stop`] stops it in order; dropping it kills everything. No process is left in either case.
#[derive(Debug)]
pub struct Lab {
    // Fields are dropped in this order: processes, then their folder, then the claims on their ports.
    members: Vec<Member>,
    links: Vec<Arc<ProxyLink>>,
    clocks: Vec<Clock>,
    replica_pair: Option<ProxiedReplica>,
    group: Option<SentinelGroup>,
    /// Members of the group that are cut off from the others.
    isolated: HashSet<String>,
    follower_tasks: JoinSet<()>,
    folder: Folder,
    addresses: Addresses,
    settings: MemberSettings,
    warning: Option<String>,
    unavailable: Vec<String>,
    _ports: Vec<Port>,
}

impl Lab {
    /// The addresses of all parts. A part that was left out has an address too; its pid is 0 until
    /// [`restart`](Self::restart) starts it.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The links that can be cut, each with its own address: `8100-redis`, `127.0.0.1:41200`.
    pub fn links(&self) -> impl Iterator<Item = (String, String)> {
        self.links.iter().map(|link| (link.name(), link.proxy.address()))
    }

    /// A warning for the user that the servers run as root, and why; `None` if they do not.
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Lessons that this lab cannot serve, each with the reason.
    pub fn unavailable_lessons(&self) -> &[String] {
        &self.unavailable
    }

    /// The pid of a member; `None` if it does not run or there is none. Members are named `mysql`, `mysql-2` …, and so `redis`,
    /// `zookeeper`, `etcd`, `replica` and `sentinel`; `redis-mine`, `nginx`; instances by their ports.
    pub fn pid(&self, name: &str) -> Option<u32> {
        self.members.iter().find(|m| m.name == name)?.pid()
    }

    /// The leader of the ZooKeeper ensemble, or the only server. None while no leader is elected.
    pub async fn zookeeper_leader(&self) -> Option<String> {
        let checks = self.addresses.zookeeper.connect.split(',').map(zookeeper::is_leader);
        join_all(checks).await.into_iter().position(|leads| leads).map(zookeeper::name)
    }

    /// The leader of the etcd cluster, or the only node. None while no leader is elected.
    pub async fn etcd_leader(&self) -> Option<String> {
        let checks = self.addresses.etcd.iter().map(|node| etcd::is_leader(&node.url));
        join_all(checks).await.into_iter().position(|leads| leads).map(etcd::name)
    }

    /// Kills a member and its children (`kill -9`); returns once they are gone. Fails if it does not run, as the next three do.
    pub async fn kill(&self, name: &str) -> Result<(), Failure> {
        let process = self.member(name)?.running_process()?;
        process.signal_group(Signal::SIGKILL);
        process.wait_until_gone().await;
        Ok(())
    }

    /// Sends SIGTERM, and SIGKILL after 13 s; returns once the member is gone.
    pub async fn terminate(&self, name: &str) -> Result<(), Failure> {
        self.member(name)?.running_process()?.stop(INSTANCE_STOP_TIMEOUT).await;
        Ok(())
    }

    /// Sends SIGSTOP, and does not wait until it works: the member keeps its locks and connections and does nothing, as in a long
    /// garbage collection.
    pub fn pause(&self, name: &str) -> Result<(), Failure> {
        self.member(name)?.running_process()?.signal_group(Signal::SIGSTOP);
        Ok(())
    }

    /// Sends SIGCONT: the member goes on after [`pause`](Self::pause).
    pub fn resume(&self, name: &str) -> Result<(), Failure> {
        self.member(name)?.running_process()?.signal_group(Signal::SIGCONT);
        Ok(())
    }

    /// Closes all connections on these links, and new ones at once. `redis` means the links of all instances to it, `8100-redis`
    /// that of one, `replica-redis` the replica's. Only a lab with [`Options::links`] or [`Options::replica`] has links.
    pub fn cut(&self, link: &str) -> Result<(), Failure> {
        self.set_condition(link, Condition::Cut)
    }

    /// Delays the answers on these links.
    pub fn slow(&self, link: &str, by: Duration) -> Result<(), Failure> {
        self.set_condition(link, Condition::Slow(by))
    }

    /// Moves the clock of a Redis node to this much ahead of ours, until [`reset_clock`](Self::reset_clock) or a restart of the
    /// node; returns once the node shows the new time. Only a lab that has links has such clocks.
    pub async fn jump(&self, node: &str, by: Duration) -> Result<(), Failure> {
        self.member(node)?.running_process()?;
        let clock = self.clock(node).ok_or_else(|| {
            let none = "its clock cannot jump: only Redis nodes of `oversell lab --links` can, and the lab says at its start if they cannot";
            unusable!("{node}: {none}")
        })?;
        clock.set_offset(by)?;
        clock.wait_until_offset_is_shown(by).await
    }

    /// Sets the clock of a Redis node right, and waits until a running one shows it. False if the node has no clock that can
    /// jump; true also for a clock that was right.
    pub async fn reset_clock(&self, node: &str) -> Result<bool, Failure> {
        let Some(clock) = self.clock(node) else {
            return Ok(false);
        };
        clock.set_offset(Duration::ZERO)?;
        if self.member(node)?.state() == MemberState::Running {
            clock.wait_until_offset_is_shown(Duration::ZERO).await?;
        }
        Ok(true)
    }

    /// The clock of this Redis node; `None` if it cannot jump.
    fn clock(&self, node: &str) -> Option<&Clock> {
        self.clocks.iter().find(|clock| clock.node == node)
    }

    /// Undoes [`cut`](Self::cut) and [`slow`](Self::slow): these links forward again, without a delay.
    pub fn mend(&self, link: &str) -> Result<(), Failure> {
        self.set_condition(link, Condition::Open)
    }

    /// Sets the condition of all links that this name means; fails if there is none.
    fn set_condition(&self, name: &str, condition: Condition) -> Result<(), Failure> {
        let is_meant = |link: &&Arc<ProxyLink>| link.is_meant_by(name);
        let links: Vec<_> = self.links.iter().filter(is_meant).collect();
        links.iter().for_each(|link| link.proxy.set_condition(condition));
        if links.is_empty() { Err(self.unknown_link(name)) } else { Ok(()) }
    }

    /// Ends the ZooKeeper sessions of this instance, its own and those of the actors on it, as the server does when it hears
    /// nothing for too long; its links to ZooKeeper are cut meanwhile. Fails without links, or if none of the sessions was live.
    pub async fn expire(&self, instance: &str) -> Result<(), Failure> {
        let to_zookeeper = |link: &&Arc<ProxyLink>| link.belongs_to(instance) && has_base_name(&link.server, zookeeper::NAME);
        let links: Vec<_> = self.links.iter().filter(to_zookeeper).collect();
        if links.is_empty() {
            return Err(self.unknown_link(&format!("{instance}-{}", zookeeper::NAME)));
        }
        // Otherwise the instance would reconnect and keep its session.
        let before: Vec<_> = links.iter().map(|link| link.proxy.condition()).collect();
        links.iter().for_each(|link| link.proxy.set_condition(Condition::Cut));
        let expired = join_all(links.iter().map(|link| link.expire_sessions())).await;
        links.iter().zip(before).for_each(|(link, before)| link.proxy.set_condition(before));
        if expired.iter().any(|ended| matches!(ended, Ok(true))) {
            return Ok(());
        }
        // A member that is down has no session, which went on over another one.
        expired.into_iter().collect::<Result<Vec<_>, _>>()?;
        Err(unusable!("instance {instance} has no ZooKeeper session"))
    }

    /// Makes the Sentinel promote the replica of the main Redis; returns once the instances' links lead there, and fails after
    /// 20 s. Only a lab with [`Options::replica`] has a replica.
    pub async fn promote(&self) -> Result<(), Failure> {
        let of = self.replica_pair.as_ref().ok_or_else(no_replica)?;
        tokio::try_join!(self.wait_until_promoted(), sentinel::promote(of.sentinel)).map(drop)
    }

    /// Makes the Sentinels promote this replica: a planned fail-over. Returns once every running Sentinel names it as the
    /// leader; fails if it leads already. Only a lab with [`Options::sentinels`] has Sentinels.
    pub async fn fail_over(&self, to: &str) -> Result<(), Failure> {
        let group = self.group.as_ref();
        let group = group.ok_or_else(|| {
            unusable!("this lab has no Sentinels for its instances: start one with `oversell lab --sentinels 3`")
        })?;
        let running = |(name, port): (String, u16)| self.pid(&name).map(|_| port);
        let sentinels = group.sentinels.iter().enumerate();
        let all = sentinels.map(|(n, port)| (sentinel::name(n), *port));
        let all = all.chain(group.members.iter().cloned());
        group.fail_over(to, &all.filter_map(running).collect::<Vec<_>>()).await
    }

    /// Cuts a main Redis or replica off from the others of its group and from the Sentinels. Clients still reach it.
    /// Only a lab with [`Options::sentinels`] has a group.
    pub async fn isolate(&mut self, member: &str) -> Result<(), Failure> {
        let none = || unusable!("{member} is in no group: start a lab with `--sentinels 3`");
        let group = self.group.as_ref().ok_or_else(none)?;
        group.set_isolated(member, true).await?;
        self.isolated.insert(member.to_owned());
        Ok(())
    }

    /// Undoes [`isolate`](Self::isolate). Does nothing and returns false if the member is not cut off.
    pub async fn rejoin(&mut self, member: &str) -> Result<bool, Failure> {
        if let Some(group) = self.group.as_ref().filter(|_| self.isolated.contains(member)) {
            group.set_isolated(member, false).await?;
        }
        Ok(self.isolated.remove(member))
    }

    /// Whether this is the main Redis or a replica of a group with Sentinels.
    fn is_grouped(&self, member: &str) -> bool {
        let mut members = self.group.iter().flat_map(|group| &group.members);
        members.any(|(name, _)| name == member)
    }

    /// The name of the Redis that leads, by the Sentinels that the instances ask; `None` if no Sentinel answers. In a lab without
    /// them `redis`, even after a promotion.
    pub async fn main_redis(&self) -> Option<String> {
        match &self.group {
            Some(group) => group.leader_name().await.map(str::to_owned),
            None => Some(redis::name(0)),
        }
    }

    /// After a promotion, makes the first Redis the main one again and the other its replica; returns once the replica
    /// has caught up.
    pub async fn restore(&self) -> Result<(), Failure> {
        let of = self.replica_pair.as_ref().ok_or_else(no_replica)?;
        sentinel::restore(of, &self.links_to_main()).await
    }

    /// Waits until a promotion after this call has redirected all the instances' links; fails after 20 s.
    pub async fn wait_until_promoted(&self) -> Result<(), Failure> {
        sentinel::wait_until_promoted(&self.links_to_main()).await
    }

    /// The links from the instances to the main Redis, that of the replica left out.
    fn links_to_main(&self) -> Vec<Arc<ProxyLink>> {
        let leads_to_main = |link: &&Arc<ProxyLink>| link.server == redis::name(0) && !link.belongs_to(redis::REPLICA);
        self.links.iter().filter(leads_to_main).cloned().collect()
    }

    /// The failure for a name of a link, with the names that the lab has.
    fn unknown_link(&self, name: &str) -> Failure {
        let links: Vec<_> = self.links.iter().map(|link| link.name()).collect();
        Failure::Unusable(match links.is_empty() {
            true => "this lab has no links that can be cut: start one with `oversell lab --links`".to_owned(),
            false => {
                format!(
                    "the lab has no link {name}; it has {}; the name of a server means the links of all instances",
                    links.join(", ")
                )
            }
        })
    }

    /// Starts a member again on its port, with its data, and waits until it is healthy. One that still runs is terminated first.
    /// Its clock is then right, and it is no longer isolated. While a server is down, an instance need only be alive; the same
    /// holds for a member of ZooKeeper or etcd without a majority. A Galera node joins the others, of which one must run.
    pub async fn restart(&mut self, name: &str) -> Result<(), Failure> {
        let dependencies_up = self.dependencies_are_up(name);
        let place = self.members.iter().position(|m| m.name == name).ok_or_else(|| self.unknown_member(name))?;
        if let Some(clock) = self.clock(name).filter(|clock| clock.has_jumped()) {
            clock.set_offset(Duration::ZERO)?;
        }
        let member = &mut self.members[place];
        if let Some(process) = &member.process {
            process.stop(INSTANCE_STOP_TIMEOUT).await;
        }
        member.start(dependencies_up, &self.settings).await?;
        self.isolated.remove(name);
        self.publish()
    }

    /// Yields a line when a member that runs now exits, with its name and its exit status; members that start later are left out.
    pub fn member_exits(&self) -> impl Stream<Item = String> + use<> {
        let running = self.members.iter().filter(|m| m.pid().is_some());
        let running = running.filter_map(|m| Some((m.title(), m.process.as_ref()?.wait_until_gone())));
        running.map(async |(title, end)| format!("{title} has ended: {}", end.await)).collect::<FuturesUnordered<_>>()
    }

    /// Stops nginx, then the instances, which finish their requests (10 s at most), then the servers, which are killed if
    /// the folder is unnamed. Returns once no process is left. Dropping the future kills what is left.
    pub async fn stop(self) {
        self.folder.unpublish();
        let servers = if self.folder.is_kept() { SERVER_STOP_TIMEOUT } else { Duration::ZERO };
        for (tier, grace) in [(Tier::Gate, SERVER_STOP_TIMEOUT), (Tier::Instance, INSTANCE_STOP_TIMEOUT), (Tier::Server, servers)]
        {
            let running = self.members.iter().filter(|m| m.tier == tier).filter_map(|m| m.process.as_ref());
            join_all(running.map(|process| process.stop(grace))).await;
        }
    }

    /// Writes the current pids into the addresses, 0 for a member that does not run, and the addresses into `lab.json`.
    fn publish(&mut self) -> Result<(), Failure> {
        let mut addresses = self.addresses.clone();
        for (name, _, pid) in processes(&mut addresses) {
            *pid = self.pid(&name).unwrap_or_default();
        }
        self.addresses = addresses;
        self.folder.publish(&self.addresses)
    }

    /// Whether the servers that this member needs are up: for a server of ZooKeeper or etcd a majority of its ensemble, itself
    /// counted as up; for all others every other server.
    fn dependencies_are_up(&self, name: &str) -> bool {
        let mut servers = self.members.iter().filter(|m| m.tier == Tier::Server);
        let Some(kind) = [zookeeper::NAME, etcd::NAME].into_iter().find(|kind| has_base_name(name, kind)) else {
            return servers.all(|m| m.name == name || m.pid().is_some());
        };
        let ensemble: Vec<_> = servers.filter(|m| has_base_name(&m.name, kind)).collect();
        let up = ensemble.iter().filter(|m| m.name == name || m.pid().is_some()).count();
        2 * up > ensemble.len()
    }

    /// The member with this name, or the failure that names all members.
    fn member(&self, name: &str) -> Result<&Member, Failure> {
        self.members.iter().find(|m| m.name == name).ok_or_else(|| self.unknown_member(name))
    }

    /// The failure for a name of a member, with the names that the lab has.
    fn unknown_member(&self, name: &str) -> Failure {
        let members: Vec<_> = self.members.iter().map(|m| m.name.as_str()).collect();
        unusable!("the lab has no {name}; it has {}", members.join(", "))
    }
}

/// Name, address and pid of every process of a lab.
fn processes(at: &mut Addresses) -> Vec<(String, &str, &mut u32)> {
    fn one(name: impl Into<String>, at: &mut Process) -> (String, &str, &mut u32) {
        (name.into(), &at.url, &mut at.pid)
    }
    let mut all = vec![one(nginx::NAME, &mut at.nginx)];
    let instances = at.instances.iter_mut();
    all.extend(instances.map(|at| (at.name.clone(), at.url.as_str(), &mut at.pid)));
    all.push(one(mysql::NAME, &mut at.mysql));
    let nodes = at.galera.iter_mut().enumerate();
    all.extend(nodes.map(|(n, node)| one(mysql::name(n + 1), node)));
    let nodes = at.redis.iter_mut().enumerate();
    all.extend(nodes.map(|(n, node)| one(redis::name(n), node)));
    all.extend(at.mine.as_mut().map(|at| one(redis::MINE, at)));
    let zookeeper = &mut at.zookeeper;
    all.push((zookeeper::NAME.to_owned(), &zookeeper.connect, &mut zookeeper.pid));
    let nodes = at.etcd.iter_mut().enumerate();
    all.extend(nodes.map(|(n, node)| one(etcd::name(n), node)));
    all.extend(at.replica.as_mut().map(|at| one(redis::REPLICA, at)));
    all.extend(at.sentinel.as_mut().map(|at| one(sentinel::SENTINEL, at)));
    let replicas = at.replicas.iter_mut().enumerate();
    all.extend(replicas.map(|(n, at)| one(redis::replica_name(n), at)));
    let sentinels = at.sentinels.iter_mut().enumerate();
    all.extend(sentinels.map(|(n, at)| one(sentinel::name(n), at)));
    all
}

fn no_replica() -> Failure {
    unusable!("this lab has no replica: start one with `oversell lab --replica`")
}
