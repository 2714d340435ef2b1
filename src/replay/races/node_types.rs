//! §3.2, 3.3 The holder dies. Was its node permanent or ephemeral?
//!
//! 1. A makes the node, and so has the lock; its process is killed.
//! 2. B asks again and again: a permanent node stays where its maker dies, and nobody ever gets in.
//!
//! On its cure the node is ephemeral: ZooKeeper ends A's session, deletes the node, and B gets in.
//!
//! Points of the permanent node: `refused`, and those of the strategy `none`.
//!
//! Next: `zk_reentry.rs`.

use crate::bilingual::Bilingual;
use crate::{
    ctx::Ctx,
    error::Error,
    replay::{Ends, Replay, acts::Act, faults::Need, play::Play},
    section::{Deducted, Job, Name, Point},
    server::Server,
    stock::{self, Store},
};
use std::time::Duration;
use zookeeper_client::{Acls, CreateMode, Error as Zk};

const NODE: &str = "/distributed/zk-ephemeral";
/// How often who waits asks again.
const POLL: Duration = Duration::from_millis(50);

const NEEDS: &[Need] = &[Need::Orders];

pub(in crate::replay) const ACTS: &[Act] = &[Act {
    name: "zk-permanent",
    names: &[Name::ZooKeeper(NODE)],
    store: Some(Store::MySql),
    run: |ctx, job| Box::pin(permanent(ctx, job)),
}];

pub(super) const REPLAY: Replay = Replay {
    lesson: "3.3",
    title: Bilingual {
        zh: "持有者死了，节点呢",
        en: "The holder dies: what becomes of its node",
    },
    breaks: Bilingual {
        zh: "永久节点没有人删：锁永远不放",
        en: "nobody deletes a permanent node: the lock is never free",
    },
    cure: Bilingual {
        zh: "临时节点随会话一起消失",
        en: "an ephemeral node goes with its session",
    },
    runs: ["zk-permanent", "zk-ephemeral"],
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
    needs: NEEDS,
    play: |play, act| Box::pin(played(play, act)),
};

async fn played(play: &mut Play, act: &'static str) -> Result<(), Error> {
    play.step("A 建了节点，拿到锁", "A makes the node, and has the lock")
        .await?;
    let a = play
        .side_at(Point::Locked, 'A', play.other(1), act, None)
        .await?;
    play.step(
        "A 的进程被杀（kill -9），没来得及删节点",
        "A's process is killed before it can delete its node",
    )
    .await?;
    play.kill(&a).await?;
    if act == "zk-permanent" {
        play.step(
            "B 一直试：永久节点还在，谁也进不来",
            "B tries on: the permanent node is there, and nobody gets in",
        )
        .await?;
        let mut b = play
            .side_at(Point::Refused, 'B', play.other(0), act, None)
            .await?;
        b.heads_for_any(&[]);
        b.passes(Point::Refused, 3).await
    } else {
        play.step(
            "A 的会话过期，临时节点被删",
            "A's session ends, and its node goes with it",
        )
        .await?;
        play.session_ends(&a).await?;
        play.step("B 进来了", "B gets in").await?;
        play.side(&[], 'B', play.other(0), act, None)
            .await?
            .ends()
            .await
            .map(drop)
    }
}

/// The lock of §3.3, but for the type of its node.
async fn permanent(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let (client, path) = (ctx.zk.session()?, job.zk_path(NODE));
    let [parent, node] = [CreateMode::Container, CreateMode::Persistent]
        .map(|mode| mode.with_acls(Acls::anyone_all()));
    client.mkdir("/distributed", &parent).await.map_err(down)?;
    let owner = job.owner(ctx).to_string();
    loop {
        match client.create(&path, owner.as_bytes(), &node).await {
            Ok(_) => break,
            Err(Zk::NodeExists) => job.at(Point::Refused).await,
            Err(error) => return Err(down(error)),
        }
        if job.wait_left().is_zero() {
            return Err(job.not_had(&path));
        }
        tokio::time::sleep(POLL).await;
    }
    let section = stock::find("none").ok_or_else(|| Error::NoStrategy("none".to_owned()))?;
    let outcome = (section.deduct)(ctx, job).await;
    client.delete(&path, None).await.map_err(down)?;
    outcome
}

pub(super) fn down(error: Zk) -> Error {
    Error::Unavailable {
        server: Server::ZooKeeper.name(),
        reason: error.to_string(),
    }
}
