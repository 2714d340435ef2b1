//! The service: what comes in over HTTP becomes one call of the domain, and what that says becomes an answer.
//!
//! `routes/mod.rs` is the table of contents. Every request passes through `middleware.rs` once; every error becomes a status in
//! `error.rs`, in one table; `routes/check.rs` is the handler that the course is about.

mod app;
mod cache;
mod error;
mod extract;
mod form;
mod format;
mod guard;
mod job_summary;
mod kept_verdicts;
mod metrics;
mod middleware;
mod neighbours;
mod openapi;
mod page;
mod problem;
mod queue;
mod replays;
mod routes;
mod runs;
pub mod server;
mod sse;
mod terms;
mod under_way;
mod visitor;

#[cfg(test)]
mod tests;
