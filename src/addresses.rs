//! Where a running lab's servers are: the contents of `target/lab/lab.json`.

use serde::{Deserialize, Serialize};

/// Every address of a lab. The fields are those of CONTRACT section 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Addresses {
    /// Where to send requests: nginx, or the only instance.
    pub http: String,
    /// The instances behind it.
    pub instances: Vec<Instance>,
    /// The database.
    pub mysql: Process,
    /// Independent Redis nodes; the first is the main one.
    pub redis: Vec<Process>,
    /// The ZooKeeper server or ensemble.
    pub zookeeper: ZooKeeper,
    /// The load balancer.
    pub nginx: Process,
}

/// One instance of the service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Its name, as header `x-instance` gives it.
    pub name: String,
    /// Its address.
    pub url: String,
    /// Its process.
    pub pid: u32,
}

/// A server that is known by an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its address.
    pub url: String,
    /// Its process.
    pub pid: u32,
}

/// A ZooKeeper server or ensemble, known by a connect string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZooKeeper {
    /// `host:port[,host:port…]`.
    pub connect: String,
    /// Its process, or that of the ensemble's first member.
    pub pid: u32,
}
