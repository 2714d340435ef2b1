//! A lock that counts as acquired once replicas have it: a promoted replica without it would let a second holder in.
//!
//! 1. Take the lock.
//! 2. On a connection of its own (`WAIT` blocks all later commands of a connection) renew the hold, then `WAIT` for the
//!    replicas to have what this connection wrote: this hold. The server that answers has it too, even if it became the
//!    primary meanwhile. The renewal must write, whatever the lease is: since Redis 7.2, and in Valkey, `WAIT` does not
//!    wait for a command that wrote nothing.
//! 3. If too few have it in time, release the lock.
//!
//! What this survives, and what breaks it, is at [`RedisOptions::wait_replicas`](super::RedisOptions::wait_replicas).
//!
//! Next to read: `hold.rs`.

use super::{
    client::RedisClient,
    failure::{SERVER, failed},
    options::Replicas,
};
use crate::LockError;
use redis::{
    PushInfo, PushKind, RedisResult, Role, ScriptInvocation,
    aio::{MultiplexedConnection, SendError},
};
use std::{io, sync::Arc, time::Duration};

/// The longest wait for the replicas; at most half of the time limit of a command.
const MAX_REPLICA_WAIT: Duration = Duration::from_secs(1);

impl RedisClient {
    /// Waits until enough replicas have the hold that `renewal` renews; `false` if none are waited for.
    ///
    /// # Cancel safety
    ///
    /// It may have been renewed.
    pub(super) async fn replicated(
        &self,
        renewal: &ScriptInvocation<'_>,
    ) -> Result<bool, LockError> {
        let needed_replicas = self.inner().options.replicas;
        if needed_replicas == Replicas::AtLeast(0) {
            return Ok(false);
        }
        let mut connection = self.to_wait_on().await.map_err(failed)?;
        let known = async {
            if !renewal.invoke_async::<bool>(&mut connection).await? {
                return Ok(None);
            }
            let needed = match needed_replicas {
                Replicas::AtLeast(number) => number,
                Replicas::All => known(&mut connection).await?.max(1),
            };
            let bound = MAX_REPLICA_WAIT
                .min(self.inner().options.timeout / 2)
                .as_millis();
            let mut wait = redis::cmd("WAIT");
            wait.arg(needed)
                .arg(u64::try_from(bound).unwrap_or(0).max(1));
            RedisResult::Ok(Some((needed, wait.query_async(&mut connection).await?)))
        };
        let known: Option<(u32, u32)> = known.await.map_err(failed)?;
        let Some((needed, have)) = known else {
            let reason = "its lease ended, or another primary does not have it: it is given back";
            return Err(LockError::unavailable(SERVER, reason));
        };
        self.inner().idle.lock().push(connection);
        if have >= needed {
            return Ok(true);
        }
        let reason = format!("{have} of {needed} replicas had the lock in time: it is given back");
        Err(LockError::unavailable(SERVER, reason))
    }

    async fn to_wait_on(&self) -> RedisResult<MultiplexedConnection> {
        if let Some(idle) = self.inner().idle.lock().pop() {
            return Ok(idle);
        }
        let idle = Arc::downgrade(&self.inner().idle);
        let config = self.inner().primary.config();
        let config = config.set_push_sender(move |push: PushInfo| {
            // Connections of the same age are probably broken too.
            if push.kind == PushKind::Disconnection
                && let Some(idle) = idle.upgrade()
            {
                idle.lock().clear();
            }
            Ok::<_, SendError>(())
        });
        // In the client's runtime, because callers in other runtimes reuse it.
        let primary = self.inner().primary.clone();
        let made = self.spawn(async move { primary.connect(&config).await });
        let made = made
            .await
            .unwrap_or_else(|stopped| Err(io::Error::other(stopped).into()));
        Ok(made?.0)
    }
}

/// How many replicas the server has, as a primary.
async fn known(connection: &mut MultiplexedConnection) -> RedisResult<u32> {
    Ok(match redis::cmd("ROLE").query_async(connection).await? {
        Role::Primary { replicas, .. } => u32::try_from(replicas.len()).unwrap_or(u32::MAX),
        _ => 0,
    })
}
