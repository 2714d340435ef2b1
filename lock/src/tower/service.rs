//! The service that takes the lock, calls the inner service, and releases the lock.
//!
//! A call takes the inner service that reported that it is ready, and leaves a clone in its place.

use super::{LockLayer, Refusal};
use crate::{Fence, Guard, Lock, LockError};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, request::Parts};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::{
    error::Error,
    mem,
    sync::Arc,
    task::{Context, Poll},
};

/// A service that takes the lock of its [`LockLayer`] around each request to the inner service.
#[derive(Debug)]
pub struct LockService<S, B> {
    pub(super) inner: S,
    pub(super) layer: LockLayer<B>,
}

/// The lock that is held while a handler under a [`LockLayer`] runs, found in its request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldLock {
    /// The lock's name.
    pub name: String,
    /// This hold's fencing token, if it has exactly one, to be sent with every write.
    pub fence: Option<Fence>,
    /// The lock of the next layer further out, if there are several.
    pub outer: Option<Arc<HeldLock>>,
}

impl<S, B> tower_layer::Layer<S> for LockLayer<B> {
    type Service = LockService<S, B>;

    fn layer(&self, inner: S) -> LockService<S, B> {
        LockService { inner, layer: self.clone() }
    }
}

impl<S, R, B> tower_service::Service<Request<R>> for LockService<S, B>
where
    S: tower_service::Service<Request<R>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    R: Body<Data: Send, Error: Into<Box<dyn Error + Send + Sync>>> + From<Bytes> + Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    /// Takes the lock, calls the inner service and releases the lock; a release that fails is only logged.
    fn call(&mut self, request: Request<R>) -> Self::Future {
        let next = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, next);
        let layer = self.layer.clone();
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            let (guard, body) = match layer.take_lock(&mut head, body).await {
                Ok(taken) => taken,
                Err(refusal) => return Ok((layer.answer)(refusal)),
            };
            let outer = head.extensions.remove::<HeldLock>().map(Arc::new);
            head.extensions.insert(HeldLock { name: guard.name().to_owned(), fence: guard.fence(), outer });
            match guard.run(ready.call(Request::from_parts(head, body))).await {
                Ok(done) => {
                    if let Err(error) = guard.release().await {
                        tracing::warn!(%error, "the work was done, and its lock was not released cleanly");
                    }
                    done
                }
                Err(lost) => Ok((layer.answer)(lost.into())),
            }
        })
    }
}

impl<B> LockLayer<B> {
    /// Fills the lock's name, reads the request's body into memory, then takes the lock; returns the guard and the body.
    async fn take_lock<R>(&self, head: &mut Parts, body: R) -> Result<(Guard, R), Refusal>
    where
        R: Body<Error: Into<Box<dyn Error + Send + Sync>>> + From<Bytes>,
    {
        let name = self.terms.key.name(head).await?;
        let body = self.read_body(body).await?;
        let lock = (self.terms.locks)(&name, head);
        match lock.acquire((self.terms.wait)(head)).await {
            Ok(guard) => Ok((guard, body)),
            // The name came from the request.
            Err(LockError::Invalid { rule, .. }) if self.terms.key.is_of_request() => {
                Err(Refusal::Field { field: "key".into(), rule })
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reads the body into memory, to its end; refuses one that is longer than the layer allows or breaks off.
    async fn read_body<R>(&self, body: R) -> Result<R, Refusal>
    where
        R: Body<Error: Into<Box<dyn Error + Send + Sync>>> + From<Bytes>,
    {
        if body.is_end_stream() {
            return Ok(body);
        }
        let longest = self.terms.longest_body;
        match Limited::new(body, longest).collect().await {
            Ok(body) => Ok(body.to_bytes().into()),
            Err(error) if error.is::<LengthLimitError>() => Err(Refusal::BodyTooLong { longest }),
            Err(_) => Err(Refusal::Field { field: "body".into(), rule: "must come to its end" }),
        }
    }
}

impl<S: Clone, B> Clone for LockService<S, B> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;
    use std::{
        convert::Infallible,
        future::{Ready, ready},
        time::Duration,
    };
    use tower::{Layer, Service, ServiceExt};

    type Text = Full<Bytes>;

    /// A service that must be called only after it was ready; a clone is not.
    struct MustBeReady(bool);

    impl Clone for MustBeReady {
        fn clone(&self) -> Self {
            Self(false)
        }
    }

    impl Service<Request<Text>> for MustBeReady {
        type Response = Response<String>;
        type Error = Infallible;
        type Future = Ready<Result<Response<String>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            self.0 = true;
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<Text>) -> Self::Future {
            assert!(std::mem::take(&mut self.0), "called without being ready");
            let held = request.extensions().get::<HeldLock>();
            let held = std::iter::successors(held, |held| held.outer.as_deref());
            let names: Vec<_> = held.map(|held| held.name.as_str()).collect();
            ready(Ok(Response::new(names.join(" in "))))
        }
    }

    /// A lock that is free, or down.
    struct FreeOrDown(String);

    impl Lock for FreeOrDown {
        fn name(&self) -> &str {
            &self.0
        }

        async fn acquire(&self, _: Duration) -> Result<Guard, LockError> {
            if self.0.ends_with("down") {
                return Err(LockError::unavailable("redis", "gone"));
            }
            if self.0.len() > 20 {
                return Err(LockError::invalid(self.name(), "is too long"));
            }
            let (guard, mut keeper) = Guard::new(self.name(), None);
            tokio::spawn(async move { keeper.release_requested().await.done(Ok(())) });
            Ok(guard)
        }
    }

    fn ask(uri: &str) -> Request<Text> {
        Request::get(uri).body(Text::default()).unwrap()
    }

    #[tokio::test]
    async fn the_service_that_is_called_is_the_one_that_was_ready() {
        let layer = LockLayer::by_key("goods:{sku}").locks(|name| FreeOrDown(name.to_owned())).unwrap();
        let mut service = layer.layer(MustBeReady(false));
        for _ in 0..2 {
            let done = service.ready().await.unwrap().call(ask("/?sku=a")).await.unwrap();
            assert_eq!(done.body(), "goods:a");
        }
    }

    #[tokio::test]
    async fn the_words_of_a_refusal_may_be_others() {
        let layer = LockLayer::by_key("goods:{sku}").locks(|name| FreeOrDown(name.to_owned())).unwrap();
        let service = layer.answer(|refusal| Response::new(format!("no: {}", refusal.status()))).layer(MustBeReady(false));
        for (uri, body) in [
            ("/?sku=down", "no: 503 Service Unavailable"),
            ("/", "no: 400 Bad Request"),
            ("/?sku=a-name-that-is-too-long", "no: 400 Bad Request"),
        ] {
            assert_eq!(service.clone().oneshot(ask(uri)).await.unwrap().body(), body);
        }
    }

    /// A name that the request did not make is not the client's fault.
    #[tokio::test]
    async fn a_lock_for_all_whose_name_is_too_long_is_our_error() {
        let layer = LockLayer::by_key("a lock for all of them").locks(|name| FreeOrDown(name.to_owned())).unwrap();
        let answer = layer.layer(MustBeReady(false)).oneshot(ask("/")).await.unwrap();
        assert_eq!(answer.status(), 500);
    }

    #[tokio::test]
    async fn a_handler_sees_the_locks_of_all_layers() {
        let layer = |key: &str| -> LockLayer<String> {
            let key = LockLayer::by_key(key);
            key.locks(|name| FreeOrDown(name.to_owned())).unwrap()
        };
        let inner = layer("inner").layer(MustBeReady(false));
        let service = layer("outer").layer(inner);
        let answer = service.oneshot(ask("/")).await.unwrap();
        assert_eq!(answer.body(), "inner in outer");
    }

    #[tokio::test]
    async fn a_body_that_is_too_long_is_refused() {
        let layer: LockLayer<String> =
            LockLayer::by_key("a lock for all").longest_body(3).locks(|name| FreeOrDown(name.to_owned())).unwrap();
        for (text, status) in [("", 200), ("abc", 200), ("abcd", 413)] {
            let request = Request::post("/").body(Text::from(text)).unwrap();
            let answer = layer.layer(MustBeReady(false)).oneshot(request).await.unwrap();
            assert_eq!(answer.status(), status, "{text:?}");
        }
    }
}
