//! The service that takes the lock, calls the inner one, and gives the lock back.
//!
//! A call takes the inner service that was found ready, and leaves a clone in its place. So nothing is called that has not
//! said that it is ready.

use super::{LockLayer, Refusal};
use crate::{Fence, Guard};
use futures::future::BoxFuture;
use http::{Request, Response, request::Parts};
use std::{
    mem,
    task::{Context, Poll},
};

/// A service under a [`LockLayer`].
#[derive(Debug)]
pub struct LockService<S, B> {
    pub(super) inner: S,
    pub(super) layer: LockLayer<B>,
}

/// What a handler under a [`LockLayer`] finds in its request's extensions: the lock that is held while it works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The lock's name.
    pub name: String,
    /// This hold's fencing token, where the lock has one: to be shown with every write.
    pub fence: Option<Fence>,
}

impl<S, R, B> tower_service::Service<Request<R>> for LockService<S, B>
where
    S: tower_service::Service<Request<R>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send,
    R: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Response<B>, S::Error>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<R>) -> Self::Future {
        let next = self.inner.clone();
        let mut ready = mem::replace(&mut self.inner, next);
        let layer = self.layer.clone();
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            let guard = match layer.take(&head).await {
                Ok(guard) => guard,
                Err(refusal) => return Ok((layer.answer)(refusal)),
            };
            head.extensions.insert(Held {
                name: guard.name().to_owned(),
                fence: guard.fence(),
            });
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
    /// The lock that this request is to have.
    async fn take(&self, head: &Parts) -> Result<Guard, Refusal> {
        let name = self.terms.template.fill(head)?;
        let lock = (self.terms.locks)(&name, head);
        Ok(lock.dyn_acquire((self.terms.wait)(head)).await?)
    }
}

impl<S: Clone, B> Clone for LockService<S, B> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            layer: self.layer.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lock, LockError};
    use std::{
        convert::Infallible,
        future::{Ready, ready},
        time::Duration,
    };
    use tower::{Layer, Service, ServiceExt};

    /// A service that is called only when it has said that it is ready; a clone has not.
    struct Strict(bool);

    impl Clone for Strict {
        fn clone(&self) -> Self {
            Self(false)
        }
    }

    impl Service<Request<()>> for Strict {
        type Response = Response<String>;
        type Error = Infallible;
        type Future = Ready<Result<Response<String>, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            self.0 = true;
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, request: Request<()>) -> Self::Future {
            assert!(std::mem::take(&mut self.0), "called without being ready");
            let held = request
                .extensions()
                .get::<Held>()
                .map(|held| held.name.clone());
            ready(Ok(Response::new(held.unwrap_or_default())))
        }
    }

    /// A lock that is free, or down.
    struct Free(String);

    impl Lock for Free {
        fn name(&self) -> &str {
            &self.0
        }

        async fn acquire(&self, _: Duration) -> Result<Guard, LockError> {
            if self.0.ends_with("down") {
                return Err(LockError::unavailable("redis", "gone"));
            }
            let (guard, mut keeper) = Guard::new(self.name(), None);
            tokio::spawn(async move { keeper.asked_to_release().await.done(Ok(())) });
            Ok(guard)
        }
    }

    fn ask(uri: &str) -> Request<()> {
        Request::get(uri).body(()).unwrap()
    }

    #[tokio::test]
    async fn the_service_that_is_called_is_the_one_that_was_ready() {
        let layer = LockLayer::by_key("goods:{sku}")
            .locks(|name| Free(name.to_owned()))
            .unwrap();
        let mut service = layer.layer(Strict(false));
        for _ in 0..2 {
            let done = service
                .ready()
                .await
                .unwrap()
                .call(ask("/?sku=a"))
                .await
                .unwrap();
            assert_eq!(done.body(), "goods:a");
        }
    }

    #[tokio::test]
    async fn the_words_of_a_refusal_may_be_others() {
        let layer = LockLayer::by_key("goods:{sku}")
            .locks(|name| Free(name.to_owned()))
            .unwrap();
        let service = layer
            .answer(|refusal| Response::new(format!("no: {}", refusal.status())))
            .layer(Strict(false));
        for (uri, body) in [
            ("/?sku=down", "no: 503 Service Unavailable"),
            ("/", "no: 400 Bad Request"),
        ] {
            assert_eq!(
                service.clone().oneshot(ask(uri)).await.unwrap().body(),
                body
            );
        }
    }
}
