//! The teacher's desk: who is there, what waits, and where everybody is called.

use crate::support::{
    http::{answer, client, elements},
    labs, *,
};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Sends this as a visitor, and reads the JSON of the answer.
async fn ask(url: String, method: Method, visitor: &str, body: Option<Value>) -> Result<(StatusCode, Value)> {
    let mut request = client().request(method, url).header("x-visitor", visitor).header("accept", "application/json");
    if let Some(body) = body {
        request = request.json(&body);
    }
    let (status, body) = answer(request).await?;
    Ok((status, serde_json::from_str(&body).unwrap_or_default()))
}

/// One load runs and two wait. What waits ends; what runs goes on.
#[apply(test!)]
async fn the_desk_clears_the_queue_and_stops_no_run() -> Result<()> {
    let lab = labs::full_lab().await?;
    let http = &lab.addresses().http;
    let [first, second, third, teacher] = ["d", "e", "f", "t"].map(|letter| letter.repeat(16));
    for (visitor, loops) in [(&first, 10_000), (&second, 10), (&third, 10)] {
        let wanted = json!({"strategy": "redis-script", "threads": 10, "loops": loops});
        let (status, run) = ask(format!("{http}/runs"), Method::POST, visitor, Some(wanted)).await?;
        ensure!(status == StatusCode::ACCEPTED, "{status} {run}");
    }
    let here = json!({"lesson": "2.3", "who": "小明"});
    let presence = format!("{http}/classroom/presence");
    let (status, heard) = ask(presence, Method::PUT, &second, Some(here)).await?;
    ensure!(status == StatusCode::OK, "{status} {heard}");
    let (_, desk) = ask(format!("{http}/classroom/desk"), Method::GET, &teacher, None).await?;
    let waiting: Vec<_> = elements(&desk["waiting"]).map(|one| (one["what"].as_str(), one["who"].as_str())).collect();
    ensure!(waiting == [(Some("redis-script"), Some("小明")), (Some("redis-script"), None)], "{desk}");
    let queue = format!("{http}/classroom/desk/queue");
    let (status, cleared) = ask(queue, Method::DELETE, &teacher, None).await?;
    ensure!((status, &cleared["ended"]) == (StatusCode::OK, &2.into()), "{status} {cleared}");
    let current = async |visitor: &str| ask(format!("{http}/runs/current"), Method::GET, visitor, None).await;
    for visitor in [&second, &third] {
        wait_until("a place is given up", async || Ok(current(visitor).await?.1["own"] == false)).await?;
    }
    let (_, run) = current(&first).await?;
    ensure!(run["state"] == "running" && run["own"] == true, "{run}");
    let id = run["id"].as_str().unwrap_or_default();
    ask(format!("{http}/runs/{id}"), Method::DELETE, &first, None).await?;
    labs::keep_for_next_test(lab);
    Ok(())
}

/// A race that a student has played is on the desk; all who are there are called to it, and may watch it.
#[apply(test!)]
async fn everybody_is_called_to_a_students_race() -> Result<()> {
    let lab = labs::full_lab().await?;
    let http = &lab.addresses().http;
    let [student, other, teacher] = ["a", "b", "t"].map(|letter| letter.repeat(16));
    let presence = async |visitor: &str, lesson: &str| {
        let here = json!({"lesson": lesson});
        let url = format!("{http}/classroom/presence");
        Ok::<_, anyhow::Error>(ask(url, Method::PUT, visitor, Some(here)).await?.1)
    };
    presence(&student, "1.1").await?;
    let before = presence(&other, "2.1").await?;
    let start = format!("{http}/replays/1.1?pace=fast");
    let (status, race) = ask(start, Method::POST, &student, None).await?;
    ensure!(status == StatusCode::ACCEPTED, "{status} {race}");
    let desk_url = || format!("{http}/classroom/desk");
    let (_, desk) = ask(desk_url(), Method::GET, &teacher, None).await?;
    // Visitors of another test on the same lab are at another lesson.
    let shown: Vec<_> = elements(&desk["visitors"])
        .map(|one| (one["lesson"].as_str(), one["races"][0]["replays"][0]["id"].as_str()))
        .filter(|(lesson, _)| *lesson != Some("2.3"))
        .collect();
    let id = race["id"].as_str();
    ensure!(shown == [(Some("1.1"), id), (Some("2.1"), None)], "{desk}");
    for (lesson, status) in
        [("2.3", StatusCode::NOT_FOUND), ("9.9", StatusCode::NOT_FOUND), ("1.1", StatusCode::NO_CONTENT)]
    {
        let call = json!({"lesson": lesson, "replays": [id]});
        let (seen, why) = ask(desk_url(), Method::PUT, &teacher, Some(call)).await?;
        ensure!(seen == status, "{lesson}: {seen} {why}");
    }
    let call = &presence(&other, "2.1").await?["call"];
    ensure!(
        before["call"]["id"] != call["id"] && call["lesson"] == "1.1" && call["replays"][0]["id"].as_str() == id,
        "{call}"
    );
    // The same call again: a page follows it once.
    ensure!(presence(&other, "1.1").await?["call"] == *call);
    let events = format!("{http}/replays/{}/events", id.unwrap_or_default());
    let (status, events) = answer(client().get(events)).await?;
    ensure!(status == StatusCode::OK && events.contains("event: done"), "{status} {events}");
    let (_, list) = ask(format!("{http}/replays?lesson=1.1"), Method::GET, &other, None).await?;
    let playing = elements(&list["playing"]).all(|one| one["shared"] == true);
    ensure!(playing, "{list}");
    labs::keep_for_next_test(lab);
    Ok(())
}
