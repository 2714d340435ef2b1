//! One subscription connection per process, and the waiters that each channel wakes.
//!
//! 1. The first waiter for a lock subscribes to its channel ([`Subscription`]), and the subscription stays as long as
//!    this process uses that lock.
//! 2. A message wakes the one who contends for it. So does a subscription that has begun or is back, and a connection
//!    that was lost: messages sent in between are gone, and every waiter looks again.
//!
//! A wake-up is a hint. No caller waits for a subscription, and waiters look again after a while anyway: so a lost
//! message, a connection that cannot be made or a server that does not answer costs time and nothing else.
//!
//! Next to read: `engine.rs`.

use crate::registry::{Registration, Registry};
use parking_lot::Mutex;
use redis::{
    Client, PushInfo, PushKind, RedisResult, Value,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Mutex as AsyncMutex, Notify, watch},
};

const RECONNECT_FIRST: Duration = Duration::from_millis(50);
const RECONNECT_LONGEST: Duration = Duration::from_secs(1);

type Listeners = Arc<Mutex<HashMap<String, Weak<Notify>>>>;

/// The subscriptions of one process.
#[derive(Debug)]
pub(super) struct Wakeups {
    connection: ConnectionManager,
    listeners: Listeners,
    /// Told of each connection that was lost.
    cuts: watch::Sender<()>,
    /// For each channel, what keeps its SUBSCRIBE and UNSUBSCRIBE in order.
    in_order: Registry<String, AsyncMutex<Registration>>,
    runtime: Handle,
}

/// A subscription to one channel, which begins with the first wait for its news and ends with the value.
#[derive(Debug)]
pub(super) struct Subscription {
    channel: String,
    news: Arc<Notify>,
    state: Arc<AtomicU8>,
    wakeups: Arc<Wakeups>,
}

const NOT_BEGUN: u8 = 0;
const BEGINS: u8 = 1;
const HAS_BEGUN: u8 = 2;
/// SUBSCRIBE got no answer: it may have run.
const IN_DOUBT: u8 = 3;

impl Wakeups {
    /// Connects when first used, and again for as long as it takes. `client` must speak RESP3.
    pub(super) fn new(client: Client, timeout: Duration, runtime: Handle) -> RedisResult<Self> {
        let listeners = Listeners::default();
        let cuts = watch::Sender::new(());
        let heard = (Arc::clone(&listeners), cuts.clone());
        let config = ConnectionManagerConfig::new()
            .set_min_delay(RECONNECT_FIRST)
            .set_max_delay(RECONNECT_LONGEST)
            .set_number_of_retries(usize::MAX)
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout))
            .set_push_sender(move |push: PushInfo| {
                if push.kind == PushKind::Disconnection {
                    heard.1.send_replace(());
                }
                wake(&heard.0, &push);
                Ok::<(), redis::aio::SendError>(())
            })
            .set_automatic_resubscription();
        let connection = ConnectionManager::new_lazy_with_config(client, config)?;
        Ok(Self {
            connection,
            listeners,
            cuts,
            in_order: Registry::default(),
            runtime,
        })
    }

    /// Tells of each connection that was lost: with it a server may have gone, and what it knew.
    pub(super) fn cuts(&self) -> watch::Receiver<()> {
        self.cuts.subscribe()
    }

    /// Begins the subscription to `channel` in the background. In a task of its own: a SUBSCRIBE that is given up
    /// half-way might stay on the server for ever.
    fn subscribe(self: &Arc<Self>, channel: &str, news: &Arc<Notify>, state: &Arc<AtomicU8>) {
        self.listeners
            .lock()
            .insert(channel.to_owned(), Arc::downgrade(news));
        let (wakeups, channel, state) = (Arc::clone(self), channel.to_owned(), Arc::clone(state));
        self.runtime.spawn(async move {
            let order = wakeups.in_order.of(channel.as_str(), AsyncMutex::new);
            let _turn = order.lock().await;
            if !wakeups.is_heard(&channel) {
                return;
            }
            let begun = wakeups.connection.clone().subscribe(&channel).await;
            if let Err(error) = &begun {
                tracing::debug!(%error, channel, "no wake-ups");
            }
            state.store(
                if begun.is_ok() { HAS_BEGUN } else { IN_DOUBT },
                Ordering::Release,
            );
        });
    }

    /// Ends the subscription to `channel` in the background, unless there is a listener again.
    fn unsubscribe(self: &Arc<Self>, channel: String) {
        let wakeups = Arc::clone(self);
        self.runtime.spawn(async move {
            let order = wakeups.in_order.of(channel.as_str(), AsyncMutex::new);
            let _turn = order.lock().await;
            if wakeups.forget(&channel)
                && let Err(error) = wakeups.connection.clone().unsubscribe(&channel).await
            {
                tracing::debug!(%error, channel, "not unsubscribed");
            }
        });
    }

    fn is_heard(&self, channel: &str) -> bool {
        self.listeners
            .lock()
            .get(channel)
            .is_some_and(|l| l.strong_count() > 0)
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
            listeners
                .values()
                .filter_map(Weak::upgrade)
                .for_each(|l| l.notify_one());
        }
        _ => {}
    }
}

impl Subscription {
    /// Not yet begun.
    pub(super) fn new(channel: String, wakeups: &Arc<Wakeups>) -> Self {
        let state = Arc::new(AtomicU8::new(NOT_BEGUN));
        Self {
            channel,
            news: Arc::default(),
            state,
            wakeups: Arc::clone(wakeups),
        }
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Waits for a message; begins the subscription where that was not done yet, and then its beginning counts as one.
    ///
    /// # Cancel safety
    ///
    /// Safe: a message that came meanwhile is kept for the next call.
    pub(super) async fn news(&self) {
        let begins = |from: u8| {
            self.state
                .compare_exchange(from, BEGINS, Ordering::AcqRel, Ordering::Acquire)
                .is_ok()
        };
        if begins(NOT_BEGUN) || begins(IN_DOUBT) {
            self.wakeups
                .subscribe(&self.channel, &self.news, &self.state);
        }
        self.news.notified().await;
    }

    pub(super) fn has_begun(&self) -> bool {
        self.state.load(Ordering::Acquire) == HAS_BEGUN
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if self.state.load(Ordering::Acquire) != NOT_BEGUN {
            // Before the task runs: it ends the subscription only where there is no listener.
            drop(std::mem::take(&mut self.news));
            self.wakeups.unsubscribe(std::mem::take(&mut self.channel));
        }
    }
}
