//! §1.8: Redis' own optimistic lock.

use crate::bilingual::Bilingual;
use crate::course::{
    Cluster, Lesson, Line, NoVerdict, Run, Seen, Target,
    experiments::{exact, retries_grow},
    replay::flaw_and_cure,
};

pub(super) const WATCH: Lesson = Lesson {
    id: "1.8",
    title: Bilingual {
        zh: "Redis 乐观锁：WATCH",
        en: "The optimistic lock of Redis: WATCH",
    },
    claim: Bilingual {
        zh: "WATCH 以后键被别人改过，EXEC 就返回 nil，什么也没写；重试就不会超卖",
        en: "Where the key was written after WATCH, EXEC answers nil and writes nothing; with a retry nothing is oversold",
    },
    place: "000 §1.8",
    strategies: &["redis-watch", "redis-watch-merged"],
    replay: Some("1.8"),
    tries: &["/check/lock/redis-watch?hold_ms=1000&who={who}"],
    quick: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            r"printf 'watch stock\nmulti\nset stock 4999\nexec\n' | redis-cli {redis}",
            "OK\nOK\nQUEUED\nOK",
        ),
        Line::new("redis-cli {redis} get stock", "4999"),
        Line::new(
            "(echo watch stock; until redis-cli {redis} client list | grep -q cmd=watch; do sleep .1; done; redis-cli {redis} set stock 4000 > /dev/null; echo multi; echo set stock 4998; echo exec) | redis-cli {redis}",
            "OK\nOK\nQUEUED",
        ),
        Line::new("redis-cli {redis} get stock", "4000"),
        Line::RESTOCK,
    ],
    run: Run::Experiment(|on| Box::pin(watch(on))),
    ..Lesson::PLAIN
};

async fn watch(on: &Cluster) -> Result<Seen, NoVerdict> {
    Ok(flaw_and_cure(on, "1.8")
        .await?
        .and(exact(on, "redis-watch", &[Target::Three]).await?))
}

pub(super) const RETRIES: Lesson = Lesson {
    id: "1.8.retries",
    title: Bilingual {
        zh: "竞争越大，白做的越多",
        en: "The more contention, the more is wasted",
    },
    claim: Bilingual {
        zh: "并发越大，EXEC 得到 nil 的越多：多数尝试白做了",
        en: "The more requests at once, the more of them hear nil: most attempts are wasted",
    },
    place: "000 §1.8",
    strategies: &["redis-watch"],
    timing: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            r#"curl -s -H 'accept: application/json' '{8000}/check/lock/redis-watch?hold_ms=50&who=[1-10]' | grep -o '"retries":[0-9]*' | sort | uniq -c"#,
            r#"10 "retries":0"#,
        ),
        Line::new(
            r#"curl -sZ --parallel-immediate -H 'accept: application/json' '{8000}/check/lock/redis-watch?hold_ms=50&who=[1-10]' | grep -o '"retries":[0-9]*' | sort | uniq -c"#,
            "…\"retries\":0\n…\"retries\":…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(retries_grow(on, "redis-watch"))),
    ..Lesson::PLAIN
};
