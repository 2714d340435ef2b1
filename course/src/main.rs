//! `oversell`: see, measure and understand overselling.
//!
//! The program is the command line, and the trials of the course. All else is in the packages `oversell` and `oversell-lab`.

mod cli;
mod shutdown;
mod trials;

fn main() -> std::process::ExitCode {
    cli::main()
}
