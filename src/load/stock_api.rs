//! The routes that make, show and remove a product, and the list of strategies that a cluster knows.

use super::plan::Plan;
use crate::stock::{Store, Strategy};
use oversell_lab::{
    clients::http_client::{Answer, Ask, HttpError, client},
    terminal::{
        chinese::localized,
        failure::{Failure, unusable},
    },
};
use reqwest::RequestBuilder;
use secrecy::SecretString;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::time::Duration;

/// Bounds each request; setting the stock also clears locks and queues, which takes a moment.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A product at one address, as one strategy needs it, or as all do; stores that only other strategies need are left alone and may
/// be missing.
#[derive(Debug)]
pub struct StockApi<'a> {
    pub base: &'a str,
    pub stock_id: i64,
    pub strategy: Option<&'a Strategy>,
    pub token: Option<&'a SecretString>,
}

/// The part of an entry of the list of strategies that is read.
#[derive(Deserialize)]
pub(super) struct RegistryEntry {
    pub(super) slug: String,
    /// The server that it needs and the instance does not have.
    #[serde(default)]
    pub(super) absent: Option<String>,
}

impl<'a> StockApi<'a> {
    /// The product of a plan, for its strategy.
    pub(super) fn of(plan: &'a Plan, strategy: &'a Strategy) -> Self {
        Self { base: &plan.base, stock_id: plan.stock_id, strategy: Some(strategy), token: plan.token.as_ref() }
    }

    /// Makes the product with `count` pieces, and clears the strategy's locks of it.
    pub async fn put(&self, count: i64) -> Result<(), Failure> {
        let url = self.product_url();
        let request = client().put(&url).json(&json!({"count": count}));
        require_success(&format!("PUT {url}"), request.token(self.token)).await.map(drop)
    }

    /// Removes the product, with the strategy's locks of it.
    pub async fn remove(&self) -> Result<(), Failure> {
        let url = self.product_url();
        let request = client().delete(&url).token(self.token);
        require_success(&format!("DELETE {url}"), request).await.map(drop)
    }

    /// How many pieces of the product a store has; an error if the answer does not tell that.
    pub async fn count(&self, store: Store) -> Result<i64, Failure> {
        let url = format!("{}/stock?stock_id={}", without_trailing_slash(self.base), self.stock_id);
        let store = match store {
            Store::MySql => "mysql",
            Store::Redis => "redis",
        };
        let stock: Value = read(&url).await?;
        stock[store]["count"].as_i64().ok_or_else(|| unusable!("GET {url} does not know the stock of {store}"))
    }

    /// The product's URL, with the strategy in its query.
    fn product_url(&self) -> String {
        let strategy = self.strategy.map(|one| format!("&strategy={}", one.slug));
        format!("{}/stock?stock_id={}{}", without_trailing_slash(self.base), self.stock_id, strategy.unwrap_or_default())
    }
}

/// The size of the answer at a path; `None` if no answer comes, or its status is not 2xx.
pub(super) async fn body_size(at: &str, path: &str) -> Option<usize> {
    let answer = get(&format!("{}{path}", without_trailing_slash(at))).await.ok()?;
    Some(answer.body.len())
}

/// The address without slashes at its end.
pub(super) fn without_trailing_slash(at: &str) -> &str {
    at.trim_end_matches('/')
}

/// Sends a GET; a status that is not 2xx is an error.
async fn get(url: &str) -> Result<Answer, Failure> {
    require_success(&format!("GET {url}"), client().get(url)).await
}

/// Sends a GET and parses the JSON of its answer.
pub(super) async fn read<T: DeserializeOwned>(url: &str) -> Result<T, Failure> {
    let answer = get(url).await?;
    answer.json().map_err(|why| unusable!("GET {url}: {why}"))
}

/// Sends a request, within [`REQUEST_TIMEOUT`]. A status that is not 2xx is an error with the name `what`; 401 and 403 name the
/// token.
pub(super) async fn require_success(what: &str, request: RequestBuilder) -> Result<Answer, Failure> {
    let answer = request.timeout(REQUEST_TIMEOUT).answer().await;
    answer.and_then(Answer::success).map_err(|why| {
        let hint = match &why {
            HttpError::Refused { status, .. } if matches!(status.as_u16(), 401 | 403) => {
                localized!(
                    "（需要管理口令：请设置 OVERSELL__ADMIN__TOKEN）",
                    " (it needs the admin token: set OVERSELL__ADMIN__TOKEN)"
                )
            }
            _ => String::new(),
        };
        unusable!("{what}: {why}{hint}")
    })
}
