//! Semaphores: `RedisSemaphore` and Redisson's `RSemaphore` and `RPermitExpirableSemaphore`, `ZkSemaphore` and Curator's `InterProcessSemaphoreV2`.

use super::support::*;

const ALL: u32 = 3;

/// This many of three permits.
fn taking(take: u32) -> Kind {
    Kind::Permits { all: ALL, take, lease: None }
}

/// Its lease ends within a test.
fn brief() -> Kind {
    Kind::Permits { all: 1, take: 1, lease: Some(VISIBLE_WAIT) }
}

#[apply(clause!)]
#[over(permits, Both)]
async fn permits_are_seen_by_both(pair: Pair) -> Result<()> {
    let [mut first, mut second] = [pair.first(), pair.second()];
    let mut one = second.with(taking(1));
    pair.set_permits().await?;
    first.take().await?;
    pair.free_permits(1).await?;
    refused([&mut second]).await?;
    one.take().await?;
    pair.free_permits(0).await?;
    refused([&mut first.with(taking(1)), &mut second.with(taking(1))]).await?;
    one.release().await?;
    first.release().await?;
    let [mut all, mut more] = [second.with(taking(ALL)), first.with(taking(1))];
    all.take().await?;
    refused([&mut more]).await?;
    all.release().await?;
    pair.free_permits(ALL).await
}

/// A waiter for more permits than are free takes none of them before.
#[apply(clause!)]
#[over(permits, Both)]
async fn permits_come_from_several_holders_of_the_other_side(pair: Pair) -> Result<()> {
    let [mut one, mut two, mut waiter] = [pair.first().with(taking(1)), pair.first(), pair.second()];
    pair.set_permits().await?;
    one.take().await?;
    two.take().await?;
    let mut waiting = waiter.waits().await?;
    waiting.ensure_sleeping().await?;
    one.release().await?;
    waiting.ensure_sleeping().await?;
    pair.lets_in(&mut two, [waiting]).await?;
    pair.free_permits(1).await?;
    refused([&mut two]).await?;
    waiter.release().await
}

/// A late release frees no permit of the next holder.
#[apply(clause!)]
#[over(redissons_leased, Both)]
async fn a_permit_comes_back_with_its_lease(pair: Pair) -> Result<()> {
    let [mut late, mut waiter] = [pair.first().with(brief()), pair.second()];
    pair.set_permits().await?;
    late.take().await?;
    pair.free_permits(0).await?;
    let waiting = waiter.waits().await?;
    waiting.comes().await?;
    late.release_is_refused().await?;
    pair.free_permits(0).await?;
    refused([&mut late]).await?;
    waiter.release().await?;
    pair.free_permits(1).await
}

#[apply(clause!)]
#[over(curators_permits, Once)]
async fn curator_sees_the_leases_of_both(pair: Pair) -> Result<()> {
    let [mut theirs, mut ours] = [pair.theirs(), pair.ours().with(taking(1))];
    theirs.take().await?;
    ours.take().await?;
    let seen = pair.theirs().ask("participants", "").await?;
    let mut seen: Vec<&str> = seen.split(' ').collect();
    let mut there = pair.zookeeper().children(&format!("{}/leases", pair.name)).await?;
    seen.sort_unstable();
    there.sort_unstable();
    ensure!(seen.len() == 3 && seen == there, "java sees {seen:?}, and there are {there:?}");
    ours.release().await?;
    theirs.release().await
}
