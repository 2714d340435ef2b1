//! Counts the requests that are under way: for each product, in this instance and in the others, and of each client, in this one.
//!
//! A paused instance cannot say how many requests wait in it. Those that the load generator has sent and no other instance
//! has are in it, so they are counted as the silent instance's ([`InstancePoll::poll`]).

use futures::future::join_all;
use oversell_lab::clients::http_client::{Ask, client};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::{
    collections::{BTreeMap, HashMap},
    hash::Hash,
    sync::Arc,
    time::Duration,
};
use utoipa::ToSchema;

/// Time limit of one answer; the requests of a silent instance are those that the other instances do not have.
const REPLY_TIMEOUT: Duration = Duration::from_millis(500);

/// Counts the requests that are under way in this instance, by product or by client. A clone counts the same.
#[derive(Debug, Clone)]
pub(super) struct RequestCounts<K: Copy + Eq + Hash>(Arc<Mutex<HashMap<K, u64>>>);

/// Counts one request as under way until it is dropped.
#[derive(Debug)]
pub(super) struct CountGuard<K: Copy + Eq + Hash> {
    all: RequestCounts<K>,
    key: K,
}

impl<K: Copy + Eq + Hash> Default for RequestCounts<K> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Copy + Eq + Hash> RequestCounts<K> {
    /// Counts a request of this product or client until the guard is dropped.
    pub(super) fn count(&self, key: K) -> CountGuard<K> {
        *self.0.lock().entry(key).or_default() += 1;
        CountGuard { all: self.clone(), key }
    }

    /// How many requests of this product or client are under way now.
    pub(super) fn get(&self, key: K) -> u64 {
        self.0.lock().get(&key).copied().unwrap_or_default()
    }
}

impl<K: Copy + Eq + Hash> Drop for CountGuard<K> {
    fn drop(&mut self) {
        let mut all = self.all.0.lock();
        if let Some(n) = all.get_mut(&self.key) {
            *n -= 1;
            if *n == 0 {
                all.remove(&self.key);
            }
        }
    }
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct UnderWayBody {
    #[schema(example = "8100")]
    pub(super) instance: String,
    /// Requests of this product that are under way in it.
    #[schema(example = 99)]
    pub(super) under_way: u64,
}

/// The instances to poll, by address, with their names as far as known.
#[derive(Debug)]
pub(super) struct InstancePoll(BTreeMap<String, String>);

impl InstancePoll {
    pub(super) fn new(urls: &[String]) -> Self {
        Self(urls.iter().map(|url| (url.clone(), url.clone())).collect())
    }

    /// The requests of this product that are under way in each instance, by its name. The rest of the `sent` unanswered ones
    /// counts for the silent instances, which share one entry under all their names, or addresses until they have answered once.
    pub(super) async fn poll(&mut self, stock_id: i64, sent: u64) -> BTreeMap<String, u64> {
        let answers = join_all(self.0.keys().map(|url| {
            let url = format!("{}/health/under-way?stock_id={stock_id}", url.trim_end_matches('/'));
            let asked = client().get(url).timeout(REPLY_TIMEOUT).answer();
            async { asked.await?.success()?.json::<UnderWayBody>() }
        }));
        let answers = answers.await;
        let (mut under_way, mut silent) = (BTreeMap::new(), Vec::new());
        for (name, answer) in self.0.values_mut().zip(answers) {
            match answer {
                Ok(answer) => {
                    under_way.insert(answer.instance.clone(), answer.under_way);
                    *name = answer.instance;
                }
                Err(_) => silent.push(name.as_str()),
            }
        }
        if !silent.is_empty() {
            let told: u64 = under_way.values().sum();
            under_way.insert(silent.join(", "), sent.saturating_sub(told));
        }
        under_way
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_of_a_silent_instance_are_counted_as_the_rest() {
        let nobody = "http://127.0.0.1:1".to_owned();
        let mut asked = InstancePoll::new(std::slice::from_ref(&nobody));
        assert_eq!(asked.poll(7, 99).await, BTreeMap::from([(nobody, 99)]));
    }

    #[test]
    fn a_request_is_counted_until_it_is_dropped() {
        let all = RequestCounts::default();
        let two = (all.count(7), all.count(7));
        assert_eq!((all.get(7), all.get(8)), (2, 0));
        drop(two);
        assert!(all.0.lock().is_empty());
    }
}
