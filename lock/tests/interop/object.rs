//! What is contended for, and a look at its server from outside: who waits, what is left, and the counters of
//! [`sections`](super::sections).

use super::{
    redis::Redis,
    server::Server,
    support::{Result, until},
    zookeeper::ZooKeeper,
};
use std::fmt::{self, Display};

/// A kind of lock, or of what is like one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Lock,
    Fair,
    Read,
    Write,
    /// So many of all permits of a semaphore.
    Permits {
        all: u32,
        take: u32,
    },
    /// With this count. To take it is to set its count, to release it is to count down; a waiter gets nothing.
    Latch(u32),
    /// To take it is to close it, to release it is to open it; a waiter gets nothing.
    Barrier,
    /// A double barrier of so many members, to enter and to leave.
    Double(u32),
    /// kazoo's lock with the names that it gives its nodes itself.
    Stock,
    /// What a twin takes that comes in without asking anybody.
    Nothing,
}

impl Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lock => f.write_str("lock"),
            Self::Fair => f.write_str("fair"),
            Self::Read => f.write_str("read"),
            Self::Write => f.write_str("write"),
            Self::Permits { all, take } => write!(f, "permits/{all}/{take}"),
            Self::Latch(count) => write!(f, "latch/{count}"),
            Self::Barrier => f.write_str("barrier"),
            Self::Double(members) => write!(f, "double/{members}"),
            Self::Stock => f.write_str("stock"),
            Self::Nothing => f.write_str("nothing"),
        }
    }
}

impl Kind {
    /// Whether it lets those who wait through, and they hold nothing then.
    pub(crate) fn is_gate(self) -> bool {
        matches!(self, Self::Latch(_) | Self::Barrier)
    }
}

/// A name on a server, as that of one kind.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) server: &'static Server,
    pub(crate) kind: Kind,
    pub(crate) name: String,
}

/// As a peer is told it.
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
        }
    };
}

impl Object {
    /// How many stand in its queue, in ZooKeeper with those that hold it; `None` where there is no queue.
    pub(crate) async fn queue(&self) -> Result<Option<usize>> {
        ask!(self.queue(self.kind, &self.name))
    }

    /// How many are seen to wait: in its queue, or as the processes that listen for news of it.
    pub(crate) async fn waiting(&self) -> Result<Option<usize>> {
        match (self.queue().await?, self.server) {
            (None, Server::Redis(redis)) => redis.listeners(&self.name).await.map(Some),
            (queue, _) => Ok(queue),
        }
    }

    pub(crate) async fn until_queue(&self, length: usize) -> Result<()> {
        until(&format!("{length} in the queue"), async || {
            Ok(self.queue().await? == Some(length))
        })
        .await
    }

    /// Waits until so many processes listen for news of it in Redis.
    pub(crate) async fn until_listening(&self, processes: usize) -> Result<()> {
        until("they listen", async || {
            Ok(self.redis().listeners(&self.name).await? == processes)
        })
        .await
    }

    /// Waits until nothing is left of it but the counters, and what is set once for all.
    pub(crate) async fn until_nothing_is_left(&self) -> Result<()> {
        let left = async || ask!(self.left(self.kind, &self.name));
        let gone = until("nothing is left", async || Ok(left().await?.is_empty())).await;
        match gone {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(format!("{:?}", left().await?))),
        }
    }

    /// Makes the counters, where they must be made.
    pub(crate) async fn prepare(&self) -> Result<()> {
        ask!(self.prepare(&self.name))
    }

    /// Inside a section: reads the counter, and writes one more. The count before, and how many are inside.
    pub(crate) async fn section(&self) -> Result<(i64, i64)> {
        ask!(self.section(&self.name))
    }

    pub(crate) async fn counted(&self) -> Result<i64> {
        ask!(self.counted(&self.name))
    }

    pub(crate) fn redis(&self) -> &'static Redis {
        match self.server {
            Server::Redis(redis) => redis,
            Server::ZooKeeper(_) => unreachable!("a clause of Redis"),
        }
    }

    pub(crate) fn zookeeper(&self) -> &'static ZooKeeper {
        match self.server {
            Server::ZooKeeper(zookeeper) => zookeeper,
            Server::Redis(_) => unreachable!("a clause of ZooKeeper"),
        }
    }
}
