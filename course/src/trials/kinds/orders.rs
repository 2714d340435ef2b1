//! [002] Orders of a voucher: whether it is oversold, and whether a user gets two.

use crate::trials::{Cluster, NoVerdict, Observation};
use oversell::{
    claims::{Target, Words, words},
    seckill::check::OrdersVerdict,
};
use serde_json::json;

/// Claim: if 100 users order 20 pieces once, or 40 users 100 pieces `repeats` times, the checker reaches this verdict; with
/// `refuses_beside` some orders are refused because their user has another one under way.
pub(super) async fn crowd_gets_verdict(
    on: &Cluster,
    step: &str,
    target: Target,
    repeats: u64,
    verdict: OrdersVerdict,
    refuses_beside: bool,
) -> Result<Observation, NoVerdict> {
    let (pieces, users) = if repeats == 1 { (20, 100) } else { (100, 40) };
    let (row, ordered) = on.send_orders(step, target, pieces, users, repeats).await?;
    let (written, twice, oversold) = (ordered.orders, ordered.duplicate_orders, row.oversold);
    let [placed, failed] = [row.counts.sold, row.counts.failed()].map(u64::cast_signed);
    let all = pieces.min(users.cast_signed());
    let holds = has_verdict(verdict, &ordered.faults, [placed, written, failed], all);
    let place = target.words();
    let words = Words::new(
        format!("{step}，{}：{pieces} 件，{written} 单，超卖 {oversold} 件，重复的 {twice} 单。", place.zh),
        format!("{step} on {}: {pieces} pieces, {written} orders, {oversold} oversold, {twice} beyond a user's first.", place.en),
    );
    let figures = json!({
        "placed": row.counts.sold,
        "verdict": row.verdict,
        "oversold": oversold,
        "report": ordered,
    });
    let seen = Observation::holds(holds, words).value("crowd", figures);
    let beside = ordered.tally.under_way;
    let words = words!("不允许重复下单：{beside} 单。", "{beside} are refused beside another one: 不允许重复下单.");
    Ok(if refuses_beside { seen.and(Observation::holds(beside > 0, words)) } else { seen })
}

/// Whether the checker reaches this verdict. To the checker missing orders are no fault, so for `exact` all orders must have
/// been placed and written, and no request may have failed: `orders` has these three numbers.
fn has_verdict(verdict: OrdersVerdict, faults: &[OrdersVerdict], orders: [i64; 3], all: i64) -> bool {
    match verdict {
        OrdersVerdict::Exact => faults.is_empty() && orders == [all, all, 0],
        fault => faults.contains(&fault),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_that_are_not_there_are_not_exact() {
        use OrdersVerdict::{DuplicateOrders, Exact, Oversold};
        for (verdict, faults, placed_written_and_failed, holds) in [
            (Exact, &[][..], [40, 40, 0], true),
            (Exact, &[], [40, 40, 80], false),
            // All were refused, as where no INSERT is done.
            (Exact, &[], [0, 0, 0], false),
            (Exact, &[], [40, 0, 0], false),
            (Exact, &[], [39, 39, 0], false),
            (Exact, &[DuplicateOrders], [40, 40, 0], false),
            (Oversold, &[Oversold, DuplicateOrders], [40, 40, 0], true),
            (Oversold, &[DuplicateOrders], [40, 40, 0], false),
            (Oversold, &[], [0, 0, 0], false),
        ] {
            let found = has_verdict(verdict, faults, placed_written_and_failed, 40);
            assert_eq!(found, holds, "{verdict:?} {faults:?} {placed_written_and_failed:?}");
        }
    }
}
