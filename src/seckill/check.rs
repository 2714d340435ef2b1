//! Whether a seckill went correctly, from what the database has and what was answered. A pure function.
//!
//! 1. Orders = stock taken, and no more than there were pieces.
//! 2. One order per user.
//! 3. Every order that was answered is there, once; every number was answered once.
//! 4. No order is there that was not asked for: at most one for each request without an answer.
//! 5. Redis, where the voucher is sold from it and no order waits to be written, has no fewer pieces than the database.
//!
//! What it survives: answers that never came; they widen what rule 4 allows. **What breaks it**: a voucher that somebody else
//! orders too: a run has one of its own.

use serde::{Deserialize, Serialize};
use std::{collections::HashSet, fmt};
use utoipa::ToSchema;

/// An order: its number, and whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct VoucherOrder {
    /// Its number, as a string: it exceeds 2^53.
    #[serde(with = "as_text")]
    #[schema(value_type = String, example = "656262738411028481")]
    pub order_id: i64,
    #[schema(example = 1010)]
    pub user_id: i64,
}

/// A voucher in the database.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct VoucherRecords {
    /// The initial stock.
    #[schema(example = 100)]
    pub pieces: i64,
    /// The stock now.
    #[schema(example = 99)]
    pub stock: i64,
    /// The stock in Redis; none if the voucher is not sold there, orders are still queued, or it could not be read.
    #[serde(default)]
    #[schema(example = 99)]
    pub redis_stock: Option<i64>,
    pub orders: Vec<VoucherOrder>,
}

/// The answers to the clients, without the refusals: a refused request must leave no order.
#[derive(Debug, Clone, Default)]
pub struct OrderAnswers {
    /// The orders that were answered.
    pub orders: Vec<VoucherOrder>,
    /// Requests whose outcome is not known.
    pub unknown: u64,
}

/// What the checker found: nothing (`Exact`), or the worst fault. The faults stand from the worst to the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OrdersVerdict {
    /// All rules hold.
    Exact,
    /// More orders than pieces.
    Oversold,
    /// A user has more than one.
    DuplicateOrders,
    /// An order that was answered is not there.
    LostOrders,
    /// One number was answered twice, or stands twice in the books.
    RepeatedIds,
    /// There is an order that was not answered to anybody.
    UnaskedOrders,
    /// The database has pieces that Redis does not sell.
    LostPieces,
    /// Orders and stock taken differ.
    StockDiffers,
}

impl fmt::Display for OrdersVerdict {
    /// Writes the word of tables and files: `lost-orders`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// The numbers of a run, and its faults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OrdersReport {
    /// The worst fault, or `exact`.
    pub verdict: OrdersVerdict,
    /// All faults.
    pub faults: Vec<OrdersVerdict>,
    /// The initial stock.
    #[schema(example = 100)]
    pub pieces: i64,
    /// The stock now.
    #[schema(example = 0)]
    pub stock: i64,
    /// How many orders there are.
    #[schema(example = 100)]
    pub orders: i64,
    /// Orders beyond the pieces.
    #[schema(example = 0)]
    pub oversold: i64,
    /// Orders beyond the first of each user.
    #[schema(example = 0)]
    pub duplicate_orders: usize,
    /// Orders that were answered and are not there.
    #[schema(example = 0)]
    pub lost_orders: usize,
    /// Numbers beyond the first of each.
    #[schema(example = 0)]
    pub repeated_ids: usize,
    /// Orders beyond the answered and the unknown ones.
    #[schema(example = 0)]
    pub unasked_orders: u64,
    /// Pieces that the database has and Redis does not sell.
    #[serde(default)]
    #[schema(example = 0)]
    pub lost_pieces: i64,
}

/// Judges a run. Without `answers`, lost and unasked orders are not looked for.
pub fn check_orders(records: &VoucherRecords, answers: Option<&OrderAnswers>) -> OrdersReport {
    let answered = answers.map_or(&[][..], |answers| &answers.orders);
    let there: HashSet<_> = records.orders.iter().collect();
    let told: HashSet<_> = answered.iter().collect();
    let users: HashSet<_> = records.orders.iter().map(|order| order.user_id).collect();
    let repeated =
        |orders: &[VoucherOrder]| orders.len() - orders.iter().map(|order| order.order_id).collect::<HashSet<_>>().len();
    let count = |orders: usize| i64::try_from(orders).unwrap_or(i64::MAX);
    let orders = count(records.orders.len());
    let untold = there.difference(&told).count() as u64;
    let mut report = OrdersReport {
        verdict: OrdersVerdict::Exact,
        faults: Vec::new(),
        pieces: records.pieces,
        stock: records.stock,
        orders,
        oversold: (orders - records.pieces).max(0),
        duplicate_orders: records.orders.len() - users.len(),
        lost_orders: told.difference(&there).count(),
        repeated_ids: repeated(&records.orders).max(repeated(answered)),
        unasked_orders: answers.map_or(0, |answers| untold.saturating_sub(answers.unknown)),
        lost_pieces: records.redis_stock.map_or(0, |in_redis| (records.stock - in_redis).max(0)),
    };
    let rules = [
        (OrdersVerdict::Oversold, report.oversold > 0),
        (OrdersVerdict::DuplicateOrders, report.duplicate_orders > 0),
        (OrdersVerdict::LostOrders, report.lost_orders > 0),
        (OrdersVerdict::RepeatedIds, report.repeated_ids > 0),
        (OrdersVerdict::UnaskedOrders, report.unasked_orders > 0),
        (OrdersVerdict::LostPieces, report.lost_pieces > 0),
        (OrdersVerdict::StockDiffers, records.pieces - records.stock != orders),
    ];
    report.faults = rules.into_iter().filter(|(_, broken)| *broken).map(|(fault, _)| fault).collect();
    report.verdict = report.faults.first().copied().unwrap_or(OrdersVerdict::Exact);
    report
}

/// Writes a number as a JSON string, and reads it from one.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(number: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(number)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries(orders: &[(i64, i64)]) -> Vec<VoucherOrder> {
        orders.iter().map(|&(order_id, user_id)| VoucherOrder { order_id, user_id }).collect()
    }

    fn verdict(stock: i64, records: &[(i64, i64)], answered: &[(i64, i64)], unknown: u64) -> OrdersVerdict {
        let records = VoucherRecords { pieces: 2, stock, redis_stock: None, orders: entries(records) };
        check_orders(&records, Some(&OrderAnswers { orders: entries(answered), unknown })).verdict
    }

    #[test]
    fn each_fault_has_its_verdict() {
        use OrdersVerdict::*;
        let (a, b, c) = ((11, 1), (12, 2), (13, 3));
        for (stock, records, answered, unknown, wanted) in [
            (2, &[][..], &[][..], 0, Exact),
            (0, &[a, b], &[a, b], 0, Exact),
            (1, &[a], &[], 1, Exact),
            (1, &[a], &[a], 1, Exact),
            (-1, &[a, b, c], &[a, b, c], 0, Oversold),
            (0, &[a, (12, 1)], &[a, (12, 1)], 0, DuplicateOrders),
            (1, &[a], &[a, b], 0, LostOrders),
            (1, &[(11, 2)], &[a], 0, LostOrders),
            (0, &[a, (11, 2)], &[a, (11, 2)], 0, RepeatedIds),
            (1, &[a], &[a, a], 0, RepeatedIds),
            (1, &[a], &[], 0, UnaskedOrders),
            (0, &[a, b], &[], 1, UnaskedOrders),
            (0, &[a], &[a], 0, StockDiffers),
            (1, &[], &[], 1, StockDiffers),
        ] {
            assert_eq!(verdict(stock, records, answered, unknown), wanted, "{stock} {records:?} {answered:?} {unknown}");
        }
    }

    #[test]
    fn without_answers_only_the_database_is_judged() {
        let records = VoucherRecords { pieces: 1, stock: 0, redis_stock: None, orders: entries(&[(11, 1)]) };
        assert_eq!(check_orders(&records, None).verdict, OrdersVerdict::Exact);
    }

    #[test]
    fn a_piece_that_redis_does_not_sell_is_lost() {
        let report = |redis_stock| {
            let records = VoucherRecords { pieces: 5, stock: 4, redis_stock, orders: entries(&[(11, 1)]) };
            check_orders(&records, None)
        };
        // More in Redis: another step sells the voucher too, and MySQL refuses what is too much.
        for sound in [None, Some(4), Some(5)] {
            assert_eq!(report(sound).verdict, OrdersVerdict::Exact, "{sound:?}");
        }
        let lost = report(Some(2));
        assert_eq!((lost.verdict, lost.lost_pieces), (OrdersVerdict::LostPieces, 2));
    }

    #[test]
    fn an_order_id_beyond_2_to_the_53_keeps_its_digits() {
        let order = VoucherOrder { order_id: (1 << 53) + 1, user_id: 1 };
        let json = serde_json::to_string(&order).expect("JSON");
        assert_eq!(json, r#"{"order_id":"9007199254740993","user_id":1}"#);
        assert_eq!(serde_json::from_str::<VoucherOrder>(&json).expect("JSON"), order);
    }

    proptest! {
        /// A sound run is exact, and whatever is done to it afterwards is seen.
        #[test]
        fn a_run_that_was_tampered_with_is_never_exact(users in 1..50_i64, spare in 0..5_i64, which in 0..50_usize, how in 0..5) {
            let sold: Vec<_> = (0..users).map(|user| (user + 100, user)).collect();
            let answers = OrderAnswers { orders: entries(&sold), unknown: 0 };
            let mut records = VoucherRecords { pieces: users + spare, stock: spare, redis_stock: Some(spare), orders: entries(&sold) };
            prop_assert_eq!(check_orders(&records, Some(&answers)).verdict, OrdersVerdict::Exact);
            let which = which % sold.len();
            match how {
                0 => drop(records.orders.remove(which)),
                1 => records.stock -= 1,
                2 => records.orders.push(VoucherOrder { order_id: 1, ..records.orders[which] }),
                3 => records.orders.push(VoucherOrder { user_id: -1, ..records.orders[which] }),
                _ => records.orders[which].user_id = -1,
            }
            prop_assert_ne!(check_orders(&records, Some(&answers)).verdict, OrdersVerdict::Exact);
        }
    }
}
