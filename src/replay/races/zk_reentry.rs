//! §3.3 → §3.5 Who has the lock takes it again, in a method that the section calls.
//!
//! 1. A makes its ephemeral node: it has the lock.
//! 2. It takes the lock again: there is a node already, its own. It waits for itself, until its wait is over.
//!
//! On its cure the process counts what its owner holds: the second time gets in, and the server sees one node.
//!
//! Points of the second try: those of the strategy `zk-ephemeral`.
//!
//! Next: `herd.rs`.

use super::node_types::down;
use crate::bilingual::Bilingual;
use crate::{
    ctx::Ctx,
    error::Error,
    replay::{Ends, Replay, acts::Act, play::Play},
    section::{Deducted, Job, Name, Point},
    stock::{self, Store},
};
use std::time::Duration;
use tokio::time::timeout;
use zookeeper_client::{Acls, CreateMode};

const NODE: &str = "/distributed/zk-ephemeral";
/// It waits for itself so long.
const WAIT: Duration = Duration::from_secs(1);

pub(in crate::replay) const ACTS: &[Act] = &[Act {
    name: "zk-ephemeral-twice",
    names: &[Name::ZooKeeper(NODE)],
    store: Some(Store::MySql),
    run: |ctx, job| Box::pin(twice(ctx, job)),
}];

pub(super) const REPLAY: Replay = Replay {
    lesson: "3.5",
    title: Bilingual {
        zh: "同一个持有者再进一次",
        en: "Its owner comes in again",
    },
    breaks: Bilingual {
        zh: "节点已经有了，是自己的：自己等自己",
        en: "there is a node, its own: it waits for itself",
    },
    cure: Bilingual {
        zh: "进程里计数：再进一次只加一",
        en: "a count in the process: once more only adds one",
    },
    runs: ["zk-ephemeral-twice", "zk-reentrant"],
    ends: [
        Ends {
            inside: 1,
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
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step(
        "A 拿到锁，里面又要同一把锁",
        "A has the lock, and takes the same lock again inside",
    )
    .await?;
    let mut a = play.side(&[], 'A', play.other(0), act, None).await?;
    if act == "zk-reentrant" {
        play.step(
            "计数加一，进去了；服务器上还是一个节点",
            "it is counted, and gets in; the server sees one node",
        )
        .await?;
    } else {
        play.step(
            "节点已经有了：A 等自己，等到超时",
            "there is a node: A waits for itself, until its wait is over",
        )
        .await?;
    }
    a.ends().await.map(drop)
}

/// Takes the lock of §3.3, and inside takes it again.
async fn twice(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let (client, path) = (ctx.zk.session()?, job.zk_path(NODE));
    let [parent, node] = [CreateMode::Container, CreateMode::Ephemeral]
        .map(|mode| mode.with_acls(Acls::anyone_all()));
    client.mkdir("/distributed", &parent).await.map_err(down)?;
    client
        .create(&path, job.owner(ctx).to_string().as_bytes(), &node)
        .await
        .map_err(down)?;
    job.at(Point::Locked).await;
    let inner =
        stock::find("zk-ephemeral").ok_or_else(|| Error::NoStrategy("zk-ephemeral".to_owned()))?;
    let outcome = timeout(WAIT, (inner.deduct)(ctx, job)).await;
    client.delete(&path, None).await.map_err(down)?;
    outcome.unwrap_or_else(|_| Err(job.not_had(&path)))
}
