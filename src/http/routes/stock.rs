//! `/stock`: a product's stock in both stores; reading, setting and removing it.

use crate::http::routes::prelude::*;
use crate::{
    http::terms::{ProductQuery, StockId},
    stock,
    stock_admin::{self, StockLevels},
};

/// Which product, and of which strategy.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct ResetQuery {
    /// Which product; 1 without it.
    #[garde(dive)]
    #[param(inline, default = 1)]
    stock_id: Option<StockId>,
    /// Only what this strategy uses: its store, and its own locks in the servers that it needs.
    #[garde(skip)]
    #[param(example = "version-cas")]
    strategy: Option<String>,
}

/// Which product to take away.
#[derive(Debug, Deserialize, Validate, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::http) struct RemovalQuery {
    /// Which product: product 1 is the course's, and stays.
    #[garde(dive)]
    #[param(inline)]
    stock_id: BoundedInteger<2, { i64::MAX }>,
    /// Only what this strategy uses: its store, and its own locks in the servers that it needs.
    #[garde(skip)]
    #[param(example = "version-cas")]
    strategy: Option<String>,
}

/// How many pieces to put there.
#[derive(Debug, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct NewCount {
    #[garde(dive)]
    #[schema(inline, example = 5000)]
    count: BoundedInteger<0, 1_000_000_000>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ResetResult {
    #[serde(flatten)]
    levels: StockLevels,
    /// The servers in which no lock was cleared, since they are not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(example = json!([]))]
    not_cleared: Vec<&'static str>,
}

// The answer to a removal that could not clear every lock; a whole one answers 204.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct RemovalResult {
    /// The servers in which no lock was cleared, since they are not there.
    #[schema(example = json!(["zookeeper"]))]
    not_cleared: Vec<&'static str>,
}

/// What both stores hold.
#[utoipa::path(get, path = "/stock", tag = "course", params(ProductQuery),
    responses(
        (status = 200, description = "The row and the key; a store that is down is null and named under `missing`", body = StockLevels),
        (status = 404, description = "There is no such product"),
        (status = 503, description = "Neither store answers"),
    ))]
pub(in crate::http) async fn read(
    State(app): State<AppState>,
    Query(product): Query<ProductQuery>,
) -> Result<axum::Json<StockLevels>, Error> {
    Ok(axum::Json(stock_admin::read(&app.ctx, product.id()).await?))
}

/// Sets the stores and clears every lock of the product, whoever holds it.
#[utoipa::path(put, path = "/stock", tag = "course", params(ResetQuery), request_body = NewCount, security((), ("admin" = [])),
    responses(
        (status = 200, description = "It is done", body = ResetResult),
        (status = 404, description = "There is no such strategy"),
        (status = 503, description = "A server is down or refuses: nothing was changed. Or one fell silent, or refused half-way: `outcome` is then `unknown`"),
    ))]
pub(in crate::http) async fn reset(
    _: Admin,
    State(app): State<AppState>,
    Query(ResetQuery { stock_id, strategy }): Query<ResetQuery>,
    Json(NewCount { count }): Json<NewCount>,
) -> Result<axum::Json<ResetResult>, Error> {
    let stock_id = stock_id.map_or(1, BoundedInteger::get);
    let not_cleared = stock_admin::reset(&app.ctx, stock_id, count.get(), parse_scope(strategy)?).await?;
    if stock_id == 1 {
        app.visits.report_reset();
    }
    Ok(axum::Json(ResetResult { levels: stock_admin::read(&app.ctx, stock_id).await?, not_cleared }))
}

/// Takes a product away, with its locks. Product 1 is the course's and stays.
#[utoipa::path(delete, path = "/stock", tag = "course", params(RemovalQuery), security((), ("admin" = [])),
    responses(
        (status = 200, description = "It is gone, but for what could not be cleared", body = RemovalResult),
        (status = 204, description = "It is gone"),
        (status = 404, description = "There is no such strategy"),
        (status = 503, description = "A server is down or refuses: nothing was changed. Or one fell silent, or refused half-way: `outcome` is then `unknown`"),
    ))]
pub(in crate::http) async fn remove(
    _: Admin,
    State(app): State<AppState>,
    Query(RemovalQuery { stock_id, strategy }): Query<RemovalQuery>,
) -> Result<Response, Error> {
    let not_cleared = stock_admin::remove(&app.ctx, stock_id.get(), parse_scope(strategy)?).await?;
    Ok(match not_cleared.is_empty() {
        true => StatusCode::NO_CONTENT.into_response(),
        false => axum::Json(RemovalResult { not_cleared }).into_response(),
    })
}

/// What a strategy of this name uses; `None` without a name, which means all of a product. Fails if no strategy has the name.
fn parse_scope(strategy: Option<String>) -> Result<Option<stock_admin::ResetScope<'static>>, Error> {
    let find = |slug: String| stock::find(&slug).ok_or_else(|| Error::no_strategy(slug));
    let strategy = strategy.map(find).transpose()?;
    Ok(strategy.map(stock_admin::ResetScope::from))
}
