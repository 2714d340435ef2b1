//! [002] The locks of the orders in Redis, from SETNX to Redisson.

use super::orders::{beside, one_each};
use crate::{
    claims::{Target, words},
    trials::{
        Cluster, NoVerdict, Observation,
        tools::{ask, wait_for_key},
    },
};

experiments! {
    "002.lock.owner" => only_its_own("redis-lock-owner"), twin("redis-lock-fixed-id");
}

/// Claim: one order per user under load, and a concurrent second one is refused.
pub(in crate::trials) async fn refused_beside(
    on: &Cluster,
    step: &str,
) -> Result<Observation, NoVerdict> {
    let voucher = on.on_sale(10).await?;
    let (status, said) = beside(on, &voucher, step).await?;
    voucher.remove().await?;
    let words = words!(
        "同时来的第二单：{status} {said}。",
        "One beside it: {status} {said}."
    );
    let refused = Observation::holds(status == 409 && said.contains("不允许重复下单"), words)
        .value("beside", said);
    Ok(one_each(on, step, Target::ThreeBehindNginx)
        .await?
        .and(refused))
}

/// Claim: the unlock of an order whose lock has expired leaves the next owner's lock alone.
async fn only_its_own(on: &Cluster, step: &str) -> Result<Observation, NoVerdict> {
    let voucher = on.on_sale(10).await?;
    let (mut redis, key) = (on.redis().await?, format!("lock:order:{}", voucher.user(1)));
    let replaced = async {
        wait_for_key(&mut redis, &key).await?;
        ask::<()>(&mut redis, &["SET", &key, "another", "EX", "60"]).await
    };
    let ordered = voucher.order(on.one(), step, 1, "&hold_ms=1500");
    let (ordered, replaced) = tokio::join!(ordered, replaced);
    let ((status, answer), ()) = (ordered?, replaced?);
    let left: Option<String> = ask(&mut redis, &["GET", &key]).await?;
    ask::<()>(&mut redis, &["DEL", &key]).await?;
    voucher.remove().await?;
    let lock = answer["lock"].as_str().unwrap_or("-").to_owned();
    let left = left.unwrap_or_else(|| "-".to_owned());
    let words = words!(
        "做到一半，锁成了别人的：下单 {status}，自己的锁 {lock}，键里还是 {left}。",
        "Half-way the lock became another's: ordered {status}, its own lock {lock}, and {left} is still in the key."
    );
    let holds = status == 200 && lock == "lost" && left == "another";
    Ok(Observation::holds(holds, words).value("left", left))
}
