//! The ports of a lab: which number each server gets, and the claims on all of them.

use super::{
    Options, etcd, mysql,
    ports::Port,
    redis,
    sentinel::{self, SentinelGroup},
    zookeeper::{self, PeerPorts},
};
use crate::terminal::failure::Failure;

/// Replicas of a main Redis with Sentinels; two, so that a promoted one still has a replica.
const GROUP_REPLICAS: usize = 2;

/// The ports for which the options have no field of their own, and the claims on all ports of the lab.
pub(super) struct PortPlan {
    pub(super) mysql: Vec<u16>,
    /// The ports of Galera nodes among themselves; empty for a single server.
    pub(super) nodes: Vec<mysql::PeerPorts>,
    pub(super) zookeeper: Vec<u16>,
    /// The ports of ZooKeeper's members among themselves; empty for a single server.
    pub(super) peers: Vec<PeerPorts>,
    pub(super) etcd: Vec<u16>,
    /// The ports of etcd's nodes among themselves.
    pub(super) etcd_peers: Vec<u16>,
    /// Ports of the replica and of its Sentinel.
    pub(super) replica_and_sentinel: Option<(u16, u16)>,
    /// Ports of a main Redis whose instances ask Sentinels, of its replicas and Sentinels.
    pub(super) group: Option<SentinelGroup>,
    /// The port of the Redis that students' own locks are graded on.
    pub(super) mine: u16,
    pub(super) claimed: Vec<Port>,
}

impl Options {
    /// Claims every port, and replaces an option of 0 by the number that was claimed.
    pub(super) fn claim_ports(&mut self) -> Result<PortPlan, Failure> {
        let mut all = Vec::new();
        // Keeps the claim, and returns the number; 0 claims a free port.
        let mut claim = |port: u16, server: &str, option: &str| {
            let claimed = Port::claim(port, server, option)?;
            let number = claimed.number();
            all.push(claimed);
            Ok::<_, Failure>(number)
        };
        let wanted = self.requested_ports().into_iter();
        let claimed: Vec<u16> = wanted.map(|(server, port, option)| claim(port, &server, option)).collect::<Result<_, _>>()?;
        let mut claimed = claimed.into_iter();
        let mut next = |ports: usize| claimed.by_ref().take(ports).collect::<Vec<_>>();
        self.http_port = next(1)[0];
        self.instance_ports = next(self.instance_ports.len());
        let mysql = next(self.galera.into());
        self.redis_ports = next(self.redis_ports.len());
        let (zookeeper, etcd) = (next(self.zookeeper.into()), next(self.etcd.into()));
        let mut free = |server: &str| claim(0, server, "");
        // Members of an ensemble or a cluster have further ports among themselves.
        let members = |servers| if servers > 1 { servers } else { 0 };
        Ok(PortPlan {
            mysql,
            nodes: (0..members(self.galera))
                .map(|_| {
                    Ok(mysql::PeerPorts {
                        group_port: free(mysql::NAME)?,
                        ist_port: free(mysql::NAME)?,
                        sst_port: free(mysql::NAME)?,
                    })
                })
                .collect::<Result<_, Failure>>()?,
            zookeeper,
            peers: (0..members(self.zookeeper))
                .map(|_| Ok(PeerPorts { quorum: free(zookeeper::NAME)?, election: free(zookeeper::NAME)? }))
                .collect::<Result<_, Failure>>()?,
            etcd,
            etcd_peers: (0..self.etcd).map(|_| free(etcd::NAME)).collect::<Result<_, _>>()?,
            mine: free(redis::MINE)?,
            replica_and_sentinel: match self.replica {
                true => Some((free(redis::REPLICA)?, free(sentinel::SENTINEL)?)),
                false => None,
            },
            group: match self.sentinels {
                0 => None,
                sentinels => {
                    let main = Ok((redis::name(0), self.redis_ports[0]));
                    let replicas = (0..GROUP_REPLICAS).map(|n| Ok((redis::replica_name(n), free(redis::REPLICA)?)));
                    let members = [main].into_iter().chain(replicas);
                    Some(SentinelGroup {
                        members: members.collect::<Result<_, Failure>>()?,
                        sentinels: (0..sentinels).map(|_| free(sentinel::SENTINEL)).collect::<Result<_, _>>()?,
                    })
                }
            },
            claimed: all,
        })
    }
}
