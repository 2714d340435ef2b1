//! Measures plans on targets: each once for its verdict, and then in rounds for its rate.
//!
//! If an unsafe strategy does not show its fault in the run of the verdict, the row says so; the run is not repeated until it does. A
//! rate comes from runs of its own, with plenty of stock. The rounds are interleaved: each goes through all plans, in another order,
//! so that a slow minute hits all.

use super::{
    ceiling::Ceiling,
    conditions::Conditions,
    plan::{ONE_INSTANCE, Plan, THREE_BEHIND_NGINX, Timed, target_name},
    row::{Rate, Row},
    run::{Snapshot, run},
    table::{RowTable, promise_lines},
    target::{ClusterOptions, Registry, check, token},
    terminal::{Bar, table},
};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use oversell_lab::{
    addresses::Addresses,
    terminal::{
        chinese::localized,
        failure::{Failure, unusable, unusable_localized},
        stdout::{Output, say},
    },
};
use secrecy::SecretString;
use serde::Serialize;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Bounds the warm-up and the measurement of a round that a user may ask for.
const MAX_ROUND_TIME: Duration = Duration::from_secs(600);

/// The options of all commands that measure rows.
#[derive(Debug, clap::Args)]
pub(super) struct MeasureArgs {
    /// One instance, three behind nginx, or both
    #[arg(long, value_delimiter = ',', default_values = [ONE_INSTANCE, THREE_BEHIND_NGINX], value_parser = [ONE_INSTANCE, THREE_BEHIND_NGINX])]
    targets: Vec<String>,
    /// Measure rates too, for this long per strategy, target and round, as 3s
    #[arg(long, value_name = "TIME", value_parser = parse_round_time)]
    duration: Option<Duration>,
    /// How long each measurement runs before it counts
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_round_time)]
    pub(super) warm_up: Duration,
    /// How often each rate is measured
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(super) rounds: u32,
    /// Writes every figure to this file; - is stdout, and the tables then go to stderr
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<Output>,
    /// Prints the tables in Markdown
    #[arg(long)]
    pub(super) markdown: bool,
    #[command(flatten)]
    place: ClusterOptions,
}

/// How rates were measured.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Timing {
    pub(super) warm_up_s: f64,
    pub(super) duration_s: f64,
    pub(super) rounds: u32,
    /// Requests due each second, where the loop is open.
    pub(super) rate: Option<u32>,
}

/// The results of a command that measures rows, as its JSON has them.
#[derive(Debug, Serialize)]
pub(super) struct Measurement {
    pub(super) threads: usize,
    pub(super) loops: usize,
    pub(super) count: i64,
    pub(super) hold_ms: u64,
    /// How rates were measured; absent where they were not.
    pub(super) timing: Option<Timing>,
    pub(super) conditions: Conditions,
    /// The ceiling of each target, if the command measures ceilings.
    pub(super) ceilings: Vec<Ceiling>,
    pub(super) rows: Vec<Row>,
    /// Whether every row is as its strategy promises.
    pub(super) kept: bool,
    /// The runs that could not be made, with the reasons.
    pub(super) not_run: Vec<String>,
}

/// Parses the name of one of these; clap suggests the nearest for a mistyped one.
pub fn name_parser<T: Sync + 'static>(
    all: impl IntoIterator<Item = &'static T>,
    name: fn(&T) -> &'static str,
) -> impl TypedValueParser<Value = &'static T> {
    let all: Vec<_> = all.into_iter().collect();
    let names = PossibleValuesParser::new(all.iter().map(|one| name(one)));
    names.map(move |given| *all.iter().find(|one| name(one) == given).expect("it is one of them"))
}

/// Parses the duration of a round.
fn parse_round_time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|e| e.to_string())?;
    if time > MAX_ROUND_TIME { Err(localized!("最多 10m", "at most 10m")) } else { Ok(time) }
}

/// Runs one plan, and shows its progress on the bar. A run that `stop` cuts short is `Ok`.
pub(super) async fn run_with_progress(bar: &Bar, plan: &Plan, stop: &CancellationToken) -> Result<Row, Failure> {
    let (progress, snapshots) = watch::channel(Snapshot::default());
    let what = describe_plan(plan);
    bar.run_step(&what, snapshots, run(plan, &progress, stop)).await
}

/// Measures each plan for a time in each of `rounds`, on a new product. `stop` ends it, without the run under way. The order
/// changes in each round; of two plans each is first in turn. Returns the rows of each plan, and why runs could not be made.
pub async fn measure_in_rounds(
    plans: &[Plan],
    timed: Timed,
    rounds: usize,
    bar: &Bar,
    stop: &CancellationToken,
) -> (Vec<Vec<Row>>, Vec<String>) {
    let (mut rows, mut failed) = (vec![Vec::new(); plans.len()], Vec::new());
    for round in 0..rounds {
        let mut order: Vec<_> = (0..plans.len()).collect();
        match order[..] {
            [_, _] => order.rotate_left(round % 2),
            _ => fastrand::shuffle(&mut order),
        }
        for n in order {
            if stop.is_cancelled() {
                return (rows, failed);
            }
            match run_with_progress(bar, &plans[n].with_duration(timed), stop).await {
                Ok(_) if stop.is_cancelled() => return (rows, failed),
                Ok(row) => rows[n].push(row),
                Err(why) => {
                    let (plan, round) = (describe_plan(&plans[n]), round + 1);
                    failed.push(localized!("{plan}，第 {round} 轮：{why}", "{plan}, round {round}: {why}"));
                }
            }
        }
    }
    (rows, failed)
}

/// Names the strategy and the target of a plan.
fn describe_plan(plan: &Plan) -> String {
    let (strategy, target) = (&plan.strategy, target_name(&plan.target));
    localized!("{strategy}，{target}", "{strategy} on {target}")
}

/// The targets, each with its address, and the conditions of a measurement.
pub(super) struct Setup {
    pub(super) targets: Vec<(String, String)>,
    conditions: Conditions,
    token: Option<SecretString>,
    /// Those of the wanted strategies whose server a target does not have.
    pub(super) without_server: Vec<String>,
}

impl MeasureArgs {
    /// Finds the targets, checks that each knows all of `slugs`, and prints the conditions.
    /// Errors: [`Failure::Unusable`] where the address of one is not known, it does not answer, or it lacks one of `slugs`.
    pub(super) async fn set_up(&self, at: Option<Addresses>, registry: Registry, slugs: &[&str]) -> Result<Setup, Failure> {
        let cluster = self.place.find(at)?;
        let addresses = self.targets.iter().map(|name| Ok((name.clone(), cluster.address(name)?.to_owned())));
        let targets = addresses.collect::<Result<Vec<_>, Failure>>()?;
        let mut without_server = Vec::new();
        for (_, base) in &targets {
            without_server = check(base, registry, slugs).await?;
        }
        let conditions = Conditions::read(cluster.lab.as_ref()).await;
        say!("{conditions}");
        Ok(Setup { targets, conditions, token: token(cluster.lab.as_ref()), without_server })
    }

    /// Measures each of `slugs` on each target: once for the verdict, then in rounds if a duration was asked for. `load` makes
    /// the plan from that of the course; `rate` is how many requests are due each second of a round, if the loop is open.
    /// Errors: [`Failure::Unusable`] where the plans ask for more than a run may. A run that fails or is cut short is in
    /// `not_run` instead; after `stop` no other begins.
    pub(super) async fn measure(
        &self,
        setup: Setup,
        slugs: &[&str],
        load: impl Fn(Plan) -> Plan,
        rate: Option<u32>,
        ceilings: Vec<Ceiling>,
        stop: &CancellationToken,
    ) -> Result<Measurement, Failure> {
        let mut plans = Vec::new();
        for slug in slugs {
            for (target, base) in &setup.targets {
                plans.push(load(Plan { token: setup.token.clone(), ..Plan::new(base, target, slug) }));
            }
        }
        let first = plans.first().cloned();
        let first = first.ok_or_else(|| unusable!("there is nothing to measure"))?;
        first.check().map_err(Failure::Unusable)?;
        let timed = self.duration.map(|measured| Timed { rate: rate.map(f64::from), ..Timed::closed(self.warm_up, measured) });
        let rounds = timed.map_or(0, |_| self.rounds as usize);
        let bar = Bar::new(plans.len() * (1 + rounds));
        let (mut rows, mut run, mut not_run) = (Vec::new(), Vec::new(), Vec::new());
        for plan in plans {
            if stop.is_cancelled() {
                break;
            }
            match run_with_progress(&bar, &plan, stop).await {
                // A verdict on part of a run would say more than was seen.
                Ok(row) if stop.is_cancelled() && row.stats.samples < plan.planned_requests() => {
                    let (plan, sent, of) = (describe_plan(&plan), row.stats.samples, plan.planned_requests());
                    not_run.push(localized!(
                        "{plan}：{of} 个请求发了 {sent} 个就被打断",
                        "{plan}: cut short after {sent} of {of} requests"
                    ));
                }
                Ok(row) => {
                    rows.push(row);
                    run.push(plan);
                }
                Err(why) => not_run.push(localized!("{}：{why}", "{}: {why}", describe_plan(&plan))),
            }
        }
        let rated = match timed {
            Some(timed) => {
                let (rated, failed) = measure_in_rounds(&run, timed, rounds, &bar, stop).await;
                not_run.extend(failed);
                rated
            }
            None => vec![Vec::new(); run.len()],
        };
        for (row, rounds) in rows.iter_mut().zip(&rated) {
            row.rate = (!rounds.is_empty()).then(|| Rate::of(rounds));
            let answers = row.rate.as_ref().map_or(row.stats.throughput, |rate| rate.answers_per_sec);
            row.bounded_by_generator = ceilings.iter().any(|c| c.target == row.target && c.is_reached_by(answers));
        }
        Ok(Measurement {
            threads: first.threads,
            loops: first.loops,
            count: first.count,
            hold_ms: first.hold_ms,
            timing: self.duration.map(|duration| Timing {
                warm_up_s: self.warm_up.as_secs_f64(),
                duration_s: duration.as_secs_f64(),
                rounds: self.rounds,
                rate,
            }),
            conditions: setup.conditions,
            ceilings,
            kept: rows.iter().all(|row| row.broken_promise().is_none()),
            rows,
            not_run,
        })
    }
}

impl Measurement {
    /// Prints the tables and then, where they are seen, the promises; writes the file of `how`.
    /// Errors: those of [`check_promises`](Self::check_promises); [`Failure::Unusable`] where the file cannot be written.
    pub(super) fn report(&self, how: &MeasureArgs, tables: &[RowTable], stop: &CancellationToken) -> Result<(), Failure> {
        if !self.rows.is_empty() {
            say!("");
            for (columns, left_aligned) in tables {
                say!("{}\n", table(columns, left_aligned, &self.rows, how.markdown));
            }
        }
        for line in promise_lines(&self.rows) {
            say!("{line}");
        }
        if let Some(file) = &how.json {
            file.write_json(self)?;
        }
        self.check_promises(stop)
    }

    /// Errors: [`Failure::Interrupted`] where a signal stopped it, [`Failure::Promise`] where a promise was broken or an
    /// unsafe strategy did not show its fault, [`Failure::Unusable`] where a run could not be made.
    fn check_promises(&self, stop: &CancellationToken) -> Result<(), Failure> {
        let complaints: Vec<_> = self.rows.iter().filter_map(Row::broken_promise).collect();
        if stop.is_cancelled() {
            let (done, not_run) = (self.rows.len(), self.not_run.join("; "));
            Err(Failure::Interrupted(localized!(
                "被信号打断，完整的运行有 {done} 次；{not_run}",
                "cut short by a signal after {done} whole runs; {not_run}"
            )))
        } else if !complaints.is_empty() {
            Err(Failure::Promise(complaints.join("; ")))
        } else if !self.not_run.is_empty() {
            let not_run = self.not_run.join("; ");
            Err(unusable_localized!("没有运行：{not_run}", "not run: {not_run}"))
        } else {
            Ok(())
        }
    }
}
