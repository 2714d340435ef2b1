//! All tests with real servers, in one binary: shared servers start once, and stop before the binary ends.
//!
//! `cargo test --test main -- NAME` runs the tests whose names contain NAME. `register.rs` explains how a
//! test is registered. The folders are those of `src/`; `support/` has servers, labs and buyers.

mod classroom;
mod containers;
mod course;
// Shared with the lock library's tests.
#[path = "../lock/tests/contract/harness.rs"]
mod harness;
mod http;
mod installation;
mod instance;
mod jmeter;
mod lab;
mod load;
#[path = "../lock/tests/contract/mute.rs"]
#[allow(dead_code, reason = "a cluster needs it")]
mod mute;
#[path = "../lock/tests/contract/redis/own_cluster.rs"]
#[allow(dead_code, reason = "nothing here moves a slot")]
mod own_cluster;
mod register;
mod replay;
mod seckill;
mod stock;
mod support;
mod terminal;

use libtest_mimic::Arguments;
use std::process::ExitCode;
use support::{Servers, labs};
use tokio::runtime::Runtime;

/// The repository, which all paths of the tests begin at.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn main() -> ExitCode {
    std::env::set_current_dir(ROOT).expect("the repository");
    let runtime = Runtime::new().expect("an async runtime");
    let mut arguments = Arguments::from_args();
    let trials = register::all(runtime.handle());
    // One thread each: most of them wait for a server.
    arguments.test_threads.get_or_insert(trials.len());
    let conclusion = libtest_mimic::run(&arguments, trials);
    runtime.block_on(async {
        labs::stop().await;
        Servers::stop().await;
    });
    conclusion.exit_code()
}
