//! All that a race is written in, under one name.

pub(super) use super::{
    act::Act,
    race::{Anomaly, Ends, Half, Race},
    role::{A, B, C},
    step::{
        Step::{
            self, All, Also, ClockJumps, Fault, FaultAtEnd, FinishTogether, LeaseEnds, LeaseIsOver,
            LeaseWouldBeOver, LockIsFree, Note, Notes, Queue, UnrenewedLeaseEnds,
        },
        say,
    },
};
pub(super) use crate::{bilingual::Bilingual, section::Point};
