//! §3.7.7: numbers that all instances share.

use super::got;
use crate::bilingual::Bilingual;
use crate::course::{Cluster, Lesson, Line, NoVerdict, Run, Seen, Words, replay::flaw_and_cure};
use serde_json::json;

pub(super) const SHARED_COUNT: Lesson = Lesson {
    id: "3.7.7.1",
    title: Bilingual {
        zh: "SharedCount",
        en: "SharedCount",
    },
    claim: Bilingual {
        zh: "路径相同，所有客户端读到的都是最新的值",
        en: "All clients of one path read the latest number",
    },
    place: "000 §3.7.7.1",
    tries: &["/test/zk/share/count?who={who}"],
    quick: true,
    by_hand: &[Line::new(
        "curl -s {http}/test/zk/share/count",
        "hello shareData",
    )],
    run: Run::Experiment(|on| Box::pin(shared_count(on))),
    ..Lesson::PLAIN
};

async fn shared_count(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(1).await?;
    let mut seen = Vec::new();
    for at in on.instances() {
        let answer = got(
            on,
            &format!("{at}/test/zk/share/count?stock_id={}", product.id),
        )
        .await?;
        seen.push((
            answer["before"].as_i64().unwrap_or(-1),
            answer["after"].as_i64().unwrap_or(-2),
        ));
    }
    product.remove().await?;
    let chained = seen.first().is_some_and(|(before, _)| *before == 0)
        && seen.windows(2).all(|pair| pair[0].1 == pair[1].0);
    let words = Words::new(
        format!("每台实例依次读到的和改成的：{seen:?}。"),
        format!("What each instance in turn has read and set: {seen:?}."),
    );
    Ok(Seen::holds(chained, words).value("counts", json!(seen)))
}

pub(super) const TRY_SET: Lesson = Lesson {
    id: "3.7.7",
    title: Bilingual {
        zh: "setCount 与 trySetCount",
        en: "setCount and trySetCount",
    },
    claim: Bilingual {
        zh: "trySetCount 只在版本没变时更新；setCount 不看，会盖掉别人的",
        en: "trySetCount sets the number only where its version is unchanged; setCount does not look, and overwrites another's",
    },
    place: "000 §3.7.7.1",
    replay: Some("3.7.7"),
    quick: true,
    by_hand: &[
        Line::new(
            r#"id=$(curl -s -X POST '{8000}/replays/3.7.7?pace=fast' | grep -o '"id":"[^"]*"' | cut -d'"' -f4); curl -sN {8000}/replays/$id/events | tail -2"#,
            r#"data: {…"saw":"1"…"#,
        ),
        Line::new(
            r#"id=$(curl -s -X POST '{8000}/replays/3.7.7?pace=fast&cured=true' | grep -o '"id":"[^"]*"' | cut -d'"' -f4); curl -sN {8000}/replays/$id/events | tail -2"#,
            r#"data: {…"saw":"2"…"#,
        ),
        Line::new(
            "printf 'create /by-hand 0\\nset -v 0 /by-hand 1\\nset -v 0 /by-hand 2\\nget /by-hand\\nset /by-hand 7\\nget /by-hand\\ndelete /by-hand\\nquit\\n' | zkCli.sh {zookeeper} 2>&1",
            "…Created /by-hand\nversion No is not valid : /by-hand\n1\n7…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "3.7.7"))),
    ..Lesson::PLAIN
};

pub(super) const ATOMIC_LONG: Lesson = Lesson {
    id: "3.7.7.2",
    title: Bilingual {
        zh: "DistributedAtomicLong",
        en: "DistributedAtomicLong",
    },
    claim: Bilingual {
        zh: "加一、减一、加、减、设置，都返回成功与否、操作前和操作后的值",
        en: "Each operation says whether it succeeded, the number before it and the number after it",
    },
    place: "000 §3.7.7.2",
    tries: &[
        "/test/zk/atomic/increment?who={who}",
        "/test/zk/atomic/get?who={who}",
    ],
    by_hand: &[
        Line::new(
            "curl -s '{8000}/test/zk/atomic/force-set?value=10'",
            "true … -> 10",
        ),
        Line::new("curl -s '{8100}/test/zk/atomic/increment'", "true 10 -> 11"),
        Line::new(
            "curl -s '{8200}/test/zk/atomic/subtract?value=5'",
            "true 11 -> 6",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(atomic_long(on))),
    ..Lesson::PLAIN
};

async fn atomic_long(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(1).await?;
    let steps = [
        ("increment", "", 1),
        ("decrement", "", 0),
        ("add", "&value=10", 10),
        ("subtract", "&value=3", 7),
        ("try-set", "&value=100", 100),
        ("force-set", "&value=1", 1),
    ];
    let (mut before, mut told, mut holds) = (0, Vec::new(), true);
    for (n, (what, operand, after)) in steps.into_iter().enumerate() {
        let at = &on.instances()[n % on.instances().len()];
        let answer = got(
            on,
            &format!(
                "{at}/test/zk/atomic/{what}?stock_id={}{operand}",
                product.id
            ),
        )
        .await?;
        let (pre, post) = (answer["preValue"].as_i64(), answer["postValue"].as_i64());
        holds &= answer["succeeded"] == true && pre == Some(before) && post == Some(after);
        told.push(format!(
            "{what} {}→{}",
            pre.unwrap_or_default(),
            post.unwrap_or_default()
        ));
        before = after;
    }
    product.remove().await?;
    let words = Words::new(
        format!("{}。", told.join("，")),
        format!("{}.", told.join(", ")),
    );
    Ok(Seen::holds(holds, words).value("steps", told))
}
