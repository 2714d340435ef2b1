//! What is seen of a replay: one line for each thing that an actor or a server did.

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fmt::Display, time::Instant};
use tokio::sync::watch;
use utoipa::{
    ToSchema,
    openapi::{ObjectBuilder, RefOr, Schema, Type, schema::SchemaType},
};

/// One thing that was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplayEvent {
    /// Microseconds since the beginning of the replay.
    #[schema(example = 1_204_000)]
    pub t_us: u64,
    /// Whose it is: `A`, `B`, `C`; `lock`, `stock` and `row` are what the servers hold; `step` says what comes now.
    #[schema(example = "A")]
    pub actor: String,
    /// The instance on which the actor runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "8200")]
    pub instance: Option<String>,
    /// What was done.
    #[schema(example = "read")]
    pub event: String,
    /// The name in the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "lock:redis-setnx-owner:9000001")]
    pub key: Option<String>,
    /// What it had: a count, a reason, a queue; two languages for a step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = value, required = false)]
    pub value: Option<Value>,
    /// Whose lock it is: an actor, or the text that stands in the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "A")]
    pub owner: Option<String>,
    /// What is left of the lease, in milliseconds; -1: it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 2988)]
    pub pttl: Option<i64>,
    /// The fencing token.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 34)]
    pub token: Option<u64>,
}

impl ReplayEvent {
    /// This was done by this actor, or seen in this server.
    pub(super) fn of(actor: impl Display, event: impl Into<String>) -> Self {
        Self {
            actor: actor.to_string(),
            event: event.into(),
            ..Self::default()
        }
    }
}

fn value() -> RefOr<Schema> {
    let kinds = [Type::String, Type::Integer, Type::Object];
    let value = ObjectBuilder::new().schema_type(SchemaType::from_iter(kinds));
    let description = "What it had, as text: a count, a reason, a queue; the token of a row that refuses it, as a number; two languages for a step";
    value
        .description(Some(description))
        .examples(["5000"])
        .into()
}

/// What a replay came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReplayResult {
    /// How many actors were told that they had bought a piece.
    #[schema(example = 3)]
    pub sold: i64,
    /// How many pieces left the shelf.
    #[schema(example = 2)]
    pub gone: i64,
    /// The most that were inside at once.
    #[schema(example = 2)]
    pub inside: usize,
    /// What the lesson noted besides.
    #[schema(example = "")]
    pub saw: String,
    /// Whether the registry says the same.
    pub as_meant: bool,
    /// Whether a lease, a session or a holder was ended by order which ends by itself in the lesson; absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = true)]
    pub forced: Option<bool>,
}

/// How a replay has ended.
#[derive(Debug, Clone)]
pub enum ReplayEnd {
    /// With this.
    Done(ReplayResult),
    /// Not at all: why.
    Failed(String),
}

/// All that was seen so far. Whoever comes late reads it from the beginning.
#[derive(Debug)]
pub struct Log {
    started: Instant,
    events: Mutex<Vec<ReplayEvent>>,
    end: Mutex<Option<ReplayEnd>>,
    /// How many events there are; one more once it has ended.
    length: watch::Sender<usize>,
}

impl Default for Log {
    fn default() -> Self {
        let (events, end) = (Mutex::default(), Mutex::default());
        Self {
            started: Instant::now(),
            events,
            end,
            length: watch::Sender::new(0),
        }
    }
}

impl Log {
    /// Adds what is seen now.
    pub(super) fn add(&self, event: ReplayEvent) {
        let t_us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.events.lock().push(ReplayEvent { t_us, ..event });
        self.length.send_modify(|length| *length += 1);
    }

    /// Nothing more comes.
    pub(crate) fn close(&self, end: ReplayEnd) {
        *self.end.lock() = Some(end);
        self.length.send_modify(|length| *length += 1);
    }

    /// How it has ended, if it has.
    #[must_use]
    pub fn end(&self) -> Option<ReplayEnd> {
        self.end.lock().clone()
    }

    /// What was seen, from this number on.
    #[must_use]
    pub fn since(&self, from: usize) -> Vec<ReplayEvent> {
        self.events.lock().get(from..).unwrap_or_default().to_vec()
    }

    /// Tells of each addition, and of the end.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<usize> {
        self.length.subscribe()
    }
}
