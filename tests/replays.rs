//! The replays: each race ends as its lesson says, again and again, and its cure as the cure says. The flaw is the twin of
//! its cure: the same actors, the same order, another strategy.

use crate::{
    buyers::{text, until},
    program,
    support::{Servers, ordered::in_a_lab},
};
use oversell::{
    ctx::Ctx,
    lab::{Lab, Options, Part},
    redis_at::redis_at,
    replay::{self, End, Log, Pace, Place, Race, ReplayEvent, Steps, Terms},
};
use reqwest::{Client, StatusCode};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};
use tokio_util::sync::CancellationToken;

type Outcome = Result<(), String>;

/// How often in a row: ten times where `OVERSELL_SOAK` is set.
pub(crate) fn times() -> usize {
    if std::env::var_os("OVERSELL_SOAK").is_some() {
        10
    } else {
        2
    }
}

/// Again and again, with the cure and without it.
pub(crate) async fn ends_as_the_registry_says(servers: &Servers, race: &'static Race) -> Outcome {
    let site = servers.site().await;
    for cured in [false, true] {
        for n in 1..=times() {
            let (end, log) = play(&site.ctxs, race, cured).await;
            if !matches!(&end, Some(End::Done(ending)) if ending.as_meant) {
                let events: Vec<_> = log
                    .since(0)
                    .iter()
                    .map(|event| format!("{event:?}"))
                    .collect();
                return Err(format!(
                    "lesson {}, cured: {cured}, time {n}: {end:?}\n{}",
                    race.lesson,
                    events.join("\n")
                ));
            }
        }
    }
    Ok(())
}

/// Those that stop processes and servers, and the pause of a holder, which stops a process where a lab takes orders: in a lab
/// as a teacher starts it, over HTTP. The cure is played right after the flaw, in the same lab.
pub(crate) async fn what_breaks_something_ends_as_the_registry_says_in_a_lab() -> Outcome {
    in_a_lab(&["--replica", "--redis-ports=0,0,0,0,0"], async |at| {
        for race in
            replay::races().filter(|race| race.breaks_something() || race.lesson == "003.pause")
        {
            for cured in [false, true] {
                let events = over_http(&at.instances[0].url, race.lesson, cured).await?;
                if !events.contains("\"as_meant\":true") {
                    return Err(format!("lesson {}, cured: {cured}: {events}", race.lesson));
                }
            }
        }
        Ok(())
    })
    .await
}

/// Every event of a replay, to its end.
async fn over_http(at: &str, lesson: &str, cured: bool) -> Result<String, String> {
    let client = reqwest::Client::new();
    let started = client
        .post(format!("{at}/replays/{lesson}?cured={cured}&pace=fast"))
        .send()
        .await
        .map_err(text)?;
    let started: serde_json::Value = started.json().await.map_err(text)?;
    let events = started["events"]
        .as_str()
        .ok_or_else(|| format!("lesson {lesson}: {started}"))?;
    client
        .get(format!("{at}{events}"))
        .send()
        .await
        .map_err(text)?
        .text()
        .await
        .map_err(text)
}

/// Plays it on three clients of the servers that know nothing of each other: what three instances are, without HTTP.
async fn play(ctxs: &[Arc<Ctx>], race: &Race, cured: bool) -> (Option<End>, Arc<Log>) {
    let log = Arc::new(Log::default());
    let places = ctxs
        .iter()
        .map(|ctx| Place::Here(Ctx::clone(ctx)))
        .collect();
    let terms = Terms {
        places,
        pace: Pace::Fast,
        steps: Steps::default(),
    };
    race.script(cured)
        .play(&ctxs[0], terms, Arc::clone(&log), &CancellationToken::new())
        .await;
    (log.end(), log)
}

/// Over three instances behind nginx: each actor is on an instance of its own; whoever comes late sees all of it; a second
/// replay is refused meanwhile; one that is cancelled gives back what its actors hold.
pub(crate) async fn a_replay_goes_step_by_step_over_three_instances_and_is_cancelled() -> Outcome {
    let without = vec![Part::MySql, Part::ZooKeeper];
    let lab = Lab::start(Options {
        without,
        redis_ports: vec![0],
        ..program()
    })
    .await
    .map_err(text)?;
    let done = over_three_instances(&lab.addresses().http, &lab.addresses().redis[0].url).await;
    lab.stop().await;
    done
}

async fn over_three_instances(http: &str, redis: &str) -> Outcome {
    let client = Client::new();
    let post = async |path: &str| {
        client
            .post(format!("{http}{path}"))
            .send()
            .await
            .map_err(text)
    };
    let (id, first) = start(&client, http, "slow").await?;
    let refused = post("/replays/2.2").await?;
    if refused.status() != StatusCode::CONFLICT {
        return Err(format!(
            "a second replay at the same time: {}",
            refused.status()
        ));
    }
    let seen = first.text().await.map_err(text)?;
    let late = client
        .get(format!("{http}/replays/{id}/events"))
        .send()
        .await
        .map_err(text)?;
    if late.text().await.map_err(text)? != seen {
        return Err("whoever comes late sees something else".into());
    }
    if !seen.contains("\"as_meant\":true") {
        return Err(format!("it has not ended as it must:\n{seen}"));
    }
    let events = seen
        .lines()
        .filter_map(|line| serde_json::from_str::<ReplayEvent>(line.strip_prefix("data: ")?).ok());
    let on: BTreeSet<_> = events
        .filter(|event| event.event == "start")
        .filter_map(|event| event.instance)
        .collect();
    if on.len() != 3 {
        return Err(format!("its actors were on {on:?}"));
    }

    let (id, mut watched) = start(&client, http, "step").await?;
    post(&format!("/replays/{id}/step")).await?;
    // Nobody asks for the next step: A stands still, with its lock.
    let mut seen = String::new();
    while !seen.contains("\"held\"") {
        let more = watched.chunk().await.map_err(text)?.ok_or("it has ended")?;
        seen.push_str(&String::from_utf8_lossy(&more));
    }
    let redis = redis_at(redis).await.map_err(text)?;
    let locks = || {
        let mut redis = redis.clone();
        async move {
            redis::cmd("KEYS")
                .arg("lock:*")
                .query_async::<Vec<String>>(&mut redis)
                .await
                .map_err(text)
        }
    };
    if locks().await?.len() != 1 {
        return Err("A has no lock".into());
    }
    client
        .delete(format!("{http}/replays/{id}"))
        .send()
        .await
        .map_err(text)?;
    let rest = watched.text().await.map_err(text)?;
    if !rest.contains("event: failed") || !rest.contains("cancelled") {
        return Err(format!("it does not say that it was cancelled: {rest}"));
    }
    until("its actors have given back what they held", || async {
        Ok(locks().await?.is_empty())
    })
    .await
}

/// Starts the replay of 2.2, and watches it.
async fn start(
    client: &Client,
    http: &str,
    pace: &str,
) -> Result<(String, reqwest::Response), String> {
    let started = client
        .post(format!("{http}/replays/2.2?pace={pace}"))
        .send()
        .await
        .map_err(text)?;
    let started: Value = started.json().await.map_err(text)?;
    let id = started["id"]
        .as_str()
        .ok_or_else(|| format!("not started: {started}"))?
        .to_owned();
    let watched = client
        .get(format!("{http}/replays/{id}/events"))
        .send()
        .await
        .map_err(text)?;
    Ok((id, watched))
}
