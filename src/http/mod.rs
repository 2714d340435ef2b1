//! The service: what comes in over HTTP becomes one call of the domain, and what that says becomes an answer.
//!
//! `router.rs` is the table of contents. Every request passes through `edge.rs` once; every error becomes a status in
//! `answer.rs`, in one match; `check.rs` is the handler that the course is about.

mod answer;
mod app;
mod check;
mod classroom;
mod edge;
mod fields;
mod figures;
mod format;
mod health;
mod listen;
mod locks;
mod openapi;
mod page;
mod probes;
mod router;
mod runs;
pub mod serve;
mod startup;
mod stock;
mod strategies;
mod zk_barriers;
mod zk_counts;
mod zk_herd;
mod zk_locks;

#[cfg(test)]
mod tests;
