//! Faults of a replay: what it does to processes, links, sessions and the main Redis, by its lab or without one.
//!
//! Next: `faults.rs`, which asks the lab.

use super::{
    faults::{Faults, Need},
    options::Pace,
    play::{Play, poll_until},
    role::Role,
    servers,
};
use crate::{error::Error, fault::Action, replay_log::ReplayEvent};
use std::time::Duration;
use tokio::time::sleep;

/// What the lab calls the one that promotes.
pub(super) const SENTINEL: &str = "sentinel";
/// Longer than a Sentinel takes: 4 s without an answer, and then the promotion; one that was itself held up does nothing for 3 s, and
/// one that does not know its replica well tries again after 20.
pub(super) const PROMOTION_TIMEOUT: Duration = Duration::from_secs(40);
/// A session that nobody ends at once ends by itself within this: it lasts 10 s without a heartbeat.
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

impl Play {
    /// The faults of the lab.
    pub(super) fn lab(&self) -> Result<&Faults, Error> {
        let none = || Error::replay("no lab takes orders");
        self.faults.as_ref().ok_or_else(none)
    }

    /// Orders a fault from the lab. It is undone at the end, unless the replay does so itself.
    pub(super) async fn inject(&self, action: Action, member: &str) -> Result<(), Error> {
        let done = self.lab()?.inject(action, member).await;
        done.map_err(|error| Error::replay(format!("{action} {member}: {error}")))
    }

    /// Something happens to the process in which a role plays, where a lab takes orders.
    pub(super) async fn inject_at(&self, role: &Role, action: Action) -> Result<(), Error> {
        let instance = self.observer.instance_of(role.letter);
        let instance =
            instance.ok_or_else(|| Error::replay(format!("{} runs nowhere", role.letter)))?;
        if self.faults.is_some() {
            self.inject(action, &instance).await?;
        } else if action == Action::Pause {
            self.record_forced(true);
        }
        let event = match action {
            Action::Pause => "stopped",
            Action::Resume => "continued",
            _ => return Ok(()),
        };
        self.log().add(ReplayEvent {
            instance: Some(instance),
            ..ReplayEvent::of(role.letter, event)
        });
        Ok(())
    }

    /// A holder dies: by the clock its process is killed, where a lab takes orders and it is not that of the replay itself;
    /// else it stands still for good.
    pub(super) async fn kill_or_freeze(&mut self, role: &Role) -> Result<(), Error> {
        let directs = self.observer.instance_of(role.letter).as_ref() == Some(&self.ctx.instance);
        if self.options.pace == Pace::Clock && self.faults.is_some() && !directs {
            return self.kill(role).await;
        }
        self.record_forced(true);
        self.record_gone(role, ["dead", "dead"]);
        Ok(())
    }

    /// `kill -9` of the process in which a role plays.
    pub(super) async fn kill(&mut self, role: &Role) -> Result<(), Error> {
        self.inject_at(role, Action::Kill).await?;
        self.a_holder_was_killed = true;
        self.record_forced(false);
        self.record_gone(role, ["killed", "kill -9"]);
        Ok(())
    }

    /// The answers of all nodes of Redis come to the instance of a role so much later; in time again where that is nothing.
    pub(super) async fn delay_answers(&self, role: &Role, by: Duration) -> Result<(), Error> {
        let action = if by.is_zero() {
            Action::Mend
        } else {
            Action::Slow
        };
        for node in 0..self.ctx.nodes.len() {
            let way = format!("{}-{}", self.instance_name(role)?, servers::node_name(node));
            let done = self.lab()?.inject_by(action, &way, by).await;
            done.map_err(|error| Error::replay(format!("{action} {way}: {error}")))?;
        }
        Ok(())
    }

    /// Ends the session of a role's process, or waits until ZooKeeper does: nobody has the lock then.
    pub(super) async fn end_session_and_wait(&self, role: &Role) -> Result<(), Error> {
        self.end_session_if_forced(role).await?;
        self.wait_until_free().await
    }

    /// The session of a role's process is over: ended here, or so long after its last heartbeat that ZooKeeper has ended it.
    pub(super) async fn end_session(&self, role: &Role) -> Result<(), Error> {
        if !self.end_session_if_forced(role).await? {
            // Its time is what is to pass: nothing is to be seen of a session whose nodes stay.
            let session = Duration::from_millis(self.ctx.config.zookeeper.session_ms);
            sleep(session * 3 / 2).await;
        }
        Ok(())
    }

    /// Ends the session of a role's process where the pace forces it and a lab can; whether it has.
    async fn end_session_if_forced(&self, role: &Role) -> Result<bool, Error> {
        let can_end_it = self.faults.is_some() && Need::Links.missing(&self.ctx.config).is_none();
        let forced = self.options.pace.forces_timeouts() && can_end_it;
        if forced {
            self.inject_at(role, Action::Expire).await?;
        }
        self.record_forced(forced);
        Ok(forced)
    }

    /// The Sentinel, which stood still, promotes the replica.
    pub(super) async fn fail_over(&self) -> Result<(), Error> {
        self.inject(Action::Resume, SENTINEL).await?;
        self.inject(Action::Promote, "replica").await?;
        self.wait_until_all_reach_redis().await?;
        let words = serde_json::json!({ "zh": "哨兵把从节点升为主节点", "en": "the Sentinel promotes the replica" });
        self.log().add(ReplayEvent {
            value: Some(words),
            ..ReplayEvent::of("step", "promoted")
        });
        Ok(())
    }

    /// Waits until every instance reaches Redis: one that has not yet seen its connection end would fail at its next command.
    pub(super) async fn wait_until_all_reach_redis(&self) -> Result<(), Error> {
        for host in &self.options.hosts {
            poll_until(
                PROMOTION_TIMEOUT,
                "an instance does not reach Redis",
                || async { Ok(host.reaches_redis(self.stock_id).await) },
            )
            .await?;
        }
        Ok(())
    }

    /// Waits until the servers can be read again, and Redis takes writes.
    pub(super) async fn wait_until_readable(&self) {
        let back = poll_until(SESSION_TIMEOUT, "the servers are not back", || async move {
            Ok(self.reader.read().await.is_ok() && self.main_takes_writes().await)
        });
        if let Err(error) = back.await {
            tracing::error!(%error, "after a replay");
        }
    }

    /// Whether what the ways lead to is the main Redis: one that was the main one until just now only lets itself be read.
    async fn main_takes_writes(&self) -> bool {
        let role = redis::cmd("INFO")
            .arg("replication")
            .query_async(&mut self.ctx.redis.connection())
            .await;
        role.is_ok_and(|role: String| role.contains("role:master"))
    }
}
