//! One run of orders against one step, of a voucher of its own: added before, judged after, and removed with its orders.
//!
//! The users are of this run alone, since the text's lock is a user's and not a voucher's. Their repeats follow each other,
//! on different connections, so that they come at the same time.

use super::row::Row;
use crate::{
    failure::Failure,
    load::{
        answer,
        asks::Asks,
        engine::{Ended, Load, Timed, Until},
        history::{Outcome, Said},
        link::{Body, Origin},
        run::{PLENTY, Snapshot, follow, own_product},
        stock_api::{base, client, get, succeeded},
    },
    seckill::{
        Step,
        check::{Answers, Books, Entry, Report, check},
    },
};
use chrono::{TimeDelta, Utc};
use http::{HeaderName, HeaderValue, Method, Request, header};
use parking_lot::Mutex;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::json;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

const USER: HeaderName = HeaderName::from_static("x-user-id");

/// An order that was answered and is written behind is waited for as long as orders come.
const STILL: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What to send, and where.
#[derive(Debug, Clone)]
pub(in crate::load) struct Plan {
    pub(in crate::load) base: String,
    pub(in crate::load) target: String,
    pub(in crate::load) step: &'static Step,
    pub(in crate::load) threads: usize,
    pub(in crate::load) users: u64,
    /// Orders of each user.
    pub(in crate::load) repeats: u64,
    pub(in crate::load) pieces: i64,
    pub(in crate::load) hold_ms: u64,
    pub(in crate::load) token: Option<SecretString>,
    /// Send for a time instead: each order is of another user, and the pieces are more than anybody orders.
    pub(in crate::load) timed: Option<Timed>,
}

/// What the answers of a run said, besides the numbers of their orders.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) answers: Answers,
    pub(super) sold_out: u64,
    pub(super) already_ordered: u64,
    pub(super) under_way: u64,
}

/// Who orders, and what they were told.
struct Buyers {
    request: Request<Body>,
    first: i64,
    users: u64,
    repeats: u64,
    tally: Arc<Mutex<Tally>>,
}

/// The fields of an answer that are looked at.
#[derive(Deserialize)]
struct Json<'a> {
    #[serde(rename = "type")]
    kind: Option<&'a str>,
    order_id: Option<&'a str>,
}

impl Buyers {
    fn user(&self, n: u64) -> i64 {
        self.first + (n / self.repeats % self.users).cast_signed()
    }
}

impl Asks for Buyers {
    fn request(&self, n: u64) -> Request<Body> {
        let mut request = self.request.clone();
        request
            .headers_mut()
            .insert(USER, HeaderValue::from(self.user(n)));
        request
    }

    fn meaning(&self, n: u64, status: u16, body: &[u8]) -> (Outcome, Said) {
        let (outcome, said) = answer::meaning(status, body);
        let json = serde_json::from_slice(body).unwrap_or(Json {
            kind: None,
            order_id: None,
        });
        let mut tally = self.tally.lock();
        let turned_away = match (&outcome, json.kind) {
            (Outcome::Sold, _) => {
                let Some(order_id) = json.order_id.and_then(|id| id.parse().ok()) else {
                    return (Outcome::Refused("success without an order".into()), said);
                };
                tally.answers.orders.push(Entry {
                    order_id,
                    user_id: self.user(n),
                });
                return (outcome, said);
            }
            (_, Some("urn:oversell:sold-out")) => &mut tally.sold_out,
            (_, Some("urn:oversell:already-ordered")) => &mut tally.already_ordered,
            (_, Some("urn:oversell:order-under-way")) => &mut tally.under_way,
            _ => return (outcome, said),
        };
        *turned_away += 1;
        (Outcome::SoldOut, said)
    }
}

/// Runs a plan to its end, or until it is cancelled.
///
/// # Errors
///
/// [`Failure::Unusable`] where the target does not answer at all.
///
/// # Cancel safety
///
/// Dropping the future closes every connection, and leaves the voucher. Cancel instead.
pub(in crate::load) async fn run(
    plan: &Plan,
    progress: &watch::Sender<Snapshot>,
    cancel: &CancellationToken,
) -> Result<Row, Failure> {
    let url = add(plan).await?;
    let measured = measure(plan, &url, progress, cancel).await;
    let removed = client().delete(&url, plan.token.as_ref()).await;
    let mut row = measured?;
    if let Err(why) = succeeded(&format!("DELETE {url}"), removed) {
        row.notes.push(why.to_string());
    }
    Ok(row)
}

/// Adds the voucher, on sale since an hour: clocks may differ by less.
async fn add(plan: &Plan) -> Result<String, Failure> {
    #[derive(Deserialize)]
    struct Added {
        id: i64,
    }
    let at = base(&plan.base);
    let now = Utc::now();
    let stock = if plan.timed.is_some() {
        PLENTY
    } else {
        plan.pieces
    };
    let (begin, end) = (now - TimeDelta::hours(1), now + TimeDelta::days(1));
    let voucher = json!({"title": "oversell seckill", "stock": stock, "begin": begin, "end": end});
    let what = format!("POST {at}/voucher");
    let added = succeeded(
        &what,
        client()
            .post(&format!("{at}/voucher"), &voucher, plan.token.as_ref())
            .await,
    )?;
    let Added { id } = added
        .json()
        .map_err(|why| Failure::Unusable(format!("{what}: {why}")))?;
    Ok(format!("{at}/voucher/{id}"))
}

async fn measure(
    plan: &Plan,
    voucher: &str,
    progress: &watch::Sender<Snapshot>,
    cancel: &CancellationToken,
) -> Result<Row, Failure> {
    let origin = Origin::parse(&plan.base)?;
    let id = voucher.rsplit('/').next().unwrap_or_default();
    let path = format!(
        "/voucher-order/seckill/{id}?strategy={}&hold_ms={}",
        plan.step.slug, plan.hold_ms
    );
    let mut request = origin.request(Method::POST, &path)?;
    request
        .headers_mut()
        .insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let tally = Arc::<Mutex<Tally>>::default();
    let (users, repeats) = if plan.timed.is_some() {
        (u64::MAX, 1)
    } else {
        (plan.users, plan.repeats)
    };
    let buyers = Buyers {
        request,
        first: own_product(),
        users,
        repeats,
        tally: Arc::clone(&tally),
    };
    let load = Load {
        origin,
        asks: Box::new(buyers),
        threads: plan.threads,
        until: plan.until(),
        draws: false,
    };
    let ended = load
        .send(cancel, |seen| follow(seen, plan.planned(), progress))
        .await?;

    let mut tally = tally.lock().clone();
    tally.answers.unknown = ended.all.counts().unknown;
    let report = written(voucher, &tally.answers).await?;
    Ok(Row::new(
        plan,
        &tally,
        report,
        &ended,
        cancel.is_cancelled(),
    ))
}

/// What the checker says once all is written that was answered, or nothing more comes.
async fn written(voucher: &str, answers: &Answers) -> Result<Report, Failure> {
    let (mut most, mut since) = (0, Instant::now());
    loop {
        let books: Books = get(&format!("{voucher}/orders")).await?;
        if books.orders.len() > most {
            (most, since) = (books.orders.len(), Instant::now());
        }
        let report = check(&books, Some(answers));
        if report.lost_orders == 0 || since.elapsed() > STILL {
            return Ok(report);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

impl Plan {
    /// The same for a time instead, in which nobody stays inside.
    pub(super) fn timed(&self, timed: Timed) -> Self {
        Self {
            timed: Some(timed),
            hold_ms: 0,
            ..self.clone()
        }
    }

    /// Requests that the run sends: the same number on each connection. Of one that lasts a time, 0.
    pub(super) fn planned(&self) -> u64 {
        match self.until() {
            Until::Loops(loops) => (loops * self.threads) as u64,
            Until::Over(_) => 0,
        }
    }

    fn until(&self) -> Until {
        let orders = usize::try_from(self.users * self.repeats).unwrap_or(usize::MAX);
        self.timed
            .map_or(Until::Loops(orders.div_ceil(self.threads)), Until::Over)
    }
}

/// What a run of this many orders has seen, for whom it counts.
pub(super) fn per_second(ended: &Ended) -> f64 {
    (ended.counted.counts().sold as f64 / ended.elapsed.as_secs_f64().max(1e-9)).round()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seckill;

    fn buyers() -> Buyers {
        let request = Origin::parse("http://127.0.0.1:1")
            .unwrap()
            .request(Method::POST, "/")
            .unwrap();
        Buyers {
            request,
            first: 100,
            users: 2,
            repeats: 3,
            tally: Arc::default(),
        }
    }

    #[test]
    fn the_repeats_of_a_user_follow_each_other() {
        let buyers = buyers();
        let users: Vec<_> = (0..8).map(|n| buyers.user(n)).collect();
        assert_eq!(users, [100, 100, 100, 101, 101, 101, 100, 100]);
        assert_eq!(buyers.request(3).headers()[USER], "101");
    }

    #[test]
    fn an_order_and_each_way_to_be_turned_away_is_counted_and_the_rest_are_errors() {
        let buyers = buyers();
        let said = |status, body: &str| buyers.meaning(3, status, body.as_bytes()).0;
        assert_eq!(
            said(200, r#"{"outcome":"sold","order_id":"9007199254740993"}"#),
            Outcome::Sold
        );
        for kind in ["sold-out", "already-ordered", "order-under-way"] {
            let outcome = if kind == "sold-out" {
                "sold_out"
            } else {
                "refused"
            };
            let body = format!(r#"{{"type":"urn:oversell:{kind}","outcome":"{outcome}"}}"#);
            assert_eq!(said(409, &body), Outcome::SoldOut);
        }
        assert!(matches!(
            said(200, r#"{"outcome":"sold"}"#),
            Outcome::Refused(_)
        ));
        assert!(matches!(
            said(409, r#"{"type":"urn:oversell:over","outcome":"refused"}"#),
            Outcome::Refused(_)
        ));
        assert!(matches!(
            said(503, r#"{"outcome":"unknown"}"#),
            Outcome::Unknown(_)
        ));
        let tally = buyers.tally.lock();
        assert_eq!(
            tally.answers.orders,
            [Entry {
                order_id: 9_007_199_254_740_993,
                user_id: 101
            }]
        );
        assert_eq!(
            (tally.sold_out, tally.already_ordered, tally.under_way),
            (1, 1, 1)
        );
    }

    #[test]
    fn a_plan_sends_at_least_the_orders_that_it_is_asked_for() {
        let plan = Plan {
            base: String::new(),
            target: "one".into(),
            step: &seckill::ALL[0],
            threads: 7,
            users: 10,
            repeats: 3,
            pieces: 1,
            hold_ms: 0,
            token: None,
            timed: None,
        };
        assert_eq!(plan.planned(), 35);
    }
}
