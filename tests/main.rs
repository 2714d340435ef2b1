//! Every test that needs real servers, in one binary: what the tests share starts once, and stops before the binary ends.
//!
//! `cargo test -p oversell --test main -- NAME` runs those whose name contains NAME. `register.rs` says how a test comes to
//! be run; the folders are those of `src/`; `support/` has the servers, the labs and the crowds.

mod classroom;
mod containers;
mod course;
// What the lock library's own tests have as well.
#[path = "../lock/tests/contract/harness.rs"]
mod harness;
mod http;
mod instance;
mod jmeter;
mod lab;
mod load;
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

fn main() -> ExitCode {
    let runtime = Runtime::new().expect("an async runtime");
    if let Ok(connect) = std::env::var(stock::zookeeper_faults::HOLDER) {
        let held = runtime.block_on(stock::zookeeper_faults::hold(&connect));
        return ExitCode::from(u8::from(held.is_err()));
    }
    let mut arguments = Arguments::from_args();
    let trials = register::all(runtime.handle());
    // A thread for each, since most of them wait for their turn.
    arguments.test_threads.get_or_insert(trials.len());
    let conclusion = libtest_mimic::run(&arguments, trials);
    runtime.block_on(async {
        labs::stop().await;
        Servers::stop().await;
    });
    conclusion.exit_code()
}
