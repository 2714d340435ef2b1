//! What a script of a student may contain.
//!
//! It runs in a Redis that all students use, which does nothing else meanwhile. So a script is allowed only if it ends by
//! itself and touches no other key: no loops, no functions, no calls but `redis.call` and `redis.pcall` of a few commands on
//! `KEYS[1]`, `tonumber` and `tostring`, no names but these, `ARGV` and its own local ones, and nothing beyond ASCII outside of texts and comments.
//!
//! **What this does not bound**: how much the lock's key holds; `bounded.lua` does.
//!
//! Next: `script.rs`, then `grade.rs`.

use std::collections::BTreeSet;

/// Limit of a script, in bytes.
const MAX_SCRIPT_BYTES: usize = 2_000;

/// The commands that a script may call, each on `KEYS[1]`.
const COMMANDS: &[&str] = &[
    "decr", "del", "exists", "expire", "get", "hdel", "hexists", "hget", "hincrby", "hlen", "hset", "hsetnx", "incr", "lindex",
    "llen", "lpop", "lpos", "lrem", "persist", "pexpire", "pttl", "rpush", "set", "setnx", "ttl",
];

/// Commands that accept any number of keys; nothing may follow `KEYS[1]`.
const SINGLE_KEY_COMMANDS: &[&str] = &["del", "exists"];

/// The Lua words that a script may use anywhere; `local`, `redis`, `KEYS` and `ARGV` have rules of their own.
const ALLOWED_WORDS: &[&str] =
    &["and", "else", "elseif", "end", "false", "if", "nil", "not", "or", "return", "then", "true", "tonumber", "tostring"];

/// Words that a local name must not be.
const RESERVED_WORDS: &[&str] =
    &["ARGV", "KEYS", "break", "do", "for", "function", "goto", "in", "local", "redis", "repeat", "until", "while"];

/// The signs that a script may have anywhere.
const ALLOWED_SIGNS: &str = "(),;=~<>+-*/%";

/// A token of Lua: a word or number, a text without its quotes, or a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Text(&'a str),
    Sign(char),
}

use Token::{Sign, Text, Word};

/// Checks a script by the rules at the head of this file; the error says which rule it breaks.
pub(super) fn check(script: &str) -> Result<(), String> {
    if script.len() > MAX_SCRIPT_BYTES {
        return Err(format!("must be at most {MAX_SCRIPT_BYTES} bytes"));
    }
    let tokens = tokenize(script)?;
    let mut own = BTreeSet::new();
    let mut rest = &tokens[..];
    // Whether a bracket or text after this token would call it. Outside of its block a local name may be a function's.
    let mut is_value = false;
    while let Some((token, behind)) = rest.split_first() {
        if is_value && matches!(token, Sign('(') | Text(_)) {
            return Err("only redis.call, tonumber and tostring may be called".to_owned());
        }
        is_value = matches!(token, Sign(')') | Text(_));
        rest = match *token {
            Word("redis") => check_redis_call(behind)?,
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
                    if !ALLOWED_WORDS.contains(name) && !RESERVED_WORDS.contains(name) && !is_number(name) =>
                {
                    own.insert(*name);
                    rest
                }
                _ => return Err("local is followed by a name of your own".to_owned()),
            },
            Word(word) if ALLOWED_WORDS.contains(&word) => behind,
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
            Sign(sign) if !ALLOWED_SIGNS.contains(sign) => {
                return Err(format!("{sign} is not allowed"));
            }
            Text(_) | Sign(_) => behind,
        };
    }
    Ok(())
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks what follows `redis`, up to `KEYS[1]`. Returns the rest.
fn check_redis_call<'a, 'b>(tokens: &'b [Token<'a>]) -> Result<&'b [Token<'a>], String> {
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
        Some(Sign(',')) if !SINGLE_KEY_COMMANDS.contains(&&*command) => Ok(rest),
        _ => Err(format!("{command} takes no other key than KEYS[1]")),
    }
}

/// Splits a script into words (numbers among them), texts without their quotes, and signs. Comments are left out.
fn tokenize(script: &str) -> Result<Vec<Token<'_>>, String> {
    // Lua ends a line at both.
    const LINE_ENDS: [char; 2] = ['\n', '\r'];
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // Lua does not know the spaces beyond ASCII, as U+3000.
    let is_space = |c: char| c.is_ascii_whitespace();
    let mut tokens = Vec::new();
    let mut rest = script.trim_start_matches(is_space);
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
        } else if first.is_ascii() {
            tokens.push(Sign(first));
            1
        } else {
            let line = script[..script.len() - rest.len()].matches('\n').count() + 1;
            return Err(format!(
                "U+{:04X} ({}) in line {line} is not ASCII, which only texts and comments may have",
                u32::from(first),
                first.escape_debug()
            ));
        };
        rest = rest[length..].trim_start_matches(is_space);
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_beyond_ascii_is_named() {
        for (space, name) in [('\u{3000}', "U+3000"), ('\u{A0}', "U+00A0")] {
            let refused = check(&format!("-- 注释\nreturn{space}1")).unwrap_err();
            assert!(refused.starts_with(name), "{refused}");
            assert!(refused.contains("line 2"), "{refused}");
        }
        assert_eq!(check("return '全角　空格' -- 全角　空格"), Ok(()));
    }

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
            &format!("return 1 --{}", "x".repeat(MAX_SCRIPT_BYTES)),
        ] {
            assert!(check(script).is_err(), "{script}");
        }
    }
}
