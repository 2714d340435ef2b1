//! `/classroom/*`: a class that looks on at the lessons for several windows, and takes part from its phones.
//!
//! `events.rs` has what everybody sees, `objects.rs` what the servers say, `visits.rs` who is sent by a button, `qr.rs` the way to the page.

pub(super) mod events;
pub(super) mod objects;
pub(super) mod qr;
pub(super) mod visits;
