//! The lab: real servers on loopback, the system's own programs, started here and stopped here and nowhere else.
//!
//! Tests, demo and `oversell lab` use the same one. A lab has ports that nobody else has (`ports.rs`), a folder of its
//! own (`folder.rs`), and one file for each kind of server that says how to start it and how to ask whether it is well.
//! What is started ends with the lab, however the lab ends (`process.rs`).

mod breakable;
mod clock;
mod fault;
mod folder;
mod instance;
mod mysql;
mod nginx;
mod options;
mod ports;
mod process;
mod proxy;
mod redis;
mod sentinel;
mod server;
mod user;
mod way;
mod zookeeper;

pub mod command;
pub mod doctor;

#[cfg(test)]
mod tests;

pub use options::{Options, Part, Servers, Writers};

use crate::{
    addresses::{Addresses, Process},
    fault::MemberState,
    terminal::failure::{Failure, unusable},
};
use clock::Clock;
use folder::Folder;
use futures::future::join_all;
use futures::stream::{FuturesUnordered, Stream};
use nix::sys::signal::Signal;
pub use ports::Port;
pub use proxy::{Condition, Piece, Proxy};
use sentinel::{Group, Replicated};
use server::{Member, Setting, Tier};
use std::{collections::HashSet, sync::Arc, time::Duration};
use tokio::task::JoinSet;
use way::Way;

/// How long an instance has for what is under way, once it is told to end.
const INSTANCE_PATIENCE: Duration = Duration::from_secs(10);
/// How long a server has to end well, where its data stay after it.
const SERVER_PATIENCE: Duration = Duration::from_secs(10);

/// A running lab. [`Lab::stop`] ends it in order; dropping it ends it at once. Nothing is left in either case.
#[derive(Debug)]
pub struct Lab {
    // In this order they are dropped: first the processes, then their folder, then their claim on the ports.
    members: Vec<Member>,
    ways: Vec<Arc<Way>>,
    clocks: Vec<Clock>,
    replicated: Option<Replicated>,
    group: Option<Group>,
    /// The members of the group that are cut off from the others.
    isolated: HashSet<String>,
    following: JoinSet<()>,
    folder: Folder,
    addresses: Addresses,
    setting: Setting,
    warning: Option<String>,
    unavailable: Vec<String>,
    _ports: Vec<Port>,
}

impl Lab {
    /// Where everything is. A part that was left out has its address too, and nobody listens there until
    /// [`restart`](Self::restart) starts it; its pid is 0.
    #[must_use]
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// The ways that can be cut, and where each begins: `8100-redis`, `127.0.0.1:41200`.
    pub fn ways(&self) -> impl Iterator<Item = (String, String)> {
        self.ways
            .iter()
            .map(|way| (way.name(), way.proxy.address()))
    }

    /// What the user should know of this lab: that its servers run as root, and why.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// The lessons that one of its servers cannot serve, each with the reason.
    #[must_use]
    pub fn unavailable(&self) -> &[String] {
        &self.unavailable
    }

    /// The process of a member, while it runs. Members are called `mysql`, `mysql-2` …, `redis`, `redis-2` …, `zookeeper`,
    /// `zookeeper-2` …, `nginx`, and by their names the instances.
    #[must_use]
    pub fn pid(&self, name: &str) -> Option<u32> {
        self.members.iter().find(|m| m.name == name)?.pid()
    }

    /// The ZooKeeper member that leads: of an ensemble, its leader; else the only one. None while none is elected.
    ///
    /// # Cancel safety
    ///
    /// Safe; it only asks.
    pub async fn zookeeper_leader(&self) -> Option<String> {
        let asked = self
            .addresses
            .zookeeper
            .connect
            .split(',')
            .map(zookeeper::leads);
        join_all(asked)
            .await
            .into_iter()
            .position(|leads| leads)
            .map(zookeeper::name)
    }

    /// `kill -9`, with all its children; returns once it is gone.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if nothing of this name runs.
    pub async fn kill(&self, name: &str) -> Result<(), Failure> {
        let process = self.member(name)?.running()?;
        process.signal_all(Signal::SIGKILL);
        process.gone().await;
        Ok(())
    }

    /// SIGTERM; returns once it is gone, after 10 s by force.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if nothing of this name runs.
    pub async fn terminate(&self, name: &str) -> Result<(), Failure> {
        self.member(name)?.running()?.stop(INSTANCE_PATIENCE).await;
        Ok(())
    }

    /// SIGSTOP: it holds what it holds and does nothing, as in a long garbage collection.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if nothing of this name runs.
    pub fn pause(&self, name: &str) -> Result<(), Failure> {
        self.member(name)?.running()?.signal_all(Signal::SIGSTOP);
        Ok(())
    }

    /// SIGCONT: it goes on after [`pause`](Self::pause).
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if nothing of this name runs.
    pub fn resume(&self, name: &str) -> Result<(), Failure> {
        self.member(name)?.running()?.signal_all(Signal::SIGCONT);
        Ok(())
    }

    /// Closes all connections on these ways, and those that are made from now on. `redis` means the ways of all instances
    /// to it, `8100-redis` that of one. Only a lab with [`Options::ways`] has them.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if there is no such way.
    pub fn cut(&self, way: &str) -> Result<(), Failure> {
        self.condition(way, Condition::Cut)
    }

    /// Answers on these ways come so much later.
    ///
    /// # Errors
    ///
    /// As [`cut`](Self::cut).
    pub fn slow(&self, way: &str, by: Duration) -> Result<(), Failure> {
        self.condition(way, Condition::Slow(by))
    }

    /// The clock of this Redis node jumps forward by so much, and stays ahead until it is [set right](Self::set_right) or the
    /// node is started again; returns once the node says so. Only a lab with [`Options::ways`] has such clocks.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if there is no such clock, or its node does not answer.
    pub async fn jump(&self, node: &str, by: Duration) -> Result<(), Failure> {
        self.member(node)?.running()?;
        let clock = self.clock(node).ok_or_else(|| {
            let none = "its clock cannot jump: that takes a Redis node and `oversell lab --ways`, which says at its start whether clocks can jump";
            unusable!("{node}: {none}")
        })?;
        clock.set(by)?;
        clock.shows(by).await
    }

    /// The clock of this Redis node goes right again; whether it has one that can jump.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if its node runs, and does not answer.
    pub async fn set_right(&self, node: &str) -> Result<bool, Failure> {
        let Some(clock) = self.clock(node) else {
            return Ok(false);
        };
        clock.set(Duration::ZERO)?;
        if self.member(node)?.state() == MemberState::Running {
            clock.shows(Duration::ZERO).await?;
        }
        Ok(true)
    }

    fn clock(&self, node: &str) -> Option<&Clock> {
        self.clocks.iter().find(|clock| clock.node == node)
    }

    /// These ways are as they were.
    ///
    /// # Errors
    ///
    /// As [`cut`](Self::cut).
    pub fn mend(&self, way: &str) -> Result<(), Failure> {
        self.condition(way, Condition::Open)
    }

    fn condition(&self, name: &str, condition: Condition) -> Result<(), Failure> {
        let is_meant = |way: &&Arc<Way>| way.is_called(name);
        let ways: Vec<_> = self.ways.iter().filter(is_meant).collect();
        ways.iter().for_each(|way| way.proxy.becomes(condition));
        if ways.is_empty() {
            Err(self.no_way(name))
        } else {
            Ok(())
        }
    }

    /// Ends the ZooKeeper session of this instance, as the server does where it hears nothing for too long.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if the instance has no way to ZooKeeper or no session, or the server does not answer.
    pub async fn expire(&self, instance: &str) -> Result<(), Failure> {
        let to_zookeeper = |way: &&Arc<Way>| way.is_of(instance) && zookeeper::is_name(&way.server);
        let ways: Vec<_> = self.ways.iter().filter(to_zookeeper).collect();
        if ways.is_empty() {
            return Err(self.no_way(&format!("{instance}-{}", zookeeper::NAME)));
        }
        // The instance would take its session back.
        let before: Vec<_> = ways.iter().map(|way| way.proxy.condition()).collect();
        ways.iter()
            .for_each(|way| way.proxy.becomes(Condition::Cut));
        let mut ended = Ok(false);
        for way in &ways {
            if matches!(ended, Ok(false)) {
                ended = way.expire().await;
            }
        }
        ways.iter()
            .zip(before)
            .for_each(|(way, before)| way.proxy.becomes(before));
        match ended? {
            true => Ok(()),
            false => Err(unusable!("instance {instance} has no session")),
        }
    }

    /// Has the Sentinel promote the replica of the main Redis; returns once the instances' ways lead there. Only a lab with
    /// [`Options::replica`] has one.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if there is no replica, or the Sentinel does not promote it.
    pub async fn promote(&self) -> Result<(), Failure> {
        let of = self.replicated.as_ref().ok_or_else(no_replica)?;
        tokio::try_join!(self.promoted(), sentinel::promote(of.sentinel)).map(drop)
    }

    /// Has the Sentinels promote this one, which follows: a planned fail-over. Returns once all Sentinels that run say that it
    /// leads. Only a lab with [`Options::sentinels`] has them.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if there are no Sentinels, or they do not promote it.
    pub async fn fail_over(&self, to: &str) -> Result<(), Failure> {
        let group = self.group.as_ref();
        let group = group.ok_or_else(|| unusable!("this lab has no Sentinels that instances ask: `oversell lab --sentinels 3` starts one that has"))?;
        let running = |(name, port): (String, u16)| self.pid(&name).map(|_| port);
        let sentinels = group.sentinels.iter().enumerate();
        let all = sentinels.map(|(n, port)| (sentinel::name(n), *port));
        let all = all.chain(group.members.iter().cloned());
        group
            .fail_over(to, &all.filter_map(running).collect::<Vec<_>>())
            .await
    }

    /// Cuts a main Redis or a replica off from the other members of its group and from the Sentinels, and from nobody else. Only a
    /// lab with [`Options::sentinels`] has a group.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if it is in no group, or does not answer.
    pub async fn isolate(&mut self, member: &str) -> Result<(), Failure> {
        let none = || unusable!("{member} is in no group: `oversell lab --sentinels 3` has one");
        let group = self.group.as_ref().ok_or_else(none)?;
        group.isolate(member, true).await?;
        self.isolated.insert(member.to_owned());
        Ok(())
    }

    /// It is one of its group again; whether it was cut off.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if it does not answer.
    pub async fn rejoin(&mut self, member: &str) -> Result<bool, Failure> {
        if let Some(group) = self
            .group
            .as_ref()
            .filter(|_| self.isolated.contains(member))
        {
            group.isolate(member, false).await?;
        }
        Ok(self.isolated.remove(member))
    }

    fn is_grouped(&self, member: &str) -> bool {
        let mut members = self.group.iter().flat_map(|group| &group.members);
        members.any(|(name, _)| name == member)
    }

    /// Which Redis leads, as the Sentinels say that the instances ask; `redis` where there are none.
    ///
    /// # Cancel safety
    ///
    /// Safe; it only asks.
    pub async fn main_redis(&self) -> Option<String> {
        match &self.group {
            Some(group) => group.leader().await.map(str::to_owned),
            None => Some(redis::name(0)),
        }
    }

    /// Makes the first Redis the main one again after a promotion, and the other one its replica; returns once that follows.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if there is no replica, or the Sentinel does not promote it.
    pub async fn restore(&self) -> Result<(), Failure> {
        let of = self.replicated.as_ref().ok_or_else(no_replica)?;
        sentinel::restore(of, &self.ways_to_main()).await
    }

    /// Waits, 20 s at most, until the instances' ways lead to another main Redis: the Sentinel has promoted its replica.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if it does not.
    pub async fn promoted(&self) -> Result<(), Failure> {
        sentinel::promoted(&self.ways_to_main()).await
    }

    /// The instances' ways to the main Redis.
    fn ways_to_main(&self) -> Vec<Arc<Way>> {
        let is_one = |way: &&Arc<Way>| way.server == redis::name(0) && !way.is_of(redis::REPLICA);
        self.ways.iter().filter(is_one).cloned().collect()
    }

    fn no_way(&self, name: &str) -> Failure {
        let ways: Vec<_> = self.ways.iter().map(|way| way.name()).collect();
        Failure::Unusable(match ways.is_empty() {
            true => {
                "this lab has no ways that can be cut: `oversell lab --ways` starts one that has"
                    .to_owned()
            }
            false => {
                format!(
                    "the lab has no way {name}; it has {}, and by their servers those of all",
                    ways.join(", ")
                )
            }
        })
    }

    /// Starts a member again on its port and with its data, and waits until it is healthy; one that still runs is
    /// terminated first. An instance need only be alive, not ready, while a server is down; so does a member of a
    /// ZooKeeper ensemble of which no majority runs. A node of a Galera cluster joins the others, of which one must run.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] if there is no such member or it does not become healthy.
    pub async fn restart(&mut self, name: &str) -> Result<(), Failure> {
        let complete = self.has_what_it_needs(name);
        let place = self
            .members
            .iter()
            .position(|m| m.name == name)
            .ok_or_else(|| self.unknown(name))?;
        if let Some(clock) = self.clock(name).filter(|clock| clock.has_jumped()) {
            clock.set(Duration::ZERO)?;
        }
        let member = &mut self.members[place];
        if let Some(process) = &member.process {
            process.stop(INSTANCE_PATIENCE).await;
        }
        member.start(complete, &self.setting).await?;
        self.isolated.remove(name);
        self.publish()
    }

    /// The members that end, each when it does: a line on each, with its name and how it ended.
    pub fn ends(&self) -> impl Stream<Item = String> + use<> {
        let running = self.members.iter().filter(|m| m.pid().is_some());
        let running = running.filter_map(|m| Some((m.title(), m.process.as_ref()?.watch())));
        running
            .map(async |(title, end)| format!("{title} has ended: {}", end.await))
            .collect::<FuturesUnordered<_>>()
    }

    /// Stops everything: nginx, so that no request comes in, then the instances, which finish what is under way (10 s
    /// at most), then the servers. Returns once no process is left.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills what is left.
    pub async fn stop(self) {
        self.folder.unpublish();
        let servers = if self.folder.stays() {
            SERVER_PATIENCE
        } else {
            Duration::ZERO
        };
        for (tier, patience) in [
            (Tier::Gate, SERVER_PATIENCE),
            (Tier::Instance, INSTANCE_PATIENCE),
            (Tier::Server, servers),
        ] {
            let running = self
                .members
                .iter()
                .filter(|m| m.tier == tier)
                .filter_map(|m| m.process.as_ref());
            join_all(running.map(|process| process.stop(patience))).await;
        }
    }

    /// Notes the processes in the addresses, and the addresses in the folder.
    fn publish(&mut self) -> Result<(), Failure> {
        let mut addresses = self.addresses.clone();
        for (name, _, pid) in processes(&mut addresses) {
            *pid = self.pid(&name).unwrap_or_default();
        }
        self.addresses = addresses;
        self.folder.publish(&self.addresses)
    }

    /// Whether what this member stands on is up: for one of an ensemble, with it, a majority; for others, every server.
    fn has_what_it_needs(&self, name: &str) -> bool {
        let mut servers = self.members.iter().filter(|m| m.tier == Tier::Server);
        if !zookeeper::is_name(name) {
            return servers.all(|m| m.pid().is_some());
        }
        let ensemble: Vec<_> = servers.filter(|m| zookeeper::is_name(&m.name)).collect();
        let up = ensemble
            .iter()
            .filter(|m| m.name == name || m.pid().is_some())
            .count();
        2 * up > ensemble.len()
    }

    fn member(&self, name: &str) -> Result<&Member, Failure> {
        self.members
            .iter()
            .find(|m| m.name == name)
            .ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> Failure {
        let members: Vec<_> = self.members.iter().map(|m| m.name.as_str()).collect();
        unusable!("the lab has no {name}; it has {}", members.join(", "))
    }
}

/// The processes of a lab: the name, the address and the number of each.
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
    let zookeeper = &mut at.zookeeper;
    all.push((
        zookeeper::NAME.to_owned(),
        &zookeeper.connect,
        &mut zookeeper.pid,
    ));
    all.extend(at.replica.as_mut().map(|at| one(redis::REPLICA, at)));
    all.extend(at.sentinel.as_mut().map(|at| one(sentinel::SENTINEL, at)));
    let replicas = at.replicas.iter_mut().enumerate();
    all.extend(replicas.map(|(n, at)| one(redis::replica(n), at)));
    let sentinels = at.sentinels.iter_mut().enumerate();
    all.extend(sentinels.map(|(n, at)| one(sentinel::name(n), at)));
    all
}

fn no_replica() -> Failure {
    unusable!("this lab has no replica: `oversell lab --replica` starts one that has")
}
