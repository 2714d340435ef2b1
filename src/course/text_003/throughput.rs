//! [003] Throughput, the files that a browser keeps, and several servers behind nginx.

use crate::bilingual::Bilingual;
use crate::course::{Cluster, Lesson, Line, NoVerdict, Run, Seen, Target, Words};
use http::{Method, StatusCode, header};
use std::collections::BTreeSet;

pub(super) const QPS: Lesson = Lesson {
    id: "003.qps",
    title: Bilingual {
        zh: "QPS = 并发数 / 平均响应时间",
        en: "Requests per second = concurrency / mean time",
    },
    claim: Bilingual {
        zh: "QPS 等于并发数除以平均响应时间",
        en: "Requests per second are the concurrency divided by the mean response time",
    },
    place: "003 吞吐量",
    strategies: &["single-update", "mutex"],
    quick: true,
    by_hand: &[
        Line::new(
            "(TIMEFORMAT=%1R; time curl -sZ --parallel-immediate --parallel-max 20 -o /dev/null '{8000}/seckill/unlimited?hold_ms=1000&who=[1-20]' 2>/dev/null) 2>&1 | awk '{print ($1 < 4 ? \"under 4 s\" : $1)}'",
            "under 4 s",
        ),
        Line::new(
            "(TIMEFORMAT=%1R; time curl -sZ --parallel-immediate --parallel-max 5 -o /dev/null '{8000}/seckill/unlimited?hold_ms=1000&who=[1-20]' 2>/dev/null) 2>&1 | awk '{print ($1 >= 4 ? \"4 s or more\" : $1)}'",
            "4 s or more",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(qps(on))),
    ..Lesson::PLAIN
};

/// It holds for any closed loop; what is left is the start and the end, when not all are under way.
async fn qps(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (mut rows, mut shares) = (Vec::new(), Vec::new());
    for (strategy, threads) in [
        ("single-update", 10),
        ("single-update", 100),
        ("mutex", 100),
    ] {
        let mut plan = on.plan(strategy, Target::One);
        (plan.threads, plan.loops) = (threads, 5000 / threads);
        let row = on.send(plan).await?;
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
    Ok(Seen::holds(holds, words)
        .sales(&rows)
        .value("worked_out_by_measured", pairs))
}

pub(super) const CACHE: Lesson = Lesson {
    id: "003.cache",
    title: Bilingual {
        zh: "浏览器缓存：304",
        en: "What a browser keeps: 304",
    },
    claim: Bilingual {
        zh: "静态文件带 ETag 或 Last-Modified；浏览器再来时带着它们，没变就回 304，变了才回 200",
        en: "Static files have an ETag or Last-Modified; a browser sends them back: 304 where nothing changed, else 200",
    },
    place: "003 http浏览器缓存",
    quick: true,
    tries: &["/cache.html"],
    by_hand: &[
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' {http}/cache/etag.svg",
            "200",
        ),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' -H \"if-none-match: $(curl -sI {http}/cache/etag.svg | tr -d '\\r' | sed -n 's/^ETag: //Ip')\" {http}/cache/etag.svg",
            "304",
        ),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' -H 'if-none-match: \"another\"' {http}/cache/etag.svg",
            "200",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(cache(on))),
    ..Lesson::PLAIN
};

async fn cache(on: &Cluster) -> Result<Seen, NoVerdict> {
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
        let url = format!("{}/cache/{file}.svg", on.three());
        let first = on.get(&url).await?;
        let mark = first
            .headers
            .get(has)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let same = on.ask(Method::GET, &url, &[(asks, mark)], None).await?;
        let changed = on.ask(Method::GET, &url, &[(asks, other)], None).await?;
        statuses.push(
            [first.status, same.status, changed.status].map(|status: StatusCode| status.as_u16()),
        );
    }
    let [etag, modified] =
        [statuses[0], statuses[1]].map(|s| format!("{}, {}, {}", s[0], s[1], s[2]));
    let words = Words::new(
        format!("第一次、没变、变了：ETag {etag}；Last-Modified {modified}。"),
        format!("At first, unchanged, changed: by ETag {etag}; by Last-Modified {modified}."),
    );
    Ok(
        Seen::holds(statuses.iter().all(|s| *s == [200, 304, 200]), words)
            .value("statuses", statuses.concat()),
    )
}

pub(super) const STATIC: Lesson = Lesson {
    id: "003.static",
    title: Bilingual {
        zh: "静态资源放在 nginx",
        en: "Static files are nginx's",
    },
    claim: Bilingual {
        zh: "静态资源由 nginx 直接给，不经过实例；动态请求才到实例",
        en: "nginx serves static files by itself; only what is dynamic comes to an instance",
    },
    place: "003 动静态资源分离",
    by_hand: &[
        Line::new("curl -sI {http}/style.css | grep -ci x-instance", "0"),
        Line::new("curl -sI {http}/stock | grep -ci x-instance", "1"),
    ],
    run: Run::Experiment(|on| Box::pin(statics(on))),
    ..Lesson::PLAIN
};

async fn statics(on: &Cluster) -> Result<Seen, NoVerdict> {
    let page = on
        .get(&format!("{}/style.css", on.three()))
        .await?
        .success()?;
    let stock = on.get(&format!("{}/stock", on.three())).await?.success()?;
    let (by_instance, dynamic) = (
        page.instance().map(str::to_owned),
        stock.instance().unwrap_or("-").to_owned(),
    );
    let words = Words::new(
        format!(
            "/style.css 没有 x-instance：{}；/stock 由 {dynamic} 回答。",
            by_instance.is_none()
        ),
        format!(
            "/style.css has no x-instance: {}; /stock is answered by {dynamic}.",
            by_instance.is_none()
        ),
    );
    Ok(Seen::holds(by_instance.is_none() && dynamic != "-", words))
}

pub(super) const BALANCE: Lesson = Lesson {
    id: "003.balance",
    title: Bilingual {
        zh: "nginx 负载均衡",
        en: "nginx spreads the load",
    },
    claim: Bilingual {
        zh: "nginx 把请求轮流转给每一台",
        en: "nginx sends the requests to each server in turn",
    },
    place: "003 nginx负载均衡",
    by_hand: &[Line::new(
        "for n in $(seq 12); do curl -sI {http}/stock | grep -i x-instance; done | sort -u | wc -l",
        "3",
    )],
    run: Run::Experiment(|on| Box::pin(balance(on))),
    ..Lesson::PLAIN
};

async fn balance(on: &Cluster) -> Result<Seen, NoVerdict> {
    let mut names = BTreeSet::new();
    for _ in 0..30 {
        let answer = on.get(&format!("{}/stock", on.three())).await?.success()?;
        names.extend(answer.instance().map(str::to_owned));
    }
    let (wanted, all) = (
        on.instances().len(),
        names.into_iter().collect::<Vec<_>>().join(" "),
    );
    let words = Words::new(
        format!("30 个请求由 {all} 回答。"),
        format!("30 requests were answered by {all}."),
    );
    Ok(Seen::holds(all.split(' ').count() == wanted, words).value("instances", all))
}
