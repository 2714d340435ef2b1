//! The faults of a replay: to processes, links, sessions and the main Redis, by its lab or simulated without one.
//!
//! Next: `faults.rs`, which asks the lab.

use super::{
    faults::{Faults, Need},
    options::Pace,
    play::{Play, poll_until},
    role::Role,
};
use crate::{error::Error, replay_log::ReplayEvent, stock_admin::NODES};
use oversell_lab::fault::Action;
use std::time::Duration;
use tokio::time::sleep;

/// The lab's name for its first Sentinel.
pub(super) const SENTINEL: &str = "sentinel";
/// Time limit of a fail-over that the Sentinel starts by itself: it notices after 4 s that the main Redis is gone; if it was
/// paused itself, it waits 3 s more, and after a failed attempt 20 s.
pub(super) const UNPLANNED_FAILOVER_TIMEOUT: Duration = Duration::from_secs(40);
/// Time limit of the end of a session: ZooKeeper ends one after 10 s without a heartbeat.
pub(super) const SESSION_TIMEOUT: Duration = Duration::from_secs(30);

impl Play {
    /// The lab of this instance; an error without one.
    pub(super) fn lab(&self) -> Result<&Faults, Error> {
        let none = || Error::replay("there is no lab to inject faults: start the servers with oversell lab");
        self.faults.as_ref().ok_or_else(none)
    }

    /// Injects a fault; fails without a lab. If it [can be undone](Action::undone_by), it is at the end, or by the race before.
    pub(super) async fn inject(&self, action: Action, member: &str) -> Result<(), Error> {
        self.inject_sized(action, member, Duration::ZERO).await
    }

    /// As [`inject`](Self::inject), with a size: that of a jump of a clock, or a delay.
    pub(super) async fn inject_sized(&self, action: Action, member: &str, by: Duration) -> Result<(), Error> {
        let done = self.lab()?.inject_sized(action, member, by).await;
        done.map_err(|error| Error::replay(format!("{action} {member}: {error}")))
    }

    /// Injects a fault into the process of a role; without a lab nothing is injected, and a pause counts as forced. Either
    /// way a pause or resume is logged. Fails if the role has not started.
    pub(super) async fn inject_at(&self, role: &Role, action: Action) -> Result<(), Error> {
        let instance = self.observer.instance_of(role.letter);
        let instance = instance.ok_or_else(|| Error::replay(format!("{} has not started yet", role.letter)))?;
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
        self.log().add(ReplayEvent { instance: Some(instance), ..ReplayEvent::of(role.letter, event) });
        Ok(())
    }

    /// Kills the role's process at the pace `Clock` if there is a lab and it is not the directing process; else the actor is left
    /// at its stop for good, which counts as forced.
    pub(super) async fn kill_or_leave_stopped(&mut self, role: &Role) -> Result<(), Error> {
        let directs = self.observer.instance_of(role.letter).as_ref() == Some(&self.ctx.instance);
        if self.options.pace == Pace::Clock && self.faults.is_some() && !directs {
            return self.kill(role).await;
        }
        self.record_forced(true);
        self.record_gone(role, ["dead", "dead"]);
        Ok(())
    }

    /// Kills (`kill -9`) the process that the role runs in. Without a lab that is only recorded.
    pub(super) async fn kill(&mut self, role: &Role) -> Result<(), Error> {
        self.inject_at(role, Action::Kill).await?;
        self.a_holder_was_killed = true;
        self.record_forced(false);
        self.record_gone(role, ["killed", "kill -9"]);
        Ok(())
    }

    /// Delays the answers of all Redis nodes to the role's instance; zero ends the delay.
    pub(super) async fn delay_answers(&self, role: &Role, by: Duration) -> Result<(), Error> {
        let action = if by.is_zero() { Action::Mend } else { Action::Slow };
        for node in NODES.iter().take(self.ctx.nodes.len()) {
            let link = format!("{}-{}", self.instance_name(role)?, node);
            self.inject_sized(action, &link, by).await?;
        }
        Ok(())
    }

    /// Ends the session of the role's process, or waits for its timeout; then the lock must become free.
    pub(super) async fn end_session_and_wait(&self, role: &Role) -> Result<(), Error> {
        self.end_session_if_forced(role).await?;
        self.wait_until_free().await
    }

    /// Ends the session of the role's process, or waits for its timeout; what it has created may stay.
    pub(super) async fn end_session(&self, role: &Role) -> Result<(), Error> {
        if !self.end_session_if_forced(role).await? {
            // Nothing in ZooKeeper shows the end of a session whose nodes stay, so its time must pass.
            let session = Duration::from_millis(self.ctx.config.zookeeper.session_ms);
            sleep(session * 3 / 2).await;
        }
        Ok(())
    }

    /// Ends the session if the pace forces it and there are links to cut. Records and returns whether it has.
    async fn end_session_if_forced(&self, role: &Role) -> Result<bool, Error> {
        let can_end_it = self.faults.is_some() && Need::Links.what_is_missing(&self.ctx.config).is_none();
        let forced = self.options.pace.forces_timeouts() && can_end_it;
        if forced {
            self.inject_at(role, Action::Expire).await?;
        }
        self.record_forced(forced);
        Ok(forced)
    }

    /// Resumes the Sentinel, has it promote the replica, waits until every instance reaches Redis again, and logs that.
    pub(super) async fn fail_over(&self) -> Result<(), Error> {
        self.inject(Action::Resume, SENTINEL).await?;
        self.inject(Action::Promote, "replica").await?;
        self.wait_until_all_reach_redis().await?;
        let words = serde_json::json!({ "zh": "Sentinel 把从节点升为主节点", "en": "the Sentinel promotes the replica" });
        let promoted = ReplayEvent::of("step", "promoted").with_value(words);
        self.log().add(promoted);
        Ok(())
    }

    /// Waits until every instance reaches Redis, 40 s for each: one whose connection has ended would fail at its next command.
    pub(super) async fn wait_until_all_reach_redis(&self) -> Result<(), Error> {
        for host in &self.options.hosts {
            poll_until(UNPLANNED_FAILOVER_TIMEOUT, "an instance does not reach Redis after the fail-over", || async {
                Ok(host.reaches_redis(self.stock_id).await)
            })
            .await?;
        }
        Ok(())
    }

    /// Waits up to 30 s until the servers answer reads and Redis accepts writes; if they do not, that is logged.
    pub(super) async fn wait_until_readable(&self) {
        let back = poll_until(SESSION_TIMEOUT, "a server does not answer after its fault was undone", || async move {
            Ok(self.reader.read().await.is_ok() && self.main_takes_writes().await)
        });
        if let Err(error) = back.await {
            tracing::error!(%error, "after a replay");
        }
    }

    /// Whether the main Redis accepts writes; `false` without an answer, or from a demoted one, which still answers reads.
    async fn main_takes_writes(&self) -> bool {
        let role = redis::cmd("INFO").arg("replication").query_async(&mut self.ctx.redis.connection()).await;
        role.is_ok_and(|role: String| role.contains("role:master"))
    }
}
