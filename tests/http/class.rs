//! A class of forty visitors on one lab, and what is promised to it: races that are not refused and not slow, a schedule, a lock, a
//! grade and a load for each, and instances that stay small.

use crate::support::{program, *};
use futures::{StreamExt, future::join_all};
use oversell::load::bench::peak_memory_mb;
use oversell_lab::{
    clients::http_client::{Ask, client},
    lab::Lab,
};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Instant;
use tokio::time::{sleep, timeout};

const VISITORS: usize = 40;
/// All visitors press the button within this time, as people do after a word of the teacher.
const PRESS_TIME: Duration = Duration::from_secs(3);
/// Bounds each answer, behind those of all other visitors where they queue.
const REPLY_TIMEOUT: Duration = Duration::from_secs(600);
/// All three servers, and no faults, which would hit other visitors.
const LESSONS: [&str; 8] = ["1.1", "1.7.2", "1.7.3", "1.8", "2.3", "2.5", "2.10.2", "3.6"];

/// 95 % of the races show their first event within this, before a click seems lost.
const MAX_FIRST_EVENT: Duration = Duration::from_millis(1500);
/// A race takes at most this many times as long as for one visitor alone.
const MAX_SLOWDOWN: f64 = 2.0;
/// The peak memory of an instance stays below this, so that three and their servers fit on a small machine.
const MAX_MEMORY_MB: f64 = 150.0;

/// The end of one replay; the times are those since the click.
struct Played {
    /// The lesson, and whether it was the cure.
    race: (&'static str, bool),
    as_meant: bool,
    first_event: Duration,
    took: Duration,
}

struct Visitor<'a> {
    base: &'a str,
    id: String,
}

impl Visitor<'_> {
    /// Sends a request that must succeed; null without a body.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let mut request = client()
            .request(method, format!("{}{path}", self.base))
            .header("x-visitor", &self.id)
            .header("accept", "application/json")
            .timeout(REPLY_TIMEOUT);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.answer().await?.success()?;
        Ok(if answer.body.is_empty() { Value::Null } else { answer.json()? })
    }

    /// Begins a replay, and reads its events until `is_last`; returns its id.
    async fn follow(
        &self,
        start: String,
        next: Option<&str>,
        mut is_last: impl FnMut(&str, &Value) -> Result<bool>,
    ) -> Result<String> {
        let replay = self.ask(Method::POST, &start, None).await?;
        let [id, path] = ["id", "events"].map(|name| replay[name].as_str().unwrap_or_default().to_owned());
        let mut events = client().get(format!("{}{path}", self.base)).events(REPLY_TIMEOUT).await?;
        if let Some(next) = next {
            self.ask(Method::POST, &format!("/replays/{id}/next{next}"), None).await?;
        }
        while let Some(event) = events.next().await {
            let event = event?;
            if is_last(&event.event, &serde_json::from_str(&event.data).unwrap_or_default())? {
                return Ok(id);
            }
        }
        bail!("{start}: the events broke off")
    }

    async fn play(&self, lesson: &'static str, cured: bool) -> Result<Played> {
        let (begun, mut first_event, mut as_meant) = (Instant::now(), None, false);
        let is_last = |kind: &str, data: &Value| {
            ensure!(kind != "failed", "{lesson}: {data}");
            // Captions and the state of the servers come before an actor has done anything.
            if kind == "done" || matches!(data["actor"].as_str(), Some("A" | "B" | "C")) {
                first_event.get_or_insert_with(|| begun.elapsed());
            }
            as_meant = data["as_meant"] == true;
            Ok(kind == "done")
        };
        self.follow(format!("/replays/{lesson}?cured={cured}"), None, is_last).await?;
        let first_event = first_event.context("no event")?;
        Ok(Played { race: (lesson, cured), as_meant, first_event, took: begun.elapsed() })
    }

    /// Plays a race and its cure at the same time, as the page does.
    async fn play_both(&self, lesson: &'static str) -> Result<[Played; 2]> {
        let (flaw, cure) = tokio::try_join!(self.play(lesson, false), self.play(lesson, true))?;
        Ok([flaw, cure])
    }

    /// Sends actor A of a schedule of one's own to its first stop, then gives the schedule up.
    async fn schedule(&self) -> Result<()> {
        let start = "/replays/2.3?pace=scheduler".to_owned();
        let stands = self.follow(start, Some("?actor=A"), |_, data| Ok(data.to_string().contains("\"stands\"")));
        let id = stands.await?;
        self.ask(Method::DELETE, &format!("/replays/{id}"), None).await.map(drop)
    }

    /// Stores scripts that nobody else has, sells a piece with them, and has them graded.
    async fn use_own_lock(&self) -> Result<()> {
        let scripts = json!({
            "acquire": format!("return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) -- {}", self.id),
            "release": "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
            "renew": "",
        });
        self.ask(Method::PUT, "/mine", Some(scripts.clone())).await?;
        let sold = self.ask(Method::POST, "/check/lock/mine", None).await?;
        let graded = self.ask(Method::POST, "/mine/grade", None).await?;
        ensure!(sold["remaining"] == 4999 && graded["scripts"] == scripts, "not its own: {sold} {}", graded["scripts"]);
        Ok(())
    }

    /// Asks for a load, and waits until it has had its turn.
    async fn load(&self) -> Result<()> {
        let plan = json!({"strategy": "redis-script", "threads": 5, "loops": 10});
        self.ask(Method::POST, "/runs", Some(plan)).await?;
        let ended = async {
            loop {
                let run = self.ask(Method::GET, "/runs/current", None).await?;
                match run["state"].as_str() {
                    Some("waiting" | "running") => sleep(Duration::from_millis(500)).await,
                    _ => return Ok(run),
                }
            }
        };
        let run = timeout(REPLY_TIMEOUT, ended).await.unwrap_or_else(|_| bail!("no turn"))?;
        ensure!(run["state"] == "done", "{run}");
        Ok(())
    }
}

/// The broken promises about races of a class, compared with the same races of one visitor alone.
fn broken_promises(all: &[Played], alone: &[Played]) -> Vec<String> {
    let mut broken = Vec::new();
    broken.extend(all.iter().find(|played| !played.as_meant).map(|played| format!("{:?}: another end", played.race)));
    let mut first: Vec<_> = all.iter().map(|played| played.first_event).collect();
    first.sort();
    let p95 = first[(first.len() * 95).div_ceil(100) - 1];
    broken.extend((p95 > MAX_FIRST_EVENT).then(|| format!("the first event, 95 %: {p95:?}")));
    for played in all {
        let same = alone.iter().find(|same| same.race == played.race);
        let times = same.map_or(f64::INFINITY, |same| played.took.as_secs_f64() / same.took.as_secs_f64());
        broken.extend((times > MAX_SLOWDOWN).then(|| format!("{:?}: {times:.1} times as long", played.race)));
    }
    broken
}

#[apply(soak_test!)]
async fn a_class_of_forty_gets_what_is_promised() -> Result<()> {
    let lab = Lab::start(program()).await?;
    let base = &lab.addresses().http;
    let id = |n| format!("class-visitor-{n:04}-{:016x}", fastrand::u64(..));
    let visitors: Vec<_> = (0..VISITORS).map(|n| Visitor { base, id: id(n) }).collect();
    let mut alone = Vec::new();
    for lesson in LESSONS {
        alone.extend(visitors[0].play_both(lesson).await?);
    }
    let mut broken = Vec::new();
    for lessons in [&LESSONS[..1], &LESSONS] {
        let each = visitors.iter().enumerate().map(async |(n, visitor)| {
            sleep(PRESS_TIME.mul_f64(n as f64 / VISITORS as f64)).await;
            visitor.play_both(lessons[n % lessons.len()]).await
        });
        let played = join_all(each).await.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten();
        broken.extend(broken_promises(&played.collect::<Vec<_>>(), &alone));
    }
    let succeeds =
        |what, done: Vec<Result<()>>| done.into_iter().filter_map(move |done| done.err().map(|why| format!("{what}: {why:#}")));
    broken.extend(succeeds("a schedule", join_all(visitors.iter().map(Visitor::schedule)).await));
    broken.extend(succeeds("a lock of one's own", join_all(visitors.iter().map(Visitor::use_own_lock)).await));
    broken.extend(succeeds("a load", join_all(visitors.iter().map(Visitor::load)).await));
    for instance in &lab.addresses().instances {
        let most = peak_memory_mb(instance.pid)?;
        broken.extend((most > MAX_MEMORY_MB).then(|| format!("{}: {most:.0} MB", instance.name)));
    }
    lab.stop().await;
    ensure!(broken.is_empty(), broken.join("\n"));
    Ok(())
}

/// A wrong end, a late event and a slow race: the twins of each promise.
#[apply(test!)]
fn each_broken_promise_to_a_class_is_seen() -> Result<()> {
    let played = |as_meant, first_ms, took_ms| Played {
        race: ("1.1", false),
        as_meant,
        first_event: Duration::from_millis(first_ms),
        took: Duration::from_millis(took_ms),
    };
    let alone = [played(true, 100, 4000)];
    for (as_meant, first_ms, took_ms, broken) in [
        (true, 100, 5000, ""),
        (false, 100, 5000, "another end"),
        (true, 1600, 5000, "the first event, 95 %"),
        (true, 100, 9000, "2.2 times as long"),
    ] {
        let seen = broken_promises(&[played(as_meant, first_ms, took_ms)], &alone);
        ensure!(seen.len() == usize::from(!broken.is_empty()) && seen.concat().contains(broken), "{broken}: {seen:?}");
    }
    Ok(())
}
