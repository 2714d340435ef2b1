//! How many requests each limit admits, and when.

use crate::support::{
    http::{ask, new_client},
    *,
};
use futures::future::join_all;
use oversell::{
    classroom::limits::{self, NGINX_ONLY_ROUTES, REQUESTS_PER_SECOND},
    error::Error,
};
use reqwest::StatusCode;
use std::time::Instant;

/// Checks that one limit of `REQUESTS_PER_SECOND` could have admitted this burst. The longer the burst took, the more it may
/// admit.
fn ensure_one_limit_admits(admitted: usize, took: Duration) -> Result<()> {
    let rate = REQUESTS_PER_SECOND.get() as usize;
    let most = rate + (took.as_secs_f64() * rate as f64).ceil() as usize;
    ensure!((rate..=most).contains(&admitted), "{admitted} in {took:?}");
    Ok(())
}

/// Ten a second for two instances together. The same checker refuses a limit in each instance.
#[apply(test!)]
async fn a_shared_limit_counts_all_instances_and_a_local_is_caught(servers: &Servers) -> Result<()> {
    let instances =
        || (0..2).map(|_| servers.with(|config| config.redis.prefix = "limits:".into())).collect::<Vec<_>>();
    let passed = |answers: Vec<Result<(), Error>>| -> Result<usize> {
        let mut passed = 0;
        for answer in answers {
            match answer {
                Ok(()) => passed += 1,
                Err(Error::Limited) => {}
                Err(other) => return Err(other.into()),
            }
        }
        Ok(passed)
    };
    // Creating the clients is not part of the burst.
    let (shared, each) = (instances(), instances());
    let begun = Instant::now();
    let answers = join_all((0..60).map(|n| limits::pass_shared(&shared[n % 2]))).await;
    ensure_one_limit_admits(passed(answers)?, begun.elapsed())?;
    let begun = Instant::now();
    let answers = (0..60).map(|n| limits::pass(&each[n % 2])).collect();
    caught(ensure_one_limit_admits(passed(answers)?, begun.elapsed()), " in ")
}

/// When each request of a burst was admitted or refused, counted from the first one.
struct Burst {
    admitted: Vec<Duration>,
    refused: Vec<Duration>,
}

async fn burst(base: &str, path: &str, of: usize) -> Result<Burst> {
    let (client, begun) = (new_client(), Instant::now());
    let answers = join_all((0..of).map(async |_| {
        let answer = client.get(format!("{base}{path}")).send().await?;
        let (status, at, retry) = (answer.status(), begun.elapsed(), answer.headers().contains_key("retry-after"));
        match (status, answer.text().await?.as_str()) {
            (StatusCode::OK, _) => Ok((at, true)),
            (StatusCode::TOO_MANY_REQUESTS, "很遗憾，没抢到") if retry => Ok((at, false)),
            other => bail!("{path}: {other:?}"),
        }
    }));
    let mut answers = answers.await.into_iter().collect::<Result<Vec<_>, _>>()?;
    answers.sort();
    let of = |passed: bool| answers.iter().filter(|(_, through)| *through == passed).map(|(at, _)| *at).collect();
    Ok(Burst { admitted: of(true), refused: of(false) })
}

/// Whether the answers leave a leaky bucket at one per second.
fn leaves_a_leaky_bucket(admitted: &[Duration]) -> bool {
    // nginx counts in milliseconds, and its timers may be slightly early.
    admitted.iter().zip(0..).all(|(at, n)| *at + Duration::from_millis(50) >= Duration::from_secs(n))
}

/// All at once: the limits are independent.
#[apply(test!)]
async fn nginx_keeps_its_limits_and_a_lone_instance_names_them() -> Result<()> {
    let lab = labs::full_lab().await?;
    let (base, instance) = (&lab.addresses().http, &lab.addresses().instances[0].url);
    // Admitted requests stay until all have arrived.
    let stay = |path: &str| format!("{path}?hold_ms=10000");
    let (queued, nodelay, address, server, limited) = tokio::try_join!(
        burst(base, NGINX_ONLY_ROUTES[0], 30),
        burst(base, NGINX_ONLY_ROUTES[1], 30),
        async { burst(base, &stay(NGINX_ONLY_ROUTES[2]), 40).await },
        async { burst(base, &stay(NGINX_ONLY_ROUTES[3]), 130).await },
        burst(instance, "/seckill/limited", 30),
    )?;
    let alone = ask(format!("{instance}{}", NGINX_ONLY_ROUTES[0])).await?;
    labs::keep_for_next_test(lab);

    // One, five in the bucket, and one more for each second until the last refusal.
    for (name, burst) in [("queued", &queued), ("nodelay", &nodelay)] {
        let (admitted, took) = (&burst.admitted, burst.refused.last());
        let took = took.with_context(|| format!("{name}: nobody was refused"))?;
        ensure!(
            (6..=6 + took.as_secs_f64().ceil() as usize).contains(&admitted.len()),
            "{name}: {admitted:?} were let through, in {took:?}"
        );
    }
    ensure!(leaves_a_leaky_bucket(&queued.admitted), "the leaky bucket: {:?}", queued.admitted);
    ensure!(
        !leaves_a_leaky_bucket(&nodelay.admitted),
        "a bucket without delay was taken for a leaky one: {:?}",
        nodelay.admitted
    );
    let at_once = (address.admitted.len(), server.admitted.len());
    ensure!(at_once == (20, 100), "at once: {at_once:?}");
    ensure_one_limit_admits(limited.admitted.len(), limited.admitted.last().copied().unwrap_or_default())?;
    let (status, words) = alone;
    ensure!(
        status == StatusCode::NOT_FOUND && NGINX_ONLY_ROUTES.iter().all(|path| words.contains(path)),
        "a lone instance says {status} {words}"
    );
    Ok(())
}
