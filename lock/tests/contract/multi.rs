//! What `MultiLock` promises beyond the random programs (`programs.rs`).

use super::support::*;
use oversell_lock::MultiLock;

/// The names of its three parts.
pub(crate) fn parts(name: &str) -> [String; 3] {
    [1, 2, 3].map(|n| format!("{name}-{n}"))
}

/// A lock of these parts, in either order.
pub(crate) fn in_any_order<L: Lock>(mut parts: [L; 3]) -> MultiLock<L> {
    if fastrand::bool() {
        parts.reverse();
    }
    MultiLock::new(parts.into())
}

/// The second part is rarely free: five contenders of its process hand it on.
#[apply(test!)]
async fn a_part_with_a_long_line_is_had_in_the_end(redis: &Redis) -> Result {
    let (name, client) = (name(), redis.client().await);
    // Long enough for a busy machine to renew them in time.
    let lease = Lease::Watchdog(SOON * 3);
    let [first, second, _] = parts(&name).map(|part| client.lock(&part).lease(lease));
    let users = try_join_all((0..5).map(async |_| {
        loop {
            let guard = second.acquire(SOON * 3).await?;
            tokio::time::sleep(Duration::from_millis(40)).await;
            guard.release().await?;
        }
        #[allow(unreachable_code, reason = "it says what the others come to")]
        anyhow::Ok(())
    }));
    let both = MultiLock::new(vec![first, second.clone()]);
    tokio::select! {
        ended = users => ended.map(drop),
        guard = both.acquire(SOON) => Ok(guard.context("it starves")?.release().await?),
    }
}
