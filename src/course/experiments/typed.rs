//! A claim about commands of Redis: the lines that a student types are sent as they stand, and each must print what it says.
//!
//! 1. Each terminal has a connection of its own, and the keys are the experiment's own.
//! 2. What comes back is worded as `redis-cli` prints it.

use super::tools::own;
use crate::course::{Cluster, Lesson, Line, NoVerdict, Seen, Words};
use redis::{Cmd, RedisError, Value};
use std::collections::{BTreeMap, btree_map::Entry};

/// What stands before each command.
const CLI: &str = "redis-cli {redis} ";
/// What the keys of all lines have in their names.
const KEY: &str = "by-hand";

pub(super) async fn typed(on: &Cluster, lesson: &Lesson) -> Result<Seen, NoVerdict> {
    let (mut terminals, key) = (BTreeMap::new(), own(KEY));
    let mut printed = Vec::new();
    for line in &lesson.by_hand {
        let command = command(line, &key).ok_or_else(|| NoVerdict::failed(&line.run))?;
        let redis = match terminals.entry(line.terminal) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(new) => new.insert(on.redis().await?),
        };
        printed.push(worded(command.query_async(redis).await)?);
    }
    Ok(seen(lesson, &printed))
}

/// The command of a line; `None` where it is not one for `redis-cli`, typed once.
fn command(line: &Line, key: &str) -> Option<Cmd> {
    let words = shlex::split(line.run.strip_prefix(CLI)?)?;
    let mut command = Cmd::new();
    command.arg(
        words
            .iter()
            .map(|word| word.replace(KEY, key))
            .collect::<Vec<_>>(),
    );
    (!line.again).then_some(command)
}

/// An answer as `redis-cli` prints it; an error of Redis is one.
fn worded(answer: Result<Value, RedisError>) -> Result<String, NoVerdict> {
    Ok(match answer {
        Ok(Value::Nil) => String::new(),
        Ok(Value::Array(values)) => {
            let each: Result<Vec<_>, _> =
                values.into_iter().map(|value| worded(Ok(value))).collect();
            each?.join("\n")
        }
        Ok(value) => redis::from_redis_value(value).map_err(NoVerdict::failed)?,
        Err(error) => match (error.code(), error.detail()) {
            (Some(code), detail) => format!("{code} {}", detail.unwrap_or_default()),
            (None, _) => return Err(NoVerdict::failed(error)),
        },
    })
}

/// The claim holds where each line has printed what it says.
fn seen(lesson: &Lesson, printed: &[String]) -> Seen {
    let lines = || lesson.by_hand.iter().zip(printed);
    let as_said = lines().all(|(line, printed)| line.is_printed(printed));
    let words: Vec<_> = lines()
        .map(|(line, printed)| {
            let command = line.run.trim_start_matches(CLI);
            format!("{command} → {}", printed.replace('\n', " "))
        })
        .collect();
    Seen::holds(as_said, Words::same(words.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::course::{Run, Verdict, find, lessons};

    #[test]
    fn every_line_that_is_sent_is_a_command_of_redis() {
        for lesson in lessons().filter(|lesson| matches!(lesson.run, Run::Typed)) {
            for line in &lesson.by_hand {
                let command = command(line, "key").unwrap_or_else(|| panic!("{}", line.run));
                assert!(command.args_iter().count() > 1, "{}", line.run);
            }
        }
        for other in ["curl {http}/stock", "redis-cli {redis} get 'stock"] {
            assert!(command(&Line::new(other, ""), "key").is_none(), "{other}");
        }
    }

    #[test]
    fn a_line_that_prints_something_else_turns_the_verdict() {
        let lesson = find("001.del").expect("a lesson");
        for (printed, verdict) in [
            (["OK", "1", "0"], Verdict::Reproduced),
            (["OK", "1", "1"], Verdict::NotReproduced),
        ] {
            assert_eq!(seen(lesson, &printed.map(str::to_owned)).verdict, verdict);
        }
    }

    #[test]
    fn answers_are_worded_as_redis_cli_prints_them() {
        let texts = ["10", "20"].map(|text| Value::BulkString(text.into()));
        for (answer, printed) in [
            (Value::Okay, "OK"),
            (Value::Int(5), "5"),
            (Value::Nil, ""),
            (Value::Array(texts.into()), "10\n20"),
        ] {
            assert_eq!(worded(Ok(answer)).unwrap(), printed);
        }
    }
}
