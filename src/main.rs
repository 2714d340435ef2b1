//! `oversell`: see, measure and understand overselling.
//!
//! The program is the command line, and the trials of the course. All else is the library, whose rooms have the same paths here.

mod cli;
mod trials;

#[cfg(test)]
use oversell::registry;
use oversell::{
    addresses, claims, classroom, clients, fault, http, lab, load, programs, replay, seckill,
    server, shutdown, static_files, stock, terminal,
};

fn main() -> std::process::ExitCode {
    cli::main()
}
