//! A stock that oversells, every cure for it, and what each costs.
//!
//! In reading order: [`stock`] has the strategies, one to a file; [`replay`] forces the races that break them; [`http`]
//! serves both; `instance` makes the tables and watches the servers; [`load`] tries the strategies under load and says
//! which oversold; [`claims`] has every claim of the documents; [`section`] has what strategies share.
//!
//! The package `oversell-lab` starts the real servers that all of it runs against. The program, in `course/`, adds the command line and
//! the trials of the claims.
//!
//! # Words
//!
//! The service uses these words for these things; what concerns locks is in the glossary of `oversell-lock`.
//!
//! | word | meaning |
//! |---|---|
//! | product | what is sold, by `stock_id`; the course's is 1 |
//! | piece | one unit of a product's stock |
//! | strategy | a way to take a piece: `/check/lock/{strategy}` |
//! | section | the critical section: the read, the check and the write |
//! | job | one request in progress, with its owner and its observers |
//! | point | a named place in a job's code, where it can be observed and stopped |
//! | promise | what a strategy claims: safe, safe in one process, safe while the lease lasts, unsafe |
//! | lesson | one entry of the course: a claim, its place in the text, how it is tried |
//! | experiment | how a lesson's claim is tried |
//! | verdict | the result of a check: exact, oversold, unknown; for a claim: reproduced or not |
//! | twin | a broken system that a check must refuse |
//! | race | a forced interleaving of actors: a flaw, and its cure |
//! | actor | a job that a race starts and stops at points |
//! | step | a part of a race; in the seckill, one way to place an order |
//! | voucher | what the seckill sells, one to a user |
//! | load | many requests by the load generator, with their history |
//! | lab | real servers and instances, started and stopped by this program |
//! | instance | one process of the service |
//! | visit | a request to a lesson of the class page |
//! | spec | the specification of a strategy or of a step: what its file declares |
//! | oversold | more pieces sold than are gone from the stock |

pub mod classroom;
pub mod seckill;
pub mod section;
pub mod stock;
pub mod stock_admin;

pub mod own_lock;
pub mod replay;

pub mod http;
mod instance;
pub mod load;

pub mod claims;

#[cfg(test)]
mod boundary;

pub mod config;
mod console;
pub mod ctx;
pub mod error;
mod permits;
mod redis_pool;
pub mod registry;
pub mod replay_log;
pub mod server;
pub mod static_files;
mod telemetry;
pub mod visits;
