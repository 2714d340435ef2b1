//! The contract that every lock of this crate keeps, on real servers: clauses by capability, run over one kind of lock per
//! engine that has it, and over all with `OVERSELL_SOAK=1`; each clause has a broken twin that it must refuse.
//!
//! In reading order: `family.rs` describes a lock for the contract; `clauses.rs` is what every lock keeps, `holds.rs` what
//! locks with an owner or a lease keep; `redis/`, `zookeeper/`, `etcd/` and `table/` are the servers, each with the list of its kinds
//! and the tests of what one kind alone promises; `twins.rs` has the broken locks. `programs.rs` and `gates.rs` call every
//! kind at random, `recorder.rs` records the calls, `../history/checker.rs` judges them, and `program_twins.rs` has locks
//! that it must refuse; they run by themselves (`-- --ignored`). `servers.rs` starts the servers, and the lab's proxy and
//! `mute.rs` break the connections to them. The service's tests share `harness.rs`.

mod certificates;
mod changes;
#[path = "../history/checker.rs"]
mod checker;
mod clauses;
mod closing;
mod crowd;
mod etcd;
mod events;
mod examples;
mod family;
mod gates;
mod harness;
mod holders;
mod holds;
mod layer;
mod multi;
mod mute;
mod names;
mod program_twins;
mod programs;
mod recorder;
mod redis;
mod refusals;
mod register;
mod send;
mod servers;
mod subjects;
mod support;
mod table;
mod twins;
mod zookeeper;

use libtest_mimic::Arguments;
use std::process::ExitCode;
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    let runtime = Runtime::new().expect("a runtime");
    if arguments.list {
        return libtest_mimic::run(&arguments, register::all(runtime.handle(), None)).exit_code();
    }
    let servers = match runtime.block_on(servers::start()) {
        Ok(servers) => servers,
        Err(error) => {
            eprintln!("the servers must run, for no test is skipped: {error}");
            return ExitCode::FAILURE;
        }
    };
    let all = register::all(runtime.handle(), Some(&servers));
    // A thread for each, since most of them wait for their turn.
    arguments.test_threads.get_or_insert(all.len());
    let conclusion = libtest_mimic::run(&arguments, all);
    runtime.block_on(register::Engines::at(None).cluster.stop());
    runtime.block_on(servers.stop());
    conclusion.exit_code()
}
