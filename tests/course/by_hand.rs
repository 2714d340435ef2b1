//! Types every line that a lesson shows, and compares what it prints.

use crate::support::{labs, *};
use oversell::claims::{
    self, Chapter, Lesson, Run, TypedLine,
    placeholders::Placeholders,
    runner::{LineResult, run_lines},
    with_waits,
};
use oversell_lab::{addresses::Addresses, programs::ShellOutput};
use std::{collections::HashMap, env, mem::discriminant, path::Path, process::Stdio};
use tokio::process::Command;

const ZKCLI: &str = "/usr/share/zookeeper/bin";

const LINE_TIMEOUT_SECONDS: &str = "300";

type Lessons = Vec<&'static Lesson>;

/// The lesson with the id `OVERSELL_LESSON`; with `OVERSELL_SOAK=1`, which takes minutes, all whose lines `oversell course` does not
/// type itself. Otherwise the first of each kind of experiment.
fn parts() -> Vec<(&'static str, Lessons)> {
    if let Ok(id) = env::var("OVERSELL_LESSON") {
        let lesson = claims::find(&id).unwrap_or_else(|| panic!("OVERSELL_LESSON: no lesson {id}"));
        return vec![("the_chosen_lesson", vec![lesson])];
    }
    let is_typed = |run: &Run| matches!(run, Run::Typed);
    let untyped = |chapters: Vec<&'static Chapter>| {
        let lessons = chapters.into_iter().flat_map(|chapter| &chapter.lessons);
        lessons.filter(|lesson| !lesson.run.parts().iter().any(is_typed)).collect()
    };
    if !soak() {
        return vec![("the_first_of_each_kind", first_of_each_kind(untyped(claims::ALL.iter().collect())))];
    }
    let (main, beside): (Vec<_>, Vec<_>) = claims::ALL.iter().partition(|chapter| chapter.id.len() == 1);
    vec![("the_course", untyped(main)), ("the_texts_beside_it", untyped(beside))]
}

fn first_of_each_kind(mut lessons: Lessons) -> Lessons {
    let mut kinds = Vec::new();
    lessons.retain(|lesson| {
        let kind = discriminant(&lesson.run);
        let is_first = !lesson.by_hand.is_empty() && !kinds.contains(&kind);
        kinds.extend(is_first.then_some(kind));
        is_first
    });
    lessons
}

/// `oversell lab` with everything that the lines may need.
#[apply(test!)]
#[over(parts())]
async fn every_line_prints_what_the_lesson_says(lessons: Lessons) -> Result<()> {
    let options = ["--instances=0,0,0", "--redis-ports=0,0,0,0,0", "--links", "--replica"];
    labs::with_lab_command(&options, async |lab_json: &Path, at: Addresses| {
        let fault = format!("oversell lab fault --lab-json {}", lab_json.display());
        let placeholders = Placeholders::of_lab(&at).with_fault(&fault);
        let mut wrong = Vec::new();
        for lesson in lessons {
            let typed = follow(&lesson.by_hand, &placeholders).await;
            wrong.extend(typed.err().map(|why| format!("{}: {why:#}", lesson.id)));
        }
        ensure!(wrong.is_empty(), wrong.join("\n"));
        // The twin: a line that prints something else; alone, beside another line, and waited for.
        let wrong = TypedLine::new("echo 4999", "4998");
        let beside = TypedLine::new("echo 4999 &", "4998");
        for twin in [&[wrong][..], &[beside.clone(), TypedLine::new("echo 1", "1")], &[beside, TypedLine::new("wait", "")]] {
            caught(follow(twin, &placeholders).await, "expected: 4998")?;
        }
        Ok(())
    })
    .await
}

/// The lessons that are tried; each of the others has a reason.
#[apply(test!)]
fn every_lesson_that_is_tried_has_lines_to_type() -> Result<()> {
    let bare = claims::lessons().filter(|lesson| lesson.why_not().is_none() && lesson.by_hand.is_empty());
    let bare: Vec<_> = bare.map(|lesson| lesson.id).collect();
    ensure!(bare.is_empty(), "nothing to type: {}", bare.join(", "));
    Ok(())
}

/// Otherwise one lesson could end the lab of another.
#[apply(test!)]
fn no_two_lessons_write_the_same_file() -> Result<()> {
    let mut written = HashMap::new();
    for lesson in claims::lessons() {
        for line in &lesson.by_hand {
            let folders = ["/tmp/", "target/"].into_iter();
            for after in folders.flat_map(|folder| line.run.split(folder).skip(1)) {
                let name = after.split(['.', '/', ' ', ')']).next().unwrap_or(after);
                let first = *written.entry(name).or_insert(lesson.id);
                ensure!(first == lesson.id, "{name}: {first} and {}", lesson.id);
            }
        }
    }
    ensure!(!written.is_empty(), "no lesson writes a file");
    Ok(())
}

/// Types the lines in order; fails with all lines that printed something else.
async fn follow(lines: &[TypedLine], placeholders: &Placeholders) -> Result<()> {
    let lines = lines.iter().map(|line| placeholders.fill_line(line));
    let lines = with_waits(lines.collect(), |_| true);
    let type_line = |_, line: &str, _: &[LineResult]| bash(line.to_owned());
    let mut wrong = Vec::new();
    for LineResult { index, output, .. } in run_lines(&lines, type_line, |_| true).await? {
        let line = &lines[index];
        if !line.is_printed(&output.stdout) {
            wrong.push(format!("$ {}\nexpected: {}\nprinted:  {}{}", line.run, line.expect, output.stdout, output.stderr));
        }
    }
    ensure!(wrong.is_empty(), wrong.join("\n"));
    Ok(())
}

/// Runs a line as a terminal does, which lets a lab live on that it has started.
async fn bash(line: String) -> Result<ShellOutput> {
    let binary = Path::new(env!("CARGO_BIN_EXE_oversell"));
    let folder = binary.parent().context("no folder")?.display();
    let path = format!("{folder}:{}:{ZKCLI}", env::var("PATH")?);
    // A line that waits in vain fails with its output instead of hanging.
    let output = Command::new("timeout")
        .args([LINE_TIMEOUT_SECONDS, "bash", "-c", &line])
        .env("PATH", path)
        .stdin(Stdio::null())
        .output()
        .await?;
    let [stdout, stderr] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    Ok(ShellOutput { stdout, stderr })
}
