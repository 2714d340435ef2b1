//! The scripts by name.
//!
//! Each `.lua` file documents its keys, arguments and return codes. Redis runs a script as one command.
//!
//! Next to read: `client.rs`, which runs them.

use crate::{Lease, Owner};
use redis::{Cmd, ErrorKind, FromRedisValue, RedisResult, RedisWrite, ServerErrorKind, aio::ConnectionLike};
use std::{collections::HashMap, fmt::Display, sync::LazyLock};

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
    pub(super) async fn send<T: FromRedisValue>(&self, connection: &mut impl ConnectionLike) -> RedisResult<T> {
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
        if is_cluster { &self.in_cluster } else { &self.single }
    }
}

/// Every script by its SHA1, for those who read a digest in MONITOR or SLOWLOG; commands do not need it.
static TEXTS_BY_DIGEST: LazyLock<HashMap<String, &str>> = LazyLock::new(|| {
    let plain = PLAIN_SCRIPTS.iter().map(|script| &***script);
    let notifying = NOTIFYING_SCRIPTS.iter();
    let notifying = notifying.flat_map(|script| [&*script.single, &*script.in_cluster]);
    let scripts = plain.chain(notifying);
    scripts.map(|script| (script.digest.clone(), script.text)).collect()
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

/// The text of a script, put together of files.
macro_rules! text {
    ($($file:literal),+) => {
        concat!($(include_str!(concat!("lua/", $file))),+)
    };
}

/// Makes each script of its files, after the one that defines `tell`.
macro_rules! notifying_scripts {
    ($($name:ident = $($file:literal),+;)+) => {
        $(pub(super) static $name: NotifyingScript = NotifyingScript {
            single: LazyLock::new(|| Script::new(text!("tell.lua", $($file),+))),
            in_cluster: LazyLock::new(|| Script::new(text!("tell_in_cluster.lua", $($file),+))),
        };)+

        static NOTIFYING_SCRIPTS: &[&NotifyingScript] = &[$(&$name),+];
    };
}

/// Makes each script of its files.
macro_rules! scripts {
    ($($name:ident = $($file:literal),+;)+) => {
        $(pub(super) static $name: LazyLock<Script> = LazyLock::new(|| Script::new(text!($($file),+)));)+

        /// The scripts that publish nothing.
        static PLAIN_SCRIPTS: &[&LazyLock<Script>] = &[$(&$name),+];
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
