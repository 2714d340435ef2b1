//! `RedisLock` under the contract.

use super::{
    clauses::SOON,
    family::{Family, Process},
};
use oversell::redis_at::redis_at;
use oversell_lock::redis::{RedisClient, RedisLock, RedisOptions};
use redis::{AsyncTypedCommands, aio::MultiplexedConnection};
use std::time::Duration;
use tokio::sync::OnceCell;

pub(crate) struct Redis {
    url: String,
    outsider: OnceCell<MultiplexedConnection>,
}

impl Redis {
    pub(crate) fn at(url: String) -> Self {
        Self {
            url,
            outsider: OnceCell::new(),
        }
    }

    /// The connection that looks at the server from outside, thousands of times, and waits on a busy machine.
    pub(crate) async fn outsider(&self) -> MultiplexedConnection {
        let connect = || async { redis_at(&self.url).await.expect("redis is there") };
        self.outsider.get_or_init(connect).await.clone()
    }

    pub(crate) fn host(&self) -> String {
        self.url
            .trim_start_matches("redis://")
            .trim_end_matches('/')
            .to_owned()
    }
}

/// It is renewed every third: a machine that stands still for a while loses no lock, and who waits for its end has it soon.
const LEASE: Duration = Duration::from_secs(9);

/// So long a command is given on a way that may fall silent.
pub(crate) const LIMIT: Duration = Duration::from_secs(3);

/// A process on a way that is never silent: only a machine that stands still keeps its commands waiting.
pub(crate) fn patient(address: &str) -> RedisClient {
    client(&oversell_lock::Process::new(), address, LEASE, SOON)
}

/// A client of `process` whose locks have this lease, and which gives a command so long.
pub(crate) fn client(
    process: &oversell_lock::Process,
    address: &str,
    lease: Duration,
    timeout: Duration,
) -> RedisClient {
    let options = RedisOptions::new(format!("redis://{address}")).process(process.clone());
    RedisClient::new(options.lease(lease).timeout(timeout)).expect("an address")
}

impl Family for Redis {
    const NAME: &'static str = "redis";
    const QUEUES: bool = false;
    type Process = RedisClient;

    fn server(&self) -> String {
        self.host()
    }

    /// On a way of the test's own, which it may mute, silence is to be found out soon.
    async fn process_at(&self, address: &str) -> RedisClient {
        if address == self.server() {
            return patient(address);
        }
        client(&oversell_lock::Process::new(), address, LEASE, LIMIT)
    }

    /// In one order: Redis lists keys in another one whenever it likes.
    async fn left(&self, name: &str) -> Vec<String> {
        let mut left = self
            .outsider()
            .await
            .keys(format!("*{name}*"))
            .await
            .expect("a list");
        left.sort_unstable();
        left
    }

    async fn take_away(&self, _: &RedisClient, name: &str) {
        self.outsider().await.del(name).await.expect("deleted");
    }
}

impl Process for RedisClient {
    type Lock = RedisLock;

    fn lock(&self, name: &str) -> RedisLock {
        self.lock(name)
    }

    async fn close(&self) {
        self.close().await;
    }
}
