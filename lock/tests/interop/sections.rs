//! Java threads and tasks of ours in sections of one lock: each reads a counter, then writes one more. Where two are
//! inside at once, an increment is lost, and a gauge beside it says how many there were.

use super::{
    exclusion::Kind,
    support::{SOON, Sides, Verdict, ensure, says},
};
use futures::future::{try_join, try_join_all};
use oversell_lock::{Lock, redis::BATCH};
use redis::{AsyncCommands, RedisError};
use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering::SeqCst},
};

/// Of each side: Java threads, tasks of ours.
const THREADS: usize = 4;

/// How a crowd of both sides came out.
pub(crate) struct Outcome {
    sections: i64,
    counted: i64,
    /// The most that were inside at once, as each sees it when it comes in.
    pub(crate) most: i64,
    /// How often one of ours found that Java had been inside since the last of ours.
    turns: i64,
}

impl Outcome {
    /// No overlap, none lost, and both sides were there at the same time.
    fn exact(&self) -> Verdict {
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
        // A process of ours lets the others come in after a batch of hand-overs at the latest: one in eight finds Java.
        ensure(turns * i64::from(BATCH) * 16 >= sections, || {
            format!("only {turns} turns in {sections} sections: hardly a contest")
        })
    }
}

/// So many sections on each side. `enter` comes in for one of ours, and what it gives is dropped or given back by `leave`.
pub(crate) async fn crowd<T, E, L>(
    sides: &Sides,
    kind: &str,
    name: &str,
    each: i64,
    enter: impl Fn(usize) -> E,
    leave: impl Fn(T) -> L,
) -> Result<Outcome, String>
where
    E: Future<Output = Result<T, String>>,
    L: Future<Output = Verdict>,
{
    let times = each / i64::try_from(THREADS).unwrap_or(1);
    let (last, turns) = (AtomicI64::new(0), AtomicI64::new(0));
    let java = (0..THREADS).map(async |n| {
        let most = sides
            .java
            .ask_long(
                &format!("java{n}"),
                format!("sections {kind} {name} {times}"),
            )
            .await?;
        most.parse::<i64>().map_err(|e| format!("{most}: {e}"))
    });
    let ours = (0..THREADS).map(async |n| {
        let (mut redis, mut most) = (sides.outside().await, 0);
        for _ in 0..times {
            let had = enter(n).await?;
            let section = async {
                most = most.max(redis.incr(format!("{name}:inside"), 1).await?);
                let before = redis
                    .get::<_, Option<i64>>(format!("{name}:counter"))
                    .await?
                    .unwrap_or(0);
                redis
                    .set::<_, _, ()>(format!("{name}:counter"), before + 1)
                    .await?;
                if last.swap(before + 1, SeqCst) != before {
                    turns.fetch_add(1, SeqCst);
                }
                redis.decr::<_, _, i64>(format!("{name}:inside"), 1).await
            };
            section.await.map_err(|e: RedisError| e.to_string())?;
            leave(had).await?;
        }
        Ok(most)
    });
    let (java, ours) = try_join(try_join_all(java), try_join_all(ours)).await?;
    let counted = sides
        .outside()
        .await
        .get(format!("{name}:counter"))
        .await
        .map_err(|e| e.to_string())?;
    let most = java.into_iter().chain(ours).max().unwrap_or(0);
    Ok(Outcome {
        sections: 2 * each,
        counted,
        most,
        turns: turns.into_inner(),
    })
}

/// Half of them Java's, half ours; `lock` is what one of ours takes.
async fn contest<L: Lock>(
    sides: &Sides,
    kind: &str,
    name: &str,
    sections: i64,
    lock: impl Fn(usize) -> L,
) -> Result<Outcome, String> {
    let locks: Vec<L> = (0..THREADS).map(lock).collect();
    let enter = |n: usize| {
        let lock = &locks[n];
        async move { says("a turn", lock.acquire(SOON).await) }
    };
    crowd(sides, kind, name, sections / 2, enter, async |guard| {
        says("release", guard.release().await)
    })
    .await
}

pub(crate) async fn ten_thousand_mixed_sections_do_not_overlap<K: Kind>(
    sides: Arc<Sides>,
) -> Verdict {
    let (name, process) = (sides.name(), sides.ours());
    let outcome = contest(&sides, K::JAVA, &name, 10_000, |_| K::lock(&process, &name)).await?;
    outcome.exact()?;
    sides
        .until_left(
            &name,
            &[&format!("{name}:counter"), &format!("{name}:inside")],
        )
        .await
}

/// The twin takes a lock that Java knows nothing of.
pub(crate) async fn a_side_that_takes_another_lock_is_caught<K: Kind>(
    sides: Arc<Sides>,
) -> Verdict {
    let (name, process) = (sides.name(), sides.ours());
    let outcome = contest(&sides, K::JAVA, &name, 400, |_| {
        K::lock(&process, &format!("{name}:own"))
    })
    .await?;
    match outcome.exact() {
        Err(caught) if caught.contains("inside at once") => Ok(()),
        other => Err(format!("the twin came to {other:?}")),
    }
}
