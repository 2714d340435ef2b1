//! Metrics of all locks of a client, by an observer: how long one waits and holds, what was not acquired, what was lost.
//!
//! The crate `metrics` takes them, and here Prometheus' exporter prints what it would be asked for. For OpenTelemetry there is an
//! exporter in its place; and each acquire is a span of `tracing`, `acquire`, in which `tracing-opentelemetry` shows the wait.
//!
//! `cargo run -p oversell-lock --example metrics --features redis -- redis://127.0.0.1:6379`

use metrics::{counter, histogram};
use metrics_exporter_prometheus::PrometheusBuilder;
use oversell_lock::{
    LockEvent,
    redis::{RedisClient, RedisOptions},
};
use std::{env, error::Error, io, time::Duration};

const WAIT: Duration = Duration::from_secs(5);

/// The kind is a label; a name is not, if there are as many as there are products.
fn count(event: LockEvent<'_>) {
    let kind = event.kind();
    match event {
        LockEvent::Acquired { waited, .. } => {
            histogram!("lock_wait_seconds", "kind" => kind, "outcome" => "acquired").record(waited);
        }
        LockEvent::NotAcquired { waited, .. } => {
            histogram!("lock_wait_seconds", "kind" => kind, "outcome" => "not acquired").record(waited);
        }
        LockEvent::Released { held, .. } => histogram!("lock_hold_seconds", "kind" => kind).record(held),
        LockEvent::Lost { .. } => counter!("lock_losses_total", "kind" => kind).increment(1),
        LockEvent::RenewedLate { .. } => counter!("lock_late_renewals_total", "kind" => kind).increment(1),
        LockEvent::NotReleased { .. } => counter!("lock_failed_releases_total", "kind" => kind).increment(1),
        _ => {}
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let exporter = PrometheusBuilder::new().install_recorder()?;
    let redis = RedisClient::new(RedisOptions::new(url).prefix("example:").observer(count))?;

    redis.fair_lock("report").with(WAIT, |_| work()).await?;
    redis.semaphore("printers").initially(2).with(1, WAIT, work).await?;
    let guard = redis.lock("door").acquire(WAIT).await?;
    if let Err(taken) = redis.lock("door").try_acquire().await {
        println!("another: {taken}");
    }
    guard.release().await?;

    // The last event is told by the task that has released.
    redis.close().await;
    print!("{}", exporter.render());
    Ok(())
}

async fn work() -> io::Result<()> {
    tokio::time::sleep(Duration::from_millis(20)).await;
    Ok(())
}
