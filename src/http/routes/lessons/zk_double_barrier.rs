//! `/test/zk/double-barrier/*`: a room that nobody begins in or leaves alone.

use super::{LessonBody, respond};
use crate::http::routes::prelude::*;
use crate::{
    classroom::zk_double_barrier::{self, DEFAULT_WAIT, ROOM},
    http::terms::terms,
    stock::check_product,
};
use std::num::NonZeroU32;

terms!(
    /// The members, and the parameters of every lesson.
    BarrierQuery {
        /// The number of members; all must give the same.
        #[garde(dive)]
        #[param(inline, example = 3)]
        members: BoundedInteger<1, 1000>,
        /// The member that leaves, from the answer of `enter`; without it the last one that this instance let in.
        // A name is a node's; nothing else may be reached by it.
        #[garde(skip)]
        member: Option<Uuid>,
    }
);

impl BarrierQuery {
    fn members(&self) -> NonZeroU32 {
        u32::try_from(self.members.get()).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
    }
}

/// Comes in once enough have come.
#[utoipa::path(get, path = "/test/zk/double-barrier/enter", tag = "course", params(BarrierQuery),
    responses((status = 200, description = "All are inside",
        content((String = "text/plain", example = "都到齐了 6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b"), (LessonBody = "application/json"))),
        (status = 404, description = "There is no such product")))]
pub(in crate::http) async fn enter(
    State(app): State<AppState>,
    Query(meeting): Query<BarrierQuery>,
    format: Format,
) -> Result<Response, Error> {
    check_product(&app.ctx, meeting.stock_id()).await?;
    let job = meeting.job(DEFAULT_WAIT, Duration::ZERO);
    let job = app.with_visit(job, "/test/zk/double-barrier/enter", ROOM);
    let answer = zk_double_barrier::enter(&app.ctx, &job, meeting.members()).await?;
    Ok(respond(&app, &job, format, ROOM, answer))
}

/// Leaves, and waits until all have left.
#[utoipa::path(get, path = "/test/zk/double-barrier/leave", tag = "course", params(BarrierQuery),
    responses((status = 200, description = "All have left",
        content((String = "text/plain", example = "都离开了 6f1c2a0e-8a55-4a0f-9a77-1c2d3e4f5a6b"), (LessonBody = "application/json"))),
        (status = 404, description = "There is no such product")))]
pub(in crate::http) async fn leave(
    State(app): State<AppState>,
    Query(meeting): Query<BarrierQuery>,
    format: Format,
) -> Result<Response, Error> {
    check_product(&app.ctx, meeting.stock_id()).await?;
    let job = meeting.job(DEFAULT_WAIT, Duration::ZERO);
    let job = app.with_visit(job, "/test/zk/double-barrier/leave", ROOM);
    let member = meeting.member.map(|member| member.to_string());
    let (members, member) = (meeting.members(), member.as_deref());
    let answer = zk_double_barrier::leave(&app.ctx, &job, members, member).await?;
    Ok(respond(&app, &job, format, ROOM, answer))
}
