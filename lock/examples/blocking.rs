//! Plain threads, without async code: the client lives in a runtime of its own, and each thread blocks on a call.
//!
//! `cargo run -p oversell-lock --example blocking --features redis -- redis://127.0.0.1:6379`

use oversell_lock::redis::{RedisClient, RedisOptions};
use std::{env, error::Error, io, thread, time::Duration};
use tokio::runtime::Builder;

const WAIT: Duration = Duration::from_secs(5);

fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    // A thread of the runtime renews the leases: a runtime without threads of its own would stand still between two calls.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let options = RedisOptions::new(url).prefix("example:").runtime(runtime.handle().clone());
    let redis = RedisClient::new(options)?;

    thread::scope(|threads| {
        let work = |number| {
            let (redis, runtime) = (&redis, &runtime);
            threads.spawn(move || -> Result<(), String> {
                let guard = runtime.block_on(redis.lock("door").acquire(WAIT)).map_err(|error| error.to_string())?;
                // Blocking work cannot be dropped at a loss, so it asks before each step that matters.
                write_the_invoice(number).map_err(|error| error.to_string())?;
                if guard.is_lost() {
                    return Err("another may have been inside".into());
                }
                runtime.block_on(guard.release()).map_err(|error| error.to_string())
            })
        };
        let all: Vec<_> = (1..=4).map(work).collect();
        all.into_iter().try_for_each(|thread| thread.join().map_err(|_| "it panicked")?)
    })?;

    runtime.block_on(redis.close());
    Ok(())
}

fn write_the_invoice(number: u32) -> io::Result<()> {
    thread::sleep(Duration::from_millis(50));
    println!("invoice {number} is written by one thread at a time");
    Ok(())
}
