//! One race to a file. A file registers itself: it has a constant `RACE`, written in what this file imports.

use super::{
    act::Act,
    play::Play,
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
use crate::{
    ctx::Ctx,
    error::Error,
    section::{Deduction, Job, Name, Point},
    stock::Store,
};
use oversell_lab::{fault::Action, terminal::bilingual::Bilingual};
use std::time::Duration;

include!(concat!(env!("OUT_DIR"), "/races.rs"));
