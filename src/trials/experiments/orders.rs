//! [002] Orders of a voucher: whether it is on sale, whether it is oversold, and whether a user gets one order or two under the
//! locks of one process.

use crate::{
    claims::{Target, Words, words},
    seckill::check::OrdersVerdict,
    trials::{Cluster, NoVerdict, Observation, voucher::TrialVoucher},
};
use chrono::TimeDelta;
use serde_json::json;

experiments! {
    "002.on-sale" => on_sale([[1, 2], [-2, -1], [-1, 1]]), twin([[-1, 1]; 3]);
    "002.global-mutex" => global_mutex("global-mutex"), twin("user-mutex");
}

async fn on_sale(on: &Cluster, periods: [[i64; 2]; 3]) -> Result<Observation, NoVerdict> {
    let mut said = Vec::new();
    for hours in periods {
        let [from, until] = hours.map(TimeDelta::hours);
        let voucher = on.voucher(1, from, until).await?;
        let (_, mut answer) = voucher.order(on.three(), "redis-rlock", 1, "").await?;
        if answer["outcome"] == "sold" {
            // The only piece is sold; ask as another user.
            answer = voucher.order(on.three(), "redis-rlock", 2, "").await?.1;
        }
        voucher.remove().await?;
        said.push(answer["title"].as_str().unwrap_or_default().to_owned());
    }
    let heard = said.join("，");
    let words = words!("依次回答：{heard}。", "The answers: {heard}.");
    let holds = ["尚未开始", "已经结束", "库存不足"]
        .iter()
        .zip(&said)
        .all(|(wanted, said)| said.contains(wanted));
    Ok(Observation::holds(holds, words).value("answers", said))
}

/// Claim: for a crowd on a few pieces the checker reaches this verdict.
pub(in crate::trials) async fn crowd(
    on: &Cluster,
    step: &str,
    target: Target,
    repeats: u64,
    verdict: OrdersVerdict,
) -> Result<Observation, NoVerdict> {
    let (pieces, users) = if repeats == 1 { (20, 100) } else { (100, 40) };
    let (row, ordered) = on.crowd(step, target, pieces, users, repeats).await?;
    let (written, twice, oversold) = (ordered.orders, ordered.duplicate_orders, row.oversold);
    let [placed, failed] = [row.counts.sold, row.counts.failed()].map(u64::cast_signed);
    let all = pieces.min(users.cast_signed());
    let holds = is_verdict(verdict, &ordered.faults, [placed, written, failed], all);
    let place = target.words();
    let words = Words::new(
        format!(
            "{step}，{}：{pieces} 件，{written} 单，超卖 {oversold} 件，重复的 {twice} 单。",
            place.zh
        ),
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

/// Whether the checker comes to this verdict. Missing orders are no fault to the checker, so for `exact` all orders must have
/// been placed and written, and no request may have failed.
fn is_verdict(
    verdict: OrdersVerdict,
    faults: &[OrdersVerdict],
    orders: [i64; 3],
    all: i64,
) -> bool {
    match verdict {
        OrdersVerdict::Exact => faults.is_empty() && orders == [all, all, 0],
        fault => faults.contains(&fault),
    }
}

/// 40 users order three times each, all at once: nothing is oversold, and each has one order.
pub(super) async fn one_each(
    on: &Cluster,
    step: &str,
    target: Target,
) -> Result<Observation, NoVerdict> {
    crowd(on, step, target, 3, OrdersVerdict::Exact).await
}

/// One user stays inside, and another one comes, who may not wait: refused by the one lock, and not by a lock per user.
async fn global_mutex(on: &Cluster, one_lock: &str) -> Result<Observation, NoVerdict> {
    let exact = one_each(on, "global-mutex", Target::OneInstance).await?;
    let mut statuses = Vec::new();
    for step in [one_lock, "user-mutex"] {
        let voucher = on.on_sale(10).await?;
        let second = async {
            tokio::time::sleep(std::time::Duration::from_millis(700)).await;
            voucher.order(on.one(), step, 2, "&wait_ms=200").await
        };
        let (first, second) =
            tokio::join!(voucher.order(on.one(), step, 1, "&hold_ms=2000"), second);
        first?;
        statuses.push(second?.0);
        voucher.remove().await?;
    }
    let words = words!(
        "另一个人只肯等 0.2 秒：一把锁时 {}，每人一把锁时 {}。",
        "Another user who waits for 0.2 s only: {} with the one lock, {} with a lock each.",
        statuses[0],
        statuses[1]
    );
    Ok(exact.and(Observation::holds(statuses == [503, 200], words).value("statuses", statuses)))
}

/// An order that stays inside, while another of the same user comes to another instance: what the second hears.
pub(super) async fn beside(
    on: &Cluster,
    voucher: &TrialVoucher<'_>,
    step: &str,
) -> Result<(u16, String), NoVerdict> {
    let second = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        voucher.order(on.three(), step, 1, "").await
    };
    let (first, second) = tokio::join!(voucher.order(on.one(), step, 1, "&hold_ms=1500"), second);
    first?;
    let (status, answer) = second?;
    Ok((
        status,
        answer["title"].as_str().unwrap_or_default().to_owned(),
    ))
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
            let found = is_verdict(verdict, faults, placed_written_and_failed, 40);
            assert_eq!(
                found, holds,
                "{verdict:?} {faults:?} {placed_written_and_failed:?}"
            );
        }
    }
}
