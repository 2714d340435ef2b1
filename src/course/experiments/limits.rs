//! [003] Limits: the token bucket, the leaky buckets of nginx, and its limits of connections.

use crate::course::{Burst, Cluster, NoVerdict, Seen, words};
use futures::future::try_join_all;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Sends a burst: the claim is how many come through, and how long the slowest of these takes.
pub(super) async fn burst(on: &Cluster, burst: &Burst, route: &str) -> Result<Seen, NoVerdict> {
    sleep(Duration::from_secs_f64(burst.quiet_s)).await;
    let url = format!("{}{}", on.address(burst.on), route);
    let joint = if url.contains('?') { '&' } else { '?' };
    let begun = Instant::now();
    let asked = (0..burst.requests).map(|n| {
        let url = format!("{url}{joint}who=b{n}");
        async move {
            let begun = Instant::now();
            let answer = on.get(&url).await?;
            Ok::<_, NoVerdict>((answer.status.as_u16(), begun.elapsed().as_secs_f64()))
        }
    });
    let answers = try_join_all(asked).await?;
    let took = begun.elapsed().as_secs_f64();
    let (mut through, mut refused, mut slowest) = (0, 0, 0.0_f64);
    for (status, took) in answers {
        match status {
            200 => {
                through += 1;
                slowest = slowest.max(took);
            }
            429 => refused += 1,
            _ => return Err(NoVerdict::failed(format!("{url} answers {status}"))),
        }
    }
    let [fewest, most] = burst.through;
    let most = most + (took * burst.more_per_second) as usize;
    let in_time = |[least, most]: [f64; 2]| (least..=most).contains(&slowest);
    let holds = (fewest..=most).contains(&through) && burst.slowest_s.is_none_or(in_time);
    let requests = burst.requests;
    let words = words!(
        "同时 {requests} 个：放过 {through} 个，拒绝 {refused} 个，放过的最慢 {slowest:.1} 秒。",
        "{requests} at once: {through} let through, {refused} refused; the slowest of the former took {slowest:.1} s."
    );
    let figures =
        json!({"through": through, "refused": refused, "slowest_s": slowest, "took_s": took});
    Ok(Seen::holds(holds, words).value("burst", figures))
}
