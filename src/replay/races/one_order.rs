//! [002] One order per user: asked, and answered by what is there, which is not yet what another is about to write.
//!
//! 1. A and B are two orders of one user. Both ask whether the user has an order: neither has.
//! 2. Both take a piece, and write an order.
//!
//! `002.one-order`: on one instance, where each locks a lock object of its own; its cure is a unique key, by which the database
//! refuses the second order, wherever it comes from. `002.cluster`: one mutex per user, on two instances; its cure is a lock in
//! Redis, which the instances share.
//!
//! What it survives: with the key, any number of orders and instances. **What breaks it**: a lock alone, once its lease ends.
//!
//! Next: `late_unlock.rs`.

use crate::bilingual::Bilingual;
use crate::{
    error::Error,
    replay::{
        Ends, Replay,
        acts::{Act, order},
        play::Play,
    },
    section::{Name, Point},
};

/// Two orders of one user on one instance.
pub(super) const ONE_ORDER: Replay = Replay {
    lesson: "002.one-order",
    title: Bilingual {
        zh: "同一个人的两单同时来",
        en: "Two orders of one user at once",
    },
    breaks: Bilingual {
        zh: "都查到没有订单：锁不是同一把",
        en: "both find no order: they lock different objects",
    },
    cure: Bilingual {
        zh: "唯一索引：数据库拒绝第二单",
        en: "a unique key: the database refuses the second",
    },
    runs: [NEW_MUTEX.name, UNIQUE_KEY.name],
    ends: [
        Ends {
            sold: 2,
            gone: 2,
            ..Ends::NOTHING
        },
        Ends {
            sold: 1,
            gone: 1,
            ..Ends::NOTHING
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(one_order(play, act)),
};

/// The same on two instances.
pub(super) const CLUSTER: Replay = Replay {
    lesson: "002.cluster",
    title: Bilingual {
        zh: "集群：每台有自己的用户锁",
        en: "A cluster: each instance has its own locks of the users",
    },
    breaks: Bilingual {
        zh: "两台实例，两把锁，同一个人下了两单",
        en: "two instances, two locks: one user has two orders",
    },
    cure: Bilingual {
        zh: "锁放到 Redis 里，大家共用",
        en: "the lock is in Redis, which all share",
    },
    runs: [USER_MUTEX.name, FIXED_ID.name],
    ends: [
        Ends {
            sold: 2,
            gone: 2,
            inside: 2,
            ..Ends::NOTHING
        },
        Ends {
            sold: 1,
            gone: 1,
            inside: 1,
            ..Ends::NOTHING
        },
    ],
    needs: &[],
    play: |play, act| Box::pin(cluster(play, act)),
};

/// The user's lock in Redis: user and product of a replay have one number.
pub(super) const LOCK: &[Name] = &[Name::Redis("lock:order")];

/// A step as an act.
macro_rules! step {
    ($slug:literal, $names:expr) => {
        Act {
            name: $slug,
            names: $names,
            store: None,
            run: |ctx, job| Box::pin(order(ctx, job, $slug, job.request.stock_id)),
        }
    };
}

const NEW_MUTEX: Act = step!("user-mutex-new", &[]);
const UNIQUE_KEY: Act = step!("unique-key", &[]);
const USER_MUTEX: Act = step!("user-mutex", &[]);
pub(super) const FIXED_ID: Act = step!("redis-lock-fixed-id", LOCK);
pub(super) const OWNER: Act = step!("redis-lock-owner", LOCK);

/// The steps that races are about.
pub(in crate::replay) const ORDERS: &[Act] = &[
    NEW_MUTEX,
    UNIQUE_KEY,
    USER_MUTEX,
    FIXED_ID,
    OWNER,
    super::late_unlock::LATE_FIXED_ID,
    super::late_unlock::LATE_OWNER,
];

async fn one_order(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step(
        "A 查：这个人还没有订单",
        "A asks: the user has no order yet",
    )
    .await?;
    let mut a = play.side_at(Point::Checked, 'A', 0, act, None).await?;
    play.step(
        "同一个人的 B 也查：没有",
        "B, of the same user, asks too: no order",
    )
    .await?;
    let mut b = play.side_at(Point::Checked, 'B', 0, act, None).await?;
    play.step(
        "A 扣库存，写订单，提交",
        "A takes a piece, writes its order, and commits",
    )
    .await?;
    a.ends().await?;
    if play.cured {
        play.step(
            "B 写订单：索引不让，回滚",
            "B's order: the key refuses it, and it is rolled back",
        )
        .await?;
    } else {
        play.step(
            "B 也写了：一个人两单",
            "B writes one too: two orders of one user",
        )
        .await?;
    }
    b.ends().await.map(drop)
}

async fn cluster(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step(
        "A 拿到这个人的锁，查：没有订单",
        "A has the lock of the user, and asks: no order",
    )
    .await?;
    let mut a = play.side_at(Point::Checked, 'A', 0, act, None).await?;
    if play.cured {
        play.step(
            "同一个人的 B 来到另一台：锁被占着，拒绝",
            "B, of the same user, on another instance: the lock is taken, and B is refused",
        )
        .await?;
        play.side(&[], 'B', 1, act, None).await?.ends().await?;
        play.step("A 写订单，放锁", "A writes its order, and unlocks")
            .await?;
        return a.ends().await.map(drop);
    }
    play.step(
        "同一个人的 B 来到另一台：那里的锁没人占",
        "B, of the same user, on another instance: nobody has the lock there",
    )
    .await?;
    let mut b = play.side_at(Point::Checked, 'B', 1, act, None).await?;
    play.step("两个都写了订单", "both write an order").await?;
    a.ends().await?;
    b.ends().await.map(drop)
}
