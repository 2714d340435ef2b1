//! `/test/zk/herd`: the herd effect, counted.

use crate::classroom::zk_herd::{self, Drain, Herd, WAITERS};
use crate::http::routes::prelude::*;

/// The waiters of a request that names no number.
const DEFAULT_WAITERS: u16 = 50;

/// The number of waiters that a request may name.
type Waiters = BoundedInteger<{ *WAITERS.start() as i64 }, { *WAITERS.end() as i64 }>;

/// How large the herd is.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct HerdQuery {
    /// How many wait behind the holder, each with a session of its own.
    #[garde(dive)]
    #[param(inline, default = 50)]
    waiters: Option<Waiters>,
}

/// How many were woken, by either way to wait.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct HerdBody {
    outcome: AnswerOutcome,
    /// Which instance did it.
    #[schema(example = "8000")]
    instance: String,
    /// How many waited behind the holder.
    #[schema(example = 50)]
    waiters: u16,
    /// How often the lock was given back: by the holder and by each waiter.
    #[schema(example = 51)]
    releases: usize,
    /// Notifications per release if all watch the directory.
    #[schema(example = 25.0)]
    watch_parent: f64,
    /// Notifications per release if each watches the node before its own.
    #[schema(example = 0.98)]
    watch_predecessor: f64,
    /// The same for each release, in order.
    each: Herd,
}

/// Drains one queue where all watch the directory and one where each watches its predecessor, and counts who is woken.
#[utoipa::path(get, path = "/test/zk/herd", tag = "course", params(HerdQuery),
    responses((status = 200, description = "Both queues have been drained",
        content((String = "text/plain", example = "50 个人排队，锁释放 51 次\n都监听父节点：共通知 1275 次，平均每次释放锁 25.00 次\n只监听前一个：共通知 50 次，平均每次释放锁 0.98 次\n"),
            (HerdBody = "application/json")))))]
pub(in crate::http) async fn herd(
    State(app): State<AppState>,
    Query(size): Query<HerdQuery>,
    format: Format,
) -> Result<Response, Error> {
    let waiters = size.waiters.map_or(DEFAULT_WAITERS, |waiters| u16::try_from(waiters.get()).unwrap_or(DEFAULT_WAITERS));
    let herd = zk_herd::compare(&app.ctx, waiters, app.ctx.config.default_wait()).await?;
    let (parent, predecessor) = (&herd.watch_parent, &herd.watch_predecessor);
    let releases = parent.0.len();
    let text = format!(
        "{waiters} 个人排队，锁释放 {releases} 次\n都监听父节点：{}\n只监听前一个：{}\n",
        line(parent),
        line(predecessor)
    );
    let woken = HerdBody {
        outcome: AnswerOutcome::Done,
        instance: app.ctx.instance.clone(),
        waiters,
        releases,
        watch_parent: parent.per_release(),
        watch_predecessor: predecessor.per_release(),
        each: herd,
    };
    Ok(format.answer(text, woken))
}

/// The figures of a drain as the text answer has them.
fn line(drain: &Drain) -> String {
    format!("共通知 {} 次，平均每次释放锁 {:.2} 次", drain.notifications(), drain.per_release())
}
