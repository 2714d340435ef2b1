//! A lock of one's own: three scripts of Redis that somebody has typed, kept in Redis, so that all instances sell with them.
//!
//! `KEYS[1]` is the lock, `ARGV[1]` the owner, `ARGV[2]` the lease in milliseconds. `acquire`, `release` and `renew` answer
//! with 1, `OK` or a text for yes, and 0, `false` or `nil` for no. Without `renew` the lease is not renewed.
//!
//! They run in the Redis that everybody uses, which carries out nothing else meanwhile. So [`Scripts::check`] lets only those in
//! that end by themselves and touch their one key: neither loops nor functions, `redis.call` of a few commands on `KEYS[1]`,
//! no other name than one's own `local` ones. What it cannot do: bound how much a lock's key holds.
//!
//! Next: `stock/strategies/mine.rs`, which sells with them, and `classroom/mine.rs`, which grades them.

use crate::{ctx::Ctx, error::Error};
use redis::{AsyncTypedCommands, RedisResult, Script, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// The hash of the main Redis in which the scripts are kept.
const KEPT: &str = "mine";

/// The longest script, in bytes.
pub const LONGEST: usize = 2_000;

/// The commands that a script may call, each on `KEYS[1]`.
const COMMANDS: &[&str] = &[
    "decr", "del", "exists", "expire", "get", "hdel", "hexists", "hget", "hincrby", "hlen", "hset", "hsetnx", "incr", "lindex",
    "llen", "lpop", "lpos", "lrem", "persist", "pexpire", "pttl", "rpush", "set", "setnx", "ttl",
];

/// Those that would touch every key that they are given.
const ONE_KEY: &[&str] = &["del", "exists"];

const KEYWORDS: &[&str] = &[
    "and", "else", "elseif", "end", "false", "if", "local", "nil", "not", "or", "return", "then", "true",
];

const NAMES: &[&str] = &["ARGV", "tonumber", "tostring"];

/// The three scripts of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Scripts {
    /// Takes the lock, or says that it is taken.
    #[schema(max_length = 2000, example = "return redis.call('setnx', KEYS[1], ARGV[1])")]
    pub acquire: String,
    /// Gives it back, or says that it was no longer there.
    #[schema(max_length = 2000, example = "return redis.call('del', KEYS[1])")]
    pub release: String,
    /// Begins its lease again, or says that it was no longer there; empty where no lease is renewed.
    #[serde(default)]
    #[schema(max_length = 2000, example = "")]
    pub renew: String,
}

impl Default for Scripts {
    /// Until somebody has typed others: the lock of §2.5.
    fn default() -> Self {
        Self {
            acquire: "return redis.call('set', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])".to_owned(),
            release: "if redis.call('get', KEYS[1]) == ARGV[1] then\n  return redis.call('del', KEYS[1])\nend\nreturn 0".to_owned(),
            renew: String::new(),
        }
    }
}

impl Scripts {
    /// Those that are kept.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] where Redis is down.
    pub async fn kept(ctx: &Ctx) -> Result<Self, Error> {
        let mut kept = ctx.redis.connection().hgetall(ctx.redis_key(KEPT)).await?;
        let mut script = |name: &str| kept.remove(name).unwrap_or_default();
        let [acquire, release, renew] = ["acquire", "release", "renew"].map(&mut script);
        Ok(if acquire.is_empty() {
            Self::default()
        } else {
            Self {
                acquire,
                release,
                renew,
            }
        })
    }

    /// Keeps them for all instances, if they are as they must be and Redis understands them.
    ///
    /// # Errors
    ///
    /// [`Error::BadInput`], which names the script and the rule that it breaks; [`Error::Unavailable`] where Redis is down.
    ///
    /// # Cancel safety
    ///
    /// They are kept or not.
    pub async fn keep(&self, ctx: &Ctx) -> Result<(), Error> {
        self.check()?;
        let mut redis = ctx.redis.connection();
        for (field, script) in self.each() {
            let mut load = redis::cmd("SCRIPT");
            match load.arg("LOAD").arg(script).exec_async(&mut redis).await {
                Err(error) if error.code() == Some("ERR") => {
                    let said = error.detail().unwrap_or_default();
                    return Err(refused(field, &format!("redis does not understand it: {said}")));
                }
                loaded => loaded?,
            }
        }
        let fields = self.each();
        redis.hset_multiple(ctx.redis_key(KEPT), &fields).await?;
        Ok(())
    }

    /// The scripts, each with the name of its field.
    fn each(&self) -> [(&'static str, &str); 3] {
        [
            ("acquire", &self.acquire),
            ("release", &self.release),
            ("renew", &self.renew),
        ]
    }

    /// Whether each ends by itself and touches nothing but its key.
    ///
    /// # Errors
    ///
    /// [`Error::BadInput`], which names the script and the rule.
    pub fn check(&self) -> Result<(), Error> {
        for (field, script) in self.each() {
            if script.trim().is_empty() && field != "renew" {
                return Err(refused(field, "must not be empty"));
            }
            check(script).map_err(|rule| refused(field, &rule))?;
        }
        Ok(())
    }
}

fn refused(field: &str, rule: &str) -> Error {
    Error::BadInput {
        field: field.to_owned(),
        rule: rule.to_owned(),
    }
}

/// Runs a script, and says whether it answers yes.
pub(crate) async fn answer(
    script: &Script,
    key: &str,
    owner: &str,
    lease_ms: u64,
    redis: &mut (impl redis::aio::ConnectionLike + Send),
) -> RedisResult<bool> {
    let mut invocation = script.key(key);
    let answer = invocation.arg(owner).arg(lease_ms).invoke_async(redis).await?;
    Ok(!matches!(
        answer,
        Value::Nil | Value::Int(0) | Value::Boolean(false)
    ))
}

#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    Sign(&'a str),
}

/// The rules of the head of this file.
fn check(script: &str) -> Result<(), String> {
    if script.len() > LONGEST {
        return Err(format!("must be at most {LONGEST} bytes"));
    }
    let tokens = tokens(script)?;
    let mut own = BTreeSet::new();
    let mut rest = &tokens[..];
    while let Some((token, behind)) = rest.split_first() {
        rest = match token {
            Token::Word("redis") => call(behind)?,
            Token::Word("local") => {
                let Some((Token::Word(name), _)) = behind.split_first() else {
                    return Err("behind local stands a name".to_owned());
                };
                if is_known(name) {
                    return Err(format!("{name} must not be a name of your own"));
                }
                own.insert(*name);
                behind
            }
            Token::Word(word) if is_known(word) && *word != "KEYS" || own.contains(word) => behind,
            Token::Word("KEYS") => {
                return Err("KEYS[1] may stand only behind the command of a redis.call".to_owned());
            }
            Token::Word(word) => {
                return Err(format!(
                    "{word} is none of what a script may use: redis.call, ARGV, tonumber, tostring, if, and, or, not, return, and names \
                     that were made by local; no loops and no functions"
                ));
            }
            Token::Sign(sign @ (":" | "..")) => {
                return Err(format!("must not use {sign}"));
            }
            Token::Text(_) | Token::Sign(_) => behind,
        };
    }
    Ok(())
}

fn is_known(word: &str) -> bool {
    KEYWORDS.contains(&word) || NAMES.contains(&word) || matches!(word, "KEYS" | "redis")
}

/// Behind `redis`: `.call('get', KEYS[1]`, and what follows that.
fn call<'a, 'b>(tokens: &'b [Token<'a>]) -> Result<&'b [Token<'a>], String> {
    use Token::{Sign, Text, Word};
    let rule = || {
        format!(
            "redis stands only as redis.call('command', KEYS[1], …), where the command is one of {}",
            COMMANDS.join(", ")
        )
    };
    let [
        Sign("."),
        Word("call" | "pcall"),
        Sign("("),
        Text(command),
        Sign(","),
        Word("KEYS"),
        Sign("["),
        Word("1"),
        Sign("]"),
        rest @ ..,
    ] = tokens
    else {
        return Err(rule());
    };
    let command = command.to_ascii_lowercase();
    if !COMMANDS.contains(&&*command) {
        return Err(rule());
    }
    if ONE_KEY.contains(&&*command) && rest.first() != Some(&Sign(")")) {
        return Err(format!("{command} takes no other key than KEYS[1]"));
    }
    Ok(rest)
}

/// Words (numbers among them), texts without their quotes, and signs; comments are left out.
fn tokens(script: &str) -> Result<Vec<Token<'_>>, String> {
    let mut tokens = Vec::new();
    let mut rest = script.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = if rest.starts_with("--") {
            if rest[2..].starts_with('[') {
                return Err("a comment ends with its line".to_owned());
            }
            rest.find('\n').unwrap_or(rest.len())
        } else if is_word(first) {
            let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Token::Word(&rest[..word]));
            word
        } else if matches!(first, '\'' | '"') {
            let text = rest[1..].find(first).ok_or("a text does not end")?;
            let text = &rest[1..=text];
            if text.contains(['\\', '\n']) {
                return Err("a text must not have \\ in it, nor another line".to_owned());
            }
            tokens.push(Token::Text(text));
            text.len() + 2
        } else if first.is_ascii_punctuation() {
            if rest.starts_with("[[") || rest.starts_with("[=") {
                return Err("a text stands between quotes".to_owned());
            }
            let sign = if rest.starts_with("..") { 2 } else { 1 };
            tokens.push(Token::Sign(&rest[..sign]));
            sign
        } else {
            return Err(format!("{first} may stand only in a text or a comment"));
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_ends_and_touches_its_own_key_is_let_in() {
        for script in [
            "",
            "-- nothing: 什么都不做\nreturn 1",
            "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])",
            "local mine = redis.call('hexists', KEYS[1], ARGV[1]) == 1\nif not mine then return 0 end return 1",
            "local n = tonumber(redis.pcall(\"get\", KEYS[1]) or '0') if n >= 1 and n ~= 7 then return n - 1 end",
            &Scripts::default().release,
        ] {
            assert_eq!(check(script), Ok(()), "{script}");
        }
        Scripts::default().check().expect("the default");
    }

    #[test]
    fn a_script_that_might_not_end_or_touches_more_is_refused() {
        for script in [
            "while true do end",
            "for i = 1, 9 do end",
            "repeat until false",
            "goto there",
            "local function f() return f() end return f()",
            "return redis.call('del', KEYS[1], 'stock')",
            "return redis.call('set', 'stock', 1)",
            "return redis.call('flushall')",
            "return redis.call('FLUSHALL', KEYS[1])",
            "return redis.call('get', KEYS[2])",
            "local call = redis.call return call('get', 'stock')",
            "local KEYS = {'stock'} return redis.call('del', KEYS[1])",
            "KEYS[1] = 'stock' return redis.call('del', KEYS[1])",
            "local a = KEYS return 1",
            "local redis = 1",
            "return _G.redis",
            "return ('x'):rep(1000000000)",
            "local x = 'x' x = x .. x return x",
            "return loadstring('x')()",
            "return [[x]]",
            "--[[ x ]] return 1",
            "return 'a\\'b'",
            "return 'open",
            "return “1”",
            &"x".repeat(LONGEST + 1),
        ] {
            assert!(check(script).is_err(), "{script}");
        }
        for (field, scripts) in [
            ("acquire", Scripts { acquire: " ".into(), ..Scripts::default() }),
            ("release", Scripts { release: "break".into(), ..Scripts::default() }),
            ("renew", Scripts { renew: "while".into(), ..Scripts::default() }),
        ] {
            let refused = scripts.check();
            assert!(matches!(&refused, Err(Error::BadInput { field: named, .. }) if named == field), "{refused:?}");
        }
    }
}
