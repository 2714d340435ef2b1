//! A connection to Redis that reports each command to a follower, and what the server answered.
//!
//! An actor of a replay has clients over such connections: what a strategy sends itself is reported as well as what the lock
//! library sends for it.

use super::{Points, lua};
use parking_lot::Mutex;
use redis::{Arg, Cmd, Pipeline, RedisError, RedisFuture, Value, aio::ConnectionLike};
use std::{collections::HashSet, sync::Arc};

/// A longer argument is shown by its first 9 characters, unless it has a colon, as keys and owners do. The digest of a script
/// is cut.
const MAX_ARGUMENT_CHARS: usize = 36;
/// A longer answer is cut after this many characters.
const MAX_ANSWER_CHARS: usize = 120;

/// A connection to Redis that reports what one job sends over it, and the answers.
#[derive(Debug, Clone)]
pub(crate) struct RedisTap<C> {
    redis: C,
    points: Points,
    /// The node of Redlock that it leads to, which stands before each line.
    node: Option<&'static str>,
    reported: Arc<Mutex<ReportHistory>>,
}

/// What was reported before, so that it is not repeated.
#[derive(Debug, Default)]
struct ReportHistory {
    /// The digests of the scripts whose text was reported.
    scripts: HashSet<String>,
    /// The last commands, and their answer.
    last: (String, String),
}

/// Commands that were sent together and are not answered yet.
struct UnansweredCommands {
    line: String,
    /// Whether they were reported before their answer. Commands that a poll repeats are reported only if the answer differs.
    is_reported: bool,
}

impl<C> RedisTap<C> {
    /// A connection that sends on behalf of the job with these points.
    pub(crate) fn new(redis: C, points: &Points, node: Option<&'static str>) -> Self {
        Self { redis, points: points.clone(), node, reported: Arc::default() }
    }

    /// Reports commands before they are sent, unless the last answered ones were the same. `None` if nobody follows.
    fn report(&self, commands: &[&Cmd], is_transaction: bool) -> Option<UnansweredCommands> {
        if !self.points.is_followed() {
            return None;
        }
        let lines: Vec<_> = commands.iter().map(|cmd| command_line(cmd)).collect();
        let lines = lines.join("; ");
        let line = match is_transaction {
            true => format!("MULTI; {lines}; EXEC"),
            false => lines,
        };
        let line = match self.node {
            Some(node) => format!("[{node}] {line}"),
            None => line,
        };
        let is_reported = self.reported.lock().last.0 != line;
        if is_reported {
            let script = commands.iter().find_map(|cmd| self.new_script(cmd));
            self.points.report_sent(|| match script {
                Some(script) => format!("{line}\n{script}"),
                None => line.clone(),
            });
        }
        Some(UnansweredCommands { line, is_reported })
    }

    /// Reports an answer, unless the same commands got the same one the last time. Commands that `report` left out are
    /// reported before it.
    fn report_answer(&self, sent: Option<UnansweredCommands>, answer: impl FnOnce() -> String) {
        let Some(sent) = sent else { return };
        let answer = answer();
        if !sent.is_reported {
            if self.reported.lock().last.1 == answer {
                return;
            }
            self.points.report_sent(|| sent.line.clone());
        }
        self.reported.lock().last = (sent.line.clone(), answer.clone());
        self.points.report_answer(sent.line, answer);
    }

    /// The text of the script that this command runs, if it was not reported before.
    fn new_script(&self, cmd: &Cmd) -> Option<String> {
        let mut words = cmd.args_iter().map(|arg| match arg {
            Arg::Simple(word) => String::from_utf8_lossy(word),
            _ => "".into(),
        });
        let digest = words.next().filter(|name| name == "EVALSHA").and(words.next())?;
        let text = lua::text_of(&digest)?;
        let is_new = self.reported.lock().scripts.insert(digest.into_owned());
        is_new.then(|| lua::without_comments(text))
    }
}

impl<C: ConnectionLike + Send> ConnectionLike for RedisTap<C> {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let sent = self.report(&[cmd], false);
            let answer = self.redis.req_packed_command(cmd).await;
            self.report_answer(sent, || answer.as_ref().map_or_else(printed_error, printed_answer));
            answer
        })
    }

    fn req_packed_commands<'a>(&'a mut self, commands: &'a Pipeline, offset: usize, count: usize) -> RedisFuture<'a, Vec<Value>> {
        let all = |answers: &Vec<Value>| {
            let answers: Vec<_> = answers.iter().map(printed_answer).collect();
            answers.join("; ")
        };
        Box::pin(async move {
            let sent: Vec<_> = commands.cmd_iter().collect();
            // A pipeline with an offset is a transaction: MULTI and EXEC are sent around its commands.
            let sent = self.report(&sent, offset > 0);
            let answers = self.redis.req_packed_commands(commands, offset, count);
            let answers = answers.await;
            self.report_answer(sent, || answers.as_ref().map_or_else(printed_error, all));
            answers
        })
    }

    fn get_db(&self) -> i64 {
        self.redis.get_db()
    }
}

/// A command as `redis-cli` would have it typed, with long arguments cut.
fn command_line(cmd: &Cmd) -> String {
    let words = cmd.args_iter().map(|arg| match arg {
        Arg::Simple(word) => String::from_utf8_lossy(word).into_owned(),
        _ => String::new(),
    });
    let short = words.map(|word| match word.char_indices().nth(MAX_ARGUMENT_CHARS) {
        // The text of a script.
        _ if word.contains('\n') => format!("{}…", word.lines().next().unwrap_or_default()),
        Some((end, _)) if !word.contains(':') => format!("{}…", &word[..end / 4]),
        _ => word,
    });
    short.collect::<Vec<_>>().join(" ")
}

/// An answer as `redis-cli` prints it, on one line.
fn printed_answer(answer: &Value) -> String {
    let all = |values: &[Value]| values.iter().map(printed_answer).collect::<Vec<_>>().join(" ");
    let text = match answer {
        Value::Nil => "(nil)".to_owned(),
        Value::Okay => "OK".to_owned(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Boolean(is) => is.to_string(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text.clone(),
        Value::BulkString(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        Value::Array(values) | Value::Set(values) => all(values),
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| format!("{} {}", printed_answer(key), printed_answer(value)));
            pairs.collect::<Vec<_>>().join(" ")
        }
        other => format!("{other:?}"),
    };
    shorten_answer(&text)
}

/// An error as `redis-cli` prints it to a pipe, its code and its text, shortened as answers are.
fn printed_error(error: &RedisError) -> String {
    shorten_answer(&match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    })
}

/// Cuts an answer after [`MAX_ANSWER_CHARS`] characters.
fn shorten_answer(text: &str) -> String {
    match text.char_indices().nth(MAX_ANSWER_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::points::{Follower, FollowerEvent};
    use std::time::Duration;
    use tokio::sync::{mpsc, watch};

    #[test]
    fn a_command_is_told_as_it_is_typed_and_a_digest_is_cut() {
        let set = redis::cmd("SET").arg("lock:7").arg("8000-1").arg("NX").arg("PX").arg(3000).clone();
        assert_eq!(command_line(&set), "SET lock:7 8000-1 NX PX 3000");
        let digest = "3f".repeat(20);
        let script = redis::cmd("EVALSHA").arg(&digest).arg(1).arg("lock:7").clone();
        assert_eq!(command_line(&script), "EVALSHA 3f3f3f3f3… 1 lock:7");
        let load = redis::cmd("SCRIPT").arg("LOAD").arg("-- frees: it\nreturn 1\n").clone();
        assert_eq!(command_line(&load), "SCRIPT LOAD -- frees: it…");
    }

    /// Answers each command with the next of these.
    #[derive(Clone)]
    struct Answers(Arc<Mutex<Vec<Value>>>);

    impl ConnectionLike for Answers {
        fn req_packed_command<'a>(&'a mut self, _: &'a Cmd) -> RedisFuture<'a, Value> {
            let answer = self.0.lock().remove(0);
            Box::pin(async move { Ok(answer) })
        }

        fn req_packed_commands<'a>(&'a mut self, _: &'a Pipeline, _: usize, _: usize) -> RedisFuture<'a, Vec<Value>> {
            let answers = self.0.lock().drain(..).collect();
            Box::pin(async move { Ok(answers) })
        }

        fn get_db(&self) -> i64 {
            0
        }
    }

    /// What a follower hears of this.
    async fn heard<F: AsyncFn(&mut RedisTap<Answers>)>(answers: Vec<Value>, sends: F) -> Vec<FollowerEvent> {
        let (events, mut received) = mpsc::unbounded_channel();
        let (_stops, stops) = watch::channel(Vec::new());
        let points = Points(Some(Follower { events, stops, linger: Duration::ZERO }));
        let answers = Answers(Arc::new(Mutex::new(answers)));
        sends(&mut RedisTap::new(answers, &points, None)).await;
        std::iter::from_fn(|| received.try_recv().ok()).collect()
    }

    #[tokio::test]
    async fn who_polls_is_told_once_until_the_answer_changes() {
        let answers = [Value::Nil, Value::Nil, Value::Nil, Value::Okay];
        let heard = heard(answers.to_vec(), async |redis| {
            let take = redis::cmd("SETNX").arg("lock:7").clone();
            for _ in 0..4 {
                let _: Value = take.query_async(redis).await.unwrap();
            }
        })
        .await;
        let line = || "SETNX lock:7".to_owned();
        let sent = || FollowerEvent::Sent(line());
        let answered = |answer: &str| FollowerEvent::Answered { line: line(), answer: answer.into() };
        assert_eq!(heard, [sent(), answered("(nil)"), sent(), answered("OK")]);
    }
}
