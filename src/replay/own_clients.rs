//! The clients that an actor has for itself, because each line that they send is reported: a session in ZooKeeper if its act
//! writes there, connections to etcd, connections to MySQL if it locks by a row of `tb_lock`.
//!
//! What it sends to Redis goes over a connection that all share (`section/redis_tap.rs`).

use crate::{
    ctx::Ctx,
    error::Error,
    section::{Name, Points, tap_etcd, tap_mysql, tap_zookeeper},
    server::Server,
};
use oversell_lab::clients::proxy::Proxy;
use oversell_lock::{etcd::EtcdClient, mysql::TablePool, zk::ZkClient};
use reqwest::Url;
use secrecy::{ExposeSecret, SecretString};
use std::{io, time::Duration};
use tokio_util::task::TaskTracker;

/// Time limit of a session's beginning: the servers of an ensemble must agree on it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// An actor's own clients, and the proxies on their way. Dropping it closes them in the background: what the actor leaves is
/// released first.
#[derive(Debug)]
pub(super) struct OwnClients {
    zk: Option<ZkClient>,
    db: Option<TablePool>,
    etcd: Option<EtcdClient>,
    proxies: Vec<Proxy>,
    tasks: TaskTracker,
}

impl OwnClients {
    /// The own clients of an actor that writes these names, and the same `ctx` with them.
    pub(super) fn new(ctx: &Ctx, names: &[Name], points: &Points) -> Result<(Self, Ctx), Error> {
        let (mut ctx, tasks) = (ctx.clone(), ctx.tasks.clone());
        let mut own = Self { zk: None, db: None, etcd: None, proxies: Vec::new(), tasks };
        if names.iter().any(|name| matches!(name, Name::ZooKeeper(_))) {
            let config = &ctx.config.zookeeper;
            let tapped = tap_zookeeper(&config.connect, &config.chroot, points);
            let (proxies, addresses) = tapped.map_err(no_tap)?;
            own.proxies.extend(proxies);
            ctx = ctx.with_zookeeper_at(&addresses)?;
            own.zk = Some(ctx.zk.clone());
        }
        if names.iter().any(|name| matches!(name, Name::Etcd(_))) {
            let (proxies, endpoints) = tap_etcd(&ctx.config.etcd.endpoints, points).map_err(no_tap)?;
            own.proxies.extend(proxies);
            ctx = ctx.with_etcd_at(&endpoints)?;
            own.etcd = Some(ctx.etcd()?.clone());
        }
        if names.iter().any(|name| matches!(name, Name::TableLock(_))) {
            ctx = ctx.with_mysql_over(|url| {
                let (proxy, url) = tapped_url(url, points)?;
                own.proxies.push(proxy);
                Ok(url)
            })?;
            own.db = Some(ctx.db.clone());
        }
        Ok((own, ctx))
    }

    /// Waits until the session in ZooKeeper has begun, if there is one.
    /// Errors: [`Error::Unavailable`] if that takes longer than [`CONNECT_TIMEOUT`].
    pub(super) async fn wait_until_connected(&self) -> Result<(), Error> {
        match &self.zk {
            Some(zk) => Ok(zk.wait_until_connected(CONNECT_TIMEOUT).await?),
            None => Ok(()),
        }
    }
}

impl Drop for OwnClients {
    fn drop(&mut self) {
        let (zk, db, etcd) = (self.zk.take(), self.db.take(), self.etcd.take());
        let proxies = std::mem::take(&mut self.proxies);
        if proxies.is_empty() {
            return;
        }
        self.tasks.spawn(async move {
            if let Some(zk) = zk {
                zk.close().await;
            }
            if let Some(db) = db {
                db.close().await;
            }
            if let Some(etcd) = etcd {
                etcd.close().await;
            }
            drop(proxies);
        });
    }
}

/// A proxy to the MySQL of this address, which reports to `points` what is sent, and the address that leads through it.
fn tapped_url(url: &SecretString, points: &Points) -> Result<(Proxy, SecretString), Error> {
    let unusable = || Error::unavailable(Server::MySql, "its address has no host");
    let mut url = Url::parse(url.expose_secret()).map_err(|_| unusable())?;
    let server = format!("{}:{}", url.host_str().ok_or_else(unusable)?, url.port().unwrap_or(3306));
    let proxy = tap_mysql(&server, points).map_err(no_tap)?;
    url.set_host(Some("127.0.0.1")).map_err(|_| unusable())?;
    url.set_port(Some(proxy.port())).map_err(|()| unusable())?;
    Ok((proxy, String::from(url).into()))
}

fn no_tap(error: io::Error) -> Error {
    Error::Internal(format!("no port for a proxy: {error}"))
}
