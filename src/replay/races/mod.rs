//! One race to a file. A file registers itself: it has a constant `RACE`, written in what this file imports.

use super::{
    act::Act,
    race::{Anomaly, ExpectedResult, Race, Variant},
    role::{A, B, C},
    step::{
        Step::{
            self, All, ClockJumps, Custom, Fault, FaultAtEnd, FinishTogether, LeaseEnds, LeaseTimePasses, LockIsFree, Note,
            NoteFrom, QueueHas, RowLeaseEnds, UnrenewedLeaseEnds,
        },
        say,
    },
};
use crate::section::Point;
use oversell_lab::terminal::bilingual::Bilingual;

include!(concat!(env!("OUT_DIR"), "/races.rs"));
