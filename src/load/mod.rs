//! Load and verdicts: sends requests to a running cluster, and compares the pieces sold with the pieces that left the stock.
//!
//! A [`plan`] has a target and a workload. [`run`](mod@run) sends it and makes a [`row`] with a [`verdict`]. `measure` runs many
//! plans, in interleaved rounds. Three commands use it: [`compare`], [`mod@seckill`], and [`bench`](mod@bench), which compares its
//! rates with ceilings.
//!
//! [`history`] has the outcomes of all requests, [`stats`] the columns of a report, and [`verdict`] judges; none of them uses clock or
//! network. `link` is one keep-alive connection, `engine` drives many of them.

pub mod history;
pub mod stats;
pub mod verdict;

mod answer;
pub mod books;
mod engine;
mod inside;
pub mod judge;
pub mod lanes;
mod link;
pub mod plan;
pub mod row;
pub mod run;
pub mod stock_api;
pub mod voucher;

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

pub use answer::classify_answer;
pub use plan::{ONE_INSTANCE, Plan, THREE_BEHIND_NGINX};
pub use row::Row;
