//! `/test/zk/atomic/*`: a number that all instances change.

use super::{LessonBody, respond};
use crate::http::routes::prelude::*;
use crate::{
    classroom::zk_atomic::{self, Change},
    http::terms::terms,
    stock::check_product,
};

terms!(
    /// The operand, and what may be asked of every lesson.
    AtomicQuery {
        /// The number to add, to subtract or to set; `add`, `subtract`, `try-set` and `force-set` need it.
        #[garde(skip)]
        #[param(example = 5)]
        value: Option<i64>,
    }
);

/// Changes the atomic long, or reads it.
#[utoipa::path(get, path = "/test/zk/atomic/{change}", tag = "course",
    params(("change" = String, Path, description = "One of increment, decrement, add, subtract, get, try-set, force-set", example = "increment"), AtomicQuery),
    responses((status = 200, description = "It was changed, or others were faster all the time (`succeeded`)",
        content((String = "text/plain", example = "true 41 -> 42"), (LessonBody = "application/json"))),
        (status = 404, description = "There is no such product, or no such change")))]
pub(in crate::http) async fn atomic(
    State(app): State<AppState>,
    Path(change): Path<String>,
    Query(operand): Query<AtomicQuery>,
    format: Format,
) -> Result<Response, Error> {
    check_product(&app.ctx, operand.stock_id()).await?;
    let job = operand.job(app.ctx.config.default_wait(), Duration::ZERO);
    let value = || operand.value.ok_or_else(|| Error::bad_input("value", "is missing"));
    let change = match change.as_str() {
        "increment" => Some(Change::Add(1)),
        "decrement" => Some(Change::Subtract(1)),
        "add" => Some(Change::Add(value()?)),
        "subtract" => Some(Change::Subtract(value()?)),
        "try-set" => Some(Change::TrySet(value()?)),
        "force-set" => Some(Change::ForceSet(value()?)),
        "get" => None,
        _ => {
            let rule = "must be one of increment, decrement, add, subtract, get, try-set, force-set";
            return Err(Error::bad_input("change", rule));
        }
    };
    let answer = match change {
        Some(change) => zk_atomic::change(&app.ctx, &job, change).await?,
        None => zk_atomic::get(&app.ctx, &job).await?,
    };
    let object = zk_atomic::ATOMIC;
    Ok(respond(&app, &job, format, object, answer))
}
