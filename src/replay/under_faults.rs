//! What a race is written in where something breaks: an instance that stands still or dies, a session that ends, a server that
//! is gone for a while.
//!
//! An actor whose process is to stop plays on another instance than the one that directs: [`Play::other`].
//!
//! Next: `faults.rs`, which orders them from the lab.

use super::{
    Line, Pace,
    event::ReplayEvent,
    place::Place,
    play::{Play, Side, gone_wrong},
};
use crate::{error::Error, orders::Action};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// A session that nobody ends at once ends by itself within this.
const SESSION: Duration = Duration::from_secs(30);

impl Play {
    /// The number of an instance that may be stopped: of those that do not direct, the first, the second …
    pub(super) fn other(&self, n: usize) -> usize {
        let directs = format!(":{}", self.ctx.config.server.port);
        let is_other = |(_, place): &(usize, &Place)| !matches!(place, Place::There(url) if url.ends_with(&directs));
        let others: Vec<_> = self
            .places
            .iter()
            .enumerate()
            .filter(is_other)
            .map(|(n, _)| n)
            .collect();
        others
            .get(n % others.len().max(1))
            .copied()
            .unwrap_or_default()
    }

    /// What the instance of this number is called: in a lab, as its port.
    pub(super) fn name_of(&self, instance: usize) -> Result<&str, Error> {
        match &self.places[instance % self.places.len()] {
            Place::There(url) => url.trim_end_matches('/').rsplit(':').next(),
            Place::Here(_) => None,
        }
        .ok_or_else(|| gone_wrong("the instances have no names"))
    }

    /// Stops the process in which this side plays, as a long garbage collection does. Where no lab takes orders, what stands
    /// still is the request alone, at its point; whether the process does.
    pub(super) async fn pause(&self, side: &Side) -> Result<bool, Error> {
        if self.faults.are_there() {
            self.faults
                .order(Action::Pause, &self.instance_of(side)?)
                .await?;
        }
        self.happens(side, "stopped");
        Ok(self.faults.are_there())
    }

    /// Lets the process go on.
    pub(super) async fn resume(&self, side: &Side) -> Result<(), Error> {
        if self.faults.are_there() {
            self.faults
                .order(Action::Resume, &self.instance_of(side)?)
                .await?;
        }
        self.happens(side, "continued");
        Ok(())
    }

    /// `kill -9` of the process in which this side plays. It is started again at the end.
    pub(super) async fn kill(&self, side: &Side) -> Result<(), Error> {
        self.faults
            .order(Action::Kill, &self.instance_of(side)?)
            .await?;
        let killed = Line::Failed {
            kind: "killed".to_owned(),
            detail: "kill -9".to_owned(),
        };
        self.stage.saw(side.letter, "", false, &killed);
        Ok(())
    }

    /// Waits until the lease of a side that stands still has ended. It ends by itself where nobody renews it; a process that
    /// runs does so until it is ended here.
    pub(super) async fn unrenewed_lease_ends(&self, stands_still: bool) -> Result<(), Error> {
        if self.pace == Pace::Slow && !stands_still {
            self.sights.end_leases().await?;
        }
        self.lease_ends().await
    }

    /// Ends the session of this side's process, or waits until ZooKeeper does: nobody has the lock then.
    pub(super) async fn session_ends(&self, side: &Side) -> Result<(), Error> {
        if self.pace != Pace::Slow && self.faults.has_ways() {
            self.faults
                .order(Action::Expire, &self.instance_of(side)?)
                .await?;
        }
        self.nobody_has_it(SESSION).await
    }

    /// Waits until the main Redis does not know the lock any more.
    pub(super) async fn main_forgets(&self, limit: Duration) -> Result<(), Error> {
        let forgotten = async {
            while !self.sights.main_has_none().await.unwrap_or(false) {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(limit, forgotten)
            .await
            .map_err(|_| gone_wrong("the main Redis was not replaced"))
    }

    /// A side that asks for the lock for a second, and does not get it.
    pub(super) async fn is_refused(
        &mut self,
        letter: char,
        instance: usize,
        act: &str,
    ) -> Result<(), Error> {
        let wait = Duration::from_secs(1);
        let mut side = self
            .side_that_waits(wait, &[], letter, instance, act, self.lease(30_000))
            .await?;
        if let Line::Failed { .. } = side.ends().await? {
            self.saw = format!("{letter} refused");
        }
        Ok(())
    }

    /// Waits until nobody has the lock.
    pub(super) async fn nobody_has_it(&self, limit: Duration) -> Result<(), Error> {
        let gone = async {
            // A server that is about to be replaced does not answer.
            while !self
                .sights
                .read()
                .await
                .is_ok_and(|seen| seen.locks.is_empty())
            {
                sleep(Duration::from_millis(10)).await;
            }
        };
        timeout(limit, gone)
            .await
            .map_err(|_| gone_wrong("the lock is not free"))
    }

    /// Waits until the servers can be read again, and Redis takes writes.
    pub(super) async fn can_be_seen(&self) {
        let seen = async {
            while self.sights.read().await.is_err() || !self.takes_writes().await {
                sleep(Duration::from_millis(50)).await;
            }
        };
        timeout(SESSION, seen)
            .await
            .unwrap_or_else(|_| tracing::error!("the servers are not back"));
    }

    /// Whether what the ways lead to is the main Redis: one that was the main one until just now only lets itself be read.
    async fn takes_writes(&self) -> bool {
        let role = redis::cmd("INFO")
            .arg("replication")
            .query_async(&mut self.ctx.redis.connection())
            .await;
        role.is_ok_and(|role: String| role.contains("role:master"))
    }

    fn happens(&self, side: &Side, what: &str) {
        self.log().add(ReplayEvent {
            actor: side.letter.to_string(),
            instance: self.stage.instance_of(side.letter),
            event: what.to_owned(),
            ..ReplayEvent::default()
        });
    }

    fn instance_of(&self, side: &Side) -> Result<String, Error> {
        let instance = self.stage.instance_of(side.letter);
        instance.ok_or_else(|| gone_wrong(format!("{} runs nowhere", side.letter)))
    }
}
