//! A lock that counts as had once replicas have it: a replica that is promoted without it would let a second one in.
//!
//! 1. The lock is taken as always.
//! 2. On a connection that nobody else uses meanwhile (`WAIT` stops all that is sent behind it) the hold is renewed, and then
//!    `WAIT` asks how many replicas have what was written on this connection. So what they have is this hold, and the
//!    server that answers has it too, also where it is another primary by now. The renewal must write, whatever the lease is:
//!    since Redis 7.2, and in Valkey, `WAIT` knows of no command that has written nothing.
//! 3. Fewer than asked for within the bound: the lock is given back, and was not had.
//!
//! What it survives: a primary that dies or is demoted at any time after the lock was had, where all who may be promoted
//! were among those that were waited for. **What breaks it**: a replica that was not among them, and is promoted; with
//! [`Replicas::All`] that is also one that the primary has lost sight of. A renewal is not waited for: a lease that was
//! renewed just before a fail-over may end as if it had not been. `WAIT` is no consensus.
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

/// The longest wait for the replicas; at most half of what an answer may take.
const MAX_REPLICA_WAIT: Duration = Duration::from_secs(1);

impl RedisClient {
    /// Waits until as many replicas as asked for have the hold that `renewal` renews; `false` where none are asked for.
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
            let reason = "the primary is another one by now, and does not have the lock";
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
            // What is true of this one is true of those that were made with it.
            if push.kind == PushKind::Disconnection
                && let Some(idle) = idle.upgrade()
            {
                idle.lock().clear();
            }
            Ok::<_, SendError>(())
        });
        // In the client's runtime: it is used again by callers in others.
        let primary = self.inner().primary.clone();
        let made = self.spawn(async move { primary.connect(&config).await });
        let made = made
            .await
            .unwrap_or_else(|stopped| Err(io::Error::other(stopped).into()));
        Ok(made?.0)
    }
}

/// How many replicas the server at the other end has, as a primary.
async fn known(connection: &mut MultiplexedConnection) -> RedisResult<u32> {
    Ok(match redis::cmd("ROLE").query_async(connection).await? {
        Role::Primary { replicas, .. } => u32::try_from(replicas.len()).unwrap_or(u32::MAX),
        _ => 0,
    })
}
