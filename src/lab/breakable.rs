//! What there is to break in a lab, and how it is now: as the kernel and the ways say.

use super::{Lab, clock::Clock, nginx, proxy::Condition, redis, server::Tier, zookeeper};
use crate::{
    fault::{Action, Breakable, Link, LinkState, Member, MemberState},
    terminal::failure::{Failure, unusable},
};
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long the threads of a process may take to stand still.
const STOP: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(2);

impl Lab {
    /// Everything that can be broken, and how it is. nginx is left out: it brings the page on which that is asked for.
    pub(super) fn breakable(&self) -> Breakable {
        let members = self.members.iter().filter(|m| m.name != nginx::NAME);
        let members = members.map(|member| {
            let (name, state) = (member.name.as_str(), member.state());
            let instance = member.tier == Tier::Instance;
            Member {
                name: name.to_owned(),
                instance,
                state,
                can: self.can(name, instance, state),
            }
        });
        let ways = self.ways.iter().map(|way| Link {
            name: way.name(),
            instance: way.instance.clone(),
            server: way.server.clone(),
            state: match way.proxy.condition() {
                Condition::Open => LinkState::Open,
                Condition::Cut => LinkState::Cut,
                Condition::Slow(_) => LinkState::Slow,
            },
        });
        Breakable {
            members: members.collect(),
            ways: ways.collect(),
            phones: self.addresses.phones.clone(),
        }
    }

    fn can(&self, name: &str, instance: bool, state: MemberState) -> Vec<Action> {
        match state {
            MemberState::Paused => return vec![Action::Resume, Action::Kill],
            MemberState::Killed => return vec![Action::Start],
            MemberState::Running => {}
        }
        let has_session = instance
            && self
                .ways
                .iter()
                .any(|way| way.is_of(name) && zookeeper::is_name(&way.server));
        let first = redis::name(0);
        let follower = if self.replica_leads() {
            &first
        } else {
            redis::REPLICA
        };
        let (grouped, isolated) = (self.is_grouped(name), self.isolated.contains(name));
        let follows = (self.replicated.is_some() && name == follower) || grouped;
        let clock = self.clock(name);
        let ahead = clock.is_some_and(Clock::has_jumped);
        let besides = [
            (Action::Expire, has_session),
            (Action::Promote, follows),
            (Action::Jump, clock.is_some() && !ahead),
            (Action::Cut, grouped && !isolated),
            (Action::Mend, ahead || isolated),
        ];
        [Action::Pause, Action::Kill]
            .into_iter()
            .chain(besides.into_iter().filter_map(|(a, can)| can.then_some(a)))
            .collect()
    }

    /// Whether the replica is the main Redis now.
    fn replica_leads(&self) -> bool {
        self.replicated.as_ref().is_some_and(|of| {
            let replica = format!("127.0.0.1:{}", of.replica);
            let mut ways = self.ways_to_main().into_iter();
            ways.any(|way| way.proxy.leads_to() == replica)
        })
    }

    /// Waits until a member that was told to stand still does so.
    pub(super) async fn stands_still(&self, name: &str) -> Result<(), Failure> {
        let member = self.member(name)?;
        let still = async {
            while member.state() == MemberState::Running {
                sleep(STEP).await;
            }
        };
        timeout(STOP, still)
            .await
            .map_err(|_| unusable!("{name} does not stand still"))
    }
}
