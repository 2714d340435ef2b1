//! A connection to Redis that reports each command to a follower.
//!
//! Next: `redis_polling.rs`, which sends the locks of §2.1 to §2.7 over it.

use super::Points;
use oversell_lock::redis::Connection;
use redis::{Arg, Cmd, Pipeline, RedisFuture, Value, aio::ConnectionLike};

/// Longer arguments are cut: a digest of a script is longer.
const MAX_SHOWN_CHARS: usize = 36;

/// A connection, and the points of the job that sends over it.
#[derive(Debug, Clone)]
pub(crate) struct RedisTap<C = Connection> {
    redis: C,
    points: Points,
}

impl<C> RedisTap<C> {
    /// A connection that sends on behalf of the job with these points.
    pub(crate) fn new(redis: C, points: &Points) -> Self {
        let points = points.clone();
        Self { redis, points }
    }
}

impl RedisTap {
    /// Whether the last command went out.
    pub(crate) fn has_sent(&self) -> bool {
        self.redis.has_sent()
    }
}

impl<C: ConnectionLike + Send> ConnectionLike for RedisTap<C> {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        self.points.sends(|| line(cmd));
        self.redis.req_packed_command(cmd)
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.points.sends(|| {
            let lines: Vec<_> = commands.cmd_iter().map(line).collect();
            // One with an answer for all is a transaction: its frame is sent around the commands.
            match offset {
                0 => lines.join("; "),
                _ => format!("MULTI; {}; EXEC", lines.join("; ")),
            }
        });
        self.redis.req_packed_commands(commands, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.redis.get_db()
    }
}

/// A command as `redis-cli` would have it typed.
fn line(cmd: &Cmd) -> String {
    let words = cmd.args_iter().map(|arg| match arg {
        Arg::Simple(word) => String::from_utf8_lossy(word).into_owned(),
        _ => String::new(),
    });
    let short = words.map(|word| match word.char_indices().nth(MAX_SHOWN_CHARS) {
        Some((end, _)) if !word.contains(':') => format!("{}…", &word[..end / 4]),
        _ => word,
    });
    short.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_command_is_told_as_it_is_typed_and_a_digest_is_cut() {
        let set = redis::cmd("SET")
            .arg("lock:7")
            .arg("8000-1")
            .arg("NX")
            .arg("PX")
            .arg(3000)
            .clone();
        assert_eq!(line(&set), "SET lock:7 8000-1 NX PX 3000");
        let digest = "3f".repeat(20);
        let script = redis::cmd("EVALSHA")
            .arg(&digest)
            .arg(1)
            .arg("lock:7")
            .clone();
        assert_eq!(line(&script), "EVALSHA 3f3f3f3f3… 1 lock:7");
    }
}
