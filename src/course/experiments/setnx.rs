//! §2.1: a key that only one can write.

use super::tools::{ask, own, sales};
use crate::{
    course::{Cluster, NoVerdict, Seen, Target, Words},
    load::verdict::Verdict as Sold,
};
use futures::future::try_join_all;

pub(super) async fn one_of_many(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (redis, key) = (on.redis().await?, own("lock"));
    let tries = (0..100).map(|_| {
        let (mut redis, key) = (redis.clone(), &key);
        async move { ask::<i64>(&mut redis, &["SETNX", key, "111"]).await }
    });
    let had: i64 = try_join_all(tries).await?.into_iter().sum();
    ask::<()>(&mut redis.clone(), &["DEL", &key]).await?;
    let row = on.load("redis-setnx", Target::Three).await?;
    let sold = sales(std::slice::from_ref(&row));
    let words = Words::new(
        format!("100 个 SETNX，得到 1 的有 {had} 个。{}", sold.zh),
        format!("Of 100 SETNX {had} got 1. {}", sold.en),
    );
    Ok(Seen::holds(had == 1 && row.verdict == Sold::Exact, words)
        .sales([&row])
        .value("had", had))
}
