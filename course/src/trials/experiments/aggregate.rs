//! §1.4: what the lines of the Aggregate Report mean, on the figures of a load.

use crate::trials::{Cluster, NoVerdict, Observation};
use futures::future::try_join_all;
use oversell::{
    claims::words,
    load::{
        history::{AnswerDetails, History, Outcome},
        stats::{Bytes, Stats},
    },
};
use std::time::{Duration, Instant};

experiments! {
    "1.4.printed" => percentiles_cover_their_share(|stats| [stats.p90_line, stats.p95_line, stats.p99_line]), twin(|stats| [stats.p90_line; 3]);
}

/// 1000 purchases, so that one percent of them are ten: 20 buyers at once, 50 purchases each.
const LOAD: [usize; 2] = [20, 50];

/// Claim: the 90 %, 95 % and 99 % lines of `oversell compare` each cover that share of the requests of a load. `percentiles`
/// takes the three lines from the figures; the twin takes the wrong ones.
async fn percentiles_cover_their_share(
    on: &Cluster,
    percentiles: fn(&Stats) -> [f64; 3],
) -> Result<Observation, NoVerdict> {
    let product = on.create_product(5000).await?;
    let buyers = (0..LOAD[0]).map(|_| async {
        let mut took = Vec::new();
        for _ in 0..LOAD[1] {
            let begun = Instant::now();
            product.buy(on.one_instance(), "none", "").await?;
            took.push(begun.elapsed());
        }
        Ok::<_, NoVerdict>(took)
    });
    let took = try_join_all(buyers).await?.concat();
    product.remove().await?;
    let mut history = History::default();
    for latency in &took {
        history.record(&Outcome::Sold, *latency, None, &AnswerDetails::default());
    }
    let stats = Stats::of(&history, Bytes::default(), Duration::ZERO);
    let lines = percentiles(&stats);
    let covered = lines.map(|line| {
        let within = took.iter().filter(|took| took.as_secs_f64() * 1000.0 <= line).count();
        within as f64 * 100.0 / took.len() as f64
    });
    let ([a, b, c], [ca, cb, cc]) = (lines, covered);
    let words = words!(
        "{} 个请求：90% 线 {a:.1} ms，{ca:.1}% 的请求不超过它；95% 线 {b:.1} ms，{cb:.1}%；99% 线 {c:.1} ms，{cc:.1}%。",
        "{} requests: {ca:.1} % of them take no longer than the 90 % line, {a:.1} ms; the 95 % line, {b:.1} ms: {cb:.1} %; the 99 % line, {c:.1} ms: {cc:.1} %.",
        took.len()
    );
    let near = |(line, covered): (f64, f64)| (line - 0.5..line + 1.0).contains(&covered);
    let holds = [90.0, 95.0, 99.0].into_iter().zip(covered).all(near);
    Ok(Observation::holds(holds, words).value("covered_percent", covered.to_vec()))
}
