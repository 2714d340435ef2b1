//! What a load asks for, request by request, and what the answers mean.

use super::{
    history::{Outcome, Said},
    link::Body,
};
use http::Request;

/// What is asked for.
pub(super) trait Asks: Send + Sync {
    /// The `n`-th request of the load, from 0.
    fn request(&self, n: u64) -> Request<Body>;

    /// What the answer to the `n`-th means.
    fn meaning(&self, n: u64, status: u16, body: &[u8]) -> (Outcome, Said);
}

/// The same request each time.
pub(super) struct Same {
    request: Request<Body>,
    meaning: fn(u16, &[u8]) -> (Outcome, Said),
}

impl Same {
    pub(super) fn boxed(
        request: Request<Body>,
        meaning: fn(u16, &[u8]) -> (Outcome, Said),
    ) -> Box<dyn Asks> {
        Box::new(Self { request, meaning })
    }
}

impl Asks for Same {
    fn request(&self, _: u64) -> Request<Body> {
        self.request.clone()
    }

    fn meaning(&self, _: u64, status: u16, body: &[u8]) -> (Outcome, Said) {
        (self.meaning)(status, body)
    }
}
