//! §1.7.3 The row's version has moved since it was read: the write changes nothing, and is tried again.
//!
//! 1. A and B read the same row.
//! 2. A writes; B writes over it.
//!
//! On its cure each write says which version it has read. A's moves the version; B's finds another one, changes no row, and B
//! reads again: 4999.
//!
//! What it survives: any number of instances, and holders that die. **What breaks it**: nothing; but of all who have read one
//! version only one gets through.
//!
//! Next: `exec_nil.rs`, the same idea in Redis.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["1.7.3"],
    title: Bilingual::of("版本号变了，重来", "The version has moved: try again"),
    breaks: Bilingual::of("写的时候不问有没有人先写了", "the write does not ask whether another was first"),
    cure: Bilingual::of("版本号没变才写，变了就重读", "write only if the version still stands, else read again"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[
        say("A 读", "A reads"),
        A.stops_at(Point::Read),
        say("另一个实例上的 B 也读", "B, on another instance, reads too"),
        B.stops_at(Point::Read),
    ],
    flaw: Variant {
        act: Act::Strategy("none"),
        steps: &[All(B_OVERWRITES_A)],
        expected: ExpectedResult::sold(2, 1).inside(2).noting("retries 0", "重试 0 次", "0 retries"),
    },
    cured: Variant {
        act: Act::Strategy("version-cas"),
        steps: &[All(B_FINDS_WRITE_OF_A)],
        expected: ExpectedResult::sold(2, 2).noting("retries 1", "重试 1 次", "1 retry"),
    },
};

/// A writes; B has read before, and overwrites it.
pub(super) const B_OVERWRITES_A: &[Step] = &[
    say("A 写", "A writes"),
    A.finishes(),
    say("B 也写：盖掉了 A 的", "B writes over it"),
    B.finishes(),
    NoteFrom(Play::retry_note),
];

/// A writes; B has read before, and finds the row changed.
pub(super) const B_FINDS_WRITE_OF_A: &[Step] = &[
    say("A 写", "A writes"),
    A.finishes(),
    say("B 写不成：它读过以后有人写了", "B's write changes nothing: another wrote after B had read"),
    B.stops_at(Point::Conflict),
    say("B 重新读，再写", "B reads again, and writes"),
    B.finishes(),
    NoteFrom(Play::retry_note),
];
