//! §2.1 to §2.3: a key that only one can write, with a lease, and with its owner in it.

use super::{ask, own};
use crate::{
    course::{Cluster, NoVerdict, Seen, Target, Words, experiments::sales},
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

pub(super) async fn expire_afterwards(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut redis, two, one) = (on.redis().await?, own("two"), own("one"));
    // Who sent it is dead by now, and EXPIRE never comes.
    ask::<()>(&mut redis, &["SETNX", &two, "111"]).await?;
    ask::<()>(&mut redis, &["SET", &one, "111", "EX", "3", "NX"]).await?;
    let two_left: i64 = ask(&mut redis, &["PTTL", &two]).await?;
    let one_left: i64 = ask(&mut redis, &["PTTL", &one]).await?;
    ask::<()>(&mut redis, &["DEL", &two, &one]).await?;
    let words = Words::new(
        format!(
            "只发了 SETNX 的键，PTTL 是 {two_left}（永不过期）；SET … EX 3 NX 的键还剩 {one_left} ms。"
        ),
        format!(
            "After SETNX alone PTTL is {two_left}: for ever. After SET … EX 3 NX {one_left} ms are left."
        ),
    );
    Ok(
        Seen::holds(two_left == -1 && (1..=3000).contains(&one_left), words)
            .value("pttl", vec![two_left, one_left]),
    )
}
