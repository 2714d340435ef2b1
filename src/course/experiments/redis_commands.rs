//! Text 001: the same way in short, and Redisson's read-write lock as a hash.

use super::tools::{ask, own};
use crate::course::{Cluster, NoVerdict, Seen, words};
use redis::Value;

pub(super) async fn set_nx(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let (mut redis, key) = (on.redis().await?, own("lock"));
    let first: Value = ask(&mut redis, &["SET", &key, "any", "NX"]).await?;
    if twin {
        ask::<()>(&mut redis, &["DEL", &key]).await?;
    }
    let second: Value = ask(&mut redis, &["SET", &key, "any", "NX"]).await?;
    ask::<()>(&mut redis, &["DEL", &key]).await?;
    let words = words!(
        "第一次 {first:?}，第二次 {second:?}：SET … NX 返回 OK 或空，返回 1 和 0 的是 SETNX。",
        "First {first:?}, then {second:?}: SET … NX answers OK or nil; it is SETNX that answers 1 and 0."
    );
    Ok(Seen::holds(
        first == Value::Int(1) && second == Value::Int(0),
        words,
    ))
}

pub(super) async fn read_write(on: &Cluster, twin: bool) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("rwLock:{}", product.id));
    let leases = [20_000, 1000];
    for stay in &leases[usize::from(twin)..] {
        on.get(&format!(
            "{}/test/read?stock_id={}&hold_ms={stay}&who={stay}",
            on.three(),
            product.id
        ))
        .await?
        .success()?;
    }
    let fields: Vec<(String, String)> = ask(&mut redis, &["HGETALL", &key]).await?;
    let left: i64 = ask(&mut redis, &["PTTL", &key]).await?;
    product.remove().await?;
    let mode = fields
        .iter()
        .find(|(field, _)| field == "mode")
        .map_or("", |(_, mode)| mode.as_str());
    let readers = fields
        .iter()
        .filter(|(field, count)| field != "mode" && count == "1")
        .count();
    let words = words!(
        "两个读者，租约 20 s 和 1 s：mode 是 {mode}，{readers} 个持有者，租约还剩 {left} ms。",
        "Two readers with leases of 20 s and 1 s: mode is {mode}, {readers} holders, {left} ms are left."
    );
    Ok(Seen::holds(
        mode == "read" && readers == 2 && left > 1000,
        words,
    ))
}
