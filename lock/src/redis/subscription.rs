//! One waiter's subscription to the channel of its object, at whichever server has the object's key by now.
//!
//! Next to read: `wakeups.rs`, the connection that it is among.

use super::{
    client::RedisClient,
    keys::slot_of_key,
    servers::Servers,
    wakeups::{ChannelState, Delivery, Wakeups},
};
use parking_lot::Mutex;
use std::sync::{Arc, atomic::Ordering};

/// A subscription to one channel, which begins with the first wait or [`ensure_subscribed`](Self::ensure_subscribed) and ends
/// with the value. A message wakes one of those that wait.
#[derive(Debug)]
pub(super) struct Subscription {
    channel: String,
    /// The key whose server has the channel.
    name: Arc<str>,
    state: Arc<ChannelState>,
    servers: Servers,
    /// The server's subscriptions that this one is among.
    listens_at: Mutex<Option<Arc<Wakeups>>>,
}

impl Subscription {
    /// Makes a subscription that begins at the first wait; `name` is the key whose server has the channel.
    pub(super) fn new(client: &RedisClient, name: &Arc<str>, channel: String) -> Self {
        Self::with_delivery(client, name, channel, Delivery::OwnSubscription)
    }

    /// The subscription of a waiter for a fair lock, which the process's pattern covers. There are no patterns of shards.
    pub(super) fn by_pattern(client: &RedisClient, name: &Arc<str>, channel: String) -> Self {
        Self::with_delivery(client, name, channel, Delivery::Pattern)
    }

    /// Makes a subscription that begins at the first wait. In a cluster `delivery` is ignored: messages come by shard if the
    /// channel is in the slot of `name`, else by a subscription of its own.
    fn with_delivery(client: &RedisClient, name: &Arc<str>, channel: String, delivery: Delivery) -> Self {
        let servers = client.state().servers.clone();
        let delivery = match servers.is_cluster() {
            false => delivery,
            // A latch's channel may be in another slot than its key: its messages come by `PUBLISH`, which every node hears.
            true if slot_of_key(channel.as_bytes()) == slot_of_key(name.as_bytes()) => Delivery::Shard,
            true => Delivery::OwnSubscription,
        };
        Self {
            channel,
            name: Arc::clone(name),
            state: Arc::new(ChannelState { delivery, ..ChannelState::default() }),
            servers,
            listens_at: Mutex::default(),
        }
    }

    pub(super) fn channel(&self) -> &str {
        &self.channel
    }

    /// Begins the subscription if needed, and waits for a message, or until one may have been missed: the subscription has
    /// begun, or its connection was lost. Without a connection it waits for ever.
    ///
    /// # Cancel safety
    ///
    /// Safe: a message in between is kept for the next call.
    pub(super) async fn wait_for_message(&self) {
        self.ensure_subscribed();
        self.state.notify.notified().await;
    }

    /// Begins the subscription if needed, at the server that has the key by now, and does not wait for it: its beginning
    /// wakes the listener, because a message before may be lost. Does nothing while no server is known to have the key.
    pub(super) fn ensure_subscribed(&self) {
        let Some(node) = self.servers.node_of(&self.name) else {
            return;
        };
        let mut at = self.listens_at.lock();
        if at.as_ref().is_some_and(|at| Arc::ptr_eq(at, &node.wakeups)) {
            return;
        }
        if let Some(old) = at.replace(Arc::clone(&node.wakeups)) {
            old.remove_listener(&self.channel, &self.state);
            self.state.has_begun.store(false, Ordering::Release);
        }
        node.wakeups.add_listener(&self.channel, &self.state);
    }

    /// Whether the server has confirmed the subscription; `false` for one that joined a pattern already confirmed.
    pub(super) fn has_begun(&self) -> bool {
        self.state.has_begun.load(Ordering::Acquire)
    }
}

impl Drop for Subscription {
    /// Removes its listener from the server's subscriptions.
    fn drop(&mut self) {
        if let Some(at) = self.listens_at.get_mut().take() {
            at.remove_listener(&self.channel, &self.state);
        }
    }
}
