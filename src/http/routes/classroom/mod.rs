//! `/classroom/*`: a class that looks on at the lessons for several windows, and takes part from its phones.
//!
//! `events.rs` has what everybody sees, `objects.rs` what the servers say, `visits.rs` who is sent by a button, `qr.rs` the way to the page.

mod events;
mod objects;
mod qr;
mod visits;

pub(in crate::http) use events::{__path_events, events};
pub(in crate::http) use objects::{__path_objects, objects};
pub(in crate::http) use qr::{__path_qr, qr};
pub(in crate::http) use visits::{__path_send, send};

use crate::visits::Visits;
use std::sync::{Arc, atomic::AtomicUsize};
use tokio::sync::Semaphore;

/// What is seen of this instance's visits, and how many more may be sent.
#[derive(Debug)]
pub(in crate::http) struct Classroom {
    pub(in crate::http) visits: Visits,
    places: Arc<Semaphore>,
    /// Counts those who were sent, so that the instances have them in turn.
    turn: AtomicUsize,
}

impl Classroom {
    pub(in crate::http) fn of(instance: &str) -> Self {
        Self {
            visits: Visits::new(instance),
            places: Arc::new(Semaphore::new(visits::MOST)),
            turn: AtomicUsize::new(0),
        }
    }
}
