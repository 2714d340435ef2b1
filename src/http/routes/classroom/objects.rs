//! `/classroom/objects`: the objects of the lessons as the servers report them, for the class page to draw.

use crate::http::routes::prelude::*;
use crate::{classroom, error::Error};
use axum::Json;
use tokio::time::timeout;

/// Time limit of each server: one that is down is shown as missing at once.
const SERVER_TIMEOUT: Duration = Duration::from_millis(500);

/// The objects; null if a server does not answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LessonObjects)]
pub(in crate::http) struct Objects {
    /// Free permits. A killed instance loses the permits of its visitors.
    #[schema(example = 3)]
    semaphore: Option<i64>,
    /// How many must still count down; 0: no class has begun, or all are out.
    #[schema(example = 5)]
    latch: Option<u64>,
    /// Whether the barrier is closed.
    barrier: Option<bool>,
}

/// How semaphore, latch and barrier stand in Redis and in ZooKeeper.
#[utoipa::path(get, path = "/classroom/objects", tag = "classroom",
    responses((status = 200, description = "What the servers have", body = Objects)))]
pub(in crate::http) async fn objects(State(app): State<AppState>) -> Json<Objects> {
    let ctx = &app.ctx;
    let (semaphore, latch, barrier) = tokio::join!(
        in_time(classroom::free_permits(ctx)),
        in_time(classroom::latch_count(ctx)),
        in_time(classroom::is_barrier_closed(ctx))
    );
    Json(Objects { semaphore, latch, barrier })
}

/// The answer of a server; `None` if it fails or takes longer than [`SERVER_TIMEOUT`].
async fn in_time<T>(asked: impl Future<Output = Result<T, Error>>) -> Option<T> {
    timeout(SERVER_TIMEOUT, asked).await.ok()?.ok()
}
