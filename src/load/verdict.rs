//! Judges a run by the answers to its buyers and by the pieces that left the stock.
//!
//! A request without an answer may have taken a piece or not, and is never guessed: between `sold` and `sold + unknown` pieces were
//! sold, so the final stock must lie in an interval ([`stock_within`]). As in Jepsen the worst verdict counts: a proof of overselling
//! outweighs a doubt, and a doubt outweighs "exact".

use super::history::OutcomeCounts;
use crate::{seckill::check, stock::Promise};
use oversell_lab::terminal::chinese::localized;
use serde::{Deserialize, Serialize};
use std::{fmt, ops::RangeInclusive};

/// The verdict on the stock, or on the orders of a voucher. The greater verdict outweighs the lesser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As many pieces were sold as left the stock, and every request got an answer.
    Exact,
    /// Nothing was oversold, but requests failed or their effect is unknown, or pieces left the stock without an answer, or buyers
    /// were refused although pieces were left.
    Errors,
    /// More pieces were sold than left the stock, or than there were.
    Oversold,
    /// The orders of a voucher are wrong in another way.
    #[serde(untagged)]
    Wrong(check::OrdersVerdict),
}

impl fmt::Display for Verdict {
    /// Writes the word of the verdict in tables and files.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Verdict {
    /// The word of the verdict in the language of the terminal.
    pub(super) fn localized(self) -> String {
        use check::OrdersVerdict;
        let english = self.to_string();
        let chinese = match self {
            Self::Exact | Self::Wrong(OrdersVerdict::Exact) => "分毫不差",
            Self::Errors => "有出错",
            Self::Oversold | Self::Wrong(OrdersVerdict::Oversold) => "超卖",
            Self::Wrong(OrdersVerdict::DuplicateOrders) => "一人多单",
            Self::Wrong(OrdersVerdict::LostOrders) => "订单丢失",
            Self::Wrong(OrdersVerdict::RepeatedIds) => "编号重复",
            Self::Wrong(OrdersVerdict::UnaskedOrders) => "订单多出",
            Self::Wrong(OrdersVerdict::StockDiffers) => "库存不符",
            Self::Wrong(OrdersVerdict::LostPieces) => "库存丢失",
        };
        localized!("{chinese}", "{english}")
    }

    /// Whether the run has proved that something is wrong.
    pub const fn is_refuted(self) -> bool {
        matches!(self, Self::Oversold | Self::Wrong(_))
    }
}

/// The stock before and after a run, in the store that the strategy counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct StockChange {
    pub before: i64,
    pub after: i64,
}

/// The interval in which the final stock of an honest shop lies; empty if more was sold than there was.
pub fn stock_within(before: i64, counts: OutcomeCounts) -> RangeInclusive<i64> {
    let most = before - signed(counts.sold);
    let least = (most - signed(counts.unknown)).max(0);
    least..=most
}

/// Pieces sold that did not leave the stock: `sold − (before − after)`. Negative if more left than was sold.
pub fn oversold(stock_change: StockChange, counts: OutcomeCounts) -> i64 {
    signed(counts.sold) - (stock_change.before - stock_change.after)
}

/// Judges a run that has sold pieces of a product. A final stock above its interval, or below zero, is oversold; one below the
/// interval is [`Verdict::Errors`].
pub fn judge(stock_change: StockChange, counts: OutcomeCounts) -> Verdict {
    let within = stock_within(stock_change.before, counts);
    let sent_away = counts.sold_out > 0 && stock_change.after > 0;
    if stock_change.after > *within.end() || stock_change.after < 0 {
        Verdict::Oversold
    } else if !within.contains(&stock_change.after) || sent_away || counts.failed() > 0 {
        Verdict::Errors
    } else {
        Verdict::Exact
    }
}

/// The verdict on a run that has sold a voucher: the checker's, but [`Verdict::Errors`] instead of exact if requests failed.
pub fn judge_orders(report: &check::OrdersReport, counts: OutcomeCounts) -> Verdict {
    match report.verdict {
        check::OrdersVerdict::Exact if counts.failed() > 0 => Verdict::Errors,
        check::OrdersVerdict::Exact => Verdict::Exact,
        check::OrdersVerdict::Oversold => Verdict::Oversold,
        fault => Verdict::Wrong(fault),
    }
}

/// The verdict that a promise implies on one instance, or on several. Of a step, oversold stands for any fault.
pub const fn expected(promise: Promise, one_instance: bool) -> Verdict {
    match (promise, one_instance) {
        (Promise::Safe | Promise::Lease, _) | (Promise::OneProcess, true) => Verdict::Exact,
        (Promise::OneProcess, false) | (Promise::Unsafe, _) => Verdict::Oversold,
    }
}

/// The number as `i64`, or the greatest `i64`.
fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn counts(sold: u64, sold_out: u64, errors: u64, unknown: u64) -> OutcomeCounts {
        OutcomeCounts { sold, sold_out, errors, unknown }
    }

    #[test]
    fn the_table_of_verdicts() {
        use Verdict::{Errors, Exact, Oversold};
        // Before and after; sold, sold out, refused, unknown.
        for (what, before, after, [sold, out, refused, unknown], wanted) in [
            ("all sold, all gone", 10, 0, [10, 0, 0, 0], Exact),
            ("some sold, as many gone", 10, 4, [6, 0, 0, 0], Exact),
            ("sold out, and it is", 10, 0, [10, 5, 0, 0], Exact),
            ("nothing happened", 10, 10, [0, 0, 0, 0], Exact),
            ("nothing to sell", 0, 0, [0, 7, 0, 0], Exact),
            ("one sold, still there", 10, 1, [10, 0, 0, 0], Oversold),
            ("more sold than there was", 10, 0, [11, 0, 0, 0], Oversold),
            ("the same beside unknowns", 10, 0, [11, 0, 0, 9], Oversold),
            ("below zero", 10, -1, [11, 0, 0, 0], Oversold),
            ("below zero by an unknown", 10, -1, [10, 0, 0, 1], Oversold),
            ("the stock has grown", 10, 11, [0, 0, 0, 0], Oversold),
            ("refused, nothing changed", 10, 4, [6, 0, 2, 0], Errors),
            ("unknown, and not done", 10, 4, [6, 0, 0, 2], Errors),
            ("unknown, one of two done", 10, 3, [6, 0, 0, 2], Errors),
            ("unknown, and both done", 10, 2, [6, 0, 0, 2], Errors),
            ("more gone than unknown", 10, 1, [6, 0, 0, 2], Errors),
            ("gone, nobody was told", 10, 3, [6, 0, 0, 0], Errors),
            ("an unknown is no excuse", 10, 5, [6, 0, 0, 2], Oversold),
            ("an error is no excuse", 10, 5, [6, 0, 3, 0], Oversold),
            ("sent away, pieces left", 10, 4, [6, 1, 0, 0], Errors),
        ] {
            let seen = counts(sold, out, refused, unknown);
            assert_eq!(judge(StockChange { before, after }, seen), wanted, "{what}");
        }
    }

    #[test]
    fn a_fault_in_the_orders_outweighs_unknown_answers() {
        use check::OrdersVerdict;
        let judged = |faulty: OrdersVerdict, unknown| {
            let mut report = check::check_orders(&check::VoucherRecords::default(), None);
            report.verdict = faulty;
            judge_orders(&report, counts(1, 0, 0, unknown))
        };
        for (fault, unknown, wanted) in [
            (OrdersVerdict::Exact, 0, "exact"),
            (OrdersVerdict::Exact, 1, "errors"),
            (OrdersVerdict::Oversold, 1, "oversold"),
            (OrdersVerdict::DuplicateOrders, 1, "duplicate-orders"),
        ] {
            let verdict = judged(fault, unknown);
            assert_eq!(verdict.to_string(), wanted);
            assert_eq!(serde_json::to_value(verdict).unwrap(), wanted);
            assert_eq!(verdict.is_refuted(), fault != OrdersVerdict::Exact);
        }
    }

    #[test]
    fn an_unknown_outcome_widens_the_interval_by_one_downwards() {
        assert_eq!(stock_within(10, counts(6, 0, 0, 0)), 4..=4);
        assert_eq!(stock_within(10, counts(6, 0, 0, 1)), 3..=4);
        assert_eq!(stock_within(10, counts(6, 0, 0, 9)), 0..=4);
        assert!(stock_within(10, counts(11, 0, 0, 5)).is_empty());
    }

    #[test]
    fn each_promise_has_its_expected_verdict() {
        for (promise, one, three) in [
            (Promise::Unsafe, Verdict::Oversold, Verdict::Oversold),
            (Promise::OneProcess, Verdict::Exact, Verdict::Oversold),
            (Promise::Lease, Verdict::Exact, Verdict::Exact),
            (Promise::Safe, Verdict::Exact, Verdict::Exact),
        ] {
            assert_eq!((expected(promise, true), expected(promise, false)), (one, three), "{promise:?}");
        }
    }

    /// What a request did, and what its sender saw of it.
    #[derive(Debug, Clone, Copy)]
    enum Fate {
        Answered,
        RefusedUntouched,
        CutBefore,
        CutAfter,
    }

    fn fate() -> impl Strategy<Value = Fate> {
        prop_oneof![
            8 => Just(Fate::Answered),
            1 => Just(Fate::RefusedUntouched),
            1 => Just(Fate::CutBefore),
            1 => Just(Fate::CutAfter),
        ]
    }

    /// An honest shop: each request that gets through takes one piece while there is one.
    fn honest(before: i64, fates: &[Fate]) -> (StockChange, OutcomeCounts) {
        let (mut after, mut counts) = (before, OutcomeCounts::default());
        for fate in fates {
            let sold = after > 0 && matches!(fate, Fate::Answered | Fate::CutAfter);
            after -= i64::from(sold);
            match fate {
                Fate::Answered if sold => counts.sold += 1,
                Fate::Answered => counts.sold_out += 1,
                Fate::RefusedUntouched => counts.errors += 1,
                Fate::CutBefore | Fate::CutAfter => counts.unknown += 1,
            }
        }
        (StockChange { before, after }, counts)
    }

    proptest! {
        #[test]
        fn an_honest_shop_is_never_called_oversold(before in 0i64..60, fates in prop::collection::vec(fate(), 0..80)) {
            let (stock_change, counts) = honest(before, &fates);
            let wanted = if counts.failed() == 0 { Verdict::Exact } else { Verdict::Errors };
            prop_assert_eq!(judge(stock_change, counts), wanted);
            prop_assert!(stock_within(before, counts).contains(&stock_change.after));
        }

        #[test]
        fn lost_updates_beyond_the_unknown_are_always_found(
            before in 1i64..60, fates in prop::collection::vec(fate(), 1..80), lost in 1i64..20,
        ) {
            let (stock_change, counts) = honest(before, &fates);
            // Each unknown request that did take a piece can hide one lost update, and no more than that.
            let hidden = (stock_change.before - stock_change.after) - i64::try_from(counts.sold).unwrap();
            let broken = StockChange { after: stock_change.after + hidden + lost, ..stock_change };
            prop_assert_eq!(judge(broken, counts), Verdict::Oversold);
            prop_assert_eq!(oversold(broken, counts), lost);
        }

        #[test]
        fn exact_means_that_sold_and_gone_agree(
            before in 0i64..100, after in -20i64..100, sold in 0u64..100, sold_out in 0u64..9, refused in 0u64..3,
            unknown in 0u64..3,
        ) {
            let (stock_change, counts) = (StockChange { before, after }, counts(sold, sold_out, refused, unknown));
            if judge(stock_change, counts) == Verdict::Exact {
                prop_assert_eq!(oversold(stock_change, counts), 0);
                prop_assert_eq!(counts.failed(), 0);
                prop_assert!(after >= 0);
            }
        }

        #[test]
        fn one_more_sold_never_makes_an_oversold_run_better(
            before in 0i64..100, after in -20i64..100, sold in 0u64..100, unknown in 0u64..9,
        ) {
            let stock_change = StockChange { before, after };
            if judge(stock_change, counts(sold, 0, 0, unknown)) == Verdict::Oversold {
                prop_assert_eq!(judge(stock_change, counts(sold + 1, 0, 0, unknown)), Verdict::Oversold);
            }
        }
    }
}
