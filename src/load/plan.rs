//! The plan of one row: its target and its workload.

use http::Method;
use oversell_lab::terminal::chinese::localized;
use secrecy::SecretString;
use serde::Serialize;
use std::time::Duration;

/// The name of the target that is one instance; any other name means several.
pub const ONE_INSTANCE: &str = "one";
/// The name of the target that is nginx in front of three instances.
pub const THREE_BEHIND_NGINX: &str = "three";
/// The name of a target in the language of the terminal.
pub(super) fn target_name(target: &str) -> String {
    match target {
        ONE_INSTANCE => localized!("一个实例", "one"),
        THREE_BEHIND_NGINX => localized!("三个实例", "three"),
        other => other.to_owned(),
    }
}

/// How many instances [`THREE_BEHIND_NGINX`] has.
pub(super) const INSTANCES: u64 = 3;
/// The stock for measuring a rate: more than a run can sell.
pub(super) const PLENTIFUL_STOCK: i64 = 1_000_000_000;
/// The most requests of a run; more would load the cluster for many minutes.
const MAX_REQUESTS: u64 = 1_000_000;
/// The most time that all requests together may stay inside: a run of more than ten minutes looks as if it hung.
const MAX_TOTAL_HOLD_MS: u64 = 600_000;

/// The target and the workload of a run.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// The address to load: an instance or nginx, as `http://127.0.0.1:8080`.
    pub base: String,
    /// `one` instance or `three` behind nginx: the label of the row.
    pub target: String,
    /// The slug of the strategy, or of the step of the seckill.
    pub strategy: String,
    /// Connections, each of which sends one request after the other.
    pub threads: usize,
    /// Requests of each connection.
    pub loops: usize,
    /// How long each request stays inside the critical section, in milliseconds.
    pub hold_ms: u64,
    /// The longest wait of a request for its lock, in milliseconds; `None`: as the service is configured.
    #[serde(skip)]
    pub wait_ms: Option<u64>,
    /// The product; if a voucher is ordered, the first of the users.
    pub stock_id: i64,
    /// The stock at the start.
    pub count: i64,
    /// The admin token, for a cluster that has one: `PUT /stock` needs it.
    #[serde(skip)]
    pub token: Option<SecretString>,
    /// `POST`, which no proxy repeats, unless that is what is tried.
    #[serde(skip)]
    pub method: Method,
    /// The visitor whose own lock is tried.
    #[serde(skip)]
    pub visitor: Option<String>,
    /// Keeps who was inside when, to be drawn.
    #[serde(skip)]
    pub draws: bool,
    /// Sends for a time, instead of `loops`.
    #[serde(skip)]
    pub(super) timed: Option<Timed>,
    /// Orders of a voucher by a step of the seckill, instead of sales of a product by a strategy.
    #[serde(skip)]
    pub(super) orders: Option<Orders>,
}

/// A load of a fixed duration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// A request that is answered in this time does not count; at a rate, one that is due in it.
    pub warm_up: Duration,
    /// A request that is answered in this time counts; at a rate, one that is due in it.
    pub measured: Duration,
    /// Requests that are due each second, over all connections; without it each connection sends when it can.
    pub rate: Option<f64>,
}

/// The users who order a voucher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Orders {
    /// How many users order.
    pub users: u64,
    /// Orders of each user, which follow each other.
    pub repeats: u64,
}

/// A new id for a product, or for the first user, of one run: beyond the ids that a person types, and exact in JavaScript too.
pub fn own_product() -> i64 {
    fastrand::i64(1 << 40..1 << 52)
}

impl Timed {
    /// Without a rate: each connection sends when it can.
    pub const fn closed(warm_up: Duration, measured: Duration) -> Self {
        Self { warm_up, measured, rate: None }
    }

    /// Warm-up and measurement together.
    pub(super) fn total(self) -> Duration {
        self.warm_up + self.measured
    }

    /// The number of requests that are due at this rate per second, those of the warm-up included.
    pub(super) fn due(self, rate: f64) -> u64 {
        (self.total().as_secs_f64() * rate).ceil() as u64
    }
}

impl Plan {
    /// The course's load of 100 × 50 requests against a strategy at `base`, on a product that nobody else uses.
    pub fn new(base: &str, target: &str, strategy: &str) -> Self {
        Self {
            base: base.into(),
            target: target.into(),
            strategy: strategy.into(),
            threads: 100,
            loops: 50,
            hold_ms: 0,
            wait_ms: None,
            stock_id: own_product(),
            count: 5000,
            token: None,
            method: Method::POST,
            visitor: None,
            draws: false,
            timed: None,
            orders: None,
        }
    }

    /// The plan for orders of a voucher, spread over the connections. There may be more orders than asked for, because each
    /// connection sends equally many.
    pub fn for_orders(self, users: u64, repeats: u64) -> Self {
        let orders = usize::try_from(users.saturating_mul(repeats)).unwrap_or(usize::MAX);
        Self { loops: orders.div_ceil(self.threads), orders: Some(Orders { users, repeats }), ..self }
    }

    /// The plan for a load of fixed duration, on a new product with more stock than can be sold. Nobody stays inside, and each order is
    /// of another user.
    pub(super) fn with_duration(&self, timed: Timed) -> Self {
        let another = Orders { users: u64::MAX, repeats: 1 };
        Self {
            timed: Some(timed),
            count: PLENTIFUL_STOCK,
            hold_ms: 0,
            stock_id: own_product(),
            orders: self.orders.map(|_| another),
            ..self.clone()
        }
    }

    /// How many requests the run will send; 0 for a load of fixed duration, which cannot know.
    pub fn planned_requests(&self) -> u64 {
        if self.timed.is_some() { 0 } else { (self.threads as u64).saturating_mul(self.loops as u64) }
    }

    /// Checks that the run ends within minutes. How many orders there are is not checked.
    /// Errors: the rule that it breaks.
    pub fn check(&self) -> Result<(), String> {
        let held = self.planned_requests().saturating_mul(self.hold_ms);
        if self.threads == 0 || self.loops == 0 {
            Err("threads and loops are 1 or more".into())
        } else if self.orders.is_some() {
            // A second order of a user is refused and does not stay; the command bounds users and repeats.
            Ok(())
        } else if self.planned_requests() > MAX_REQUESTS {
            Err(format!("threads × loops is at most {MAX_REQUESTS}"))
        } else if held > MAX_TOTAL_HOLD_MS {
            Err(format!("threads × loops × hold_ms is at most {MAX_TOTAL_HOLD_MS}, which is 10 minutes one after the other"))
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_in_json_has_no_token() {
        let mut plan = Plan::new("", ONE_INSTANCE, "none");
        plan.token = Some("secret".into());
        assert!(!serde_json::to_string(&plan).unwrap().contains("secret"));
        assert!(!format!("{plan:?}").contains("secret"));
    }

    #[test]
    fn a_plan_sends_at_least_the_orders_that_it_is_asked_for() {
        let mut plan = Plan::new("", ONE_INSTANCE, "user-mutex");
        plan.threads = 7;
        assert_eq!(plan.for_orders(10, 3).planned_requests(), 35);
    }
}
