//! [003] Throughput, concurrency and response time.

use crate::trials::{Cluster, NoVerdict, Observation};
use futures::{StreamExt, stream::FuturesUnordered};
use oversell::claims::{Words, words};
use serde::Serialize;
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::interval;

/// How long a stream is measured, after [`WARM_UP`]: forty requests at eight a second.
const MEASURED_TIME: Duration = Duration::from_secs(5);
/// How long a stream runs before it is measured: longer than its slowest request, so that the load is steady by then.
const WARM_UP: Duration = Duration::from_secs(1);
/// The time between two counts of the requests under way: short beside the shortest request, 20 ms.
const SAMPLE_INTERVAL: Duration = Duration::from_millis(5);

/// Purchases that begin at a fixed rate, whether or not the earlier ones have ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct PurchaseStream {
    strategy: &'static str,
    hold_ms: u64,
    per_second: u32,
}

/// Streams with far fewer purchases than can be served; `mutex` serves them one after the other.
pub(super) const STEADY_STREAMS: [PurchaseStream; 3] = [
    PurchaseStream { strategy: "none", hold_ms: 500, per_second: 8 },
    PurchaseStream { strategy: "none", hold_ms: 200, per_second: 8 },
    PurchaseStream { strategy: "mutex", hold_ms: 20, per_second: 5 },
];
/// A stream that overloads the service: forty purchases a second of 50 ms each, one after the other.
pub(super) const OVERLOAD_STREAM: [PurchaseStream; 1] = [PurchaseStream { strategy: "mutex", hold_ms: 50, per_second: 40 }];

/// The figures of a stream; each is measured, and none is computed from the others.
#[derive(Debug, Default, Serialize)]
struct StreamFigures {
    /// Requests answered per second.
    per_second: f64,
    /// The mean number of requests under way, counted every [`SAMPLE_INTERVAL`].
    under_way: f64,
    /// The mean response time of the answered requests.
    mean_s: f64,
}

impl StreamFigures {
    /// The throughput that the claim predicts.
    fn predicted_per_second(&self) -> f64 {
        self.under_way / self.mean_s
    }
}

/// Claim: throughput is concurrency divided by the mean response time. This holds if no more requests come than can be served, and
/// not while a queue grows.
pub(super) async fn throughput_is_concurrency_by_response_time(
    on: &Cluster,
    streams: &[PurchaseStream],
) -> Result<Observation, NoVerdict> {
    let mut flows = Vec::new();
    for stream in streams {
        flows.push((stream, measure_stream(on, *stream).await?));
    }
    let each =
        |of: fn(&(&PurchaseStream, StreamFigures)) -> Words| Words::join(&flows.iter().map(of).collect::<Vec<_>>(), ["；", "; "]);
    let Words { zh, en } = each(|(stream, flow)| {
        let StreamFigures { per_second, under_way, mean_s } = flow;
        words!(
            "{} 每秒来 {} 个：正在处理的平均 {under_way:.1} 个，平均 {:.0} ms，算出每秒 {:.1} 个，量得 {per_second:.1} 个",
            "{}, {} a second come: {under_way:.1} under way, {:.0} ms each, {:.1} a second worked out, {per_second:.1} measured",
            stream.strategy,
            stream.per_second,
            mean_s * 1000.0,
            flow.predicted_per_second()
        )
    });
    let holds = flows.iter().all(|(_, flow)| (0.8..=1.25).contains(&(flow.predicted_per_second() / flow.per_second)));
    let flows: Vec<_> = flows.into_iter().map(|(_, flow)| flow).collect();
    Ok(Observation::holds(holds, Words::new(zh + "。", en + ".")).value("flows", json!(flows)))
}

/// Sends a stream and measures it; requests that are still under way at the end are given up.
async fn measure_stream(on: &Cluster, stream: PurchaseStream) -> Result<StreamFigures, NoVerdict> {
    let product = on.create_product(5000).await?;
    let hold = format!("&hold_ms={}", stream.hold_ms);
    let mut sending = interval(Duration::from_secs(1) / stream.per_second);
    let mut sampling = interval(SAMPLE_INTERVAL);
    let (mut under_way, mut counts, mut took) = (FuturesUnordered::new(), Vec::new(), Vec::new());
    let begun = Instant::now();
    while begun.elapsed() < WARM_UP + MEASURED_TIME {
        tokio::select! {
            _ = sending.tick() => {
                let sent = Instant::now();
                let answer = product.buy(on.one_instance(), stream.strategy, &hold);
                under_way.push(async move { answer.await.map(|(status, _)| (status, sent.elapsed())) });
            }
            _ = sampling.tick() => counts.push((begun.elapsed(), under_way.len())),
            Some(answer) = under_way.next() => {
                let (status, latency) = answer?;
                if status != 200 {
                    return Err(NoVerdict::failed(format!("{} answers {status}", stream.strategy)));
                }
                took.push((begun.elapsed(), latency));
            }
        }
    }
    drop(under_way);
    product.remove().await?;
    counts.retain(|(at, _)| *at > WARM_UP);
    took.retain(|(at, _)| *at > WARM_UP);
    let mean = |sum: f64, of: usize| if of == 0 { 0.0 } else { sum / of as f64 };
    Ok(StreamFigures {
        per_second: took.len() as f64 / MEASURED_TIME.as_secs_f64(),
        under_way: mean(counts.iter().map(|(_, n)| *n as f64).sum(), counts.len()),
        mean_s: mean(took.iter().map(|(_, latency)| latency.as_secs_f64()).sum(), took.len()),
    })
}
