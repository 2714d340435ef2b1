//! `/test/zk/read`, `/write`, `/semaphore`, `/multi`, `/reentrant`: Curator's locks, to be tried from several browser
//! windows.

use crate::http::{
    app::App,
    format::Format,
    problem::Problem,
    routes::check::Terms,
    routes::lessons::redis::{Visited, lesson, told},
    routes::lessons::{Lesson, answer, job},
};
use crate::{
    classroom::{zk_locks, zk_semaphore},
    error::Error,
};
use axum::{extract::State, response::Response};
use std::time::Duration;

/// Takes the read half of Curator's read-write lock and keeps it for ten seconds after the answer.
#[utoipa::path(get, path = "/test/zk/read", tag = "course", params(Terms), operation_id = "test_zk_read",
    responses(
        (status = 200, description = "It has the read half, together with other readers",
            content((String = "text/plain", example = "测试读"), (Lesson = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "A writer has it for all of the wait, or ZooKeeper is down", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn read(State(app): State<App>, terms: Terms, format: Format) -> Result<Response, Error> {
    let job = job(&app, &terms, zk_locks::KEPT);
    zk_locks::read(&app.ctx, &job).await?;
    Ok(answer(&app, &job, format, "/curator/rwlock", "测试读", None))
}

/// Takes the write half of Curator's read-write lock and keeps it for ten seconds after the answer.
#[utoipa::path(get, path = "/test/zk/write", tag = "course", params(Terms), operation_id = "test_zk_write",
    responses(
        (status = 200, description = "It has the write half, alone",
            content((String = "text/plain", example = "测试写"), (Lesson = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Others have it for all of the wait, or ZooKeeper is down", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn write(State(app): State<App>, terms: Terms, format: Format) -> Result<Response, Error> {
    let job = job(&app, &terms, zk_locks::KEPT);
    zk_locks::write(&app.ctx, &job).await?;
    Ok(answer(&app, &job, format, "/curator/rwlock", "测试写", None))
}

/// Five are inside at once, each for ten to twenty seconds; both ends are written to the Redis list `log`.
#[utoipa::path(get, path = "/test/zk/semaphore", tag = "course", params(Terms), operation_id = "test_zk_semaphore",
    responses(
        (status = 200, description = "It was inside, and has left",
            content((String = "text/plain", example = "hello Semaphore"), (Lesson = "application/json"))),
        (status = 400, description = "The query is not as it should be", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Nobody has left in time, or a server is down", body = Problem,
            content_type = "application/problem+json", headers(("retry-after" = u64, description = "Seconds"))),
    ))]
pub(in crate::http) async fn semaphore(
    State(app): State<App>,
    terms: Terms,
    format: Format,
) -> Result<Response, Error> {
    let job = job(&app, &terms, zk_semaphore::stay());
    zk_semaphore::visit(&app.ctx, &job).await?;
    Ok(answer(&app, &job, format, "/locks/semaphore", "hello Semaphore", None))
}

lesson!(
    /// Takes three of Curator's locks as one.
    multi, "/test/zk/multi", "test_zk_multi", "/curator/multi",
    "拿到 /curator/multi/1 #1\n拿到 /curator/multi/2 #2\n拿到 /curator/multi/3 #3\n放掉 /curator/multi/3 #3\n…", zk_locks::multi
);
lesson!(
    /// Takes one of Curator's locks twice as one owner.
    reentrant, "/test/zk/reentrant", "test_zk_reentrant", "/curator/reentrant",
    "拿到 /curator/reentrant #1\n拿到 /curator/reentrant #2\n放掉 /curator/reentrant #1\n…", zk_locks::reentrant
);
