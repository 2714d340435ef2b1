//! §4, §4.3 The holder of a row in `tb_lock` dies: its row stays.
//!
//! 1. A has inserted the row, has read, and is never heard of again.
//! 2. B cannot insert it, however long it waits.
//!
//! On its cure the row has the end of its lease in it. Nobody renews it for A, so it ends; B sweeps the row away, and gets in.
//!
//! (At the pace `Clock`, with a lab, A's process is killed. Else it goes on: A stands still for good, and its lease is ended
//! for it, since its watchdog would renew it.)
//!
//! What it survives: with the lease, a holder that dies. **What breaks it**: a holder that is not dead but paused, and then
//! writes.
//!
//! Next: `unlock_before_commit.rs`.

use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["4.3.2"],
    title: Bilingual::of("持有者死了，那一行还在", "The holder dies, and its row stays"),
    breaks: Bilingual::of("没人删那一行，谁也插不进去", "nobody deletes the row, and nobody can insert it"),
    cure: Bilingual::of("行里写上租约，到期由后来者清掉（4.3）", "the row has a lease, and a later one sweeps it away (4.3)"),
    anomalies: &[Anomaly::Stuck],
    begin: &[
        say("A 插入了那一行：拿到锁", "A has inserted the row: the lock is its own"),
        A.lease(3000).stops_at(Point::Read),
        say("A 死了，行还在", "A dies, and its row stays"),
        A.dies(),
    ],
    flaw: Variant {
        act: Act::Strategy("table-lock"),
        steps: &[
            say("B 插不进去，一直试", "B cannot insert it, and tries again and again"),
            LeaseTimePasses,
            B.impatient().times_out(),
            Note("B does not get in"),
        ],
        expected: ExpectedResult::NOTHING.inside(1).noting("B does not get in", "B 进不去", "B does not get in"),
    },
    cured: Variant {
        act: Act::Strategy("table-lock-lease"),
        steps: &[
            say("没人替 A 续期：租约到期", "nobody renews A's lease: it ends"),
            RowLeaseEnds,
            say("B 清掉那一行，进来了", "B sweeps the row away, and gets in"),
            B.finishes(),
        ],
        expected: ExpectedResult::sold(1, 1).inside(1),
    },
};
