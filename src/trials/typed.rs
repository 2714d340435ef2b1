//! Tries a claim about the lines that a student types: each line must print what the lesson says.
//!
//! 1. A line is a command of `redis-cli`, `mysql`, `curl` or `oversell lab fault`, with the addresses of the running lab.
//! 2. The experiment has its own product and keys. They replace the places `{:id}`, `{?id}` and `{&id}`, which are empty for a
//!    student, who uses product 1.
//! 3. Answers and errors are written as the program prints them.

use super::tools::own_key;
use crate::{
    claims::{Line, Words},
    clients::http_client::{Ask, client},
    clients::redis_at::redis_at,
    fault::Action,
    trials::{Cluster, NoVerdict, Observation},
};
use clap::ValueEnum;
use futures::StreamExt;
use http::Method;
use redis::{Cmd, RedisError, Value};
use sqlx::{Connection, Either, MySqlConnection, Row, mysql::MySqlDatabaseError};
use std::time::{Duration, Instant};
use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

/// The part of a key that is replaced by a unique name.
const KEY: &str = "by-hand";
/// Bounds an answer, and the repetitions of a line.
const LINE_TIMEOUT: Duration = Duration::from_secs(60);
/// Short beside what a line waits for.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

pub(super) async fn typed(on: &Cluster, lines: &[Line]) -> Result<Observation, NoVerdict> {
    if lines.iter().any(|line| !line.run.starts_with("curl")) {
        on.servers()?;
    }
    let (product, key) = (on.product(5000).await?, own_key(KEY));
    let placeholders = on.placeholders().with_product(product.id);
    let typed = lines.iter().map(|line| {
        let line = placeholders.typed(line);
        let run = line.run.replace(KEY, &key);
        Line { run, ..line }
    });
    let printed = follow(on, &typed.collect::<Vec<_>>()).await;
    product.remove().await?;
    Ok(observation(lines, &printed?))
}

/// Runs one line of `redis-cli`, `curl` or `oversell lab fault`; returns what it prints.
pub(super) async fn carry_out(on: &Cluster, line: &str) -> Result<String, NoVerdict> {
    let unfit = || NoVerdict::failed(format!("nothing carries out {line}"));
    TypedCommand::of(line)
        .ok_or_else(unfit)?
        .carry_out(on)
        .await
}

/// Runs the lines in order; returns what each printed. A line that ends in ` &` runs beside the next ones until its terminal
/// waits.
async fn follow(on: &Cluster, lines: &[Line]) -> Result<Vec<String>, NoVerdict> {
    let mut printed = vec![String::new(); lines.len()];
    let mut beside = Vec::new();
    for (n, line) in lines.iter().enumerate() {
        if line.run == "wait" {
            let waits = |(n, _): &mut (usize, _)| lines[*n].terminal == line.terminal;
            for (n, going) in beside.extract_if(.., waits) {
                printed[n] = join_command(going).await?;
            }
            continue;
        }
        let unfit = || NoVerdict::failed(format!("nothing carries out {}", line.run));
        match (
            TypedCommand::of(&line.run).ok_or_else(unfit)?,
            line.run.ends_with(" &"),
        ) {
            (TypedCommand::Curl(curl), true) => {
                beside.push((n, AbortOnDropHandle::new(tokio::spawn(curl.send()))));
            }
            (TypedCommand::MySql(sql), true) => {
                let going = tokio::spawn(query(on.mysql().await?, sql));
                beside.push((n, AbortOnDropHandle::new(going)));
            }
            (_, true) => return Err(unfit()),
            (typed, false) => {
                let begun = Instant::now();
                printed[n] = typed.clone().carry_out(on).await?;
                while line.again && !line.is_printed(&printed[n]) && begun.elapsed() < LINE_TIMEOUT
                {
                    sleep(RETRY_PAUSE).await;
                    printed[n] = typed.clone().carry_out(on).await?;
                }
            }
        }
    }
    for (n, going) in beside {
        printed[n] = join_command(going).await?;
    }
    Ok(printed)
}

async fn join_command(
    going: AbortOnDropHandle<Result<String, NoVerdict>>,
) -> Result<String, NoVerdict> {
    going.await?
}

/// A line that can be run.
#[derive(Clone)]
enum TypedCommand {
    /// A command for the Redis at this address.
    Redis(String, Cmd),
    /// Statements for the database, on a connection of their own.
    MySql(String),
    /// A request.
    Curl(Curl),
    /// A fault for the lab to inject.
    Fault(Action, String, Duration),
}

/// A request that `curl` sends.
#[derive(Clone, Default)]
struct Curl {
    url: String,
    method: Method,
    headers: Vec<(String, String)>,
    body: Option<serde_json::Value>,
    prints_status: bool,
}

impl TypedCommand {
    /// Parses a line; `None` if it is none of these.
    fn of(line: &str) -> Option<Self> {
        let words = shlex::split(line.trim_end_matches(" &"))?;
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        match &words[..] {
            ["redis-cli", "-h", host, "-p", port, command @ ..] => {
                let is_command = command.first().is_some_and(|first| !first.starts_with('-'));
                let mut sent = Cmd::new();
                sent.arg(command);
                is_command.then(|| Self::Redis(format!("redis://{host}:{port}"), sent))
            }
            ["mysql", .., "-Ne", sql] | ["mysql", .., "-Ne", sql, "2>&1"] => {
                Some(Self::MySql((*sql).to_owned()))
            }
            ["oversell", "lab", "fault", action, member] => {
                let action = Action::from_str(action, false).ok()?;
                Some(Self::Fault(action, (*member).to_owned(), Duration::ZERO))
            }
            ["oversell", "lab", "fault", action, member, "--by", by] => {
                let action = Action::from_str(action, false).ok()?;
                let by = humantime::parse_duration(by).ok()?;
                Some(Self::Fault(action, (*member).to_owned(), by))
            }
            ["curl", options @ ..] => Curl::of(options).map(Self::Curl),
            _ => None,
        }
    }

    async fn carry_out(self, on: &Cluster) -> Result<String, NoVerdict> {
        match self {
            Self::Redis(url, command) => {
                let mut redis = redis_at(&url).await?;
                worded(command.query_async(&mut redis).await)
            }
            Self::MySql(sql) => query(on.mysql().await?, sql).await,
            Self::Curl(curl) => curl.send().await,
            Self::Fault(action, member, by) => {
                (on.fault_by(action, &member, by).await).map(|()| String::new())
            }
        }
    }
}

impl Curl {
    fn of(options: &[&str]) -> Option<Self> {
        let (mut curl, mut options) = (Self::default(), options.iter());
        while let Some(option) = options.next() {
            match *option {
                "-s" => {}
                "-o" => (options.next() == Some(&"/dev/null")).then_some(())?,
                "-w" => {
                    curl.prints_status = options.next() == Some(&"%{http_code}");
                    curl.prints_status.then_some(())?;
                }
                "-X" => curl.method = options.next()?.parse().ok()?,
                "-H" => {
                    let (name, value) = options.next()?.split_once(": ")?;
                    curl.headers.push((name.to_owned(), value.to_owned()));
                }
                "-d" => curl.body = Some(serde_json::from_str(options.next()?).ok()?),
                url => {
                    curl.url = (url.starts_with("http://") && !url.contains('['))
                        .then(|| url.to_owned())?;
                }
            }
        }
        Some(curl)
    }

    async fn send(self) -> Result<String, NoVerdict> {
        let mut request = client()
            .request(self.method, &self.url)
            .timeout(LINE_TIMEOUT);
        for (name, value) in self.headers {
            request = request.header(name, value);
        }
        if let Some(body) = self.body {
            request = request.json(&body);
        }
        let answer = request.answer().await?;
        Ok(match self.prints_status {
            true => answer.status.as_u16().to_string(),
            false => answer.text(),
        })
    }
}

/// An answer or an error of Redis, as `redis-cli` prints it.
fn worded(answer: Result<Value, RedisError>) -> Result<String, NoVerdict> {
    Ok(match answer {
        Ok(Value::Nil) => String::new(),
        Ok(Value::Array(values)) => {
            let each: Result<Vec<_>, _> =
                values.into_iter().map(|value| worded(Ok(value))).collect();
            each?.join("\n")
        }
        Ok(value) => redis::from_redis_value(value)?,
        Err(error) => match (error.code(), error.detail()) {
            (Some(code), detail) => format!("{code} {}", detail.unwrap_or_default()),
            (None, _) => return Err(NoVerdict::failed(error)),
        },
    })
}

/// The rows and the error that `mysql` prints for these statements.
async fn query(mut conn: MySqlConnection, sql: String) -> Result<String, NoVerdict> {
    let mut lines = Vec::new();
    let mut answers = sqlx::raw_sql(&sql).fetch_many(&mut conn);
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(Either::Left(_)) => {}
            Ok(Either::Right(row)) => {
                let column = |n| row.try_get_unchecked::<Option<String>, _>(n);
                let columns: Result<Vec<_>, _> = (0..row.len()).map(column).collect();
                let columns = columns?.into_iter();
                let columns: Vec<_> = columns
                    .map(|text| text.unwrap_or_else(|| "NULL".to_owned()))
                    .collect();
                lines.push(columns.join("\t"));
            }
            Err(sqlx::Error::Database(error)) => {
                let error = error.downcast::<MySqlDatabaseError>();
                let (number, state) = (error.number(), error.code().unwrap_or_default());
                lines.push(format!(
                    "ERROR {number} ({state}) at line 1: {}",
                    error.message()
                ));
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    drop(answers);
    conn.close().await?;
    Ok(lines.join("\n"))
}

/// Shown to a reader as `PUT`.
const PUT_JSON: &str = "curl -s -X PUT -H 'content-type: application/json' -d";

/// Parts of a line that a student must type and a reader need not see.
const HIDDEN_PARTS: [&str; 9] = [
    "redis-cli {redis} ",
    "mysql {mysql} -Ne ",
    "curl -s ",
    "-o /dev/null -w '%{http_code}' ",
    "-H 'accept: application/json' ",
    "{http}",
    "{:id}",
    "{?id}",
    "{&id}",
];

/// Claim: each line prints what it should.
fn observation(lines: &[Line], printed: &[String]) -> Observation {
    let lines = || lines.iter().zip(printed);
    let as_said = lines().all(|(line, printed)| line.is_printed(printed));
    let words = lines().filter(|(line, _)| line.run != "wait");
    let words = words.map(|(line, printed)| {
        let empty = |line: String, unsaid| line.replace(unsaid, "");
        let run = HIDDEN_PARTS
            .into_iter()
            .fold(line.run.replace(PUT_JSON, "PUT"), empty);
        // An expected JSON answer is shown as the line has it, in short.
        let is_long = printed.starts_with('{') && line.is_printed(printed);
        let printed = if is_long { &line.expect } else { printed };
        format!("{run} → {}", printed.trim().replace('\n', " "))
    });
    let words: Vec<_> = words.collect();
    Observation::holds(as_said, Words::same(words.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::{ClaimVerdict, Run, find, lessons, placeholders::Placeholders};

    #[test]
    fn every_line_that_is_carried_out_is_one_that_can_be() {
        let instances = ["http://127.0.0.1:8000"; 3];
        let redis = ["redis://127.0.0.1:16379"; 5];
        let placeholders = Placeholders::new("http://127.0.0.1:8080", &instances, "", &redis, "");
        let is_typed = |run: &Run| matches!(run, Run::Typed);
        let typed = lessons().filter(|lesson| lesson.run.parts().iter().any(is_typed));
        for line in typed.flat_map(|lesson| &lesson.by_hand) {
            let line = placeholders.with_product(7).typed(line);
            let beside = line.run.ends_with(" &");
            let can = match TypedCommand::of(&line.run) {
                Some(TypedCommand::Curl(_) | TypedCommand::MySql(_)) => true,
                Some(_) => !beside,
                None => line.run == "wait",
            };
            assert!(can && !(beside && line.again), "{}", line.run);
        }
        for other in [
            "mysql -h 127.0.0.1",
            "redis-cli -h 127.0.0.1 -p 16379 get 'stock",
            "redis-cli -h 127.0.0.1 -p 16379 -r 3 incr n",
            "curl -sZ http://127.0.0.1:8080/stock",
            "curl -s http://127.0.0.1:8080/stock?who=[1-7]",
        ] {
            assert!(TypedCommand::of(other).is_none(), "{other}");
        }
    }

    #[test]
    fn a_request_is_read_as_curl_reads_it() {
        let line = r#"curl -s -X PUT -H 'content-type: application/json' -d '{"count":1}' 'http://h/stock?stock_id=7' &"#;
        let Some(TypedCommand::Curl(curl)) = TypedCommand::of(line) else {
            panic!("{line}")
        };
        assert_eq!(curl.method, Method::PUT);
        assert_eq!(curl.url, "http://h/stock?stock_id=7");
        assert_eq!(curl.headers.len(), 1);
        assert_eq!(curl.body, Some(serde_json::json!({"count": 1})));
        assert!(!curl.prints_status);
    }

    #[test]
    fn a_line_that_sets_the_stock_is_named_by_its_method() {
        let lesson = find("1.3").expect("a lesson");
        let printed: Vec<_> = lesson
            .by_hand
            .iter()
            .map(|line| line.expect.clone())
            .collect();
        let words = observation(&lesson.by_hand, &printed).words;
        assert!(words.en.starts_with("PUT '{\"count\":"), "{}", words.en);
        assert!(!words.en.contains("-H"), "{}", words.en);
    }

    #[test]
    fn a_line_that_prints_something_else_turns_the_verdict() {
        let lesson = find("001.del").expect("a lesson");
        for (printed, verdict) in [
            (["OK", "1", "0"], ClaimVerdict::Reproduced),
            (["OK", "1", "1"], ClaimVerdict::NotReproduced),
        ] {
            let printed = printed.map(str::to_owned);
            assert_eq!(observation(&lesson.by_hand, &printed).verdict, verdict);
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
