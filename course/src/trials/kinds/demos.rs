//! [004] Routes under one lock, which two instances share.

use crate::trials::{Cluster, NoVerdict, Observation};
use futures::future::try_join;
use http::Method;
use oversell::claims::words;
use std::time::Duration;
use tokio::time::sleep;

/// How long the work of an experiment takes, instead of the text's 5 s, in milliseconds.
const WORK_MS: u64 = 500;
/// The second request comes this long after the first, which is inside by then.
const HEAD_START: Duration = Duration::from_millis(200);

/// Claim: the second of two requests, on another instance, waits for the first. `paths`: that of each.
pub(super) async fn second_request_waits(on: &Cluster, paths: [&str; 2]) -> Result<Observation, NoVerdict> {
    let other = on.instances().last().map_or(on.one_instance(), String::as_str);
    let [first, second] =
        [(on.one_instance(), paths[0]), (other, paths[1])].map(|(at, path)| format!("{at}{path}?hold_ms={WORK_MS}"));
    let later = async {
        sleep(HEAD_START).await;
        on.answer(Method::GET, &second).await
    };
    let (first, second) = try_join(on.answer(Method::GET, &first), later).await?;
    let statuses = [first.0, second.0];
    let waited = second.1["waited_ms"].as_u64() >= Some(WORK_MS / 4);
    let (zh, en) = if waited { ("等第一个做完才进去", "waited for the first") } else { ("没有等", "did not wait") };
    let words = words!(
        "两个实例上各一个：都是 {statuses:?}，第二个{zh}。",
        "One on each of two instances: {statuses:?}; the second {en}."
    );
    Ok(Observation::holds(statuses == [200, 200] && waited, words))
}
