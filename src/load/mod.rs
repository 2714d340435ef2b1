//! Load and verdicts: sends requests to a running cluster, counts what was sold against what left the shelf, and says
//! whether the two agree.
//!
//! The core is pure: [`history`] is what was seen, [`stats`] sums it up, [`verdict`] judges it. The edge is thin:
//! `link` is one keep-alive connection, `engine` drives many of them, [`run`] is one measured run. Three
//! commands stand on it: [`compare`], [`mod@seckill`] and [`bench`](mod@bench).

pub mod history;
pub mod stats;
pub mod verdict;

mod answer;
mod asks;
mod engine;
mod inside;
pub mod lanes;
mod link;
pub mod rate;
pub mod row;
pub mod run;
mod stock_api;

pub mod bench;
mod ceiling;
pub mod compare;
pub(crate) mod conditions;
#[allow(unreachable_pub)]
pub(crate) mod filters;
pub mod seckill;
pub(crate) mod target;
pub(crate) mod terminal;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

pub use row::{ONE, Row, THREE};
