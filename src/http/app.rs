//! What every handler of an instance shares.

use super::{figures::Figures, probes::Probes, runs::Runs, startup::Progress};
use crate::{config::ConfigError, ctx::Ctx, error::Error, stock};
use http::{HeaderMap, HeaderValue, header};
use secrecy::ExposeSecret;
use std::{ops::Deref, sync::Arc};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// One instance of the service. Cloning it is cheap.
#[derive(Clone)]
pub(super) struct App(Arc<Inner>);

pub(super) struct Inner {
    pub(super) ctx: Ctx,
    pub(super) figures: Figures,
    pub(super) probes: Probes,
    pub(super) runs: Runs,
    /// What the instance still has to do before it can work.
    pub(super) startup: Progress,
    /// Cancelled when the instance is told to stop: ends event streams and runs.
    pub(super) stopping: CancellationToken,
    /// One for each request that may be under way.
    pub(super) permits: Semaphore,
    /// The value of header `x-instance`.
    pub(super) name: HeaderValue,
    /// Where `/check/lock` finds its strategy in [`stock::ALL`].
    pub(super) default_strategy: usize,
}

impl App {
    /// An instance with these clients; `stopping` ends what would go on for ever.
    pub(super) fn new(ctx: Ctx, stopping: CancellationToken) -> Result<Self, ConfigError> {
        let default = &ctx.config.stock.strategy;
        let default_strategy = stock::ALL.iter().position(|s| s.slug == default).ok_or_else(|| {
            let all: Vec<_> = stock::ALL.iter().map(|s| s.slug).collect();
            ConfigError::new(format!("stock.strategy must be one of {}", all.join(", ")))
        })?;
        let name = HeaderValue::from_str(&ctx.instance)
            .map_err(|_| ConfigError::new("server.name must be a text that fits a header".into()))?;
        Ok(Self(Arc::new(Inner {
            figures: Figures::new(),
            probes: Probes::default(),
            runs: Runs::default(),
            startup: Progress::default(),
            stopping,
            permits: Semaphore::new(ctx.config.server.concurrency),
            name,
            default_strategy,
            ctx,
        })))
    }

    /// The address of this instance, as seen from this machine.
    pub(super) fn own_address(&self) -> String {
        let server = &self.ctx.config.server;
        match server.host.as_str() {
            "0.0.0.0" | "::" => format!("http://127.0.0.1:{}", server.port),
            host if host.contains(':') => format!("http://[{host}]:{}", server.port),
            host => format!("http://{host}:{}", server.port),
        }
    }

    /// Lets an administrator pass: everybody, where the configuration has no token.
    ///
    /// # Errors
    ///
    /// [`Error::Unauthorized`].
    pub(super) fn admit_admin(&self, headers: &HeaderMap) -> Result<(), Error> {
        let token = self.ctx.config.admin.token.expose_secret();
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        // Constant time: how long the comparison takes tells nothing about the token.
        if token.is_empty() || bool::from(token.as_bytes().ct_eq(given.as_bytes())) {
            return Ok(());
        }
        Err(Error::Unauthorized)
    }
}

impl Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}
