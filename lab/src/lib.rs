//! Real servers, started, broken and stopped on one machine, and what commands need to talk about them.
//!
//! In reading order: [`lab`] starts MariaDB, Redis, ZooKeeper, nginx and the instances of a service; [`fault`] names what can be broken
//! and [`clients`] has the proxy that breaks it, beside small clients of servers; [`programs`] finds the system's own programs;
//! [`addresses`] is `lab.json`; [`migrations`] has the tables. [`terminal`] is what commands print, in either language; [`spread`] the
//! median of several measurements; [`wait`] asks until something has happened.
//!
//! The tests of the lock library start their servers by it. It knows neither a strategy nor a lesson.

#[cfg(target_os = "linux")]
pub mod lab;
#[cfg(not(target_os = "linux"))]
#[path = "lab_elsewhere.rs"]
pub mod lab;

pub mod addresses;
pub mod clients;
pub mod fault;
pub mod migrations;
pub mod programs;
pub mod spread;
pub mod terminal;
pub mod wait;
