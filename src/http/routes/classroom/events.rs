//! `/classroom/events`: what is seen of the visits, on all instances in one stream.
//!
//! 1. Each instance of `cluster.instances` is asked for its own; each begins with what was before.
//! 2. One that does not answer, or has fallen silent, is told as down, and asked again until it is back; then it tells all of its
//!    own anew.

use crate::http::routes::prelude::*;
use crate::{
    http::sse,
    visits::{VisitEvent, VisitEventKind},
};
use async_stream::stream;
use axum::response::sse::Event;
use futures::{Stream, StreamExt, stream::select_all};
use oversell_lab::clients::http_client::{Ask, client};

/// Time limit of the connection to another instance; a slow one must not be left out.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// The most watchers of this instance, each of which has a stream of every instance; one more is answered 503.
const MAX_WATCHERS: usize = 300;
/// Limit of the streams of this instance's own events, which the watchers of all instances have: a cluster has three.
const MAX_OWN_STREAMS: usize = 3 * MAX_WATCHERS;
/// How often a lost instance is tried again: a restarted one is seen within a second.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// The permits of the watchers; one for whom none is left is answered 503.
#[derive(Default)]
pub(in crate::http) struct Watchers {
    all: Permits<Self, MAX_WATCHERS>,
    /// The permits of the streams of this instance's own events, for watchers of any instance.
    own: Permits<Self, MAX_OWN_STREAMS>,
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
    InstanceState(watchers): InstanceState<Watchers>,
    Query(whose): Query<WatchQuery>,
) -> Result<Response, Error> {
    let permit = match whose.own {
        true => watchers.own.try_take(),
        false => watchers.all.try_take(),
    };
    let permit = permit.ok_or(Error::Overloaded("watchers of the lessons"))?;
    let instances = &app.ctx.config.cluster.instances;
    let seen = match whose.own || instances.is_empty() {
        true => own(&app).boxed(),
        false => select_all(instances.iter().map(|url| events_of_instance(url).boxed())).boxed(),
    };
    let seen = seen.map(move |event| {
        let _until_it_ends = &permit;
        Event::default().json_data(event)
    });
    Ok(sse::stream_response(&app, seen))
}

/// This instance's own events, the kept ones first. The stream of a watcher that has missed some ends.
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

/// The events of the instance at `url`, without end: a broken stream is opened again, and an instance that does not answer is
/// told once as down.
fn events_of_instance(url: &str) -> impl Stream<Item = VisitEvent> + Send + use<> {
    let url = url.trim_end_matches('/');
    // Until it says its name: an instance without one is called as its port.
    let mut name = url.rsplit(':').next().unwrap_or(url).to_owned();
    let address = format!("{url}/classroom/events?own=true");
    stream! {
        let mut is_down = false;
        loop {
            let Ok(mut events) = client().get(&address).events(CONNECT_TIMEOUT).await else {
                match is_down {
                    true => tokio::time::sleep(RETRY_INTERVAL).await,
                    false => yield VisitEvent::of_instance(&name, VisitEventKind::Down),
                }
                is_down = true;
                continue;
            };
            while let Some(Ok(event)) = events.next().await {
                if let Ok(event) = serde_json::from_str::<VisitEvent>(&event.data) {
                    is_down = false;
                    name.clone_from(&event.instance);
                    yield event;
                }
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }
}
