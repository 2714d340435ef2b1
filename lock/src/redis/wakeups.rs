//! One subscription connection per process, and the waiters that each channel wakes.
//!
//! 1. The first waiter for a lock subscribes to its channel (`subscription.rs`), for as long as this process uses that
//!    lock. Waiters for fair locks have a channel each, and one pattern for the whole process.
//! 2. One task makes the connection once anybody listens: it subscribes and unsubscribes as needed, and connects again
//!    if the connection breaks or the primary moves.
//! 3. A message wakes the waiter that contends for it. So does a new or restored subscription and a lost connection,
//!    because messages in between are gone: every waiter then looks again.
//!
//! In a cluster each node has such a connection, for the channels of its slots, by shards (`SSUBSCRIBE`) where it knows
//! them. A waiter that finds its slot on another node subscribes there.
//!
//! A wake-up is a hint. No caller waits for a subscription, and waiters look again after a while anyway. So a lost
//! message, a missing connection or a silent server costs only time, as does a user who may not publish: the scripts
//! publish by `pcall`, after the work is done.
//!
//! Next to read: `primary.rs`.

use super::{
    keys::fair_channel_pattern,
    primary::{Address, Primary},
};
use crate::Process;
use parking_lot::Mutex;
use redis::{
    PushInfo, PushKind, RedisResult, Value,
    aio::{MultiplexedConnection, SendError},
    cmd,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::{Notify, watch},
    time::sleep,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The first pause between two attempts to subscribe; each further one is twice as long. Meanwhile waiters look again by
/// themselves.
const FIRST_RECONNECT_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two attempts to subscribe.
const MAX_RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// One client's subscriptions at one server, over one connection. They end with the value.
#[derive(Debug)]
pub(super) struct Wakeups {
    shared: Arc<SharedWakeups>,
    _stops_task: DropGuard,
}

/// What the task and the subscriptions share.
#[derive(Debug)]
struct SharedWakeups {
    primary: Primary,
    is_in_cluster: bool,
    /// The pattern of the channels of this process's fair waiters.
    pattern: String,
    listeners: Mutex<Listeners>,
    /// Wakes the task when `listeners` have changed.
    changed: Notify,
    /// Notified when a connection is lost.
    disconnects: watch::Sender<()>,
}

/// The channels that somebody listens to, and which of them have changed.
#[derive(Debug, Default)]
struct Listeners {
    by_channel: HashMap<String, Weak<ChannelState>>,
    /// Channels that were added or dropped. `None` without a connection: a new one begins with all of them.
    changed: Option<Vec<String>>,
    /// Whether this connection subscribed to the pattern.
    has_pattern: bool,
}

/// One channel that somebody listens to: what wakes the listener, whether its subscription has begun, and how messages come.
#[derive(Debug, Default)]
pub(super) struct ChannelState {
    pub(super) notify: Notify,
    pub(super) has_begun: AtomicBool,
    pub(super) delivery: Delivery,
}

/// How messages of a channel come: by a subscription of its own, by the pattern, or by shard.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    #[default]
    OwnSubscription,
    /// By the pattern, without a subscription of its own.
    Pattern,
    /// By a subscription of its own to the shard that has the channel, if the server knows shards.
    Shard,
}

/// The channels to subscribe to and to unsubscribe from at the server, and whether to subscribe to the pattern.
#[derive(Debug, Default)]
struct SubscriptionChanges {
    begin: Vec<(String, Delivery)>,
    end: Vec<(String, Delivery)>,
    pattern: bool,
}

impl Wakeups {
    /// Spawns the task that makes a connection once somebody listens. The primary must speak RESP3.
    pub(super) fn new(
        primary: Primary,
        is_in_cluster: bool,
        process: &Process,
        runtime: &Handle,
        disconnects: watch::Sender<()>,
    ) -> Self {
        let shared = Arc::new(SharedWakeups {
            primary,
            is_in_cluster,
            pattern: fair_channel_pattern(process),
            listeners: Mutex::default(),
            changed: Notify::new(),
            disconnects,
        });
        let ends = CancellationToken::new();
        let (task, ended) = (Arc::clone(&shared), ends.clone());
        runtime.spawn(async move { ended.run_until_cancelled(task.keep_connected()).await });
        Self { shared, _stops_task: ends.drop_guard() }
    }

    /// Makes this the channel's only listener, in place of an earlier one, and wakes the task if it must subscribe.
    pub(super) fn add_listener(&self, channel: &str, state: &Arc<ChannelState>) {
        let mut listeners = self.shared.listeners.lock();
        let listener = Arc::downgrade(state);
        listeners.by_channel.insert(channel.to_owned(), listener);
        if !(state.delivery == Delivery::Pattern && listeners.has_pattern) {
            self.mark_changed(&mut listeners, channel);
        }
    }

    /// Removes the listener from the channel, unless another listens there by now. The task then unsubscribes, but keeps the
    /// pattern.
    pub(super) fn remove_listener(&self, channel: &str, state: &Arc<ChannelState>) {
        let mut listeners = self.shared.listeners.lock();
        let old = listeners.by_channel.get(channel);
        if old.is_some_and(|old| std::ptr::eq(old.as_ptr(), Arc::as_ptr(state))) {
            listeners.by_channel.remove(channel);
            if state.delivery != Delivery::Pattern {
                self.mark_changed(&mut listeners, channel);
            }
        }
    }

    /// Notes that the channel was added or dropped, and wakes the task.
    fn mark_changed(&self, listeners: &mut Listeners, channel: &str) {
        if let Some(changed) = &mut listeners.changed {
            changed.push(channel.to_owned());
        }
        self.shared.changed.notify_one();
    }
}

impl SharedWakeups {
    /// Makes a connection once anybody listens, keeps it, and makes it again after a break; never completes.
    async fn keep_connected(self: Arc<Self>) {
        let mut pause = FIRST_RECONNECT_PAUSE;
        loop {
            while self.listeners.lock().by_channel.is_empty() {
                self.changed.notified().await;
            }
            let lost = Arc::new(Notify::new());
            match self.connect(&lost).await {
                Ok((connection, here)) => {
                    let served = self.subscribe(connection, &lost, &mut pause);
                    let served = tokio::select! {
                        served = served => served,
                        () = self.primary.wait_until_moved_from(&here) => Ok(()),
                    };
                    if let Err(error) = served {
                        tracing::debug!(%error, "no wake-ups for a while");
                    }
                    self.restart_all();
                }
                Err(error) => tracing::debug!(%error, "no wake-ups"),
            }
            sleep(pause).await;
            pause = (pause * 2).min(MAX_RECONNECT_PAUSE);
        }
    }

    /// Connects, with a receiver of messages that wakes the listeners; `lost` is notified when the connection closes.
    async fn connect(self: &Arc<Self>, lost: &Arc<Notify>) -> RedisResult<(MultiplexedConnection, Option<Address>)> {
        let (receiver, lost) = (Arc::clone(self), Arc::clone(lost));
        let config = self.primary.config().set_push_sender(move |push: PushInfo| {
            if push.kind == PushKind::Disconnection {
                receiver.disconnects.send_replace(());
                lost.notify_one();
            }
            receiver.notify_listener(&push);
            Ok::<_, SendError>(())
        });
        self.primary.connect(&config).await
    }

    /// Subscribes and unsubscribes as needed, until the connection closes, or fails with the error. Each time it resets `pause`.
    async fn subscribe(&self, mut connection: MultiplexedConnection, lost: &Notify, pause: &mut Duration) -> RedisResult<()> {
        let mut subscribed = HashMap::new();
        let has_shards = self.is_in_cluster && has_shards(&mut connection).await?;
        {
            let mut listeners = self.listeners.lock();
            listeners.changed = Some(listeners.by_channel.keys().cloned().collect());
        }
        loop {
            let changes = self.take_changes(&mut subscribed);
            let by_shard = |delivery: &Delivery| has_shards && *delivery == Delivery::Shard;
            let (shards, begin): (Vec<_>, Vec<_>) = changes.begin.into_iter().partition(|(_, delivery)| by_shard(delivery));
            if !begin.is_empty() {
                ignore_refusal(connection.subscribe(channel_names(&begin)).await)?;
            }
            for (channel, _) in shards {
                let mut subscribe = cmd("SSUBSCRIBE");
                ignore_refusal(subscribe.arg(channel).exec_async(&mut connection).await)?;
            }
            if changes.pattern {
                ignore_refusal(connection.psubscribe(&self.pattern).await)?;
            }
            let (shards, end): (Vec<_>, Vec<_>) = changes.end.into_iter().partition(|(_, delivery)| by_shard(delivery));
            if !end.is_empty() {
                ignore_refusal(connection.unsubscribe(channel_names(&end)).await)?;
            }
            for (channel, _) in shards {
                let mut unsubscribe = cmd("SUNSUBSCRIBE");
                ignore_refusal(unsubscribe.arg(channel).exec_async(&mut connection).await)?;
            }
            *pause = FIRST_RECONNECT_PAUSE;
            tokio::select! {
                () = lost.notified() => return Ok(()),
                () = self.changed.notified() => {}
            }
        }
    }

    /// Returns the changes since the last call, and notes them in `subscribed`.
    fn take_changes(&self, subscribed: &mut HashMap<String, Delivery>) -> SubscriptionChanges {
        let (mut changes, mut listeners) = (SubscriptionChanges::default(), self.listeners.lock());
        for channel in listeners.changed.replace(Vec::new()).unwrap_or_default() {
            match listeners.by_channel.get(&channel).and_then(Weak::upgrade) {
                Some(state) if state.delivery == Delivery::Pattern => {
                    changes.pattern |= !std::mem::replace(&mut listeners.has_pattern, true);
                }
                Some(state) => {
                    if subscribed.insert(channel.clone(), state.delivery).is_none() {
                        changes.begin.push((channel, state.delivery));
                    }
                }
                None => changes.end.extend(subscribed.remove_entry(&channel)),
            }
        }
        changes
    }

    /// Marks every subscription as not begun, for the next connection to begin again, and wakes every listener.
    fn restart_all(&self) {
        let mut listeners = self.listeners.lock();
        (listeners.changed, listeners.has_pattern) = (None, false);
        for state in listeners.by_channel.values().filter_map(Weak::upgrade) {
            state.has_begun.store(false, Ordering::Release);
            state.notify.notify_one();
        }
    }

    /// Wakes the listener to whom a message came, or whose subscription has begun.
    fn notify_listener(&self, push: &PushInfo) {
        let text = |n: usize| match push.data.get(n) {
            Some(Value::BulkString(text)) => std::str::from_utf8(text).ok(),
            _ => None,
        };
        let listeners = self.listeners.lock();
        let one = |channel: &str| listeners.by_channel.get(channel).and_then(Weak::upgrade);
        match push.kind {
            PushKind::Message | PushKind::SMessage => text(0).and_then(one).iter().for_each(|state| state.notify.notify_one()),
            PushKind::PMessage => text(1).and_then(one).iter().for_each(|state| state.notify.notify_one()),
            // A new or restored subscription may have missed a message.
            PushKind::Subscribe | PushKind::SSubscribe => text(0).and_then(one).iter().for_each(|state| state.mark_begun()),
            PushKind::PSubscribe => {
                let all = listeners.by_channel.values().filter_map(Weak::upgrade);
                all.filter(|state| state.delivery == Delivery::Pattern).for_each(|state| state.mark_begun());
            }
            _ => {}
        }
    }
}

/// Whether the server knows subscriptions by shard.
async fn has_shards(connection: &mut MultiplexedConnection) -> RedisResult<bool> {
    let mut ask = cmd("PUBSUB");
    match ask.arg("SHARDNUMSUB").exec_async(connection).await {
        Err(error) if error.code().is_some() => Ok(false),
        asked => asked.map(|()| true),
    }
}

fn channel_names(channels: &[(String, Delivery)]) -> Vec<&str> {
    channels.iter().map(|(name, _)| name.as_str()).collect()
}

/// Turns a server's refusal into success, for example of a channel that this user may not hear: it is not retried on this
/// connection.
fn ignore_refusal(result: RedisResult<()>) -> RedisResult<()> {
    match result {
        Err(error) if error.code().is_some() => {
            tracing::debug!(%error, "no wake-ups");
            Ok(())
        }
        result => result,
    }
}

impl ChannelState {
    /// Marks the subscription as begun, and wakes the listener.
    fn mark_begun(&self) {
        self.has_begun.store(true, Ordering::Release);
        self.notify.notify_one();
    }
}
