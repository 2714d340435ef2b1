//! The three scripts of a student's lock: kept in Redis, so that all instances use the same ones, and run there.
//!
//! `KEYS[1]` is the lock, `ARGV[1]` the owner, `ARGV[2]` the lease in milliseconds. Each script answers 1, `OK` or a text
//! for yes, and 0, `false` or `nil` for no. Without `renew` the lease is not renewed.
//!
//! They run in a Redis of their own (`redis.mine_url`).
//!
//! Next: `sandbox.rs`, what a script may contain; `bounded.lua`, which runs it; `stock/strategies/mine.rs`, which sells.

use super::sandbox;
use crate::{ctx::Ctx, error::Error};
use garde::Validate;
use oversell_lock::redis::Connection;
use redis::{AsyncTypedCommands, RedisResult, Script, Value};
use serde::{Deserialize, Serialize};
use std::{sync::LazyLock, time::Duration};
use utoipa::ToSchema;

/// Compiles and runs every student's script, so that Redis keeps none of them.
static BOUNDED_RUNNER: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("bounded.lua")));

/// Limit of the entries in a lock's key: more than a class has owners.
const MAX_ENTRIES: u32 = 256;

/// A lock without a lease ends after this.
pub(super) const MAX_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// The hash of the main Redis in which a visitor's scripts are kept.
fn scripts_key(ctx: &Ctx, visitor: &str) -> String {
    ctx.redis_key(&format!("mine:{visitor}"))
}

/// How long a visitor's scripts are kept after they were stored.
const SCRIPTS_LIFETIME: Duration = Duration::from_secs(86_400);

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
    /// The scripts that this visitor keeps; `None` if there are none, or their day is over.
    pub async fn load(ctx: &Ctx, visitor: &str) -> Result<Option<Self>, Error> {
        let mut fields = ctx.redis.connection().hgetall(scripts_key(ctx, visitor)).await?;
        let mut script = |name: &str| fields.remove(name);
        Ok(script("acquire").zip(script("release")).map(|(acquire, release)| Self {
            acquire,
            release,
            renew: script("renew").unwrap_or_default(),
        }))
    }

    /// Stores the scripts of this visitor for all instances, for a day, if Redis can compile them. The caller has validated them.
    /// Cancelled, they are stored or not.
    ///
    /// [`Error::BadInput`] names the script, and says what Redis does not understand.
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
        let key = scripts_key(ctx, visitor);
        let mut store = redis::pipe();
        store.atomic().hset_multiple(&key, &fields);
        store.expire(&key, SCRIPTS_LIFETIME.as_secs().cast_signed());
        store.exec_async(&mut ctx.redis.connection()).await?;
        Ok(())
    }
}

fn check_not_empty(script: &str, _: &()) -> garde::Result {
    match script.trim().is_empty() {
        true => Err(garde::Error::new("must not be empty")),
        false => Ok(()),
    }
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
    let run = run.arg(MAX_ENTRIES).arg(MAX_LEASE.as_secs() * 1000);
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
