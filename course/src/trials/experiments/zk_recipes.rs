//! §3.7.5: two clients that disagree on the number of leases. No route takes that number, so this is no typed lesson.

use crate::trials::{Cluster, NoVerdict, Observation};
use oversell::claims::words;
use oversell_lock::{
    LockError,
    zk::{ZkClient, ZkOptions},
};
use std::time::Duration;

/// A client of the lock library with its own session.
fn new_client(on: &Cluster) -> Result<ZkClient, NoVerdict> {
    ZkClient::new(ZkOptions::new(&on.servers()?.zookeeper.connect)).map_err(NoVerdict::failed)
}

/// Time limit of the wait for a lease that should be free.
const LEASE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the second client waits for one more lease. It gets it at once if it says that there are more leases; else it waits in
/// vain, so this is short.
const EXTRA_LEASE_TIMEOUT: Duration = Duration::from_secs(1);

/// Claim: if two clients disagree on the number of leases, more are held than one of them allows. `says`: the number of the second.
pub(super) async fn clients_disagree_on_leases(on: &Cluster, says: u32) -> Result<Observation, NoVerdict> {
    let (zookeeper, other) = (new_client(on)?, new_client(on)?);
    let path = format!("/course/semaphore-{:08x}", fastrand::u32(..));
    let two = zookeeper.semaphore(&path, 2).acquire(2, LEASE_TIMEOUT).await;
    let two = two.map_err(NoVerdict::failed)?;
    let third = match other.semaphore(&path, says).acquire(1, EXTRA_LEASE_TIMEOUT).await {
        Ok(third) => third,
        Err(LockError::Taken { .. }) => Vec::new(),
        Err(error) => return Err(NoVerdict::failed(error)),
    };
    let inside = two.len() + third.len();
    for lease in two.into_iter().chain(third) {
        lease.release().await.map_err(NoVerdict::failed)?;
    }
    zookeeper.close().await;
    other.close().await;
    let words = words!(
        "一个说有 2 个租约，都拿走了；另一个说有 {says} 个，再来拿：同时持有的 {inside} 个。",
        "One says that there are 2 leases and has them; another says {says} and comes for one: {inside} are inside at once."
    );
    Ok(Observation::holds(inside > 2, words).value("inside", inside))
}
