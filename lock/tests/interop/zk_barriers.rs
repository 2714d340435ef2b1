//! `ZkBarrier`, `ZkDoubleBarrier` and Curator's `DistributedBarrier`, `DistributedDoubleBarrier`.

use super::{
    support::{SOON, Verdict, ensure, is_taken, says, until},
    zk_sides::{ZkSides, ours_sleeps_on, they_sleep_on},
};
use oversell_lock::zk::ZkDoubleBarrier;
use std::{num::NonZeroU32, sync::Arc, time::Duration};

const SHORT: Duration = Duration::from_millis(200);
const FOUR: NonZeroU32 = NonZeroU32::new(4).expect("four");

pub(crate) async fn a_barrier_of_either_holds_up_both(sides: Arc<ZkSides>) -> Verdict {
    let (java, ours, long) = (&sides.curator, sides.ours().await?, SOON.as_millis());
    // Each side closes one, and each opens one.
    for closed_by_java in [true, false] {
        let name = sides.name();
        let barrier = ours.barrier(&name);
        java.must("a", format!("barrier wait {name} {long}"), "true")
            .await?;
        says("open", barrier.wait(SHORT).await)?;
        if closed_by_java {
            java.ask("a", format!("barrier set {name}")).await?;
            ensure(!says("set", barrier.set().await)?, || {
                "ours closed what was closed".into()
            })?;
        } else {
            ensure(says("set", barrier.set().await)?, || {
                "it was closed before".into()
            })?;
            // Curator's takes a barrier that is there for its own.
            java.ask("a", format!("barrier set {name}")).await?;
        }
        is_taken(barrier.wait(SHORT).await)?;
        java.must(
            "a",
            format!("barrier wait {name} {}", SHORT.as_millis()),
            "false",
        )
        .await?;
        let our_waiter = tokio::spawn({
            let barrier = barrier.clone();
            async move { barrier.wait(SOON).await }
        });
        let mut java_waiter = java.tell("waiter", format!("barrier wait {name} {long}"));
        ours_sleeps_on(&ours, &our_waiter).await?;
        they_sleep_on(java, &mut java_waiter).await?;
        if closed_by_java {
            ensure(says("remove", barrier.remove().await)?, || {
                "ours found no barrier".into()
            })?;
        } else {
            java.ask("a", format!("barrier remove {name}")).await?;
            ensure(!says("remove", barrier.remove().await)?, || {
                "java left the barrier".into()
            })?;
        }
        let answer = java_waiter.answer().await?;
        ensure(answer == "true", || format!("java's wait came to {answer}"))?;
        says("our wait", our_waiter.await.map_err(|e| e.to_string())?)?;
    }
    Ok(())
}

/// Two Java threads and two tasks of ours; `late` is the one whom the others wait for, to come and to go.
async fn a_round(sides: &ZkSides, late_is_ours: bool) -> Verdict {
    let (name, java, ours, long) = (
        sides.name(),
        &sides.curator,
        sides.ours().await?,
        SOON.as_millis(),
    );
    let barrier = ours.double_barrier(&name, FOUR);
    let enter = |barrier: &ZkDoubleBarrier| {
        let barrier = barrier.clone();
        tokio::spawn(async move { barrier.enter(SOON).await })
    };
    let leave = |barrier: &ZkDoubleBarrier, member: String| {
        let barrier = barrier.clone();
        tokio::spawn(async move { barrier.leave(&member, SOON).await })
    };
    let (java_enters, java_leaves) = (
        format!("enter {name} 4 {long}"),
        format!("leave {name} 4 {long}"),
    );

    let ours_first = enter(&barrier);
    let mut java_first = java.tell("first", &java_enters);
    sides.until_there(&name, 2).await?;
    let (mut ours_second, mut java_second) = (None, None);
    if late_is_ours {
        java_second = Some(java.tell("second", &java_enters));
    } else {
        ours_second = Some(enter(&barrier));
    }
    sides.until_there(&name, 3).await?;
    ours_sleeps_on(&ours, &ours_first).await?;
    they_sleep_on(java, &mut java_first).await?;
    let ours_second = ours_second.unwrap_or_else(|| enter(&barrier));
    let java_second = java_second.unwrap_or_else(|| java.tell("second", &java_enters));
    for java in [java_first, java_second] {
        let answer = java.answer().await?;
        ensure(answer == "true", || {
            format!("java's enter came to {answer}")
        })?;
    }
    let first = says("ours", ours_first.await.map_err(|e| e.to_string())?)?;
    let second = says("ours", ours_second.await.map_err(|e| e.to_string())?)?;
    // The four, and `ready`.
    sides.until_there(&name, 5).await?;

    let ours_first = leave(&barrier, first);
    let mut java_first = java.tell("first", &java_leaves);
    let (mut ours_second, mut java_second) = (None, None);
    if late_is_ours {
        java_second = Some(java.tell("second", &java_leaves));
    } else {
        ours_second = Some(leave(&barrier, second.clone()));
    }
    // The late one; the first by name, where that is another; and `ready`.
    let outside = sides.outside().await;
    until("those who left are gone", || async {
        outside
            .list_children(&name)
            .await
            .is_ok_and(|members| members.len() <= 3)
    })
    .await?;
    ours_sleeps_on(&ours, &ours_first).await?;
    they_sleep_on(java, &mut java_first).await?;
    let ours_second = ours_second.unwrap_or_else(|| leave(&barrier, second));
    let java_second = java_second.unwrap_or_else(|| java.tell("second", &java_leaves));
    for java in [java_first, java_second] {
        let answer = java.answer().await?;
        ensure(answer == "true", || {
            format!("java's leave came to {answer}")
        })?;
    }
    for ours in [ours_first, ours_second] {
        says("our leave", ours.await.map_err(|e| e.to_string())?)?;
    }
    sides.until_there(&name, 0).await
}

pub(crate) async fn both_enter_and_leave_a_double_barrier_together(sides: Arc<ZkSides>) -> Verdict {
    for late_is_ours in [true, false] {
        a_round(&sides, late_is_ours).await?;
    }
    Ok(())
}

/// Ours takes its member away when its wait ends. Curator's would leave it, to be counted.
pub(crate) async fn a_member_that_gives_up_is_not_counted_by_curator(
    sides: Arc<ZkSides>,
) -> Verdict {
    let (name, java, ours) = (sides.name(), &sides.curator, sides.ours().await?);
    let barrier = ours.double_barrier(&name, FOUR);
    is_taken(barrier.enter(SHORT).await)?;
    sides.until_there(&name, 0).await?;
    let mut inside = Vec::new();
    for who in ["a", "b", "c"] {
        inside.push(java.tell(who, format!("enter {name} 4 {}", SOON.as_millis())));
    }
    sides.until_there(&name, 3).await?;
    for waiter in &mut inside {
        they_sleep_on(java, waiter).await?;
    }
    let member = says("ours", barrier.enter(SOON).await)?;
    for waiter in inside {
        let answer = waiter.answer().await?;
        ensure(answer == "true", || {
            format!("java's enter came to {answer}")
        })?;
    }
    let leaving =
        ["a", "b", "c"].map(|who| java.tell(who, format!("leave {name} 4 {}", SOON.as_millis())));
    says("our leave", barrier.leave(&member, SOON).await)?;
    for waiter in leaving {
        waiter.answer().await?;
    }
    sides.until_there(&name, 0).await
}
