//! `/classroom/visits`: several people at once, by one button. A browser keeps at most six connections to one host, so a page
//! alone cannot let ten wait.
//!
//! 1. The instances that live are asked for; each name is a request of its own, sent to them in turn, as nginx would.
//! 2. The answer does not wait for what comes of them.
//!
//! **What breaks it**: they end with this instance, as phones do whose room loses its network.

use crate::http::routes::prelude::*;
use futures::future::join_all;
use oversell_lab::clients::http_client::{Ask, client};
use std::{
    collections::BTreeSet,
    sync::atomic::{AtomicUsize, Ordering},
};
use utoipa::openapi::{ObjectBuilder, Schema, Type};

/// The most visits under way that this instance has sent: enough for four requests with the most names. Each holds a
/// connection.
const MAX_VISITS_UNDER_WAY: usize = 120;

/// Time limit of the liveness check: a killed one is known at once, and a slow one must not be left out.
const LIVE_TIMEOUT: Duration = Duration::from_secs(3);

/// The permits of the visits that this instance sends.
#[derive(Debug, Default)]
pub(in crate::http) struct SentVisits {
    /// How many more may be under way.
    permits: Permits<Self, MAX_VISITS_UNDER_WAY>,
    /// Chooses the instances in turn.
    turn: AtomicUsize,
}

/// People to send to a lesson.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct VisitRequest {
    /// A route that a lesson of `GET /course` lets people try.
    #[garde(custom(check_visit_exists))]
    #[schema(schema_with = one_of_the_visits)]
    visit: String,
    /// Each of them comes once.
    #[garde(length(min = 1, max = 30), dive)]
    #[schema(min_items = 1, max_items = 30)]
    names: Vec<Who>,
    /// How long each stays, in milliseconds, instead of the route's own time.
    #[garde(dive)]
    #[schema(inline)]
    hold_ms: Option<HoldMs>,
    /// The longest wait, in milliseconds, instead of the route's own.
    #[garde(dive)]
    #[schema(inline)]
    wait_ms: Option<WaitMs>,
    /// The lease, in milliseconds, if the route has one.
    #[garde(dive)]
    #[schema(inline)]
    lease_ms: Option<LeaseMs>,
    /// How many meet, at the double barrier.
    #[garde(dive)]
    #[schema(inline)]
    members: Option<BoundedInteger<1, 1000>>,
    /// The member that leaves the double barrier.
    #[garde(skip)]
    member: Option<Uuid>,
}

/// The routes that lessons let people try.
fn visits() -> BTreeSet<&'static str> {
    let tries = claims::lessons().flat_map(|lesson| &lesson.r#try).filter_map(|path| path.split('?').next());
    tries.filter(|path| path.starts_with("/test/")).collect()
}

fn one_of_the_visits() -> Schema {
    let one = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(visits()));
    one.examples(["/test/semaphore"]).into()
}

fn check_visit_exists(visit: &str, (): &()) -> garde::Result {
    let known: Vec<_> = visits().into_iter().collect();
    require(known.contains(&visit), format_args!("must be one of {}", known.join(", ")))
}

impl VisitRequest {
    /// The query of each visit, but for `who`; without what the request leaves to the route.
    fn terms(&self) -> Vec<(&'static str, String)> {
        let terms = [
            ("hold_ms", self.hold_ms.map(BoundedInteger::get)),
            ("wait_ms", self.wait_ms.map(BoundedInteger::get)),
            ("lease_ms", self.lease_ms.map(BoundedInteger::get)),
            ("members", self.members.map(BoundedInteger::get)),
        ];
        let terms = terms.into_iter().filter_map(|(name, value)| Some((name, value?.to_string())));
        let member = self.member.map(|member| ("member", member.to_string()));
        terms.chain(member).collect()
    }
}

/// Sends people to a lesson, each on a request of its own.
#[utoipa::path(post, path = "/classroom/visits", tag = "classroom", request_body = VisitRequest,
    responses((status = 202, description = "They are on their way: `GET /classroom/events` tells of each")))]
pub(in crate::http) async fn send_visits(
    State(app): State<AppState>,
    InstanceState(sent): InstanceState<SentVisits>,
    Json(visits): Json<VisitRequest>,
) -> Result<StatusCode, Error> {
    let wanted = u32::try_from(visits.names.len()).unwrap_or(u32::MAX);
    let mut permits = Arc::clone(&sent.permits.0).try_acquire_many_owned(wanted).map_err(|_| Error::ClassFull {
        under_way: MAX_VISITS_UNDER_WAY.saturating_sub(sent.permits.0.available_permits()),
        most: MAX_VISITS_UNDER_WAY,
    })?;
    let instances = live_instances(&app).await;
    let limit = Duration::from_millis(app.ctx.config.server.request_timeout_ms);
    let terms = visits.terms();
    for name in &visits.names {
        let turn = sent.turn.fetch_add(1, Ordering::Relaxed) % instances.len();
        let at = format!("{}{}", instances[turn].trim_end_matches('/'), visits.visit);
        let request = client().get(at).query(&[("who", name)]).query(&terms);
        let (stopping, permit) = (app.stopping.clone(), permits.split(1));
        app.ctx.tasks.spawn(async move {
            // The events of the lesson show the result.
            let visit = request.timeout(limit).answer();
            drop(stopping.run_until_cancelled(visit).await);
            drop(permit);
        });
    }
    Ok(StatusCode::ACCEPTED)
}

/// The addresses of the instances of the cluster that live, or that of this one if none does.
async fn live_instances(app: &AppState) -> Vec<String> {
    let asked = app.ctx.config.cluster.instances.iter().map(async |url| {
        let live = client().get(format!("{}/health/live", url.trim_end_matches('/')));
        let answer = live.timeout(LIVE_TIMEOUT).answer().await.ok()?;
        answer.status.is_success().then(|| url.clone())
    });
    let living: Vec<_> = join_all(asked).await.into_iter().flatten().collect();
    match living.is_empty() {
        true => vec![app.own_address()],
        false => living,
    }
}
