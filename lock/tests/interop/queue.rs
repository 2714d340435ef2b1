//! Locks with one queue for both sides.

use super::support::*;

/// Four contenders of alternating sides queue, and each release lets in the next one only.
#[apply(clause!)]
#[over(queued, Both)]
async fn turns_come_in_the_order_of_arrival(pair: Pair) -> Result<()> {
    let [mut holder, mut first, mut second, mut third, mut late] =
        [pair.first(), pair.second(), pair.first_elsewhere(), pair.second_elsewhere(), pair.second()];
    holder.take().await?;
    let ids = [first.id().await?, second.id().await?, third.id().await?];
    let waiting = first.waits().await?;
    let mut second_waits = second.waits().await?;
    let mut third_waits = third.waits().await?;
    if let Server::Redis(redis) = pair.server {
        let queue = redis.standing(&pair.name).await?;
        let is_placed = |(id, place): (&Option<String>, &String)| id.as_ref().is_none_or(|id| id == place);
        ensure!(ids.iter().zip(&queue).all(is_placed) && queue.len() == 3, "{ids:?} came, and the queue is {queue:?}");
    }

    pair.lets_in(&mut holder, [waiting]).await?;
    // A contender that does not wait does not pass the waiters.
    refused([&mut holder, &mut late]).await?;
    second_waits.ensure_sleeping().await?;
    third_waits.ensure_sleeping().await?;
    pair.lets_in(&mut first, [second_waits]).await?;
    third_waits.ensure_sleeping().await?;
    pair.lets_in(&mut second, [third_waits]).await?;
    third.release().await
}

/// A contender that gives up leaves the queue; the one behind it is not let in early, and then has its turn.
#[apply(clause!)]
#[over(queued, Both)]
async fn a_waiter_that_gives_up_leaves_no_place(pair: Pair) -> Result<()> {
    let [mut holder, mut impatient, mut patient] = [pair.first(), pair.second(), pair.first_elsewhere()];
    holder.take().await?;
    let waiting = impatient.waits_for(VISIBLE_WAIT).await?;
    let before = pair.queue().await?.context("a queue")?;
    let mut behind = patient.waits().await?;
    waiting.gives_up().await?;
    pair.until_queue(before).await?;
    behind.ensure_sleeping().await?;
    pair.lets_in(&mut holder, [behind]).await?;
    patient.release().await
}

/// A free lock belongs to its first waiter, even before that one has looked: a later contender is refused.
#[apply(clause!)]
#[over(redissons_fair, Both)]
async fn nobody_gets_past_a_living_waiter(pair: Pair) -> Result<()> {
    let [mut one, mut other] = [pair.first(), pair.second()];
    let redis = pair.redis();
    redis.stand(&pair.name, 60_000).await?;
    refused([&mut one, &mut other]).await?;
    pair.until_queue(1).await?;
    redis.remove_queue(&pair.name).await?;
    one.pass().await
}

/// A dead waiter blocks neither side once its score has passed.
#[apply(clause!)]
#[over(redissons_fair, Both)]
async fn a_dead_waiter_holds_nobody_up(pair: Pair) -> Result<()> {
    /// In milliseconds: long enough for the next one to be seen behind it.
    const ALIVE: u64 = 6000;
    let [mut holder, mut next] = [pair.first(), pair.second()];
    holder.take().await?;
    pair.redis().stand(&pair.name, ALIVE).await?;
    let waiting = next.waits().await?;
    pair.until_queue(2).await?;
    holder.release().await?;
    waiting.comes().await?;
    next.release().await
}

/// A killed Java waiter (`kill -9`) blocks ours only until its own wait limit has passed, which is minutes: the test
/// moves that forward. (A thread of Redisson 3.13.6 behind it sleeps through those minutes.)
#[apply(clause!)]
#[over(redissons_fair, Once)]
async fn a_killed_java_waiter_does_not_hold_ours_up(pair: Pair) -> Result<()> {
    let [mut holder, mut next] = [pair.theirs(), pair.ours()];
    holder.take().await?;
    let java = pair.stage.start(pair.peer.library, "killed", None).await?;
    let _killed = java.tell("waits", format!("acquire {}", pair.object));
    pair.until_queue(1).await?;
    drop(java);
    let mut waiting = next.waits().await?;
    pair.until_queue(2).await?;
    holder.release().await?;
    waiting.ensure_sleeping().await?;
    pair.redis().first_is_late(&pair.name).await?;
    waiting.comes().await?;
    next.release().await
}

#[apply(clause!)]
#[over(curator, Once)]
async fn curator_sees_one_queue_of_both(pair: Pair) -> Result<()> {
    let [mut ours, mut theirs, looks] = [pair.ours(), pair.theirs(), pair.theirs()];
    ours.take().await?;
    let own = pair.zookeeper().children(&pair.name).await?.concat();
    let waiting = theirs.waits().await?;
    let queue = looks.ask("participants", "").await?;
    let (first, second) = queue.split_once(' ').context("two")?;
    ensure!(first == own && !second.contains(' '), "ours is {own}, and java sees {queue}");
    pair.lets_in(&mut ours, [waiting]).await?;
    looks.ensure_says("participants", second).await?;
    theirs.release().await
}
