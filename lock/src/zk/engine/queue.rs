//! The queue that Curator's recipes share: numbered nodes in one directory, and a rule that says for whom each waits.
//!
//! 1. Make an ephemeral sequential node.
//! 2. Where another waiter of this process is before us, wait until its turn has come: ours is not before that, and the
//!    server is not asked in between.
//! 3. Find the nodes before ours: list the directory, unless that was done since our node was made. One listing serves all
//!    of this process who came before it.
//! 4. Where the rule finds no node before ours, and our own node is there, it is our turn.
//! 5. Where the nearest one that we wait for is this process's own, its [`LineMember`](super::directory::LineMember) tells us that it has
//!    gone: the server is not asked. Its deletion has asked whether our node is there, in one transaction. Back to 4.
//! 6. Otherwise watch it, and no other: with a watch on the directory every hand-off would wake every waiter (the herd
//!    effect). When the watch fires, go back to 4, with one request for our own node and the few that may have gone
//!    meanwhile. That it fired does not mean that it is our turn: the one before us may have given up waiting, and the one
//!    before *it* still be inside.
//!
//! One listing serves for so long (`directory.rs` says why), but for one exception: a writer that reads leaves a reader at its own
//! number; a rule that this concerns lists again ([`Recipe::lists_again`]).
//!
//! So order of service is the order of the numbers over all processes, and a section costs two requests (a node is made and
//! deleted) where the one before was this process's, and two more where it was not, however many wait.
//!
//! What it survives: a contender that dies (its session ends, and its node with it), a lost connection, a server
//! restart, the directory or nodes in it being deleted. **What breaks it**: a holder that is paused beyond its session;
//! 2^31 nodes in one directory, where the server's numbers wrap around to below all others: a request that gets such a number is refused.
//! Where somebody deletes a holder's node by hand, waiters of other processes come in beside it, and those of its own wait on.
//!
//! Next to read: `directory.rs`.

use super::{
    Wait,
    directory::{Directory, Key, MAX_CHECKS, Place, Predecessor, Stage, WaitsFor, list},
    failed, insist,
    node::Node,
    over,
    request::ask,
    session::Session,
    unless, valid,
};
use crate::{Fence, Holder, LockError, registry::Registry, zk::ZkClient};
use std::{collections::BTreeSet, sync::Arc};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout, timeout_at},
};
use zookeeper_client::{Error, EventType};

/// What makes a recipe out of the queue.
#[derive(Debug)]
pub(in crate::zk) struct Recipe {
    /// Ends the fixed part of a node's name, as `lock-`; the number follows.
    pub(in crate::zk) marker: &'static str,
    /// The markers of all that stand in the same queue.
    pub(in crate::zk) markers: &'static [&'static str],
    pub(in crate::zk) waits_for: WaitsFor,
    /// Whether a node that goes may have left another one at its place.
    pub(in crate::zk) lists_again: bool,
    /// Whether several may hold it together.
    pub(in crate::zk) shared: bool,
}

/// A contender whose turn it is.
#[derive(Debug)]
pub(in crate::zk) struct FencedNode {
    pub(in crate::zk) node: Node,
    pub(in crate::zk) fence: Fence,
}

enum Attempt {
    First(FencedNode),
    /// The wait was over first; the node is deleted.
    Late,
    /// Somebody deleted our node.
    Gone,
    /// The server's numbers have wrapped around.
    UsedUp,
}

/// Waits for its turn in the queue of `directory`.
///
/// # Errors
///
/// [`LockError::Taken`], [`LockError::Unavailable`], [`LockError::Invalid`].
///
/// # Cancel safety
///
/// Safe: the node is deleted in the background.
pub(in crate::zk) async fn turn(
    zk: &ZkClient,
    recipe: &Recipe,
    directory: &str,
    wait: Wait,
) -> Result<FencedNode, LockError> {
    valid(directory)?;
    loop {
        let session = zk.connected(wait.end).await?;
        let directories = session.shared.of::<Registry<Key, Directory>>();
        let key = (directory.to_owned(), recipe.markers);
        let directory_state =
            directories.of(&key, |registration| Directory::new(&key, registration));
        match zk
            .answered(wait, attempt(session, &directory_state, recipe, wait))
            .await?
        {
            Ok(Attempt::First(turn)) => return Ok(turn),
            Ok(Attempt::Gone) if Instant::now() < wait.end => {
                tracing::debug!(directory, "our node was deleted: queueing again");
            }
            Ok(Attempt::Gone | Attempt::Late) => return Err(zk.late(wait, directory)),
            Ok(Attempt::UsedUp) => {
                let rule =
                    "its directory's numbers are used up: it must be deleted when nobody uses it";
                return Err(LockError::invalid(directory, rule));
            }
            Err(error) if over(&error) => tracing::debug!(%error, directory, "queueing again"),
            Err(error) => return Err(failed(error)),
        }
    }
}

/// One try, in one session.
async fn attempt(
    session: Arc<Session>,
    directory: &Arc<Directory>,
    recipe: &Recipe,
    wait: Wait,
) -> Result<Attempt, Error> {
    let mut node = Node::sequential(session.clone(), &directory.root, recipe.marker);
    let fence = node.create().await?;
    let own = Place::of(node.name(), recipe.markers);
    if !own.is_sound() {
        return Ok(Attempt::UsedUp);
    }
    node.join_line(directory.join(&own));
    let waiter = QueueWaiter {
        session,
        directory,
        recipe,
        own,
        end: wait.end,
    };
    match waiter.wait_for_turn().await? {
        WaitEnd::First => {
            node.enter();
            Ok(Attempt::First(FencedNode { node, fence }))
        }
        WaitEnd::Late => {
            timeout(waiter.session.timeout, node.delete(None))
                .await
                .ok();
            Ok(Attempt::Late)
        }
        WaitEnd::Gone => Ok(Attempt::Gone),
    }
}

/// What a wait in the queue comes to.
enum WaitEnd {
    First,
    Late,
    Gone,
}

/// A contender whose node is in the queue.
struct QueueWaiter<'a> {
    session: Arc<Session>,
    directory: &'a Directory,
    recipe: &'a Recipe,
    own: Place,
    end: Instant,
}

impl QueueWaiter<'_> {
    async fn wait_for_turn(&self) -> Result<WaitEnd, Error> {
        let (directory, own) = (self.directory, &self.own);
        let mut since = Instant::now();
        // Whether our node was there at the last look, or at a later time.
        let mut seen = false;
        loop {
            if let Some(mut before) = directory.waits_before(own, self.recipe.waits_for) {
                if !self.wait_for_news(&mut before).await? {
                    return Ok(WaitEnd::Late);
                }
                seen = false;
                continue;
            }
            seen |= directory.list_after(since, &self.session).await?;
            match directory.before(own, self.recipe.waits_for) {
                None => return Ok(WaitEnd::Gone),
                Some(Predecessor::Nobody) => {
                    if !seen && !self.look(&[]).await? {
                        return Ok(WaitEnd::Gone);
                    }
                    directory.forget_before(own, self.recipe.waits_for);
                    return Ok(WaitEnd::First);
                }
                Some(Predecessor::Own(mut before)) => {
                    if !self.wait_for_news(&mut before).await? {
                        return Ok(WaitEnd::Late);
                    }
                    seen = matches!(&*before.borrow(), Stage::Gone { seen: Some(next) } if next == own);
                    if self.recipe.lists_again {
                        since = Instant::now();
                    }
                }
                Some(Predecessor::Others(others)) => {
                    // Whatever comes now comes after the last look, and our node may have gone since.
                    seen = false;
                    match self.watch(&others[0]).await? {
                        None => return Ok(WaitEnd::Late),
                        Some(false) => continue,
                        Some(true) => directory.gone([&others[0]]),
                    }
                    if self.recipe.lists_again || others.len() > MAX_CHECKS {
                        since = Instant::now();
                    } else if self.look(&others[1..]).await? {
                        seen = true;
                    } else {
                        return Ok(WaitEnd::Gone);
                    }
                }
            }
        }
    }

    /// Waits for news of one of this process; `false` where the wait was over first.
    async fn wait_for_news(&self, before: &mut watch::Receiver<Stage>) -> Result<bool, Error> {
        tokio::select! {
            biased;
            _ = before.changed() => Ok(true),
            () = self.session.over.cancelled() => Err(Error::SessionExpired),
            () = sleep_until(self.end) => Ok(false),
        }
    }

    /// Watches one of another process, and says whether it has gone; nothing where the wait was over first.
    async fn watch(&self, other: &Place) -> Result<Option<bool>, Error> {
        // Not `exists`: that leaves a watch behind where the node has gone meanwhile.
        let path = self.directory.path(other);
        match insist(|| self.session.get_and_watch_data(&path)).await {
            Ok((_, _, watch)) => {
                let event = timeout_at(self.end, watch.changed()).await.ok();
                Ok(event.map(|event| event.event_type == EventType::NodeDeleted))
            }
            Err(Error::NoNode) => Ok(Some(true)),
            Err(error) => Err(error),
        }
    }

    /// Forgets those of `others` that have gone; `false` where our own node has.
    async fn look(&self, others: &[Place]) -> Result<bool, Error> {
        let places = others.iter().chain([&self.own]);
        let paths: Vec<_> = places.map(|place| self.directory.path(place)).collect();
        let there = self.session.stats(&paths).await?;
        let gone = others
            .iter()
            .zip(&there)
            .filter(|(_, there)| there.is_none());
        self.directory.gone(gone.map(|(place, _)| place));
        Ok(there.last().is_some_and(Option::is_some))
    }
}

/// Whose turn it is in a directory's queue, or was a moment ago.
pub(in crate::zk) async fn first(
    session: &Session,
    directory: &str,
    markers: &[&str],
) -> Result<Option<String>, Error> {
    Ok(list(session, directory)
        .await?
        .into_iter()
        .min_by_key(|name| Place::of(name, markers)))
}

/// The same, with what stands in the node.
pub(in crate::zk) async fn holder(
    zk: &ZkClient,
    directory: &str,
    markers: &[&str],
) -> Result<Option<Holder>, LockError> {
    ask(zk, directory, |session| async move {
        while let Some(name) = first(&session, directory, markers).await? {
            let data = session.get_data(&format!("{directory}/{name}")).await;
            if let Some((data, _)) = unless(&[Error::NoNode], data)? {
                let id = format!("{name} {}", String::from_utf8_lossy(&data))
                    .trim_end()
                    .to_owned();
                return Ok(Some(Holder {
                    id,
                    remaining: None,
                }));
            }
        }
        Ok(None)
    })
    .await
}

/// Deletes the nodes of those who hold it, whoever they are; whether there were any.
pub(in crate::zk) async fn force_unlock(
    zk: &ZkClient,
    recipe: &Recipe,
    directory: &str,
) -> Result<bool, LockError> {
    // Not listed again after a lost answer: the next holder would go too.
    let names = ask(zk, directory, |session| async move {
        list(&session, directory).await
    })
    .await?;
    let held = holds(&names, recipe);
    for name in &held {
        ask(zk, directory, |session| async move {
            let path = format!("{directory}/{name}");
            unless(&[Error::NoNode], session.delete(&path, None).await)
        })
        .await?;
    }
    Ok(!held.is_empty())
}

/// Those who hold it by this recipe: the readers before the first writer, or all at the first number where one of them is a
/// holder alone. A writer that reads has a reader at its own number.
fn holds(names: &[String], recipe: &Recipe) -> Vec<String> {
    let places = names.iter().map(|name| Place::of(name, recipe.markers));
    let places: BTreeSet<_> = places.collect();
    let until = |number: Option<&str>| {
        let before = places
            .iter()
            .take_while(move |place| Some(&*place.number) != number);
        before.map(|place| place.name.clone()).collect::<Vec<_>>()
    };
    if recipe.shared {
        let writer = places.iter().find(|place| (recipe.waits_for)(&place.name));
        return until(writer.map(|writer| &*writer.number));
    }
    let first = places.first().map(|place| &*place.number);
    let second = places.iter().find(|place| Some(&*place.number) != first);
    let held = until(second.map(|second| &*second.number));
    let alone = held.iter().any(|name| name.contains(recipe.marker));
    if alone { held } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_hold_it_are_freed_and_nobody_behind_them() {
        const WRITE: Recipe = Recipe {
            marker: "W-",
            markers: &["R-", "W-"],
            waits_for: |_| true,
            lists_again: true,
            shared: false,
        };
        const READ: Recipe = Recipe {
            marker: "R-",
            waits_for: |name| name.contains("W-"),
            shared: true,
            ..WRITE
        };
        // What queues: whom a reader's and whom a writer's `force_unlock` frees.
        for (queue, readers, writers) in [
            ("", "", ""),
            ("b-R-1 a-R-2 c-W-3 d-R-4", "b-R-1 a-R-2", ""),
            ("b-W-1 a-R-2", "", "b-W-1"),
            ("a-R-1 b-W-1 c-R-2", "", "a-R-1 b-W-1"),
            ("c-W-1 d-R-1 a-W-2", "", "c-W-1 d-R-1"),
        ] {
            let names: Vec<_> = queue.split_whitespace().rev().map(String::from).collect();
            let freed = [READ, WRITE].map(|recipe| holds(&names, &recipe).join(" "));
            assert_eq!(freed, [readers, writers], "{queue}");
        }
    }
}
