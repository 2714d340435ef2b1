//! A look at ZooKeeper from outside.

use super::{
    object::Kind,
    ours::Process,
    support::{Result, until},
};
use oversell_lock::zk::{ZkClient, ZkOptions};
use std::{str::FromStr, time::Duration};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error};

/// Long enough that a busy machine keeps our connection, which is abandoned after a fifth of it in silence.
const SESSION: Duration = Duration::from_secs(40);

const PERSISTENT: CreateOptions<'static> = CreateMode::Persistent.with_acls(Acls::anyone_all());
const INSIDE: CreateOptions<'static> = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());

pub(crate) struct ZooKeeper {
    pub(crate) connect: String,
    pub(crate) outside: Client,
}

impl ZooKeeper {
    pub(crate) async fn at(connect: String) -> Result<Self> {
        let connector = Client::connector().with_session_timeout(SESSION);
        let outside = connector.connect(&connect).await?;
        outside.mkdir("/interop", &PERSISTENT).await?;
        Ok(Self { connect, outside })
    }

    pub(crate) async fn process(&self) -> Result<Process> {
        let ours = ZkClient::new(ZkOptions::new(&self.connect).session(SESSION))?;
        until("connected", async || Ok(ours.session().is_ok())).await?;
        Ok(Process::ZooKeeper(ours))
    }

    /// The names in a directory.
    pub(crate) async fn children(&self, path: &str) -> Result<Vec<String>> {
        match self.outside.list_children(path).await {
            Err(Error::NoNode) => Ok(Vec::new()),
            children => Ok(children?),
        }
    }

    pub(crate) async fn queue(&self, kind: Kind, name: &str) -> Result<Option<usize>> {
        let queue = match kind {
            Kind::Barrier => return Ok(None),
            Kind::Permits { .. } => self.children(&format!("{name}/leases")).await?,
            _ => self.children(name).await?,
        };
        Ok(Some(queue.len()))
    }

    pub(crate) async fn left(&self, kind: Kind, name: &str) -> Result<Vec<String>> {
        if let Kind::Permits { .. } = kind {
            let mut left = self.children(&format!("{name}/leases")).await?;
            left.extend(self.children(&format!("{name}/locks")).await?);
            return Ok(left);
        }
        self.children(name).await
    }

    pub(crate) async fn prepare(&self, name: &str) -> Result<()> {
        self.outside.create(&format!("{name}-counter"), b"0", &PERSISTENT).await?;
        self.outside.create(&format!("{name}-inside"), &[], &PERSISTENT).await?;
        Ok(())
    }

    /// Each contender inside has a node in a directory, so that others are seen.
    pub(crate) async fn section(&self, name: &str) -> Result<(i64, i64)> {
        let (directory, counter) = (format!("{name}-inside"), format!("{name}-counter"));
        let (_, own) = self.outside.create(&format!("{directory}/in-"), &[], &INSIDE).await?;
        let inside = self.outside.list_children(&directory).await?.len();
        let before = self.counted(name).await?;
        let after = (before + 1).to_string();
        self.outside.set_data(&counter, after.as_bytes(), None).await?;
        self.outside.delete(&format!("{directory}/in-{own}"), None).await?;
        Ok((before, inside.try_into()?))
    }

    pub(crate) async fn counted(&self, name: &str) -> Result<i64> {
        let (count, _) = self.outside.get_data(&format!("{name}-counter")).await?;
        Ok(i64::from_str(str::from_utf8(&count)?)?)
    }
}
