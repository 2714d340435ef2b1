//! A lock around a route, or around any tower service of HTTP requests, for business code that does not know of it.
//!
//! 1. The key is made of what the handler gets too, by axum's extractors ([`LockLayer::by_extractor`], with the feature `axum`);
//!    or a template is filled from the text of the request: parts of its path, its query, its headers
//!    ([`LockLayer::by_key`]); or the key is the route itself ([`LockLayer::by_route`]).
//! 2. The request's body is read, up to [`DEFAULT_BODY_LIMIT`] bytes, before the lock is taken: a slow client holds up nobody.
//! 3. The lock of this name is taken, waiting as long as the layer allows, and the inner service is called.
//! 4. The lock is released when the service has returned its response, and then the response is sent. A body that is
//!    streamed after that is outside of the lock.
//!
//! If the lock is not acquired, or is lost, the layer answers instead of the service ([`Refusal`]). At the loss the service's
//! future is dropped, at whichever `await` it is; what it has already sent continues, so a resource that matters checks the fence
//! ([`HeldLock`]). A client that hangs up drops the layer's future, and a handler that panics unwinds through it: both release
//! the lock. Work that finished when the loss is noticed is answered as lost: it may have overlapped with another's.
//!
//! **Two requests whose fields differ never fill one template to the same name.** The other way round it does not hold: see
//! *What breaks it*. In a filled value every byte that is no ASCII
//! letter, digit or `-` is written `%XX`, and between two fields of a template there must be another character, `_` or `:` for
//! example. A value has 1 to [`MAX_VALUE_LENGTH`] bytes and occurs once; otherwise the answer is 400.
//!
//! Nothing is kept for a key: its handle ends with the request, and the state shared by one name's handles with the
//! last of them. A map of handles by key would grow for ever.
//!
//! There is no attribute macro: a layer is already one line at the route, without a second parser of the template.
//!
//! # Survives
//!
//! A client that hangs up, a handler that panics, a lock that is lost, a server that is down.
//!
//! # What breaks it
//!
//! - **a template where the handler reads values**: it is filled with text, and one value has many spellings. To a handler with
//!   `Path<u32>` both `/stock/7` and `/stock/007` are 7, but they take two locks, and are inside at once. Use
//!   [`by_extractor`](LockLayer::by_extractor), or let the handler use the text. So too where a column of the database
//!   compares without case: `STOCK` and `stock` are one row and two locks, unless the key's values are made lower case;
//! - work that the handler has spawned or streams: the lock does not cover it;
//! - two layers whose templates give the same name: the inner one waits for the outer one;
//! - a readiness that the inner service has promised (`ConcurrencyLimit`) is used up while its request waits for the lock:
//!   put such a limit outside.
//!
//! # Example
//!
//! ```
//! # #[cfg(all(feature = "axum", feature = "redis"))]
//! # mod example {
//! use axum::{Router, body::Body, extract::Path, routing::post};
//! use oversell_lock::{redis::RedisClient, tower::{LockLayer, TemplateError}};
//! use std::time::Duration;
//!
//! fn routes(redis: RedisClient) -> Result<Router, TemplateError> {
//!     let key = |Path(warehouse): Path<u32>| format!("stock:{warehouse}");
//!     let one_at_a_time: LockLayer<Body> = LockLayer::by_extractor(key)
//!         .wait(Duration::from_secs(5))
//!         .locks(move |name| redis.lock(name))?;
//!     Ok(Router::new().route("/stock/{warehouse}", post(deduct).layer(one_at_a_time)))
//! }
//!
//! async fn deduct(Path(warehouse): Path<u32>) -> String {
//!     format!("one less in {warehouse}")
//! }
//! # }
//! ```
//!
//! # gRPC
//!
//! A service of tonic is an axum router (`Routes::into_axum_router`). A call's metadata are headers (`{header:x-sku}`), and its
//! path is `/package.Service/Method`. [`LockLayer::answer`] gives a refused call a status of gRPC: `examples/grpc.rs`. A request
//! that is streamed is read to its end before the lock is taken.
//!
//! Next to read: `template.rs`, then `service.rs`.

#[cfg(feature = "axum")]
mod extractor;
mod refusal;
mod service;
mod template;

pub use refusal::Refusal;
pub use service::{HeldLock, LockService};
pub use template::{MAX_VALUE_LENGTH, TemplateError, escape};

use crate::{DynLock, Lock};
use futures::future::BoxFuture;
use http::{Response, request::Parts};
use std::{fmt, sync::Arc, time::Duration};
use template::{AllowedFields, Template};

/// How long a request waits for its lock by default; then it is refused.
pub const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// The most bytes of a request's body by default: 2 MiB, as in axum. A longer body is refused.
pub const DEFAULT_BODY_LIMIT: usize = 2 * 1024 * 1024;

/// Makes the lock's name of a request's head.
type MakeKey = dyn for<'a> Fn(&'a mut Parts) -> BoxFuture<'a, Result<String, Refusal>> + Send + Sync;
/// Makes the lock of this name, for a request with this head.
type MakeLock = dyn Fn(&str, &Parts) -> Box<dyn DynLock> + Send + Sync;
/// Says how long a request with this head waits for its lock.
type WaitOf = dyn Fn(&Parts) -> Duration + Send + Sync;
/// Makes the response to a request that was refused.
type AnswerTo<B> = dyn Fn(Refusal) -> Response<B> + Send + Sync;

/// Takes a lock around each request to the services that it wraps. Cloning it is cheap.
///
/// `B` is the body of the answers, [`axum::body::Body`](https://docs.rs/axum/latest/axum/body/struct.Body.html) or
/// `Full<Bytes>` say: one that a text can be made into.
pub struct LockLayer<B> {
    terms: Arc<LayerTerms>,
    answer: Arc<AnswerTo<B>>,
}

/// Which lock a request takes, how long it waits for it, and how many bytes its body may have.
struct LayerTerms {
    key: Key,
    locks: Box<MakeLock>,
    wait: Box<WaitOf>,
    longest_body: usize,
}

/// How a layer makes the names of its locks.
enum Key {
    Template(Template),
    Made(Box<MakeKey>),
}

impl Key {
    /// Returns the name of this request's lock.
    async fn name(&self, head: &mut Parts) -> Result<String, Refusal> {
        match self {
            Self::Template(template) => template.fill(head),
            Self::Made(make) => make(head).await,
        }
    }

    /// Whether the name depends on more of the request than its method.
    fn is_of_request(&self) -> bool {
        match self {
            Self::Template(template) => template.has_fields(),
            Self::Made(_) => true,
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Template(template) => template.fmt(f),
            Self::Made(_) => f.write_str("made of extractors"),
        }
    }
}

/// What a layer's key is to be made of, as its builder was told.
enum KeySource {
    Route,
    Template(String),
    #[cfg_attr(not(feature = "axum"), expect(dead_code, reason = "axum's extractors make it"))]
    Made(Box<MakeKey>),
}

/// The builder of a layer: its key, how long it waits, and the longest body.
#[must_use = "no layer is made before it is given its locks"]
pub struct LockKey {
    source: KeySource,
    fields: AllowedFields,
    wait: Box<WaitOf>,
    longest_body: usize,
}

impl LockLayer<()> {
    /// Begins a layer whose requests take the lock of this name, with the braces filled from each request:
    ///
    /// | field | is filled from |
    /// |---|---|
    /// | `{sku}` | the part of the path that the [route](LockKey::route) calls so; where it has none, the query |
    /// | `{path:sku}`, `{query:sku}` | that one |
    /// | `{header:x-user-id}` | a header |
    /// | `{{`, `}}` | nothing: one brace |
    ///
    /// A name without fields is one lock for all. [`LockKey::locks`] checks the template's rules.
    ///
    /// **It is filled with text.** Where the handler reads a number, or anything else that can be written in two ways, use
    /// [`by_extractor`](Self::by_extractor), or two requests for one value are inside at once.
    pub fn by_key(template: impl Into<String>) -> LockKey {
        LockKey::new(KeySource::Template(template.into()))
    }

    /// Begins a layer whose requests take the lock of their route: method and pattern, `POST /stock/{warehouse}` for
    /// example, whatever the path's parts are. HEAD takes the lock of GET, which serves it.
    pub fn by_route(route: impl Into<String>) -> LockKey {
        LockKey::new(KeySource::Route).route(route)
    }
}

impl LockKey {
    /// Begins a layer with the default wait and body limit.
    fn new(source: KeySource) -> Self {
        Self { source, fields: AllowedFields::default(), wait: Box::new(|_| DEFAULT_WAIT), longest_body: DEFAULT_BODY_LIMIT }
    }

    /// Sets the pattern of the paths that the layer will see, as axum writes it: `/stock/{warehouse}`. Inside a nested
    /// router that is the rest of the path.
    pub fn route(mut self, route: impl Into<String>) -> Self {
        self.fields.route = Some(route.into());
        self
    }

    /// Names the query's fields, in place of any named before: a template that names another one is then refused when the layer
    /// is made. Without this any name is allowed, and a request without that field is refused.
    pub fn query<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.fields.query = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Waits for the lock at most `wait`; [`DEFAULT_WAIT`] by default.
    pub fn wait(self, wait: Duration) -> Self {
        self.wait_by(move |_| wait)
    }

    /// Does not wait: a request that finds the lock taken is refused at once.
    pub fn no_wait(self) -> Self {
        self.wait(Duration::ZERO)
    }

    /// Waits as long as `wait` says for each request; what an outer layer has found is in the extensions of the request.
    pub fn wait_by(self, wait: impl Fn(&Parts) -> Duration + Send + Sync + 'static) -> Self {
        Self { wait: Box::new(wait), ..self }
    }

    /// Refuses a body of more than `bytes` bytes, which the layer would keep in memory; [`DEFAULT_BODY_LIMIT`] by default.
    pub fn longest_body(self, bytes: usize) -> Self {
        Self { longest_body: bytes, ..self }
    }

    /// Makes the layer with these locks: `|name| redis.lock(name)`, or of any other kind. The lease is the lock's own.
    ///
    /// # Errors
    ///
    /// [`TemplateError`] if the template or the route breaks a rule, or the template names a field that a request cannot have; or
    /// if a key of extractors was given a route or a query, which it does not read.
    pub fn locks<L, B>(self, locks: impl Fn(&str) -> L + Send + Sync + 'static) -> Result<LockLayer<B>, TemplateError>
    where
        L: Lock + 'static,
        B: From<String>,
    {
        self.locks_by(move |name, _| locks(name))
    }

    /// Makes the layer with locks that depend on more of the request than the name: a requested lease, or an owner that
    /// takes the lock again further in.
    ///
    /// # Errors
    ///
    /// As [`locks`](Self::locks).
    pub fn locks_by<L, B>(self, locks: impl Fn(&str, &Parts) -> L + Send + Sync + 'static) -> Result<LockLayer<B>, TemplateError>
    where
        L: Lock + 'static,
        B: From<String>,
    {
        let key = match self.source {
            KeySource::Template(template) => Key::Template(Template::parse(&template, &self.fields)?),
            KeySource::Route => Key::Template(Template::of_route(&self.fields)?),
            KeySource::Made(make) => Key::Made(self.fields.none_named().map(|()| make)?),
        };
        let locks = Box::new(move |name: &str, head: &Parts| locks(name, head).boxed());
        let terms = Arc::new(LayerTerms { key, locks, wait: self.wait, longest_body: self.longest_body });
        Ok(LockLayer { terms, answer: Arc::new(|refusal| refusal.answer()) })
    }
}

impl<B> LockLayer<B> {
    /// Sets the answer to every refusal, instead of [`Refusal::answer`].
    #[must_use]
    pub fn answer(self, answer: impl Fn(Refusal) -> Response<B> + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), ..self }
    }
}

impl<B> Clone for LockLayer<B> {
    fn clone(&self) -> Self {
        Self { terms: Arc::clone(&self.terms), answer: Arc::clone(&self.answer) }
    }
}

impl<B> fmt::Debug for LockLayer<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockLayer").field("key", &self.terms.key).finish_non_exhaustive()
    }
}

impl fmt::Debug for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockKey").field("fields", &self.fields).finish_non_exhaustive()
    }
}
