//! A stock that oversells, every cure for it, and what each costs.
//!
//! In reading order: [`stock`] has the strategies, one to a file; [`replay`] forces the races that break them; [`http`]
//! serves both; `instance` makes the tables and watches the servers; [`load`] tries the strategies under load and says
//! which oversold; [`course`] tries every claim of the documents; [`lab`] starts the real servers that all of it runs
//! against.

pub mod classroom;
pub mod seckill;
pub mod section;
pub mod shelf;
pub mod stock;

pub mod replay;

pub mod http;
mod instance;
pub mod load;

pub mod course;

#[cfg(target_os = "linux")]
pub mod lab;
#[cfg(not(target_os = "linux"))]
#[path = "lab_elsewhere.rs"]
pub mod lab;

#[cfg(test)]
mod boundary;

pub mod addresses;
pub mod bilingual;
pub mod cli;
pub mod config;
pub mod console;
pub mod ctx;
pub mod error;
pub mod failure;
pub mod four_letters;
pub mod http_client;
pub mod orders;
pub mod redis_at;
pub mod registry;
pub mod server;
pub mod shutdown;
mod static_files;
pub mod telemetry;
pub mod visits;
