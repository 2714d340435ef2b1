//! The replays: each race ends as its lesson says, again and again, and its cure as the cure says. The flaw is the twin of
//! its cure: the same actors, the same order, another strategy.

use crate::support::Servers;
use oversell::{
    ctx::Ctx,
    replay::{End, Log, Pace, Place, Replay, Steps, Terms},
};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

type Outcome = Result<(), String>;

/// How often in a row.
const TIMES: usize = 10;

/// Ten times in a row, with the cure and without it.
pub(crate) async fn ends_as_the_registry_says(servers: &Servers, replay: &'static Replay) -> Outcome {
    let site = servers.site().await;
    for cured in [false, true] {
        for n in 1..=TIMES {
            let (end, log) = play(&site.ctxs, replay, cured).await;
            if !matches!(&end, Some(End::Done(ending)) if ending.as_meant) {
                let events: Vec<_> = log.since(0).iter().map(|event| format!("{event:?}")).collect();
                return Err(format!(
                    "lesson {}, cured: {cured}, time {n}: {end:?}\n{}",
                    replay.lesson,
                    events.join("\n")
                ));
            }
        }
    }
    Ok(())
}

/// Plays it on three clients of the servers that know nothing of each other: what three instances are, without HTTP.
async fn play(ctxs: &[Arc<Ctx>], replay: &Replay, cured: bool) -> (Option<End>, Arc<Log>) {
    let log = Arc::new(Log::default());
    let places = ctxs.iter().map(|ctx| Place::Here(Ctx::clone(ctx))).collect();
    let terms = Terms { places, cured, pace: Pace::Fast, steps: Steps::default() };
    replay.run(&ctxs[0], terms, Arc::clone(&log), &CancellationToken::new()).await;
    (log.end(), log)
}
