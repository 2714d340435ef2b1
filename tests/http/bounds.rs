//! What one client can do to the others, tried.

use crate::support::{
    http::{answer, ask, ask_json, client, elements},
    labs,
    leftovers::ensure_nothing_is_left,
    *,
};
use futures::{
    future::join_all,
    stream::{self, StreamExt, TryStreamExt},
};
use oversell::claims;
use oversell_lab::{
    clients::{four_letters::four_letter_command, redis_at::redis_at},
    lab::Lab,
};
use reqwest::StatusCode;
use serde_json::json;
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};

/// The processes whose environment names this lab's main Redis and that are shells' children: those of typed lines.
fn sleepers(marked: &str) -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|process| {
        let line = std::fs::read(process.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).into_owned())
    });
    lines.filter(|line| line.contains(marked)).count()
}

/// A line that stays inside for five seconds, as a request and as its processes name it.
fn long_line(lab: &Lab) -> Result<(String, String)> {
    let (lesson, number) = ("1.1", 2);
    let line = &claims::find(lesson).context("a lesson")?.by_hand[number - 1];
    ensure!(line.run.contains("hold_ms=5000"), "{}", line.run);
    let at = lab.addresses();
    Ok((
        format!("{}/classroom/lines/{lesson}/{number}", at.http),
        format!("{}/check/lock/none?hold_ms=5000", at.instances[0].url),
    ))
}

/// Its shells would outlive that of a client that began before and stays.
#[apply(test!)]
async fn a_typed_line_ends_with_its_client() -> Result<()> {
    let lab = labs::full_lab().await?;
    let (line, marked) = long_line(&lab)?;
    let type_line = || client().post(&line);
    let stays = tokio::spawn(answer(type_line()));
    wait_until("its line runs", async || Ok(sleepers(&marked) > 0)).await?;
    // The shell may still start its program.
    let of_one = 3;
    let hung_up = (0..60).map(|_| type_line().timeout(Duration::from_millis(20)).send());
    join_all(hung_up).await;
    wait_until("the other shells have ended", async || Ok(stays.is_finished() || (1..=of_one).contains(&sleepers(&marked))))
        .await?;
    ensure!(!stays.is_finished(), "they outlive their clients");
    let (status, words) = stays.await??;
    ensure!(status == StatusCode::OK, "{status} {words}");
    let (status, words) = answer(type_line()).await?;
    ensure!(status == StatusCode::OK, "the places are not free again: {status} {words}");
    labs::keep_for_next_test(lab);
    Ok(())
}

#[apply(test!)]
async fn no_more_lines_run_at_once_than_places() -> Result<()> {
    let lab = labs::full_lab().await?;
    let (line, _) = long_line(&lab)?;
    let all = join_all((0..60).map(|_| answer(client().post(&line)))).await;
    let all = all.into_iter().collect::<Result<Vec<_>>>()?;
    let count = |of| all.iter().filter(|(status, _)| *status == of).count();
    let (ran, refused) = (count(StatusCode::OK), count(StatusCode::SERVICE_UNAVAILABLE));
    ensure!(ran >= 16 && refused > 0 && ran + refused == 60, "{ran} ran, {refused} were refused");
    labs::keep_for_next_test(lab);
    Ok(())
}

#[apply(test!)]
async fn no_page_starts_a_lab() -> Result<()> {
    let lab = labs::full_lab().await?;
    let http = &lab.addresses().http;
    let lessons = claims::ALL.iter().flat_map(|chapter| &chapter.lessons);
    let own = lessons.filter(|lesson| lesson.by_hand.iter().any(|line| line.run.contains("oversell lab --")));
    let mut refused = 0;
    for lesson in own {
        let line = client().post(format!("{http}/classroom/lines/{}/1", lesson.id));
        let (status, words) = answer(line.header("accept", "application/json")).await?;
        ensure!(
            status == StatusCode::CONFLICT && words.contains("terminal") && words.contains("oversell lab --"),
            "{}: {status} {words}",
            lesson.id
        );
        refused += 1;
    }
    ensure!(refused > 10, "only {refused} lessons start a lab");
    labs::keep_for_next_test(lab);
    Ok(())
}

#[apply(test!)]
async fn one_burst_at_a_time() -> Result<()> {
    let lab = labs::full_lab().await?;
    let burst = || {
        let burst = client().post(format!("{}/classroom/burst", lab.addresses().instances[0].url));
        answer(burst.json(&json!({"limit": "address"})))
    };
    let all = join_all((0..10).map(|_| burst())).await;
    let all = all.into_iter().collect::<Result<Vec<_>>>()?;
    let sent = all.iter().filter(|(status, _)| *status == StatusCode::OK).count();
    let refused = all.iter().filter(|(status, _)| *status == StatusCode::SERVICE_UNAVAILABLE).count();
    ensure!((sent, refused) == (1, 9), "{sent} bursts were sent, {refused} refused");
    let (status, words) = burst().await?;
    ensure!(status == StatusCode::OK, "{status} {words}");
    labs::keep_for_next_test(lab);
    Ok(())
}

/// A paused instance accepts and does not answer, and nginx does not count that as a failure.
#[apply(test!)]
async fn a_hung_instance_does_not_stop_the_front() -> Result<()> {
    const ANSWERS: usize = 300;
    let lab = labs::full_lab().await?;
    let http = &lab.addresses().http;
    let paused = &lab.addresses().instances[1].name;
    lab.pause(paused)?;
    let answered = AtomicUsize::new(0);
    let by = parking_lot::Mutex::new(BTreeSet::new());
    let one_client = async || {
        while answered.load(Ordering::Relaxed) < ANSWERS {
            let answer = client().get(format!("{http}/check/lock/none?wait_ms=1000")).send().await?;
            let name = answer.headers().get("x-instance").cloned();
            by.lock().insert(name.context("no name")?.to_str()?.to_owned());
            answered.fetch_add(1, Ordering::Relaxed);
        }
        anyhow::Ok(())
    };
    let clients = futures::future::select_ok((0..20).map(|_| Box::pin(one_client())));
    let went_on = tokio::time::timeout(Duration::from_secs(30), clients).await;
    lab.resume(paused)?;
    let seen = answered.load(Ordering::Relaxed);
    went_on.with_context(|| format!("the front stood still after {seen} answers"))??;
    ensure!(by.lock().len() == 2, "answered by {:?}", by.lock());
    lab.stop().await;
    Ok(())
}

/// The monitors wait for six people who do not come.
#[apply(test!)]
async fn a_class_has_room_for_so_many_visits_at_once() -> Result<()> {
    let lab = labs::full_lab().await?;
    let people: Vec<_> = (1..=30).map(|n| format!("同学 {n}")).collect();
    let send = async || {
        let visits = client().post(format!("{}/classroom/visits", lab.addresses().instances[0].url));
        let visits = visits.json(&json!({"visit": "/test/latch", "names": people, "hold_ms": 0}));
        answer(visits.header("accept", "application/json")).await
    };
    for n in 0..4 {
        let (status, words) = send().await?;
        ensure!(status == StatusCode::ACCEPTED, "{n}: {status} {words}");
    }
    let (status, words) = send().await?;
    lab.stop().await;
    ensure!(status == StatusCode::SERVICE_UNAVAILABLE && words.contains("urn:oversell:class-full"), "{status} {words}");
    Ok(())
}

/// A load that runs, one that waits, and no third; and of all visitors no more than a hundred.
#[apply(test!)]
async fn loads_of_one_visitor_and_of_all_have_a_bound() -> Result<()> {
    const MAX_WAITING: usize = 100;
    let lab = labs::full_lab().await?;
    let http = &lab.addresses().http;
    let start = async |visitor: usize, loops: u64| {
        let wanted = json!({"strategy": "redis-script", "threads": 10, "loops": loops});
        let request = client().post(format!("{http}/runs")).json(&wanted);
        let request = request.header("accept", "application/json");
        answer(request.header("x-visitor", format!("visitor-number-{visitor}"))).await
    };
    for (n, expected) in [(10_000, StatusCode::ACCEPTED), (10, StatusCode::ACCEPTED)] {
        let (status, words) = start(0, n).await?;
        ensure!(status == expected, "{status} {words}");
    }
    let (status, words) = start(0, 10).await?;
    ensure!(status == StatusCode::TOO_MANY_REQUESTS && words.contains("runs of one visitor"), "{status} {words}");
    for n in 2..MAX_WAITING {
        let (status, words) = start(n, 10).await?;
        ensure!(status == StatusCode::ACCEPTED, "{n}: {status} {words}");
    }
    let (status, words) = start(MAX_WAITING, 10).await?;
    ensure!(status == StatusCode::TOO_MANY_REQUESTS && words.contains("runs of all visitors"), "{status} {words}");
    let cleared = client().delete(format!("{http}/classroom/desk/queue"));
    ensure!(answer(cleared).await?.0 == StatusCode::OK);
    wait_until("a place is free again", || async { Ok(start(MAX_WAITING, 10).await?.0 == StatusCode::ACCEPTED) }).await?;
    lab.stop().await;
    Ok(())
}

/// The answers to each number's request, fifty at a time.
pub(super) async fn of_each<T>(count: usize, send: impl AsyncFn(usize) -> Result<T>) -> Result<Vec<T>> {
    stream::iter(0..count).map(|n| send(n)).buffer_unordered(50).try_collect().await
}

/// Sends a request as a visitor of this number, and returns status, words and `retry-after`.
async fn as_visitor(visitor: usize, request: reqwest::RequestBuilder) -> Result<(StatusCode, String, u64)> {
    let answer = request.header("x-visitor", format!("made-up-visitor-{visitor:06}")).send().await?;
    let again = answer.headers().get("retry-after").and_then(|again| again.to_str().ok()?.parse().ok());
    Ok((answer.status(), answer.text().await?, again.unwrap_or_default()))
}

/// Any client can make up visitors: what is kept of them lies apart from what sells, and has a bound that says when again.
#[apply(test!)]
async fn made_up_visitors_fill_no_server() -> Result<()> {
    const MAX_VISITORS: usize = 400;
    let lab = Lab::start(labs::short_leases()).await?;
    let http = &lab.addresses().http;
    let mut mine = redis_at(&lab.addresses().mine.as_ref().context("no Redis of theirs")?.url).await?;
    let keys = async || labs::command_redis::<i64>(&lab, &["DBSIZE"]).await;
    let before = keys().await?;
    let scripts = json!({"acquire": format!("return 1 --{}", "x".repeat(1900)), "release": "return 1"});
    let store = async |n| as_visitor(n, client().put(format!("{http}/mine")).json(&scripts)).await;
    let sell = async |n| as_visitor(n, client().post(format!("{http}/check/lock/mine"))).await;
    for (status, words, _) in of_each(MAX_VISITORS, store).await? {
        ensure!(status == StatusCode::OK, "{status} {words}");
    }
    ensure!(keys().await? == before, "the scripts of visitors are in the Redis that sells");
    for (status, words, again) in [store(MAX_VISITORS).await?, sell(MAX_VISITORS).await?] {
        ensure!(
            status == StatusCode::TOO_MANY_REQUESTS && words.contains("400 visitors") && (100..=601).contains(&again),
            "{status} {words} {again}"
        );
    }
    for n in [0, 7] {
        let (status, words, _) = sell(n).await?;
        ensure!(status == StatusCode::OK, "a visitor who is there: {status} {words}");
    }
    ensure!(keys().await? == before + 2, "a product for each who sells");
    // Visitor 7 has not come for an hour.
    let hour_ago = chrono::Utc::now().timestamp_millis() - 3_600_000;
    let mut left = redis::cmd("ZADD");
    left.arg("{mine}:visitors").arg(hour_ago).arg("made-up-visitor-000007").exec_async(&mut mine).await?;
    let (status, words, _) = store(MAX_VISITORS).await?;
    ensure!(status == StatusCode::OK, "a place is free: {status} {words}");
    let kept: [i64; 2] = [
        redis::cmd("ZCARD").arg("{mine}:visitors").query_async(&mut mine).await?,
        redis::cmd("HLEN").arg("{mine}:scripts").query_async(&mut mine).await?,
    ];
    ensure!(kept == [400; 2], "{kept:?}");
    wait_until("the product of who has left is gone", async || Ok(keys().await? == before + 1)).await?;
    lab.stop().await;
    Ok(())
}

/// A lock that is held beyond its answer is bound by no connection.
#[apply(test!)]
async fn locks_held_after_their_answers_have_a_bound() -> Result<()> {
    const MAX_HELD: usize = 500;
    let lab = Lab::start(labs::short_leases()).await?;
    let paths = ["/test/read?lease_ms=600000", "/test/zk/read?hold_ms=60000"];
    for (path, instance) in paths.into_iter().zip(&lab.addresses().instances) {
        let visit = async |n, path| as_visitor(n, client().get(format!("{}{path}", instance.url))).await;
        for (status, words, _) in of_each(MAX_HELD, async |n| visit(n, path).await).await? {
            ensure!(status == StatusCode::OK, "{path}: {status} {words}");
        }
        for path in paths {
            let (status, words, again) = visit(MAX_HELD, path).await?;
            ensure!(
                status == StatusCode::TOO_MANY_REQUESTS && words.contains("500 locks held") && again > 0,
                "{path}: {status} {words} {again}"
            );
        }
    }
    lab.stop().await;
    Ok(())
}

/// Whoever is in a room may stay there, and is a node of ZooKeeper for as long. Beside other tests a thousand of them end a short session.
#[apply(soak_test!)]
async fn members_of_the_double_barrier_have_a_bound() -> Result<()> {
    const MAX_MEMBERS: usize = 1000;
    let lab = Lab::start(labs::short_leases()).await?;
    let base = &lab.addresses().instances[0].url;
    let room = async |n, what: &str| as_visitor(n, client().get(format!("{base}/test/zk/double-barrier/{what}"))).await;
    for (status, words, _) in of_each(MAX_MEMBERS, async |n| room(n, "enter?members=1").await).await? {
        ensure!(status == StatusCode::OK, "{status} {words}");
    }
    let (status, words, _) = room(MAX_MEMBERS, "enter?members=1").await?;
    ensure!(status == StatusCode::TOO_MANY_REQUESTS && words.contains("1000 members"), "{status} {words}");
    let (status, words, _) = room(0, "leave?members=1&wait_ms=0").await?;
    ensure!(status == StatusCode::SERVICE_UNAVAILABLE, "the others are inside: {status} {words}");
    let enter = async || Ok(room(MAX_MEMBERS, "enter?members=1").await?.0 == StatusCode::OK);
    wait_until("a place is free", enter).await?;
    lab.stop().await;
    Ok(())
}

/// A product that is not there leaves no key, row or node, whatever the strategy or the lesson; a student's lock may do so in
/// vain.
#[apply(test!)]
async fn a_made_up_product_leaves_nothing() -> Result<()> {
    let lab = labs::full_lab().await?;
    let (http, at) = (&lab.addresses().http, lab.addresses());
    let mut mine = redis_at(&at.mine.as_ref().context("no Redis of theirs")?.url).await?;
    let scripts = json!({"acquire": "redis.call('set', KEYS[1], 1) return 1", "release": "return 1"});
    let (status, words, _) = as_visitor(1, client().put(format!("{http}/mine")).json(&scripts)).await?;
    ensure!(status == StatusCode::OK, "{status} {words}");
    let mut seen = Vec::new();
    for _ in 0..2 {
        let strategies = ask_json(format!("{http}/strategies")).await?;
        let strategies = elements(&strategies).filter_map(|one| one["slug"].as_str());
        let lessons = [
            "semaphore",
            "read",
            "fair",
            "multi",
            "zk/read",
            "zk/semaphore",
            "zk/share/count",
            "zk/barrier/set",
            "zk/atomic/get",
        ];
        let paths = strategies.map(|slug| format!("/check/lock/{slug}"));
        for path in paths.chain(lessons.map(|lesson| format!("/test/{lesson}"))) {
            let product = 900_000_000 + seen.len();
            let (status, words, _) = as_visitor(1, client().get(format!("{http}{path}?stock_id={product}&wait_ms=1000"))).await?;
            ensure!(status == StatusCode::NOT_FOUND, "{path}: {status} {words}");
        }
        let mntr = four_letter_command(&at.zookeeper.connect, "mntr").await?;
        let nodes = mntr.lines().find_map(|line| line.strip_prefix("zk_znode_count\t")).map(str::to_owned);
        let names: i64 = redis::cmd("DBSIZE").query_async(&mut mine).await?;
        seen.push((nodes, names, labs::command_redis::<i64>(&lab, &["DBSIZE"]).await?));
    }
    ensure!(seen[0] == seen[1], "nodes, keys of students, keys: {seen:?}");
    ensure_nothing_is_left(&lab).await?;
    labs::forget_visitors(&lab).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// Whoever asks for ids asks for none of the orders'.
#[apply(test!)]
async fn orders_draw_numbers_that_no_request_uses_up() -> Result<()> {
    let lab = labs::full_lab().await?;
    let http = &lab.addresses().http;
    let voucher = json!({"title": "a", "stock": 9, "begin": "2020-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"});
    let (_, made) = answer(client().post(format!("{http}/voucher")).json(&voucher)).await?;
    let voucher = serde_json::from_str::<serde_json::Value>(&made)?["id"].to_string();
    let count = async |user: i64| {
        let order = client().post(format!("{http}/voucher-order/seckill/{voucher}")).header("x-user-id", user);
        let (status, words) = answer(order).await?;
        ensure!(status == StatusCode::OK, "{status} {words}");
        let order: serde_json::Value = serde_json::from_str(&words)?;
        let number: i64 = order["order_id"].as_str().context("no number")?.parse()?;
        Ok(number & i64::from(u32::MAX))
    };
    let first = count(1).await?;
    for prefix in ["order", "voucher-order", "by-hand"] {
        let (status, words) = ask(format!("{http}/id/{prefix}?count=1000")).await?;
        ensure!(status == StatusCode::OK, "{prefix}: {status} {words}");
    }
    let second = count(2).await?;
    ensure!(second == first + 1, "{first}, then {second}");
    labs::keep_for_next_test(lab);
    Ok(())
}
