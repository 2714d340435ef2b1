//! [003] ZooKeeper's lock, fenced: the row itself refuses a holder whose session has ended.
//!
//! 1. Queue under `/distributed/zk-fenced` as `zk-lock` does. The zxid at which the own node was made is the token: who
//!    stands behind in the queue has a higher one.
//! 2. Show the token to the row, which from now on refuses every lower one; read, then write one less (`fenced.rs`).
//! 3. Delete the node.
//!
//! What it survives: a holder that is paused beyond its session and then writes, a leader that fails: a zxid begins with
//! the number of the leader's term, so that a new leader's are higher. **What breaks it**: a writer that does not show
//! its token. A ZooKeeper that has lost its data sells nothing until the stock is reset: unlike a counter in Redis, its
//! zxid cannot be lifted to what the row has seen. Nor do its tokens compare with those of `redis-fenced`: a row has one
//! source of tokens from one reset to the next.
//!
//! Next: `table_lock.rs`.

use crate::{
    bilingual::Bilingual,
    ctx::Ctx,
    error::Error,
    registry::Rank,
    section::{Deducted, Job, Name},
    server::Server,
    stock::{Promise, Store, Strategy, fenced, under},
};
use oversell_lock::Lock;

pub(super) const STRATEGY: Strategy = Strategy {
    slug: "zk-fenced",
    chapter: "[003]",
    rank: Rank::After("zk-multi"),
    store: Store::MySql,
    promise: Promise::Safe,
    needs: &[Server::MySql, Server::ZooKeeper],
    pace: 380,
    names: &[Name::ZooKeeper("/distributed/zk-fenced"), Name::Fence],
    title: Bilingual {
        zh: "带栅栏令牌的 ZooKeeper 锁：令牌是节点的 czxid",
        en: "ZooKeeper's lock, fenced: the token is the node's czxid",
    },
    breaks: Bilingual {
        zh: "没有；只要每个写入者都出示同一个 ZooKeeper 的令牌",
        en: "nothing, as long as every writer shows a token of the same ZooKeeper",
    },
    source: include_str!("zk_fenced.rs"),
    deduct: |ctx, job| Box::pin(deduct(ctx, job)),
};

async fn deduct(ctx: &Ctx, job: &Job) -> Result<Deducted, Error> {
    let lock = ctx.zk.lock(&job.zk_path("/distributed/zk-fenced"));
    let guard = lock.acquire(job.wait_left()).await?;
    under(guard, |fence| {
        fenced::read_then_write(ctx, job, lock.name(), fence, async |_| Ok(()))
    })
    .await
}
