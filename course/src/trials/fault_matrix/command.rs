//! `oversell faults`: runs the fault matrix on labs of its own.

use super::{ENGINES, Engine, FaultRun, Matrix, page, run};
use crate::trials::{NoVerdict, own_lab::OwnLab, table::Lang};
use oversell::load::{conditions::Conditions, measure::name_parser, terminal::stopped_by_signal};
use oversell_lab::terminal::{
    chinese::localized,
    failure::Failure,
    stdout::{Output, Outputs, colour_mark, print_to_stderr, say},
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Breaks servers while strategies sell, and says what was lost, doubled, refused and unknown.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  oversell faults                                all engines, each on a lab of its own
  oversell faults --engine sentinels ensemble    two of them

The server that is written, or that leads, is killed, paused, cut off, or replaced by plan, and mended after 8 s. What each strategy
promises under that stands beside what was seen; each release has the matrix of a full run attached.

Exit status: 0 every promise kept, 1 one was broken, 2 bad usage, a missing server, a fault that was not felt, 130 cut short by a signal.")]
pub(crate) struct Args {
    /// Only these engines
    #[arg(long = "engine", value_name = "NAME", num_args = 1.., value_parser = name_parser(&ENGINES, |engine| engine.id))]
    engines: Vec<&'static Engine>,
    /// Writes every figure to this file; - is stdout, and the table then goes to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<Output>,
}

impl Outputs for Args {
    fn outputs(&self) -> Vec<&Output> {
        self.json.iter().collect()
    }
}

/// Runs the command. It fails with [`Failure::Promise`] where a strategy did not keep what it promises, with
/// [`Failure::Unusable`] where a lab does not start or a fault is not noticed, with [`Failure::Interrupted`] after a signal.
pub(crate) async fn run(args: Args, stop: CancellationToken) -> Result<(), Failure> {
    let mut found = Matrix::default();
    let done = tokio::select! {
        done = run_engines(&args, &mut found, &stop) => done,
        () = stop.cancelled() => Err(stopped_by_signal()),
    };
    // A run that was stopped prints its results too.
    if !found.runs.is_empty() {
        say!("{}", page::terminal_tables(&found, Lang::of_locale()));
    }
    if let Some(file) = &args.json {
        file.write_json(&found)?;
    }
    done?;
    let broken = broken_promises(&found);
    let (sign, verdict) = match broken.is_empty() {
        true => ("✓", localized!("承诺都兑现了", "every promise kept")),
        false => ("✗", localized!("有承诺被打破", "a promise was broken")),
    };
    say!("{} {verdict}", colour_mark(sign));
    match broken {
        broken if broken.is_empty() => Ok(()),
        broken => Err(Failure::Promise(broken.join("; "))),
    }
}

/// Runs all faults of the chosen engines, and adds each result to `found`; neighbours with the same lab share it.
async fn run_engines(args: &Args, found: &mut Matrix, stop: &CancellationToken) -> Result<(), Failure> {
    let asked = |engine: &&Engine| args.engines.is_empty() || args.engines.iter().any(|named| named.id == engine.id);
    let engines: Vec<_> = ENGINES.iter().filter(asked).collect();
    for engines in engines.chunk_by(|one, next| one.lab == next.lab) {
        let own = OwnLab::start_in_new_folder(engines[0].lab, None, false, stop.clone()).await;
        let own = own.map_err(failure)?;
        if found.conditions.is_empty() {
            let conditions = Conditions::read(own.cluster.servers().ok()).await;
            if let Ok(Value::Object(conditions)) = serde_json::to_value(conditions) {
                found.conditions = conditions;
            }
        }
        for engine in engines {
            for fault in engine.faults {
                print_to_stderr(format_args!("{}: {}", engine.id, fault.words().localized()));
                let ran = run::run(&own, engine, *fault).await.map_err(failure)?;
                found.runs.push(ran);
            }
        }
        own.stop().await.map_err(failure)?;
    }
    Ok(())
}

/// The failure of the command if an experiment came to no verdict.
fn failure(why: NoVerdict) -> Failure {
    match why {
        NoVerdict::Failed(why) => why,
        NoVerdict::Unavailable(words) => Failure::Unusable(words.localized()),
    }
}

/// Describes the broken promises, one line each.
fn broken_promises(found: &Matrix) -> Vec<String> {
    let cells = |run: &FaultRun| {
        let (engine, fault) = (run.engine.clone(), run.fault.words().localized());
        let broken = run.cells.iter().filter_map(move |cell| {
            let words = cell.broken_promise()?;
            Some(format!("{engine}, {fault}: {}: {}", cell.strategy, words.localized()))
        });
        broken.collect::<Vec<_>>()
    };
    found.runs.iter().flat_map(cells).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trials::fault_matrix::{Fault, FaultResult};

    #[test]
    fn a_broken_promise_names_engine_fault_and_strategy() {
        let cell = |promises| FaultResult {
            strategy: "redis-fenced".into(),
            promises,
            sold: 9,
            doubled: 1,
            without_service_ms: Some(80),
            ..FaultResult::default()
        };
        let found = |promises| Matrix {
            runs: vec![FaultRun { engine: "sentinels".into(), fault: Fault::Kill, cells: vec![cell(promises)] }],
            ..Matrix::default()
        };
        assert!(broken_promises(&found(false)).is_empty());
        let said = broken_promises(&found(true)).join("\n");
        assert!(said.contains("sentinels") && said.contains("redis-fenced"), "{said}");
    }
}
