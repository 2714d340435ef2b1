//! `/classroom/*`: a class that looks on at the lessons for several windows, and takes part from its phones.
//!
//! `events.rs` streams the visits, `objects.rs` asks the servers, `visits.rs` sends visitors, `qr.rs` draws the page's address; `lesson.rs`:
//! which lesson is on show, and guesses; `desk.rs`: who is there, and where the teacher calls everybody; `lines.rs` types what a
//! student types; `burst.rs` sends more at once than a browser can.

pub(super) mod burst;
pub(super) mod desk;
pub(super) mod events;
pub(super) mod lesson;
pub(super) mod lines;
pub(super) mod objects;
pub(super) mod qr;
pub(super) mod visits;
