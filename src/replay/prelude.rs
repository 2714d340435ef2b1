//! All that a race is written in, under one name.

pub(super) use super::{
    act::Act,
    race::{Anomaly, ExpectedResult, Race, Variant},
    role::{A, B, C},
    step::{
        Step::{
            self, All, ClockJumps, Custom, Fault, FaultAtEnd, FinishTogether, LeaseEnds,
            LeaseTimePasses, LockIsFree, Note, NoteFrom, QueueHas, RowLeaseEnds,
            UnrenewedLeaseEnds,
        },
        say,
    },
};
pub(super) use crate::{section::Point, terminal::bilingual::Bilingual};
