//! Rounds of a double barrier in ZooKeeper: members that come late or for the next round, and an old `ready`.

use crate::{
    support::*,
    zookeeper::double_barrier::{LEAVE, Leave, TWO, enter_together, leave_together},
    zookeeper::wire::{GET_DATA, MULTI, Wire},
    zookeeper::*,
};
use futures::FutureExt;
use std::num::NonZeroU32;
use zookeeper_client::{CreateMode, Error};

/// All members of a round died, and what they left lets nobody in.
#[apply(test!)]
async fn an_old_ready_lets_nobody_in(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let client = connected(&process).await?;
    directory(&client, &name).await?;
    make(&client, &format!("{name}/ready"), CreateMode::Persistent).await?;
    let barrier = process.client.double_barrier(&name, TWO);
    ensure_timed_out("alone", barrier.enter(SHORT).await)?;
    leave_together(&barrier, enter_together::<2>(&barrier).await?).await
}

/// Two are in, and somebody deleted `ready`, as a leaving Java member does: the next one is let in beside them, with a
/// few requests, not thousands.
#[apply(test!)]
async fn a_member_that_comes_while_others_are_in_needs_no_ready(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let wire = Wire::to(zookeeper.address()).await;
    let late = zookeeper.process_with(&wire.address(), LONG_SESSION).await;
    let barrier = process.client.double_barrier(&name, TWO);
    let [one, two] = enter_together(&barrier).await?;
    zookeeper.delete(&format!("{name}/ready")).await?;
    let before = wire.requests();
    let entered = timeout(SOON * 2, late.client.double_barrier(&name, TWO).enter(SOON)).await;
    let three = entered.context("an enter had no end")?.context("three")?;
    let asked = wire.requests() - before;
    ensure!(asked < 30, "asked {asked} times");
    leave_together(&barrier, [one, two, three]).await
}

/// A waiter for the next round is not inside: the last member of this round leaves without it.
#[apply(test!)]
async fn a_waiter_for_the_next_round_holds_up_nobody(zookeeper: &ZooKeeper) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let client = connected(&process).await?;
    let barrier = process.client.double_barrier(&name, TWO);
    let inside = enter_together::<2>(&barrier).await?;
    // A member that has come, but not yet looked.
    let newcomer = format!("{name}/{}", uuid::Uuid::new_v4());
    make(&client, &newcomer, CreateMode::Ephemeral).await?;
    leave_together(&barrier, inside).await?;
    Ok(client.delete(&newcomer, None).await?)
}

/// The last member sees itself alone, and before it leaves another comes in beside it: it leaves only after that one.
async fn waits_for_one_that_comes_meanwhile(zookeeper: &ZooKeeper, leave: Leave) -> Result {
    let (name, process) = (name(), zookeeper.client().await);
    let wire = Wire::to(zookeeper.address()).await;
    let leaver = zookeeper.process_with(&wire.address(), LONG_SESSION).await;
    let theirs = leaver.client.double_barrier(&name, NonZeroU32::MIN);
    let barrier = process.client.double_barrier(&name, NonZeroU32::MIN);
    let last = theirs.enter(SOON).await?;
    wire.close_to(MULTI);
    let mut leaving = tokio::spawn(leave(theirs, leaver.client.clone(), last));
    wire.holds().await?;
    let late = barrier.enter(SOON).await.context("beside the last")?;
    let before = wire.asked(GET_DATA);
    wire.open();
    let watches = async || wire.asked(GET_DATA) > before;
    beside(&mut leaving, until("it watches the late one", watches)).await?;
    barrier.leave(&late, SOON).await?;
    leaving.await??;
    zookeeper.gone(&name).await
}

#[apply(test!)]
async fn the_last_one_waits_for_one_that_comes_while_it_leaves(zookeeper: &ZooKeeper) -> Result {
    waits_for_one_that_comes_meanwhile(zookeeper, LEAVE).await
}

/// The twin relies on its count.
#[apply(test!)]
async fn a_last_one_that_does_not_count_again_is_caught(zookeeper: &ZooKeeper) -> Result {
    let twin: Leave = |barrier, client, member| {
        async move {
            let (session, name) = (client.session()?, barrier.name());
            let mut both = session.new_multi_writer();
            for node in [member.as_str(), "ready"] {
                let path = format!("{name}/{node}");
                both.add_delete(&path, None).map_err(broken)?;
            }
            both.commit().await.map_err(|e| broken(Error::from(e)))?;
            // The real barrier looks for members that came meanwhile.
            Ok(())
        }
        .boxed()
    };
    let verdict = waits_for_one_that_comes_meanwhile(zookeeper, twin).await;
    caught(verdict, "it did not wait")
}

/// The last request is carried out, and its answer is lost with the connection.
#[apply(test!)]
async fn a_last_leave_without_an_answer_is_a_leave(zookeeper: &ZooKeeper) -> Result {
    let (name, mute) = (name(), Mute::to(zookeeper.address())?);
    let wire = Wire::to(mute.address()).await;
    let client = patient(wire.address()).await?;
    let barrier = client.double_barrier(&name, NonZeroU32::MIN);
    let member = barrier.enter(SOON).await?;
    wire.close_to(MULTI);
    let leaving = tokio::spawn(async move { barrier.leave(&member, SOON).await });
    wire.holds().await?;
    mute.mute();
    wire.open();
    zookeeper.gone(&name).await?;
    mute.heal();
    leaving.await?.context("it has left")
}
