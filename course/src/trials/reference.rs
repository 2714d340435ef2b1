//! Tries a claim about Redisson, Curator, Spring, the JVM or the printed code on that library itself, beside our service.
//!
//! 1. All versions run the lesson's lines at the same time, each in its own processes and with its own names; one after the other
//!    where a line breaks a server.
//! 2. The script ends at the first line that prints something else, or not in its time: the claim does not hold in that version.
//!    A line in the background is checked at its `wait`, else not.
//! 3. The verdict is that of the version that the text uses. The results of the other versions and of our service stand beside it.

use super::{
    tools::own_key,
    twin::Tried,
    typed::{run_in_bash, run_line_or_fault},
};
use crate::trials::{Cluster, NoVerdict, Observation, java_libraries::INTEROP};
use futures::{StreamExt, TryStreamExt, future::try_join_all, stream};
use oversell::{
    claims::{
        ClaimVerdict, Library, Script, ScriptLine, TypedLine, Words,
        runner::{self, Line},
        words,
    },
    stock_admin::delete_nodes,
};
use oversell_lab::{
    clients::{
        peer::{CallError, Java, Peer},
        redis_at::redis_at,
    },
    programs::ShellOutput,
    terminal::bilingual::Bilingual,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    net::TcpListener,
    path::Path,
    time::Duration,
};
use tokio::{process::Command, time::sleep};

/// What a line printed, and how long it took.
struct LineResult {
    line: ScriptLine,
    printed: String,
    took: Duration,
}

/// The lines that one version of a library was sent, until the first that printed something else.
struct LibraryRun {
    java: Java,
    lines: Vec<LineResult>,
}

/// Runs the script, or its twin's lines, on each version, and joins the results with the observation of our service, which has no
/// verdict if it is unavailable. Fails if our experiment or a version fails.
///
/// The verdict on a claim is that of the first version that can be started (the text's comes first), or of our service if none can.
/// A twin is refused if neither a version nor our service reproduces it.
pub(super) async fn try_script(
    on: &Cluster,
    script: &Script,
    tried: Tried,
    ours: Result<Observation, NoVerdict>,
) -> Result<Observation, NoVerdict> {
    let versions = on.java_libraries.versions(script.on);
    if versions.is_empty() {
        return only_ours(on, script.on, ours);
    }
    let ours = match ours {
        Err(NoVerdict::Failed(why)) => return Err(NoVerdict::Failed(why)),
        Err(NoVerdict::Unavailable(why)) => Err(why),
        Ok(seen) => Ok(seen),
    };
    on.servers()?;
    let lines = match tried {
        Tried::Claim => &script.lines,
        Tried::Twin => &script.twin_lines(),
    };
    let breaks = |line: &ScriptLine| line.run.starts_with("{fault}") || line.run.contains(" client pause ");
    let breaks_servers = lines.iter().any(breaks);
    let at_once = if breaks_servers { 1 } else { versions.len() };
    let running = versions.into_iter().map(|java| try_version(on, script.on, java, lines));
    let versions: Vec<_> = stream::iter(running).buffered(at_once).try_collect().await?;
    let (of_ours, mut seen) = match ours {
        Ok(seen) => (Some(seen.verdict), seen),
        Err(why) => {
            let nothing = Observation::of(ClaimVerdict::Unavailable, why);
            (None, Observation { on: Vec::new(), ..nothing })
        }
    };
    seen.verdict = match tried {
        Tried::Claim => versions[0].verdict(),
        Tried::Twin => {
            let mut verdicts = versions.iter().map(LibraryRun::verdict).chain(of_ours);
            ClaimVerdict::of(verdicts.any(|verdict| verdict == ClaimVerdict::Reproduced))
        }
    };
    seen.words = describe(script, &versions, of_ours, &seen.words);
    seen.on.extend(versions.iter().map(|version| version.java.to_string()));
    let figures: Vec<Value> = versions.iter().map(LibraryRun::figures).collect();
    let seen = seen.value("theirs", figures);
    Ok(match of_ours {
        Some(verdict) => seen.value("ours", json!(verdict)),
        None => seen,
    })
}

/// The observation of our service alone, if no version of the library can be started; a note says why.
fn only_ours(on: &Cluster, library: Library, ours: Result<Observation, NoVerdict>) -> Result<Observation, NoVerdict> {
    let (Bilingual { zh, en }, why) = (library.name(), on.java_libraries.why_not(library));
    let with = |seen: Words, note| Words::join(&[seen, note], ["", " "]);
    match (ours, why) {
        (Ok(seen), why) => {
            let note = match why {
                Some(why) => words!(
                    "（只在本项目上试过，这不说明 {zh}：{why}。）",
                    "(Tried on ours only, which says nothing about {en}: {why}.)"
                ),
                None => words!("（只在本项目上试过。）", "(Tried on ours only.)"),
            };
            let words = with(seen.words.clone(), note);
            Ok(Observation { words, ..seen })
        }
        (Err(NoVerdict::Unavailable(words)), Some(why)) => {
            let note = Words::new(format!("（{zh} 也没有：{why}。）"), format!("({en} is not here either: {why}.)"));
            Err(NoVerdict::Unavailable(with(words, note)))
        }
        (Err(why), _) => Err(why),
    }
}

/// Runs the lines on one version, in its own processes, then removes its keys, nodes and database.
async fn try_version(on: &Cluster, library: Library, java: Java, lines: &[ScriptLine]) -> Result<LibraryRun, NoVerdict> {
    // The key is the name of a database of MySQL, too.
    let key = own_key("theirs").replace(':', "_");
    let servers = on.servers()?;
    let numbers: BTreeSet<_> = lines.iter().map(|line| line.process).collect();
    let key = &key;
    let starting = numbers.into_iter().map(|number| async move {
        let interop = Path::new(INTEROP);
        let mut program = java.command(interop);
        match library {
            Library::Redisson => drop(program.args(servers.redis.iter().map(|node| &node.url))),
            Library::Curator => drop(program.arg(&servers.zookeeper.connect)),
            Library::Spring => {}
            Library::Printed => {
                program.args([&servers.mysql.url, servers.first_redis(), &servers.zookeeper.connect, key]);
            }
        }
        let log = java.folder(interop).join(format!("course-{number}.log"));
        Ok::<_, NoVerdict>((number, Peer::start(java, program, &log).await?))
    });
    let peers: BTreeMap<_, _> = try_join_all(starting).await?.into_iter().collect();
    let results = send_lines(on, &peers, lines, key).await;
    for peer in peers.values() {
        peer.stop().await;
    }
    // Lines that end early leave broken what their last ones mend.
    on.mend_all().await;
    if matches!(library, Library::Redisson | Library::Printed) {
        remove_keys(servers.redis.iter().map(|node| &node.url[..]), key).await?;
    }
    if matches!(library, Library::Curator | Library::Printed) {
        let zookeeper = on.zookeeper().await?;
        let names = zookeeper.list_children("/").await?.into_iter().filter(|name| name.starts_with(key));
        let paths = names.map(|name| format!("/{name}")).collect();
        delete_nodes(&zookeeper, paths).await.map_err(NoVerdict::failed)?;
    }
    if library == Library::Printed {
        let drop = format!("mysql {{mysql}} -e 'DROP DATABASE {key}'");
        run_in_bash(&on.placeholders().fill_line(&TypedLine::new(&drop, "")).run).await?;
    }
    Ok(LibraryRun { java, lines: results? })
}

/// Sends the lines in turn and returns their results; stops at the first line that does not print what it should.
async fn send_lines(
    on: &Cluster,
    peers: &BTreeMap<u8, Peer>,
    lines: &[ScriptLine],
    key: &str,
) -> Result<Vec<LineResult>, NoVerdict> {
    let (placeholders, ports) = (on.placeholders(), [free_port()?, free_port()?]);
    let run = |index: usize, text: &str, results: &[runner::LineResult]| {
        let text = text.replace("{key}", key).replace("{port}", &ports[0]).replace("{port-2}", &ports[1]);
        let text = results.iter().fold(placeholders.fill_line(&TypedLine::new(&text, "")).run, |text, result| {
            text.replace(&format!("{{{}}}", result.index + 1), &result.output.stdout)
        });
        let line = &lines[index];
        send_line(on, &peers[&line.process], line, text)
    };
    let result = |result: &runner::LineResult| LineResult {
        line: lines[result.index].clone(),
        printed: result.output.stdout.clone(),
        took: result.took,
    };
    let results = runner::run_lines(lines, run, |ran| result(ran).is_as_said()).await?;
    Ok(results.iter().map(result).collect())
}

/// Sends a line to the Java process, or does what its first word says; returns what it prints, or `failed …`, `ended`, `no answer`.
async fn send_line(on: &Cluster, peer: &Peer, line: &ScriptLine, run: String) -> Result<ShellOutput, NoVerdict> {
    let signal = async |name: &str| {
        let pid = peer.id().unwrap_or_default().to_string();
        let sent = Command::new("kill").args([name, &pid]).status().await;
        sent.map(drop).map_err(NoVerdict::failed)
    };
    let mut printed = ShellOutput::default();
    match run.split_once(' ').unwrap_or((&run, "")) {
        ("kill", _) => peer.stop().await,
        ("stop", _) => signal("-STOP").await?,
        ("go-on", _) => signal("-CONT").await?,
        ("sleep", seconds) => {
            let seconds = seconds.parse().map_err(NoVerdict::failed)?;
            sleep(Duration::from_secs_f64(seconds)).await;
        }
        ("redis-cli" | "mysql" | "oversell", _) => printed = run_line_or_fault(on, run).await?,
        _ => {
            let pending = peer.send_command(&line.thread, run);
            printed.stdout = match pending.wait_at_most(line.time_limit()).await {
                Ok(answer) => answer,
                Err(CallError::Failed { why, .. }) => format!("failed {why}"),
                Err(CallError::Ended(_)) => "ended".to_owned(),
                Err(CallError::Unanswered(..)) => "no answer".to_owned(),
            };
        }
    }
    Ok(printed)
}

/// A free port of this machine, as a text.
fn free_port() -> Result<String, NoVerdict> {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|at| at.local_addr());
    Ok(port.map_err(NoVerdict::failed)?.port().to_string())
}

/// Deletes the keys that contain `key` on each of these nodes.
async fn remove_keys(nodes: impl Iterator<Item = &str>, key: &str) -> Result<(), NoVerdict> {
    for node in nodes {
        let mut redis = redis_at(node).await?;
        let mut scan = redis::cmd("KEYS");
        let keys: Vec<String> = scan.arg(format!("*{key}*")).query_async(&mut redis).await?;
        for key in keys {
            let _: i64 = redis::cmd("UNLINK").arg(key).query_async(&mut redis).await?;
        }
    }
    Ok(())
}

/// The line for a reader: without the generated key, and with process and thread unless they are the first.
fn printable_line(line: &ScriptLine) -> String {
    let run = line.run.replace("{key}", "key");
    let run = run.replace("{redis} ", "").replace("{mysql} ", "").replace("{fault}", "fault").replace(" &", "");
    match (line.process, &line.thread[..]) {
        (1, "A") => run,
        (1, thread) => format!("{thread} {run}"),
        (process, "A") => format!("[{process}] {run}"),
        (process, thread) => format!("[{process}] {thread} {run}"),
    }
}

impl LineResult {
    /// Whether the line printed what it should, within the bounds of its duration.
    fn is_as_said(&self) -> bool {
        let in_time = |[least, most]: [u64; 2]| (u128::from(least)..=u128::from(most)).contains(&self.took.as_millis());
        self.line.is_printed(&self.printed) && self.line.takes_ms.is_none_or(in_time)
    }

    /// The line, what it printed and how long it took, with the bounds of each.
    fn words(&self) -> String {
        let mut words = printable_line(&self.line);
        if !self.printed.is_empty() {
            words += &format!(" → {}", shortened(&self.printed));
        }
        if let Some([least, most]) = self.line.between {
            words += &format!(" ({least}–{most})");
        }
        if let Some([least, most]) = self.line.takes_ms {
            words += &format!(", {} ms ({least}–{most})", self.took.as_millis());
        }
        words
    }
}

/// At most 60 characters, then `…`; a shorter text becomes one line.
fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let text = text.replace('\n', " ");
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

impl LibraryRun {
    /// Reproduced if each line printed what it should in its time.
    fn verdict(&self) -> ClaimVerdict {
        ClaimVerdict::of(self.lines.iter().all(LineResult::is_as_said))
    }

    /// The verdict and the lines, as JSON.
    fn figures(&self) -> Value {
        let line = |result: &LineResult| {
            let took = u64::try_from(result.took.as_millis()).unwrap_or(u64::MAX);
            json!({"line": printable_line(&result.line), "printed": result.printed, "took_ms": took})
        };
        let lines: Vec<_> = self.lines.iter().map(line).collect();
        json!({"on": self.java.to_string(), "verdict": self.verdict(), "lines": lines})
    }

    /// All checked lines for the first version; only the failed line for the others.
    fn words(&self, is_first: bool) -> Words {
        let said = |result: &&LineResult| match is_first {
            true => {
                result.line.prints.is_some()
                    || result.line.between.is_some()
                    || result.line.takes_ms.is_some()
                    || !result.is_as_said()
            }
            false => !result.is_as_said(),
        };
        let said: Vec<_> = self.lines.iter().filter(said).map(LineResult::words).collect();
        let (version, verdict, said) = (self.java.version, self.verdict().words(), said.join("; "));
        let behind = |open: &str, close: &str| match said.is_empty() {
            true => String::new(),
            false => format!("{open}{said}{close}"),
        };
        Words::new(
            format!("{version} {}{}", verdict.zh, behind("（", "）")),
            format!("{version} {}{}", verdict.en, behind(" (", ")")),
        )
    }
}

/// Describes all versions and our service: `Redisson 3.11.2 reproduced (…); 4.7.0 not reproduced (…). Ours reproduced: …`
fn describe(script: &Script, versions: &[LibraryRun], ours: Option<ClaimVerdict>, seen: &Words) -> Words {
    let library = script.on.name();
    let each = (versions.iter().enumerate()).map(|(n, version)| version.words(n == 0));
    let each = Words::join(&each.collect::<Vec<_>>(), ["；", "; "]);
    let note = script.note.map_or(["", ""], |note| [note.zh, note.en]);
    let ours = ours.map_or(["", ""], |verdict| [verdict.words().zh, verdict.words().en]);
    let space = |text: &str| if text.is_empty() { "" } else { " " };
    Words::new(
        format!("{} {}。{}本项目{}：{}", library.zh, each.zh, note[0], ours[0], seen.zh),
        format!("{} {}.{}{} Ours{}{}: {}", library.en, each.en, space(note[1]), note[1], space(ours[1]), ours[1], seen.en),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use oversell::claims::lessons;

    fn done(line: &str, printed: &str, took_ms: u64) -> LineResult {
        LineResult { line: toml::from_str(line).unwrap(), printed: printed.to_owned(), took: Duration::from_millis(took_ms) }
    }

    #[test]
    fn a_line_must_print_what_it_says_within_its_bounds() {
        let words = "run = 'try lock {key} 500'\nprints = 'false'\ntakes_ms = [490, 1500]";
        let number = "run = 'redis-cli {redis} pttl {key}'\nbetween = [29000, 30000]";
        for (line, printed, took, good) in [
            (words, "false", 500, true),
            (words, "true", 500, false),
            (words, "false", 489, false),
            (words, "false", 1501, false),
            (number, "29000", 0, true),
            (number, "30001", 0, false),
            (number, "-2", 0, false),
            (number, "no answer", 0, false),
            ("run = 'ping'", "anything", 0, true),
        ] {
            assert_eq!(done(line, printed, took).is_as_said(), good, "{line}: {printed}");
        }
    }

    #[test]
    fn the_first_version_decides_the_verdict() {
        let line = "thread = 'B'\nrun = 'try lock {key} 500'\nprints = 'false'\ntakes_ms = [490, 1500]";
        let version =
            |version, printed| LibraryRun { java: Java { library: "redisson", version }, lines: vec![done(line, printed, 501)] };
        let versions = [version("3.11.2", "false"), version("4.7.0", "true")];
        assert_eq!(versions[0].verdict(), ClaimVerdict::Reproduced);
        let script = "on = 'redisson'\ntwin = [1, '']\nlines = []";
        let script: Script = toml::from_str(script).unwrap();
        let said = describe(&script, &versions, Some(ClaimVerdict::Noise), &Words::new("看到", "seen"));
        assert_eq!(
            said.en,
            "Redisson 3.11.2 reproduced (B try lock key 500 → false, 501 ms (490–1500)); \
             4.7.0 not reproduced (B try lock key 500 → true, 501 ms (490–1500)). Ours noise: seen"
        );
        assert!(said.zh.ends_with("。本项目误差范围内：看到"), "{}", said.zh);
    }

    #[test]
    fn a_background_line_with_an_expected_print_is_awaited() {
        for script in lessons().filter_map(|lesson| lesson.theirs.as_ref()) {
            for (n, line) in script.lines.iter().enumerate() {
                let waits =
                    |later: &ScriptLine| later.run == "wait" && (later.process, &later.thread) == (line.process, &line.thread);
                let is_said = line.prints.is_some() || line.takes_ms.is_some();
                if line.run.ends_with(" &") && is_said {
                    assert!(script.lines[n..].iter().any(waits), "{}", line.run);
                }
            }
        }
    }
}
