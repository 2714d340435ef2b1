//! [003] Limits: the token bucket, the leaky buckets of nginx, and its limits of connections.

use crate::trials::{Cluster, NoVerdict, Observation};
use futures::future::try_join_all;
use oversell::claims::{Burst, Words, words};
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How many requests of a burst were let through and how many were refused, and how long they took, in seconds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
struct BurstResult {
    through: usize,
    refused: usize,
    /// The slowest request that came through, and the slowest refused one.
    slowest_s: f64,
    slowest_refused_s: f64,
    took_s: f64,
}

/// Claim: a burst of requests to `route` is limited as the lesson says; so is a second burst, if the lesson has one.
pub(super) async fn burst_is_limited(on: &Cluster, burst: &Burst, route: &str) -> Result<Observation, NoVerdict> {
    sleep(Duration::from_secs_f64(burst.quiet_s)).await;
    let url = format!("{}{}", on.address(burst.on), route);
    let urls = vec![url; burst.requests];
    let first = send_at_once(on, &urls).await?;
    let again = match burst.again {
        Some(again) => {
            sleep(Duration::from_secs_f64(again.after_s)).await;
            Some(send_at_once(on, &urls).await?)
        }
        None => None,
    };
    let mut words = vec![words!(
        "同时 {} 个：放过 {} 个，拒绝 {} 个，放过的最慢 {:.1} 秒，拒绝的最慢 {:.1} 秒。",
        "{} at once: {} let through, {} refused; the slowest took {:.1} s and {:.1} s.",
        burst.requests,
        first.through,
        first.refused,
        first.slowest_s,
        first.slowest_refused_s
    )];
    words.extend(burst.again.zip(again).map(|(later, again)| {
        words!(
            "{} 秒后再来同样多：放过 {} 个。",
            "As many again {} s later: {} let through.",
            later.after_s,
            again.through
        )
    }));
    let words = Words::join(&words, ["", " "]);
    let seen = Observation::holds(is_within_bounds(burst, &first, again.as_ref()), words);
    Ok(seen.value("burst", serde_json::to_value((first, again))?))
}

/// Whether the figures of the bursts are within the bounds of the claim.
fn is_within_bounds(burst: &Burst, first: &BurstResult, again: Option<&BurstResult>) -> bool {
    let within = |[fewest, most]: [usize; 2], came: &BurstResult| {
        let most = most + (came.took_s * burst.more_per_second) as usize;
        (fewest..=most).contains(&came.through)
    };
    let in_time = |[least, most]: [f64; 2]| (least..=most).contains(&first.slowest_s);
    within(burst.through, first)
        && burst.slowest_s.is_none_or(in_time)
        && (burst.refused_s).is_none_or(|most| first.slowest_refused_s <= most)
        && (burst.again.zip(again)).is_none_or(|(meant, came)| within(meant.through, came))
}

/// Sends a request to each address, all at once. Fails if one is answered by neither 200 nor 429.
async fn send_at_once(on: &Cluster, urls: &[String]) -> Result<BurstResult, NoVerdict> {
    let begun = Instant::now();
    let asked = urls.iter().enumerate().map(|(n, url)| async move {
        let joint = if url.contains('?') { '&' } else { '?' };
        let (url, begun) = (format!("{url}{joint}who=b{n}"), Instant::now());
        let status = on.get(&url).await?.status.as_u16();
        match status {
            200 | 429 => Ok((status == 200, begun.elapsed().as_secs_f64())),
            _ => Err(NoVerdict::failed(format!("{url} answers {status}"))),
        }
    });
    let mut came = BurstResult::default();
    for (is_through, took) in try_join_all(asked).await? {
        let (count, slowest) = match is_through {
            true => (&mut came.through, &mut came.slowest_s),
            false => (&mut came.refused, &mut came.slowest_refused_s),
        };
        *count += 1;
        *slowest = slowest.max(took);
    }
    came.took_s = begun.elapsed().as_secs_f64();
    Ok(came)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oversell::claims::{SecondBurst, Target};

    fn came(through: usize, slowest_s: f64, slowest_refused_s: f64, took_s: f64) -> BurstResult {
        BurstResult { through, slowest_s, slowest_refused_s, took_s, ..BurstResult::default() }
    }

    #[test]
    fn a_window_is_no_bucket_although_its_first_burst_is_the_same() {
        let bucket = Burst {
            route: "",
            on: Target::OneInstance,
            requests: 60,
            through: [10, 11],
            more_per_second: 10.0,
            slowest_s: Some([0.0, 1.0]),
            refused_s: Some(0.5),
            again: Some(SecondBurst { after_s: 0.5, through: [4, 7] }),
            quiet_s: 0.0,
        };
        let at_first = came(10, 0.1, 0.1, 0.1);
        for (first, again, expected) in [
            (at_first, 5, true),
            (came(12, 0.1, 0.1, 0.2), 5, true),
            // A window that slides lets nobody through so soon, one that is over as many as before.
            (at_first, 0, false),
            (at_first, 10, false),
            // Without a limit, with none, and with a queue of those that are refused.
            (came(60, 0.1, 0.0, 0.1), 5, false),
            (came(0, 0.0, 0.1, 0.1), 5, false),
            (came(10, 0.1, 2.0, 2.0), 5, false),
            (came(10, 2.0, 0.1, 2.0), 5, false),
        ] {
            let again = came(again, 0.1, 0.1, 0.1);
            assert_eq!(is_within_bounds(&bucket, &first, Some(&again)), expected, "{first:?}");
        }
    }
}
