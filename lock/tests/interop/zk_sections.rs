//! Threads of theirs and tasks of ours in sections of one lock: each reads a counter, then writes one more. Where two are
//! inside at once, an increment is lost; and each who is inside has a node in a directory, so it is seen who else is.

use super::{
    peer::Peer,
    support::{SOON, Verdict, ensure, says},
    zk_sides::ZkSides,
};
use futures::future::{try_join, try_join_all};
use oversell_lock::Lock;
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering::SeqCst},
};
use zookeeper_client::{Acls, Client, CreateMode, CreateOptions, Error};

/// Tasks of ours, in two processes, and threads of Curator's.
pub(crate) const THREADS: usize = 4;

const INSIDE: CreateOptions<'static> =
    CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());

/// What one other process does: so many threads, and as many sections in each.
pub(crate) struct Theirs<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) kind: &'a str,
    pub(crate) threads: usize,
    pub(crate) each: i64,
    /// How many leases there are, where the kind has such.
    pub(crate) leases: Option<u32>,
}

/// How a crowd of all sides came out.
#[derive(Debug)]
pub(crate) struct Outcome {
    sections: i64,
    counted: i64,
    /// The most that were inside at once, as each sees it when it comes in.
    pub(crate) most: usize,
    /// How often one of ours found that others had been inside since the last of ours.
    turns: i64,
}

impl Outcome {
    /// No overlap, none lost, and all sides were there at the same time.
    pub(crate) fn exact(&self) -> Verdict {
        let Self {
            sections,
            counted,
            most,
            turns,
        } = *self;
        ensure(most == 1, || format!("{most} were inside at once"))?;
        ensure(counted == sections, || {
            format!("{sections} sections counted {counted}")
        })?;
        // Among ten contenders who take turns, one in ten finds others even where all of ours stand side by side.
        ensure(turns * 20 >= sections, || {
            format!("only {turns} turns in {sections} sections: hardly a contest")
        })
    }

    /// That the twin is caught by what [`exact`](Self::exact) asks for.
    pub(crate) fn caught(&self) -> Verdict {
        match self.exact() {
            Err(caught) if caught.contains("inside at once") => Ok(()),
            other => Err(format!("the twin came to {other:?}")),
        }
    }
}

/// All of theirs, and `each` sections in each task of ours. `enter` comes in for one of ours, and what it gives is given
/// back by `leave`.
pub(crate) async fn crowd<T, E, L>(
    sides: &ZkSides,
    name: &str,
    theirs: &[Theirs<'_>],
    each: i64,
    enter: impl Fn(usize) -> E,
    leave: impl Fn(T) -> L,
) -> Result<Outcome, String>
where
    E: Future<Output = Result<T, String>>,
    L: Future<Output = Verdict>,
{
    sides.prepare(name).await?;
    let (last, turns) = (AtomicI64::new(0), AtomicI64::new(0));
    let others = theirs
        .iter()
        .flat_map(|them| (0..them.threads).map(move |n| (them, n)));
    let others = others.map(
        async |(
            Theirs {
                peer,
                kind,
                each,
                leases,
                ..
            },
            n,
        )| {
            let leases = leases
                .map(|leases| format!(" {leases}"))
                .unwrap_or_default();
            let most = peer
                .ask_long(
                    &format!("thread{n}"),
                    format!("sections {kind} {name} {each}{leases}"),
                )
                .await?;
            most.parse::<usize>().map_err(|e| format!("{most}: {e}"))
        },
    );
    let outside = sides.outside().await;
    let ours = (0..THREADS).map(async |n| {
        let mut most = 0;
        for _ in 0..each {
            let had = enter(n).await?;
            let (before, inside) = section(&outside, name).await.map_err(|e| e.to_string())?;
            most = most.max(inside);
            if last.swap(before + 1, SeqCst) != before {
                turns.fetch_add(1, SeqCst);
            }
            leave(had).await?;
        }
        Ok(most)
    });
    let (others, ours) = try_join(try_join_all(others), try_join_all(ours)).await?;
    let counted = count(&outside, name).await.map_err(|e| e.to_string())?;
    let most = others.into_iter().chain(ours).max().unwrap_or(0);
    let of_theirs = theirs
        .iter()
        .map(|them| them.each * them.threads as i64)
        .sum::<i64>();
    Ok(Outcome {
        sections: of_theirs + each * THREADS as i64,
        counted,
        most,
        turns: turns.into_inner(),
    })
}

/// The count before, and how many were inside.
async fn section(outside: &Client, name: &str) -> Result<(i64, usize), Error> {
    let node = format!("{name}-inside/in-");
    let (_, sequence) = outside.create(&node, &[], &INSIDE).await?;
    let inside = outside
        .list_children(&format!("{name}-inside"))
        .await?
        .len();
    let before = count(outside, name).await?;
    outside
        .set_data(
            &format!("{name}-counter"),
            (before + 1).to_string().as_bytes(),
            None,
        )
        .await?;
    outside.delete(&format!("{node}{sequence}"), None).await?;
    Ok((before, inside))
}

async fn count(outside: &Client, name: &str) -> Result<i64, Error> {
    let (data, _) = outside.get_data(&format!("{name}-counter")).await?;
    Ok(str::from_utf8(&data)
        .ok()
        .and_then(|text| text.parse().ok())
        .expect("a decimal number"))
}

/// A crowd in which `lock` is what one of ours takes.
pub(crate) async fn contest<L: Lock>(
    sides: &ZkSides,
    name: &str,
    theirs: &[Theirs<'_>],
    each: i64,
    lock: impl Fn(usize) -> L,
) -> Result<Outcome, String> {
    let locks: Vec<L> = (0..THREADS).map(lock).collect();
    let enter = |n: usize| {
        let lock = &locks[n];
        async move { says("a turn", lock.acquire(SOON).await) }
    };
    crowd(sides, name, theirs, each, enter, async |guard| {
        says("release", guard.release().await)
    })
    .await
}

fn curator<'a>(sides: &'a ZkSides, kind: &'a str, each: i64) -> Theirs<'a> {
    Theirs {
        peer: &sides.curator,
        kind,
        threads: THREADS,
        each,
        leases: None,
    }
}

/// Half of them Curator's, half ours; `lock` is what one of ours takes.
pub(crate) async fn with_curator<L: Lock>(
    sides: &ZkSides,
    kind: &str,
    name: &str,
    each: i64,
    lock: impl Fn(usize) -> L,
) -> Result<Outcome, String> {
    contest(sides, name, &[curator(sides, kind, each)], each, lock).await
}

pub(crate) async fn five_thousand_mixed_sections_do_not_overlap(sides: Arc<ZkSides>) -> Verdict {
    let (name, processes) = (sides.name(), [sides.ours().await?, sides.ours().await?]);
    let kazoo = Theirs {
        peer: &sides.kazoo,
        kind: "mutex",
        threads: 2,
        each: 300,
        leases: None,
    };
    let theirs = [curator(&sides, "mutex", 550), kazoo];
    let outcome = contest(&sides, &name, &theirs, 550, |n| {
        processes[n % 2].lock(&name)
    })
    .await?;
    ensure(outcome.sections == 5000, || {
        format!("{} sections", outcome.sections)
    })?;
    outcome.exact()?;
    sides.until_there(&name, 0).await
}

/// The twin takes a lock that the others know nothing of.
pub(crate) async fn a_side_that_takes_another_lock_is_caught(sides: Arc<ZkSides>) -> Verdict {
    let (name, process) = (sides.name(), sides.ours().await?);
    let own = format!("{name}-own");
    with_curator(&sides, "mutex", &name, 50, |_| process.lock(&own))
        .await?
        .caught()
}

/// The twin calls its nodes as kazoo does, and does not see ours.
pub(crate) async fn kazoo_with_its_own_names_is_caught(sides: Arc<ZkSides>) -> Verdict {
    let (name, process) = (sides.name(), sides.ours().await?);
    let kazoo = Theirs {
        peer: &sides.kazoo,
        kind: "stock",
        threads: 2,
        each: 100,
        leases: None,
    };
    contest(&sides, &name, &[kazoo], 100, |_| process.lock(&name))
        .await?
        .caught()
}
