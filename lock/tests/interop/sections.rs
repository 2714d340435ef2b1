//! A peer's threads and our tasks in sections of one lock: each reads a counter and writes one more. If two are inside
//! at once, an increment is lost, and how many were inside is recorded.

use super::support::*;
use futures::future::{try_join, try_join_all};
use oversell_lock::redis::MAX_BATCH;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

/// Our tasks, and the peer's threads.
const THREADS: usize = 4;

/// One peer process: its threads, and the sections of each.
struct PeerShare {
    peer: &'static Peer,
    kind: Kind,
    threads: usize,
    each: i64,
}

/// The result of a crowd of both sides.
struct Outcome {
    sections: i64,
    counted: i64,
    /// The most that were inside at once, counted at each entry.
    most: i64,
    /// How often ours found that the peer had been inside since.
    turns: i64,
}

impl Outcome {
    /// Never more than allowed, and sometimes as many; for a lock, no count lost and a real contest.
    fn ensure_exact(&self, pair: &Pair) -> Result<()> {
        let Self { sections, counted, most, turns } = *self;
        if let Kind::Permits { all, .. } = pair.kind {
            ensure!(most <= all.into(), "{most} were inside at once");
            ensure!(most == i64::from(all), "only {most} of {all} were inside at once");
            return Ok(());
        }
        ensure!(most == 1, "{most} were inside at once");
        ensure!(counted == sections, "{sections} sections counted {counted}");
        let rare = match pair.server {
            // One of our processes yields after a batch of hand-offs at the latest: at least one in eight sections
            // follows Java.
            Server::Redis(_) => 16 * i64::from(MAX_BATCH),
            // Among ten contenders that take turns, at least one in ten sections follows a peer's.
            Server::ZooKeeper(_) | Server::Etcd(_) => 20,
        };
        ensure!(turns * rare >= sections, "only {turns} turns in {sections} sections: hardly a contest");
        Ok(())
    }
}

/// Runs all of the peers' sections, and `each` sections in each of our tasks; the `n`-th contends as `ours` says.
async fn crowd(pair: &Pair, theirs: &[PeerShare], each: i64, ours: impl Fn(usize) -> Contender) -> Result<Outcome> {
    pair.set_permits().await?;
    pair.prepare().await?;
    let (last, turns) = (AtomicI64::new(0), AtomicI64::new(0));
    let threads = theirs.iter().flat_map(|them| (0..them.threads).map(move |_| them));
    let others = threads.map(async |PeerShare { peer, kind, each, .. }| {
        peer.count(&peer.new_thread(), format!("sections {kind} {} {each}", pair.name)).await
    });
    let tasks = (0..THREADS).map(async |n| {
        let (mut contender, mut most) = (ours(n), 0);
        for _ in 0..each {
            contender.take_in_turn().await?;
            let (before, inside) = pair.section().await?;
            most = most.max(inside);
            if last.swap(before + 1, SeqCst) != before {
                turns.fetch_add(1, SeqCst);
            }
            contender.release().await?;
        }
        Ok(most)
    });
    let (others, tasks) = try_join(try_join_all(others), try_join_all(tasks)).await?;
    let sections = theirs.iter().map(|them| them.each * them.threads as i64).sum::<i64>();
    Ok(Outcome {
        sections: sections + each * THREADS as i64,
        counted: pair.counted().await?,
        most: others.into_iter().chain(tasks).max().unwrap_or(0),
        turns: turns.into_inner(),
    })
}

fn as_many(pair: &Pair, each: i64) -> PeerShare {
    PeerShare { peer: pair.peer, kind: pair.kind, threads: THREADS, each }
}

/// Ten thousand sections in Redis; five thousand in ZooKeeper, with kazoo; eight hundred in etcd.
#[apply(clause!)]
#[over(sections, Once)]
async fn mixed_sections_do_not_overlap(pair: Pair) -> Result<()> {
    let each = match (pair.server, pair.kind) {
        (Server::Redis(_), Kind::Permits { .. }) => 250,
        (Server::Redis(_), _) => 1250,
        (Server::ZooKeeper(_), Kind::Lock) => 550,
        (Server::ZooKeeper(_) | Server::Etcd(_), _) => 100,
    };
    let mut theirs = vec![as_many(&pair, each)];
    if let (Library::Curator, Kind::Lock) = (pair.peer.library, pair.kind) {
        let (peer, _) = pair.stage.peer(Library::Kazoo);
        theirs.push(PeerShare { peer, kind: Kind::Lock, threads: 2, each: 300 });
    }
    crowd(&pair, &theirs, each, |n| pair.ours_in(n % 2)).await?.ensure_exact(&pair)?;
    if let Kind::Permits { all, .. } = pair.kind {
        pair.free_permits(all).await?;
    }
    Ok(())
}

/// The twin enters without a permit, writes as a reader, or takes an unrelated lock.
#[apply(clause!)]
#[over(sections, Once)]
async fn a_side_that_does_not_ask_is_caught(pair: Pair) -> Result<()> {
    let elsewhere = pair.again();
    let ours = |_| match (pair.server, pair.kind) {
        (_, Kind::Permits { .. }) => pair.ours().with(Kind::Nothing),
        (Server::ZooKeeper(_), Kind::Write) => pair.ours().with(Kind::Read),
        _ => elsewhere.ours(),
    };
    let outcome = crowd(&pair, &[as_many(&pair, 100)], 100, ours).await?;
    caught(outcome.ensure_exact(&pair), "inside at once")
}

/// The twin names its nodes as kazoo does, and does not see ours.
#[apply(clause!)]
#[over(kazoo, Once)]
async fn kazoo_with_its_own_names_is_caught(pair: Pair) -> Result<()> {
    let theirs = PeerShare { peer: pair.peer, kind: Kind::Stock, threads: 2, each: 100 };
    let outcome = crowd(&pair, &[theirs], 100, |_| pair.ours()).await?;
    caught(outcome.ensure_exact(&pair), "inside at once")
}
