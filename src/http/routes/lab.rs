//! `/lab`: what there is to break here, and breaking it by hand. It is the lab that does it, by the rules and in the words of
//! `oversell lab fault`; an instance that no lab has started says so.

use crate::http::routes::prelude::*;
use crate::{
    error::Error as Domain,
    http::{
        neighbours::{self, RemoteReplay},
        replays::Replays,
    },
    replay::LabControl,
};
use oversell_lab::{
    clients::http_client::HttpError,
    fault::{Action, Breakable, FaultCommand, MemberState},
    terminal::bilingual::Bilingual,
};

/// Why there is nothing to break without a lab.
const NO_LAB_HERE: Bilingual = Bilingual {
    zh: "这里的服务器不是 oversell lab 启动的，网页不能弄停它们。在容器里，可以在终端输入 docker compose pause app-8100，再用 unpause 继续。",
    en: "No oversell lab has started the servers here, so the page cannot break them. In containers, type docker compose pause \
         app-8100 in a terminal, and unpause to let it go on.",
};

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct LabView {
    /// Whether a lab has started this instance and takes orders.
    owned: bool,
    /// Why not.
    why: Option<Bilingual>,
    /// Further kinds of members: `links`, `replica`.
    #[schema(example = json!(["links"]))]
    kinds: Vec<String>,
    #[serde(flatten)]
    breakable: Breakable,
}

#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub(in crate::http) struct Fault {
    action: Action,
    /// The member or way that it happens to: one of `GET /lab`.
    #[schema(example = "8100")]
    member: String,
    /// For one that slows down (10000 at most): by how much; 200 without it. For a clock that jumps: 60000 without it.
    #[garde(dive)]
    #[schema(inline)]
    by_ms: Option<BoundedInteger<1, 3_600_000>>,
}

/// An injected fault, and the state of the lab.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct FaultResult {
    /// The lab's words.
    #[schema(example = "8100 is paused")]
    said: String,
    #[serde(flatten)]
    lab: LabView,
}

/// The members and links of the lab, and their states.
#[utoipa::path(get, path = "/lab", tag = "lab", responses(
    (status = 200, description = "The members and links of the lab; none where no lab has started this instance", body = LabView)))]
pub(in crate::http) async fn get_lab(State(app): State<AppState>) -> Result<axum::Json<LabView>, Error> {
    view(&app).await.map(axum::Json)
}

/// Breaks something, or mends it. An instance is not asked to stop itself: it could not answer.
#[utoipa::path(post, path = "/lab/faults", tag = "lab", request_body = Fault, security((), ("admin" = [])),
    responses(
        (status = 200, description = "It is done", body = FaultResult),
        (status = 403, description = "No lab has started this instance; or a page of another host asks for this"),
        (status = 409, description = "It is not in a state for this; or a replay breaks servers just now"),
    ))]
pub(in crate::http) async fn inject(
    _: Admin,
    State(app): State<AppState>,
    InstanceState(replays): InstanceState<Replays>,
    Json(Fault { action, member, by_ms }): Json<Fault>,
) -> Result<axum::Json<FaultResult>, Error> {
    let lab = LabControl::from_config(&app.ctx.config).ok_or(Error::NoLab)?;
    let stops = matches!(action, Action::Pause | Action::Kill);
    if stops && member == app.ctx.instance {
        let rule = format!("{member} is asked itself, and could not answer: ask another one, as /instances/NAME/lab/faults");
        return Err(Error::bad_input("member", rule));
    }
    let all = lab.breakable().await.map_err(lab_unavailable)?;
    check_member(&all, &member)?;
    let running = running_instances(&app.ctx.config.cluster.instances, &all);
    let playing = [neighbours::fetch_replays(&running, &app.ctx.config).await, replays.playing()].concat();
    let blocking_lesson = |played: &RemoteReplay| played.blocking_lesson(false, &app.ctx.config);
    if let Some(lesson) = playing.iter().find_map(blocking_lesson) {
        return Err(Error::ReplayInProgress(lesson));
    }
    let by_ms = by_ms.map_or(action.default_by_ms(), |by_ms| by_ms.get().unsigned_abs());
    let most = match action {
        Action::Jump => 3_600_000,
        _ => 10_000,
    };
    if by_ms > most {
        return Err(Error::bad_input("by_ms", format!("must be at most {most}")));
    }
    let said = lab.inject(&FaultCommand { action, member, by_ms }).await.map_err(|error| match error {
        HttpError::Refused { body, .. } => Error::LabRefuses(body),
        other => lab_unavailable(other),
    })?;
    Ok(axum::Json(FaultResult { said, lab: view(&app).await? }))
}

/// The state of the lab; if no lab has started this instance, why there is nothing to break.
async fn view(app: &AppState) -> Result<LabView, Error> {
    let Some(lab) = LabControl::from_config(&app.ctx.config) else {
        return Ok(LabView { owned: false, why: Some(NO_LAB_HERE), kinds: Vec::new(), breakable: Breakable::default() });
    };
    let breakable = lab.breakable().await.map_err(lab_unavailable)?;
    Ok(LabView { owned: true, why: None, kinds: app.ctx.config.replays.lab_kinds.clone(), breakable })
}

/// The addresses whose instance the lab does not show as paused or killed; a lab names an instance by its port.
fn running_instances(urls: &[String], all: &Breakable) -> Vec<String> {
    let stopped = all.members.iter().filter(|it| it.state != MemberState::Running);
    let stopped: Vec<_> = stopped.map(|it| format!(":{}", it.name)).collect();
    let runs = |url: &&String| !stopped.iter().any(|port| url.trim_end_matches('/').ends_with(port.as_str()));
    urls.iter().filter(runs).cloned().collect()
}

/// Refuses a name that is neither a member nor a link of the lab.
fn check_member(all: &Breakable, member: &str) -> Result<(), Error> {
    let members = all.members.iter().map(|it| it.name.as_str());
    let names: Vec<_> = members.chain(all.links.iter().map(|link| link.name.as_str())).collect();
    match names.contains(&member) {
        true => Ok(()),
        false => Err(Error::bad_input("member", format!("must be one of {}", names.join(", ")))),
    }
}

/// The error of a lab that does not answer: [`Domain::Unavailable`].
fn lab_unavailable(error: HttpError) -> Error {
    Error::Domain(Domain::Unavailable { server: "lab", reason: error.to_string() })
}
