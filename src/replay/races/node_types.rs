//! §3.2, 3.3 The holder dies. Was its node permanent or ephemeral?
//!
//! 1. A makes the node, and so has the lock; its process is killed.
//! 2. B asks again and again: a permanent node stays where its maker dies, even beyond its session, and nobody ever gets in.
//!
//! On its cure the node is ephemeral: ZooKeeper ends A's session, deletes the node, and B gets in.
//!
//! Points of the permanent node: `refused`, and those of the strategy `none`.
//!
//! Next: `zk_reentry.rs`.

use super::*;
use crate::{section::zk_node::unavailable, stock};
use zookeeper_client::{Acls, CreateMode, Error as Zk};

/// The path of the lock's node, that of the strategy `zk-ephemeral`.
const NODE: &str = "/distributed/zk-ephemeral";
/// The pause between two attempts.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

pub(super) const RACE: Race = Race {
    lessons: &["3.2", "003.session"],
    title: Bilingual::of("持有者死了，节点呢", "The holder dies: what becomes of its node"),
    breaks: Bilingual::of("永久节点没有人删：锁永远不会释放", "nobody deletes a permanent node: the lock is never free"),
    cure: Bilingual::of("临时节点随会话一起消失", "an ephemeral node goes with its session"),
    anomalies: &[Anomaly::Stuck],
    begin: &[
        say("A 建了节点，拿到锁", "A makes the node, and has the lock"),
        A.stops_at(Point::Locked),
        say("A 的进程被杀（kill -9），没来得及删节点", "A's process is killed before it can delete its node"),
        A.gets_killed(),
    ],
    flaw: Variant {
        act: Act::custom_selling(Store::MySql, "zk-permanent", &[Name::ZooKeeper(NODE)], |ctx, job| {
            Box::pin(lock_with_permanent_node(ctx, job))
        }),
        steps: &[
            say("B 一直试：永久节点还在，谁也进不来", "B tries on: the permanent node is there, and nobody gets in"),
            B.stops_at(Point::Refused),
            A.loses_session(),
            B.continues(),
            B.passes(Point::Refused, 3, 3),
            Note("B waits"),
        ],
        expected: ExpectedResult::NOTHING.inside(1).noting("B waits", "B 仍在等待", "B still waits"),
    },
    cured: Variant {
        act: Act::Strategy("zk-ephemeral"),
        steps: &[
            say("A 的会话过期，临时节点被删", "A's session ends, and its node goes with it"),
            A.loses_session_and_lock(),
            say("B 进来了", "B gets in"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(1, 1).inside(1),
    },
};

/// Takes a piece under a permanent node, and deletes the node. If the holder dies before, the node stays.
async fn lock_with_permanent_node(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let (client, path) = (ctx.zk.session()?, job.zk_path(NODE));
    let [parent, node] = [CreateMode::Container, CreateMode::Persistent].map(|mode| mode.with_acls(Acls::anyone_all()));
    client.mkdir("/distributed", &parent).await.map_err(unavailable)?;
    let owner = job.owner(ctx).to_string();
    loop {
        match client.create(&path, owner.as_bytes(), &node).await {
            Ok(_) => break,
            Err(Zk::NodeExists) => job.reach(Point::Refused).await,
            Err(error) => return Err(unavailable(error)),
        }
        if job.wait_left().is_zero() {
            return Err(job.timed_out(&path));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    let section = stock::find("none").ok_or_else(|| Error::NoStrategy("none".to_owned()))?;
    let outcome = (section.spec.deduct)(ctx, job).await;
    client.delete(&path, None).await.map_err(unavailable)?;
    outcome
}
