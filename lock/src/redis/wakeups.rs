//! One subscription connection per process, and who is woken by which channel.
//!
//! 1. The first waiter for a lock subscribes to its channel, and the subscription stays as long as anybody in this
//!    process uses that lock.
//! 2. A message wakes the one who contends for it. So does a connection that was lost or is back: what was said
//!    meanwhile is gone, and everybody looks again.
//!
//! A wake-up is a hint. Who waits looks again after a while all the same, so a lost message costs time and nothing
//! else.
//!
//! Next to read: `lock.rs`.

use parking_lot::Mutex;
use redis::{
    Client, PushInfo, PushKind, RedisResult, Value,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::sync::{Mutex as AsyncMutex, Notify};

const RECONNECT_FIRST: Duration = Duration::from_millis(50);
const RECONNECT_LONGEST: Duration = Duration::from_secs(1);

type Listeners = Arc<Mutex<HashMap<String, Weak<Notify>>>>;

/// The subscriptions of one process.
#[derive(Debug)]
pub(super) struct Wakeups {
    connection: ConnectionManager,
    listeners: Listeners,
    /// The channels that are subscribed; its lock keeps SUBSCRIBE and UNSUBSCRIBE of one channel in order.
    subscribed: AsyncMutex<HashSet<String>>,
}

impl Wakeups {
    /// Connects when first used, and again for as long as it takes. `client` must speak RESP3.
    pub(super) fn new(client: Client, timeout: Duration) -> RedisResult<Self> {
        let listeners = Listeners::default();
        let heard = Arc::clone(&listeners);
        let config = ConnectionManagerConfig::new()
            .set_min_delay(RECONNECT_FIRST)
            .set_max_delay(RECONNECT_LONGEST)
            .set_number_of_retries(usize::MAX)
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout))
            .set_push_sender(move |push: PushInfo| {
                wake(&heard, &push);
                Ok::<(), redis::aio::SendError>(())
            })
            .set_automatic_resubscription();
        let connection = ConnectionManager::new_lazy_with_config(client, config)?;
        Ok(Self { connection, listeners, subscribed: AsyncMutex::default() })
    }

    /// From now on, messages on `channel` wake `listener`, for as long as somebody keeps it.
    pub(super) fn listen(&self, channel: &str, listener: &Arc<Notify>) {
        self.listeners.lock().insert(channel.to_owned(), Arc::downgrade(listener));
    }

    /// Subscribes to `channel` unless it is so already. Waits for the server's answer.
    pub(super) async fn subscribe(&self, channel: &str) -> RedisResult<()> {
        let mut subscribed = self.subscribed.lock().await;
        if !subscribed.contains(channel) {
            self.connection.clone().subscribe(channel).await?;
            subscribed.insert(channel.to_owned());
        }
        Ok(())
    }

    /// Ends the subscription to `channel`, unless somebody listens again.
    pub(super) async fn unsubscribe(&self, channel: &str) -> RedisResult<()> {
        let mut subscribed = self.subscribed.lock().await;
        if self.forget(channel) {
            subscribed.remove(channel);
            // Also where SUBSCRIBE got no answer: it may have run.
            self.connection.clone().unsubscribe(channel).await?;
        }
        Ok(())
    }

    /// Removes the listener of `channel`; `false` where it is still there.
    fn forget(&self, channel: &str) -> bool {
        let mut listeners = self.listeners.lock();
        let gone = listeners.get(channel).is_none_or(|l| l.strong_count() == 0);
        if gone {
            listeners.remove(channel);
        }
        gone
    }
}

fn wake(listeners: &Listeners, push: &PushInfo) {
    let listeners = listeners.lock();
    match push.kind {
        // A subscription that has just begun, or is back, may have missed something.
        PushKind::Message | PushKind::Subscribe => {
            if let Some(Value::BulkString(channel)) = push.data.first()
                && let Ok(channel) = std::str::from_utf8(channel)
                && let Some(listener) = listeners.get(channel).and_then(Weak::upgrade)
            {
                listener.notify_one();
            }
        }
        PushKind::Disconnection => {
            listeners.values().filter_map(Weak::upgrade).for_each(|l| l.notify_one());
        }
        _ => {}
    }
}
