//! `/course`: every claim of the documents, what a student types to see it, and the verdicts of the last run.

use crate::http::routes::prelude::*;
use crate::{
    claims::{
        self, Chapter, Lesson, Rates, Run,
        placeholders::Placeholders,
        verdicts::{LAST_RUN, Verdicts},
    },
    ctx::Ctx,
    http::kept_verdicts::{self, LastVerdicts},
};
use oversell_lab::{addresses::LAB_JSON, terminal::bilingual::Bilingual};
use secrecy::ExposeSecret;

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Course {
    chapters: Vec<Chapter>,
}

/// Whether to leave details out.
#[derive(Debug, Default, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct DetailQuery {
    /// Less than half of it: without what a student types and why a lesson is not run, which `GET /course/{lesson}` has.
    #[serde(default)]
    #[garde(skip)]
    #[param(default = false)]
    brief: bool,
}

/// Every claim of the documents, chapter by chapter.
#[utoipa::path(get, path = "/course", tag = "course", params(DetailQuery),
    responses((status = 200, description = "The chapters and their lessons", body = Course)))]
pub(in crate::http) async fn list(
    State(app): State<AppState>,
    Query(DetailQuery { brief }): Query<DetailQuery>,
) -> axum::Json<Course> {
    let placeholders = placeholders(&app.ctx);
    let mut chapters: Vec<_> = claims::ALL.iter().map(|chapter| placeholders.fill_chapter(chapter)).collect();
    if brief {
        for lesson in chapters.iter_mut().flat_map(|chapter| &mut chapter.lessons) {
            lesson.by_hand.clear();
            if let Run::NotRun(why) = &mut lesson.run {
                *why = Bilingual::of("", "");
            }
        }
    }
    axum::Json(Course { chapters })
}

/// One lesson, with what a student types.
#[utoipa::path(get, path = "/course/{lesson}", tag = "course",
    params(("lesson" = String, Path, description = "Its number", example = "2.3")),
    responses(
        (status = 200, description = "The lesson", body = Lesson),
        (status = 404, description = "There is no such lesson"),
    ))]
pub(in crate::http) async fn get_lesson(
    State(app): State<AppState>,
    Path(id): Path<String>,
) -> Result<axum::Json<Lesson>, Error> {
    let lesson = claims::find(&id).ok_or(Error::NoLesson(id))?;
    Ok(axum::Json(placeholders(&app.ctx).fill_lesson(lesson)))
}

/// The rates that a lesson's claim compares: none if it compares none.
#[utoipa::path(get, path = "/course/{lesson}/rates", tag = "course",
    params(("lesson" = String, Path, description = "Its number", example = "1.7.4")),
    responses(
        (status = 200, description = "Pairs of strategies, and the bounds of what is said of them", body = [Rates]),
        (status = 404, description = "There is no such lesson"),
    ))]
pub(in crate::http) async fn rates(Path(id): Path<String>) -> Result<axum::Json<Vec<Rates>>, Error> {
    let lesson = claims::find(&id).ok_or(Error::NoLesson(id))?;
    Ok(axum::Json(lesson.rates()))
}

/// The verdicts of the last run, the same on each instance.
#[utoipa::path(get, path = "/course/verdicts", tag = "course",
    responses(
        (status = 200, description = "What the last run has found of each lesson", body = LastVerdicts),
        (status = 204, description = "There was no run yet"),
    ))]
pub(in crate::http) async fn get_verdicts(State(app): State<AppState>) -> Result<Response, Error> {
    Ok(match kept_verdicts::load_last(&app.ctx).await? {
        Some(kept) => axum::Json(kept).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// What the last full run has found, with its commit, date and machine. It comes with the program.
#[utoipa::path(get, path = "/course/last-run", tag = "course",
    responses((status = 200, description = "The run that comes with the program", body = Verdicts)))]
pub(in crate::http) async fn get_last_run() -> axum::Json<&'static Verdicts> {
    axum::Json(&*LAST_RUN)
}

/// Keeps the verdicts of a run; those of other lessons stay.
#[utoipa::path(put, path = "/course/verdicts", tag = "course", request_body = Verdicts, security((), ("admin" = [])),
    responses((status = 204, description = "They are kept")))]
pub(in crate::http) async fn store_verdicts(
    _: Admin,
    State(app): State<AppState>,
    Json(verdicts): Json<Verdicts>,
) -> Result<StatusCode, Error> {
    kept_verdicts::store(&app.ctx, &verdicts).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The addresses of this cluster's servers, and the command of its faults, for the typed lines.
pub(super) fn placeholders(ctx: &Ctx) -> Placeholders {
    let config = &ctx.config;
    let redis: Vec<_> = config.node_urls().iter().map(ExposeSecret::expose_secret).collect();
    let (cluster, mysql) = (&config.cluster, config.mysql.url.expose_secret());
    let all = Placeholders::new(&cluster.http, &cluster.instances, mysql, &redis, &config.zookeeper.connect);
    match &*config.replays.lab_json {
        "" => all,
        lab_json => all.with_fault(&fault_command(lab_json)),
    }
}

/// `oversell lab fault`, with the lab's file unless the command takes that file by itself.
fn fault_command(lab_json: &str) -> String {
    let command = "oversell lab fault";
    if std::path::absolute(LAB_JSON).is_ok_and(|usual| usual.as_os_str() == lab_json) {
        return command.to_owned();
    }
    let is_plain = |c: char| c.is_alphanumeric() || "/._-".contains(c);
    if lab_json.chars().all(is_plain) {
        return format!("{command} --lab-json {lab_json}");
    }
    format!("{command} --lab-json '{}'", lab_json.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::fault_command;

    #[test]
    fn a_fault_is_typed_for_this_lab() {
        for (lab_json, typed) in [
            ("/tmp/x/lab.json", "oversell lab fault --lab-json /tmp/x/lab.json"),
            ("/tmp/a b/lab.json", "oversell lab fault --lab-json '/tmp/a b/lab.json'"),
        ] {
            assert_eq!(fault_command(lab_json), typed);
        }
        let usual = std::path::absolute(super::LAB_JSON).unwrap();
        assert_eq!(fault_command(usual.to_str().unwrap()), "oversell lab fault");
    }
}
