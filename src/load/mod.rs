//! Load and verdicts: sends requests to a running cluster, counts what was sold against what left the shelf, and says
//! whether the two agree.
//!
//! There is one measure: a [`plan`] says what is sent, and where (target and workload); [`run`](mod@run) makes a [`row`] of
//! it, with a [`verdict`]; `measure` takes many of them, in interleaved rounds. Three commands are rows of it:
//! [`compare`], [`mod@seckill`] and [`bench`](mod@bench), which holds its rows against ceilings.
//!
//! The core is pure: [`history`] is what was seen, [`stats`] sums it up, [`verdict`] judges it. The edge is thin: `link` is
//! one keep-alive connection, `engine` drives many of them.

pub mod history;
pub mod stats;
pub mod verdict;

mod answer;
mod engine;
mod inside;
pub mod lanes;
mod link;
pub mod plan;
pub mod row;
pub mod run;
pub mod spread;
mod stock_api;
mod voucher;

pub mod bench;
mod ceiling;
pub mod compare;
pub mod conditions;
#[allow(unreachable_pub)]
pub mod filters;
pub mod measure;
pub mod seckill;
mod table;
pub mod target;
pub mod terminal;

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;

pub use answer::meaning;
pub use plan::{ONE_INSTANCE, Plan, THREE_BEHIND_NGINX};
pub use row::Row;
