//! [002] Orders of a voucher: on sale or not, oversold or not, one per user or two, under the locks of one process.

use crate::bilingual::Bilingual;
use crate::{
    course::{
        Cluster, Lesson, Line, NoVerdict, Run, Seen, Target, Words,
        replay::flaw_and_cure,
        voucher::{Ordered, Voucher},
    },
    seckill::check::{Report, Verdict as Checked},
};
use chrono::TimeDelta;
use serde_json::{Value, json};

pub(super) const NEW: Line = Line::new(
    r#"curl -s -X POST -H 'content-type: application/json' -d '{"title":"100元代金券","stock":10,"begin":"2020-01-01T00:00:00Z","end":"2090-01-01T00:00:00Z"}' {http}/voucher"#,
    r#"{"id":…}"#,
);

/// The last piece of a voucher.
const LAST: Line = Line::new(
    r#"curl -s -X POST -H 'content-type: application/json' -d '{"title":"100元代金券","stock":1,"begin":"2020-01-01T00:00:00Z","end":"2090-01-01T00:00:00Z"}' {http}/voucher"#,
    r#"{"id":…}"#,
);

/// `order!("user-mutex")`: an order of user 1010 through nginx; `order!("user-mutex", "&hold_ms=1000", "{8000}", "1011")`.
macro_rules! order {
    ($step:literal) => {
        order!($step, "", "{http}")
    };
    ($step:literal, $more:literal, $at:literal) => {
        order!($step, $more, $at, "1010")
    };
    ($step:literal, $more:literal, $at:literal, $user:literal) => {
        concat!(
            "curl -s -X POST -H 'x-user-id: ",
            $user,
            "' \"",
            $at,
            "/voucher-order/seckill/$(mysql {mysql} -Ne 'select max(voucher_id) from tb_seckill_voucher')?strategy=",
            $step,
            $more,
            "\""
        )
    };
}
pub(super) use order;

pub(super) const PLACED: &str = r#"{"outcome":"sold",…}"#;
/// How many orders there are of the latest voucher.
macro_rules! how_many {
    () => {
        "mysql {mysql} -Ne 'select count(*) from tb_voucher_order where voucher_id = (select max(voucher_id) from tb_seckill_voucher)'"
    };
}
pub(super) use how_many;

/// Whoever came first has the lock of user 1010.
pub(super) const HELD: Line = Line::until(2, "redis-cli {redis} exists lock:order:1010", "1");
const STOCK: &str =
    "mysql {mysql} -Ne 'select stock from tb_seckill_voucher order by voucher_id desc limit 1'";

pub(super) const ON_SALE: Lesson = Lesson {
    id: "002.on-sale",
    title: Bilingual {
        zh: "开始了没有，结束了没有，还有没有",
        en: "Begun, over, sold out",
    },
    claim: Bilingual {
        zh: "没开始、已结束、没库存的券都下不了单，各有各的话",
        en: "A voucher that has not begun, is over or has no piece left cannot be ordered, and the answer says which",
    },
    place: "002 实现秒杀下单",
    quick: true,
    by_hand: &[
        Line::new(
            r#"curl -s -X POST -H 'content-type: application/json' -d '{"title":"t","stock":10,"begin":"2089-01-01T00:00:00Z","end":"2090-01-01T00:00:00Z"}' {http}/voucher"#,
            r#"{"id":…}"#,
        ),
        Line::new(order!("redis-rlock"), "…秒杀尚未开始!…"),
    ],
    run: Run::Experiment(|on| Box::pin(on_sale(on))),
    ..Lesson::PLAIN
};

async fn on_sale(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (past, soon, later) = (
        -TimeDelta::hours(1),
        TimeDelta::hours(1),
        TimeDelta::hours(2),
    );
    let mut said = Vec::new();
    for (from, until, pieces) in [(soon, later, 1), (past * 2, past, 1), (past, soon, 1)] {
        let voucher = on.voucher(pieces, from, until).await?;
        let (_, mut answer) = voucher.order(on.three(), "redis-rlock", 1, "").await?;
        if answer["outcome"] == "sold" {
            // The one piece is sold: another user hears so.
            answer = voucher.order(on.three(), "redis-rlock", 2, "").await?.1;
        }
        voucher.remove().await?;
        said.push(answer["title"].as_str().unwrap_or_default().to_owned());
    }
    let heard = said.join("，");
    let words = Words::new(
        format!("依次回答：{heard}。"),
        format!("The answers: {heard}."),
    );
    let holds = ["尚未开始", "已经结束", "库存不足"]
        .iter()
        .zip(&said)
        .all(|(wanted, said)| said.contains(wanted));
    Ok(Seen::holds(holds, words).value("answers", said))
}

/// What a crowd came to, in words.
pub(super) fn words(step: &str, target: Target, ordered: &Ordered) -> Words {
    let Report {
        pieces,
        orders,
        oversold,
        duplicate_orders: twice,
        ..
    } = &ordered.report;
    let place = target.words();
    Words::new(
        format!(
            "{step}，{}：{pieces} 件，{orders} 单，超卖 {oversold} 件，重复的 {twice} 单。",
            place.zh
        ),
        format!(
            "{step} on {}: {pieces} pieces, {orders} orders, {oversold} oversold, {twice} beyond a user's first.",
            place.en
        ),
    )
}

/// A crowd's figures.
pub(super) fn figures(ordered: &Ordered) -> Value {
    json!({"placed": ordered.placed, "report": ordered.report})
}

/// 100 users, each so often, for 20 pieces: whether the checker's verdict is this one.
async fn crowd(
    on: &Cluster,
    step: &str,
    target: Target,
    repeats: i64,
    verdict: Checked,
) -> Result<Seen, NoVerdict> {
    let (pieces, users) = if repeats == 1 { (20, 100) } else { (100, 40) };
    let ordered = on.crowd(step, target, pieces, users, repeats).await?;
    let holds = ordered.report.faults.contains(&verdict) || ordered.report.verdict == verdict;
    Ok(Seen::holds(holds, words(step, target, &ordered)).value("crowd", figures(&ordered)))
}

/// 40 users order three times each, all at once: nothing is oversold, and each has one order.
pub(super) async fn one_each(on: &Cluster, step: &str, target: Target) -> Result<Seen, NoVerdict> {
    crowd(on, step, target, 3, Checked::Exact).await
}

pub(super) const OVERSOLD: Lesson = Lesson {
    id: "002.oversold",
    title: Bilingual {
        zh: "先查库存再扣减",
        en: "Look, then deduct",
    },
    claim: Bilingual {
        zh: "两个线程都查到还有库存，都去扣：超卖，库存变负",
        en: "Two threads both see a piece left, and both take it: oversold, the stock below zero",
    },
    place: "002 库存超卖问题分析",
    steps: &["check-then-deduct"],
    quick: true,
    by_hand: &[
        LAST,
        Line::new(
            concat!(order!("check-then-deduct", "&hold_ms=6000", "{8000}"), " &"),
            PLACED,
        ),
        Line::at(
            2,
            concat!(
                order!("check-then-deduct", "&hold_ms=6000", "{8000}", "1011"),
                " &"
            ),
            PLACED,
        ),
        Line::until(1, STOCK, "-1"),
    ],
    run: Run::Experiment(|on| {
        Box::pin(crowd(
            on,
            "check-then-deduct",
            Target::One,
            1,
            Checked::Oversold,
        ))
    }),
    ..Lesson::PLAIN
};

pub(super) const CONDITIONAL: Lesson = Lesson {
    id: "002.conditional",
    title: Bilingual {
        zh: "扣减时判断 stock > 0",
        en: "Deduct where stock > 0",
    },
    claim: Bilingual {
        zh: "扣减时带上 stock > 0，就不会超卖",
        en: "With stock > 0 in the deduction nothing is oversold",
    },
    place: "002 库存超卖问题分析",
    steps: &["conditional-update"],
    by_hand: &[
        LAST,
        Line::new(
            concat!(
                order!("conditional-update", "&hold_ms=9000", "{8000}"),
                " &"
            ),
            "…库存不足！…",
        ),
        Line::at(
            2,
            concat!(
                "sleep 3; ",
                order!("conditional-update", "", "{8100}", "1011")
            ),
            PLACED,
        ),
        Line::new("wait", ""),
        Line::new(STOCK, "0"),
    ],
    run: Run::Experiment(|on| {
        Box::pin(crowd(
            on,
            "conditional-update",
            Target::Three,
            1,
            Checked::Exact,
        ))
    }),
    ..Lesson::PLAIN
};

pub(super) const TWICE: Lesson = Lesson {
    id: "002.twice",
    title: Bilingual {
        zh: "一个人能买两次",
        en: "One user orders twice",
    },
    claim: Bilingual {
        zh: "只判断库存，同一个人可以下好几单",
        en: "Where only the stock is asked for, one user may have several orders",
    },
    place: "002 优惠券秒杀-一人一单",
    steps: &["conditional-update"],
    by_hand: &[
        NEW,
        Line::new(order!("conditional-update"), PLACED),
        Line::new(order!("conditional-update"), PLACED),
        Line::new(how_many!(), "2"),
    ],
    run: Run::Experiment(|on| {
        Box::pin(crowd(
            on,
            "conditional-update",
            Target::One,
            3,
            Checked::DuplicateOrders,
        ))
    }),
    ..Lesson::PLAIN
};

pub(super) const GLOBAL_MUTEX: Lesson = Lesson {
    id: "002.global-mutex",
    title: Bilingual {
        zh: "synchronized 方法：所有人排队",
        en: "A synchronized method: everybody waits",
    },
    claim: Bilingual {
        zh: "锁加在方法上：一人一单对了，但不同的人也要互相等；每个用户一把锁就不用",
        en: "With the lock on the method each user has one order, but different users wait for each other; with a lock per user they do not",
    },
    place: "002 优惠券秒杀-一人一单",
    steps: &["global-mutex", "user-mutex"],
    by_hand: &[
        NEW,
        Line::new(
            concat!(order!("global-mutex", "&hold_ms=8000", "{8000}"), " &"),
            PLACED,
        ),
        Line::until(
            2,
            order!("global-mutex", "&wait_ms=200", "{8000}", "1011"),
            "没有等到…",
        ),
        NEW,
        Line::new(
            concat!(order!("user-mutex", "&hold_ms=8000", "{8000}"), " &"),
            PLACED,
        ),
        Line::at(
            2,
            order!("user-mutex", "&wait_ms=2000", "{8000}", "1011"),
            PLACED,
        ),
    ],
    run: Run::Experiment(|on| Box::pin(global_mutex(on))),
    ..Lesson::PLAIN
};

/// One user stays inside, and another one comes, who may not wait: refused by the one lock, and not by a lock per user.
async fn global_mutex(on: &Cluster) -> Result<Seen, NoVerdict> {
    let exact = one_each(on, "global-mutex", Target::One).await?;
    let mut statuses = Vec::new();
    for step in ["global-mutex", "user-mutex"] {
        let voucher = on.on_sale(10).await?;
        let second = async {
            tokio::time::sleep(std::time::Duration::from_millis(700)).await;
            voucher.order(on.one(), step, 2, "&wait_ms=200").await
        };
        let (first, second) =
            tokio::join!(voucher.order(on.one(), step, 1, "&hold_ms=2000"), second);
        first?;
        statuses.push(second?.0);
        voucher.remove().await?;
    }
    let words = Words::new(
        format!(
            "另一个人只肯等 0.2 秒：一把锁时 {}，每人一把锁时 {}。",
            statuses[0], statuses[1]
        ),
        format!(
            "Another user who waits for 0.2 s only: {} with the one lock, {} with a lock each.",
            statuses[0], statuses[1]
        ),
    );
    Ok(exact.and(Seen::holds(statuses == [503, 200], words).value("statuses", statuses)))
}

pub(super) const NEW_MUTEX: Lesson = Lesson {
    id: "002.new-mutex",
    title: Bilingual {
        zh: "userId.toString()：每次都是新锁",
        en: "userId.toString(): a new lock each time",
    },
    claim: Bilingual {
        zh: "toString() 每次给出新对象，锁不住；要 intern()。数据库的唯一索引才谁也绕不过",
        en: "toString() gives a new object each time and locks nothing; it takes intern(). A unique key nobody gets round",
    },
    place: "002 优惠券秒杀-一人一单",
    steps: &["user-mutex-new", "unique-key"],
    replay: Some("002.one-order"),
    quick: true,
    by_hand: &[
        NEW,
        Line::new(order!("user-mutex-new", "&hold_ms=500", "{8000}"), PLACED),
        Line::new(
            order!("user-mutex-new", "", "{8000}"),
            "…用户已经购买过一次!…",
        ),
        NEW,
        Line::new(
            concat!(order!("user-mutex-new", "&hold_ms=6000", "{8000}"), " &"),
            PLACED,
        ),
        Line::at(
            2,
            concat!(order!("user-mutex-new", "&hold_ms=6000", "{8000}"), " &"),
            PLACED,
        ),
        Line::until(1, how_many!(), "2"),
    ],
    run: Run::Experiment(|on| Box::pin(new_mutex(on))),
    ..Lesson::PLAIN
};

async fn new_mutex(on: &Cluster) -> Result<Seen, NoVerdict> {
    Ok(flaw_and_cure(on, "002.one-order")
        .await?
        .and(one_each(on, "unique-key", Target::Three).await?))
}

pub(super) const USER_MUTEX: Lesson = Lesson {
    id: "002.user-mutex",
    title: Bilingual {
        zh: "每个用户一把锁，包住事务",
        en: "A lock per user round the transaction",
    },
    claim: Bilingual {
        zh: "intern() 以后，一台实例上一人一单",
        en: "With intern(), each user has one order on one instance",
    },
    place: "002 优惠券秒杀-一人一单",
    steps: &["user-mutex"],
    by_hand: &[
        NEW,
        Line::new(
            concat!(
                "for n in 1 2; do ",
                order!("user-mutex", "&hold_ms=1000", "{8000}"),
                " & done | grep -o 'sold\\|已经购买过' | sort"
            ),
            "sold\n已经购买过",
        ),
        Line::new(how_many!(), "1"),
    ],
    run: Run::Experiment(|on| Box::pin(one_each(on, "user-mutex", Target::One))),
    ..Lesson::PLAIN
};

pub(super) const UNLOCK_BEFORE_COMMIT: Lesson = Lesson {
    id: "002.unlock-before-commit",
    title: Bilingual {
        zh: "先解锁，后提交",
        en: "Unlock, then commit",
    },
    claim: Bilingual {
        zh: "锁在事务里面，锁放了事务还没提交，下一个人读到旧的；锁要包住事务",
        en: "A lock inside the transaction is given back before the commit, and the next one reads what was there before; the lock must be round it",
    },
    place: "002 优惠券秒杀-一人一单",
    strategies: &["mutex-commit-late"],
    steps: &["user-mutex-in-tx"],
    replay: Some("002.unlock-before-commit"),
    quick: true,
    by_hand: &[
        NEW,
        Line::new(
            concat!(order!("user-mutex-in-tx", "&hold_ms=6000", "{8000}"), " &"),
            PLACED,
        ),
        // It has written, and not committed.
        Line::until(
            2,
            "mysql {mysql} -Ne 'select max(trx_rows_modified) > 0 from information_schema.innodb_trx'",
            "1",
        ),
        Line::at(2, order!("user-mutex-in-tx", "", "{8000}"), PLACED),
        Line::new("wait", ""),
        Line::new(how_many!(), "2"),
    ],
    run: Run::Experiment(|on| Box::pin(unlock_before_commit(on))),
    ..Lesson::PLAIN
};

async fn unlock_before_commit(on: &Cluster) -> Result<Seen, NoVerdict> {
    let orders = crowd(
        on,
        "user-mutex-in-tx",
        Target::One,
        3,
        Checked::DuplicateOrders,
    )
    .await?;
    Ok(flaw_and_cure(on, "002.unlock-before-commit")
        .await?
        .and(orders))
}

pub(super) const PROXY: Lesson = Lesson {
    id: "002.proxy",
    title: Bilingual {
        zh: "this. 调用，事务不生效",
        en: "A call by this. begins no transaction",
    },
    claim: Bilingual {
        zh: "用 this. 调用，Spring 的事务不生效，要拿代理对象来调用",
        en: "Called by this., Spring begins no transaction; the call must go through its proxy",
    },
    place: "002 优惠券秒杀-一人一单",
    run: Run::NotRun(Bilingual {
        zh: "那是 Spring 的代理，这里没有",
        en: "that is Spring's proxy, of which there is none here",
    }),
    ..Lesson::PLAIN
};

pub(super) const CLUSTER: Lesson = Lesson {
    id: "002.cluster",
    title: Bilingual {
        zh: "集群下锁失效",
        en: "In a cluster the lock is not enough",
    },
    claim: Bilingual {
        zh: "部署多台，每台有自己的锁：同一个人又能下两单；要大家共用一把锁",
        en: "With several instances, each with its own locks, a user has two orders again; all must share one lock",
    },
    place: "002 分布式锁",
    steps: &["user-mutex", "redis-lock-fixed-id"],
    replay: Some("002.cluster"),
    quick: true,
    by_hand: &[
        NEW,
        Line::new(
            concat!(order!("user-mutex", "&hold_ms=6000", "{8000}"), " &"),
            PLACED,
        ),
        Line::at(2, order!("user-mutex", "&hold_ms=6000", "{8100}"), PLACED),
        Line::new("wait", ""),
        Line::new(how_many!(), "2"),
        NEW,
        Line::new(
            concat!(
                order!("redis-lock-fixed-id", "&hold_ms=6000", "{8000}"),
                " &"
            ),
            PLACED,
        ),
        HELD,
        Line::at(
            2,
            order!("redis-lock-fixed-id", "", "{8100}"),
            "不允许重复下单",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(cluster(on))),
    ..Lesson::PLAIN
};

async fn cluster(on: &Cluster) -> Result<Seen, NoVerdict> {
    let orders = crowd(on, "user-mutex", Target::Three, 3, Checked::DuplicateOrders).await?;
    Ok(flaw_and_cure(on, "002.cluster").await?.and(orders))
}

/// An order that stays inside, while another of the same user comes to another instance: what the second hears.
pub(super) async fn beside(
    on: &Cluster,
    voucher: &Voucher<'_>,
    step: &str,
) -> Result<(u16, String), NoVerdict> {
    let second = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        voucher.order(on.three(), step, 1, "").await
    };
    let (first, second) = tokio::join!(voucher.order(on.one(), step, 1, "&hold_ms=1500"), second);
    first?;
    let (status, answer) = second?;
    Ok((
        status,
        answer["title"].as_str().unwrap_or_default().to_owned(),
    ))
}
