//! Round trips, as Redis sees them, and allocations, as this process sees them.

use anyhow::{Context, Result};
use futures::StreamExt;
use redis::{Client, aio::Monitor};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use std::alloc::System;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// What marks the end of a count.
const END_MARKER: &str = "end of the count";

/// How often this process has asked for memory.
pub(crate) fn allocations() -> u64 {
    let stats = ALLOCATOR.stats();
    (stats.allocations + stats.reallocations) as u64
}

/// Counts commands that clients send. Nobody else may use the server meanwhile.
pub(crate) struct RoundTrips {
    client: Client,
    monitor: Monitor,
}

impl RoundTrips {
    pub(crate) async fn begin(url: &str) -> Result<Self> {
        let client = Client::open(url)?;
        let monitor = client.get_async_monitor().await?;
        Ok(Self { client, monitor })
    }

    /// How many commands came since then.
    pub(crate) async fn end(self) -> Result<u64> {
        // What its connection sends first comes before the mark too.
        let mut connection = self.client.get_multiplexed_async_connection().await?;
        let info: String = redis::cmd("CLIENT").arg("INFO").query_async(&mut connection).await?;
        let own = info.split(' ').find_map(|word| word.strip_prefix("addr="));
        let own = own.context("no address")?;
        redis::cmd("ECHO").arg(END_MARKER).exec_async(&mut connection).await?;
        let mut commands = self.monitor.into_on_message::<String>();
        let mut count = 0;
        loop {
            let command = commands.next().await.context("the monitor ended")?;
            if command.contains(END_MARKER) {
                return Ok(count);
            }
            // What a script does is no round trip.
            let by_script = command.contains(" lua]");
            count += u64::from(!by_script && !command.contains(own));
        }
    }
}
