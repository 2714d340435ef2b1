//! `oversell class`: a class of simulated visitors on a lab; compares what the project promises to a class with what was seen.
//!
//! 1. One visitor plays each of the races alone: how long each takes.
//! 2. All visitors press the button of a race within [`PRESS_TIME`], first of one lesson, then of several: the race beside its cure.
//! 3. All visitors begin a schedule of their own; each keeps and uses a lock of its own; each asks for a load.
//!
//! Next: `http/visitor.rs` says who a visitor is.

use futures::{StreamExt, future::join_all};
use http::Method;
use oversell::load::{bench::peak_memory_mb, target};
use oversell_lab::{
    addresses::{Addresses, LAB_JSON},
    clients::http_client::{Ask, Events, HttpError, client},
    terminal::{
        chinese::{localized, pad_to_width},
        failure::{Failure, unusable},
        stdout::{Output, Outputs, colour_mark, print_to_stderr, say},
    },
};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    fmt::Display,
    path::PathBuf,
    time::{Duration, Instant},
};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// All visitors press the button within this time, as people do after a word of the teacher.
const PRESS_TIME: Duration = Duration::from_secs(3);
/// Bounds the answer to a request, and the first stop of a schedule's actor. A stream of events ends after 15 s of silence.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);
/// Bounds the wait of a visitor for its load or its grading, behind those of all other visitors.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(600);
/// The lessons that the class plays: all three servers, and no faults, which would hit other visitors.
const LESSONS: [&str; 8] = ["1.1", "1.7.2", "1.7.3", "1.8", "2.3", "2.5", "2.10.2", "3.6"];

/// 95 % of the races show their first event within this, before a click seems lost.
const MAX_FIRST_EVENT: Duration = Duration::from_millis(1500);
/// A race takes at most this many times as long as for one visitor alone.
const MAX_SLOWDOWN: f64 = 2.0;
/// The peak memory of an instance stays below this, so that three and their servers fit on a small machine.
const MAX_MEMORY_MB: f64 = 150.0;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  oversell class --lab                a class of forty on a lab of its own
  oversell class --visitors 80        a larger one, on the lab that runs
  oversell class --base http://192.168.1.7:8080

Exit status: 0 every promise kept, 1 one was broken, 2 bad usage or no lab, 130 cut short by a signal.")]
pub(crate) struct Args {
    /// How many visitors
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u16).range(1..=400))]
    visitors: u16,
    /// The address that visitors open, instead of the running lab's
    #[arg(long, value_name = "URL")]
    base: Option<String>,
    /// Writes every figure to this file
    #[arg(long, value_name = "FILE")]
    json: Option<Output>,
    /// Where a running lab has written its addresses
    #[arg(long, value_name = "PATH", default_value = LAB_JSON)]
    lab_json: PathBuf,
}

impl Outputs for Args {
    fn outputs(&self) -> Vec<&Output> {
        self.json.iter().collect()
    }
}

/// One promise to a class, and whether it was kept.
#[derive(Debug, Serialize)]
struct PromiseResult {
    what: String,
    promised: String,
    seen: String,
    kept: bool,
}

/// Runs the command. It fails with [`Failure::Promise`] where a promise was broken, [`Failure::Unusable`] where nobody answers,
/// [`Failure::Interrupted`] after a signal.
pub(crate) async fn run(args: Args, lab: Option<Addresses>, stop: CancellationToken) -> Result<(), Failure> {
    let lab = match (lab, &args.base) {
        (Some(lab), _) => Some(lab),
        (None, Some(_)) => None,
        (None, None) => Some(Addresses::read_running_lab(&args.lab_json)?),
    };
    let base = args.base.clone();
    let base = base.or_else(|| lab.as_ref().map(|lab| lab.http.clone()));
    let class = Class {
        base: base.unwrap_or_default().trim_end_matches('/').to_owned(),
        token: target::token(lab.as_ref()),
        visitors: (0..args.visitors).map(|n| format!("class-visitor-{n:04}-{:016x}", fastrand::u64(..))).collect(),
    };
    let promises = tokio::select! {
        promises = class.check_promises(lab.as_ref()) => promises.map_err(|error| unusable!("{}: {error}", class.base))?,
        () = stop.cancelled() => return Err(oversell::load::terminal::stopped_by_signal()),
    };
    for PromiseResult { what, promised, seen, kept } in &promises {
        let sign = colour_mark(if *kept { "✓" } else { "✗" });
        say!("{sign} {} {} {seen}", pad_to_width(what, 36), pad_to_width(promised, 24));
    }
    if let Some(file) = &args.json {
        file.write_json(&json!({ "visitors": args.visitors, "promises": promises }))?;
    }
    let broken: Vec<_> = promises.iter().filter(|promise| !promise.kept).collect();
    match broken.is_empty() {
        true => Ok(()),
        false => Err(Failure::Promise(
            broken.iter().map(|promise| format!("{}: {}", promise.what, promise.seen)).collect::<Vec<_>>().join("; "),
        )),
    }
}

/// The visitors, and the service that they open.
struct Class {
    base: String,
    token: Option<SecretString>,
    visitors: Vec<String>,
}

/// The end of one replay, and its times since the click; `first_event` is the first of an actor, or the end.
#[derive(Debug)]
struct ReplayTiming {
    lesson: &'static str,
    cured: bool,
    as_meant: bool,
    first_event: Duration,
    took: Duration,
}

/// How one replay ended and how long it took, or why it could not be played to its end.
type ReplayOutcome = Result<ReplayTiming, HttpError>;

impl Class {
    /// Plays the races with one visitor, then with all, and checks each promise. Fails if a race of the one visitor does.
    async fn check_promises(&self, lab: Option<&Addresses>) -> Result<Vec<PromiseResult>, HttpError> {
        let mut alone = Vec::new();
        for lesson in LESSONS {
            print_to_stderr(format_args!("{}", localized!("一个人演第 {} 课", "lesson {} alone", lesson)));
            for played in self.play_race(&self.visitors[0], lesson).await {
                alone.push(played?);
            }
        }
        let mut promises = Vec::new();
        for lessons in [&LESSONS[..1], &LESSONS[..]] {
            let played = self.play_all(lessons).await;
            promises.extend(self.judge_races(lessons.len(), &played, &alone));
        }
        promises.push(self.check_schedules().await);
        promises.push(self.check_own_locks().await);
        promises.push(self.check_loads().await);
        promises.extend(lab.map(check_memory));
        Ok(promises)
    }

    /// Sends a request of this visitor; its answer must be a success. Returns its JSON, null without a body.
    async fn ask(&self, visitor: &str, method: Method, path: &str, body: Option<Value>) -> Result<Value, HttpError> {
        let mut request = client()
            .request(method, format!("{}{path}", self.base))
            .header("x-visitor", visitor)
            .header("accept", "application/json")
            .timeout(REPLY_TIMEOUT);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.token(self.token.as_ref()).answer().await?.success()?;
        match answer.body.is_empty() {
            true => Ok(Value::Null),
            false => answer.json(),
        }
    }

    /// Opens the stream of events of a replay.
    async fn events(&self, replay: &Value) -> Result<Events, HttpError> {
        let path = replay["events"].as_str().unwrap_or_default();
        let request = client().get(format!("{}{path}", self.base));
        request.events(REPLY_TIMEOUT).await
    }

    /// Plays a race and its cure at the same time, as the page does.
    async fn play_race(&self, visitor: &str, lesson: &'static str) -> [ReplayOutcome; 2] {
        let (flaw, cure) = tokio::join!(self.play(visitor, lesson, false), self.play(visitor, lesson, true));
        [flaw, cure]
    }

    /// Plays a race to its end.
    async fn play(&self, visitor: &str, lesson: &'static str, cured: bool) -> ReplayOutcome {
        let begun = Instant::now();
        let path = format!("/replays/{lesson}?cured={cured}");
        let replay = self.ask(visitor, Method::POST, &path, None).await?;
        let mut events = self.events(&replay).await?;
        let mut first_event = None;
        while let Some(event) = events.next().await {
            let event = event?;
            let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
            match event.event.as_str() {
                "done" => {
                    let took = begun.elapsed();
                    return Ok(ReplayTiming {
                        lesson,
                        cured,
                        as_meant: data["as_meant"] == true,
                        first_event: first_event.unwrap_or(took),
                        took,
                    });
                }
                "failed" => return Err(HttpError::Failed(data["detail"].to_string())),
                // Captions and the state of the servers come before an actor has done anything.
                _ if matches!(data["actor"].as_str(), Some("A" | "B" | "C")) => {
                    first_event.get_or_insert_with(|| begun.elapsed());
                }
                _ => {}
            }
        }
        Err(HttpError::Failed("the events broke off".to_owned()))
    }

    /// Has all visitors begin a race and its cure within [`PRESS_TIME`], one lesson each, in turn; waits for the ends.
    async fn play_all(&self, lessons: &[&'static str]) -> Vec<ReplayOutcome> {
        print_to_stderr(format_args!(
            "{}",
            localized!("{} 个人演 {} 课", "{} visitors play {} lessons", self.visitors.len(), lessons.len())
        ));
        let count = self.visitors.len();
        let each = self.visitors.iter().enumerate().map(async |(n, visitor)| {
            sleep(PRESS_TIME.mul_f64(n as f64 / count as f64)).await;
            self.play_race(visitor, lessons[n % lessons.len()]).await
        });
        join_all(each).await.into_iter().flatten().collect()
    }

    /// Compares the replays of a class with the promises, and with the replays of one visitor alone.
    fn judge_races(&self, lessons: usize, replays: &[ReplayOutcome], alone: &[ReplayTiming]) -> Vec<PromiseResult> {
        let all = replays.len();
        let played: Vec<_> = replays.iter().filter_map(|replay| replay.as_ref().ok()).collect();
        let as_meant = played.iter().filter(|played| played.as_meant).count();
        let failure = replays.iter().find_map(|replay| replay.as_ref().err());
        let failure = failure.map(|error| format!("; {error}")).unwrap_or_default();
        let mut first: Vec<_> = played.iter().map(|played| played.first_event).collect();
        first.sort();
        let p95 = first.get((first.len() * 95).div_ceil(100).saturating_sub(1));
        let p95 = p95.copied().unwrap_or(Duration::MAX);
        let slowdown = |one: &&ReplayTiming| {
            let same = alone.iter().find(|it| (it.lesson, it.cured) == (one.lesson, one.cured));
            same.map_or(f64::INFINITY, |same| one.took.as_secs_f64() / same.took.as_secs_f64())
        };
        let slowest = played.iter().map(slowdown).fold(0.0, f64::max);
        let of = |what: &str| localized!("{} 课：{}", "{} lessons: {}", lessons, what);
        vec![
            promise(of(&localized!("演完", "played")), all, format!("{}{failure}", played.len()), played.len() == all),
            promise(of(&localized!("结局如课", "end as the lesson says")), all, as_meant, as_meant == all),
            promise(
                of(&localized!("首个事件，95%", "first event, 95 %")),
                format!("≤ {} ms", MAX_FIRST_EVENT.as_millis()),
                format!("{} ms", p95.as_millis()),
                p95 <= MAX_FIRST_EVENT,
            ),
            promise(
                of(&localized!("比一个人慢", "slower than alone")),
                format!("≤ {MAX_SLOWDOWN} ×"),
                format!("{slowest:.2} ×"),
                slowest <= MAX_SLOWDOWN,
            ),
        ]
    }

    /// Has each visitor send actor A to its first stop; then cancels all; a failure of that does not count.
    async fn check_schedules(&self) -> PromiseResult {
        let began = join_all(self.visitors.iter().map(|visitor| self.begin_schedule(visitor))).await;
        let of_visitors = began.iter().zip(&self.visitors);
        let begun = of_visitors.filter_map(|(id, visitor)| Some((id.as_ref().ok()?, visitor)));
        let cancelled =
            begun.map(async |(id, visitor)| self.ask(visitor, Method::DELETE, &format!("/replays/{id}"), None).await);
        join_all(cancelled).await;
        self.all_succeed(localized!("各排各的执行顺序", "schedules at once"), &began)
    }

    /// Begins a replay of one visitor and sends actor A to its first stop; returns the id of the replay.
    async fn begin_schedule(&self, visitor: &str) -> Result<String, HttpError> {
        let start = self.ask(visitor, Method::POST, "/replays/2.3?pace=scheduler", None);
        let replay = start.await?;
        let id = replay["id"].as_str().unwrap_or_default().to_owned();
        let mut events = self.events(&replay).await?;
        self.ask(visitor, Method::POST, &format!("/replays/{id}/next?actor=A"), None).await?;
        let stands = async {
            while let Some(event) = events.next().await {
                if event?.data.contains("\"stands\"") {
                    return Ok(id);
                }
            }
            Err(HttpError::Failed("the events broke off".to_owned()))
        };
        timeout(REPLY_TIMEOUT, stands).await.unwrap_or(Err(HttpError::TimedOut))
    }

    /// Has each visitor store scripts of its own lock, sell one piece with them, and have them graded. A visitor fails whose
    /// stock or grade is not its own.
    async fn check_own_locks(&self) -> PromiseResult {
        let own = self.visitors.iter().enumerate().map(async |(n, visitor)| {
            let scripts = json!({
                "acquire": format!("return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) -- {n}"),
                "release": "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0",
                "renew": "",
            });
            self.ask(visitor, Method::PUT, "/mine", Some(scripts.clone())).await?;
            let sold = self.ask(visitor, Method::POST, "/check/lock/mine", None).await?;
            let graded = client()
                .post(format!("{}/mine/grade", self.base))
                .header("x-visitor", visitor)
                .header("accept", "application/json")
                .timeout(QUEUE_TIMEOUT);
            let graded: Value = graded.answer().await?.success()?.json()?;
            match sold["remaining"] == 4999 && graded["scripts"] == scripts {
                true => Ok(()),
                false => Err(HttpError::Failed(format!("not its own: {sold} {}", graded["scripts"]))),
            }
        });
        let own = join_all(own).await;
        self.all_succeed(localized!("各自的锁，各自的成绩", "own locks, sold with and graded"), &own)
    }

    /// Has all visitors ask for a load at once, and waits until each has had its turn.
    async fn check_loads(&self) -> PromiseResult {
        let runs = self.visitors.iter().map(async |visitor| {
            let plan = json!({"strategy": "redis-script", "threads": 5, "loops": 10});
            self.ask(visitor, Method::POST, "/runs", Some(plan)).await?;
            let ended = async {
                loop {
                    let run = self.ask(visitor, Method::GET, "/runs/current", None).await?;
                    match run["state"].as_str() {
                        Some("waiting" | "running") => sleep(Duration::from_millis(500)).await,
                        Some("done") => return Ok(()),
                        _ => return Err(HttpError::Failed(run.to_string())),
                    }
                }
            };
            timeout(QUEUE_TIMEOUT, ended).await.unwrap_or(Err(HttpError::TimedOut))
        });
        let runs = join_all(runs).await;
        self.all_succeed(localized!("压测都轮到了", "loads, each in its turn"), &runs)
    }

    /// The promise that a request succeeds for each visitor.
    fn all_succeed<T>(&self, what: String, done: &[Result<T, HttpError>]) -> PromiseResult {
        let count = done.iter().filter(|one| one.is_ok()).count();
        let failure = done.iter().find_map(|one| one.as_ref().err());
        let failure = failure.map(|error| format!("; {error}")).unwrap_or_default();
        promise(what, self.visitors.len(), format!("{count}{failure}"), count == self.visitors.len())
    }
}

/// A promise, what was seen of it, and whether it was kept.
fn promise(what: String, promised: impl Display, seen: impl Display, kept: bool) -> PromiseResult {
    let (promised, seen) = (promised.to_string(), seen.to_string());
    PromiseResult { what, promised, seen, kept }
}

/// The promise about the peak memory of an instance; an instance whose memory cannot be read does not count.
fn check_memory(lab: &Addresses) -> PromiseResult {
    let peaks = lab.instances.iter().filter_map(|instance| peak_memory_mb(instance.pid).ok());
    let most = peaks.fold(0.0, f64::max);
    promise(
        localized!("每个实例的内存", "memory of an instance"),
        format!("< {MAX_MEMORY_MB} MB"),
        format!("{most:.0} MB"),
        most > 0.0 && most < MAX_MEMORY_MB,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    /// A history of one refusal, one wrong end, one late event and one slow race breaks each promise.
    #[test]
    fn each_broken_promise_to_a_class_is_seen() {
        let class = Class { base: String::new(), token: None, visitors: vec!["one".to_owned()] };
        let played = |as_meant, first_ms, took_ms| ReplayTiming {
            lesson: "1.1",
            cured: false,
            as_meant,
            first_event: Duration::from_millis(first_ms),
            took: Duration::from_millis(took_ms),
        };
        let alone = [played(true, 100, 4000)];
        let refused = || Err(HttpError::Refused { status: StatusCode::CONFLICT, body: String::new() });
        for (replay, kept) in [
            (Ok(played(true, 100, 5000)), [true, true, true, true]),
            (Ok(played(false, 100, 5000)), [true, false, true, true]),
            (Ok(played(true, 1600, 5000)), [true, true, false, true]),
            (Ok(played(true, 100, 9000)), [true, true, true, false]),
            (refused(), [false, false, false, true]),
        ] {
            let promises = class.judge_races(1, &[replay], &alone);
            let seen: Vec<_> = promises.iter().map(|promise| promise.kept).collect();
            assert_eq!(seen, kept, "{promises:?}");
        }
    }
}
