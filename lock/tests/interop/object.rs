//! A contended object, and a look at its server from outside: its waiters, its entries, and the counters of
//! [`sections`](super::sections).

use super::{
    redis::Redis,
    server::Server,
    support::{Result, until},
    zookeeper::ZooKeeper,
};
use std::{
    fmt::{self, Display},
    time::Duration,
};

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Lock,
    /// etcd's lock service; of ours the same as `Lock`.
    Rpc,
    Fair,
    Read,
    Write,
    /// This many of a semaphore's permits, with a lease where they come back by themselves.
    Permits {
        all: u32,
        take: u32,
        lease: Option<Duration>,
    },
    /// A latch with this count: taking it sets the count, releasing it counts down; a waiter gets nothing.
    Latch(u32),
    /// A barrier: taking it closes it, releasing it opens it; a waiter gets nothing.
    Barrier,
    /// A double barrier of this many members.
    Double(u32),
    /// kazoo's lock with its own node names.
    Stock,
    /// Nothing: a twin that enters without a lock.
    Nothing,
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock => f.write_str("lock"),
            Self::Rpc => f.write_str("rpc"),
            Self::Fair => f.write_str("fair"),
            Self::Read => f.write_str("read"),
            Self::Write => f.write_str("write"),
            Self::Permits { all, take, lease: None } => write!(f, "permits/{all}/{take}"),
            Self::Permits { all, take, lease: Some(lease) } => write!(f, "permits/{all}/{take}/{}", lease.as_millis()),
            Self::Latch(count) => write!(f, "latch/{count}"),
            Self::Barrier => f.write_str("barrier"),
            Self::Double(members) => write!(f, "double/{members}"),
            Self::Stock => f.write_str("stock"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

impl Kind {
    /// Whether waiters pass it without holding anything.
    pub(crate) fn is_gate(self) -> bool {
        matches!(self, Self::Latch(_) | Self::Barrier)
    }
}

/// An object of one kind, by its name.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) server: &'static Server,
    pub(crate) kind: Kind,
    pub(crate) name: String,
}

/// Its description for a peer.
impl Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}

macro_rules! ask {
    ($self:ident.$call:ident($($argument:expr),*)) => {
        match $self.server {
            Server::Redis(server) => server.$call($($argument),*).await,
            Server::ZooKeeper(server) => server.$call($($argument),*).await,
            Server::Etcd(server) => server.$call($($argument),*).await,
        }
    };
}

impl Object {
    /// The length of its queue, in ZooKeeper and etcd including the holders; `None` without a queue.
    pub(crate) async fn queue(&self) -> Result<Option<usize>> {
        ask!(self.queue(self.kind, &self.name))
    }

    /// The visible waiters: in its queue, or the processes that listen to its channel.
    pub(crate) async fn waiting(&self) -> Result<Option<usize>> {
        match (self.queue().await?, self.server) {
            (None, Server::Redis(redis)) => redis.listeners(&self.name).await.map(Some),
            (queue, _) => Ok(queue),
        }
    }

    pub(crate) async fn until_queue(&self, length: usize) -> Result<()> {
        until(&format!("{length} in the queue"), async || Ok(self.queue().await? == Some(length))).await
    }

    /// Waits until `n` processes listen to its channel.
    pub(crate) async fn until_listening(&self, processes: usize) -> Result<()> {
        until("they listen", async || Ok(self.redis().listeners(&self.name).await? == processes)).await
    }

    /// Waits until nothing is left but the counters and permanent settings.
    pub(crate) async fn until_nothing_is_left(&self) -> Result<()> {
        let left = async || ask!(self.left(self.kind, &self.name));
        let gone = until("nothing is left", async || Ok(left().await?.is_empty())).await;
        match gone {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(format!("{:?}", left().await?))),
        }
    }

    /// Creates the counters, if that is necessary.
    pub(crate) async fn prepare(&self) -> Result<()> {
        ask!(self.prepare(&self.name))
    }

    /// Inside a section: increments the counter without a lock; returns the old count, and how many are inside.
    pub(crate) async fn section(&self) -> Result<(i64, i64)> {
        ask!(self.section(&self.name))
    }

    pub(crate) async fn counted(&self) -> Result<i64> {
        ask!(self.counted(&self.name))
    }

    pub(crate) fn redis(&self) -> &'static Redis {
        match self.server {
            Server::Redis(redis) => redis,
            _ => unreachable!("a clause of Redis"),
        }
    }

    pub(crate) fn zookeeper(&self) -> &'static ZooKeeper {
        match self.server {
            Server::ZooKeeper(zookeeper) => zookeeper,
            _ => unreachable!("a clause of ZooKeeper"),
        }
    }
}
