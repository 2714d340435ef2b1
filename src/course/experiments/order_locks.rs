//! [002] The locks of the orders in Redis, from SETNX to Redisson.

use super::orders::{beside, one_each};
use crate::course::{Cluster, NoVerdict, Seen, Target, words};

/// One order each under load, and one beside another is refused.
pub(super) async fn refused_beside(on: &Cluster, step: &str) -> Result<Seen, NoVerdict> {
    let voucher = on.on_sale(10).await?;
    let (status, said) = beside(on, &voucher, step).await?;
    voucher.remove().await?;
    let words = words!(
        "同时来的第二单：{status} {said}。",
        "One beside it: {status} {said}."
    );
    let refused =
        Seen::holds(status == 409 && said.contains("不允许重复下单"), words).value("beside", said);
    Ok(one_each(on, step, Target::Three).await?.and(refused))
}
