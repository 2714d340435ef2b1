//! `/mine`: a lock of one's own, as three scripts: read it, keep it, grade it. `/check/lock/mine` sells with it.

use super::replays::check_enabled;
use crate::http::routes::prelude::*;
use crate::{
    own_lock::{self, Grade, Scripts},
    stock,
};
use tokio::sync::Mutex;

/// The scripts, and those of the course to begin with.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Mine)]
pub(in crate::http) struct OwnLock {
    scripts: Scripts,
    /// The course's own locks.
    stages: Vec<Stage>,
}

/// One of the course's own locks, as scripts.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ScriptStage)]
struct Stage {
    /// The section that it is from.
    #[schema(example = "2.1")]
    section: &'static str,
    scripts: Scripts,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Graded)]
pub(in crate::http) struct GradeBody {
    /// The graded scripts.
    scripts: Scripts,
    grades: Vec<Grade>,
}

/// One grading at a time: it is a load, and it watches the clock.
#[derive(Default)]
pub(in crate::http) struct Grading(Mutex<()>);

/// The scripts with which `/check/lock/mine` sells: those that were kept last, at first those of §2.1.
#[utoipa::path(get, path = "/mine", tag = "replays",
    responses(
        (status = 200, description = "The scripts", body = OwnLock),
        (status = 403, description = "Replays are not enabled here"),
    ))]
pub(in crate::http) async fn read(
    State(app): State<AppState>,
) -> Result<axum::Json<OwnLock>, Error> {
    check_enabled(&app)?;
    let scripts = stock::current_scripts(&app.ctx).await?;
    let stages = stock::stages().map(|(section, scripts)| Stage { section, scripts });
    let stages = stages.collect();
    Ok(axum::Json(OwnLock { scripts, stages }))
}

/// Keeps scripts for all instances. Each must end by itself and touch no key but its own; a script that breaks a rule is refused
/// by its name, and nothing is kept.
#[utoipa::path(put, path = "/mine", tag = "replays", request_body = Scripts,
    responses(
        (status = 200, description = "They are kept", body = Scripts),
        (status = 403, description = "Replays are not enabled here"),
    ))]
pub(in crate::http) async fn keep(
    State(app): State<AppState>,
    Json(scripts): Json<Scripts>,
) -> Result<axum::Json<Scripts>, Error> {
    check_enabled(&app)?;
    scripts.store(&app.ctx).await?;
    Ok(axum::Json(scripts))
}

/// Grades the scripts that are kept, on keys of its own: about two seconds.
#[utoipa::path(post, path = "/mine/grade", tag = "replays",
    responses(
        (status = 200, description = "Each grade, with what was seen; of a failure the race", body = GradeBody),
        (status = 403, description = "Replays are not enabled here"),
    ))]
pub(in crate::http) async fn grade(
    State(app): State<AppState>,
    Own(grading): Own<Grading>,
) -> Result<axum::Json<GradeBody>, Error> {
    check_enabled(&app)?;
    let ctx = app.ctx.clone();
    // In a task of its own: a client that hangs up leaves no keys.
    let graded = app.ctx.tasks.spawn(async move {
        let Ok(_alone) = grading.0.try_lock() else {
            return Err(Error::Overloaded);
        };
        let scripts = stock::current_scripts(&ctx).await?;
        let grades = own_lock::grade(&ctx, &scripts).await?;
        Ok(axum::Json(GradeBody { scripts, grades }))
    });
    graded
        .await
        .map_err(|error| crate::error::Error::Internal(error.to_string()))?
}
