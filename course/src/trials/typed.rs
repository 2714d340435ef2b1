//! Tries a claim about the lines that a student types: each line must print what the lesson says.
//!
//! 1. Bash runs each line, with the addresses of the running lab.
//! 2. The experiment has its own product and keys. They replace the places `{:id}`, `{?id}`, `{&id}` and `{-id}`, which are
//!    empty for a student, who uses product 1, and `{id}`, `{user}` and `{user-2}`, which are 1, 1010 and 1011.
//! 3. A lab that a line starts is the experiment's own, in a folder that is removed with it.
//! 4. A line that prints something else turns the verdict only where it speaks of the claim: where a claim is false, each line must print
//!    what it does or what is claimed, and before the line that a twin replaces all must be as ever. Else there is no verdict, for a server
//!    that is down refuses every claim.

use super::{
    own_lab::{OwnLab, new_folder},
    tools::own_key,
};
use crate::trials::{Cluster, NoVerdict, Observation};
use clap::ValueEnum;
use oversell::claims::{
    TypedLine, Words,
    runner::{LineResult, run_lines},
    with_waits,
};
use oversell_lab::{
    fault::Action,
    programs::{self, LINE_TIMEOUT, ShellOutput, run_in_shell},
};
use serde_json::Value;
use tempfile::NamedTempFile;
use tokio::time::sleep;

/// The part of a key that is replaced by a unique name, so that no student and no experiment uses the same key.
const KEY_OF_STUDENT: &str = "by-hand";
/// The folder for a student's files; an experiment has one of its own.
const FOLDER_OF_STUDENT: &str = "target/";
/// The end of a line that makes a voucher.
const NEW_VOUCHER: &str = "{http}/voucher";
/// The places in a line that only a lab knows.
const PLACES_OF_LAB: [&str; 8] = ["{mysql}", "{redis", "{zookeeper}", "{zk}", "{fault}", "{8100}", "{8200}", "{name-"];
/// The programs that lines run; they come with the servers, or must be installed beside them.
const PROGRAMS: [&str; 8] = ["curl", "redis-cli", "redis-server", "mysql", "zkCli.sh", "nginx", "etcd", "etcdctl"];
/// Limit of each output stream of a line, which is killed when it reaches it; it should print far less.
const MAX_OUTPUT_BYTES: usize = 64 * 1024;

/// A longer answer is shown as the line expects it.
const MAX_SHOWN: usize = 300;

/// Tries typed lines with a product and keys of their own; `replaced` is the index of the line that a twin has changed. Unavailable
/// without a lab if a line names what only a lab knows.
pub(super) async fn try_lines(on: &Cluster, lines: &[TypedLine], replaced: Option<usize>) -> Result<Observation, NoVerdict> {
    let of_lab = |line: &TypedLine| line.starts_lab() || PLACES_OF_LAB.iter().any(|place| line.run.contains(place));
    if lines.iter().any(of_lab) {
        on.servers()?;
    }
    let product = on.create_product(5000).await?;
    let placeholders = on.placeholders().with_product(product.id);
    let filled: Vec<_> = lines.iter().map(|line| placeholders.fill_line(line)).collect();
    // A prefix of ids may have no colon.
    let (key, folder) = (own_key(KEY_OF_STUDENT).replace(':', "-"), new_folder()?);
    let place = format!("{}/", folder.path().display());
    let own = |text: &str| text.replace(KEY_OF_STUDENT, &key).replace(FOLDER_OF_STUDENT, &place);
    let typed = filled.iter().map(|line| TypedLine { run: own(&line.run), expect: own(&line.expect), ..line.clone() });
    // A line that runs beside the others and should print nothing is killed at the end.
    let typed = with_waits(typed.collect(), |line| !line.expect.is_empty());
    let starts_lab = typed.iter().position(TypedLine::starts_lab);
    let (own_lab, _folder) = match starts_lab {
        Some(index) => (Some(OwnLab::start_typed(on, &typed[index].run, folder).await?), None),
        None => (None, Some(folder)),
    };
    let run = |index, line: &str, _: &[LineResult]| {
        let (is_done, line) = (starts_lab == Some(index), line.to_owned());
        async move { if is_done { Ok(ShellOutput::default()) } else { run_line_or_fault(on, line).await } }
    };
    let results = run_lines(&typed, run, |_| true).await;
    product.remove().await?;
    let results = results?;
    if let Some(lab) = own_lab {
        lab.wait_for_end().await?;
    }
    let mut printed = vec![String::new(); lines.len()];
    for result in results {
        printed[result.index] = result.output.stdout;
    }
    let makes_voucher = |(line, _): &(&TypedLine, _)| line.run.ends_with(NEW_VOUCHER);
    let answers = lines.iter().zip(&printed).filter(makes_voucher).map(|(_, printed)| printed);
    let vouchers: Vec<Value> = answers.filter_map(|answer| serde_json::from_str(answer).ok()).collect();
    for made in vouchers {
        on.remove_voucher(&made["id"]).await?;
    }
    for printed in &mut printed {
        *printed = printed.replace(&place, FOLDER_OF_STUDENT).replace(&key, KEY_OF_STUDENT);
    }
    observe(lines, &filled, &printed, replaced)
}

/// Runs a line in bash, with the servers' own clients, for [`LINE_TIMEOUT`] at most; unavailable if one of its [`PROGRAMS`] is
/// not installed. Returns its output so far, whatever its exit status, without white space at the end of stdout.
pub(super) async fn run_in_bash(line: &str) -> Result<ShellOutput, NoVerdict> {
    let mut words = line.split([' ', '(', ';']);
    let missing = words.find(|word| PROGRAMS.contains(word) && programs::find(word).is_none());
    if let Some(program) = missing {
        return Err(NoVerdict::unavailable(format!("没有装 {program}"), format!("{program} is not installed")));
    }
    let path = programs::shell_path();
    let ran = run_in_shell(line, &path, MAX_OUTPUT_BYTES, sleep(LINE_TIMEOUT)).await;
    let mut output = ran.map_err(NoVerdict::failed)?;
    output.stdout.truncate(output.stdout.trim_end().len());
    Ok(output)
}

/// Runs a line in bash. A fault that it injects must print something, and is mended after the experiment.
pub(super) async fn run_line_or_fault(on: &Cluster, line: String) -> Result<ShellOutput, NoVerdict> {
    let words: Vec<_> = line.split(' ').collect();
    let ["oversell", "lab", "fault", action, member, ..] = &words[..] else {
        return run_in_bash(&line).await;
    };
    // A lab that a line has started ends with its lesson.
    if line.contains("--lab-json") {
        return run_in_bash(&line).await;
    }
    let action = Action::from_str(action, false).map_err(NoVerdict::failed)?;
    let faults = on.faults()?;
    // The command looks for the lab of this folder, and the experiments may have started another one.
    let mut lab = NamedTempFile::new().map_err(NoVerdict::failed)?;
    serde_json::to_writer(&mut lab, on.servers()?).map_err(NoVerdict::failed)?;
    faults.note_undo(action, member);
    let ran = run_in_bash(&format!("{line} --lab-json {}", lab.path().display())).await?;
    if ran.stdout.is_empty() {
        return Err(NoVerdict::failed(ran.stderr));
    }
    faults.note_done(action, member);
    Ok(ran)
}

/// The beginning of a line that a reader sees as `PUT`.
const PUT_JSON: &str = "curl -s -X PUT -H 'content-type: application/json' -d";

/// Parts of a line that a student must type and a reader need not see.
const HIDDEN_PARTS: [&str; 10] = [
    "redis-cli {redis} ",
    "mysql {mysql} -Ne ",
    "curl -s ",
    "-o /dev/null -w '%{http_code}' ",
    "-H 'accept: application/json' ",
    "{http}",
    "{:id}",
    "{?id}",
    "{&id}",
    "{-id}",
];

/// Claim: each line prints what it does if the claim is true. The words show every line and what it printed, in short.
/// `typed` has the lines as they were typed, with all placeholders replaced. No verdict if a line fails that does not speak of the claim.
fn observe(
    lines: &[TypedLine],
    typed: &[TypedLine],
    printed: &[String],
    replaced: Option<usize>,
) -> Result<Observation, NoVerdict> {
    let all = || typed.iter().zip(printed);
    let holds = all().all(|(typed, printed)| typed.shows_claim(printed));
    let words = lines.iter().zip(all());
    let words = words.filter(|(line, _)| line.run != "wait" && !leads_to_own_lab(line));
    let words = words.map(|(line, (typed, printed))| {
        let empty = |line: String, unsaid| line.replace(unsaid, "");
        let run = HIDDEN_PARTS.into_iter().fold(line.run.replace(PUT_JSON, "PUT"), empty);
        // An expected answer in JSON or of many lines is shown as the line has it, in short.
        let is_long = (printed.starts_with('{') || printed.len() > MAX_SHOWN) && typed.is_printed(printed);
        let printed = if is_long { &line.expect } else { printed };
        let shown = match printed.trim() {
            "" => run,
            printed => format!("{run} → {}", printed.replace('\n', " ")),
        };
        let claimed = line.claimed.as_ref().filter(|_| !typed.shows_claim(printed));
        let otherwise = claimed.map(|claimed| format!(" ≠ {}", claimed.replace('\n', " ")));
        in_short(&(shown + &otherwise.unwrap_or_default()))
    });
    let words = words.collect::<Vec<_>>().join("; ");
    let is_claimed_false = typed.iter().any(|line| line.claimed.is_some());
    let must_be_as_ever = |n: usize| match replaced {
        // What runs beside the others may end after the replaced line.
        Some(replaced) => n < replaced && !typed[n].run.ends_with(" &"),
        None => is_claimed_false,
    };
    let is_as_ever = |(line, printed): (&TypedLine, &String)| line.is_printed(printed) || line.shows_claim(printed);
    if all().enumerate().any(|(n, line)| must_be_as_ever(n) && !is_as_ever(line)) {
        return Err(NoVerdict::failed(words));
    }
    Ok(Observation::holds(holds, Words::untranslated(words)))
}

/// Whether a line only starts or ends a lab, or looks up its addresses.
fn leads_to_own_lab(line: &TypedLine) -> bool {
    let looks_up = ["/lab.json 2>/dev/null", ".ports; wc -l", "| tee target/", "kill \"$(cat target/"];
    line.starts_lab() || looks_up.iter().any(|part| line.run.contains(part))
}

/// Without the lookup of an address in the lab's files: `"$(sed -n 2p FILE.ports)"` is `#2`, and `"$(cat FILE.leads)"` is `#leads`.
fn without_lookups(line: &str) -> String {
    let line = match line.strip_prefix("at=$(").or(line.strip_prefix("http=$(")).and_then(|at| at.split_once("); ")) {
        Some((_, line)) => line,
        None => line,
    };
    let mut parts = line.split("\"$(");
    let mut short = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (lookup, rest) = part.split_once(")\"").unwrap_or((part, ""));
        let number = lookup.strip_prefix("sed -n ").and_then(|number| number.split('p').next());
        short += &format!("#{}{rest}", number.unwrap_or_else(|| lookup.rsplit('.').next().unwrap_or_default()));
    }
    short.replace("mysql -h 127.0.0.1 -P ", "").replace("-u root test -Ne ", "").replace("redis-cli -p ", "")
}

/// Without lookups and without the text of a script that is loaded, and with the beginning of its digest.
fn in_short(line: &str) -> String {
    let line = &without_lookups(line);
    let line = match line.split_once("script load \"") {
        Some((before, rest)) => {
            let digest = rest.rsplit_once('"').map_or(rest, |(_, digest)| digest);
            format!("{before}script load …{digest}")
        }
        None => line.to_owned(),
    };
    let is_digest = |word: &str| word.len() == 40 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let words = line.split(' ').map(|word| match is_digest(word) {
        true => format!("{}…", &word[..7]),
        false => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use garde::Validate;
    use oversell::claims::{ClaimVerdict, Run, find, lessons};

    fn seen(lines: &[TypedLine], printed: &[String]) -> Observation {
        observe(lines, lines, printed, None).expect("a verdict")
    }

    #[test]
    fn what_typed_lines_print_fits_into_a_verdict() {
        let is_typed = |run: &Run| matches!(run, Run::Typed);
        for lesson in lessons().filter(|lesson| lesson.run.parts().iter().any(is_typed)) {
            let lines = lesson.by_hand.iter();
            let printed: Vec<_> = lines.map(|line| line.expect.clone()).collect();
            let words = seen(&lesson.by_hand, &printed).words;
            assert!(words.validate().is_ok(), "{}: {}", lesson.id, words.en);
        }
    }

    #[test]
    fn a_line_that_prints_something_else_turns_the_verdict() {
        let lesson = find("001.del").expect("a lesson");
        for (printed, verdict) in [(["OK", "1", "0"], ClaimVerdict::Reproduced), (["OK", "1", "1"], ClaimVerdict::NotReproduced)]
        {
            let printed = printed.map(str::to_owned);
            assert_eq!(seen(&lesson.by_hand, &printed).verdict, verdict);
        }
    }

    #[test]
    fn what_is_claimed_decides_not_what_is_printed() {
        let line = TypedLine { claimed: Some("1".to_owned()), ..TypedLine::new("redis-cli {redis} set lock any nx", "OK") };
        for (printed, verdict, words) in [
            ("OK", ClaimVerdict::NotReproduced, "set lock any nx → OK ≠ 1"),
            ("1", ClaimVerdict::Reproduced, "set lock any nx → 1"),
        ] {
            let seen = seen(std::slice::from_ref(&line), &[printed.to_owned()]);
            assert_eq!((seen.verdict, &seen.words.en[..]), (verdict, words));
        }
    }

    /// A server that is down refuses every claim: that is no verdict on this one.
    #[test]
    fn what_fails_beside_the_claim_is_no_verdict() {
        let about = TypedLine { claimed: Some("1".to_owned()), ..TypedLine::new("get lock", "0") };
        let lines = [TypedLine::new("set lock", "OK"), about, TypedLine::new("beside &", "OK")];
        let judge = |printed: [&str; 3], replaced| {
            let seen = observe(&lines, &lines, &printed.map(str::to_owned), replaced);
            seen.ok().map(|seen| seen.verdict)
        };
        assert_eq!(judge(["OK", "0", "OK"], None), Some(ClaimVerdict::NotReproduced));
        assert_eq!(judge(["OK", "1", "OK"], None), Some(ClaimVerdict::Reproduced));
        assert_eq!(judge(["refused", "0", "OK"], None), None);
        assert_eq!(judge(["OK", "refused", "OK"], None), None);
        // The second line is a twin's.
        assert_eq!(judge(["OK", "refused", "refused"], Some(1)), Some(ClaimVerdict::NotReproduced));
        assert_eq!(judge(["refused", "0", "OK"], Some(1)), None);
    }
}
