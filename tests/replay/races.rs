//! Each race ends as its lesson says, every time, and so does its cure. The flaw is the twin of the cure: same actors
//! and schedule, another strategy.

use crate::support::{
    http::{answer, ask, client},
    *,
};
use oversell::{
    ctx::Ctx,
    replay::{
        self, Act, ActorHost, Log, MoveRequests, Pace, PlayOptions, Race, RaceScript, ReplayEnd, ReplayEvent, ReplayResult,
        StallPoint, Timing,
    },
};
use oversell_lab::{
    addresses::{Addresses, InstanceAddress},
    lab::{Lab, Options, Part},
};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use std::{collections::BTreeSet, path::Path, sync::Arc, time::Duration};
use tokio_util::sync::CancellationToken;

/// Races that need no lab.
fn harmless() -> impl Iterator<Item = (&'static str, &'static Race)> {
    replay::races().filter(|race| !race.needs_lab()).map(|race| (race.lessons[0], race))
}

#[apply(test!)]
#[over(harmless())]
async fn a_race_ends_as_expected_each_time(servers: &Servers, race: &'static Race) -> Result<()> {
    let site = servers.site().await;
    for cured in [false, true] {
        for n in 1..=repetitions() {
            ends_so(&site.ctxs, race.script(cured))
                .await
                .with_context(|| format!("lesson {}, cured: {cured}, time {n}", race.lessons[0]))?;
        }
    }
    Ok(())
}

pub(crate) async fn ends_so(ctxs: &[Arc<Ctx>], script: RaceScript) -> Result<()> {
    let ending = ends_with(ctxs, script).await?;
    let RaceScript { act, expected, .. } = script;
    ensure!(ending.as_meant, "{act:?} has not ended with {expected:?} but {ending:?}");
    Ok(())
}

/// Plays a script on independent clients, like instances without HTTP; returns its ending.
async fn ends_with(ctxs: &[Arc<Ctx>], script: RaceScript) -> Result<ReplayResult> {
    played(ctxs, script, Pace::Fast, Timing::default()).await
}

async fn played(ctxs: &[Arc<Ctx>], script: RaceScript, pace: Pace, timing: Timing) -> Result<ReplayResult> {
    let log = Arc::new(Log::default());
    let hosts = ctxs.iter().map(|ctx| ActorHost::Local(Ctx::clone(ctx)));
    let options = PlayOptions { hosts: hosts.collect(), pace, moves: MoveRequests::default(), timing };
    let never = CancellationToken::new();
    script.play(&ctxs[0], options, Arc::clone(&log), &never).await;
    let Some(ReplayEnd::Done(ending)) = log.end() else {
        let events = log.events_from(0).into_iter().map(|event| format!("{event:?}"));
        let events: Vec<_> = events.collect();
        bail!("{:?}: {:?}\n{}", script.act, log.end(), events.join("\n"));
    };
    Ok(ending)
}

fn race_of(flaw: &str, cured: &str) -> Result<&'static Race> {
    let does = |race: &&Race| (race.flaw.act.name(), race.cured.act.name()) == (flaw, cured);
    replay::races().find(does).context("there is no such race")
}

/// A watchdog that renews in the same millisecond does not save a lease that a race has ended.
#[apply(test!)]
async fn an_ended_lease_cannot_be_renewed(servers: &Servers) -> Result<()> {
    let end_lease = include_str!("../../src/replay/lua/end_lease.lua");
    let site = servers.site().await;
    let key = site.ctxs[0].redis_key(&format!("ended-lease-{}", site.id));
    let mut redis = site.ctxs[0].redis.connection();
    let (ended, renewed): (i64, i64) = redis::pipe()
        .cmd("SET")
        .arg(&key)
        .arg("A")
        .arg("PX")
        .arg(30_000)
        .ignore()
        .cmd("EVAL")
        .arg(end_lease)
        .arg(1)
        .arg(&key)
        .cmd("PEXPIRE")
        .arg(&key)
        .arg(30_000)
        .cmd("DEL")
        .arg(&key)
        .ignore()
        .query_async(&mut redis)
        .await?;
    ensure!((ended, renewed) == (1, 0), "{ended} ended, {renewed} renewed");
    Ok(())
}

/// Leases end by the server's clock, and the ending says so: some races here, all with `make soak`.
#[apply(test!)]
async fn a_race_ends_as_expected_by_the_clock(servers: &Servers) -> Result<()> {
    let site = servers.site().await;
    let some = [race_of("redis-setnx", "redis-setnx-ttl")?, race_of("redis-reentrant", "redis-watchdog")?];
    let all: Vec<_> = harmless().map(|(_, race)| race).collect();
    for race in if soak() { &all[..] } else { &some[..] } {
        for cured in [false, true] {
            let ending = played(&site.ctxs, race.script(cured), Pace::Clock, Timing::default()).await?;
            ensure!(ending.as_meant, "lesson {}, cured: {cured}: {ending:?}", race.lessons[0]);
        }
    }
    let [dead, long] = some;
    for (script, pace, forced) in [
        (long.script(false), Pace::Fast, Some(true)),
        (long.script(false), Pace::Clock, Some(false)),
        // No lab kills the holder here.
        (dead.script(true), Pace::Clock, Some(true)),
        (race_of("none", "single-update")?.script(false), Pace::Clock, None),
    ] {
        let ending = played(&site.ctxs, script, pace, Timing::default()).await?;
        ensure!(ending.forced == forced, "{script:?} at {pace:?}: {ending:?}");
    }
    Ok(())
}

/// With chosen times: A stands still. Beyond its lease, after its read, more is sold than is gone; before its read, or
/// within its lease, or with a renewed lease, never.
#[apply(test!)]
async fn given_times_decide_whether_a_lease_ends_too_soon(servers: &Servers) -> Result<()> {
    let site = servers.site().await;
    let race = race_of("redis-reentrant", "redis-watchdog")?;
    ensure!(race.is_timed(), "a lease ends in it");
    for (cured, at, pause_ms, lease_ms, oversells) in [
        (false, StallPoint::Read, 1_500, 500, true),
        (false, StallPoint::Read, 300, 10_000, false),
        (false, StallPoint::Locked, 1_500, 500, false),
        (true, StallPoint::Read, 1_500, 500, false),
    ] {
        let timing = Timing { at, pause: Duration::from_millis(pause_ms), lease_ms, after: Duration::from_millis(100) };
        let ending = played(&site.ctxs, race.script(cured), Pace::Timed, timing).await?;
        ensure!(ending.sold == 2 && (ending.gone < 2) == oversells, "cured: {cured}, {timing:?}: {ending:?}");
    }
    Ok(())
}

/// The twins of an expiring lease: a lock without a lease in place of the cure, and the cure in place of the flaw.
#[apply(test!)]
async fn only_a_lock_with_a_lease_ends_by_itself(servers: &Servers) -> Result<()> {
    let site = servers.site().await;
    for (flaw, cure) in [("redis-setnx", "redis-setnx-ttl"), ("table-lock", "table-lock-lease")] {
        let race = race_of(flaw, cure)?;
        for (cured, act) in [(true, flaw), (false, cure)] {
            let script = RaceScript { act: Act::Strategy(act), ..race.script(cured) };
            for pace in [Pace::Fast, Pace::Clock] {
                // Nobody kills the holder of the table's row here, and its watchdog renews the lease.
                if (pace, act) == (Pace::Clock, "table-lock-lease") {
                    continue;
                }
                let ending = played(&site.ctxs, script, pace, Timing::default()).await;
                ensure!(
                    !ending.as_ref().is_ok_and(|ending| ending.as_meant),
                    "{act} passes for {} at {pace:?}",
                    if cured { cure } else { flaw }
                );
            }
        }
    }
    Ok(())
}

/// Races that stop processes and servers, over HTTP, in a lab as a teacher starts it. The cure follows the flaw in the
/// same lab.
#[apply(test!)]
async fn a_race_with_faults_ends_as_expected_in_a_lab() -> Result<()> {
    let options = ["--instances=0,0,0", "--replica", "--etcd=1", "--redis-ports=0,0,0,0,0"];
    labs::with_lab_command(&options, async |_: &Path, at: Addresses| {
        not_both_begin(&at.instances).await?;
        for race in replay::races() {
            let lesson = race.lessons[0];
            if !race.needs_lab() && lesson != "003.pause" {
                continue;
            }
            for cured in [false, true] {
                let pace = if soak() { "clock" } else { "fast" };
                let events = over_http(&at.instances[0].url, lesson, cured, pace).await?;
                ensure!(events.contains("\"as_meant\":true"), "lesson {lesson}, cured: {cured}: {events}");
            }
        }
        Ok(())
    })
    .await
}

/// Two such races start on two instances at once; at most one goes on.
async fn not_both_begin(instances: &[InstanceAddress]) -> Result<()> {
    let begin = async |at: &InstanceAddress| {
        let start = client().post(format!("{}/replays/2.10.4?pace=fast", at.url));
        answer(start).await
    };
    let (one, other) = tokio::try_join!(begin(&instances[0]), begin(&instances[1]))?;
    let begun = [one.0, other.0].map(|status| status == StatusCode::ACCEPTED);
    ensure!(begun != [true; 2], "both go on: {one:?} {other:?}");
    for (at, (_, started)) in instances.iter().zip([one, other]).filter(|(_, (status, _))| *status == StatusCode::ACCEPTED) {
        to_its_end(&at.url, &started).await?;
    }
    Ok(())
}

async fn over_http(at: &str, lesson: &str, cured: bool, pace: &str) -> Result<String> {
    let start = format!("{at}/replays/{lesson}?cured={cured}&pace={pace}");
    let (_, started) = answer(client().post(start)).await?;
    to_its_end(at, &started).await
}

async fn to_its_end(at: &str, started: &str) -> Result<String> {
    let replay: Value = serde_json::from_str(started)?;
    let events = replay["events"].as_str().context(started.to_owned())?;
    Ok(ask(format!("{at}{events}")).await?.1)
}

/// Behind nginx each actor is on its own instance; a late watcher sees every event; a second replay is refused
/// meanwhile; a cancelled replay removes its product and releases its locks.
#[apply(test!)]
async fn a_replay_over_three_instances_is_stepped_and_cancelled() -> Result<()> {
    let lab = Lab::start(Options { without: vec![Part::MySql, Part::ZooKeeper], redis_ports: vec![0], ..program() }).await?;
    let http = &lab.addresses().http;
    let post = async |path: &str| answer(client().post(format!("{http}{path}"))).await;
    let (id, first) = start(http, "slow").await?;
    let (refused, words) = post("/replays/2.3").await?;
    ensure!(refused == StatusCode::CONFLICT, "a second replay at the same time: {refused} {words}");
    let seen = first.text().await?;
    let (_, late) = ask(format!("{http}/replays/{id}/events")).await?;
    ensure!(late == seen, "a late watcher sees something else");
    ensure!(seen.contains("\"as_meant\":true"), "it has not ended as it must:\n{seen}");
    let events = seen.lines().filter_map(|line| serde_json::from_str::<ReplayEvent>(line.strip_prefix("data: ")?).ok());
    let on: BTreeSet<_> = events.filter(|event| event.event == "start").filter_map(|event| event.instance).collect();
    ensure!(on.len() == 3, "its actors were on {on:?}");

    let products = || labs::command_redis::<BTreeSet<String>>(&lab, &["KEYS", "stock*"]);
    let before = products().await?;
    let (id, mut watched) = start(http, "step").await?;
    post(&format!("/replays/{id}/step")).await?;
    // A waits with its lock for the next step.
    let mut seen = String::new();
    while !seen.contains("\"held\"") {
        let more = watched.chunk().await?.context("it has ended")?;
        seen.push_str(&String::from_utf8_lossy(&more));
    }
    let locks = || labs::command_redis::<Vec<String>>(&lab, &["KEYS", "lock:*"]);
    ensure!(locks().await?.len() == 1, "A has no lock");
    ensure!(products().await?.len() == before.len() + 1, "no product");
    client().delete(format!("{http}/replays/{id}")).send().await?;
    let rest = watched.text().await?;
    ensure!(rest.contains("event: failed") && rest.contains("cancelled"), "it does not say that it was cancelled: {rest}");
    ensure!(products().await? == before, "its product is left");
    wait_until("its actors have given back what they held", || async { Ok(locks().await?.is_empty()) }).await?;
    lab.stop().await;
    Ok(())
}

async fn start(http: &str, pace: &str) -> Result<(String, Response)> {
    let replay = client().post(format!("{http}/replays/2.3?pace={pace}"));
    let started: Value = replay.send().await?.json().await?;
    let id = started["id"].as_str();
    let id = id.with_context(|| format!("not started: {started}"))?;
    let watched = client().get(format!("{http}/replays/{id}/events"));
    Ok((id.to_owned(), watched.send().await?))
}

/// Nobody else lists, steps or cancels a visitor's race; a teacher's is shown to all. Of one visitor's buttons, the fifth is refused.
#[apply(test!)]
async fn a_visitors_race_is_its_own_unless_it_is_shown() -> Result<()> {
    let lab = labs::full_lab().await?;
    let http = lab.addresses().http.clone();
    let post = async |visitor: &str, path: &str| {
        let request = client().post(format!("{http}{path}"));
        let request = request.header("x-visitor", visitor);
        answer(request.header("accept", "application/json")).await
    };
    let visitor = |n: usize| format!("visitor-{n:016}");
    let path = "/replays/2.3?pace=step";
    let own = post(&visitor(1), path).await?.1;
    let shown = post(&visitor(2), &format!("{path}&shared=true")).await?.1;
    let id = |started: &str| {
        let started: Value = serde_json::from_str(started)?;
        Ok::<_, anyhow::Error>(started["id"].as_str().context("no id")?.to_owned())
    };
    let (own, shown) = (id(&own)?, id(&shown)?);
    for (n, seen) in [(1, [true, true]), (2, [false, true]), (3, [false, true])] {
        let list = client().get(format!("{http}/replays?lesson=none"));
        let (_, list) = answer(list.header("x-visitor", visitor(n))).await?;
        ensure!([&own, &shown].map(|id| list.contains(id)) == seen, "{n}: {list}");
        for (of, id) in [(1, &own), (2, &shown)] {
            let status = post(&visitor(n), &format!("/replays/{id}/step")).await?.0;
            ensure!((status == StatusCode::NO_CONTENT) == (n == of), "{n}: {status}");
        }
    }
    for (n, id) in [(1, own), (2, shown)] {
        let delete = client().delete(format!("{http}/replays/{id}"));
        answer(delete.header("x-visitor", visitor(n))).await?;
    }

    let mut refused = 0;
    for lesson in ["1.1", "1.7.2", "1.8", "2.2", "2.3", "2.5"] {
        let path = format!("/replays/{lesson}?pace=step");
        refused += usize::from(post(&visitor(4), &path).await?.0 == StatusCode::TOO_MANY_REQUESTS);
    }
    ensure!(refused == 2, "{refused} of 6 were refused to one visitor");
    lab.stop().await;
    Ok(())
}
