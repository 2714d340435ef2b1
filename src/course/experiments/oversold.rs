//! §1.1 to §1.6: a stock that is read and then written, one process's lock, and three processes.

use crate::course::{Cluster, NoVerdict, Seen, Words};

pub(super) async fn one_by_one(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let mut after_each = Vec::new();
    for _ in 0..5 {
        product.buy(on.three(), "none", "").await?;
        after_each.push(product.left().await?.mysql);
    }
    product.remove().await?;
    let words = Words::new(
        format!("一个一个买了 5 次，库存依次是 {after_each:?}。"),
        format!("Five purchases, one after the other; the stock after each: {after_each:?}."),
    );
    Ok(Seen::holds(after_each == [4999, 4998, 4997, 4996, 4995], words).value("left", after_each))
}
