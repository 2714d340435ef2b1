//! `/mine`: a lock of one's own, as three scripts: read it, keep it, grade it. `/check/lock/mine` sells with it.

use super::replays::check_replays_and_own_locks_enabled;
use crate::http::routes::prelude::*;
use crate::{
    own_lock::{self, Grade, Scripts},
    stock,
};
use oversell_lock::local::Mutexes;

/// The most gradings at once, each of which is a load and measures times; others wait.
const MAX_GRADINGS: usize = 2;

/// The scripts, and those of the course to begin with.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct OwnLock {
    scripts: Scripts,
    /// The product that `/check/lock/mine` sells to this visitor.
    #[schema(example = 1)]
    stock_id: i64,
    /// The course's own locks.
    stages: Vec<ScriptStage>,
}

/// One of the course's own locks, as scripts.
#[derive(Debug, Serialize, ToSchema)]
struct ScriptStage {
    /// The section that it is from.
    #[schema(example = "2.1")]
    section: &'static str,
    scripts: Scripts,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct GradeBody {
    /// The graded scripts.
    scripts: Scripts,
    grades: Vec<Grade>,
}

/// The permits of the gradings at once, for which others wait.
type GradingPermits = Permits<GradeBody, MAX_GRADINGS>;

/// The scripts with which `/check/lock/mine` sells to this visitor: those that it kept last, at first those of §2.1.
#[utoipa::path(get, path = "/mine", tag = "replays", params(Visitor),
    responses(
        (status = 200, description = "The scripts", body = OwnLock),
        (status = 403, description = "Replays are not enabled here"),
    ))]
pub(in crate::http) async fn read(visitor: Visitor, State(app): State<AppState>) -> Result<axum::Json<OwnLock>, Error> {
    check_replays_and_own_locks_enabled(&app)?;
    let scripts = stock::current_scripts(&app.ctx, visitor.id()).await?;
    let stages = stock::stages().map(|(section, scripts)| ScriptStage { section, scripts });
    let stages = stages.collect();
    let stock_id = match visitor.has_id() {
        true => own_lock::product_of(visitor.id()),
        false => 1,
    };
    Ok(axum::Json(OwnLock { scripts, stock_id, stages }))
}

/// Keeps the visitor's scripts for all instances. Each must end by itself and touch no key but its own; a script that breaks
/// a rule is refused by its name, and nothing is kept.
#[utoipa::path(put, path = "/mine", tag = "replays", request_body = Scripts, params(Visitor),
    responses(
        (status = 200, description = "They are kept", body = Scripts),
        (status = 403, description = "Replays are not enabled here"),
    ))]
pub(in crate::http) async fn store_scripts(
    visitor: Visitor,
    State(app): State<AppState>,
    Json(scripts): Json<Scripts>,
) -> Result<axum::Json<Scripts>, Error> {
    check_replays_and_own_locks_enabled(&app)?;
    scripts.store(&app.ctx, visitor.id()).await?;
    Ok(axum::Json(scripts))
}

/// Grades the scripts that the visitor keeps, on keys of its own: about two seconds, after those that came before.
#[utoipa::path(post, path = "/mine/grade", tag = "replays", params(Visitor),
    responses(
        (status = 200, description = "Each grade, with what was seen; of a failure the race", body = GradeBody),
        (status = 403, description = "Replays are not enabled here"),
        (status = 429, description = "This visitor's lock is being graded"),
    ))]
pub(in crate::http) async fn grade(
    visitor: Visitor,
    State(app): State<AppState>,
    InstanceState(gradings): InstanceState<GradingPermits>,
) -> Result<axum::Json<GradeBody>, Error> {
    check_replays_and_own_locks_enabled(&app)?;
    let alone = app.ctx.local.of::<Mutexes<Visitor>>().lock(&visitor, Duration::ZERO).await;
    let alone = alone.ok_or_else(|| Error::too_many("gradings of one visitor", 1))?;
    // Whoever hangs up here gives the place up.
    let place = Arc::clone(&gradings.0).acquire_owned().await.map_err(|_| Error::Overloaded("gradings"))?;
    let ctx = app.ctx.clone();
    // In a task of its own: a client that hangs up leaves no keys.
    let graded = app.ctx.tasks.spawn(async move {
        let _until_graded = (place, alone);
        let scripts = stock::current_scripts(&ctx, visitor.id()).await?;
        let grades = own_lock::grade(&ctx, &scripts).await?;
        Ok(axum::Json(GradeBody { scripts, grades }))
    });
    graded.await.map_err(|error| crate::error::Error::Internal(error.to_string()))?
}
