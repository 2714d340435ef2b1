//! [002] The locks of the orders in Redis, from SETNX to Redisson.

use super::orders::{each_user_gets_one_order, order_twice_at_once};
use crate::trials::{Cluster, NoVerdict, Observation};
use oversell::claims::{Target, words};

/// Claim: under load each user gets one order, and a concurrent second order of a user is refused.
pub(super) async fn concurrent_order_is_refused(on: &Cluster, step: &str) -> Result<Observation, NoVerdict> {
    let voucher = on.create_voucher_on_sale(10).await?;
    let (status, said) = order_twice_at_once(on, &voucher, step).await?;
    voucher.remove().await?;
    let words = words!("同时来的第二单：{status} {said}。", "One beside it: {status} {said}.");
    let refused = Observation::holds(status == 409 && said.contains("不允许重复下单"), words).value("beside", said);
    Ok(each_user_gets_one_order(on, step, Target::ThreeBehindNginx).await?.and(refused))
}
