//! §1.8 The key has changed since WATCH: EXEC answers nil, and nothing was written.
//!
//! 1. A and B read the key, `GET`, and have not written yet.
//! 2. A sets 4999, and then B does.
//!
//! On its cure each watches the key before it reads. A's EXEC goes through; B's answers nil, since the key was written after
//! B's WATCH; B pauses and begins again.
//!
//! What it survives: any number of instances, and holders that die. **What breaks it**: nothing; but more are answered nil.
//!
//! Next: `late_delete.rs`, where one at a time gets in.

use super::version_moved::{B_FINDS_WRITE_OF_A, B_OVERWRITES_A};
use super::*;
use crate::{section::redis_polling, stock::Store};

pub(super) const RACE: Race = Race {
    lessons: &["1.8"],
    title: Bilingual::of("EXEC 返回 nil", "EXEC answers nil"),
    breaks: Bilingual::of("没有 WATCH：SET 不问键变了没有", "without WATCH, SET does not ask whether the key has changed"),
    cure: Bilingual::of("WATCH，EXEC 得到 nil 就重来", "WATCH, and begin again where EXEC answers nil"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[],
    flaw: Variant {
        act: Act::custom_selling(Store::Redis, "get-then-set", &[], |ctx, job| {
            Box::pin(redis_polling::read_then_write(ctx, job))
        }),
        steps: &[
            say("A GET", "A: GET"),
            A.stops_at(Point::Read),
            say("B 也一样", "and so does B"),
            B.stops_at(Point::Read),
            All(B_OVERWRITES_A),
        ],
        expected: ExpectedResult::sold(2, 1).inside(2).noting("retries 0", "重试 0 次", "0 retries"),
    },
    cured: Variant {
        act: Act::Strategy("redis-watch"),
        steps: &[
            say("A 先 WATCH，再 GET", "A: WATCH, then GET"),
            A.stops_at(Point::Read),
            say("B 也一样", "and so does B"),
            B.stops_at(Point::Read),
            All(B_FINDS_WRITE_OF_A),
        ],
        expected: ExpectedResult::sold(2, 2).noting("retries 1", "重试 1 次", "1 retry"),
    },
};
