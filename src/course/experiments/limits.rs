//! [003] Limits: the token bucket, one limit for all instances, and those of nginx.

use crate::course::{Cluster, NoVerdict, Seen, Words};
use futures::future::join_all;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Until every bucket and window is as at first.
const QUIET: Duration = Duration::from_millis(1200);
/// The leaky bucket of nginx needs longer: five that wait, one in a second.
const LONG_QUIET: Duration = Duration::from_secs(7);

/// A burst of requests at once: how many came through, how many were refused, and how long the last of those took.
struct Burst {
    through: usize,
    refused: usize,
    slowest: f64,
    took: f64,
}

async fn burst(on: &Cluster, url: &str, requests: usize) -> Result<Burst, NoVerdict> {
    let begun = Instant::now();
    let asked = (0..requests).map(|n| async move {
        let begun = Instant::now();
        let joint = if url.contains('?') { '&' } else { '?' };
        let answer = on.get(&format!("{url}{joint}who=b{n}")).await?;
        Ok::<_, NoVerdict>((answer.status.as_u16(), begun.elapsed().as_secs_f64()))
    });
    let mut burst = Burst {
        through: 0,
        refused: 0,
        slowest: 0.0,
        took: 0.0,
    };
    for answer in join_all(asked).await {
        match answer? {
            (200, took) => {
                burst.through += 1;
                burst.slowest = burst.slowest.max(took);
            }
            (429, _) => burst.refused += 1,
            (status, _) => return Err(NoVerdict::failed(format!("{url} answers {status}"))),
        }
    }
    burst.took = begun.elapsed().as_secs_f64();
    Ok(burst)
}

fn seen(holds: bool, burst: &Burst) -> Seen {
    let Burst {
        through,
        refused,
        slowest,
        took,
    } = burst;
    let words = Words::new(
        format!(
            "同时 {} 个：放过 {through} 个，拒绝 {refused} 个，放过的最慢 {slowest:.1} 秒。",
            through + refused
        ),
        format!(
            "{} at once: {through} let through, {refused} refused; the slowest of the former took {slowest:.1} s.",
            through + refused
        ),
    );
    Seen::holds(holds, words).value(
        "burst",
        json!({"through": through, "refused": refused, "slowest_s": slowest, "took_s": took}),
    )
}

pub(super) async fn token_bucket(on: &Cluster) -> Result<Seen, NoVerdict> {
    sleep(QUIET).await;
    let burst = burst(on, &format!("{}/seckill/limited", on.one()), 60).await?;
    // The bucket holds ten, and one flows in every 100 ms.
    let most = 11 + (burst.took * 10.0) as usize;
    Ok(seen((10..=most).contains(&burst.through), &burst))
}

/// Nine at once: one and five more come through, the last of them within this time.
pub(super) async fn leaky(
    on: &Cluster,
    path: &str,
    least: f64,
    most: f64,
) -> Result<Seen, NoVerdict> {
    sleep(LONG_QUIET).await;
    let burst = burst(on, &format!("{}{path}", on.three()), 9).await?;
    Ok(seen(
        burst.through == 6 && (least..=most).contains(&burst.slowest),
        &burst,
    ))
}

pub(super) async fn connections(on: &Cluster) -> Result<Seen, NoVerdict> {
    let of_one = burst(
        on,
        &format!("{}/nginx/connections/address?hold_ms=3000", on.three()),
        30,
    )
    .await?;
    let of_all = burst(
        on,
        &format!("{}/nginx/connections/server?hold_ms=3000", on.three()),
        120,
    )
    .await?;
    let one = seen(of_one.through == 20, &of_one);
    let all = seen(of_all.through == 100, &of_all);
    let through = vec![of_one.through, of_all.through];
    Ok(one.and(all).value("through", through))
}
