//! §3.7.7: numbers that all instances share.

use crate::trials::{Cluster, NoVerdict, Observation, tools::get_json};
use oversell::claims::words;
use serde_json::json;

experiments! {
    "3.7.7.1" => instances_share_one_count(false), twin(true);
}

/// Claim: each instance reads the count that the instance before has set. The twin has a product for each instance.
async fn instances_share_one_count(
    on: &Cluster,
    product_each: bool,
) -> Result<Observation, NoVerdict> {
    let mut products = vec![on.create_product(1).await?];
    let mut seen = Vec::new();
    for at in on.instances() {
        if product_each {
            products.push(on.create_product(1).await?);
        }
        let id = products[products.len() - 1].id;
        let url = format!("{at}/test/zk/share/count?stock_id={id}");
        let answer = get_json(on, &url).await?;
        seen.push((
            answer["before"].as_i64().unwrap_or(-1),
            answer["after"].as_i64().unwrap_or(-2),
        ));
    }
    for product in products {
        product.remove().await?;
    }
    let chained = seen.first().is_some_and(|(before, _)| *before == 0)
        && seen.windows(2).all(|pair| pair[0].1 == pair[1].0);
    let words = words!(
        "每个实例依次读到的和改成的：{seen:?}。",
        "What each instance in turn has read and set: {seen:?}."
    );
    Ok(Observation::holds(chained, words).value("counts", json!(seen)))
}
