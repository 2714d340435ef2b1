//! Counts of what buyers bought, and the times in which nobody could buy.
//!
//! `load::classify_answer` decides whether an answer sold a piece, as it does in a load.

use oversell::load::{classify_answer, history::Outcome};
use oversell_lab::{clients::http_client::HttpError, terminal::failure::Failure, wait::wait_until};
use parking_lot::Mutex;
use serde::Serialize;
use serde_json::Value;
use std::time::{Duration, Instant};

/// The pieces of a product: more than all buyers of an experiment can buy.
pub(super) const STOCK: i64 = 1_000_000;
/// This many sales show that buyers are served again; one or two may still succeed while a server dies.
const SALES_OF_SERVICE: usize = 20;

/// The outcome of a purchase; without an answer in JSON it is unknown.
pub(super) fn outcome(answer: &Result<(u16, Value), HttpError>) -> Outcome {
    match answer {
        Ok((status, body)) => classify_answer(*status, body.to_string().as_bytes()).0,
        Err(error) => Outcome::Unknown(error.to_string()),
    }
}

/// Answers to buyers by their meaning, and the pieces that left the stock.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct SaleCounts {
    pub(super) sold: i64,
    /// Sales whose answer says that the lock was kept.
    pub(super) kept: i64,
    /// Answers that say that nothing was changed, or that nothing is left.
    pub(super) refused: i64,
    /// Purchases with any other answer, or none.
    pub(super) unknown: i64,
    /// Pieces that left the stock.
    pub(super) gone: i64,
    pub(super) per_sec: f64,
}

impl SaleCounts {
    /// Counts one purchase by its outcome.
    pub(super) fn count(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Sold => self.sold += 1,
            Outcome::SoldOut | Outcome::Refused(_) => self.refused += 1,
            Outcome::Unknown(_) => self.unknown += 1,
        }
    }

    /// Adds the counts of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            sold: self.sold + other.sold,
            kept: self.kept + other.kept,
            refused: self.refused + other.refused,
            unknown: self.unknown + other.unknown,
            gone: self.gone + other.gone,
            per_sec: self.per_sec + other.per_sec,
        }
    }

    /// Sold without a piece; negative if more pieces are gone than were sold.
    pub(super) fn oversold(self) -> i64 {
        self.sold - self.gone
    }

    /// Whether each sale took one piece; an unknown purchase may have taken one. False if nothing was sold.
    pub(super) fn is_exact(self) -> bool {
        self.sold > 0 && (0..=self.unknown).contains(&-self.oversold())
    }
}

/// A purchase that sold a piece, from request to answer.
#[derive(Debug)]
struct TimedSale {
    began: Instant,
    ended: Instant,
}

/// The sales to all buyers, in the order of their ends.
#[derive(Debug, Default)]
pub(super) struct Sales(Mutex<Vec<TimedSale>>);

impl Sales {
    /// Waits for a purchase, and records it if it is a sale.
    pub(super) async fn record(&self, purchase: impl Future<Output = Outcome>) {
        let began = Instant::now();
        let outcome = purchase.await;
        self.add(TimedSale { began, ended: Instant::now() }, &outcome);
    }

    fn add(&self, sale: TimedSale, outcome: &Outcome) {
        if matches!(outcome, Outcome::Sold) {
            self.0.lock().push(sale);
        }
    }

    /// Waits until [`SALES_OF_SERVICE`] sales have begun after `since` and ended; `None` if that takes longer than `within`.
    pub(super) async fn wait_for_sales(&self, since: Instant, within: Duration) -> Option<()> {
        let are_served = || async { self.count_sales(since, None) >= SALES_OF_SERVICE };
        wait_until::<Failure, _>(within, "nobody is served", are_served).await.ok()
    }

    /// The sales that began after `from` and ended before `to`.
    pub(super) fn count_sales(&self, from: Instant, to: Option<Instant>) -> usize {
        let sales = self.0.lock();
        sales.iter().filter(|sale| sale.began > from && to.is_none_or(|to| sale.ended < to)).count()
    }

    /// The longest time between two sales from `from` to `to`. The time before the first one counts, that after the last one
    /// does not; zero without a sale.
    pub(super) fn longest_gap(&self, from: Instant, to: Instant) -> Duration {
        let mut times: Vec<_> = self.0.lock().iter().map(|sale| sale.ended).collect();
        times.retain(|ended| (from..to).contains(ended));
        times.push(from);
        times.sort_unstable();
        let gaps = times.windows(2).map(|two| two[1] - two[0]);
        gaps.max().unwrap_or_default()
    }

    /// The time from `from` to the end of the first sale that began after it; zero if there was none.
    pub(super) fn first_sale(&self, from: Instant) -> Duration {
        let sales = self.0.lock();
        let since = sales.iter().filter(|sale| sale.began > from).map(|sale| sale.ended - from);
        since.min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_without_a_result_is_unknown() {
        for (status, word, is_known) in [
            (200, "sold", true),
            (409, "sold_out", true),
            (503, "failed", true),
            (503, "unknown", false),
            (500, "unknown", false),
        ] {
            let outcome = outcome(&Ok((status, json!({"outcome": word}))));
            let is_unknown = matches!(outcome, Outcome::Unknown(_));
            assert_eq!(!is_unknown, is_known, "{status} {word}");
        }
        let sale = outcome(&Ok((200, json!({"outcome": "sold", "remaining": 3}))));
        assert!(matches!(sale, Outcome::Sold), "{sale:?}");
    }

    #[test]
    fn only_sales_count_for_gaps() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let refused = || Outcome::Refused(String::new());
        let unknown = || Outcome::Unknown(String::new());
        let sales = Sales::default();
        for (began, ended, outcome) in [
            (0, 90, Outcome::Sold),
            (95, 130, Outcome::Sold),
            (140, 900, refused()),
            (140, 950, unknown()),
            (1000, 1030, Outcome::Sold),
            (1000, 9000, Outcome::Sold),
        ] {
            let (began, ended) = (at(began), at(ended));
            sales.add(TimedSale { began, ended }, &outcome);
        }
        let gap = |from, to| sales.longest_gap(at(from), at(to)).as_millis();
        assert_eq!([gap(100, 2000), gap(200, 2000), gap(100, 1000)], [900, 830, 30]);
        assert_eq!(sales.first_sale(at(92)).as_millis(), 38);
        assert_eq!(sales.first_sale(at(990)).as_millis(), 40);
        assert_eq!(sales.count_sales(at(92), Some(at(2000))), 2);
    }

    #[test]
    fn a_piece_sold_twice_is_not_exact() {
        for (sold, unknown, gone, exact) in
            [(10, 0, 10, true), (10, 2, 11, true), (10, 0, 9, false), (10, 2, 13, false), (10, 2, 9, false), (0, 0, 0, false)]
        {
            let all = SaleCounts { sold, unknown, gone, ..SaleCounts::default() };
            assert_eq!(all.is_exact(), exact, "{all:?}");
        }
    }
}
