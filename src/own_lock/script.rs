//! The three scripts of a student's lock: kept in Redis (`visitors.rs`), so that all instances use the same ones, and run there.
//!
//! `KEYS[1]` is the lock, `ARGV[1]` the owner, `ARGV[2]` the lease in milliseconds. Each script answers 1, `OK` or a text
//! for yes, and 0, `false` or `nil` for no. Without `renew` the lease is not renewed.
//!
//! They run in a Redis of their own (`redis.mine_url`).
//!
//! Next: `sandbox.rs`, what a script may contain; `bounded.lua`, which runs it; `stock/strategies/mine.rs`, which sells.

use super::{sandbox, visitors};
use crate::{config::require, ctx::Ctx, error::Error};
use garde::Validate;
use oversell_lock::redis::Connection;
use redis::{RedisResult, Script, Value};
use serde::{Deserialize, Serialize};
use std::{sync::LazyLock, time::Duration};
use utoipa::ToSchema;

/// Compiles and runs every student's script, so that Redis keeps none of them.
static BOUNDED_RUNNER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("bounded.lua")));

/// Limit of the entries in a lock's key: more than a class has owners.
const MAX_ENTRIES: u32 = 256;

/// A lock without a lease ends after this.
pub(super) const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// The most bytes of a word that a script writes: twice an owner's.
const MAX_WORD_BYTES: u32 = 64;

/// The three scripts of a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Validate, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Scripts {
    /// Takes the lock, or answers no if it is taken.
    #[garde(custom(check_not_empty), custom(check_allowed))]
    #[schema(max_length = 2000, example = "return redis.call('setnx', KEYS[1], '111')")]
    pub acquire: String,
    /// Releases the lock, or answers no if it was gone.
    #[garde(custom(check_not_empty), custom(check_allowed))]
    #[schema(max_length = 2000, example = "return redis.call('del', KEYS[1])")]
    pub release: String,
    /// Renews the lease, or answers no if the lock was gone; empty if the lease is not renewed.
    #[serde(default)]
    #[garde(custom(check_allowed))]
    #[schema(max_length = 2000, example = "")]
    pub renew: String,
}

impl Scripts {
    /// The scripts that this visitor keeps; `None` if there are none.
    pub async fn load(ctx: &Ctx, visitor: &str) -> Result<Option<Self>, Error> {
        let kept = visitors::scripts_of(ctx, visitor).await?;
        Ok(kept.and_then(|kept| serde_json::from_str(&kept).ok()))
    }

    /// Stores the scripts of this visitor for all instances, for a day, if Redis can compile them. The caller has validated them.
    /// Cancelled, they are stored or not.
    ///
    /// [`Error::BadInput`] names the script, and says what Redis does not understand; [`Error::TooMany`] if too many visitors have a
    /// lock of their own.
    pub async fn store(&self, ctx: &Ctx, visitor: &str) -> Result<(), Error> {
        let mut mine = ctx.mine.connection();
        let fields = [("acquire", &self.acquire), ("release", &self.release), ("renew", &self.renew)];
        for (field, script) in fields {
            match compile(script, &mut mine).await {
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
        let scripts = serde_json::to_string(self).map_err(|error| Error::Internal(error.to_string()))?;
        visitors::note(ctx, visitor, Some(scripts)).await
    }
}

fn check_not_empty(script: &str, _: &()) -> garde::Result {
    require(!script.trim().is_empty(), "must not be empty")
}

fn check_allowed(script: &str, _: &()) -> garde::Result {
    sandbox::check(script).map_err(garde::Error::new)
}

/// Runs a script, through the one script that compiles and bounds it. Returns whether it answers yes.
pub(crate) async fn run_script(
    script: &str,
    key: &str,
    owner: &str,
    lease_ms: u64,
    redis: &mut (impl redis::aio::ConnectionLike + Send),
) -> RedisResult<bool> {
    let mut run = BOUNDED_RUNNER.key(key);
    let run = run.arg(owner).arg(lease_ms).arg(script);
    let run = run.arg(MAX_ENTRIES).arg(MAX_LEASE.as_secs() * 1000).arg(MAX_WORD_BYTES);
    let answer = run.invoke_async(redis).await?;
    Ok(!matches!(answer, Value::Nil | Value::Int(0) | Value::Boolean(false)))
}

/// Compiles a script without running it. The error says what Redis does not understand.
async fn compile(script: &str, redis: &mut Connection) -> RedisResult<()> {
    let mut compile = BOUNDED_RUNNER.key("");
    let compile = compile.arg("").arg(0).arg(script).arg(0).arg(0);
    compile.arg("compile").invoke_async(redis).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_script_at_fault() {
        let whole = || Scripts { acquire: "return 1".into(), release: "return 1".into(), renew: String::new() };
        assert!(whole().validate().is_ok());
        for (field, scripts) in [
            ("acquire", Scripts { acquire: " ".into(), ..whole() }),
            ("release", Scripts { release: "break".into(), ..whole() }),
            ("renew", Scripts { renew: "while".into(), ..whole() }),
        ] {
            let refused = scripts.validate().expect_err(field).to_string();
            assert!(refused.starts_with(field), "{refused}");
        }
    }
}
