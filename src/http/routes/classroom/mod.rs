//! `/classroom/*`: a class that looks on at the lessons for several windows, and takes part from its phones.
//!
//! `events.rs` streams the visits, `objects.rs` asks the servers, `visits.rs` sends visitors, `qr.rs` draws the page's address.

pub(super) mod events;
pub(super) mod objects;
pub(super) mod qr;
pub(super) mod visits;
