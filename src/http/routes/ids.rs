//! `/id/{prefix}`: the next global ids of a prefix.

use crate::http::routes::prelude::*;
use crate::seckill::id_worker::{self, Id};
use utoipa::{
    PartialSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::SchemaType},
};

/// The most characters of a prefix, which becomes a part of a key in Redis.
const MAX_PREFIX_LEN: usize = 32;

#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct BatchQuery {
    /// How many, by one command; they follow each other. With it JSON is a list.
    #[garde(dive)]
    #[param(inline)]
    count: Option<BoundedInteger<1, 1000>>,
}

/// One id, or a list where a count was asked for.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(in crate::http) enum Ids {
    /// Without `count`.
    One(Id),
    /// With it.
    Many(Vec<Id>),
}

impl PartialSchema for Ids {
    /// Without a type: generated clients of Java and Go do not compile with an object or a list of it.
    fn schema() -> RefOr<Schema> {
        let one = serde_json::json!({"id": "662539205509742593", "seconds": 154_259_397, "count": 1, "date": "2026:11:21"});
        let ids = ObjectBuilder::new().schema_type(SchemaType::AnyValue).examples([one]);
        ids.description(Some("An object with id, seconds, count and date; with `count` a list of them")).into()
    }
}

impl ToSchema for Ids {}

/// Gives the next global ids of a prefix, a line for each.
#[utoipa::path(get, path = "/id/{prefix}", tag = "seckill",
    params(("prefix" = String, Path, description = "What is numbered", pattern = "^[a-z0-9_-]{1,32}$", example = "order"), BatchQuery),
    responses((status = 200, description = "Nobody else has them",
        content((String = "text/plain", example = "662539205509742593"), (Ids = "application/json")))))]
pub(in crate::http) async fn next(
    State(app): State<AppState>,
    Path(prefix): Path<String>,
    Query(BatchQuery { count }): Query<BatchQuery>,
    format: Format,
) -> Result<Response, Error> {
    let known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if prefix.is_empty() || prefix.len() > MAX_PREFIX_LEN || !prefix.chars().all(known) {
        return Err(Error::bad_input("prefix", format!("must be 1 to {MAX_PREFIX_LEN} of a-z, 0-9, - and _")));
    }
    let many = count.and_then(|count| u32::try_from(count.get()).ok());
    let ids = id_worker::next_ids(&app.ctx, &prefix, many.unwrap_or(1)).await?;
    let lines: Vec<_> = ids.clone().map(|id| id.to_string()).collect();
    let json = match many {
        Some(_) => Ids::Many(ids.map(Id::from).collect()),
        None => Ids::One(Id::from(*ids.start())),
    };
    Ok(format.answer(lines.join("\n"), json))
}
