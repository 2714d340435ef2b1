//! How a lesson and its twin are tried, by the kind of its [`Run`]. The lessons that fit no kind are tried in `experiments/`.

mod demos;
mod orders;

use super::{
    Cluster, NoVerdict, Observation, Ratio,
    experiments::{self, Experiment},
    observation::explain_ratio,
    reference,
    replay::flaw_and_cure,
    tools::{describe_sale, describe_sales},
    twin::{EXACT, OVERSELLS, Tried, lines_of_twin, step_with_another_verdict},
    typed,
};
use oversell::{
    claims::{ClaimVerdict, Lesson, RateSide, RatioClaim, Run, Target, Twin, Words, words},
    load::{terminal::rate, verdict::Verdict},
};
use oversell_lab::terminal::bilingual::Bilingual;

/// Tries a lesson or its twin, on our service and on the library that the text names.
pub(super) async fn try_lesson(on: &Cluster, lesson: &'static Lesson, tried: Tried) -> Result<Observation, NoVerdict> {
    let ours = match tried {
        Tried::Claim => try_ours(on, lesson).await,
        Tried::Twin => try_our_twin(on, lesson).await,
    };
    match &lesson.theirs {
        Some(script) => reference::try_script(on, script, tried, ours).await,
        None => ours,
    }
}

/// Tries a lesson on our service alone: its experiments in turn, until one comes to no verdict.
async fn try_ours(on: &Cluster, lesson: &'static Lesson) -> Result<Observation, NoVerdict> {
    let runs = lesson.run.parts();
    let mut seen = run_kind(on, lesson, &runs[0], Tried::Claim).await?;
    for run in &runs[1..] {
        seen = seen.and(run_kind(on, lesson, run, Tried::Claim).await?);
    }
    Ok(seen)
}

/// Tries the twin of a lesson on our service alone. It stops at the first twin that is reproduced, because that one is not refused.
async fn try_our_twin(on: &Cluster, lesson: &'static Lesson) -> Result<Observation, NoVerdict> {
    let (runs, tried) = match &lesson.twin {
        // This is the twin as it stands.
        Some(Twin::Run(run)) => (run.parts(), Tried::Claim),
        _ => (lesson.run.parts(), Tried::Twin),
    };
    let mut seen = run_kind(on, lesson, &runs[0], tried).await?;
    for run in &runs[1..] {
        if seen.verdict == ClaimVerdict::Reproduced {
            break;
        }
        seen = run_kind(on, lesson, run, tried).await?;
    }
    Ok(seen)
}

/// Runs one experiment of a lesson, or the same on a system in which the claim is false.
async fn run_kind(on: &Cluster, lesson: &Lesson, run: &'static Run, tried: Tried) -> Result<Observation, NoVerdict> {
    let is_twin = tried == Tried::Twin;
    // The strategy of a claim, or the one that the twin has in its place.
    let or_twin = |strategy: &'static str, other| if is_twin { other } else { strategy };
    match run {
        Run::All(_) => Err(NoVerdict::failed("a list stands in a list")),
        Run::Replay => flaw_and_cure(on, lesson.id, [false, !is_twin]).await,
        Run::Exact { strategy, on: targets, threads, loops } => {
            sells_exactly(on, or_twin(strategy, OVERSELLS), targets, *threads, *loops).await
        }
        Run::Oversells { strategy, on: target } => oversells(on, or_twin(strategy, EXACT), *target).await,
        Run::Compared { first, second, says, otherwise } => {
            let (first, second) = if is_twin { (second, first) } else { (first, second) };
            compare_rates(on, *first, *second, *says, *otherwise).await
        }
        Run::RetriesGrow(strategy) => retries_grow(on, or_twin(strategy, EXACT)).await,
        Run::FewThenMostFail(strategy) => few_then_most_fail(on, or_twin(strategy, EXACT)).await,
        Run::Crowd { step, on: target, orders_each, comes_to, refuses_beside } => {
            let step = or_twin(step, step_with_another_verdict(*comes_to));
            orders::crowd_gets_verdict(on, step, *target, *orders_each, *comes_to, *refuses_beside).await
        }
        Run::ExclusiveRoute(route) => {
            let another = if *route == "/demo1" { "/demo2" } else { "/demo1" };
            demos::second_request_waits(on, [route, or_twin(route, another)]).await
        }
        Run::Typed => {
            let twin = is_twin.then(|| lines_of_twin(lesson));
            let (lines, replaced) = twin.map_or((lesson.by_hand.clone(), None), |(lines, replaced)| (lines, Some(replaced)));
            typed::try_lines(on, &lines, replaced).await
        }
        Run::Custom => {
            let experiment = find_experiment(lesson)?;
            (if is_twin { experiment.twin } else { experiment.claim })(on).await
        }
        Run::NotRun(why) => Err(NoVerdict::unavailable(why.zh, why.en)),
    }
}

/// The experiment that tries this lesson alone.
fn find_experiment(lesson: &Lesson) -> Result<&'static Experiment, NoVerdict> {
    let experiment = experiments::ALL.iter().find(|known| known.lesson == lesson.id);
    experiment.ok_or_else(|| NoVerdict::failed(format!("nothing tries {}", lesson.id)))
}

/// A load oversells by far if at least this share of its sales took no piece: a few lost updates are not what the text claims.
const MIN_OVERSOLD_SHARE: f64 = 0.1;

/// Claim: the course's load, 100 × 50, oversells by far.
async fn oversells(on: &Cluster, strategy: &str, target: Target) -> Result<Observation, NoVerdict> {
    let row = on.send_load(on.course_load(strategy, target)).await?;
    let (sold, gone) = (row.counts.sold.cast_signed(), row.pieces_gone());
    let holds = row.verdict == Verdict::Oversold && oversells_by_far(sold, gone);
    let said = words!("说的是至少占卖出的 10%。", "At least 10 % of what was sold is claimed.");
    let words = Words::join(&[describe_sale(&row), said], ["", " "]);
    Ok(Observation::holds(holds, words).sales([&row]))
}

/// Whether at least [`MIN_OVERSOLD_SHARE`] of what was sold had no piece; false if nothing was sold.
fn oversells_by_far(sold: i64, gone: i64) -> bool {
    (sold - gone) as f64 >= MIN_OVERSOLD_SHARE * sold as f64 && sold > 0
}

/// The longest wait of each request in milliseconds: a strategy that retries when the version has changed can outlast the
/// service's own limit on a slow machine.
const MAX_WAIT_MS: u64 = 300_000;

/// Requests per connection in the quick form: as concurrent as the course's load, in a fifth of its time.
const QUICK_LOOPS: usize = 10;

/// Claim: a load sells exactly on each target, without a failed request. By default it is the course's; if quick, of
/// [`QUICK_LOOPS`].
async fn sells_exactly(
    on: &Cluster,
    strategy: &str,
    targets: &[Target],
    threads: Option<usize>,
    loops: Option<usize>,
) -> Result<Observation, NoVerdict> {
    let mut rows = Vec::new();
    for target in targets {
        let mut plan = on.course_load(strategy, *target);
        plan.threads = threads.unwrap_or(plan.threads);
        plan.loops = loops.unwrap_or(if on.quick { QUICK_LOOPS } else { plan.loops });
        plan.wait_ms = Some(MAX_WAIT_MS);
        rows.push(on.send_load(plan).await?);
    }
    let holds = rows.iter().all(|row| row.verdict == Verdict::Exact);
    Ok(Observation::holds(holds, describe_sales(&rows)).sales(&rows))
}

/// Claim: the ratio of two rates is within the bounds of `says`. If it is not reproduced, the words end with `otherwise`.
async fn compare_rates(
    on: &Cluster,
    first: RateSide,
    second: RateSide,
    says: RatioClaim,
    otherwise: Option<Bilingual>,
) -> Result<Observation, NoVerdict> {
    let ratio = on.measure_ratio(first, second, says).await?;
    let mut seen = Observation::holds(true, describe_ratio(&ratio)).require_ratio(says, ratio.ratio).ratios([ratio]);
    if let (ClaimVerdict::NotReproduced, Some(why)) = (seen.verdict, otherwise) {
        seen.words = Words::join(&[seen.words, Words::new(why.zh, why.en)], ["", " "]);
    }
    Ok(seen)
}

/// [`Run::RetriesGrow`]: 100 connections retry at least this many times as often per piece as 10.
const MIN_RETRY_GROWTH: f64 = 1.5;

/// Claim: 100 connections retry more often per piece than 10 under the same load.
async fn retries_grow(on: &Cluster, strategy: &'static str) -> Result<Observation, NoVerdict> {
    let (few, many, seen) = count_retries(on, strategy, 10).await?;
    let said = words!("说的是 {MIN_RETRY_GROWTH} 倍以上。", "{MIN_RETRY_GROWTH} times as many or more is claimed.");
    Ok(seen.and(Observation::holds(many > 0.0 && many >= MIN_RETRY_GROWTH * few, said)))
}

/// Claim: with 2 connections few attempts fail, with 100 most do.
async fn few_then_most_fail(on: &Cluster, strategy: &'static str) -> Result<Observation, NoVerdict> {
    let (few, many, seen) = count_retries(on, strategy, 2).await?;
    // One retry per piece: half of the attempts fail.
    let said = words!(
        "说的是先少于 1 次（不到一半的尝试），后多于 1 次。",
        "Less than 1 at first, which is half of the attempts, and more at last is claimed."
    );
    Ok(seen.and(Observation::holds(few < 1.0 && many > 1.0, said)))
}

/// Sends 2000 requests to one instance, from `few` connections and from 100. Returns the retries per piece of each, 0 where the
/// answers tell none, and an observation that holds.
async fn count_retries(on: &Cluster, strategy: &'static str, few: usize) -> Result<(f64, f64, Observation), NoVerdict> {
    let mut rows = Vec::new();
    for threads in [few, 100] {
        let mut plan = on.course_load(strategy, Target::One);
        (plan.threads, plan.loops) = (threads, 2000 / threads);
        rows.push(on.send_load(plan).await?);
    }
    let retries: Vec<_> = rows.iter().map(|row| row.contention.map_or(0.0, |all| all.retries_per_sold)).collect();
    let words = words!(
        "每卖一件，{few} 个线程重试 {:.2} 次，100 个线程重试 {:.2} 次。",
        "Retries for each piece: {:.2} from {few} threads, {:.2} from 100.",
        retries[0],
        retries[1]
    );
    let (before, after) = (retries[0], retries[1]);
    let seen = Observation::of(ClaimVerdict::Reproduced, words).sales(&rows);
    Ok((before, after, seen.value("retries_each", retries)))
}

/// Describes two rates and their ratio.
fn describe_ratio(ratio: &Ratio) -> Words {
    let told = explain_ratio(ratio.says, ratio.ratio, ratio.failed);
    let [first, second] = ratio.names();
    let (one, other) = (rate(ratio.first.per_sec.median), rate(ratio.second.per_sec.median));
    Words::new(
        format!("{} 每秒 {one}，{} 每秒 {other}：{}", first.zh, second.zh, told.zh),
        format!("{} {one}/s, {} {other}/s: {}", first.en, second.en, told.en),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_oversale_is_not_one_by_far() {
        for (sold, gone, far) in [(5000, 4999, false), (5000, 4501, false), (5000, 4500, true), (5000, 130, true), (0, 0, false)]
        {
            assert_eq!(oversells_by_far(sold, gone), far, "{sold} {gone}");
        }
    }

    #[test]
    fn a_claim_of_two_parts_needs_both() {
        use ClaimVerdict::{Noise, NotReproduced, Reproduced};
        for (first, second, both) in [
            (Reproduced, Reproduced, Reproduced),
            (Reproduced, Noise, Noise),
            (Noise, Noise, Noise),
            (Noise, NotReproduced, NotReproduced),
            (NotReproduced, Reproduced, NotReproduced),
        ] {
            let seen = |verdict| Observation::of(verdict, Words::default());
            assert_eq!(seen(first).and(seen(second)).verdict, both, "{first:?} {second:?}");
        }
    }
}
