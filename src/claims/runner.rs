//! Runs the lines of a lesson, in a shell or in a process of another library: the caller says how one line is run.
//!
//! 1. Lines run one after the other. One that ends in ` &` runs beside the next ones, until `wait` is typed in its terminal.
//! 2. A line that says so runs again and again, until it prints what it should.
//! 3. A line that nobody has waited for at the end is dropped.
//!
//! Next: `line.rs` and `script.rs`, the two kinds of lines.

use futures::{FutureExt, StreamExt, stream::FuturesUnordered};
use oversell_lab::programs::ShellOutput;
use std::{
    pin::pin,
    time::{Duration, Instant},
};
use tokio::time::sleep;

/// The pause between repetitions of a line: short beside what the line waits for.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// What the runner has to know of a line.
pub trait Line {
    /// The text: `wait`, one that ends in ` &`, or any other.
    fn run(&self) -> &str;
    /// Whether both are typed in the same terminal.
    fn shares_terminal(&self, other: &Self) -> bool;
    /// How long it is repeated until it prints what it should; `None` if it runs once.
    fn repeat_limit(&self) -> Option<Duration>;
    /// Whether `text` is what it should print.
    fn is_printed(&self, text: &str) -> bool;
}

/// What a line has printed.
#[derive(Debug, Clone)]
pub struct LineResult {
    /// Its place among the lines, from 0.
    pub index: usize,
    pub output: ShellOutput,
    /// With all its repetitions.
    pub took: Duration,
}

/// Runs the lines in their order, and returns the results in the order in which they came. `run` is called with the index of a line,
/// its text without ` &`, and the results so far. Ends early once `goes_on` is false for a result.
pub async fn run_lines<L: Line, F: Future<Output = Result<ShellOutput, E>>, E>(
    lines: &[L],
    run: impl Fn(usize, &str, &[LineResult]) -> F,
    goes_on: impl Fn(&LineResult) -> bool,
) -> Result<Vec<LineResult>, E> {
    let mut results: Vec<LineResult> = Vec::new();
    // Lines with ` &`: those that run, and the results that nobody has waited for.
    let (mut running, mut ended) = (FuturesUnordered::new(), Vec::<LineResult>::new());
    let mut not_awaited: Vec<usize> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let begun = Instant::now();
        let result = move |output| LineResult { index, output, took: begun.elapsed() };
        let new = if line.run() == "wait" {
            let is_of_terminal = |index: &mut usize| lines[*index].shares_terminal(line);
            let awaited: Vec<_> = not_awaited.extract_if(.., is_of_terminal).collect();
            let is_awaited = |ended: &LineResult| awaited.contains(&ended.index);
            while ended.iter().filter(|ended| is_awaited(ended)).count() < awaited.len() {
                ended.extend(running.next().await.transpose()?);
            }
            let mut new: Vec<_> = ended.extract_if(.., |ended| is_awaited(ended)).collect();
            new.sort_by_key(|result| result.index);
            new
        } else if let Some(text) = line.run().strip_suffix(" &") {
            // It begins before the next line does, which polls it first.
            let output = run(index, text, &results);
            running.push(output.map(move |output| output.map(result)));
            not_awaited.push(index);
            Vec::new()
        } else {
            let mut repeated = pin!(async {
                loop {
                    let result = result(run(index, line.run(), &results).await?);
                    let limit = line.repeat_limit();
                    if limit.is_none_or(|limit| result.took > limit) || line.is_printed(&result.output.stdout) {
                        return Ok(vec![result]);
                    }
                    sleep(RETRY_PAUSE).await;
                }
            });
            loop {
                tokio::select! {
                    biased;
                    Some(beside) = running.next() => ended.push(beside?),
                    new = &mut repeated => break new?,
                }
            }
        };
        let all_well = new.iter().all(&goes_on);
        results.extend(new);
        if !all_well {
            break;
        }
    }
    Ok(results)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::TypedLine;
    use std::{convert::Infallible, sync::atomic::*};

    /// Runs lines that print their text, `never` excepted, which does not end; `again` prints its text at the third attempt.
    async fn printed_by(lines: &[(u8, &str)], last: &str) -> String {
        let line =
            |(terminal, run): &(u8, &str)| TypedLine { terminal: *terminal, again: *run == "again", ..TypedLine::new(run, run) };
        let lines: Vec<_> = lines.iter().map(line).collect();
        let attempts = AtomicUsize::new(0);
        let run = |_, text: &str, _: &[LineResult]| {
            let is_early = text == "again" && attempts.fetch_add(1, Ordering::Relaxed) < 2;
            let stdout = if is_early { "not yet" } else { text }.to_owned();
            async move {
                match &stdout[..] {
                    "never" => std::future::pending().await,
                    _ => Ok::<_, Infallible>(ShellOutput { stdout, stderr: String::new() }),
                }
            }
        };
        let results = run_lines(&lines, run, |result| result.output.stdout != last).await;
        let printed = results.unwrap().into_iter().map(|result| result.output.stdout);
        printed.collect::<Vec<_>>().join(" ")
    }

    #[tokio::test]
    async fn a_line_beside_others_is_awaited_by_its_terminal() {
        let lines = [(1, "a &"), (2, "b &"), (1, "c"), (2, "wait"), (1, "d"), (1, "wait")];
        assert_eq!(printed_by(&lines, "").await, "c b d a");
    }

    #[tokio::test]
    async fn a_line_that_nobody_waits_for_is_dropped() {
        assert_eq!(printed_by(&[(1, "never &"), (1, "a")], "").await, "a");
    }

    #[tokio::test]
    async fn a_line_is_repeated_and_the_last_one_ends_it() {
        assert_eq!(printed_by(&[(1, "again"), (1, "a"), (1, "b")], "a").await, "again a");
    }
}
