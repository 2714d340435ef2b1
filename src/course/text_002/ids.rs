//! [002] Global ids: a time stamp and a counter of Redis.

use crate::bilingual::Bilingual;
use crate::course::{Cluster, Lesson, Line, NoVerdict, Run, Seen, Words};
use futures::{StreamExt, TryStreamExt, stream};
use serde::Deserialize;
use std::collections::HashSet;

/// The text's test: so many tasks of so many ids each.
const TASKS: usize = 300;
const EACH: usize = 100;

pub(super) const UNIQUE: Lesson = Lesson {
    id: "002.ids",
    title: Bilingual {
        zh: "全局唯一 ID",
        en: "Global ids",
    },
    claim: Bilingual {
        zh: "时间戳 << 32 | Redis 自增：300 个任务各取 100 个，没有一个重复，而且递增",
        en: "Time stamp << 32 | a counter of Redis: 300 tasks take 100 ids each, none of them twice, and they grow",
    },
    place: "002 Redis实现全局唯一Id",
    quick: true,
    tries: &["/id/order"],
    by_hand: &[
        Line::new(
            "curl -s '{http}/id/by-hand?count=100' | sort -u | wc -l",
            "100",
        ),
        Line::new(
            "for n in 1 2 3; do curl -s {http}/id/by-hand; echo; done | sort -c -n && echo grows",
            "grows",
        ),
        Line::new(
            "redis-cli {redis} --scan --pattern 'icr:by-hand:*'",
            "icr:by-hand:…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(unique(on))),
    ..Lesson::PLAIN
};

#[derive(Deserialize)]
struct Id {
    id: String,
}

async fn unique(on: &Cluster) -> Result<Seen, NoVerdict> {
    let url = format!("{}/id/course?count={EACH}", on.three());
    let tasks = stream::iter(0..TASKS).map(|_| async {
        let headers = [("accept", "application/json")];
        let ids: Vec<Id> = on
            .ask(http::Method::GET, &url, &headers, None)
            .await?
            .success()?
            .json()?;
        ids.iter()
            .map(|id| id.id.parse::<i64>().map_err(NoVerdict::failed))
            .collect::<Result<Vec<_>, _>>()
    });
    let batches: Vec<Vec<i64>> = tasks.buffer_unordered(50).try_collect().await?;
    let grow = batches.iter().all(|ids| ids.is_sorted());
    let all = batches.iter().map(Vec::len).sum::<usize>();
    let distinct = batches.iter().flatten().collect::<HashSet<_>>().len();
    let words = Words::new(
        format!(
            "取了 {all} 个，不同的有 {distinct} 个；每一批{}。",
            if grow { "都递增" } else { "不都递增" }
        ),
        format!(
            "{all} ids were taken, {distinct} of them differ; each batch {}.",
            if grow { "grows" } else { "does not grow" }
        ),
    );
    Ok(
        Seen::holds(all == TASKS * EACH && distinct == all && grow, words)
            .value("ids", all)
            .value("distinct", distinct),
    )
}

pub(super) const LATCH: Lesson = Lesson {
    id: "002.latch",
    title: Bilingual {
        zh: "CountDownLatch",
        en: "CountDownLatch",
    },
    claim: Bilingual {
        zh: "主线程用 CountDownLatch 等 300 个任务都完成",
        en: "The main thread waits by a CountDownLatch until 300 tasks are done",
    },
    place: "002 关于countdownlatch",
    run: Run::NotRun(Bilingual {
        zh: "那是 JVM 里的一个类；这里并发的任务一起等完，见 002.ids。分布式的闭锁见 2.10.7",
        en: "that is a class inside a JVM; here the tasks are awaited, see 002.ids. The distributed latch is 2.10.7",
    }),
    ..Lesson::PLAIN
};
