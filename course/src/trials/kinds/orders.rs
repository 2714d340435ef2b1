//! [002] Orders of a voucher: whether it is oversold, and whether a user gets two.

use crate::trials::{Cluster, NoVerdict, Observation, voucher::TrialVoucher};
use oversell::{
    claims::{Target, Words},
    seckill::check::OrdersVerdict,
};
use serde_json::json;

/// Claim: if 100 users order 20 pieces once, or 40 users 100 pieces `repeats` times, the checker reaches this verdict.
pub(super) async fn crowd_gets_verdict(
    on: &Cluster,
    step: &str,
    target: Target,
    repeats: u64,
    verdict: OrdersVerdict,
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
        format!(
            "{step} on {}: {pieces} pieces, {written} orders, {oversold} oversold, {twice} beyond a user's first.",
            place.en
        ),
    );
    let figures = json!({
        "placed": row.counts.sold,
        "verdict": row.verdict,
        "oversold": oversold,
        "report": ordered,
    });
    Ok(Observation::holds(holds, words).value("crowd", figures))
}

/// Whether the checker reaches this verdict. To the checker missing orders are no fault, so for `exact` all orders must have
/// been placed and written, and no request may have failed: `orders` has these three numbers.
fn has_verdict(verdict: OrdersVerdict, faults: &[OrdersVerdict], orders: [i64; 3], all: i64) -> bool {
    match verdict {
        OrdersVerdict::Exact => faults.is_empty() && orders == [all, all, 0],
        fault => faults.contains(&fault),
    }
}

/// Claim: if 40 users order three times each, all at once, nothing is oversold, and each has one order.
pub(super) async fn each_user_gets_one_order(
    on: &Cluster,
    step: &str,
    target: Target,
) -> Result<Observation, NoVerdict> {
    crowd_gets_verdict(on, step, target, 3, OrdersVerdict::Exact).await
}

/// While an order stays inside, orders once more for the same user through nginx; returns the answer to that second order.
pub(super) async fn order_twice_at_once(
    on: &Cluster,
    voucher: &TrialVoucher<'_>,
    step: &str,
) -> Result<(u16, String), NoVerdict> {
    let second = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        voucher.order(on.nginx(), step, 1, "").await
    };
    let (first, second) = tokio::join!(voucher.order(on.one_instance(), step, 1, "&hold_ms=1500"), second);
    first?;
    let (status, answer) = second?;
    Ok((status, answer["title"].as_str().unwrap_or_default().to_owned()))
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
