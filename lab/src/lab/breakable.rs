//! What can be broken in a lab, and the state of each member and link.

use super::{
    Lab,
    clock::Clock,
    nginx, redis,
    server::{Tier, has_base_name},
    zookeeper,
};
use crate::{
    clients::proxy::Condition,
    fault::{Action, Breakable, Link, LinkState, Member, MemberState},
    terminal::failure::Failure,
    wait::wait_until,
};
use std::time::Duration;

/// Time limit of a pause: after SIGSTOP all threads of a process must stop within this time.
const PAUSE_TIMEOUT: Duration = Duration::from_secs(2);

impl Lab {
    /// All members and links. nginx is left out: it serves the page on which faults are injected.
    pub(super) fn breakable(&self) -> Breakable {
        let members = self.members.iter().filter(|m| m.name != nginx::NAME);
        let members = members.map(|member| {
            let (name, state) = (member.name.as_str(), member.state());
            let is_instance = member.tier == Tier::Instance;
            Member { name: name.to_owned(), instance: is_instance, state, can: self.possible_actions(name, is_instance, state) }
        });
        let links = self.links.iter().map(|link| Link {
            name: link.name(),
            instance: link.instance.clone(),
            server: link.server.clone(),
            state: match link.proxy.condition() {
                Condition::Open => LinkState::Open,
                Condition::Cut => LinkState::Cut,
                Condition::Slow(_) => LinkState::Slow,
            },
        });
        Breakable { members: members.collect(), links: links.collect(), phones: self.addresses.phones.clone() }
    }

    /// The actions that are possible on this member in this state, without those on its links.
    fn possible_actions(&self, name: &str, is_instance: bool, state: MemberState) -> Vec<Action> {
        match state {
            MemberState::Paused => return vec![Action::Resume, Action::Kill],
            MemberState::Killed => return vec![Action::Start],
            MemberState::Running => {}
        }
        let has_session =
            is_instance && self.links.iter().any(|link| link.belongs_to(name) && has_base_name(&link.server, zookeeper::NAME));
        let first = redis::name(0);
        let follower = if self.is_replica_main() { &first } else { redis::REPLICA };
        let (in_sentinel_group, isolated) = (self.is_grouped(name), self.isolated.contains(name));
        let follows = (self.replica_pair.is_some() && name == follower) || in_sentinel_group;
        let clock = self.clock(name);
        let ahead = clock.is_some_and(Clock::has_jumped);
        let besides = [
            (Action::Expire, has_session),
            (Action::Promote, follows),
            (Action::Jump, clock.is_some() && !ahead),
            (Action::Cut, in_sentinel_group && !isolated),
            (Action::Mend, ahead || isolated),
        ];
        [Action::Pause, Action::Kill].into_iter().chain(besides.into_iter().filter_map(|(a, can)| can.then_some(a))).collect()
    }

    /// Whether the replica is the main Redis now.
    fn is_replica_main(&self) -> bool {
        self.replica_pair.as_ref().is_some_and(|of| {
            let replica = format!("127.0.0.1:{}", of.replica);
            let mut links = self.links_to_main().into_iter();
            links.any(|link| link.proxy.target() == replica)
        })
    }

    /// Waits until SIGSTOP has stopped the member, or it runs no more for another reason; fails after [`PAUSE_TIMEOUT`].
    pub(super) async fn wait_until_paused(&self, name: &str) -> Result<(), Failure> {
        let member = self.member(name)?;
        let late = format!("after SIGSTOP {name} did not stop");
        wait_until(PAUSE_TIMEOUT, late, || async { member.state() != MemberState::Running }).await
    }
}
