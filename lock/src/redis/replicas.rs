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
//! Next to read: `cluster.rs`, whose redirects it follows.

use super::{
    client::RedisClient,
    failure::{SERVER, to_lock_error},
    node::RedisNode,
    options::Replicas,
    scripts::ScriptCall,
    servers::Servers,
};
use crate::LockError;
use redis::{
    PushInfo, PushKind, RedisResult, Role,
    aio::{MultiplexedConnection, SendError},
};
use std::{io, sync::Arc, time::Duration};

/// The longest wait for the replicas, or half of the time limit of a command if that is less. If too few have the lock by then,
/// it is released.
const MAX_REPLICA_WAIT: Duration = Duration::from_secs(1);
/// The most tries to renew a hold while its slot moves. Five are enough: the old map's node says `MOVED`; the slot's node says
/// `ASK`; the node that is getting the slot says `MOVED`, because loading a script that it does not know uses up `ASKING`; the
/// slot's node says `ASK` again. One is spare.
const MAX_RENEWAL_ATTEMPTS: u32 = 6;

impl RedisClient {
    /// Sends `renewal` and returns `true` once enough replicas have its hold; fails if too few have it in time, or it is gone.
    /// `false`, without a command, if the options ask for none.
    ///
    /// # Cancel safety
    ///
    /// It may have been renewed.
    pub(super) async fn wait_for_replicas(&self, key: &str, renewal: impl FnOnce() -> ScriptCall) -> Result<bool, LockError> {
        let needed_replicas = self.state().options.replicas;
        if needed_replicas == Replicas::AtLeast(0) {
            return Ok(false);
        }
        let counts = async {
            let (renewed, node, mut connection) = self.renew_on_wait_connection(key, &renewal()).await?;
            if !renewed {
                return Ok(None);
            }
            let needed = match needed_replicas {
                Replicas::AtLeast(number) => number,
                Replicas::All => known_replicas(&mut connection).await?.max(1),
            };
            let bound = MAX_REPLICA_WAIT.min(self.state().options.timeout / 2).as_millis();
            let mut wait = redis::cmd("WAIT");
            wait.arg(needed).arg(u64::try_from(bound).unwrap_or(0).max(1));
            let have: u32 = wait.query_async(&mut connection).await?;
            node.wait_connections.lock().push(connection);
            RedisResult::Ok(Some((needed, have)))
        };
        let counts: Option<(u32, u32)> = counts.await.map_err(to_lock_error)?;
        let Some((needed, have)) = counts else {
            let reason = "its lease ended, or another primary does not have it: it is given back";
            return Err(LockError::unavailable(SERVER, reason));
        };
        if have >= needed {
            return Ok(true);
        }
        let reason = format!("{have} of {needed} replicas had the lock in time: it is given back");
        Err(LockError::unavailable(SERVER, reason))
    }

    /// Renews on a connection for `WAIT` to the node that has the key; returns whether the hold was there, the node and the
    /// connection. While a slot moves, each node refuses what the other one has, without doing anything.
    async fn renew_on_wait_connection(
        &self,
        key: &str,
        renewal: &ScriptCall,
    ) -> RedisResult<(bool, Arc<RedisNode>, MultiplexedConnection)> {
        let gone = || io::Error::other("no node of the cluster serves the slot for now");
        let mut node = self.state().servers.node_of(key).ok_or_else(gone)?;
        let (mut is_asking, mut attempts) = (false, 0);
        loop {
            let mut connection = self.wait_connection(&node).await?;
            if is_asking {
                redis::cmd("ASKING").exec_async(&mut connection).await?;
            }
            let error = match renewal.send(&mut connection).await {
                Ok(renewed) => return Ok((renewed, node, connection)),
                Err(error) => error,
            };
            attempts += 1;
            let Servers::Cluster(cluster) = &self.state().servers else {
                return Err(error);
            };
            match cluster.redirect(&error, &node)? {
                Some(redirect) if attempts < MAX_RENEWAL_ATTEMPTS => (node, is_asking) = redirect,
                _ => return Err(error),
            }
        }
    }

    /// Takes an idle connection for `WAIT` to this node, or makes one; the caller puts it back.
    async fn wait_connection(&self, node: &RedisNode) -> RedisResult<MultiplexedConnection> {
        if let Some(idle) = node.wait_connections.lock().pop() {
            return Ok(idle);
        }
        let idle = Arc::downgrade(&node.wait_connections);
        let config = node.primary.config();
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
        let primary = node.primary.clone();
        let made = self.spawn(async move { primary.connect(&config).await });
        let made = made.await.unwrap_or_else(|stopped| Err(io::Error::other(stopped).into()));
        Ok(made?.0)
    }
}

/// Returns how many replicas the server has as a primary; 0 if it is none.
async fn known_replicas(connection: &mut MultiplexedConnection) -> RedisResult<u32> {
    Ok(match redis::cmd("ROLE").query_async(connection).await? {
        Role::Primary { replicas, .. } => u32::try_from(replicas.len()).unwrap_or(u32::MAX),
        _ => 0,
    })
}
