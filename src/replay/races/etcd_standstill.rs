//! etcd stands still for longer than a lease: nobody can renew it, and its holder was never paused.
//!
//! 1. A has the lock, with a lease of 2 s, and has read; it works on.
//! 2. etcd is stopped (SIGSTOP) for longer, and goes on: by its clock the lease is over, and it deletes A's key. B takes the lock,
//!    reads and writes.
//! 3. A writes over B.
//!
//! On its cure the token is the revision that created the key: the row has seen B's, and refuses A's.
//!
//! **What it cannot do**: let the lease end by force: etcd ends it by its own clock at every pace.
//!
//! Next: `paused_session.rs`, in which the holder stands still.

use super::*;

/// Longer than A's lease.
const STANDSTILL: Duration = Duration::from_secs(4);

pub(super) const RACE: Race = Race {
    lessons: &["beyond.etcd-still"],
    title: Bilingual::of("锁的服务器停顿得比租约还久", "A server of locks that stands still beyond a lease"),
    breaks: Bilingual::of(
        "没能续期，etcd 一恢复租约就到期，而持有者从未停顿",
        "nobody could renew the lease, and etcd ends it when it goes on; its holder was never paused",
    ),
    cure: Bilingual::of("创建版本号当令牌，行拒绝旧的", "the create revision is the token, and the row refuses an old one"),
    anomalies: &[Anomaly::LostUpdate],
    begin: &[
        say("A 创建了键，拿到锁，读库存", "A makes its key, has the lock, and reads"),
        A.self_ending_lease(2000, 2000).stops_at(Point::Read),
        say("etcd 停顿，比租约还久；A 照常工作", "etcd stands still for longer than the lease; A works on"),
        Fault(Action::Pause, "etcd"),
        Custom(|_| {
            Box::pin(async {
                tokio::time::sleep(STANDSTILL).await;
                Ok(())
            })
        }),
        say("etcd 恢复：租约到期，A 的键被删", "etcd goes on: the lease is over, and A's key is deleted"),
        Fault(Action::Resume, "etcd"),
        LockIsFree,
        say("B 拿到锁，读", "B takes the lock, and reads"),
        B.stops_at(Point::Read),
        say("B 写完，释放锁", "B writes, and releases"),
        B.finishes(),
    ],
    flaw: Variant {
        act: Act::Strategy("etcd-lock"),
        steps: &[say("A 接着写", "A writes"), A.finishes_with_lock_lost()],
        expected: ExpectedResult::sold(2, 1).inside(2),
    },
    cured: Variant {
        act: Act::Strategy("etcd-fenced"),
        steps: &[
            say(
                "A 带着旧令牌去写：行见过更新的令牌，拒绝它",
                "A writes with its old token: the row has a newer one, and refuses it",
            ),
            A.fails_fenced(),
        ],
        expected: ExpectedResult::sold(1, 1).inside(2),
    },
};
