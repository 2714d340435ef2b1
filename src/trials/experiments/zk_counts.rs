//! §3.7.7: numbers that all instances share.

use crate::{
    claims::words,
    trials::{Cluster, NoVerdict, Observation, tools::get_json},
};
use serde_json::json;

experiments! {
    "3.7.7.1" => instances_share_one_count(0), twin(1);
}

/// Claim: each instance reads the count that the instance before has set. `apart`: 0 if all ask for one product.
async fn instances_share_one_count(on: &Cluster, apart: i64) -> Result<Observation, NoVerdict> {
    let product = on.create_product(1).await?;
    let mut seen = Vec::new();
    for (n, at) in on.instances().iter().enumerate() {
        let answer = get_json(
            on,
            &format!(
                "{at}/test/zk/share/count?stock_id={}",
                product.id + n as i64 * apart
            ),
        )
        .await?;
        seen.push((
            answer["before"].as_i64().unwrap_or(-1),
            answer["after"].as_i64().unwrap_or(-2),
        ));
    }
    product.remove().await?;
    let chained = seen.first().is_some_and(|(before, _)| *before == 0)
        && seen.windows(2).all(|pair| pair[0].1 == pair[1].0);
    let words = words!(
        "每个实例依次读到的和改成的：{seen:?}。",
        "What each instance in turn has read and set: {seen:?}."
    );
    Ok(Observation::holds(chained, words).value("counts", json!(seen)))
}
