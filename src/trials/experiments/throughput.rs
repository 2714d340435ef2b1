//! [003] Throughput, the files that a browser keeps, and several servers behind nginx.

use crate::{
    claims::{Target, Words, words},
    clients::http_client::Ask,
    trials::{Cluster, NoVerdict, Observation},
};
use http::{Method, StatusCode, header};
use std::collections::BTreeSet;

experiments! {
    "003.qps" => qps(None), twin(Some(100.0));
    "003.static" => statics("style.css"), twin("stock");
    "003.cache" => cache(None), twin(Some("stock"));
    "003.balance" => balance(false), twin(true);
}

/// Claim: throughput is connections divided by the average time. It holds in a closed loop; at a fixed rate most connections
/// are idle.
async fn qps(on: &Cluster, per_second: Option<f64>) -> Result<Observation, NoVerdict> {
    let requests = if on.quick { 2000 } else { 5000 };
    let (mut rows, mut shares) = (Vec::new(), Vec::new());
    for (strategy, threads) in [
        ("single-update", 10),
        ("single-update", 100),
        ("mutex", 100),
    ] {
        let mut plan = on.plan(strategy, Target::One);
        (plan.threads, plan.loops) = (threads, requests / threads);
        let row = match per_second {
            Some(rate) => on.at_rate(plan, rate).await?,
            None => on.send(plan).await?,
        };
        let worked_out = threads as f64 / (row.stats.average / 1000.0);
        shares.push((strategy, threads, worked_out, row.stats.throughput));
        rows.push(row);
    }
    let each = |of: fn(&(&str, usize, f64, f64)) -> String, by: &str| {
        shares.iter().map(of).collect::<Vec<_>>().join(by)
    };
    let words = Words::new(
        each(
            |(s, n, out, seen)| format!("{s} {n} 个并发：算出 {out:.0}，量得 {seen:.0}"),
            "；",
        ) + "。",
        each(
            |(s, n, out, seen)| {
                format!("{s}, {n} at once: {out:.0} worked out, {seen:.0} measured")
            },
            "; ",
        ) + ".",
    );
    let holds = shares
        .iter()
        .all(|(_, _, out, seen)| (0.8..=1.25).contains(&(out / seen)));
    let pairs: Vec<_> = shares.iter().map(|(_, _, out, seen)| out / seen).collect();
    Ok(Observation::holds(holds, words)
        .sales(&rows)
        .value("worked_out_by_measured", pairs))
}

async fn cache(on: &Cluster, uncached: Option<&str>) -> Result<Observation, NoVerdict> {
    let mut statuses = Vec::new();
    for (file, has, asks, other) in [
        ("etag", header::ETAG, "if-none-match", "\"another\""),
        (
            "last-modified",
            header::LAST_MODIFIED,
            "if-modified-since",
            "Thu, 01 Jan 1970 00:00:00 GMT",
        ),
    ] {
        let kept = format!("cache/{file}.svg");
        let url = format!("{}/{}", on.three(), uncached.unwrap_or(&kept));
        let first = on.get(&url).await?;
        let mark = first
            .headers
            .get(has)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let again = |mark: &str| on.request(Method::GET, &url).header(asks, mark).answer();
        let (same, changed) = (again(mark).await?, again(other).await?);
        statuses.push(
            [first.status, same.status, changed.status].map(|status: StatusCode| status.as_u16()),
        );
    }
    let [etag, modified] =
        [statuses[0], statuses[1]].map(|s| format!("{}, {}, {}", s[0], s[1], s[2]));
    let words = words!(
        "第一次、没变、变了：ETag {etag}；Last-Modified {modified}。",
        "At first, unchanged, changed: by ETag {etag}; by Last-Modified {modified}."
    );
    Ok(
        Observation::holds(statuses.iter().all(|s| *s == [200, 304, 200]), words)
            .value("statuses", statuses.concat()),
    )
}

async fn statics(on: &Cluster, file: &str) -> Result<Observation, NoVerdict> {
    let page = on.get(&format!("{}/{file}", on.three())).await?.success()?;
    let stock = on.get(&format!("{}/stock", on.three())).await?.success()?;
    let (by_instance, dynamic) = (
        page.instance().map(str::to_owned),
        stock.instance().unwrap_or("-").to_owned(),
    );
    let words = words!(
        "/style.css 没有 x-instance：{}；/stock 由 {dynamic} 回答。",
        "/style.css has no x-instance: {}; /stock is answered by {dynamic}.",
        by_instance.is_none()
    );
    Ok(Observation::holds(
        by_instance.is_none() && dynamic != "-",
        words,
    ))
}

/// Claim: nginx goes round: of three consecutive answers each instance gave one, unless another client's request came between.
async fn balance(on: &Cluster, is_random: bool) -> Result<Observation, NoVerdict> {
    let (all, mut names) = (on.instances(), Vec::new());
    for _ in 0..30 {
        let at = match is_random {
            true => &all[fastrand::usize(..all.len())],
            false => on.three(),
        };
        let answer = on.get(&format!("{at}/stock")).await?.success()?;
        names.extend(answer.instance().map(str::to_owned));
    }
    let each_once = |turn: &&[String]| turn.iter().collect::<BTreeSet<_>>().len() == all.len();
    let turns = names.windows(all.len());
    let (tried, kept) = (turns.len(), turns.filter(each_once).count());
    let words = words!(
        "30 个请求由 {} 回答：{tried} 组相邻的回答里，{kept} 组里每个实例各一次。",
        "30 requests were answered by {}: of {tried} runs of answers {kept} have each server once.",
        names.join(" ")
    );
    Ok(Observation::holds(kept * 10 >= tried * 9, words).value("instances", names))
}
