//! A lock's ceiling: one uncontended client, which takes it, runs the section and releases it.
//!
//! Of `redis-lock` it is the lock itself. Of `zk-lock` it is the least that any lock in ZooKeeper must do: make a numbered
//! node, delete it. (To list the others, which the lock does besides, is not in it.)
//!
//! A lock lets one in at a time, so how many wait cannot make the section faster. But in ZooKeeper the next ones make
//! their nodes while one is inside, and the server writes these with the deletion of the last: what the one client does
//! one after the other overlaps. So there the ratio may be above 1.

use super::{
    direct::section,
    repeat::{Repeated, failed, per_second},
};
use crate::failure::Failure;
use oversell_lock::{
    Lock,
    mysql::{MySqlOptions, MySqlPool},
    redis::{RedisClient, RedisOptions},
};
use std::{sync::Arc, time::Duration};
use zookeeper_client::{Acls, Client, CreateMode};

/// Keeps the keys apart from those of the instances.
const PREFIX: &str = "oversell-bench:";
/// Keeps the nodes apart from those of the instances.
const DIRECTORY: &str = "/oversell-bench";
const LEASE: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(3);

/// One client of a lock server and MySQL.
pub(super) struct Serial {
    alone: Alone,
    db: MySqlPool,
    product: i64,
}

enum Alone {
    Redis(RedisClient),
    ZooKeeper(Client),
}

impl Serial {
    /// A client of Redis; connects when first used.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where an address is not one.
    pub(super) fn redis(url: &str, mysql: &str, product: i64) -> Result<Arc<Self>, Failure> {
        let options = RedisOptions::new(url)
            .prefix(PREFIX)
            .lease(LEASE)
            .timeout(TIMEOUT);
        Self::new(
            Alone::Redis(RedisClient::new(options).map_err(failed)?),
            mysql,
            product,
        )
    }

    /// A client of ZooKeeper, with a session.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where ZooKeeper does not answer, or the address of MySQL is not one.
    pub(super) async fn zookeeper(
        connect: &str,
        mysql: &str,
        product: i64,
    ) -> Result<Arc<Self>, Failure> {
        let connector = Client::connector()
            .with_session_timeout(LEASE)
            .with_fail_eagerly();
        let client = connector.connect(connect).await.map_err(failed)?;
        // Not a container: the server deletes one whenever it finds it empty.
        let directory = CreateMode::Persistent.with_acls(Acls::anyone_all());
        client.mkdir(DIRECTORY, &directory).await.map_err(failed)?;
        Self::new(Alone::ZooKeeper(client), mysql, product)
    }

    fn new(alone: Alone, mysql: &str, product: i64) -> Result<Arc<Self>, Failure> {
        Ok(Arc::new(Self {
            alone,
            db: MySqlPool::new(MySqlOptions::new(mysql).connections(1)).map_err(failed)?,
            product,
        }))
    }

    /// Lock, section, unlock: how often in a second, measured for so long.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where a server does not answer.
    pub(super) async fn per_second(self: &Arc<Self>, time: Duration) -> Result<f64, Failure> {
        self.turn().await?;
        per_second([Arc::clone(self)], time).await
    }

    async fn turn(&self) -> Result<(), Failure> {
        match &self.alone {
            Alone::Redis(client) => {
                let guard = client.lock("lock").acquire(TIMEOUT).await.map_err(failed)?;
                self.section().await?;
                guard.release().await.map_err(failed)
            }
            Alone::ZooKeeper(client) => {
                let prefix = format!("{DIRECTORY}/lock-");
                let numbered = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
                let (_, number) = client
                    .create(&prefix, &[], &numbered)
                    .await
                    .map_err(failed)?;
                self.section().await?;
                client
                    .delete(&format!("{prefix}{number}"), None)
                    .await
                    .map_err(failed)
            }
        }
    }

    async fn section(&self) -> Result<(), Failure> {
        let mut conn = self.db.conn(TIMEOUT).await.map_err(failed)?;
        section(&mut conn, self.product).await.map_err(failed)?;
        conn.done();
        Ok(())
    }

    /// Takes away what it has made, and closes the client.
    pub(super) async fn close(&self) {
        match &self.alone {
            Alone::Redis(client) => client.close().await,
            Alone::ZooKeeper(client) => {
                if let Err(error) = client.delete(DIRECTORY, None).await {
                    tracing::debug!(%error, "{DIRECTORY} is left");
                }
            }
        }
    }
}

impl Repeated for Arc<Serial> {
    async fn once(&mut self) -> Result<u32, Failure> {
        self.turn().await.map(|()| 1)
    }
}
