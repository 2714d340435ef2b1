//! The log of a replay: one event for each thing that an actor or a server did.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fmt::Display, time::Instant};
use tokio::sync::watch;
use utoipa::{
    ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, schema::SchemaType},
};

/// One thing that happened.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplayEvent {
    /// Microseconds since the replay began.
    #[schema(example = 1_204_000)]
    pub t_us: u64,
    /// `A`, `B` and `C` are the actors; `lock`, `stock` and `row` are what the servers hold; `step` is a caption.
    #[schema(example = "A")]
    pub actor: String,
    /// The instance on which the actor runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "8200")]
    pub instance: Option<String>,
    /// The name of the event.
    #[schema(example = "read")]
    pub event: String,
    /// The name in the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "lock:redis-setnx-owner:9000001")]
    pub key: Option<String>,
    /// A count, a reason or a queue; of a step its caption in two languages.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = value_schema, required = false)]
    pub value: Option<Value>,
    /// The owner of the lock: an actor, or the text that stands in the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "A")]
    pub owner: Option<String>,
    /// The remaining lease, in milliseconds; -1 without a lease.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 2988)]
    pub pttl: Option<i64>,
    /// The fencing token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 34)]
    pub token: Option<u64>,
}

impl ReplayEvent {
    /// An event of this actor; [`Log::add`] sets its time.
    pub(super) fn of(actor: impl Display, event: impl Into<String>) -> Self {
        Self { actor: actor.to_string(), event: event.into(), ..Self::default() }
    }

    pub(super) fn with_key(self, key: &str) -> Self {
        let key = Some(key.to_owned());
        Self { key, ..self }
    }

    pub(super) fn with_value(self, value: impl Into<Value>) -> Self {
        let value = Some(value.into());
        Self { value, ..self }
    }

    /// A caption for those who watch: actor and event are both `step`.
    pub(crate) fn caption(zh: impl Display, en: impl Display) -> Self {
        let words = serde_json::json!({ "zh": zh.to_string(), "en": en.to_string() });
        Self::of("step", "step").with_value(words)
    }
}

/// The schema of [`ReplayEvent::value`], without a type: generators for Go know none of several types.
fn value_schema() -> RefOr<Schema> {
    let value = ObjectBuilder::new().schema_type(SchemaType::AnyValue);
    let description = "What it had, as text: a count, a reason, a queue; the token of a row that refuses it, as a number; two languages for a step";
    value.description(Some(description)).examples(["5000"]).into()
}

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplayResult {
    /// How many actors were told that they had bought a piece.
    #[schema(example = 3)]
    pub sold: i64,
    /// How many pieces have left the stock.
    #[schema(example = 2)]
    pub gone: i64,
    /// The most actors inside at once.
    #[schema(example = 2)]
    pub inside: usize,
    /// The note of the race.
    #[schema(example = "")]
    pub notes: String,
    /// Whether this is the result that the race must have.
    pub as_meant: bool,
    /// Whether the replay ended a lease, session or holder that ends by itself in the lesson; absent if none ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = true)]
    pub forced: Option<bool>,
}

/// How a replay ended.
#[derive(Debug, Clone)]
pub enum ReplayEnd {
    Done(ReplayResult),
    /// With the reason.
    Failed(String),
}

/// All events of a replay, for any number of readers, each from the first one on.
#[derive(Debug)]
pub struct Log {
    started: Instant,
    events: Mutex<Vec<ReplayEvent>>,
    end: Mutex<Option<ReplayEnd>>,
    /// The number of events, and one more at the end.
    length: watch::Sender<usize>,
}

impl Default for Log {
    fn default() -> Self {
        let (events, end) = (Mutex::default(), Mutex::default());
        Self { started: Instant::now(), events, end, length: watch::Sender::new(0) }
    }
}

impl Log {
    /// Adds an event, with the time of this call as its `t_us`.
    pub(crate) fn add(&self, event: ReplayEvent) {
        let t_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.events.lock().push(ReplayEvent { t_us, ..event });
        self.length.send_modify(|length| *length += 1);
    }

    /// Records how the replay ended, and wakes the readers. A second call replaces the end and wakes them again.
    pub(crate) fn close(&self, end: ReplayEnd) {
        *self.end.lock() = Some(end);
        self.length.send_modify(|length| *length += 1);
    }

    /// How the replay ended; `None` while it goes on.
    pub fn end(&self) -> Option<ReplayEnd> {
        self.end.lock().clone()
    }

    /// The events from this index on; none if the log is not that long yet.
    pub fn events_from(&self, from: usize) -> Vec<ReplayEvent> {
        self.events.lock().get(from..).unwrap_or_default().to_vec()
    }

    /// The number of readers that follow it now.
    pub(crate) fn watchers(&self) -> usize {
        self.length.receiver_count()
    }

    /// A receiver that changes with each event from now on, and at the end. Its value counts all events, and the end as one more.
    pub fn watch(&self) -> watch::Receiver<usize> {
        self.length.subscribe()
    }
}
