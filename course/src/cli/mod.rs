//! The command line: one subcommand for each thing that `oversell` does.

mod database;
mod help;

use crate::{
    shutdown::Shutdown,
    trials::{
        command::{self, Course},
        fault_matrix,
    },
};
use clap::{
    CommandFactory, FromArgMatches, Parser, Subcommand,
    builder::PossibleValuesParser,
    error::{ContextKind, ContextValue},
};
use clap_complete::Shell;
use oversell::{claims::Lesson, http, load, server::Server, stock};
use oversell_lab::{
    addresses::Addresses,
    lab::{
        self,
        command::{Needs, run_on_lab},
    },
    programs,
    terminal::{
        chinese::{choose_by_locale, localized},
        failure::{Failure, unusable},
        stdout::{self, Output, Outputs, print_to_stderr},
    },
};
use std::{process::ExitCode, time::Duration};
use tokio_util::sync::CancellationToken;

/// How often `bench --lab` restarts an instance, to measure how long its start takes.
const BENCH_STARTS: usize = 3;

/// A mistyped value is answered with all values up to this number, else with the nearest ones.
const MAX_NAMED_VALUES: usize = 60;
/// How many of the nearest values are named where there are more than [`MAX_NAMED_VALUES`].
const NEAREST_VALUES: usize = 8;

const EXAMPLES: &str = "\
Examples:
  oversell compare --lab     the nine strategies that everybody knows, on servers of its own, and which oversold
  oversell lab               the same servers, left running, with the page on http://127.0.0.1:8080
  oversell course --lab      every claim of the course, tried, with a verdict each
  oversell seckill --lab     a seckill of vouchers, by each step that leads there
  oversell bench --lab       figures as ratios to ceilings of the same run
  oversell doctor            what this machine lacks for a lab, and how to get it";

/// See, measure and understand overselling and distributed locks.
#[derive(Debug, Parser)]
#[command(name = "oversell", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(http::server::Args),
    Lab(lab::command::Args),
    /// Loads strategies and says which oversold, and what each sells in a second.
    Compare(WithLab<load::compare::Args>),
    /// Has users order a voucher by each step of [002], and says which oversold, or let one user order twice.
    Seckill(WithLab<load::seckill::Args>),
    /// Tries every claim of the course, and says which came out so.
    Course(WithLab<command::Args>),
    Faults(fault_matrix::command::Args),
    /// Measures strategies as ratios to ceilings of the same run.
    Bench(WithLab<load::bench::Args>),
    /// Runs a load tool, and says from the books of instances and stores what it has bought.
    Judge(WithLab<load::judge::Args>),
    Doctor(lab::doctor::Args),
    /// Prints what a shell needs to complete commands, options and names
    #[command(after_help = "Examples:
  mkdir -p ~/.local/share/bash-completion/completions
  oversell completions bash > ~/.local/share/bash-completion/completions/oversell
  mkdir -p ~/.zfunc   and in ~/.zshrc, before compinit: fpath+=~/.zfunc
  oversell completions zsh > ~/.zfunc/_oversell
  mkdir -p ~/.config/fish/completions
  oversell completions fish > ~/.config/fish/completions/oversell.fish")]
    Completions {
        /// Which shell
        shell: Shell,
    },
}

/// A command against a running lab, or one of its own.
#[derive(Debug, clap::Args)]
struct WithLab<A: clap::Args> {
    /// Start a lab of its own on free ports, and stop it afterwards
    #[arg(long)]
    lab: bool,
    #[command(flatten)]
    args: A,
}

/// How many etcd nodes a lab has: one if it is wanted, and installed or asked for by name. So without it a lab starts as before.
fn etcd_nodes(is_wanted: bool, is_named: bool) -> u16 {
    u16::from(is_wanted && (is_named || programs::find("etcd").is_some()))
}

/// Whether the strategy of this name needs etcd.
fn needs_etcd(slug: &str) -> bool {
    stock::find(slug).is_some_and(|strategy| strategy.spec.needs.contains(&Server::Etcd))
}

/// Runs a command; if `own`, on a lab of its own with what it needs.
async fn with_lab<R>(
    own: bool,
    needs: Needs,
    stop: CancellationToken,
    run: impl FnOnce(Option<Addresses>, Vec<Duration>, CancellationToken) -> R,
) -> Result<(), Failure>
where
    R: Future<Output = Result<(), Failure>>,
{
    match own {
        true => run_on_lab(&stop, needs, |at, took| run(Some(at), took, stop.clone())).await,
        false => run(None, Vec::new(), stop).await,
    }
}

/// Opens the files that a command will write, before it starts or measures anything.
fn open_outputs(args: &impl Outputs) -> Result<(), Failure> {
    args.outputs().into_iter().try_for_each(Output::open)
}

/// Parses the command line, runs the command, and gives its exit status: 0 as promised, 1 a promise was broken or what was found
/// cannot be written, 2 bad usage or something missing, 130 cut short by a signal.
pub(crate) fn main() -> ExitCode {
    let cli = parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return print_failure(&unusable!("no async runtime: {error}")),
    };
    let done = runtime.block_on(async {
        let Shutdown { graceful, immediate } = Shutdown::listen()?;
        tokio::select! {
            done = run(cli.command, graceful) => done,
            () = immediate.cancelled() => Err(Failure::Interrupted(localized!(
                "第二个信号让它立刻结束了",
                "a second signal ended it at once"
            ))),
        }
    });
    // Background tasks are not waited for.
    runtime.shutdown_background();
    // A failed stdout ends the command early; its error comes first.
    match stdout::failure().map_or(done, Err) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => print_failure(&failure),
    }
}

/// The command line; ends the process for help and for errors.
fn parse() -> Cli {
    let is_chinese = choose_by_locale();
    let parsed = help::localize(command_line(), stdout::terminal_width())
        .try_get_matches()
        .and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.unwrap_or_else(|mut error| {
        suggest_nearest_values(&mut error);
        match help::chinese_error(&error).filter(|_| is_chinese) {
            Some(words) => {
                print_to_stderr(format_args!("oversell: {words}"));
                std::process::exit(error.exit_code());
            }
            None => error.exit(),
        }
    })
}

/// The command line, with the names of all strategies for `oversell lab --strategy`, which the lab does not know.
fn command_line() -> clap::Command {
    let slugs = || PossibleValuesParser::new(stock::ALL.iter().map(|strategy| strategy.slug));
    Cli::command().mut_subcommand("lab", |lab| {
        lab.mut_args(|arg| match arg.get_id() == "strategy" {
            true => arg.value_parser(slugs()).hide_possible_values(true),
            false => arg,
        })
    })
}

/// Names only the values that are nearest to the mistyped one.
fn suggest_nearest_values(error: &mut clap::Error) {
    let (Some(ContextValue::Strings(known)), Some(ContextValue::String(given))) =
        (error.get(ContextKind::ValidValue), error.get(ContextKind::InvalidValue))
    else {
        return;
    };
    if known.len() <= MAX_NAMED_VALUES {
        return;
    }
    let alike = |name: &&String| {
        let common = name.bytes().zip(given.bytes());
        std::cmp::Reverse(common.take_while(|(a, b)| a == b).count())
    };
    let mut nearest: Vec<_> = known.iter().collect();
    nearest.sort_by_key(alike);
    nearest.truncate(NEAREST_VALUES);
    let all = localized!("……（共 {} 个）", "… ({} in all)", known.len());
    let nearest = nearest.into_iter().cloned().chain([all]).collect();
    error.insert(ContextKind::ValidValue, ContextValue::Strings(nearest));
}

/// Runs the subcommand; output files are opened first.
async fn run(command: Command, stop: CancellationToken) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => http::server::run(args, stop).await,
        Command::Lab(args) => lab::command::run(args.with_etcd_if(needs_etcd), stop).await,
        Command::Compare(WithLab { lab, args }) => {
            open_outputs(&args)?;
            let etcd = etcd_nodes(args.needs_etcd(), args.names_strategies());
            with_lab(lab, Needs { etcd, ..Needs::default() }, stop, |at, _, stop| load::compare::run(args, at, stop)).await
        }
        Command::Seckill(WithLab { lab, args }) => {
            open_outputs(&args)?;
            with_lab(lab, Needs::default(), stop, |at, _, stop| load::seckill::run(args, at, stop)).await
        }
        Command::Course(WithLab { lab, args }) => {
            open_outputs(&args)?;
            let mut run = Course::new(args)?;
            let done = match lab {
                true => try_course_on_labs(&mut run, stop).await,
                false => run.try_lessons(None, |_| true, stop).await,
            };
            // Results up to the stop are printed too.
            done.and(run.write_results())
        }
        Command::Faults(args) => {
            open_outputs(&args)?;
            fault_matrix::command::run(args, stop).await
        }
        Command::Bench(WithLab { lab, args }) => {
            open_outputs(&args)?;
            let needs = Needs { etcd: etcd_nodes(true, false), starts: BENCH_STARTS, ..Needs::default() };
            with_lab(lab, needs, stop, |at, took, stop| load::bench::run(args, at, took, stop)).await
        }
        Command::Judge(WithLab { lab, args }) => {
            open_outputs(&args)?;
            let etcd = etcd_nodes(args.needs_etcd(), true);
            with_lab(lab, Needs { etcd, ..Needs::default() }, stop, |at, _, stop| load::judge::run(args, at, stop)).await
        }
        Command::Doctor(args) => {
            let database = database::check().await;
            lab::doctor::run(args).and(database)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command_line(), "oversell", &mut script);
            stdout::print_unwrapped_line(&String::from_utf8_lossy(&script));
            Ok(())
        }
    }
}

/// Tries the course on a lab that accepts faults; then what compares rates on one in which nothing stands between instances and
/// servers.
async fn try_course_on_labs(run: &mut Course, stop: CancellationToken) -> Result<(), Failure> {
    let etcd = etcd_nodes(run.has_chosen(|lesson| lesson.strategies.iter().any(|slug| needs_etcd(slug))), false);
    let others = |lesson: &Lesson| !lesson.compares_rates();
    for (breakable, is_its) in [(true, others as fn(&Lesson) -> bool), (false, Lesson::compares_rates)] {
        if run.has_chosen(is_its) {
            let needs = Needs { etcd, breakable, ..Needs::default() };
            run_on_lab(&stop, needs, |at, _| run.try_lessons(Some(at), is_its, stop.clone())).await?;
        }
    }
    Ok(())
}

/// Prints the failure on stderr; returns its exit status.
fn print_failure(failure: &Failure) -> ExitCode {
    print_to_stderr(format_args!("oversell: {failure}"));
    failure.exit_code()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_lacks_its_chinese() {
        help::tests::assert_is_whole(command_line());
    }
}
