//! The connection that commands and scripts share, made again whenever it is lost.
//!
//! 1. A connection that is lost is made again at once, used or not; where no server answers, the attempt is given up after a while.
//! 2. The next command would be told how that attempt ended, however long ago it was, and not be sent. So where the
//!    connection was lost, a PING learns of it instead, and the command waits for an attempt of its own time.
//!
//! What it does not do: send a command twice. Next to read: `engine.rs`.

use futures::FutureExt;
use redis::{
    Client, Cmd, Pipeline, PushInfo, PushKind, RedisError, RedisFuture, RedisResult, Value,
    aio::{ConnectionLike, ConnectionManager, ConnectionManagerConfig, SendError},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

const RECONNECT_FIRST: Duration = Duration::from_millis(50);
const RECONNECT_TRIES: usize = 3;

/// A connection of a [`RedisClient`](super::RedisClient), to be given to a command of the `redis` crate. Cloning it is
/// cheap.
#[derive(Debug, Clone)]
pub struct Connection {
    manager: ConnectionManager,
    /// Whether it was lost, and nothing has come through since.
    lost: Arc<AtomicBool>,
}

impl Connection {
    /// Not yet made. `timeout` is for each attempt to connect, and for each answer.
    pub(super) fn new(client: &Client, timeout: Duration) -> Result<Self, RedisError> {
        let lost = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&lost);
        let config = ConnectionManagerConfig::new()
            .set_min_delay(RECONNECT_FIRST)
            .set_number_of_retries(RECONNECT_TRIES)
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout))
            .set_push_sender(move |push: PushInfo| {
                told.fetch_or(push.kind == PushKind::Disconnection, Ordering::Relaxed);
                Ok::<_, SendError>(())
            });
        let manager = ConnectionManager::new_lazy_with_config(client.clone(), config)?;
        Ok(Self { manager, lost })
    }

    /// Where it was lost, whatever is sent next goes over one that is made now, or is told that none can be made.
    async fn made_again(&mut self) -> bool {
        let was_lost = self.lost.load(Ordering::Relaxed);
        if was_lost {
            let _of_the_last_attempt = self.manager.send_packed_command(&redis::cmd("PING")).await;
        }
        was_lost
    }

    fn judge<T>(&self, was_lost: bool, answer: RedisResult<T>) -> RedisResult<T> {
        match &answer {
            Err(error) if error.is_connection_dropped() => self.lost.store(true, Ordering::Relaxed),
            _ if was_lost => self.lost.store(false, Ordering::Relaxed),
            _ => {}
        }
        answer
    }
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a Cmd) -> RedisFuture<'a, Value> {
        let answer = async move {
            let was_lost = self.made_again().await;
            let answer = self.manager.send_packed_command(cmd).await;
            self.judge(was_lost, answer)
        };
        answer.boxed()
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        commands: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        let answers = async move {
            let was_lost = self.made_again().await;
            let answers = self
                .manager
                .send_packed_commands(commands, offset, count)
                .await;
            self.judge(was_lost, answers)
        };
        answers.boxed()
    }

    fn get_db(&self) -> i64 {
        self.manager.get_db()
    }
}
