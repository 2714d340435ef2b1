//! [004] Demos of one lock: in the code, as an object, as a layer of a route.

use crate::trials::{
    Cluster, NoVerdict, Observation,
    tools::{own_key, send_command},
};
use futures::future::{join, join_all, try_join};
use http::Method;
use oversell::claims::words;
use redis::AsyncCommands;
use std::time::{Duration, Instant};
use tokio::time::sleep;

experiments! {
    "004.thread-id" => thread_ids_differ(false), twin(true);
    "004.uuid" => uuid_is_not_reentrant("uuid"), twin("thread");
    "004.unfair" => queue_is_not_fair("demo1"), twin("test/fair");
}

/// How long the work of an experiment takes, instead of the text's 5 s, in milliseconds.
const WORK_MS: u64 = 500;
/// The script of §2.6.1: returns 1 if the lock is free or its owner takes it again.
const REENTRANT_LOCK_LUA: &str = "if redis.call('exists', KEYS[1]) == 1 and redis.call('hexists', KEYS[1], ARGV[1]) == 0 then return 0 end \
    redis.call('hincrby', KEYS[1], ARGV[1], 1) return 1";
/// The second request comes this long after the first, which is inside by then.
const HEAD_START: Duration = Duration::from_millis(200);

/// Claim: the second of two requests, on another instance, waits for the first. `paths`: that of each.
pub(in crate::trials) async fn second_request_waits(
    on: &Cluster,
    paths: [&str; 2],
) -> Result<Observation, NoVerdict> {
    let other = on
        .instances()
        .last()
        .map_or(on.one_instance(), String::as_str);
    let [first, second] = [(on.one_instance(), paths[0]), (other, paths[1])]
        .map(|(at, path)| format!("{at}{path}?hold_ms={WORK_MS}"));
    let later = async {
        sleep(HEAD_START).await;
        on.answer(Method::GET, &second).await
    };
    let (first, second) = try_join(on.answer(Method::GET, &first), later).await?;
    let statuses = [first.0, second.0];
    let waited = second.1["waited_ms"].as_u64() >= Some(WORK_MS / 4);
    let (zh, en) = if waited {
        ("等第一个做完才进去", "waited for the first")
    } else {
        ("没有等", "did not wait")
    };
    let words = words!(
        "两个实例上各一个：都是 {statuses:?}，第二个{zh}。",
        "One on each of two instances: {statuses:?}; the second {en}."
    );
    Ok(Observation::holds(statuses == [200, 200] && waited, words))
}

/// Claim: the thread ids that instances write into the key differ.
async fn thread_ids_differ(on: &Cluster, all_on_one: bool) -> Result<Observation, NoVerdict> {
    let mut values = Vec::new();
    for (n, instance) in on.instances().iter().enumerate() {
        let instance = if all_on_one {
            on.one_instance()
        } else {
            instance
        };
        // A new product, so that no other request holds its lock.
        let stock_id = fastrand::i64(2_000_000_000..3_000_000_000) + n as i64;
        let url = format!("{instance}/demo2?hold_ms={WORK_MS}&stock_id={stock_id}");
        values.push(read_key_while_held(on, &url, stock_id).await?);
    }
    let differ = values
        .iter()
        .collect::<std::collections::HashSet<_>>()
        .len()
        == values.len();
    let (zh, en) = match differ {
        true => ("都不同", "all differ"),
        false => (
            "有一样的，因为每个进程的线程都从 1 编号",
            "some are the same, since each process numbers its threads from 1",
        ),
    };
    let words = words!(
        "几个实例依次写进键里的：{}：{zh}。",
        "What the instances wrote into the key: {}: {en}.",
        values.join(", ")
    );
    Ok(Observation::holds(differ, words).value("values", values))
}

/// Reads the key of demo2 while a request to `url` holds the lock; empty if there is none.
async fn read_key_while_held(on: &Cluster, url: &str, stock_id: i64) -> Result<String, NoVerdict> {
    let mut redis = on.redis().await?;
    let value = async {
        sleep(HEAD_START).await;
        let value: Option<String> = redis.get(format!("demo2LockKey:{stock_id}")).await?;
        Ok(value.unwrap_or_default())
    };
    let (answer, value) = join(on.answer(Method::GET, url), value).await;
    answer?;
    value
}

/// Claim: two calls of one client write different values, so a re-entrant lock (§2.6.1) refuses the second. `id`: their kind.
async fn uuid_is_not_reentrant(on: &Cluster, id: &str) -> Result<Observation, NoVerdict> {
    let stock_id = fastrand::i64(2_000_000_000..3_000_000_000);
    let mut values = Vec::new();
    for _ in 0..2 {
        let url = format!(
            "{}/demo2?id={id}&hold_ms={WORK_MS}&stock_id={stock_id}",
            on.one_instance()
        );
        values.push(read_key_while_held(on, &url, stock_id).await?);
    }
    let (mut redis, lock) = (on.redis().await?, own_key("lock"));
    let mut entered = Vec::new();
    for value in &values {
        let take = ["EVAL", REENTRANT_LOCK_LUA, "1", &lock, value];
        entered.push(send_command::<i64>(&mut redis, &take).await?);
    }
    send_command::<()>(&mut redis, &["DEL", &lock]).await?;
    let words = words!(
        "同一个客户端两次写进键里的：{}；用它们当持有者去拿可重入的锁，第一次 {}，再拿 {}。",
        "What one client wrote into the key, twice: {}; as owners of a re-entrant lock the first gets {}, and the second {}.",
        values.join(", "),
        entered[0],
        entered[1]
    );
    let holds = entered == [1, 0] && values.iter().all(|value| !value.is_empty());
    Ok(Observation::holds(holds, words).value("values", values))
}

/// Ten requests queue while the lock is held; claim: they do not enter in order of arrival.
async fn queue_is_not_fair(on: &Cluster, route: &str) -> Result<Observation, NoVerdict> {
    let product = on.create_product(1).await?;
    let stock_id = product.id;
    let begun = Instant::now();
    let visits = (0..11_u32).map(|n| async move {
        sleep(Duration::from_millis(60) * n).await;
        let hold = if n == 0 { 900 } else { 20 };
        let url = format!(
            "{}/{route}?stock_id={stock_id}&hold_ms={hold}&who=v{n}",
            on.one_instance()
        );
        let (status, _) = on.answer(Method::GET, &url).await?;
        if status != 200 {
            return Err(NoVerdict::failed(format!("{url} answers {status}")));
        }
        Ok((begun.elapsed(), n))
    });
    let ended: Result<Vec<_>, _> = join_all(visits).await.into_iter().collect();
    product.remove().await?;
    let mut ended = ended?;
    ended.sort_unstable();
    let order: Vec<_> = ended
        .into_iter()
        .map(|(_, n)| n)
        .filter(|n| *n > 0)
        .collect();
    let words = words!(
        "按到达编号 1 到 10，进去的先后：{order:?}。",
        "Numbered 1 to 10 as they came, they got in in this order: {order:?}."
    );
    Ok(Observation::holds(!order.is_sorted(), words).value("order", order))
}
