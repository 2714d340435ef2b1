//! How many round trips and notifications a section costs: what ZooKeeper itself has counted while a strategy is loaded,
//! by its four-letter word `mntr`.
//!
//! Requests are the packets that it received. What else is among them — a reset of the stock, which lists every lock's
//! directory, and the pings of sessions that are idle — is found by a load of a strategy that knows nothing of ZooKeeper
//! and taken off. That is exact to a few packets for the whole of a load: pings depend on how long it takes, and a reset
//! deletes what a strategy has left.
//!
//! Notifications are the watches that the server has fired, which it counts by itself: exact, whatever else it sends.
//! (Packets sent less packets received would not be: an answer to `mntr` counts as two or more.)

use crate::{failure::Failure, four_letters::four_letters};
use std::{future::Future, time::Duration};
use tokio::time::timeout;

const TIMEOUT: Duration = Duration::from_secs(3);

const RECEIVED: &str = "zk_packets_received";
/// A change fires the watches of one of these kinds, or of two.
const FIRED: [&str; 4] = [
    "zk_sum_node_created_watch_count",
    "zk_sum_node_deleted_watch_count",
    "zk_sum_node_changed_watch_count",
    "zk_sum_node_children_watch_count",
];

/// What the server was sent, and what it told without being asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) requests: u64,
    pub(super) notifications: u64,
}

impl Traffic {
    /// What is more than in `other`.
    pub(super) fn beyond(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            notifications: self.notifications.saturating_sub(other.notifications),
        }
    }

    /// The sums in an answer to `mntr`; `None` where one is missing, as before ZooKeeper 3.6.
    fn parse(mntr: &str) -> Option<Self> {
        let value = |name: &str| {
            mntr.lines()
                .find_map(|line| line.split_once('\t').filter(|(n, _)| *n == name)?.1.trim().parse::<u64>().ok())
        };
        let fired: Option<Vec<_>> = FIRED.iter().map(|name| value(name)).collect();
        Some(Self { requests: value(RECEIVED)?, notifications: fired?.iter().sum() })
    }
}

/// What `load` comes to, and what went to and fro meanwhile at the servers of `connect`
/// (`host:port[,host:port…]`).
///
/// # Errors
///
/// Those of `load`; [`Failure::Unusable`] where the server does not count, or does not say so.
pub(super) async fn during<T>(
    connect: &str,
    load: impl Future<Output = Result<T, Failure>>,
) -> Result<(T, Traffic), Failure> {
    let before = counted(connect).await?;
    let came_to = load.await?;
    Ok((came_to, counted(connect).await?.beyond(before)))
}

/// All servers of an ensemble together: each counts its own clients.
async fn counted(connect: &str) -> Result<Traffic, Failure> {
    let failed = |why: String| Failure::Unusable(format!("the packets of ZooKeeper cannot be counted: {why}"));
    let mut sum = Traffic { requests: 0, notifications: 0 };
    for server in connect.split(',') {
        let answer =
            timeout(TIMEOUT, four_letters(server, "mntr")).await.map_err(|_| failed("no answer in time".into()))?;
        let answer = answer.map_err(|e| failed(e.to_string()))?;
        let said = || answer.lines().next().unwrap_or_default();
        let of = Traffic::parse(&answer).ok_or_else(|| failed(format!("{server} says {:?}", said())))?;
        sum.requests += of.requests;
        sum.notifications += of.notifications;
    }
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "zk_version\t3.8.0\nzk_packets_received\t120\nzk_packets_sent\t150\n\
        zk_sum_node_created_watch_count\t1\nzk_sum_node_deleted_watch_count\t20\n\
        zk_max_node_deleted_watch_count\t9\nzk_sum_node_changed_watch_count\t3\nzk_sum_node_children_watch_count\t4\n";

    #[test]
    fn watches_of_every_kind_are_notifications() {
        assert_eq!(Traffic::parse(ANSWER), Some(Traffic { requests: 120, notifications: 28 }));
    }

    #[test]
    fn a_server_that_does_not_count_is_not_taken_for_one_that_counts_nothing() {
        assert_eq!(Traffic::parse("mntr is not executed because it is not in the whitelist.\n"), None);
        assert_eq!(Traffic::parse("zk_packets_received\t120\n"), None);
    }

    #[test]
    fn what_every_load_costs_is_taken_off_and_never_below_nothing() {
        let of = |requests, notifications| Traffic { requests, notifications };
        assert_eq!(of(100, 5).beyond(of(40, 6)), of(60, 0));
    }
}
