//! A lock of one's own: three scripts of Redis that somebody has typed, kept in Redis, so that all instances sell with them.
//!
//! `KEYS[1]` is the lock, `ARGV[1]` the owner, `ARGV[2]` the lease in milliseconds. Each script answers with 1, `OK` or a text
//! for yes, and with 0, `false` or `nil` for no. Without `renew` the lease is not renewed.
//!
//! They run in the Redis that everybody uses, which does nothing else meanwhile. So [`Scripts`] are valid only if each ends by
//! itself and touches no other key: no loops, no functions, no calls but `redis.call` of a few commands on `KEYS[1]`, no name
//! but its own local ones. What this does not bound: how much the lock's key holds.
//!
//! Next: `stock/strategies/mine.rs`, which sells with them, and `replay/grade.rs`, which grades them.

use crate::{ctx::Ctx, error::Error};
use garde::Validate;
use redis::{AsyncTypedCommands, RedisResult, Script, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;

/// The hash of the main Redis in which the scripts are kept.
const KEPT: &str = "mine";

/// The longest script, in bytes.
const LONGEST: usize = 2_000;

/// The commands that a script may call, each on `KEYS[1]`.
const COMMANDS: &[&str] = &[
    "decr", "del", "exists", "expire", "get", "hdel", "hexists", "hget", "hincrby", "hlen", "hset",
    "hsetnx", "incr", "lindex", "llen", "lpop", "lpos", "lrem", "persist", "pexpire", "pttl",
    "rpush", "set", "setnx", "ttl",
];

/// Those that would touch every key that they are given.
const ONE_KEY: &[&str] = &["del", "exists"];

/// What a script may use besides.
const WORDS: &[&str] = &[
    "and", "else", "elseif", "end", "false", "if", "nil", "not", "or", "return", "then", "true",
    "tonumber", "tostring",
];

/// What no name of a script's own may be, besides.
const RESERVED: &[&str] = &[
    "ARGV", "KEYS", "break", "do", "for", "function", "goto", "in", "local", "redis", "repeat",
    "until", "while",
];

const SIGNS: &str = "(),;=~<>+-*/%";

/// The three scripts of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Scripts {
    /// Takes the lock, or says that it is taken.
    #[garde(custom(is_there), custom(is_allowed))]
    #[schema(
        max_length = 2000,
        example = "return redis.call('setnx', KEYS[1], '111')"
    )]
    pub acquire: String,
    /// Gives it back, or says that it was no longer there.
    #[garde(custom(is_there), custom(is_allowed))]
    #[schema(max_length = 2000, example = "return redis.call('del', KEYS[1])")]
    pub release: String,
    /// Begins its lease again, or says that it was no longer there; empty where no lease is renewed.
    #[serde(default)]
    #[garde(custom(is_allowed))]
    #[schema(max_length = 2000, example = "")]
    pub renew: String,
}

impl Scripts {
    /// Those that are kept; `None` where nobody has typed any.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] where Redis is down.
    pub async fn kept(ctx: &Ctx) -> Result<Option<Self>, Error> {
        let mut kept = ctx.redis.connection().hgetall(ctx.redis_key(KEPT)).await?;
        let mut script = |name: &str| kept.remove(name);
        Ok(script("acquire")
            .zip(script("release"))
            .map(|(acquire, release)| Self {
                acquire,
                release,
                renew: script("renew").unwrap_or_default(),
            }))
    }

    /// Keeps them for all instances, if Redis understands them. They must be valid.
    ///
    /// # Errors
    ///
    /// [`Error::BadInput`], which names the script and says what Redis does not understand; [`Error::Unavailable`] where Redis
    /// is down.
    ///
    /// # Cancel safety
    ///
    /// They are kept or not.
    pub async fn keep(&self, ctx: &Ctx) -> Result<(), Error> {
        let mut redis = ctx.redis.connection();
        let fields = [
            ("acquire", &self.acquire),
            ("release", &self.release),
            ("renew", &self.renew),
        ];
        for (field, script) in fields {
            let mut load = redis::cmd("SCRIPT");
            match load.arg("LOAD").arg(script).exec_async(&mut redis).await {
                Err(error) if error.code() == Some("ERR") => {
                    let said = error.detail().unwrap_or_default();
                    return Err(Error::BadInput {
                        field: field.to_owned(),
                        rule: format!("redis does not understand it: {said}"),
                    });
                }
                loaded => loaded?,
            }
        }
        redis.hset_multiple(ctx.redis_key(KEPT), &fields).await?;
        Ok(())
    }
}

fn is_there(script: &str, _: &()) -> garde::Result {
    match script.trim().is_empty() {
        true => Err(garde::Error::new("must not be empty")),
        false => Ok(()),
    }
}

fn is_allowed(script: &str, _: &()) -> garde::Result {
    check(script).map_err(garde::Error::new)
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
    let answer = invocation
        .arg(owner)
        .arg(lease_ms)
        .invoke_async(redis)
        .await?;
    Ok(!matches!(
        answer,
        Value::Nil | Value::Int(0) | Value::Boolean(false)
    ))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    Sign(char),
}

use Token::{Sign, Text, Word};

/// The rules of the head of this file.
fn check(script: &str) -> Result<(), String> {
    if script.len() > LONGEST {
        return Err(format!("must be at most {LONGEST} bytes"));
    }
    let tokens = tokens(script)?;
    let mut own = BTreeSet::new();
    let mut rest = &tokens[..];
    // What a bracket or a text behind it would call. A name may be a function's where its `local` is out of scope.
    let mut is_value = false;
    while let Some((token, behind)) = rest.split_first() {
        if is_value && matches!(token, Sign('(') | Text(_)) {
            return Err("only redis.call, tonumber and tostring may be called".to_owned());
        }
        is_value = matches!(token, Sign(')') | Text(_));
        rest = match *token {
            Word("redis") => call(behind)?,
            Word("ARGV") => match behind {
                [Sign('['), Word("1" | "2"), Sign(']'), rest @ ..] => {
                    is_value = true;
                    rest
                }
                _ => return Err("ARGV stands only as ARGV[1] or ARGV[2]".to_owned()),
            },
            Word("KEYS") => {
                return Err("KEYS[1] stands only behind the command of a redis.call".to_owned());
            }
            Word("local") => match behind {
                [Word(name), rest @ ..]
                    if !WORDS.contains(name) && !RESERVED.contains(name) && !is_number(name) =>
                {
                    own.insert(*name);
                    rest
                }
                _ => return Err("local is followed by a name of your own".to_owned()),
            },
            Word(word) if WORDS.contains(&word) => behind,
            Word(word) if own.contains(word) || is_number(word) => {
                is_value = true;
                behind
            }
            Word(word) => {
                return Err(format!(
                    "{word} is not allowed: a script has redis.call, ARGV, tonumber, tostring, if, and, or, not, return, whole numbers \
                     and its local names; no loops and no functions"
                ));
            }
            Sign(sign) if !SIGNS.contains(sign) => return Err(format!("{sign} is not allowed")),
            Text(_) | Sign(_) => behind,
        };
    }
    Ok(())
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Behind `redis`: `.call('get', KEYS[1]`, and what follows that.
fn call<'a, 'b>(tokens: &'b [Token<'a>]) -> Result<&'b [Token<'a>], String> {
    let [
        Sign('.'),
        Word("call" | "pcall"),
        Sign('('),
        Text(command),
        Sign(','),
        Word("KEYS"),
        Sign('['),
        Word("1"),
        Sign(']'),
        rest @ ..,
    ] = tokens
    else {
        return Err("redis stands only as redis.call('command', KEYS[1], …)".to_owned());
    };
    let command = command.to_ascii_lowercase();
    if !COMMANDS.contains(&&*command) {
        let all = COMMANDS.join(", ");
        return Err(format!("{command} is not allowed; the commands are {all}"));
    }
    match rest.first() {
        Some(Sign(')')) => Ok(rest),
        Some(Sign(',')) if !ONE_KEY.contains(&&*command) => Ok(rest),
        _ => Err(format!("{command} takes no other key than KEYS[1]")),
    }
}

/// Words (numbers among them), texts without their quotes, and signs; comments are left out.
fn tokens(script: &str) -> Result<Vec<Token<'_>>, String> {
    // Lua ends a line at both.
    const LINE_ENDS: [char; 2] = ['\n', '\r'];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = script.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if let Some(comment) = rest.strip_prefix("--") {
            if comment.starts_with('[') {
                return Err("a comment ends with its line".to_owned());
            }
            rest.find(LINE_ENDS).unwrap_or(rest.len())
        } else if is_word(first) {
            let word = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            tokens.push(Word(&rest[..word]));
            word
        } else if matches!(first, '\'' | '"') {
            let text = rest[1..].find(first).ok_or("a text has no end")?;
            let text = &rest[1..=text];
            if text.contains('\\') || text.contains(LINE_ENDS) {
                return Err("a text has no \\ and no second line".to_owned());
            }
            tokens.push(Text(text));
            text.len() + 2
        } else {
            tokens.push(Sign(first));
            first.len_utf8()
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
            "local n = tonumber(redis.pcall(\"get\", KEYS[1]) or '0') if (n >= 1 and n ~= 7) then return n - 1 end",
        ] {
            assert_eq!(check(script), Ok(()), "{script}");
        }
    }

    #[test]
    fn a_script_that_might_not_end_or_touches_more_is_refused() {
        for script in [
            "while true do end",
            "for i = 1, 9 do end",
            "repeat until false",
            "goto there",
            "local function f() return f() end return f()",
            "local function tonumber() return tonumber() end return tonumber()",
            "return redis.call('del', KEYS[1], 'stock')",
            "return redis.call('get', KEYS[1] and 'stock')",
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
            "return ('x')['rep']('x', 1000000000)",
            "local rep = 1 return ('x').rep('x', 1000000000)",
            "local x = 'x' x = x .. x return x",
            "return loadstring('x')()",
            // The name is the function's again where its block has ended.
            "if nil then local loadstring = 1 end return loadstring('x')",
            "if nil then local loadstring = 1 end return loadstring'x'",
            "if nil then local loadstring = 1 end return (loadstring)('x')",
            "return tostring(1)(2)",
            "return [[x]]",
            "return ARGV[[1]]",
            "return #ARGV",
            "--[[ x ]] return 1",
            "-- x\rwhile true do end",
            "#!lua flags=allow-oom",
            "return 'a\\'b'",
            "return 'open",
            "return 0x10",
            "return “1”",
            &"x".repeat(LONGEST + 1),
        ] {
            assert!(check(script).is_err(), "{script}");
        }
    }

    #[test]
    fn what_is_refused_is_named() {
        let whole = || Scripts {
            acquire: "return 1".into(),
            release: "return 1".into(),
            renew: String::new(),
        };
        assert!(whole().validate().is_ok());
        for (field, scripts) in [
            (
                "acquire",
                Scripts {
                    acquire: " ".into(),
                    ..whole()
                },
            ),
            (
                "release",
                Scripts {
                    release: "break".into(),
                    ..whole()
                },
            ),
            (
                "renew",
                Scripts {
                    renew: "while".into(),
                    ..whole()
                },
            ),
        ] {
            let refused = scripts.validate().expect_err(field).to_string();
            assert!(refused.starts_with(field), "{refused}");
        }
    }
}
