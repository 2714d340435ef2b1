//! `oversell course`: tries every lesson in turn, prints a row for each claim, and sends the verdicts to the instances.

use super::{
    Cluster, NoVerdict, Observation,
    java_libraries::JavaLibraries,
    kinds, report,
    results::{CourseResults, TrialResult},
    table::{self, Lang},
    twin::{self, Tried},
};
use http::Method;
use oversell::{
    claims::{ALL, Chapter, ClaimVerdict, Lesson, lessons, verdicts::Verdicts},
    load::{
        conditions::{COMMIT, Conditions},
        measure::name_parser,
        target::{ClusterOptions, Registry, check},
        terminal::stopped_by_signal,
    },
};
use oversell_lab::{
    addresses::Addresses,
    clients::http_client::{Answer, Ask},
    terminal::{
        chinese::localized,
        failure::{Failure, unusable, unusable_localized},
        stdout::{Output, Outputs, print_to_stderr, progress_bar, say},
    },
};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Time limit of one lesson, with all its experiments and libraries.
const EXPERIMENT_TIMEOUT: Duration = Duration::from_secs(300);
/// An experiment has this long to clean up when the command must stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// The most lessons whose verdicts are sent at once: less than half of what `server.body_limit` allows by default.
const LESSONS_PER_REQUEST: usize = 40;

/// Tries every claim of the course, and says which came out so.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  oversell course --lab                                   all of it, on servers of its own
  oversell course --lab --quick --html course.html        the quick form, and a report
  oversell course --lesson 2.2 2.3 2.5                    three lessons, against the lab that runs
  oversell course --lang zh --json course.json
  oversell course --lab --twins                           whether each verdict can say no

Races show on the first try. In the full form leases and sessions end by the clock and holders are killed; in the quick form they are
ended by order, and the row says so. Rates are compared in pairs, round by round; where the rounds do not agree, the verdict is noise.
The instances keep the verdicts for their page.

Exit status: 0 as in the last full run that is kept (docs/course.md), 1 a claim that does not rest on timing came out otherwise or a
twin was not refused, 2 bad usage, no lab, a missing server.")]
pub(crate) struct Args {
    /// Only these lessons, by their sections
    #[arg(long = "lesson", value_name = "ID", num_args = 1.., value_parser = name_parser(lessons(), |lesson| lesson.id), hide_possible_values = true)]
    lessons: Vec<&'static Lesson>,
    /// Only the lessons of the quick form, with fewer rounds, and fewer requests of a load that must sell exactly
    #[arg(long, conflicts_with = "lessons")]
    quick: bool,
    /// Tries the twin of each claim instead: a system in which it is false, and which must be refused
    #[arg(long, conflicts_with = "html")]
    twins: bool,
    /// Writes the run to this file as the last full run, if every lesson was tried
    #[arg(long, value_name = "FILE", requires = "lab", conflicts_with_all = ["lessons", "quick", "twins"])]
    store: Option<Output>,
    /// Writes every figure to this file; - is stdout, and the table then goes to stderr
    #[arg(long, value_name = "FILE")]
    json: Option<Output>,
    /// Writes a report to this file: one HTML page that needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<Output>,
    /// The language of the table [default: that of the locale]
    #[arg(long, value_enum)]
    lang: Option<Lang>,
    #[command(flatten)]
    place: ClusterOptions,
}

impl Outputs for Args {
    fn outputs(&self) -> Vec<&Output> {
        let all = self.json.iter().chain(&self.html).chain(&self.store);
        all.collect()
    }
}

/// A run of the command, with its results so far.
#[derive(Debug)]
pub(crate) struct Course {
    args: Args,
    found: Option<CourseResults>,
}

impl Course {
    /// It fails with [`Failure::Unusable`] where the run is to be stored and this program does not know its commit.
    pub(crate) fn new(args: Args) -> Result<Self, Failure> {
        if args.store.is_some() && COMMIT == "unknown" {
            return Err(unusable_localized!(
                "这个程序不知道自己是哪个提交的（调试构建，或者不在仓库里），它的运行不能存放：用 `make course`",
                "this program does not know its commit (a debug build, or one outside a repository), so its run cannot be stored: use `make course`"
            ));
        }
        Ok(Self { args, found: None })
    }

    /// Tries the chosen lessons that match `is_its`, against the lab at `at` or the cluster that the arguments name. Adds the
    /// results to those of earlier calls, and sends them, unless of twins, to the instances; a failure of that is only printed.
    ///
    /// It fails with [`Failure::Unusable`] where no cluster answers, with [`Failure::Interrupted`] after a signal.
    pub(crate) async fn try_lessons(
        &mut self,
        at: Option<Addresses>,
        is_its: fn(&Lesson) -> bool,
        stop: CancellationToken,
    ) -> Result<(), Failure> {
        let args = &self.args;
        let cluster = args.place.find(at)?;
        let conditions = Conditions::read(cluster.lab.as_ref()).await;
        let mut on = Cluster::new(cluster, args.quick, stop.clone())?;
        check(on.one_instance(), Registry::Strategies, &[]).await?;
        if self.found.is_none() {
            say!("{conditions}");
        }
        let mut tried_now = Vec::new();
        let mut chosen: Vec<_> = self.chosen().filter(|(_, lesson)| is_its(lesson)).collect();
        // Their processes are given the servers' addresses, which only a lab tells.
        if !args.quick && on.servers().is_ok() {
            on.java_libraries = JavaLibraries::build_for(chosen.iter().map(|(_, lesson)| *lesson)).await;
        }
        if args.twins {
            let (can, cannot): (Vec<_>, _) = (chosen.into_iter()).partition(|(_, lesson)| on.java_libraries.can_try_twin(lesson));
            for (_, lesson) in cannot {
                say!("{}", localized!("{}：没有 JDK 和 Maven 就没有反例", "{}: no twin without a JDK and Maven", lesson.id));
            }
            chosen = can;
        }
        let all = chosen.iter().filter(|(_, lesson)| lesson.is_tried());
        let bar = progress_bar(all.count(), true);
        for (chapter, lesson) in chosen {
            bar.set_message(format!("{} {}", lesson.id, args.lang().of(lesson.title)));
            let begun = Instant::now();
            let (tried, twin) = match args.twins {
                true => (Tried::Twin, twin::describe_twin(lesson)),
                false => (Tried::Claim, None),
            };
            let seen = run_with_timeout(&on, kinds::try_lesson(&on, lesson, tried)).await;
            on.mend_all().await;
            let tried = TrialResult::of(chapter.id, lesson, twin, seen, begun.elapsed());
            if stop.is_cancelled() {
                break;
            }
            if lesson.is_tried() {
                bar.inc(1);
                if bar.is_hidden() {
                    let (done, of) = (bar.position(), bar.length().unwrap_or_default());
                    let verdict = args.lang().of(tried.verdict().words());
                    print_to_stderr(format_args!("{done}/{of}  {}  {verdict}", lesson.id));
                }
            }
            tried_now.push(tried);
        }
        bar.finish_and_clear();
        let found = CourseResults { conditions, lessons: tried_now };
        if !args.twins
            && let Err(why) = send_to_instances(&on, &json!(found)).await
        {
            print_to_stderr(format_args!(
                "oversell: {}",
                localized!("实例没有保存结论：{why}", "the instances do not keep the verdicts: {why}")
            ));
        }
        match &mut self.found {
            Some(before) => before.lessons.extend(found.lessons),
            before => *before = Some(found),
        }
        if stop.is_cancelled() {
            return Err(stopped_by_signal());
        }
        Ok(())
    }

    /// Whether a chosen lesson matches.
    pub(crate) fn has_chosen(&self, is_its: fn(&Lesson) -> bool) -> bool {
        self.chosen().any(|(_, lesson)| is_its(lesson))
    }

    /// The lessons that the options choose, by name or as part of the quick or the full form, in the documents' order.
    fn chosen(&self) -> impl Iterator<Item = (&'static Chapter, &'static Lesson)> {
        let args = &self.args;
        let all = ALL.iter().flat_map(|chapter| chapter.lessons.iter().map(move |l| (chapter, l)));
        all.filter(|(_, lesson)| match &args.lessons[..] {
            // A lesson that is not tried has no twin.
            _ if args.twins && !lesson.is_tried() => false,
            [] => !args.quick || lesson.quick,
            named => named.iter().any(|named| named.id == lesson.id),
        })
    }

    /// Prints and writes the results. Without results it writes nothing.
    ///
    /// It fails with [`Failure::Promise`] where a claim came out otherwise than in the last full run or a twin was not refused,
    /// [`Failure::Unusable`] where an experiment failed or a file cannot be written.
    pub(crate) fn write_results(self) -> Result<(), Failure> {
        let Self { args, found } = self;
        let Some(mut found) = found else {
            return Ok(());
        };
        found.lessons.sort_by_key(|tried| lessons().position(|lesson| lesson.id == tried.id));
        if args.quick && !args.twins {
            for tried in &found.lessons {
                say!("{}", table::verdict_line(tried, args.lang()));
            }
            say!("");
        }
        let is_shown = |tried: &&TrialResult| {
            !args.quick || args.twins || tried.verdict() != ClaimVerdict::Reproduced || tried.is_unexpected()
        };
        let shown: Vec<_> = found.lessons.iter().filter(is_shown).collect();
        if !shown.is_empty() {
            say!("{}\n", table::verdict_table(&shown, args.lang()));
        }
        say!("{}", table::summary(&found, args.lang()));
        if let Some(file) = &args.json {
            file.write_json(&found)?;
        }
        if let Some(file) = &args.store {
            match found.is_whole() {
                true => {
                    let verdicts = serde_json::from_value::<Verdicts>(json!(found)).map_err(|why| unusable!("{why}"))?;
                    file.write(&verdicts.to_file())?;
                }
                false => print_to_stderr(format_args!(
                    "oversell: {}",
                    localized!("有的课没能验证，{file} 没有改动", "not every lesson could be tried, so {file} stays as it was")
                )),
            }
        }
        if let Some(file) = &args.html {
            file.write(&report::html(&found)?)?;
            say!("{}", localized!("报告：{file}", "report: {file}"));
        }
        found.verdict()
    }
}

/// Sends the verdicts to the instances, which keep them for their page, in requests that they accept.
async fn send_to_instances(on: &Cluster, found: &Value) -> Result<(), Failure> {
    let url = format!("{}/course/verdicts", on.one_instance());
    for part in parts_of(found) {
        let request = on.request(Method::PUT, &url).json(&part);
        let kept = request.answer().await.and_then(Answer::success);
        kept.map_err(|why| Failure::Unusable(why.to_string()))?;
    }
    Ok(())
}

/// The results in parts of [`LESSONS_PER_REQUEST`], each with the conditions of the run.
fn parts_of(found: &Value) -> impl Iterator<Item = Value> {
    let lessons = found["lessons"].as_array().map_or(&[][..], Vec::as_slice);
    let parts = lessons.chunks(LESSONS_PER_REQUEST);
    parts.map(|lessons| json!({ "conditions": found["conditions"], "lessons": lessons }))
}

/// Waits for an experiment. It fails after [`EXPERIMENT_TIMEOUT`], or [`STOP_TIMEOUT`] after the command must stop.
async fn run_with_timeout(
    on: &Cluster,
    experiment: impl Future<Output = Result<Observation, NoVerdict>>,
) -> Result<Observation, NoVerdict> {
    let mut running = Box::pin(experiment);
    tokio::select! {
        seen = timeout(EXPERIMENT_TIMEOUT, &mut running) => {
            seen.unwrap_or_else(|_| Err(NoVerdict::failed(format!("not at its end after {EXPERIMENT_TIMEOUT:?}"))))
        }
        // A load hears the stop too, and removes its product.
        () = on.stop.cancelled() => timeout(STOP_TIMEOUT, running).await.unwrap_or_else(|_| Err(stopped_by_signal().into())),
    }
}

impl Args {
    /// The language that was asked for, else that of the locale.
    fn lang(&self) -> Lang {
        self.lang.unwrap_or_else(Lang::of_locale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use oversell::claims::verdicts::LAST_RUN;
    use oversell::config::Config;

    #[derive(Debug, Parser)]
    struct WithLab {
        #[arg(long)]
        lab: bool,
        #[command(flatten)]
        args: Args,
    }

    /// Whether these options are accepted.
    fn is_accepted(options: &[&str]) -> bool {
        let line = ["course"].iter().chain(options);
        let parsed = WithLab::try_parse_from(line);
        parsed.is_ok_and(|parsed| parsed.lab || parsed.args.store.is_none())
    }

    #[test]
    fn an_instance_accepts_the_verdicts_of_a_whole_run() {
        // Twice what a lesson's figures take on average.
        let figures = "9".repeat(1_200);
        let lesson = |lesson: &Lesson| {
            let found = LAST_RUN.result_of(lesson.id);
            json!({"id": lesson.id, "claim": lesson.claim, "seen": found.map(|found| &found.seen), "figures": figures})
        };
        let lessons: Vec<_> = lessons().map(lesson).collect();
        let whole = json!({"conditions": LAST_RUN.conditions, "lessons": lessons});
        let count = |run: &Value| run["lessons"].as_array().map_or(0, Vec::len);
        let parts: Vec<_> = parts_of(&whole).collect();
        assert_eq!(parts.iter().map(count).sum::<usize>(), count(&whole));
        let defaults = Config::load_with(None, &[]).unwrap();
        let limit = defaults.server.body_limit;
        for part in parts {
            let length = part.to_string().len();
            assert!(length < limit / 2, "{length} bytes");
        }
        // The twin: all of them in one request.
        assert!(whole.to_string().len() > limit);
    }

    #[test]
    fn only_a_full_run_on_a_lab_of_its_own_is_stored() {
        assert!(is_accepted(&["--lab", "--store", "x"]));
        for refused in [
            &["--store", "x"][..],
            &["--lab", "--quick", "--store", "x"],
            &["--lab", "--twins", "--store", "x"],
            &["--lab", "--lesson", "2.3", "--store", "x"],
        ] {
            assert!(!is_accepted(refused), "{refused:?}");
        }
    }
}
