//! The command line: one subcommand for each thing that `oversell` does.

use crate::{failure::Failure, http, lab, load};
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// See, measure and understand overselling and distributed locks.
#[derive(Debug, Parser)]
#[command(name = "oversell", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(http::serve::Args),
    Lab(lab::command::Args),
    Compare(load::compare::Args),
    Bench(load::bench::Args),
}

/// Parses the command line, runs the command, and gives its exit status: 0 as promised, 1 a promise was broken,
/// 2 bad usage or something missing.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&Failure::Unusable(format!("no async runtime: {error}"))),
    };
    let done = runtime.block_on(async {
        match cli.command {
            Command::Serve(args) => http::serve::run(args).await,
            Command::Lab(args) => lab::command::run(args).await,
            Command::Compare(args) => load::compare::run(args).await,
            Command::Bench(args) => load::bench::run(args).await,
        }
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => fail(&failure),
    }
}

fn fail(failure: &Failure) -> ExitCode {
    eprintln!("oversell: {failure}");
    failure.exit_code()
}
