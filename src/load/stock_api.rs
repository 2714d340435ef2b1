//! The routes that make, show and remove a product, and the list of strategies that a cluster knows.

use super::link::{Answer, Body, Cut, Link, Meter, Origin};
use crate::{
    failure::Failure,
    stock::{Store, Strategy},
};
use http::{HeaderValue, Method, Request, header};
use http_body_util::Full;
use serde::Deserialize;
use std::{sync::Arc, time::Duration};

/// Setting the stock also clears locks and queues: it may take a moment, but not for ever.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A secret for `PUT /stock`, never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl From<String> for Token {
    fn from(token: String) -> Self {
        Self(token)
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// A product at one address, for one strategy: what others need is left alone, and need not be there.
pub(super) struct StockApi<'a> {
    pub(super) origin: &'a Origin,
    pub(super) stock_id: i64,
    pub(super) strategy: &'a Strategy,
    pub(super) token: Option<&'a Token>,
}

#[derive(Deserialize)]
struct Stock {
    mysql: Option<Count>,
    redis: Option<Count>,
}

#[derive(Deserialize)]
struct Count {
    count: Option<i64>,
}

#[derive(Deserialize)]
struct Known {
    slug: String,
}

impl StockApi<'_> {
    /// Makes the product with so many pieces, and clears the strategy's locks of it.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where the service does not do so.
    pub(super) async fn reset(&self, count: i64) -> Result<(), Failure> {
        let body = Full::from(format!("{{\"count\":{count}}}"));
        self.change(Method::PUT, body).await
    }

    /// Removes the product and what the strategy has left of it.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where the service does not do so.
    pub(super) async fn remove(&self) -> Result<(), Failure> {
        self.change(Method::DELETE, Full::default()).await
    }

    async fn change(&self, method: Method, body: Body) -> Result<(), Failure> {
        let path = format!("/stock?stock_id={}&strategy={}", self.stock_id, self.strategy.slug);
        let what = format!("{method} {path}");
        let mut request = self.origin.request(method, &path)?;
        *request.body_mut() = body;
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(Token(token)) = self.token {
            let value = HeaderValue::try_from(format!("Bearer {token}"))
                .map_err(|_| Failure::Unusable("the token is not plain text".into()))?;
            headers.insert(header::AUTHORIZATION, value);
        }
        ask(self.origin, request, &what).await.map(drop)
    }

    /// How many pieces the strategy's store has.
    ///
    /// # Errors
    ///
    /// [`Failure::Unusable`] where the service does not say.
    pub(super) async fn count(&self) -> Result<i64, Failure> {
        let request = self.origin.request(Method::GET, &format!("/stock?stock_id={}", self.stock_id))?;
        let answer = ask(self.origin, request, "GET /stock").await?;
        let stock: Stock = json(&answer, "GET /stock")?;
        let store = self.strategy.store;
        let count = match store {
            Store::MySql => stock.mysql,
            Store::Redis => stock.redis,
        };
        count.and_then(|c| c.count).ok_or_else(|| {
            Failure::Unusable(format!("GET /stock at {} does not know the stock of {store:?}", self.origin))
        })
    }
}

/// The slugs of the strategies that the cluster at `origin` knows.
///
/// # Errors
///
/// [`Failure::Unusable`] where it does not say.
pub(super) async fn strategies(origin: &Origin) -> Result<Vec<String>, Failure> {
    let request = origin.request(Method::GET, "/strategies")?;
    let answer = ask(origin, request, "GET /strategies").await?;
    let known: Vec<Known> = json(&answer, "GET /strategies")?;
    Ok(known.into_iter().map(|k| k.slug).collect())
}

/// What is answered at a path; `None` where nobody answers.
pub(super) async fn probe(origin: &Origin, path: &str) -> Option<Answer> {
    let request = origin.request(Method::GET, path).ok()?;
    let mut link = Link::open(origin, &Arc::new(Meter::default())).await.ok()?;
    tokio::time::timeout(TIMEOUT, link.exchange(request)).await.ok()?.ok()
}

async fn ask(origin: &Origin, request: Request<Body>, what: &str) -> Result<Answer, Failure> {
    let failed = |why: String| Failure::Unusable(format!("{what} at {origin}: {why}"));
    let mut link = Link::open(origin, &Arc::new(Meter::default())).await.map_err(failed)?;
    let answer = match tokio::time::timeout(TIMEOUT, link.exchange(request)).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(Cut::NotSent)) => return Err(failed("the connection was closed".into())),
        Ok(Err(Cut::NoAnswer(why))) => return Err(failed(why)),
        Err(_) => return Err(failed(format!("no answer within {} s", TIMEOUT.as_secs()))),
    };
    match answer.status {
        200..300 => Ok(answer),
        401 | 403 => Err(failed("it needs the admin token: set OVERSELL__ADMIN__TOKEN".into())),
        status => Err(failed(format!("{status} {}", String::from_utf8_lossy(&answer.body)))),
    }
}

fn json<T: serde::de::DeserializeOwned>(answer: &Answer, what: &str) -> Result<T, Failure> {
    serde_json::from_slice(&answer.body).map_err(|e| Failure::Unusable(format!("{what}: {e}")))
}
