//! [003] The clock of one of Redlock's nodes jumps forward.
//!
//! 1. A does not reach two of the five nodes, and has the lock on the other three.
//! 2. The clock of one of these jumps: A's key ends there, long before its time. B gets that one and the two.
//!
//! On its cure the row looks at a fencing token: whatever a clock does to the lock, A's older token is refused.
//!
//! The clock is the node's own, as the lab shows it: it is 90 s ahead until the race is over.
//!
//! **What it cannot do** if the lab's Redis has no such clock, or the pace forces leases: let a clock jump. Then the node's key
//! is ended early, which is all that Redis does when its clock jumps.
//!
//! Next: `deadlock`s, in `classroom::deadlocks`.

use super::forgetful_node::A_LOCKS_THREE_NODES;
use super::*;

pub(super) const RACE: Race = Race {
    lessons: &["003.redlock.clock"],
    title: Bilingual::of("一个节点的时钟跳了", "The clock of one node jumps"),
    breaks: Bilingual::of("那个节点上 A 的锁提前到期", "A's lock ends early on that node"),
    cure: Bilingual::of("不靠时钟：行拒绝旧令牌", "no clock: the row refuses the older token"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[],
    flaw: Variant {
        act: Act::Strategy("redis-redlock"),
        steps: &[
            All(A_LOCKS_THREE_NODES),
            say("节点的时钟往前跳：A 的锁提前到期", "a node's clock jumps forward: A's lock ends early there"),
            ClockJumps(2),
            say("B 拿到锁，读", "B takes the lock, and reads"),
            B.stops_at(Point::Read),
            say("B 写完", "B writes"),
            B.finishes(),
            say("A 接着写", "A writes too"),
            A.finishes(),
        ],
        expected: ExpectedResult::sold(2, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("redis-fenced"),
        steps: &[
            say("A 拿到锁和令牌，读库存", "A has the lock and a token, and reads"),
            A.stops_at(Point::Read),
            say("节点的时钟往前跳：A 的锁提前到期", "a node's clock jumps forward: A's lock ends early there"),
            ClockJumps(0),
            say("B 拿到锁，读", "B takes the lock, and reads"),
            B.stops_at(Point::Read),
            say("B 写完", "B writes"),
            B.finishes(),
            say("A 接着写", "A writes too"),
            A.fails_fenced(),
        ],
        expected: ExpectedResult::sold(1, 1).inside(2),
    },
};
