//! The command line: one subcommand for each thing that `oversell` does.

use crate::{failure::Failure, http, lab, load};
use clap::{Parser, Subcommand};
use std::{
    pin::pin,
    process::ExitCode,
    time::{Duration, Instant},
};
use tokio::time::timeout;

/// How long a command that is interrupted may take to end by itself, before its lab is stopped.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How often the bench has an instance started.
const STARTS: usize = 3;

const EXAMPLES: &str = "\
Examples:
  oversell compare --lab     the nine strategies that everybody knows, on servers of its own, and which oversold
  oversell lab               the same servers, left running, with the page on http://127.0.0.1:8080
  oversell bench --lab       figures as ratios to ceilings of the same run";

/// See, measure and understand overselling and distributed locks.
#[derive(Debug, Parser)]
#[command(name = "oversell", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(http::serve::Args),
    Lab(lab::command::Args),
    /// Loads strategies and says which oversold, and what each sells in a second.
    Compare(WithLab<load::compare::Args>),
    /// Measures strategies as ratios to ceilings of the same run.
    Bench(WithLab<load::bench::Args>),
}

/// A command that runs against a lab: one that is there, or one of its own.
#[derive(Debug, clap::Args)]
struct WithLab<A: clap::Args> {
    /// Start a lab of its own on free ports, and stop it afterwards
    #[arg(long)]
    lab: bool,
    #[command(flatten)]
    args: A,
}

async fn with_lab(
    own: bool,
    run: impl AsyncFnOnce(Option<&mut lab::Lab>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if !own {
        return run(None).await;
    }
    let mut interrupt = lab::Interrupt::listen()?;
    let options = lab::Options { progress: true, ..lab::Options::default() };
    let mut lab = lab::command::start(options, &mut interrupt).await?;
    let done = {
        let mut running = pin!(run(Some(&mut lab)));
        tokio::select! {
            done = &mut running => done,
            // The command hears the signal too, and may have something to say before it ends.
            () = interrupt.next() => timeout(LAST_WORDS, running).await.unwrap_or_else(|_| {
                Err(Failure::Unusable("interrupted; the lab is stopped".to_owned()))
            }),
        }
    };
    lab::command::stop(lab, &mut interrupt).await;
    done
}

/// How long an instance of the lab takes from its start to its first answer, again and again.
async fn starts(lab: &mut lab::Lab) -> Result<Vec<Duration>, Failure> {
    let mut took = Vec::new();
    let name = lab.addresses().instances.last().map_or_else(String::new, |instance| instance.name.clone());
    for _ in 0..STARTS {
        lab.terminate(&name).await?;
        let begun = Instant::now();
        lab.restart(&name).await?;
        took.push(begun.elapsed());
    }
    Ok(took)
}

async fn bench(args: load::bench::Args, lab: Option<&mut lab::Lab>) -> Result<(), Failure> {
    let Some(lab) = lab else { return load::bench::run(args, None, Vec::new()).await };
    let starts = starts(lab).await?;
    load::bench::run(args, Some(lab.addresses().clone()), starts).await
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
            Command::Compare(WithLab { lab, args }) => {
                with_lab(lab, async |lab| load::compare::run(args, lab.map(|lab| lab.addresses().clone())).await).await
            }
            Command::Bench(WithLab { lab, args }) => with_lab(lab, async |lab| bench(args, lab).await).await,
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
