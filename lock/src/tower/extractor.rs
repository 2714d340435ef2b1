//! A key that is made of what axum's extractors read, so of values and not of their spellings.
//!
//! The layer must see what the handler sees: `Path` is there in a layer of a route or its router, after the routing, and an
//! `Extension` if its layer stands further out.

use super::{KeySource, LockKey, LockLayer, Refusal};
use axum_core::{
    extract::FromRequestParts,
    response::{IntoResponse, Response},
};
use http_body_util::BodyExt;
use std::sync::Arc;

impl LockLayer<()> {
    /// Begins a layer whose requests take the lock of the name that `key` makes of what an extractor of axum reads: `Path`,
    /// `Query` and any other that leaves the body, or a tuple of them. With the handler's own extractors, two requests for one
    /// value take one lock, however each has written it.
    ///
    /// A request that the extractor rejects gets the extractor's own answer ([`Refusal::Rejected`]). Between two values must be
    /// a character that the first one cannot have; [`escape`](super::escape) makes that true of any text.
    ///
    /// ```
    /// # #[cfg(feature = "redis")]
    /// # fn example(redis: oversell_lock::redis::RedisClient) -> Result<axum::Router, oversell_lock::tower::TemplateError> {
    /// use axum::{Router, body::Body, extract::Path, routing::post};
    /// use oversell_lock::tower::{LockLayer, escape};
    ///
    /// let key = |Path((warehouse, sku)): Path<(u32, String)>| format!("stock:{warehouse}:{}", escape(sku));
    /// let layer: LockLayer<Body> = LockLayer::by_extractor(key).no_wait().locks(move |name| redis.lock(name))?;
    /// let routes = Router::new().route("/stock/{warehouse}/{sku}", post(async || "one less").layer(layer));
    /// # Ok(routes) }
    /// ```
    pub fn by_extractor<T: FromRequestParts<()> + Send>(key: impl Fn(T) -> String + Send + Sync + 'static) -> LockKey {
        Self::by_extractor_with_state((), key)
    }

    /// As [`by_extractor`](Self::by_extractor), for an extractor that needs the router's state.
    pub fn by_extractor_with_state<S, T>(state: S, key: impl Fn(T) -> String + Send + Sync + 'static) -> LockKey
    where
        S: Send + Sync + 'static,
        T: FromRequestParts<S> + Send,
    {
        let terms = Arc::new((state, key));
        LockKey::new(KeySource::Made(Box::new(move |head| {
            let terms = Arc::clone(&terms);
            Box::pin(async move {
                let (state, key) = &*terms;
                let read = T::from_request_parts(head, state).await.map_err(IntoResponse::into_response);
                match read {
                    Ok(values) => Ok(key(values)),
                    Err(answer) => Err(rejected(answer).await),
                }
            })
        })))
    }
}

/// The refusal with an extractor's answer, whose body is a short text.
async fn rejected(answer: Response) -> Refusal {
    let (head, body) = answer.into_parts();
    let body = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let text = String::from_utf8_lossy(&body).into_owned();
    Refusal::Rejected(Box::new(http::Response::from_parts(head, text)))
}
