//! How many are let through by each limit, and when.

use crate::{buyers::text, instances::cluster, support::Servers};
use futures::future::join_all;
use oversell::{
    classroom::limits::{self, AT_NGINX, PER_SECOND},
    error::Error,
};
use reqwest::{Client, StatusCode};
use std::time::{Duration, Instant};

type Outcome = Result<(), String>;

/// Of a burst at several instances, as many as one limit of `PER_SECOND` may let through; or why not. The longer the
/// burst took, the more may be.
fn as_one_limit(let_through: usize, took: Duration) -> Outcome {
    let rate = PER_SECOND.get() as usize;
    let most = rate + (took.as_secs_f64() * rate as f64).ceil() as usize;
    if (rate..=most).contains(&let_through) {
        Ok(())
    } else {
        Err(format!("{let_through} in {took:?}"))
    }
}

/// Ten a second of two instances together; a limit in each is caught by the same checker.
pub(crate) async fn a_shared_limit_counts_all_instances_and_one_in_each_is_caught(
    servers: &Servers,
) -> Outcome {
    let instances = || {
        (0..2)
            .map(|_| servers.with(|config| config.redis.prefix = "limits:".into()))
            .collect::<Vec<_>>()
    };
    let passed = |answers: Vec<Result<(), Error>>| -> Result<usize, String> {
        let count = answers.iter().filter(|answer| answer.is_ok()).count();
        match answers
            .into_iter()
            .filter_map(Result::err)
            .find(|error| !matches!(error, Error::Limited))
        {
            Some(error) => Err(error.to_string()),
            None => Ok(count),
        }
    };
    // The time that it takes to make them is no part of the burst.
    let (shared, each) = (instances(), instances());
    let begun = Instant::now();
    let answers = join_all((0..60).map(|n| limits::pass_shared(&shared[n % 2]))).await;
    as_one_limit(passed(answers)?, begun.elapsed())?;
    let begun = Instant::now();
    let answers = (0..60).map(|n| limits::pass(&each[n % 2])).collect();
    match as_one_limit(passed(answers)?, begun.elapsed()) {
        Err(_) => Ok(()),
        Ok(()) => Err("two limits were taken for one".into()),
    }
}

/// What became of a burst: when each was let through, and when each was refused, since the first was sent.
struct Burst {
    let_through: Vec<Duration>,
    refused: Vec<Duration>,
}

async fn burst(base: &str, path: &str, of: usize) -> Result<Burst, String> {
    let (client, begun) = (Client::new(), Instant::now());
    let answers = join_all((0..of).map(async |_| {
        let answer = client
            .get(format!("{base}{path}"))
            .send()
            .await
            .map_err(text)?;
        let (status, at, retry) = (
            answer.status(),
            begun.elapsed(),
            answer.headers().contains_key("retry-after"),
        );
        match (status, answer.text().await.map_err(text)?.as_str()) {
            (StatusCode::OK, _) => Ok((at, true)),
            (StatusCode::TOO_MANY_REQUESTS, "很遗憾，没抢到") if retry => Ok((at, false)),
            other => Err(format!("{path}: {other:?}")),
        }
    }));
    let mut answers = answers.await.into_iter().collect::<Result<Vec<_>, _>>()?;
    answers.sort();
    let of = |passed: bool| {
        answers
            .iter()
            .filter(|(_, through)| *through == passed)
            .map(|(at, _)| *at)
            .collect()
    };
    Ok(Burst {
        let_through: of(true),
        refused: of(false),
    })
}

/// Whether the answers leak out of a bucket, one each second: the second not before one second, the third not before two.
fn leaks(let_through: &[Duration]) -> bool {
    // nginx reckons in milliseconds, and its timers may be some early.
    let_through
        .iter()
        .zip(0..)
        .all(|(at, n)| *at + Duration::from_millis(50) >= Duration::from_secs(n))
}

/// All at once, since their limits do not know of each other.
pub(crate) async fn nginx_lets_through_what_its_limits_say_and_a_lone_instance_names_them()
-> Outcome {
    let lab = cluster(vec![]).await?;
    let base = lab.addresses().http.clone();
    // Whoever is let in stays until all have come, however late.
    let stay = |path: &str| format!("{path}?hold_ms=20000");
    let (queued, nodelay, address, server, limited) = tokio::try_join!(
        burst(&base, AT_NGINX[0], 30),
        burst(&base, AT_NGINX[1], 30),
        async { burst(&base, &stay(AT_NGINX[2]), 40).await },
        async { burst(&base, &stay(AT_NGINX[3]), 130).await },
        burst(&lab.addresses().instances[0].url, "/seckill/limited", 30),
    )?;
    let alone = Client::new()
        .get(format!(
            "{}{}",
            lab.addresses().instances[0].url,
            AT_NGINX[0]
        ))
        .send()
        .await;
    let alone = alone.map_err(text)?;
    let (status, words) = (alone.status(), alone.text().await.map_err(text)?);
    lab.stop().await;

    // One, and five in the bucket; and one more for each second that the burst took, as the last refusal tells.
    for (
        name,
        Burst {
            let_through,
            refused,
        },
    ) in [("queued", &queued), ("nodelay", &nodelay)]
    {
        let took = refused
            .last()
            .ok_or(format!("{name}: nobody was refused"))?;
        if !(6..=6 + took.as_secs_f64().ceil() as usize).contains(&let_through.len()) {
            return Err(format!(
                "{name}: {let_through:?} were let through, in {took:?}"
            ));
        }
    }
    if !leaks(&queued.let_through) {
        return Err(format!("the leaky bucket: {:?}", queued.let_through));
    }
    if leaks(&nodelay.let_through) {
        return Err(format!(
            "a bucket without delay was taken for a leaky one: {:?}",
            nodelay.let_through
        ));
    }
    let at_once = (address.let_through.len(), server.let_through.len());
    if at_once != (20, 100) {
        return Err(format!("at once: {at_once:?}"));
    }
    as_one_limit(
        limited.let_through.len(),
        limited.let_through.last().copied().unwrap_or_default(),
    )?;
    if status == StatusCode::NOT_FOUND && AT_NGINX.iter().all(|path| words.contains(path)) {
        Ok(())
    } else {
        Err(format!("a lone instance says {status} {words}"))
    }
}
