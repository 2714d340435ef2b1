//! The scripts by name, and the names of Redisson's keys and channels.
//!
//! Each `.lua` file documents its keys, arguments and return codes. Redis runs a script as one command.
//!
//! Next to read: `connection.rs`, over which a call is sent.

use super::{client::RedisClient, failure::CommandFailure};
use crate::{Holder, Lease, LockError, Owner, Process};
use redis::{
    Cmd, ErrorKind, FromRedisValue, RedisResult, RedisWrite, ServerErrorKind, aio::ConnectionLike,
};
use std::{collections::HashMap, fmt::Display, sync::LazyLock, time::Duration};

/// A script, which EVALSHA names by the digest of its text.
#[derive(Debug)]
pub(super) struct Script {
    text: &'static str,
    digest: String,
}

/// A call of a script: EVALSHA with its keys and arguments.
#[derive(Debug)]
pub(super) struct ScriptCall {
    text: &'static str,
    cmd: Cmd,
}

impl Script {
    /// Makes a script of this text, and computes its SHA1.
    fn new(text: &'static str) -> Self {
        let digest = redis::Script::new(text).get_hash().to_owned();
        Self { text, digest }
    }

    /// Begins a call with these keys; the arguments follow.
    pub(super) fn call<'a>(&self, keys: impl IntoIterator<Item = &'a str> + Clone) -> ScriptCall {
        // As much room as the keys and arguments of most calls need.
        let mut cmd = Cmd::with_capacity(12, 512);
        let number = keys.clone().into_iter().count();
        cmd.arg("EVALSHA").arg(&self.digest).arg(number);
        for key in keys {
            cmd.arg(key);
        }
        let text = self.text;
        ScriptCall { text, cmd }
    }
}

impl ScriptCall {
    pub(super) fn arg(mut self, arg: impl Display) -> Self {
        self.cmd.write_arg_fmt(arg);
        self
    }

    pub(super) fn args(self, args: impl IntoIterator<Item = impl Display>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Sends the call; if the server does not know the script, loads its text and sends the call once more.
    pub(super) async fn send<T: FromRedisValue>(
        &self,
        connection: &mut impl ConnectionLike,
    ) -> RedisResult<T> {
        match self.cmd.query_async(connection).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                let mut load = redis::cmd("SCRIPT");
                load.arg("LOAD").arg(self.text);
                load.exec_async(connection).await?;
                self.cmd.query_async(connection).await
            }
            answer => answer,
        }
    }
}

impl RedisClient {
    /// Chooses the version of a script for this client's servers.
    pub(super) fn script<'a>(&self, script: &'a NotifyingScript) -> &'a Script {
        script.of(self.state().servers.is_cluster())
    }

    /// Runs a script, with the client's time limit for the answer.
    pub(super) async fn run_script<T: FromRedisValue>(
        &self,
        call: &ScriptCall,
    ) -> Result<T, CommandFailure> {
        self.run_script_within(call, None).await
    }

    /// Runs a script. A connection without an answer within `limit` (`None`: the client's time limit) counts as broken, and
    /// the next command makes another one.
    pub(super) async fn run_script_within<T: FromRedisValue>(
        &self,
        call: &ScriptCall,
        limit: Option<Duration>,
    ) -> Result<T, CommandFailure> {
        let mut connection = self.connection().with_answer_limit(limit);
        let answer = call.send(&mut connection).await;
        answer.map_err(|error| CommandFailure::of(error, connection.has_sent()))
    }

    /// Runs `holders.lua`: the holders, of a read-write lock readers and writer alike, each with the rest of its lease.
    pub(super) async fn holders(&self, key: &str) -> Result<Vec<Holder>, LockError> {
        let script = HOLDERS.call([key]).arg(in_braces(key));
        let shown: Vec<(String, i64)> = self.run_script(&script).await?;
        let holder = |(id, millis)| Holder {
            id,
            remaining: u64::try_from(millis).ok().map(Duration::from_millis),
        };
        Ok(shown.into_iter().map(holder).collect())
    }
}

/// A call of `renew.lua`.
pub(super) fn renewal_call(key: &str, lease: Lease, id: Owner) -> ScriptCall {
    RENEW.call([key]).arg(lease.millis()).arg(id)
}

/// A script that notifies waiters of a change, for a single server and for a cluster.
#[derive(Debug)]
pub(super) struct NotifyingScript {
    single: LazyLock<Script>,
    /// Also tells them by SPUBLISH.
    in_cluster: LazyLock<Script>,
}

impl NotifyingScript {
    /// Returns the version for a cluster or for a single server.
    pub(super) fn of(&self, is_cluster: bool) -> &Script {
        if is_cluster {
            &self.in_cluster
        } else {
            &self.single
        }
    }
}

/// Every script by its SHA1, for those who read a digest in MONITOR or SLOWLOG; commands do not need it.
static TEXTS_BY_DIGEST: LazyLock<HashMap<String, &str>> = LazyLock::new(|| {
    let texts = PLAIN_TEXTS.iter().chain(NOTIFYING_TEXTS);
    texts
        .map(|text| (Script::new(text).digest, *text))
        .collect()
});

/// Returns the text of the library's script with this SHA1 digest, which EVALSHA names in MONITOR and SLOWLOG; `None` if it is
/// no script of the library.
///
/// ```
/// assert_eq!(oversell_lock::redis::script_text("0"), None);
/// ```
#[must_use]
pub fn script_text(digest: &str) -> Option<&'static str> {
    TEXTS_BY_DIGEST.get(digest).copied()
}

/// Makes each script of its files, after the one that defines `tell`.
macro_rules! notifying_scripts {
    ($($name:ident = $($file:literal),+;)+) => {
        $(pub(super) static $name: NotifyingScript = NotifyingScript {
            single: LazyLock::new(|| Script::new(concat!(include_str!("lua/tell.lua"), $(include_str!(concat!("lua/", $file))),+))),
            in_cluster: LazyLock::new(|| Script::new(concat!(include_str!("lua/tell_in_cluster.lua"), $(include_str!(concat!("lua/", $file))),+))),
        };)+

        /// The texts of the scripts that publish to waiters, each for a single server and for a cluster.
        const NOTIFYING_TEXTS: &[&str] = &[
            $(concat!(include_str!("lua/tell.lua"), $(include_str!(concat!("lua/", $file))),+),
            concat!(include_str!("lua/tell_in_cluster.lua"), $(include_str!(concat!("lua/", $file))),+),)+
        ];
    };
}

/// Makes each script of its files.
macro_rules! scripts {
    ($($name:ident = $($file:literal),+;)+) => {
        $(pub(super) static $name: LazyLock<Script> =
            LazyLock::new(|| Script::new(concat!($(include_str!(concat!("lua/", $file))),+)));)+

        /// The texts of the scripts that publish nothing, for [`script_text`]; the others are [`NOTIFYING_TEXTS`].
        const PLAIN_TEXTS: &[&str] = &[$(concat!($(include_str!(concat!("lua/", $file))),+),)+];
    };
}

scripts! {
    ACQUIRE = "acquire.lua";
    RENEW = "renew.lua";
    HOLDERS = "holders.lua";
    HAND_OFF = "hand_off.lua";
    LIFT_TOKEN = "lift_token.lua";
    RW_READ = "rw_read.lua";
    RW_WRITE = "rw_write.lua";
    RW_RENEW = "rw_renew.lua";
    PERMITS_RENEW = "permits_renew.lua";
    PERMITS_FREE = "permits_free.lua";
    RATE_SET = "rate_set.lua";
    RATE_TAKE = "rate_take.lua";
}

notifying_scripts! {
    RELEASE = "release.lua";
    FORCE_UNLOCK = "force_unlock.lua";
    FAIR_FORCE_UNLOCK = "fair_queue.lua", "fair_force_unlock.lua";
    FAIR_ACQUIRE = "fair_queue.lua", "fair_acquire.lua";
    FAIR_RELEASE = "fair_queue.lua", "fair_release.lua";
    RW_RELEASE = "rw_release.lua";
    SEMAPHORE_SET = "semaphore_set.lua";
    SEMAPHORE_ACQUIRE = "semaphore_acquire.lua";
    SEMAPHORE_RELEASE = "semaphore_release.lua";
    PERMITS_TAKE = "permits_take.lua";
    PERMITS_RELEASE = "permits_release.lua";
    LATCH_SET = "latch_set.lua";
    LATCH_COUNT_DOWN = "latch_count_down.lua";
}

/// `prefix:{name}`, as Redisson's `prefixName`. The braces keep a lock's keys on one cluster node, and are left out if
/// the name has some. A name with a single brace keeps nothing together, as in Redisson.
pub(super) fn prefixed(prefix: &str, name: &str) -> String {
    let [open, close] = missing_braces(name);
    [prefix, ":", open, name, close].concat()
}

/// `{name}:suffix`, as Redisson's `suffixName`; without braces if the name has some.
pub(super) fn suffixed(name: &str, suffix: &str) -> String {
    let [open, close] = missing_braces(name);
    [open, name, close, ":", suffix].concat()
}

/// `{name}`, the common part of all keys of the lock; without braces if the name has some.
pub(super) fn in_braces(name: &str) -> String {
    let [open, close] = missing_braces(name);
    [open, name, close].concat()
}

/// The braces to put around a name; empty if it has an opening one.
fn missing_braces(name: &str) -> [&'static str; 2] {
    if name.contains('{') {
        ["", ""]
    } else {
        ["{", "}"]
    }
}

/// The channel on which a release is published.
pub(super) fn lock_channel(name: &str) -> String {
    prefixed("redisson_lock__channel", name)
}

/// The channel of one waiter for a fair lock.
pub(super) fn fair_channel(name: &str, owner: Owner) -> String {
    format!("{}:{owner}", lock_channel(name))
}

/// The pattern of [`fair_channel`] for all waiters of a process. Neither a label nor a uuid has special characters.
pub(super) fn fair_channel_pattern(process: &Process) -> String {
    format!("redisson_lock__channel:*:{process}:*")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gets_braces_unless_it_has_some() {
        assert_eq!(lock_channel("lock"), "redisson_lock__channel:{lock}");
        assert_eq!(lock_channel("a{b}c"), "redisson_lock__channel:a{b}c");
        assert_eq!(suffixed("lock", "timeout"), "{lock}:timeout");
        assert_eq!(suffixed("a{b}c", "timeout"), "a{b}c:timeout");
    }
}
