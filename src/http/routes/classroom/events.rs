//! `/classroom/events`: what is seen of the visits, on all instances in one stream.
//!
//! 1. Each instance of `cluster.instances` is asked for its own; each begins with what was before.
//! 2. One that does not answer any more is told as down, and asked again until it is back; then it tells all of its own anew.
//!
//! **What breaks it**: an instance that falls silent without closing its connection says nothing, and is not told as down.

use crate::http::routes::prelude::*;
use crate::{
    clients::http_client::{Ask, client},
    http::sse,
    visits::{VisitEvent, VisitEventKind},
};
use async_stream::stream;
use axum::response::sse::Event;
use futures::{Stream, StreamExt, stream::select_all};
use tokio::sync::Semaphore;

/// A slow instance must not be left out.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Each watcher has a stream to every other instance.
const MAX_WATCHERS: usize = 300;
/// A restarted instance is seen within a second.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The watchers of this instance.
pub(in crate::http) struct Watchers(Arc<Semaphore>);

impl Default for Watchers {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_WATCHERS)))
    }
}

/// Which visits to watch.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct WatchQuery {
    /// Only those of the instance that answers.
    #[serde(default)]
    #[garde(skip)]
    #[param(default = false)]
    own: bool,
}

/// Watches the lessons: recent events first, then each as it happens. Events may repeat if an instance was away.
#[utoipa::path(get, path = "/classroom/events", tag = "classroom", params(WatchQuery),
    responses((status = 200, description = "Server-sent events", body = VisitEvent, content_type = "text/event-stream")))]
pub(in crate::http) async fn events(
    State(app): State<AppState>,
    Own(watchers): Own<Watchers>,
    Query(whose): Query<WatchQuery>,
) -> Result<Response, Error> {
    let permit = Arc::clone(&watchers.0).try_acquire_owned();
    let permit = permit.map_err(|_| Error::Overloaded)?;
    let instances = &app.ctx.config.cluster.instances;
    let seen = match whose.own || instances.is_empty() {
        true => own(&app).boxed(),
        false => select_all(instances.iter().map(|url| of(url).boxed())).boxed(),
    };
    let seen = seen.map(move |event| {
        let _until_it_ends = &permit;
        Event::default().json_data(event)
    });
    Ok(sse::response(&app, seen))
}

fn own(app: &AppState) -> impl Stream<Item = VisitEvent> + Send + use<> {
    let (kept, mut told) = app.visits.watch();
    stream! {
        for event in kept {
            yield event;
        }
        // A watcher that has missed something begins anew: its connection ends, and it asks again.
        while let Ok(event) = told.recv().await {
            yield event;
        }
    }
}

/// Another instance, followed for as long as somebody watches.
fn of(url: &str) -> impl Stream<Item = VisitEvent> + Send + use<> {
    let url = format!("{}/classroom/events?own=true", url.trim_end_matches('/'));
    stream! {
        // Its name, as long as it is not told as down.
        let mut name: Option<String> = None;
        loop {
            let Ok(mut events) = client().get(&url).events(CONNECT_TIMEOUT).await else {
                match name.take() {
                    Some(name) => yield VisitEvent::of_instance(&name, VisitEventKind::Down),
                    None => tokio::time::sleep(RETRY_INTERVAL).await,
                }
                continue;
            };
            while let Some(Ok(event)) = events.next().await {
                if let Ok(event) = serde_json::from_str::<VisitEvent>(&event.data) {
                    name = Some(event.instance.clone());
                    yield event;
                }
            }
        }
    }
}
