//! A look at Redis from outside.

use super::{
    object::Kind,
    ours::Process,
    support::{Context, Result, ensure},
};
use ::redis::{AsyncTypedCommands, Cmd, FromRedisValue, aio::MultiplexedConnection, cmd, pipe};
use oversell_lab::clients::redis_at::redis_at;
use oversell_lock::redis::{RedisClient, RedisOptions};
use std::{collections::HashMap, time::Duration};

pub(crate) struct Redis {
    pub(crate) url: String,
    outside: MultiplexedConnection,
}

/// The queue of a fair lock.
fn queue(name: &str) -> String {
    format!("redisson_lock_queue:{{{name}}}")
}

/// The scores: until when each waiter counts as alive.
fn scores(name: &str) -> String {
    format!("redisson_lock_timeout:{{{name}}}")
}

impl Redis {
    pub(crate) async fn at(url: String) -> Result<Self> {
        let outside = redis_at(&url).await?;
        Ok(Self { url, outside })
    }

    pub(crate) fn outside(&self) -> MultiplexedConnection {
        self.outside.clone()
    }

    async fn ask<T: FromRedisValue>(&self, command: &Cmd) -> Result<T> {
        Ok(command.query_async(&mut self.outside()).await?)
    }

    fn options(&self) -> RedisOptions {
        RedisOptions::new(&self.url).timeout(Duration::from_secs(5))
    }

    pub(crate) async fn process(&self) -> Result<Process> {
        Ok(Process::Redis(RedisClient::new(self.options())?))
    }

    /// A client with this `lease`, which assumes this Java watchdog (`None`: the default).
    pub(crate) fn reader(&self, lease: Duration, java: Option<Duration>) -> Result<RedisClient> {
        let options = self.options().lease(lease);
        let options = java.into_iter().fold(options, RedisOptions::java_watchdog);
        Ok(RedisClient::new(options)?)
    }

    /// The hash of a lock.
    pub(crate) async fn holders(&self, name: &str) -> Result<HashMap<String, String>> {
        Ok(self.outside().hgetall(name).await?)
    }

    /// The channels of this name that have subscribers.
    async fn channels(&self, name: &str) -> Result<Vec<String>> {
        self.ask(cmd("PUBSUB").arg("CHANNELS").arg(format!("*{{{name}}}*"))).await
    }

    /// The subscribed connections; each process has one.
    pub(crate) async fn listeners(&self, name: &str) -> Result<usize> {
        let channels = self.channels(name).await?;
        if channels.is_empty() {
            return Ok(0);
        }
        let told: HashMap<String, usize> = self.ask(cmd("PUBSUB").arg("NUMSUB").arg(channels)).await?;
        Ok(told.values().sum())
    }

    /// Sends `message` to all subscribers.
    pub(crate) async fn publish(&self, name: &str, message: u32) -> Result<()> {
        for channel in self.channels(name).await? {
            self.outside().publish(channel, message).await?;
        }
        Ok(())
    }

    pub(crate) async fn queue(&self, kind: Kind, name: &str) -> Result<Option<usize>> {
        Ok(match kind {
            Kind::Fair => Some(self.standing(name).await?.len()),
            _ => None,
        })
    }

    /// The queue of a fair lock; also checks that the scores have the same owners.
    pub(crate) async fn standing(&self, name: &str) -> Result<Vec<String>> {
        let (list, mut scored): (Vec<String>, Vec<String>) =
            pipe().atomic().lrange(queue(name), 0, -1).zrange(scores(name), 0, -1).query_async(&mut self.outside()).await?;
        let mut sorted = list.clone();
        sorted.sort();
        scored.sort();
        ensure!(sorted == scored, "in the queue {sorted:?}, with a score {scored:?}");
        Ok(list)
    }

    /// Queues a dead waiter that counts as alive for this many milliseconds.
    pub(crate) async fn stand(&self, name: &str, alive: u64) -> Result<()> {
        const GONE: &str = "00000000-0000-4000-8000-000000000000:1";
        let (seconds, _): (u64, u64) = self.ask(&cmd("TIME")).await?;
        pipe()
            .atomic()
            .rpush(queue(name), GONE)
            .zadd(scores(name), GONE, seconds * 1000 + alive)
            .exec_async(&mut self.outside())
            .await?;
        Ok(())
    }

    /// Lets the first waiter's score pass.
    pub(crate) async fn first_is_late(&self, name: &str) -> Result<()> {
        let (seconds, _): (u64, u64) = self.ask(&cmd("TIME")).await?;
        let first = self.standing(name).await?.remove(0);
        let late = seconds * 1000 - 1000;
        self.outside().zadd(scores(name), first, late).await?;
        Ok(())
    }

    /// The rest of a lock's lease, in milliseconds.
    pub(crate) async fn lease(&self, name: &str) -> Result<i64> {
        self.ask(cmd("PTTL").arg(name)).await
    }

    /// Deletes the queue of a fair lock.
    pub(crate) async fn remove_queue(&self, name: &str) -> Result<()> {
        self.outside().del(&[queue(name), scores(name)]).await?;
        Ok(())
    }

    /// Frees it without a message.
    pub(crate) async fn free(&self, kind: Kind, name: &str) -> Result<()> {
        let mut outside = self.outside();
        match kind {
            Kind::Permits { take, .. } => drop(outside.incr(name, take).await?),
            _ => drop(outside.del(name).await?),
        }
        Ok(())
    }

    /// Copies a lock with its lease; returns the copy's name, or `None` if there is no lease.
    pub(crate) async fn copy(&self, name: &str) -> Result<Option<String>> {
        if self.ask::<i64>(cmd("PTTL").arg(name)).await? < 0 {
            return Ok(None);
        }
        let copy = format!("copy of {name}");
        let copied: bool = self.ask(cmd("COPY").arg(name).arg(&copy)).await?;
        Ok(copied.then_some(copy))
    }

    /// Checks that the copy still exists, and deletes it.
    pub(crate) async fn remove_copy(&self, copy: &str) -> Result<()> {
        let removed = self.outside().del(copy).await?;
        ensure!(removed == 1, "the waiter has waited for the end of the lease");
        Ok(())
    }

    pub(crate) async fn left(&self, kind: Kind, name: &str) -> Result<Vec<String>> {
        let mut left = self.outside().keys(format!("*{name}*")).await?;
        let stays = |key: &str| {
            key == format!("{name}:counter")
                || key == format!("{name}:inside")
                || key == name && matches!(kind, Kind::Permits { .. })
                || key == format!("{{{name}}}:opened") && matches!(kind, Kind::Latch(_))
        };
        left.retain(|key| !stays(key));
        Ok(left)
    }

    pub(crate) async fn prepare(&self, _: &str) -> Result<()> {
        Ok(())
    }

    pub(crate) async fn section(&self, name: &str) -> Result<(i64, i64)> {
        let mut outside = self.outside();
        let inside = outside.incr(format!("{name}:inside"), 1).await?;
        let before = self.counted(name).await?;
        outside.set(format!("{name}:counter"), before + 1).await?;
        outside.decr(format!("{name}:inside"), 1).await?;
        Ok((before, inside.try_into()?))
    }

    pub(crate) async fn counted(&self, name: &str) -> Result<i64> {
        let counter = self.outside().get(format!("{name}:counter")).await?;
        counter.map_or(Ok(0), |count| count.parse().context("a number"))
    }
}
