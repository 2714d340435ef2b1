//! A voucher of one run, which is added before, judged afterwards and removed with its orders; and the users who order it.
//!
//! The users are of this run alone, because the text's lock is a user's and not a voucher's. Their repeats follow each other,
//! on different connections, so that they come at the same time.

use super::{
    answer,
    history::{AnswerDetails, Outcome},
    link::Body,
    plan::Orders,
    row::RefusedOrders,
    stock_api::{read, require_success, without_trailing_slash},
};
use crate::seckill::check::{OrderAnswers, OrdersReport, VoucherOrder, VoucherRecords, check_orders};
use chrono::{TimeDelta, Utc};
use http::{HeaderName, HeaderValue, Request};
use oversell_lab::{
    clients::http_client::{Ask, client},
    terminal::failure::{Failure, unusable},
};
use parking_lot::Mutex;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;
use std::{
    ops::Range,
    time::{Duration, Instant},
};

/// The period of a voucher: it begins an hour ago, so that clocks may differ.
const ON_SALE: Range<TimeDelta> = TimeDelta::hours(-1)..TimeDelta::days(1);
/// The header that names the ordering user.
const USER_HEADER: HeaderName = HeaderName::from_static("x-user-id");

/// If no new order appears for this long, missing ones count as lost: orders are written behind.
const QUIET_TIME: Duration = Duration::from_secs(10);
/// The pause between looks at the orders: short beside [`QUIET_TIME`].
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A voucher of one run or experiment. Dropping it does not remove it.
#[derive(Debug)]
pub struct LoadVoucher {
    url: String,
    pub id: i64,
    token: Option<SecretString>,
}

/// The users of a voucher, and the answers to them.
pub(super) struct Buyers {
    request: Request<Body>,
    first: i64,
    orders: Orders,
    /// The orders that succeeded, and how many were refused because of an earlier order.
    answers: Mutex<(OrderAnswers, RefusedOrders)>,
}

/// The fields that are read of an answer.
#[derive(Deserialize)]
struct OrderAnswer<'a> {
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    order_id: Option<&'a str>,
}

impl Buyers {
    /// The users from `first` on, each of whom sends `request`.
    pub(super) fn new(request: Request<Body>, first: i64, orders: Orders) -> Self {
        Self { request, first, orders, answers: Mutex::default() }
    }

    /// The orders that succeeded, by user and order id, with `unknown` as the number of requests whose outcome is not known; and
    /// how many were refused because of an earlier order of their user. Those that were sold out are in neither.
    pub(super) fn answers(&self, unknown: u64) -> (OrderAnswers, RefusedOrders) {
        let (answers, tally) = self.answers.lock().clone();
        (OrderAnswers { unknown, ..answers }, tally)
    }

    /// The user of the `n`-th order: each user orders `repeats` times in a row, and then all again.
    fn user(&self, n: u64) -> i64 {
        self.first + (n / self.orders.repeats % self.orders.users).cast_signed()
    }

    /// The request for the `n`-th order, from 0.
    pub(super) fn request(&self, n: u64) -> Request<Body> {
        let mut request = self.request.clone();
        request.headers_mut().insert(USER_HEADER, HeaderValue::from(self.user(n)));
        request
    }

    /// Returns the outcome of the `n`-th order, and notes its order id, or that it was refused because of an earlier one,
    /// which counts as sold out. A success without an order id counts as refused.
    pub(super) fn classify_answer(&self, n: u64, status: u16, body: &[u8]) -> (Outcome, AnswerDetails) {
        let (outcome, said) = answer::classify_answer(status, body);
        let json = serde_json::from_slice(body).unwrap_or(OrderAnswer { kind: None, order_id: None });
        let mut all = self.answers.lock();
        let (answers, tally) = &mut *all;
        match (&outcome, json.kind) {
            (Outcome::Sold, _) => {
                let Some(order_id) = json.order_id.and_then(|id| id.parse().ok()) else {
                    return (Outcome::Refused("success without an order".into()), said);
                };
                answers.orders.push(VoucherOrder { order_id, user_id: self.user(n) });
                return (outcome, said);
            }
            (_, Some("urn:oversell:sold-out")) => {}
            (_, Some("urn:oversell:already-ordered")) => tally.already_ordered += 1,
            (_, Some("urn:oversell:order-under-way")) => tally.under_way += 1,
            _ => return (outcome, said),
        }
        (Outcome::SoldOut, said)
    }
}

impl LoadVoucher {
    /// Adds a voucher that is on sale.
    /// Errors: [`Failure::Unusable`] where that is refused, or not answered.
    pub async fn add(at: &str, pieces: i64, token: Option<&SecretString>) -> Result<Self, Failure> {
        #[derive(Deserialize)]
        struct NewVoucher {
            id: i64,
        }
        let url = format!("{}/voucher", without_trailing_slash(at));
        let [begin, end] = [ON_SALE.start, ON_SALE.end].map(|by| Utc::now() + by);
        let voucher = json!({"title": "oversell seckill", "stock": pieces, "begin": begin, "end": end});
        let what = format!("POST {url}");
        let added = require_success(&what, client().post(&url).json(&voucher).token(token)).await?;
        let NewVoucher { id } = added.json().map_err(|why| unusable!("{what}: {why}"))?;
        Ok(Self { url: format!("{url}/{id}"), id, token: token.cloned() })
    }

    /// Reads the voucher with its orders.
    pub async fn read_records(&self) -> Result<VoucherRecords, Failure> {
        read(&format!("{}/orders", self.url)).await
    }

    /// Waits until all answered orders are written, or none has appeared for [`QUIET_TIME`]; returns the report of the checker.
    pub(super) async fn check_orders(&self, answers: &OrderAnswers) -> Result<OrdersReport, Failure> {
        let (mut most, mut since) = (0, Instant::now());
        loop {
            let records = self.read_records().await?;
            if records.orders.len() > most {
                (most, since) = (records.orders.len(), Instant::now());
            }
            let report = check_orders(&records, Some(answers));
            if report.lost_orders == 0 || since.elapsed() > QUIET_TIME {
                return Ok(report);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Deletes the voucher with its orders.
    pub async fn remove(&self) -> Result<(), Failure> {
        let request = client().delete(&self.url).token(self.token.as_ref());
        let removed = require_success(&format!("DELETE {}", self.url), request).await;
        removed.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::link::Origin;
    use http::Method;

    fn buyers() -> Buyers {
        let request = Origin::parse("http://127.0.0.1:1").unwrap().request(Method::POST, "/").unwrap();
        let orders = Orders { users: 2, repeats: 3 };
        Buyers::new(request, 100, orders)
    }

    #[test]
    fn the_repeats_of_a_user_follow_each_other() {
        let buyers = buyers();
        let users: Vec<_> = (0..8).map(|n| buyers.user(n)).collect();
        assert_eq!(users, [100, 100, 100, 101, 101, 101, 100, 100]);
        assert_eq!(buyers.request(3).headers()[USER_HEADER], "101");
    }

    #[test]
    fn orders_and_refusals_are_counted_and_the_rest_are_errors() {
        let buyers = buyers();
        let said = |status, body: &str| buyers.classify_answer(3, status, body.as_bytes()).0;
        assert_eq!(said(200, r#"{"outcome":"sold","order_id":"9007199254740993"}"#), Outcome::Sold);
        for kind in ["sold-out", "already-ordered", "order-under-way"] {
            let outcome = if kind == "sold-out" { "sold_out" } else { "refused" };
            let body = format!(r#"{{"type":"urn:oversell:{kind}","outcome":"{outcome}"}}"#);
            assert_eq!(said(409, &body), Outcome::SoldOut);
        }
        assert!(matches!(said(200, r#"{"outcome":"sold"}"#), Outcome::Refused(_)));
        assert!(matches!(said(409, r#"{"type":"urn:oversell:over","outcome":"refused"}"#), Outcome::Refused(_)));
        assert!(matches!(said(503, r#"{"outcome":"unknown"}"#), Outcome::Unknown(_)));
        let (answers, tally) = buyers.answers(0);
        assert_eq!(answers.orders, [VoucherOrder { order_id: 9_007_199_254_740_993, user_id: 101 }]);
        assert_eq!((tally.already_ordered, tally.under_way), (1, 1));
    }
}
