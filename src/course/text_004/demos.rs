//! [004] Four demos of one lock: in the code, as an object, as a layer of a route, and with a key out of the parameters.

use crate::bilingual::Bilingual;
use crate::course::{
    Cluster, Lesson, Line, NoVerdict, Run, Seen, Target, Verdict, Words, experiments::oversells,
    replay::flaw_and_cure,
};
use futures::future::{join_all, try_join};
use http::Method;
use redis::AsyncCommands;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// How long the work of an experiment takes, instead of the text's 5 s, in milliseconds.
const WORK_MS: u64 = 500;
/// Enough for the first of two to have the lock.
const HEAD_START: Duration = Duration::from_millis(200);

const SOLD: &str = "验库存并锁库存成功！";

/// GET as JSON: status and answer.
async fn get(on: &Cluster, url: &str) -> Result<(u16, Value), NoVerdict> {
    let answer = on
        .ask(Method::GET, url, &[("accept", "application/json")], None)
        .await?;
    Ok((answer.status.as_u16(), answer.json()?))
}

/// Two who work under this lock, the second a little later and on another instance: both answers, and whether the second
/// has waited for the first.
async fn two(on: &Cluster, [first, second]: [&str; 2]) -> Result<([u16; 2], bool), NoVerdict> {
    let (one, other) = (
        on.one(),
        on.instances().last().map_or(on.one(), String::as_str),
    );
    let later = async {
        sleep(HEAD_START).await;
        get(on, &format!("{other}{second}")).await
    };
    let (first, second) =
        try_join(async { get(on, &format!("{one}{first}")).await }, later).await?;
    let waited = second.1["waited_ms"].as_u64().unwrap_or(0);
    Ok(([first.0, second.0], waited >= WORK_MS / 4))
}

/// Two who ask for the same lock: the second waits.
async fn exclusive(on: &Cluster, path: &str) -> Result<Seen, NoVerdict> {
    let path = format!("{path}?hold_ms={WORK_MS}");
    let (statuses, waited) = two(on, [&path, &path]).await?;
    let (zh, en) = if waited {
        ("等第一个做完才进去", "waited for the first")
    } else {
        ("没有等", "did not wait")
    };
    let words = Words::new(
        format!("两台实例上各一个：都是 {statuses:?}，第二个{zh}。"),
        format!("One on each of two instances: {statuses:?}; the second {en}."),
    );
    Ok(Seen::holds(statuses == [200, 200] && waited, words))
}

pub(super) const SAME_PROCESS: Lesson = Lesson {
    id: "004.jvm",
    title: Bilingual {
        zh: "Java 的锁只在一个 JVM 里有效",
        en: "A lock of Java is of one JVM",
    },
    claim: Bilingual {
        zh: "synchronized 和 Lock 只在同一个 JVM 里才生效",
        en: "synchronized and Lock work inside one JVM only",
    },
    place: "004 问题背景",
    strategies: &["mutex"],
    replay: Some("1.5"),
    by_hand: &[
        Line::RESTOCK,
        Line::new("curl -s '{8000}/check/lock/mutex?hold_ms=1000' &", SOLD),
        Line::at(2, "curl -s '{8000}/check/lock/mutex?hold_ms=1000' &", SOLD),
        Line::until(
            1,
            "mysql {mysql} -Ne 'select count from db_stock where id = 1'",
            "4998",
        ),
        Line::RESTOCK,
        Line::new("curl -s '{8000}/check/lock/mutex?hold_ms=6000' &", SOLD),
        Line::at(2, "curl -s '{8100}/check/lock/mutex?hold_ms=6000'", SOLD),
        Line::new("wait", ""),
        Line::new(
            "mysql {mysql} -Ne 'select count from db_stock where id = 1'",
            "4999",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(oversells(on, "mutex", Target::Three))),
    ..Lesson::PLAIN
};

pub(super) const REQUIREMENTS: Lesson = Lesson {
    id: "004.requirements",
    title: Bilingual {
        zh: "四条要求",
        en: "Four requirements",
    },
    claim: Bilingual {
        zh: "互斥、避免死锁、只释放自己的锁、不侵入业务代码",
        en: "Exclusive, no deadlock, only its own lock is released, and no lock in the work's own code",
    },
    place: "004 分布式锁要求",
    run: Run::NotRun(Bilingual {
        zh: "这是要求；每一条在 2.1、2.2、2.3 和 004.demo3 里试",
        en: "these are requirements, tried in 2.1, 2.2, 2.3 and 004.demo3",
    }),
    ..Lesson::PLAIN
};

pub(super) const DEMO1: Lesson = Lesson {
    id: "004.demo1",
    title: Bilingual {
        zh: "demo1：锁写在代码里",
        en: "demo1: the lock in the code",
    },
    claim: Bilingual {
        zh: "SETNX 成功就是拿到锁，DEL 就是放锁；没拿到的每 50 毫秒再试",
        en: "SETNX takes the lock, DEL gives it back; who has not got it tries again every 50 ms",
    },
    place: "004 demo1",
    quick: true,
    tries: &["/demo1?who={who}"],
    by_hand: &[
        Line::new("curl -s '{8000}/demo1?hold_ms=6000' &", "demo1"),
        Line::until(2, "redis-cli {redis} get demo1LockKey", "demo1LockValue"),
        Line::at(2, "curl -s '{8100}/demo1?hold_ms=100'", "demo1"),
    ],
    run: Run::Experiment(|on| Box::pin(exclusive(on, "/demo1"))),
    ..Lesson::PLAIN
};

pub(super) const DEMO2: Lesson = Lesson {
    id: "004.demo2",
    title: Bilingual {
        zh: "demo2：封装成锁对象",
        en: "demo2: the lock as an object",
    },
    claim: Bilingual {
        zh: "封装以后用法和 ReentrantLock 一样，互斥照样成立",
        en: "As an object it is used like a ReentrantLock, and is as exclusive",
    },
    place: "004 demo2",
    tries: &["/demo2?who={who}"],
    by_hand: &[
        Line::new("curl -s '{8000}/demo2?hold_ms=6000' &", "demo2"),
        Line::until(2, "redis-cli {redis} exists demo2LockKey", "1"),
        Line::at(2, "curl -s '{8100}/demo2?now=true'", "获取锁失败，有并发"),
        Line::at(2, "curl -s '{8100}/demo2?hold_ms=0'", "demo2"),
        Line::at(2, "redis-cli {redis} exists demo2LockKey", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(exclusive(on, "/demo2"))),
    ..Lesson::PLAIN
};

pub(super) const NOW: Lesson = Lesson {
    id: "004.now",
    title: Bilingual {
        zh: "lockNow：拿不到就返回",
        en: "lockNow: not to wait",
    },
    claim: Bilingual {
        zh: "lockNow 不等，拿不到马上报“获取锁失败，有并发”",
        en: "lockNow does not wait: who has not got it hears 获取锁失败，有并发 at once",
    },
    place: "004 demo2, SyncLockableNow",
    by_hand: &[
        Line::new("curl -s '{8000}/demo3?hold_ms=6000' &", "demo3"),
        Line::until(2, "redis-cli {redis} exists 'GET /demo3'", "1"),
        Line::at(2, "curl -s '{8100}/demo3?now=true'", "获取锁失败，有并发"),
    ],
    run: Run::Experiment(|on| Box::pin(now(on))),
    ..Lesson::PLAIN
};

async fn now(on: &Cluster) -> Result<Seen, NoVerdict> {
    let mut statuses = Vec::new();
    for demo in ["demo1", "demo2", "demo3"] {
        let path = format!("/{demo}?hold_ms={WORK_MS}");
        statuses.push(two(on, [&path, &format!("{path}&now=true")]).await?.0);
    }
    let words = Words::new(
        format!("demo1、demo2、demo3，先来的和不肯等的：{statuses:?}。"),
        format!("demo1, demo2, demo3, who came first and who would not wait: {statuses:?}."),
    );
    Ok(
        Seen::holds(statuses.iter().all(|s| *s == [200, 409]), words)
            .value("statuses", json!(statuses)),
    )
}

pub(super) const THREAD_ID: Lesson = Lesson {
    id: "004.thread-id",
    title: Bilingual {
        zh: "线程 ID 会不会一样",
        en: "Whether thread ids collide",
    },
    claim: Bilingual {
        zh: "不同客户端的线程 ID 和名字都一样的概率很小，不用考虑",
        en: "That threads of different clients have the same id and name is too rare to be considered",
    },
    place: "004 demo2",
    expected: Verdict::NotReproduced,
    by_hand: &[
        Line::new("curl -s '{8000}/demo2?hold_ms=6000' &", "demo2"),
        Line::until(2, "redis-cli {redis} get demo2LockKey", "…-http-exec-…"),
    ],
    run: Run::Experiment(|on| Box::pin(thread_id(on))),
    ..Lesson::PLAIN
};

/// What two idle instances write into the key: their threads are numbered from 1 in each.
async fn thread_id(on: &Cluster) -> Result<Seen, NoVerdict> {
    let mut values = Vec::new();
    for (n, instance) in on.instances().iter().enumerate() {
        // A product of its own: nobody else's request stands before it.
        let stock_id = fastrand::i64(2_000_000_000..3_000_000_000) + n as i64;
        let url = format!("{instance}/demo2?hold_ms={WORK_MS}&stock_id={stock_id}");
        values.push(key_meanwhile(on, &url, stock_id).await?);
    }
    let differ = values
        .iter()
        .collect::<std::collections::HashSet<_>>()
        .len()
        == values.len();
    let words = Words::new(
        format!(
            "几台实例依次写进键里的：{}：{}。",
            values.join("，"),
            if differ {
                "都不同"
            } else {
                "有一样的，因为每个进程的线程都从 1 编号"
            }
        ),
        format!(
            "What the instances wrote into the key: {}: {}.",
            values.join(", "),
            if differ {
                "all differ"
            } else {
                "some are the same, since each process numbers its threads from 1"
            }
        ),
    );
    Ok(Seen::holds(differ, words).value("values", values))
}

pub(super) const UUID: Lesson = Lesson {
    id: "004.uuid",
    title: Bilingual {
        zh: "UUID 不能重入",
        en: "A UUID cannot be re-entrant",
    },
    claim: Bilingual {
        zh: "每次加锁用一个 UUID，就认不出自己，不能重入",
        en: "With a UUID for each call a holder does not know itself again, and cannot re-enter",
    },
    place: "004 demo2",
    expected: Verdict::Reproduced,
    by_hand: &[
        Line::new(
            "for n in 1 2; do curl -s -o /dev/null '{8000}/demo2?hold_ms=5000' & until redis-cli {redis} get demo2LockKey | grep .; do sleep .1; done; wait; done",
            "1-http-exec-1\n1-http-exec-1",
        ),
        Line::new(
            "for n in 1 2; do curl -s -o /dev/null '{8000}/demo2?hold_ms=5000&id=uuid' & until redis-cli {redis} get demo2LockKey | grep .; do sleep .1; done; wait; done | sort -u | wc -l",
            "2",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(uuid(on))),
    ..Lesson::PLAIN
};

/// What stands in demo2's key while this request has the lock.
async fn key_meanwhile(on: &Cluster, url: &str, stock_id: i64) -> Result<String, NoVerdict> {
    let mut redis = on.redis().await?;
    let value = async {
        sleep(HEAD_START).await;
        let value: Option<String> = redis
            .get(format!("demo2LockKey:{stock_id}"))
            .await
            .map_err(NoVerdict::failed)?;
        Ok(value.unwrap_or_default())
    };
    Ok(try_join(get(on, url), value).await?.1)
}

/// Two calls of one client, one after the other: what each writes into the key.
async fn uuid(on: &Cluster) -> Result<Seen, NoVerdict> {
    let stock_id = fastrand::i64(2_000_000_000..3_000_000_000);
    let mut values = Vec::new();
    for _ in 0..2 {
        let url = format!(
            "{}/demo2?id=uuid&hold_ms={WORK_MS}&stock_id={stock_id}",
            on.one()
        );
        values.push(key_meanwhile(on, &url, stock_id).await?);
    }
    let words = Words::new(
        format!("同一个客户端两次写进键里的：{}。", values.join("，")),
        format!(
            "What one client wrote into the key, twice: {}.",
            values.join(", ")
        ),
    );
    Ok(Seen::holds(values[0] != values[1] && !values[0].is_empty(), words).value("values", values))
}

pub(super) const FORCE: Lesson = Lesson {
    id: "004.force",
    title: Bilingual {
        zh: "超过安全时间强制拿锁",
        en: "By force after the safety time",
    },
    claim: Bilingual {
        zh: "等过五个租约还拿不到，就强行覆盖；可是持有者可能还在干活，两个都在里面",
        en: "After five leases of waiting the key is overwritten; its holder may be at work, and then two are inside",
    },
    place: "004 demo2 safetyTime",
    replay: Some("004.force"),
    quick: true,
    by_hand: &[
        Line::new("redis-cli {redis} set demo2LockKey dead", "OK"),
        Line::new("curl -s '{8000}/demo2?lease_ms=500&hold_ms=100'", "demo2"),
        Line::new("redis-cli {redis} exists demo2LockKey", "0"),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "004.force"))),
    ..Lesson::PLAIN
};

pub(super) const DEMO3: Lesson = Lesson {
    id: "004.demo3",
    title: Bilingual {
        zh: "demo3：一行注解",
        en: "demo3: one line",
    },
    claim: Bilingual {
        zh: "注解加切面：业务代码里没有锁，互斥照样成立",
        en: "An annotation and an aspect: no lock in the work's own code, and as exclusive",
    },
    place: "004 demo3",
    tries: &["/demo3?who={who}"],
    by_hand: &[
        Line::new("curl -s '{8000}/demo3?hold_ms=6000' &", "demo3"),
        Line::until(2, "redis-cli {redis} exists 'GET /demo3'", "1"),
        Line::at(2, "curl -s '{8100}/demo3?now=true'", "获取锁失败，有并发"),
        Line::at(2, "curl -s '{8100}/demo3?hold_ms=0'", "demo3"),
    ],
    run: Run::Experiment(|on| Box::pin(exclusive(on, "/demo3"))),
    ..Lesson::PLAIN
};

pub(super) const FACTORY: Lesson = Lesson {
    id: "004.factory",
    title: Bilingual {
        zh: "工厂类缓存锁对象",
        en: "A factory that keeps the objects",
    },
    claim: Bilingual {
        zh: "相同的 key 不重复创建锁对象，并发高时对 GC 友好",
        en: "One object for one key: friendly to the garbage collector under load",
    },
    place: "004 工厂类创建锁对象",
    run: Run::NotRun(Bilingual {
        zh: "这里没有垃圾回收，锁对象不缓存",
        en: "there is no garbage collector here, and no object is kept",
    }),
    ..Lesson::PLAIN
};

pub(super) const DEMO4: Lesson = Lesson {
    id: "004.demo4",
    title: Bilingual {
        zh: "demo4：键由参数决定",
        en: "demo4: a key out of the parameters",
    },
    claim: Bilingual {
        zh: "键里带上仓库和 SKU：同一个 SKU 互斥，不同的互不影响",
        en: "With warehouse and SKU in the key the same SKU is exclusive, and different ones do not wait",
    },
    place: "004 demo4",
    quick: true,
    tries: &["/demo4?whId=1&sku=a&who={who}"],
    by_hand: &[
        Line::new(
            "curl -s '{8000}/demo4?whId=1&sku=a&hold_ms=6000' &",
            "demo4",
        ),
        Line::until(
            2,
            "curl -s '{8100}/demo4?whId=1&sku=a&now=true'",
            "获取锁失败，有并发",
        ),
        Line::at(
            2,
            "curl -s '{8100}/demo4?whId=1&sku=b&now=true&hold_ms=10'",
            "demo4",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(by_parameters(on))),
    ..Lesson::PLAIN
};

async fn by_parameters(on: &Cluster) -> Result<Seen, NoVerdict> {
    let of = |sku: &str| format!("/demo4?whId=1&sku={sku}&hold_ms={WORK_MS}");
    let (_, same) = two(on, [&of("a"), &of("a")]).await?;
    let (_, other) = two(on, [&of("a"), &of("b")]).await?;
    let word = |waited| {
        if waited {
            ("等", "waits")
        } else {
            ("不等", "does not wait")
        }
    };
    let words = Words::new(
        format!(
            "第二个：同一个 SKU {}，另一个 SKU {}。",
            word(same).0,
            word(other).0
        ),
        format!(
            "The second one: of the same SKU {}, of another {}.",
            word(same).1,
            word(other).1
        ),
    );
    Ok(Seen::holds(same && !other, words).value("waited", vec![same, other]))
}

pub(super) const UNFAIR: Lesson = Lesson {
    id: "004.unfair",
    title: Bilingual {
        zh: "不公平",
        en: "Not fair",
    },
    claim: Bilingual {
        zh: "先来的不一定先拿到锁",
        en: "Who came first need not be the first to get it",
    },
    place: "004 需要改进的地方 1",
    timing: true,
    by_hand: &[
        Line::new("curl -s '{8000}/demo1?hold_ms=6000' &", "demo1"),
        Line::until(2, "redis-cli {redis} exists demo1LockKey", "1"),
        Line::at(
            2,
            "for n in {1..10}; do sleep .06; curl -s -o /dev/null -w \"$n\\n\" \"{8000}/demo1?hold_ms=20&who=$n\" & done | sort -nc 2>&1",
            "…disorder…",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(unfair(on))),
    ..Lesson::PLAIN
};

/// Ten who come one after the other while the lock is held, and the order in which they get in.
async fn unfair(on: &Cluster) -> Result<Seen, NoVerdict> {
    let stock_id = fastrand::i64(2_000_000_000..3_000_000_000);
    let begun = Instant::now();
    let visits = (0..11_u32).map(|n| async move {
        sleep(Duration::from_millis(60) * n).await;
        let hold = if n == 0 { 900 } else { 20 };
        let url = format!(
            "{}/demo1?stock_id={stock_id}&hold_ms={hold}&who=v{n}",
            on.one()
        );
        let (status, _) = get(on, &url).await?;
        if status != 200 {
            return Err(NoVerdict::failed(format!("{url} answers {status}")));
        }
        Ok((begun.elapsed(), n))
    });
    let mut ended = join_all(visits)
        .await
        .into_iter()
        .collect::<Result<Vec<_>, _>>()?;
    ended.sort_unstable();
    let order: Vec<_> = ended
        .into_iter()
        .map(|(_, n)| n)
        .filter(|n| *n > 0)
        .collect();
    let words = Words::new(
        format!("按到达编号 1 到 10，进去的先后：{order:?}。"),
        format!("Numbered 1 to 10 as they came, they got in in this order: {order:?}."),
    );
    Ok(Seen::holds(!order.is_sorted(), words).value("order", order))
}

pub(super) const MAP: Lesson = Lesson {
    id: "004.map",
    title: Bilingual {
        zh: "工厂里的 map 会变大",
        en: "The factory's map grows",
    },
    claim: Bilingual {
        zh: "键随参数变，工厂里的 map 越来越大，可能内存溢出",
        en: "With keys out of parameters the factory's map grows, and may run out of memory",
    },
    place: "004 需要改进的地方 2",
    run: Run::NotRun(Bilingual {
        zh: "这里的层不为键保存任何东西",
        en: "the layer here keeps nothing of a key",
    }),
    ..Lesson::PLAIN
};
