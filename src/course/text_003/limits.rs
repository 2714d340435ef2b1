//! [003] Limits: the token bucket, one limit for all instances, and those of nginx.

use crate::bilingual::Bilingual;
use crate::course::{Cluster, Lesson, Line, NoVerdict, Run, Seen, Words, replay::flaw_and_cure};
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

pub(super) const TOKEN_BUCKET: Lesson = Lesson {
    id: "003.limits.token-bucket",
    title: Bilingual {
        zh: "令牌桶：每秒十个",
        en: "The token bucket: ten a second",
    },
    claim: Bilingual {
        zh: "每秒只发 10 个令牌，拿不到的马上听到“很遗憾，没抢到”",
        en: "Ten tokens a second; who gets none hears 很遗憾，没抢到 at once",
    },
    place: "003 java后端限流",
    timing: true,
    tries: &["/seckill/limited?who={who}"],
    by_hand: &[Line::new(
        "sleep 2; curl -sZ --parallel-max 60 -o /dev/null -w '%{http_code}\\n' '{8000}/seckill/limited?who=[1-60]' | sort | uniq -c",
        "…200\n…429",
    )],
    run: Run::Experiment(|on| Box::pin(token_bucket(on))),
    ..Lesson::PLAIN
};

async fn token_bucket(on: &Cluster) -> Result<Seen, NoVerdict> {
    sleep(QUIET).await;
    let burst = burst(on, &format!("{}/seckill/limited", on.one()), 60).await?;
    // The bucket holds ten, and one flows in every 100 ms.
    let most = 11 + (burst.took * 10.0) as usize;
    Ok(seen((10..=most).contains(&burst.through), &burst))
}

pub(super) const EACH_INSTANCE: Lesson = Lesson {
    id: "003.limits",
    title: Bilingual {
        zh: "每台各限十个",
        en: "Ten in each instance",
    },
    claim: Bilingual {
        zh: "令牌桶在进程里：三台一共放过三十个；要限制总数，得放到 Redis 里",
        en: "The bucket is the process's: three let thirty through; a limit of all must be in Redis",
    },
    place: "003 java后端限流",
    replay: Some("003.limits"),
    quick: true,
    tries: &["/seckill/limited/shared?who={who}"],
    by_hand: &[
        Line::new(
            "sleep 2; curl -sZ -w '%{http_code}\\n' '{8000}/seckill/limited?who=[1-10]' '{8100}/seckill/limited?who=[1-10]' '{8200}/seckill/limited?who=[1-10]' | grep -c 200",
            "30",
        ),
        Line::new(
            "curl -sZ -w '%{http_code}\\n' '{8000}/seckill/limited/shared?who=[1-10]' '{8100}/seckill/limited/shared?who=[1-10]' '{8200}/seckill/limited/shared?who=[1-10]' | grep -c 200 | awk '{print ($1 < 30 ? \"fewer than 30\" : $1)}'",
            "fewer than 30",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "003.limits"))),
    ..Lesson::PLAIN
};

pub(super) const QUEUED: Lesson = Lesson {
    id: "003.limits.leaky-queued",
    title: Bilingual {
        zh: "nginx 漏桶：排队",
        en: "The leaky bucket of nginx: a queue",
    },
    claim: Bilingual {
        zh: "rate=1r/s burst=5：超过的先进缓冲区排队，每秒放一个，再多的拒绝",
        en: "rate=1r/s burst=5: what is too much waits, one goes on each second, and more is refused",
    },
    place: "003 nginx漏桶限流",
    timing: true,
    by_hand: &[Line::new(
        "curl -sZ --parallel-immediate -o /dev/null -w '%{http_code} %{time_total}\\n' '{http}/nginx/leaky/queued?who=[1-9]' | awk '{n[$1]++; if ($2 > last) last = $2} END {print n[200] \" and \" n[429] \" refused, the last one after \" (last > 4 ? \"5 s\" : last)}'",
        "6 and 3 refused, the last one after 5 s",
    )],
    run: Run::Experiment(|on| Box::pin(leaky(on, "/nginx/leaky/queued", 4.0, 6.5))),
    ..Lesson::PLAIN
};

pub(super) const NO_DELAY: Lesson = Lesson {
    id: "003.limits.leaky-nodelay",
    title: Bilingual {
        zh: "nginx 漏桶：nodelay",
        en: "The leaky bucket of nginx: nodelay",
    },
    claim: Bilingual {
        zh: "加上 nodelay，缓冲区里的马上处理，但坑位一秒才空出一个",
        en: "With nodelay what is in the buffer goes on at once, and one place is free again each second",
    },
    place: "003 nginx漏桶限流",
    timing: true,
    by_hand: &[Line::new(
        "sleep 7; curl -sZ --parallel-immediate -o /dev/null -w '%{http_code}\\n' '{http}/nginx/leaky/nodelay?who=[1-9]' | sort | uniq -c | tr -s ' '",
        " 6 200\n 3 429",
    )],
    run: Run::Experiment(|on| Box::pin(leaky(on, "/nginx/leaky/nodelay", 0.0, 1.0))),
    ..Lesson::PLAIN
};

/// Nine at once: one and five more come through, the last of them within this time.
async fn leaky(on: &Cluster, path: &str, least: f64, most: f64) -> Result<Seen, NoVerdict> {
    sleep(LONG_QUIET).await;
    let burst = burst(on, &format!("{}{path}", on.three()), 9).await?;
    Ok(seen(
        burst.through == 6 && (least..=most).contains(&burst.slowest),
        &burst,
    ))
}

pub(super) const CONNECTIONS: Lesson = Lesson {
    id: "003.limits.connections",
    title: Bilingual {
        zh: "nginx 限制并发数",
        en: "nginx limits what is under way at once",
    },
    claim: Bilingual {
        zh: "limit_conn addr 20、server 100：同一个 IP 同时只有 20 个，整台只有 100 个",
        en: "limit_conn addr 20, server 100: 20 at once of one address, 100 at once in all",
    },
    place: "003 nginx漏桶限流",
    timing: true,
    by_hand: &[
        Line::new(
            "curl -sZ --parallel-immediate --parallel-max 30 -o /dev/null -w '%{http_code}\\n' '{http}/nginx/connections/address?hold_ms=2500&who=[1-30]' | grep -c 200",
            "20",
        ),
        Line::new(
            "curl -sZ --parallel-immediate --parallel-max 120 -o /dev/null -w '%{http_code}\\n' '{http}/nginx/connections/server?hold_ms=3000&who=[1-120]' | grep -c 200",
            "100",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(connections(on))),
    ..Lesson::PLAIN
};

async fn connections(on: &Cluster) -> Result<Seen, NoVerdict> {
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
