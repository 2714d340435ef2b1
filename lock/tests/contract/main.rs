//! The contract that every lock of this crate keeps, on real servers: clauses by capability, run over one kind of lock per
//! engine that has it, and over all with `OVERSELL_SOAK=1`, and for each clause a broken twin that shows that it can fail.
//!
//! In reading order: `family.rs` is what the contract needs to know of a lock; `clauses.rs` is what every lock keeps,
//! `holds.rs` what those keep that have an owner or a lease; `redis.rs`, `redlock.rs`, `zookeeper.rs` and `table.rs` are the
//! engines, each with the list of its kinds; `twins.rs` has the locks that are wrong on purpose. `programs.rs` does
//! anything in whichever order with every kind, `recorder.rs` writes down what it came to, `../history/checker.rs` judges that, and
//! `program_twins.rs` has locks that it must refuse; this runs by itself (`-- --ignored`). The other files have what one kind alone promises.
//! `servers.rs` is where the servers come from, the lab's proxy and `mute.rs` break the way to them. The
//! service's tests have `harness.rs` as well.

mod certificates;
mod changes;
#[path = "../history/checker.rs"]
mod checker;
mod clauses;
mod crowd;
mod examples;
mod fair;
mod family;
mod fences;
mod gates;
mod given;
mod harness;
mod holders;
mod holds;
mod latch;
mod layer;
mod multi;
mod mute;
mod permits;
mod program_twins;
mod programs;
mod rate;
mod read_write;
mod recorder;
mod redis;
mod redis_access;
mod redis_cuts;
mod redis_faults;
mod redis_holds;
mod redis_java_watchdog;
mod redis_own;
mod redis_refusals;
mod redis_sentinel;
mod redlock;
mod redlock_faults;
mod refusals;
mod register;
mod replicas;
mod rw_holds;
mod rw_line;
mod send;
mod servers;
mod subjects;
mod support;
mod table;
mod table_answers;
mod table_bounds;
mod table_lease;
mod table_pool;
mod table_tls;
mod twins;
mod zk_barrier;
mod zk_counts;
mod zk_double_barrier;
mod zk_double_barrier_rounds;
mod zk_ensemble;
mod zk_losses;
mod zk_queue;
mod zk_recipes;
mod zk_semaphore;
mod zk_wire;
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
    runtime.block_on(servers.stop());
    conclusion.exit_code()
}
