//! §3.1 and §3.2: the types of nodes, the four watches, and what becomes of the node of a holder that dies.

use super::until_below;
use crate::bilingual::Bilingual;
use crate::course::{Cluster, Lesson, Line, NoVerdict, Run, Seen, Words, replay::flaw_and_cure};
use zookeeper_client::{Acls, Client, CreateMode, EventType, OneshotWatcher};

pub(super) const TYPES: Lesson = Lesson {
    id: "3.1.2",
    title: Bilingual {
        zh: "四种节点",
        en: "The four types of nodes",
    },
    claim: Bilingual {
        zh: "永久节点在客户端断开以后还在，临时节点随会话删除；带序号的由 ZooKeeper 按顺序编号",
        en: "A permanent node stays when its client goes, an ephemeral one is deleted with the session; ZooKeeper numbers the sequential ones in order",
    },
    place: "000 §3.1.2",
    quick: true,
    by_hand: &[
        Line::new("zkCli.sh {zookeeper} create /aa test 2>&1", "…Created /aa…"),
        // With "quit" the session is closed; without it, it ends by itself after 30 s.
        Line::new(
            r"printf 'create -e /cc test\nquit\n' | zkCli.sh {zookeeper} 2>&1",
            "…Created /cc…",
        ),
        Line::new(
            "zkCli.sh {zookeeper} create -s -e /dd test 2>&1",
            "…Created /dd0…",
        ),
        Line::new("zkCli.sh {zookeeper} get /aa 2>&1", "…test…"),
        Line::new(
            "zkCli.sh {zookeeper} stat /cc 2>&1",
            "…Node does not exist: /cc…",
        ),
        Line::new("zkCli.sh {zookeeper} delete /aa 2>&1", "…"),
    ],
    run: Run::Experiment(|on| Box::pin(types(on))),
    ..Lesson::PLAIN
};

/// A directory of an experiment's own.
async fn directory(zookeeper: &Client) -> Result<String, NoVerdict> {
    let path = format!("/course-{:08x}", fastrand::u32(..));
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    zookeeper
        .create(&path, b"", &options)
        .await
        .map_err(NoVerdict::failed)?;
    Ok(path)
}

async fn types(on: &Cluster) -> Result<Seen, NoVerdict> {
    use CreateMode::{Ephemeral, EphemeralSequential, Persistent, PersistentSequential};
    let (stays, goes) = (on.zookeeper().await?, on.zookeeper().await?);
    let path = directory(&stays).await?;
    for (name, mode) in [
        ("aa", Persistent),
        ("bb", PersistentSequential),
        ("cc", Ephemeral),
        ("dd", EphemeralSequential),
    ] {
        let options = mode.with_acls(Acls::anyone_all());
        goes.create(&format!("{path}/{name}"), b"test", &options)
            .await
            .map_err(NoVerdict::failed)?;
    }
    let before = names(&stays, &path).await?;
    // The last handle ends the session.
    drop(goes);
    until_below(&stays, &path, 2).await?;
    let after = names(&stays, &path).await?;
    for name in &after {
        stays
            .delete(&format!("{path}/{name}"), None)
            .await
            .map_err(NoVerdict::failed)?;
    }
    stays.delete(&path, None).await.map_err(NoVerdict::failed)?;
    let words = Words::new(
        format!(
            "四种各建一个：{}；会话结束以后：{}。",
            before.join("、"),
            after.join("、")
        ),
        format!(
            "One of each: {}; after the session: {}.",
            before.join(", "),
            after.join(", ")
        ),
    );
    let holds =
        before == ["aa", "bb0000000001", "cc", "dd0000000003"] && after == ["aa", "bb0000000001"];
    Ok(Seen::holds(holds, words)
        .value("before", before)
        .value("after", after))
}

async fn names(zookeeper: &Client, path: &str) -> Result<Vec<String>, NoVerdict> {
    let mut names = zookeeper
        .list_children(path)
        .await
        .map_err(NoVerdict::failed)?;
    names.sort();
    Ok(names)
}

pub(super) const WATCHES: Lesson = Lesson {
    id: "3.1.2.watch",
    title: Bilingual {
        zh: "四种监听",
        en: "The four watches",
    },
    claim: Bilingual {
        zh: "节点创建、删除、数据修改、子节点变化，盯着的客户端都会收到通知",
        en: "Who watches is told when a node is created, deleted, when its data change, and when its children do",
    },
    place: "000 §3.1.2",
    quick: true,
    by_hand: &[Line::new(
        "printf 'stat -w /xx\\ncreate /xx a\\nget -w /xx\\nset /xx b\\nls -w /xx\\ncreate /xx/y c\\nstat -w /xx/y\\ndelete /xx/y\\ndelete /xx\\nquit\\n' | zkCli.sh {zookeeper} 2>&1",
        "…NodeCreated…NodeDataChanged…NodeChildrenChanged…NodeDeleted…",
    )],
    run: Run::Experiment(|on| Box::pin(watches(on))),
    ..Lesson::PLAIN
};

async fn watches(on: &Cluster) -> Result<Seen, NoVerdict> {
    let (watches, changes) = (on.zookeeper().await?, on.zookeeper().await?);
    let path = directory(&changes).await?;
    let (node, child) = (format!("{path}/xx"), format!("{path}/xx/y"));
    let options = CreateMode::Persistent.with_acls(Acls::anyone_all());
    let failed = |error: zookeeper_client::Error| NoVerdict::failed(error);
    let mut told = Vec::new();

    let (_, watcher) = watches.check_and_watch_stat(&node).await.map_err(failed)?;
    changes
        .create(&node, b"a", &options)
        .await
        .map_err(failed)?;
    told.push(fired(watcher).await);
    let (_, _, watcher) = watches.get_and_watch_data(&node).await.map_err(failed)?;
    changes.set_data(&node, b"b", None).await.map_err(failed)?;
    told.push(fired(watcher).await);
    let (_, watcher) = watches
        .list_and_watch_children(&node)
        .await
        .map_err(failed)?;
    changes
        .create(&child, b"c", &options)
        .await
        .map_err(failed)?;
    told.push(fired(watcher).await);
    let (_, watcher) = watches.check_and_watch_stat(&child).await.map_err(failed)?;
    changes.delete(&child, None).await.map_err(failed)?;
    told.push(fired(watcher).await);

    changes.delete(&node, None).await.map_err(failed)?;
    changes.delete(&path, None).await.map_err(failed)?;
    use EventType::{NodeChildrenChanged, NodeCreated, NodeDataChanged, NodeDeleted};
    let holds = told
        == [
            NodeCreated,
            NodeDataChanged,
            NodeChildrenChanged,
            NodeDeleted,
        ];
    let told: Vec<_> = told.iter().map(|event| format!("{event:?}")).collect();
    let words = Words::new(
        format!("依次收到：{}。", told.join("、")),
        format!("Told, in turn: {}.", told.join(", ")),
    );
    Ok(Seen::holds(holds, words).value("told", told))
}

async fn fired(watcher: OneshotWatcher) -> EventType {
    watcher.changed().await.event_type
}

pub(super) const DEAD_HOLDER: Lesson = Lesson {
    id: "3.2",
    title: Bilingual {
        zh: "持有者宕机",
        en: "A holder that dies",
    },
    claim: Bilingual {
        zh: "用永久节点当锁，持有者宕机以后锁永远不放；临时节点随会话删除，锁自己放开",
        en: "With a permanent node the lock of a dead holder is never free; an ephemeral node goes with its session, and frees it",
    },
    place: "000 §3.2",
    strategies: &["zk-ephemeral"],
    replay: Some("3.3"),
    by_hand: &[
        Line::new(
            "curl -s '{http}/check/lock/zk-ephemeral'",
            "验库存并锁库存成功！",
        ),
        // The directory is a container: ZooKeeper itself deletes it within a minute of its being empty.
        Line::new(
            r"printf 'create /distributed\ncreate /distributed/zk-ephemeral somebody\nquit\n' | zkCli.sh {zookeeper} 2>&1",
            "…Created /distributed/zk-ephemeral…",
        ),
        Line::new(
            "curl -s -o /dev/null -w '%{http_code}' '{http}/check/lock/zk-ephemeral?wait_ms=1000'",
            "503",
        ),
        Line::new(
            "zkCli.sh {zookeeper} delete /distributed/zk-ephemeral 2>&1",
            "…",
        ),
        Line::new(
            "curl -s '{http}/check/lock/zk-ephemeral'",
            "验库存并锁库存成功！",
        ),
    ],
    run: Run::Experiment(|on| Box::pin(flaw_and_cure(on, "3.3"))),
    ..Lesson::PLAIN
};

pub(super) const MAJORITY: Lesson = Lesson {
    id: "3.2.majority",
    title: Bilingual {
        zh: "半数以上存活",
        en: "A majority that lives",
    },
    claim: Bilingual {
        zh: "集群里半数以上的机器存活，ZooKeeper 就能服务，锁不会丢",
        en: "As long as most members of the ensemble live, ZooKeeper serves, and no lock is lost",
    },
    place: "000 §3.2",
    run: Run::NotRun(Bilingual {
        zh: "这里只有一台 ZooKeeper：用 oversell lab --zookeeper 3 启动三台，再 lab fault kill 领导者；测试里有",
        en: "there is one ZooKeeper here: `oversell lab --zookeeper 3` starts three, and `lab fault kill` one; the tests do so",
    }),
    ..Lesson::PLAIN
};
