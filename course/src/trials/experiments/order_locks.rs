//! [002] The locks of the orders in Redis, from SETNX to Redisson.

use super::orders::{each_user_gets_one_order, order_twice_at_once};
use crate::trials::{
    Cluster, NoVerdict, Observation,
    tools::{send_command, wait_for_key},
};
use oversell::claims::{Target, words};

experiments! {
    "002.lock.owner" => unlock_leaves_next_owner("redis-lock-owner"), twin("redis-lock-fixed-id");
}

/// Claim: under load each user gets one order, and a concurrent second order of a user is refused.
pub(in crate::trials) async fn concurrent_order_is_refused(
    on: &Cluster,
    step: &str,
) -> Result<Observation, NoVerdict> {
    let voucher = on.create_voucher_on_sale(10).await?;
    let (status, said) = order_twice_at_once(on, &voucher, step).await?;
    voucher.remove().await?;
    let words = words!(
        "同时来的第二单：{status} {said}。",
        "One beside it: {status} {said}."
    );
    let refused = Observation::holds(status == 409 && said.contains("不允许重复下单"), words)
        .value("beside", said);
    Ok(each_user_gets_one_order(on, step, Target::ThreeBehindNginx)
        .await?
        .and(refused))
}

/// Claim: an order whose lock has expired does not release the next owner's lock.
async fn unlock_leaves_next_owner(on: &Cluster, step: &str) -> Result<Observation, NoVerdict> {
    let voucher = on.create_voucher_on_sale(10).await?;
    let (mut redis, key) = (on.redis().await?, format!("lock:order:{}", voucher.user(1)));
    let replaced = async {
        wait_for_key(&mut redis, &key).await?;
        send_command::<()>(&mut redis, &["SET", &key, "another", "EX", "60"]).await
    };
    let ordered = voucher.order(on.one_instance(), step, 1, "&hold_ms=1500");
    let (ordered, replaced) = tokio::join!(ordered, replaced);
    let ((status, answer), ()) = (ordered?, replaced?);
    let left: Option<String> = send_command(&mut redis, &["GET", &key]).await?;
    send_command::<()>(&mut redis, &["DEL", &key]).await?;
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
