//! `/classroom/burst`: tries a limit of nginx on concurrent requests with 30 or 120 of them, more than a browser's six connections
//! can send; and says when each was answered, and how. An instance sends one burst at a time.

use crate::http::routes::prelude::*;
use futures::future::join_all;
use oversell_lab::clients::http_client::{Ask, client};
use std::time::Instant;

/// How long each request stays: long enough for all requests to overlap.
const STAY_MS: u64 = 2500;
/// Time limit of each answer; a request without one by then counts as not answered.
const REPLY_TIMEOUT: Duration = Duration::from_secs(15);

/// Which limit.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Limit {
    /// 20 of one address
    Address,
    /// 100 of all
    Server,
}

#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub(in crate::http) struct Burst {
    #[schema(inline)]
    limit: Limit,
}

/// A request and its answer.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct BurstAnswer {
    /// When, in milliseconds since all were sent.
    #[schema(example = 2503)]
    at_ms: u64,
    /// How; 0: there was no answer.
    #[schema(example = 200)]
    status: u16,
}

/// Sends more than are let through, all at once: 30 at the limit of 20, 120 at that of 100.
#[utoipa::path(post, path = "/classroom/burst", tag = "classroom", request_body = Burst,
    responses(
        (status = 200, description = "All are answered: let through (200) or refused (429)", body = [BurstAnswer]),
        (status = 503, description = "Another burst goes on"),
    ))]
pub(in crate::http) async fn send_burst(
    State(app): State<AppState>,
    InstanceState(turn): InstanceState<Permits<Burst, 1>>,
    Json(Burst { limit }): Json<Burst>,
) -> Result<axum::Json<Vec<BurstAnswer>>, Error> {
    let nginx = app.ctx.config.cluster.http.trim_end_matches('/');
    if nginx.is_empty() {
        let rule = "is nginx's: this instance knows of none (setting cluster.http)";
        return Err(Error::bad_input("limit", rule));
    }
    let (path, requests) = match limit {
        Limit::Address => ("address", 30),
        Limit::Server => ("server", 120),
    };
    // An instance sends one at a time, and refuses another meanwhile.
    let _alone = turn.try_take().ok_or(Error::Overloaded("bursts"))?;
    let begun = Instant::now();
    let sent = (1..=requests).map(|who| {
        let url = format!("{nginx}/nginx/connections/{path}?hold_ms={STAY_MS}&who={who}");
        async move {
            let answer = client().get(url).timeout(REPLY_TIMEOUT).answer().await;
            BurstAnswer {
                at_ms: u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
                status: answer.map_or(0, |answer| answer.status.as_u16()),
            }
        }
    });
    Ok(axum::Json(join_all(sent).await))
}
