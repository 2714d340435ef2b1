//! Where the servers come from: the lab starts them, for this run alone.

use oversell::{
    failure::Failure,
    lab::{Lab, Options, Part},
};
use sqlx::{Connection, MySqlConnection};

/// Running servers.
pub(crate) struct Servers(Lab);

impl Servers {
    /// Starts them, and makes the tables.
    pub(crate) async fn start() -> Result<Self, Failure> {
        let without = vec![Part::Instances, Part::Nginx];
        let servers = Self(
            Lab::start(Options {
                without,
                redis_ports: vec![0; 5],
                ..Options::default()
            })
            .await?,
        );
        let mut mysql = MySqlConnection::connect(&servers.mysql())
            .await
            .expect("mysql is there");
        sqlx::migrate!("../migrations")
            .run_direct(&mut mysql)
            .await
            .expect("the tables are made");
        Ok(servers)
    }

    /// Stops them.
    pub(crate) async fn stop(self) {
        self.0.stop().await;
    }

    /// `host:port` of ZooKeeper.
    pub(crate) fn zookeeper(&self) -> String {
        self.0.addresses().zookeeper.connect.clone()
    }

    /// `redis://host:port`.
    pub(crate) fn redis(&self) -> String {
        self.0.addresses().redis[0].url.clone()
    }

    /// `redis://host:port` of five independent nodes; the first is [`redis`](Self::redis)'s.
    pub(crate) fn redis_nodes(&self) -> Vec<String> {
        self.0
            .addresses()
            .redis
            .iter()
            .map(|node| node.url.clone())
            .collect()
    }

    /// `mysql://user@host:port/database`.
    pub(crate) fn mysql(&self) -> String {
        self.0.addresses().mysql.url.clone()
    }
}
