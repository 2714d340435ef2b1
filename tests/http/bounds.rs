//! What one client can do to the others, tried.

use crate::support::{
    http::{answer, client},
    labs, *,
};
use futures::future::join_all;
use oversell::claims;
use oversell_lab::lab::Lab;
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
    wait_until("the other shells have ended", async || {
        Ok(stays.is_finished() || (1..=of_one).contains(&sleepers(&marked)))
    })
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
    wait_until("a place is free again", || async { Ok(start(MAX_WAITING, 10).await?.0 == StatusCode::ACCEPTED) })
        .await?;
    lab.stop().await;
    Ok(())
}
