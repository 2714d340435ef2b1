//! Grades of a student's lock: each lock of the course gets the grades that the course implies, and for each grade a
//! lock fails.

use crate::support::{
    http::{answer, check_url, client},
    *,
};
use oversell::{
    ctx::Ctx,
    own_lock::{Mark, Scripts, grade},
    stock,
};
use oversell_lab::clients::redis_at::redis_at;
use redis::aio::MultiplexedConnection;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::thread;

const TRIALS: [&str; 7] = ["exclusion", "holder-dies", "late-release", "foreign-release", "re-entry", "long-job", "fairness"];

/// Grades of the course's locks, trial by trial: passed, failed, or untried for lack of a lease. §2.10.2 says that
/// polling is not fair.
const STAGES: [(&str, &str); 5] =
    [("2.1", "pfuffuf"), ("2.2", "ppfffff"), ("2.5", "ppppfff"), ("2.6", "pppppff"), ("2.7", "ppppppf")];

#[apply(test!)]
#[over(STAGES.map(|stage| (stage.0, stage)))]
async fn a_lock_of_the_course_is_graded_as_the_course_says(servers: &Servers, stage: (&'static str, &'static str)) -> Result<()> {
    check_grades(servers, &scripts_of(stage.0)?, stage.1).await?;
    Ok(())
}

const YES: &str = "return 1";
const RENEWS_WHOEVER_ASKS: &str = "return redis.call('pexpire', KEYS[1], ARGV[2])";
const ENTERS_UNCOUNTED: &str = "if redis.call('get', KEYS[1]) == ARGV[1] then return 1 end \
                                return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])";
const FOR_A_MINUTE: &str = "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', 60000)";
const FAILS: &str = "return redis.call('get', KEYS[1]) < 1";
const STANDS_IN_LINE: &str = "if not redis.call('lpos', KEYS[1], ARGV[1]) then redis.call('rpush', KEYS[1], ARGV[1]) end \
                              return redis.call('lindex', KEYS[1], 0) == ARGV[1]";
const LEAVES_THE_LINE: &str = "return redis.call('lrem', KEYS[1], 1, ARGV[1])";

/// A broken lock: its stage, the replaced script, the expected grades, and the observation.
type Twin = (&'static str, [&'static str; 3], &'static str, &'static str);

const TWINS: [(&str, Twin); 8] = [
    ("lets_all_in", ("2.7", [YES, "", ""], "fffffff", "Two were inside at once.")),
    ("frees_nothing", ("2.7", ["", YES, ""], "fpppfff", "after an unlock others did not get in")),
    ("renews_nothing", ("2.7", ["", "", YES], "pppppff", "A was still inside when its lease ended, and B got in too.")),
    (
        "renews_whoever_asks",
        ("2.7", ["", "", RENEWS_WHOEVER_ASKS], "pppppff", "A had unlocked, and renewed the lease of B's lock."),
    ),
    ("enters_uncounted", ("2.5", [ENTERS_UNCOUNTED, "", ""], "ppppfff", "A went in twice and unlocked once, and B got in.")),
    ("has_a_lease_of_its_own", ("2.5", [FOR_A_MINUTE, "", ""], "puupfuf", "A holds the lock, and does not get it again")),
    ("fails_in_redis", ("2.5", [FAILS, "", ""], "fffffff", "attempt to compare boolean with number")),
    // The only fair lock, and so the twin of all others.
    ("stands_in_line", ("2.5", [STANDS_IN_LINE, LEAVES_THE_LINE, ""], "pfupfup", "a deadlock")),
];

#[apply(test!)]
#[over(TWINS)]
async fn a_broken_lock_fails_what_it_breaks(servers: &Servers, twin: Twin) -> Result<()> {
    let (stage, scripts, grades, seen) = twin;
    let Scripts { acquire, release, renew } = scripts_of(stage)?;
    let [acquire, release, renew] = [acquire, release, renew]
        .into_iter()
        .zip(scripts)
        .map(|(own, other)| if other.is_empty() { own } else { other.to_owned() })
        .collect::<Vec<_>>()
        .try_into()
        .expect("three");
    let told = check_grades(servers, &Scripts { acquire, release, renew }, grades).await?;
    ensure!(told.contains(seen), "{told} without {seen}");
    Ok(())
}

/// The machine stands still for three leases as soon as A is in: that is no excuse for a lock that is not renewed.
#[apply(test!)]
async fn a_lock_without_renewal_passes_on_no_slow_machine(servers: &Servers) -> Result<()> {
    let prefix = format!("grade-{}:", servers.site().await.id);
    let ctx = servers.with(|config| config.redis.prefix.clone_from(&prefix));
    let scripts = scripts_of("2.2")?;
    let stands_still = async {
        let has_key = || async { Ok(!keys_of(&ctx, &format!("{prefix}*:long-job")).await?.is_empty()) };
        wait_until("A is in", has_key).await?;
        // Both run in one task, so this stops the grader.
        thread::sleep(Duration::from_millis(1300));
        Ok::<_, anyhow::Error>(())
    };
    let (grades, ()) = tokio::try_join!(async { Ok(grade(&ctx, &scripts).await?) }, stands_still)?;
    let long_job = grades.iter().find(|grade| grade.name == "long-job").context("no such trial")?;
    ensure!(long_job.verdict == Mark::Failed, "{long_job:#?}");
    Ok(())
}

async fn keys_of(ctx: &Ctx, pattern: &str) -> Result<Vec<String>> {
    Ok(redis::cmd("KEYS").arg(pattern).query_async(&mut ctx.mine.connection()).await?)
}

fn scripts_of(stage: &str) -> Result<Scripts> {
    let found = stock::stages().find(|(section, _)| *section == stage);
    Ok(found.context("no such stage")?.1)
}

/// Grades the locks under their own keys, of which none is left; returns the observations of failures. Where the machine stood
/// still for longer than a lease, nothing was tried, and it grades again.
async fn check_grades(servers: &Servers, scripts: &Scripts, wanted: &str) -> Result<String> {
    let prefix = format!("grade-{}:", servers.site().await.id);
    let ctx = servers.with(|config| config.redis.prefix.clone_from(&prefix));
    let grades = loop {
        let grades = grade(&ctx, scripts).await?;
        if !grades.iter().any(|grade| grade.seen.en.contains("stood still")) {
            break grades;
        }
    };
    let letters = grades.iter().map(|grade| match grade.verdict {
        Mark::Passed => 'p',
        Mark::Failed => 'f',
        Mark::Untried => 'u',
    });
    let names: Vec<_> = grades.iter().map(|grade| grade.name).collect();
    ensure!(names == TRIALS, "{names:?}");
    let letters: String = letters.collect();
    ensure!(letters == wanted, "{letters} instead of {wanted}: {grades:#?}");
    let mut told = String::new();
    for grade in grades {
        let failed = grade.verdict == Mark::Failed;
        ensure!(failed != grade.events.is_empty(), "{grade:#?}");
        if failed {
            told = format!("{told} {} {}", grade.seen.en, grade.error.unwrap_or_default());
        }
    }
    let keys = keys_of(&ctx, &format!("{prefix}*")).await?;
    ensure!(keys.is_empty(), "left: {keys:?}");
    Ok(told)
}

/// What strangers' scripts can do to the servers, tried: no text of theirs stays, and the lock's key is bounded and ends.
#[apply(test!)]
async fn scripts_of_strangers_fill_no_redis() -> Result<()> {
    let lab = labs::full_lab().await?;
    let http = &lab.addresses().http;
    let mine = lab.addresses().mine.as_ref().context("no Redis of theirs")?;
    let mut mine = redis_at(&mine.url).await?;
    let number = async |redis: &mut MultiplexedConnection, section: &str, field: &str| {
        let mut info = redis::cmd("INFO");
        let info: redis::InfoDict = info.arg(section).query_async(redis).await?;
        info.get::<u64>(field).with_context(|| field.to_owned())
    };
    for (setting, has_limit) in
        [("maxmemory", (|value| value != "0") as fn(&str) -> bool), ("maxmemory-policy", |value| value == "noeviction")]
    {
        let get = redis::cmd("CONFIG").arg("GET").arg(setting).to_owned();
        let (_, value): (String, String) = get.query_async(&mut mine).await?;
        ensure!(has_limit(&value), "{setting} is {value}");
    }
    let mut main = redis_at(&lab.addresses().redis[0].url).await?;
    let before = number(&mut main, "memory", "number_of_cached_scripts").await?;
    let many = vec!["'x'"; 200].join(", ");
    let with_scripts = async |scripts: &Value| {
        let (status, words) = answer(client().put(format!("{http}/mine")).json(scripts)).await?;
        ensure!(status == StatusCode::OK, "{status} {words}");
        answer(client().get(check_url(http, "mine", 0, 300))).await
    };
    let scripts_of =
        |begin: &str, middle: &str, end: &str| json!({"acquire": format!("{begin}{middle}{end}"), "release": "return 1"});
    for n in 0..30 {
        let scripts = json!({
            "acquire": format!("redis.call('rpush', KEYS[1], {many}) return {n}"),
            "release": format!("return {n}"),
        });
        let (_, words) = with_scripts(&scripts).await?;
        ensure!(words.contains("256 entries") || n == 0, "{words}");
    }
    let after = number(&mut main, "memory", "number_of_cached_scripts").await?;
    ensure!(after == before, "the main Redis has kept {} scripts", after - before);
    let kept = number(&mut mine, "memory", "number_of_cached_scripts").await?;
    ensure!(kept < 5, "their Redis has kept {kept} scripts");
    let locks: Vec<String> = redis::cmd("KEYS").arg("lock:mine*").query_async(&mut mine).await?;
    ensure!(locks.len() == 1, "{locks:?}");
    let length: i64 = redis::cmd("LLEN").arg(&locks[0]).query_async(&mut mine).await?;
    ensure!((1..=256).contains(&length), "the lock holds {length}");
    let ends: i64 = redis::cmd("TTL").arg(&locks[0]).query_async(&mut mine).await?;
    ensure!((1..=24 * 60 * 60).contains(&ends), "it ends after {ends} s");
    let mut wide = scripts_of("redis.call('set', KEYS[1], '", &"x".repeat(65), "') return 1");
    let (_, words) = with_scripts(&wide).await?;
    ensure!(words.contains("64 bytes"), "{words}");
    wide = scripts_of("redis.call('set', KEYS[1], 1, 'PX', '", "99999999999", "') return 1");
    with_scripts(&wide).await?;
    let ends: i64 = redis::cmd("TTL").arg(&locks[0]).query_async(&mut mine).await?;
    ensure!((1..=24 * 60 * 60).contains(&ends), "a lease of years ends after {ends} s");
    labs::forget_visitors(&lab).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// Two visitors keep different scripts, at different instances: each sells with its own, from a product of its own. The twin:
/// two without an id are one. A visitor's lock is graded once at a time.
#[apply(test!)]
async fn each_visitor_has_an_own_lock_and_product() -> Result<()> {
    let lab = labs::full_lab().await?;
    let urls = [0, 1, 2].map(|n| lab.addresses().instances[n].url.clone());
    let visit = async |n: usize, visitor: Option<&str>, method: Method, path: &str, body: Value| {
        let mut request = client().request(method, format!("{}{path}", urls[n])).header("accept", "application/json");
        if let Some(visitor) = visitor {
            request = request.header("x-visitor", visitor);
        }
        if !body.is_null() {
            request = request.json(&body);
        }
        let (status, words) = answer(request).await?;
        let body: Value = serde_json::from_str(&words).context(words)?;
        Ok::<_, anyhow::Error>((status, body))
    };
    let (one, other) = ("1".repeat(32), "2".repeat(32));
    for (visitors, alone) in [([Some(&*one), Some(&*other)], true), ([None, None], false)] {
        for (n, (visitor, release)) in visitors.into_iter().zip(["1", "2"]).enumerate() {
            let scripts = json!({"acquire": "return 1", "release": format!("return {release}"), "renew": ""});
            let (status, kept) = visit(n, visitor, Method::PUT, "/mine", scripts).await?;
            ensure!(status == StatusCode::OK, "{status} {kept}");
        }
        let read = async |visitor| visit(2, visitor, Method::GET, "/mine", Value::Null).await;
        let [(_, first), (_, second)] = [read(visitors[0]).await?, read(visitors[1]).await?];
        ensure!(
            (first["scripts"] != second["scripts"]) == alone && (first["stock_id"] != second["stock_id"]) == alone,
            "{first} {second}"
        );
    }
    for (visitor, left) in [(&one, 4999), (&one, 4998), (&other, 4999)] {
        let (status, sold) = visit(0, Some(visitor), Method::POST, "/check/lock/mine", Value::Null).await?;
        ensure!(status == StatusCode::OK && sold["remaining"] == left, "{visitor}: {status} {sold}");
    }
    let grade = || visit(0, Some(&one), Method::POST, "/mine/grade", Value::Null);
    let (first, second) = futures::join!(grade(), grade());
    let mut statuses = [first?.0, second?.0];
    statuses.sort_unstable();
    ensure!(statuses == [StatusCode::OK, StatusCode::TOO_MANY_REQUESTS], "graded twice at once: {statuses:?}");
    for visitor in ["short", "with spaces, and long enough"] {
        let (status, refused) = visit(0, Some(visitor), Method::GET, "/mine", Value::Null).await?;
        ensure!(status == StatusCode::BAD_REQUEST && refused["field"] == "x-visitor", "{status} {refused}");
    }
    labs::forget_visitors(&lab).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}
