//! `/test/semaphore`, `/test/latch`, `/test/countdown`, and the locks of Redis to be tried from several browser windows.

use super::{Lesson, lesson, lesson_response, visit};
use crate::{
    classroom::{fair, latch, multi, read_write, reentrant, semaphore},
    http::{app::AppState, error::Error, extract::Query, format::Format, terms::Terms},
};
use axum::{extract::State, response::Response};
use std::time::Duration;

lesson!(
    /// Three are inside at once, each for five seconds.
    semaphore, "/test/semaphore", "semaphore", "测试信号量", "It was inside, and has left", semaphore::STAY, semaphore::visit
);
lesson!(
    /// Takes the read half of the read-write lock and leaves it to its lease of ten seconds.
    read, "/test/read", "rwLock", "测试读", "It has the read half, together with other readers", read_write::LEASE, read_write::read
);
lesson!(
    /// Takes the write half of the read-write lock and leaves it to its lease of ten seconds.
    write, "/test/write", "rwLock", "测试写", "It has the write half, alone", read_write::LEASE, read_write::write
);

/// Waits until six have gone out, and locks the door.
#[utoipa::path(get, path = "/test/latch", tag = "course", params(Terms),
    responses((status = 200, description = "All six are out",
        content((String = "text/plain", example = "班长锁门。。。"), (Lesson = "application/json")))))]
pub(in crate::http) async fn latch(
    State(app): State<AppState>,
    Query(terms): Query<Terms>,
    format: Format,
) -> Result<Response, Error> {
    let job = app.seen(
        terms.job(latch::WAIT, Duration::ZERO),
        "/test/latch",
        "latch",
    );
    latch::lock_the_door(&app.ctx, &job).await?;
    Ok(lesson_response(
        &app,
        &job,
        format,
        "latch",
        "班长锁门。。。",
        Some(0),
    ))
}

/// One goes out. The first of a class sets the count to six.
#[utoipa::path(get, path = "/test/countdown", tag = "course", params(Terms),
    responses((status = 200, description = "One less is in",
        content((String = "text/plain", example = "出来了一位同学"), (Lesson = "application/json")))))]
pub(in crate::http) async fn countdown(
    State(app): State<AppState>,
    Query(terms): Query<Terms>,
    format: Format,
) -> Result<Response, Error> {
    let job = app.seen(
        terms.job(app.ctx.config.wait(), Duration::ZERO),
        "/test/countdown",
        "latch",
    );
    let left = latch::go_out(&app.ctx, &job).await?;
    Ok(lesson_response(
        &app,
        &job,
        format,
        "latch",
        "出来了一位同学",
        Some(left),
    ))
}

visit!(
    /// Queues at the fair lock, and says as which number it came and got in.
    fair, "/test/fair", "fairLock", "来到 fairLock #2\n拿到 fairLock #2\n放掉 fairLock #2\n", fair::visit
);
visit!(
    /// Takes three locks as one.
    multi, "/test/multi", "lock1,lock2,lock3", "拿到 lock1 #1\n拿到 lock2 #2\n拿到 lock3 #3\n放掉 lock3 #3\n…", multi::all
);
visit!(
    /// Takes a lock on most of five nodes, and says on which.
    red, "/test/red", "redLock", "拿到 redLock #1\n拿到 redLock #2\n拿到 redLock #4\n…", multi::most
);
visit!(
    /// Takes a lock twice as one owner, and says what Redis counts.
    reentrant, "/test/reentrant", "reentrantLock",
    "拿到 reentrantLock #1\n拿到 reentrantLock #2\n放掉 reentrantLock #1\n放掉 reentrantLock #0\n", reentrant::visit
);
