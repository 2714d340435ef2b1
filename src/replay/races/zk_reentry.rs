//! §3.3 → §3.5 A holder takes its lock again, in a method that the section calls.
//!
//! 1. A makes its ephemeral node: it has the lock.
//! 2. It takes the lock again: there is a node already, its own. It waits for itself, until its wait is over.
//!
//! On its cure the process counts what its owner holds: the second time gets in, and the server sees one node.
//!
//! Points of the second try: those of the strategy `zk-ephemeral`.
//!
//! Next: `zk_not_reentrant.rs`.

use super::*;
use crate::{section::zk_node::unavailable, stock};
use tokio::time::timeout;
use zookeeper_client::{Acls, CreateMode};

/// The path of the lock's node, that of the strategy `zk-ephemeral`.
const NODE: &str = "/distributed/zk-ephemeral";
/// How long the holder waits for its own lock before it times out.
const SELF_WAIT: Duration = Duration::from_secs(1);

pub(super) const RACE: Race = Race {
    lessons: &["3.5"],
    title: Bilingual::of("同一个持有者再进一次", "Its owner comes in again"),
    breaks: Bilingual::of("节点已经有了，是自己的：自己等自己", "there is a node, its own: it waits for itself"),
    cure: Bilingual::of("进程里计数：再进一次只加一", "a count in the process: once more only adds one"),
    anomalies: &[Anomaly::Stuck],
    begin: &[],
    flaw: Variant {
        act: Act::custom_selling(Store::MySql, "zk-ephemeral-twice", &[Name::ZooKeeper(NODE)], |ctx, job| {
            Box::pin(acquire_twice(ctx, job))
        }),
        steps: &[
            A_TAKES_LOCK_TWICE,
            A.stops_at(Point::Locked),
            say("节点已经有了：A 等自己，等到超时", "there is a node: A waits for itself, until its wait is over"),
            A.times_out(),
        ],
        expected: ExpectedResult::NOTHING.inside(1),
    },
    cured: COUNTED_REENTRY,
};

/// The caption before the lock is taken twice.
pub(super) const A_TAKES_LOCK_TWICE: Step =
    say("A 拿到锁，里面又要同一把锁", "A has the lock, and takes the same lock again inside");

/// The cure: the owner takes a lock that counts its holds twice.
pub(super) const COUNTED_REENTRY: Variant = Variant {
    act: Act::Strategy("zk-reentrant"),
    steps: &[
        say(
            "A 拿到锁，里面又拿到同一把锁：计数加一，服务器上还是一个节点",
            "A has the lock, and gets it again inside: it is counted, and the server sees one node",
        ),
        A.finishes(),
    ],
    expected: ExpectedResult::sold(1, 1).inside(1),
};

/// Creates the node of §3.3, tries to sell by the strategy that needs the same node, and deletes the node.
async fn acquire_twice(ctx: &Ctx, job: &Job) -> Result<Deduction, Error> {
    let (client, path) = (ctx.zk.session()?, job.zk_path(NODE));
    let [parent, node] = [CreateMode::Container, CreateMode::Ephemeral].map(|mode| mode.with_acls(Acls::anyone_all()));
    client.mkdir("/distributed", &parent).await.map_err(unavailable)?;
    client.create(&path, job.owner(ctx).to_string().as_bytes(), &node).await.map_err(unavailable)?;
    job.reach(Point::Locked).await;
    let inner = acquire_again(ctx, job, "zk-ephemeral", &path).await;
    client.delete(&path, None).await.map_err(unavailable)?;
    inner
}

/// Takes a piece by this strategy, whose lock at `path` the caller holds already. [`Error::Timeout`] after [`SELF_WAIT`].
pub(super) async fn acquire_again(ctx: &Ctx, job: &Job, slug: &str, path: &str) -> Result<Deduction, Error> {
    let strategy = stock::find(slug).ok_or_else(|| Error::NoStrategy(slug.to_owned()))?;
    let outcome = timeout(SELF_WAIT, (strategy.spec.deduct)(ctx, job)).await;
    outcome.unwrap_or_else(|_| Err(job.timed_out(path)))
}
