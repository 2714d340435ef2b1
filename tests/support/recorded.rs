//! Recorded replays (`tests/pages/*.json`), told one event after the other as a test allows it, in front of a real instance,
//! which answers all else: the page, its policy, the lessons and their sources.

use crate::{buyers::text, program};
use axum::{
    Json, Router,
    body::{Body, Bytes},
    extract::{OriginalUri, Path, Query, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use futures::{StreamExt, stream};
use oversell::lab::{Lab, Options, Part};
use serde::Deserialize;
use serde_json::{Value, json};
use std::{
    collections::HashMap,
    convert::Infallible,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

/// One race as it was recorded: what it is, and how it went with its flaw and with its cure.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Recorded {
    pub(crate) replay: Value,
    flaw: Course,
    cure: Course,
}

#[derive(Debug, Clone, Deserialize)]
struct Course {
    done: Value,
    events: Vec<Value>,
}

/// The recorded races by their lesson.
pub(crate) fn recorded() -> Result<Vec<(String, Recorded)>, String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/pages");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .map_err(text)?
        .map(|file| file.map(|f| f.path()))
        .collect::<Result<_, _>>()
        .map_err(text)?;
    files.sort();
    files
        .into_iter()
        .map(|file| {
            let recorded = serde_json::from_str(&std::fs::read_to_string(&file).map_err(text)?)
                .map_err(text)?;
            Ok((
                file.file_stem()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned(),
                recorded,
            ))
        })
        .collect()
}

/// A page to visit, with replays that go as far as they may.
pub(crate) struct Stage {
    pub(crate) url: String,
    pub(crate) lessons: Vec<String>,
    may: watch::Sender<usize>,
    served: JoinHandle<()>,
    lab: Lab,
}

#[derive(Clone)]
struct Served {
    races: Arc<Vec<(String, Recorded)>>,
    may: watch::Receiver<usize>,
    instance: String,
    client: reqwest::Client,
    sold: Arc<AtomicI64>,
}

impl Stage {
    pub(crate) async fn start() -> Result<Self, String> {
        let options = Options {
            without: vec![Part::MySql, Part::Redis, Part::ZooKeeper, Part::Nginx],
            instance_ports: vec![0],
            redis_ports: vec![0],
            ..program()
        };
        let lab = Lab::start(options).await.map_err(text)?;
        let (may, allowed) = watch::channel(usize::MAX);
        let races = Arc::new(recorded()?);
        let lessons = races.iter().map(|(lesson, _)| lesson.clone()).collect();
        let instance = lab.addresses().instances[0].url.clone();
        let served = Served {
            races,
            may: allowed,
            instance,
            client: reqwest::Client::new(),
            sold: Arc::default(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(text)?;
        let url = format!("http://{}", listener.local_addr().map_err(text)?);
        let app = Router::new()
            .route("/replays", get(list))
            .route("/replays/{lesson}", post(play))
            .route("/replays/{lesson}/{course}/events", get(events))
            .route("/check/lock/{strategy}", post(sell))
            .route("/instances/{name}/check/lock/{strategy}", post(sell))
            .fallback(forward)
            .with_state(served);
        let served = tokio::spawn(async move { drop(axum::serve(listener, app).await) });
        Ok(Self {
            url,
            lessons,
            may,
            served,
            lab,
        })
    }

    /// From now on a replay tells so many events, and waits.
    pub(crate) fn tells(&self, events: usize) {
        self.may.send_replace(events);
    }

    /// From now on a replay tells all that it has.
    pub(crate) fn tells_all(&self) {
        self.tells(usize::MAX);
    }

    pub(crate) async fn stop(self) {
        self.served.abort();
        self.lab.stop().await;
    }
}

/// How many events this race has up to and with the first for which `is` holds.
pub(crate) fn up_to(lesson: &str, is: impl Fn(&Value) -> bool) -> Result<usize, String> {
    let races = recorded()?;
    let (_, race) = races
        .iter()
        .find(|(name, _)| name == lesson)
        .ok_or("no such race")?;
    race.flaw
        .events
        .iter()
        .position(is)
        .map(|n| n + 1)
        .ok_or("no such event".into())
}

async fn list(State(served): State<Served>) -> Json<Value> {
    let replays: Vec<_> = served.races.iter().map(|(_, race)| &race.replay).collect();
    Json(json!({ "enabled": true, "replays": replays }))
}

async fn play(
    Path(lesson): Path<String>,
    Query(query): Query<HashMap<String, String>>,
) -> Response {
    let course = if query.get("cured").is_some_and(|cured| cured == "true") {
        "cure"
    } else {
        "flaw"
    };
    let id = format!("{lesson}/{course}");
    (
        StatusCode::ACCEPTED,
        Json(json!({ "id": id, "state": "running", "events": format!("/replays/{id}/events") })),
    )
        .into_response()
}

async fn events(
    State(served): State<Served>,
    Path((lesson, course)): Path<(String, String)>,
) -> Response {
    let Some((_, race)) = served.races.iter().find(|(name, _)| *name == lesson) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let course = if course == "cure" {
        &race.cure
    } else {
        &race.flaw
    };
    let mut told: Vec<String> = course
        .events
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .collect();
    told.push(format!("event: done\ndata: {}\n\n", course.done));
    let may = served.may.clone();
    let told = stream::iter(told.into_iter().enumerate()).then(move |(n, event)| {
        let mut may = may.clone();
        async move {
            // Where the test is over, all is told.
            drop(may.wait_for(|may| n < *may).await);
            Ok::<_, Infallible>(event)
        }
    });
    (
        [("content-type", "text/event-stream")],
        Body::from_stream(told),
    )
        .into_response()
}

/// The one who comes second to a lock waits for the first; without one, both are told of the same piece.
async fn sell(
    State(served): State<Served>,
    Path(of): Path<HashMap<String, String>>,
) -> Json<Value> {
    let before = served.sold.fetch_add(1, Ordering::Relaxed) % 2;
    let (waited_ms, remaining) = if of
        .get("strategy")
        .is_some_and(|strategy| strategy == "none")
    {
        (0, 4999)
    } else {
        (200 * before, 4999 - before)
    };
    Json(
        json!({ "outcome": "sold", "remaining": remaining, "waited_ms": waited_ms, "held_ms": 200 }),
    )
}

/// Everything else is the instance's.
async fn forward(
    State(served): State<Served>,
    OriginalUri(uri): OriginalUri,
    method: axum::http::Method,
    body: Bytes,
) -> Response {
    let sent = served
        .client
        .request(method, format!("{}{uri}", served.instance))
        .body(body)
        .send()
        .await;
    match sent {
        Ok(answer) => {
            let (status, headers) = (answer.status(), answer.headers().clone());
            let mut response = (status, answer.bytes().await.unwrap_or_default()).into_response();
            *response.headers_mut() = headers;
            response
        }
        Err(_) => StatusCode::BAD_GATEWAY.into_response(),
    }
}
