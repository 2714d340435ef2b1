//! What a student types is typed here too, line by line.

use crate::support::{labs, *};
use oversell::{
    addresses::Addresses,
    claims::{self, Chapter, Lesson, Line, places::Places},
};
use std::{
    collections::HashMap,
    mem::discriminant,
    path::Path,
    process::{Output, Stdio},
    time::Instant,
};
use tokio::{process::Command, task::JoinHandle};

/// Where the package of ZooKeeper has `zkCli.sh`.
const ZKCLI: &str = "/usr/share/zookeeper/bin";

const LONGEST: &str = "300";

/// How long it takes to type a line again.
const TYPING: Duration = Duration::from_millis(200);

type Lessons = Vec<&'static Lesson>;

/// With `OVERSELL_SOAK=1` all lessons, which take minutes: those of the main text, and of the texts beside it. Else the first
/// of each chapter, and the first of each kind of experiment.
fn parts() -> Vec<(&'static str, Lessons)> {
    if !soak() {
        return vec![("the_first_of_each_kind", first_of_each_kind())];
    }
    let (main, beside): (Vec<_>, Vec<_>) = claims::ALL
        .iter()
        .partition(|chapter| chapter.id.len() == 1);
    let all = |chapters: Vec<&'static Chapter>| {
        let lessons = chapters.into_iter().flat_map(|chapter| &chapter.lessons);
        lessons.collect()
    };
    vec![
        ("the_course", all(main)),
        ("the_texts_beside_it", all(beside)),
    ]
}

fn first_of_each_kind() -> Lessons {
    let (mut kinds, mut few) = (Vec::new(), Vec::new());
    for chapter in claims::ALL.iter() {
        let typed = |lesson: &&Lesson| !lesson.by_hand.is_empty();
        for (n, lesson) in chapter.lessons.iter().filter(typed).enumerate() {
            let kind = discriminant(&lesson.run);
            if n == 0 || !kinds.contains(&kind) {
                few.push(lesson);
            }
            kinds.push(kind);
        }
    }
    few
}

/// `oversell lab` as a teacher starts it, with all that the lines may need.
#[apply(test!)]
#[over(parts())]
async fn every_line_prints_what_the_lesson_says(lessons: Lessons) -> Result<()> {
    let options = [
        "--instances=0,0,0",
        "--redis-ports=0,0,0,0,0",
        "--ways",
        "--replica",
    ];
    labs::by_command(&options, async |lab_json: &Path, at: Addresses| {
        let fault = format!("oversell lab fault --lab-json {}", lab_json.display());
        let places = Places::of_lab(&at).with_fault(&fault);
        let mut wrong = Vec::new();
        for lesson in lessons {
            let typed = follow(&lesson.by_hand, &places).await;
            wrong.extend(typed.err().map(|why| format!("{}: {why:#}", lesson.id)));
        }
        ensure!(wrong.is_empty(), wrong.join("\n"));
        // The twin: a line that prints something else, alone, beside another one, and waited for.
        let wrong = Line::new("echo 4999", "4998");
        let beside = Line::new("echo 4999 &", "4998");
        for twin in [
            &[wrong][..],
            &[beside.clone(), Line::new("echo 1", "1")],
            &[beside, Line::new("wait", "")],
        ] {
            caught(follow(twin, &places).await, "expected: 4998")?;
        }
        Ok(())
    })
    .await
}

/// Of those that are tried; for each of the others stands why it is not.
#[apply(test!)]
fn every_lesson_that_is_tried_has_lines_to_type() -> Result<()> {
    let bare =
        claims::lessons().filter(|lesson| lesson.why_not().is_none() && lesson.by_hand.is_empty());
    let bare: Vec<_> = bare.map(|lesson| lesson.id).collect();
    ensure!(bare.is_empty(), "nothing to type: {}", bare.join(", "));
    Ok(())
}

/// Else one that is typed beside another would end the other's lab.
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

/// Types the lines in their order, and one that says so again and again. One that ends in ` &` goes on beside the next
/// ones; what it prints is read when its terminal waits for it, or at the end.
async fn follow(lines: &[Line], places: &Places) -> Result<()> {
    let mut beside: Vec<(Line, JoinHandle<Result<Output>>)> = Vec::new();
    let mut wrong = Vec::new();
    for line in lines.iter().map(|line| places.typed(line)) {
        if line.run == "wait" {
            let waits = |(other, _): &mut (Line, _)| other.terminal == line.terminal;
            for (line, output) in beside.extract_if(.., waits) {
                wrong.extend(as_expected(&line, output.await?).err());
            }
        } else if let Some(run) = line.run.strip_suffix(" &") {
            beside.push((line.clone(), tokio::spawn(bash(run.to_owned()))));
        } else {
            let mut last = as_expected(&line, bash(line.run.clone()).await);
            let again = Instant::now() + LONG;
            while line.again && last.is_err() && Instant::now() < again {
                tokio::time::sleep(TYPING).await;
                last = as_expected(&line, bash(line.run.clone()).await);
            }
            wrong.extend(last.err());
        }
    }
    for (line, output) in beside {
        wrong.extend(as_expected(&line, output.await?).err());
    }
    let wrong: Vec<_> = wrong.iter().map(ToString::to_string).collect();
    ensure!(wrong.is_empty(), wrong.join("\n"));
    Ok(())
}

async fn bash(line: String) -> Result<Output> {
    let binary = Path::new(env!("CARGO_BIN_EXE_oversell"));
    let folder = binary.parent().context("no folder")?.display();
    let path = format!("{folder}:{}:{ZKCLI}", std::env::var("PATH")?);
    // A line that waits for what never comes fails with what it has printed, and does not hang.
    let output = Command::new("timeout")
        .args([LONGEST, "bash", "-c", &line])
        .env("PATH", path)
        .stdin(Stdio::null())
        .output();
    Ok(output.await?)
}

fn as_expected(line: &Line, output: Result<Output>) -> Result<()> {
    let output = output?;
    let [printed, complained] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    ensure!(
        line.is_printed(&printed),
        "$ {}\nexpected: {}\nprinted:  {printed}{complained}",
        line.run,
        line.expect
    );
    Ok(())
}
