//! The class page: one stream with the events of three instances, and people sent by one button.

use crate::support::{
    http::{ask, ask_json, new_client},
    labs::query_redis,
    *,
};
use futures::{StreamExt, future::try_join_all};
use oversell::visits::{VisitEvent, VisitEventKind};
use oversell_lab::{
    clients::http_client::{self, Ask},
    lab::{Lab, Options, Part},
};
use parking_lot::Mutex;
use reqwest::StatusCode;
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// A client of the event stream, with the events it received.
pub(crate) struct Watcher {
    told: Arc<Mutex<Vec<VisitEvent>>>,
    reading: JoinHandle<()>,
}

impl Watcher {
    pub(crate) async fn of(base: &str) -> Result<Self> {
        let asked = http_client::client().get(format!("{base}/classroom/events"));
        let mut events = asked.events(TEST_WAIT_LIMIT).await?;
        let told = Arc::<Mutex<Vec<VisitEvent>>>::default();
        let list = Arc::clone(&told);
        let reading = tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                if let Ok(event) = serde_json::from_str(&event.data) {
                    list.lock().push(event);
                }
            }
        });
        Ok(Self { told, reading })
    }

    async fn wait_until_received(&self, what: &str, so: impl Fn(&Self) -> bool) -> Result<()> {
        wait_until(what, || async { Ok(so(self)) }).await
    }

    fn count(&self, event: VisitEventKind) -> usize {
        let told = self.told.lock();
        told.iter().filter(|told| told.event == event).count()
    }

    fn people(&self) -> BTreeSet<String> {
        let told = self.told.lock();
        told.iter().filter_map(|told| told.actor.clone()).collect()
    }

    /// The last event of each visit.
    fn ends(&self) -> BTreeMap<Uuid, VisitEventKind> {
        self.told.lock().iter().filter_map(|told| Some((told.visit?, told.event))).collect()
    }

    fn instances(&self, event: VisitEventKind) -> BTreeSet<String> {
        let told = self.told.lock();
        told.iter().filter(|told| told.event == event).map(|told| told.instance.clone()).collect()
    }

    /// The largest number of people inside at once.
    fn max_inside_at_once(&self) -> usize {
        let mut steps = BTreeMap::<u64, isize>::new();
        for told in self.told.lock().iter() {
            let step = match told.event {
                VisitEventKind::Locked => 1,
                VisitEventKind::Released => -1,
                _ => 0,
            };
            *steps.entry(told.t_us).or_default() += step;
        }
        let inside = steps.values().scan(0, |inside, step| {
            *inside += step;
            Some(*inside)
        });
        usize::try_from(inside.max().unwrap_or_default()).unwrap_or_default()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

/// Sends these people; returns the answer.
async fn send(base: &str, body: &Value) -> Result<(StatusCode, Value)> {
    let answer = new_client().post(format!("{base}/classroom/visits")).json(body);
    let answer = answer.header("accept", "application/json").send().await?;
    Ok((answer.status(), answer.json().await.unwrap_or_default()))
}

/// Sends these people, who must be accepted.
async fn send_accepted(base: &str, people: &Value) -> Result<()> {
    let (status, body) = send(base, people).await?;
    ensure!(status == StatusCode::ACCEPTED, "{status} {body}");
    Ok(())
}

fn people(visit: &str, many: usize, hold_ms: u64) -> Value {
    let names: Vec<_> = (1..=many).map(|n| format!("同学 {n}")).collect();
    json!({ "visit": visit, "names": names, "hold_ms": hold_ms })
}

async fn with_lab(test: impl AsyncFnOnce(&mut Lab) -> Result<()>) -> Result<()> {
    let options = Options { without: vec![Part::ZooKeeper, Part::MySql], redis_ports: vec![0], ..program() };
    let mut lab = Lab::start(options).await?;
    let outcome = test(&mut lab).await;
    lab.stop().await;
    outcome
}

/// Three instances, ten people, three permits. The twin: with a fourth permit, four are inside at once.
#[apply(test!)]
async fn a_class_sees_the_visits_of_all_instances_in_one_stream() -> Result<()> {
    with_lab(async |lab: &mut Lab| {
        let base = lab.addresses().instances[0].url.clone();
        let base = &base;
        let early = Watcher::of(base).await?;
        early.wait_until_received("all three are there", |told| told.instances(VisitEventKind::Up).len() == 3).await?;

        for permits in [3, 4] {
            if permits == 4 {
                query_redis::<i64>(lab, "INCR", "semaphore").await?;
            }
            let before = early.count(VisitEventKind::Released);
            send_accepted(base, &people("/test/semaphore", 10, 300)).await?;
            early
                .wait_until_received("ten have left", |told| told.count(VisitEventKind::Released) >= before + 10)
                .await?;
            ensure!(early.max_inside_at_once() == permits, "{permits} permits: {}", early.max_inside_at_once());
        }
        ensure!(early.instances(VisitEventKind::Start).len() == 3, "not by all instances");
        // Events are sent before a visitor leaves, so what is printed inside is seen inside.
        ensure!(early.count(VisitEventKind::Said) == 40, "{} lines", early.count(VisitEventKind::Said));
        let ends = early.ends();
        ensure!(ends.values().all(|end| *end == VisitEventKind::Released), "{ends:?}");

        // A leave is announced before the permit is returned, and does not wait for a slow server.
        let last = Mutex::new(Value::Null);
        let wanted = json!({ "semaphore": 4, "latch": 0, "barrier": null });
        let objects = wait_until("every permit is back", || async {
            let objects = ask_json(format!("{base}/classroom/objects")).await?;
            let all = objects == wanted;
            *last.lock() = objects;
            Ok(all)
        });
        objects.await.with_context(|| format!("the servers have {}", last.lock()))?;

        // A watcher that connects later, to another instance, sees the same.
        let late = Watcher::of(&lab.addresses().instances[1].url).await?;
        late.wait_until_received("the late one has seen it all", |told| told.count(VisitEventKind::Released) == 20)
            .await?;
        let names = late.people();
        ensure!(names.len() == 10 && names.contains("同学 7"), "{names:?}");

        // A killed instance is reported as down and the others go on; restarted, it is reported as up.
        let killed = lab.addresses().instances[2].name.clone();
        let killed = &killed;
        lab.kill(killed).await?;
        early
            .wait_until_received("it is told as down", |told| told.instances(VisitEventKind::Down).contains(killed))
            .await?;
        let before = early.count(VisitEventKind::Released);
        // No person is sent to a dead instance.
        send_accepted(base, &people("/test/semaphore", 3, 0)).await?;
        early
            .wait_until_received("the others go on", |told| told.count(VisitEventKind::Released) == before + 3)
            .await?;
        let ups = early.count(VisitEventKind::Up);
        lab.restart(killed).await?;
        early.wait_until_received("it is back", |told| told.count(VisitEventKind::Up) > ups).await
    })
    .await
}

/// Thirty phones behind nginx, each with a stream and a visit: each sees all thirty, at most three of them inside.
#[apply(test!)]
async fn thirty_phones_see_each_other_and_three_at_a_time() -> Result<()> {
    const CLASS: usize = 30;
    with_lab(async |lab: &mut Lab| {
        let base = &lab.addresses().http;
        let phones = try_join_all((0..CLASS).map(|_| Watcher::of(base))).await?;
        let visits = (0..CLASS).map(|n| {
            let url = format!("{base}/test/semaphore?hold_ms=100&who=%E5%90%8C%E5%AD%A6{n}");
            ask(url)
        });
        for (status, said) in try_join_all(visits).await? {
            ensure!(status == StatusCode::OK, "{status} {said}");
        }
        for phone in &phones {
            phone
                .wait_until_received("it is told of all", |told| told.count(VisitEventKind::Released) == CLASS)
                .await?;
            let names = phone.people();
            let (people, inside) = (names.len(), phone.max_inside_at_once());
            ensure!((people, inside) == (CLASS, 3), "{people} people, {inside} inside at once");
        }
        Ok(())
    })
    .await
}

/// A refusal names field and rule; more people than the room holds are refused.
#[apply(test!)]
async fn people_who_cannot_be_sent_are_refused_by_field_and_rule() -> Result<()> {
    with_lab(async |lab| {
        let base = &lab.addresses().http;
        let good = json!({ "visit": "/test/semaphore", "names": ["甲"] });
        for (change, value, field) in [
            ("visit", json!("/stock"), "visit"),
            ("visit", json!("/test/../stock"), "visit"),
            ("names", json!([]), "names"),
            ("names", json!(vec!["甲"; 31]), "names"),
            ("names", json!(["甲", "a\nb"]), "names[1]"),
            ("hold_ms", json!(60001), "hold_ms"),
            ("member", json!("x"), "member"),
            ("names", Value::Null, "names"),
        ] {
            let mut body = good.clone();
            body[change] = value;
            // A null field counts as missing.
            let fields = body.as_object_mut().context("no object")?;
            fields.retain(|_, value| !value.is_null());
            let (status, answer) = send(base, &body).await?;
            let named =
                answer["field"] == field && answer["detail"].as_str().is_some_and(|d| d.len() > field.len() + 10);
            ensure!(status == StatusCode::BAD_REQUEST && named, "{body}: {status} {answer}");
        }
        let asked = format!("{base}/classroom/qr.svg?url=javascript:1");
        let status = new_client().get(asked).send().await?.status();
        ensure!(status == StatusCode::BAD_REQUEST, "a code of anything: {status}");

        // The monitors wait for six people who do not come.
        let one = &lab.addresses().instances[0].url;
        let mut sent = 0;
        let refused = loop {
            let (status, answer) = send(one, &people("/test/latch", 30, 0)).await?;
            if status != StatusCode::ACCEPTED || sent > 1000 {
                break (status, answer);
            }
            sent += 30;
        };
        let full = refused.1["type"] == "urn:oversell:class-full" && sent == 120;
        ensure!(full && refused.0 == StatusCode::SERVICE_UNAVAILABLE, "after {sent}: {refused:?}");
        Ok(())
    })
    .await
}
