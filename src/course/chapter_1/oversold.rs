//! §1.1 to §1.6: a stock that is read and then written, one process's lock, and three processes.

use crate::bilingual::Bilingual;
use crate::course::{
    Cluster, Lesson, Line, NoVerdict, Run, Says, Seen, Side, Target, Words,
    experiments::{compared, exact, oversells},
    replay::flaw_and_cure,
};

const LEFT: &str = "mysql {mysql} -Ne 'select count from db_stock where id = 1'";

pub(super) const TWO_AT_ONCE: Lesson = Lesson {
    id: "1.1",
    title: Bilingual {
        zh: "两个人同时买",
        en: "Two buy at once",
    },
    claim: Bilingual {
        zh: "余 5 件，A 和 B 同时来买：都读到 5，最后可能剩 4，而应该剩 3",
        en: "Five are left, A and B buy at once: both read 5, and 4 may be left where it should be 3",
    },
    place: "000 §1.1",
    strategies: &["none"],
    replay: Some("1.3"),
    quick: true,
    by_hand: &[
        Line::new(
            r#"curl -s -X PUT -H 'content-type: application/json' -d '{"count":5}' {http}/stock"#,
            r#"{"mysql":{"id":1,…,"count":5,…"#,
        ),
        Line::new(
            "curl -s '{8000}/check/lock/none?hold_ms=5000&who=A' &",
            "验库存并锁库存成功！",
        ),
        Line::at(
            2,
            "curl -s '{8100}/check/lock/none?hold_ms=5000&who=B'",
            "验库存并锁库存成功！",
        ),
        Line::new("wait", ""),
        Line::at(
            2,
            "mysql {mysql} -Ne 'select count from db_stock where id = 1'",
            "4",
        ),
        Line::RESTOCK,
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "1.3"))),
    ..Lesson::PLAIN
};

pub(super) const ONE_BY_ONE: Lesson = Lesson {
    id: "1.3",
    title: Bilingual {
        zh: "查了再改",
        en: "Read, then write",
    },
    claim: Bilingual {
        zh: "一个一个地买，每买一次库存少 1，没有任何问题",
        en: "One buyer after the other: each purchase takes one piece, and nothing goes wrong",
    },
    place: "000 §1.3",
    strategies: &["none"],
    replay: Some("1.3"),
    tries: &["/check/lock/none?who={who}"],
    quick: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new("curl -s {http}/check/lock/none", "验库存并锁库存成功！"),
        Line::new("curl -s {http}/check/lock/none", "验库存并锁库存成功！"),
        Line::new(LEFT, "4998"),
    ],
    run: Run::Experiment(|on| Box::pin(one_by_one(on))),
    ..Lesson::PLAIN
};

async fn one_by_one(on: &Cluster) -> Result<Seen, NoVerdict> {
    let product = on.product(5000).await?;
    let mut after_each = Vec::new();
    for _ in 0..5 {
        product.buy(on.three(), "none", "").await?;
        after_each.push(product.left().await?.mysql);
    }
    product.remove().await?;
    let words = Words::new(
        format!("一个一个买了 5 次，库存依次是 {after_each:?}。"),
        format!("Five purchases, one after the other; the stock after each: {after_each:?}."),
    );
    Ok(Seen::holds(after_each == [4999, 4998, 4997, 4996, 4995], words).value("left", after_each))
}

pub(super) const UNDER_LOAD: Lesson = Lesson {
    id: "1.4",
    title: Bilingual {
        zh: "并发之下超卖",
        en: "Under load it oversells",
    },
    claim: Bilingual {
        zh: "100 个线程各买 50 次：5000 次都说成功，库存却远不到 0（文中还剩 4870）",
        en: "100 threads × 50 purchases: all 5000 are told \"sold\", and far from all pieces are gone (4870 left in the text)",
    },
    place: "000 §1.4",
    strategies: &["none"],
    replay: Some("1.3"),
    quick: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            "curl -sZ --parallel-max 100 -o /dev/null '{8000}/check/lock/none?hold_ms=20&who=[1-500]'",
            "",
        ),
        Line::new(
            "mysql {mysql} -Ne 'select 5000 - count, 5000 - count < 500 from db_stock where id = 1'",
            "…\t1",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(oversells(on, "none", Target::One))),
    ..Lesson::PLAIN
};

pub(super) const MUTEX: Lesson = Lesson {
    id: "1.5",
    title: Bilingual {
        zh: "JVM 锁",
        en: "One process's lock",
    },
    claim: Bilingual {
        zh: "一台实例时，进程里的一把锁就够了：5000 件一件不多",
        en: "With one instance, a lock inside the process is enough: not one piece too many",
    },
    place: "000 §1.5",
    strategies: &["mutex"],
    replay: Some("1.5"),
    tries: &["/check/lock/mutex?hold_ms=2000&who={who}"],
    quick: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            "curl -sZ --parallel-max 100 -o /dev/null '{8000}/check/lock/mutex?hold_ms=1&who=[1-500]'",
            "",
        ),
        Line::new(LEFT, "4500"),
    ],
    run: Run::Experiment(|on| Box::pin(exact(on, "mutex", &[Target::One]))),
    ..Lesson::PLAIN
};

pub(super) const THREE_INSTANCES: Lesson = Lesson {
    id: "1.6",
    title: Bilingual {
        zh: "三台实例，JVM 锁失效",
        en: "Three instances: the process's lock is not enough",
    },
    claim: Bilingual {
        zh: "nginx 后面三台实例，每台一把自己的锁：又超卖了",
        en: "Three instances behind nginx, each with a lock of its own: it oversells again",
    },
    place: "000 §1.6",
    strategies: &["mutex"],
    replay: Some("1.5"),
    tries: &["/check/lock/mutex?hold_ms=2000&who={who}"],
    quick: true,
    by_hand: &[
        Line::RESTOCK,
        Line::new(
            "curl -sZ --parallel-max 100 -o /dev/null '{http}/check/lock/mutex?hold_ms=5&who=[1-500]'",
            "",
        ),
        Line::new(
            "mysql {mysql} -Ne 'select 5000 - count, 5000 - count < 500 from db_stock where id = 1'",
            "…\t1",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(oversells(on, "mutex", Target::Three))),
    ..Lesson::PLAIN
};

pub(super) const LITTLE_FASTER: Lesson = Lesson {
    id: "1.6.2",
    title: Bilingual {
        zh: "三台快多少",
        en: "How much faster three are",
    },
    claim: Bilingual {
        zh: "三台比一台性能只是略有提升：它们等的是同一个数据库",
        en: "Three instances are only a little faster than one: they wait for the same database",
    },
    place: "000 §1.6.2",
    strategies: &["mutex"],
    timing: true,
    by_hand: &[Line::new(
        "oversell compare --http {http} --instance {8000} --strategies mutex --targets one,three --threads 20 --loops 20",
        "…mutex    one …exact…mutex    three …mutex    one …mutex    three …",
    )],
    run: Run::Experiment(|on| {
        let [three, one] = [Target::Three, Target::One].map(|target| Side {
            target,
            ..Side::of("mutex")
        });
        Box::pin(compared(on, three, one, Says::Between(0.5, 3.0)))
    }),
    ..Lesson::PLAIN
};
