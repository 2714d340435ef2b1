//! What a student types is typed here too, line by line; and the verdicts are the same on each instance.

use crate::{Outcome, lab::comes, program};
use oversell::{
    addresses::Addresses,
    course::{self, Chapter, Lesson, Line, places::Places},
    lab::{Lab, Options},
    replay,
};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

/// Where the package of ZooKeeper has `zkCli.sh`.
const ZKCLI: &str = "/usr/share/zookeeper/bin";

/// No line takes so many seconds.
const LONGEST: &str = "300";

/// How long it takes to type a line again.
const TYPING: Duration = Duration::from_millis(200);

/// The main text, and the texts beside it: each part takes minutes, and has a lab of its own.
pub(crate) fn parts() -> [(&'static str, Vec<&'static Chapter>); 2] {
    let (main, beside) = course::ALL
        .iter()
        .partition(|chapter| chapter.id.len() == 1);
    [("the_course", main), ("the_texts_beside_it", beside)]
}

/// `oversell lab` as a teacher starts it, with all that the lines may need.
pub(crate) async fn every_line_by_hand_prints_what_the_lesson_says(
    part: &str,
    chapters: Vec<&'static Chapter>,
) -> Outcome {
    let folder = std::env::temp_dir().join(format!("oversell-lines-{part}-{}", std::process::id()));
    let outcome = tokio::task::spawn_blocking(move || in_a_lab(&folder, &chapters)).await;
    outcome.map_err(|e| e.to_string())?
}

fn in_a_lab(folder: &Path, chapters: &[&Chapter]) -> Outcome {
    let ports =
        "--http-port=0 --instances=0,0,0 --mysql-port=0 --redis-ports=0,0,0,0,0 --zookeeper-port=0";
    let mut lab = Command::new(env!("CARGO_BIN_EXE_oversell"))
        .arg("lab")
        .args(ports.split(' '))
        .args(["--ways", "--replica", "--dir"])
        .arg(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|e| e.to_string())?;
    let done = every_line(&folder.join("lab.json"), chapters);
    crate::lab::terminate(&lab)?;
    comes("the end of the lab", || lab.try_wait().ok().flatten())?;
    std::fs::remove_dir_all(folder).map_err(|e| e.to_string())?;
    done
}

fn every_line(lab_json: &Path, chapters: &[&Chapter]) -> Outcome {
    let at = || serde_json::from_slice::<Addresses>(&std::fs::read(lab_json).ok()?).ok();
    let at = comes("a lab that takes orders", || {
        at().filter(|at| at.control.is_some())
    })?;
    let fault = format!("oversell lab fault --lab-json {}", lab_json.display());
    let places = Places::of_lab(&at).with_fault(&fault);
    let lessons = chapters.iter().flat_map(|chapter| &chapter.lessons);
    let wrong: Vec<_> = lessons
        .filter_map(|lesson| typed(lesson, &places).err())
        .collect();
    if !wrong.is_empty() {
        return Err(wrong.join("\n"));
    }
    // The twin: a line that prints something else, alone, beside another one, and waited for.
    let wrong = Line::new("echo 4999", "4998");
    let beside = Line::new("echo 4999 &", "4998");
    for twin in [
        &[wrong][..],
        &[beside.clone(), Line::new("echo 1", "1")],
        &[beside, Line::new("wait", "")],
    ] {
        if follow(twin, &places).is_ok() {
            return Err(format!("{twin:?} was taken for right"));
        }
    }
    Ok(())
}

/// Of those that are tried; for each of the others stands why it is not.
pub(crate) fn every_lesson_that_is_tried_has_lines_to_type() -> Outcome {
    let bare =
        course::lessons().filter(|lesson| lesson.why_not().is_none() && lesson.by_hand.is_empty());
    let bare: Vec<_> = bare.map(|lesson| lesson.id).collect();
    if bare.is_empty() {
        Ok(())
    } else {
        Err(format!("nothing to type: {}", bare.join(", ")))
    }
}

fn typed(lesson: &Lesson, places: &Places) -> Outcome {
    follow(&lesson.by_hand, places).map_err(|why| format!("{}: {why}", lesson.id))
}

/// Types the lines in their order, and one that says so again and again. One that ends in ` &` goes on beside the next
/// ones; what it prints is read when its terminal waits for it, or at the end.
fn follow(lines: &[Line], places: &Places) -> Outcome {
    let mut beside: Vec<(Line, Child)> = Vec::new();
    let mut wrong = Vec::new();
    for line in lines.iter().map(|line| places.typed(line)) {
        if line.run == "wait" {
            let ending = beside.extract_if(.., |(other, _)| other.terminal == line.terminal);
            wrong.extend(ending.filter_map(|(line, child)| ended(&line, child).err()));
        } else if line.run.ends_with(" &") {
            let child = bash(line.run.trim_end_matches(" &"))?;
            beside.push((line, child));
        } else if line.again {
            let mut last = Ok(());
            let comes = comes(&line.run, || {
                last = bash(&line.run).and_then(|child| ended(&line, child));
                last.is_err().then(|| std::thread::sleep(TYPING));
                last.is_ok().then_some(())
            });
            wrong.extend(comes.or(last).err());
        } else {
            wrong.extend(ended(&line, bash(&line.run)?).err());
        }
    }
    wrong.extend(
        beside
            .into_iter()
            .filter_map(|(line, child)| ended(&line, child).err()),
    );
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n"))
    }
}

fn bash(line: &str) -> Result<Child, String> {
    let binary = Path::new(env!("CARGO_BIN_EXE_oversell"))
        .parent()
        .map(PathBuf::from)
        .unwrap_or_default();
    let path = format!(
        "{}:{}:{ZKCLI}",
        binary.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    // A line that waits for what never comes fails with what it has printed, and does not hang.
    let mut bash = Command::new("timeout");
    bash.args([LONGEST, "bash", "-c", line])
        .env("PATH", path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    bash.spawn().map_err(|e| e.to_string())
}

fn ended(line: &Line, child: Child) -> Outcome {
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    let [printed, complained] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    match line.is_printed(&printed) {
        true => Ok(()),
        false => Err(format!(
            "$ {}\nexpected: {}\nprinted:  {printed}{complained}",
            line.run, line.expect
        )),
    }
}

pub(crate) fn each_replay_is_named_by_a_lesson_and_no_other_is() -> Outcome {
    let named: BTreeSet<_> = course::lessons()
        .filter_map(|lesson| lesson.replay)
        .collect();
    let known: BTreeSet<_> = replay::races().map(|race| race.lesson).collect();
    if named == known {
        Ok(())
    } else {
        Err(format!("named: {named:?}; there are {known:?}"))
    }
}

pub(crate) async fn the_verdicts_of_a_run_are_kept_and_are_the_same_on_each_instance() -> Outcome {
    let lab = Lab::start(Options {
        instance_ports: vec![0; 2],
        redis_ports: vec![0],
        ..program()
    })
    .await;
    let lab = lab.map_err(|e| e.to_string())?;
    let urls: Vec<_> = lab
        .addresses()
        .instances
        .iter()
        .map(|i| format!("{}/course/verdicts", i.url))
        .collect();
    let kept = kept(&urls).await;
    lab.stop().await;
    kept
}

async fn kept(urls: &[String]) -> Outcome {
    let client = Client::new();
    let get = async |url: &str| {
        let answer = client.get(url).send().await.map_err(|e| e.to_string())?;
        let (status, text) = (
            answer.status(),
            answer.text().await.map_err(|e| e.to_string())?,
        );
        Ok::<_, String>((
            status,
            serde_json::from_str::<Value>(&text).unwrap_or_default(),
        ))
    };
    let put = async |lessons: Value| {
        let body = json!({"conditions": {"cores": 2}, "lessons": lessons});
        let answer = client
            .put(&urls[0])
            .json(&body)
            .send()
            .await
            .map_err(|e| e.to_string())?;
        Ok::<_, String>((
            answer.status(),
            answer.text().await.map_err(|e| e.to_string())?,
        ))
    };
    let lesson = |id: &str, verdict: &str| json!({"id": id, "verdict": verdict, "seen": {"zh": "看到", "en": "seen"}, "figures": {"left": [1]}});
    if get(&urls[1]).await?.0 != StatusCode::NO_CONTENT {
        return Err("verdicts before the first run".into());
    }
    for (wrong, field) in [
        (lesson("9.9", "reproduced"), "lessons[0].id"),
        (lesson("1.4", "maybe"), "verdict"),
    ] {
        let (status, text) = put(json!([wrong])).await?;
        if status != StatusCode::BAD_REQUEST || !text.contains(field) {
            return Err(format!("{field}: {status} {text}"));
        }
    }
    put(json!([
        lesson("1.4", "reproduced"),
        lesson("1.5", "unavailable")
    ]))
    .await?;
    let (status, text) = put(json!([lesson("1.5", "not-reproduced")])).await?;
    if status != StatusCode::NO_CONTENT {
        return Err(format!("{status} {text}"));
    }
    let (one, other) = (get(&urls[0]).await?.1, get(&urls[1]).await?.1);
    let mut lessons = other["lessons"].as_array().cloned().unwrap_or_default();
    lessons.sort_by_key(|lesson| lesson["id"].to_string());
    let right = lessons == [lesson("1.4", "reproduced"), lesson("1.5", "not-reproduced")];
    let right = right
        && one == other
        && other["at"].is_string()
        && other["conditions"] == json!({"cores": 2});
    if right {
        Ok(())
    } else {
        Err(format!("{one} and {other}"))
    }
}
