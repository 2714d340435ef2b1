//! A process that uses one library, as it is told by lines: see [`Peer`](oversell_lab::clients::peer::Peer).
//!
//! `contend KIND NAME CONTENDERS MILLIS`: all begin at once; each acquires and releases until the time is over, at least once.
//! `hand-off NAME TIMES`: one client has the lock and another one waits. Both answer an [`Measurement`].

use super::{
    client::Client,
    counts::allocations,
    scene::{Kind, Library, Measurement},
};
use anyhow::{Context, Result, bail};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, BufReader, stdin},
    sync::Barrier,
    task::JoinSet,
    time::{Instant, sleep},
};

/// The pause before a release is random up to this: longer than any library's pause between two tries.
const MAX_HELD_TIME: Duration = Duration::from_millis(250);

pub(crate) async fn run(library: Library, url: &str) -> Result<()> {
    let client = Client::connect(library, url).await?;
    let other = Client::connect(library, url).await?;
    let mut lines = BufReader::new(stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let mut words = line.split(' ');
        let (id, _who) = words.next().zip(words.next()).context("no id")?;
        let words: Vec<&str> = words.collect();
        match command(&words, &client, &other).await {
            Ok(answer) => println!("{id} ok {answer}"),
            Err(error) => println!("{id} failed {error:#}"),
        }
    }
    Ok(())
}

async fn command(words: &[&str], client: &Client, other: &Client) -> Result<Measurement> {
    match words {
        ["ping"] => {
            client.ping().await?;
            other.ping().await?;
            Ok(Measurement::default())
        }
        ["contend", kind, name, contenders, millis] => {
            let time = Duration::from_millis(millis.parse()?);
            contend(client, kind.parse()?, name, contenders.parse()?, time).await
        }
        ["hand-off", name, times] => hand_off(client, other, name, times.parse()?).await,
        _ => bail!("there is no command {words:?}"),
    }
}

async fn contend(client: &Client, kind: Kind, name: &str, contenders: usize, time: Duration) -> Result<Measurement> {
    client.prepare(kind, name).await?;
    let begin = Arc::new(Barrier::new(contenders + 1));
    let mut running = JoinSet::new();
    for contender in 0..contenders {
        let (client, begin, name) = (client.clone(), Arc::clone(&begin), name.to_owned());
        let kind = kind.of(contender);
        running.spawn(async move {
            begin.wait().await;
            let (begun, mut holds) = (Instant::now(), 0);
            loop {
                client.take(kind, &name).await?.release().await?;
                holds += 1;
                if begun.elapsed() >= time {
                    return anyhow::Ok(holds);
                }
            }
        });
    }
    begin.wait().await;
    let (begun, before, mut holds) = (Instant::now(), allocations(), 0);
    while let Some(contender) = running.join_next().await {
        holds += contender??;
    }
    Ok(Measurement { holds, time: begun.elapsed(), allocations: allocations() - before })
}

async fn hand_off(client: &Client, other: &Client, name: &str, times: u64) -> Result<Measurement> {
    let mut time = Duration::ZERO;
    for _ in 0..times {
        let held = client.take(Kind::Lock, name).await?;
        let (waiter, name) = (other.clone(), name.to_owned());
        let waiting = tokio::spawn(async move {
            let hold = waiter.take(Kind::Lock, &name).await?;
            anyhow::Ok((hold, Instant::now()))
        });
        sleep(MAX_HELD_TIME.mul_f64(fastrand::f64())).await;
        let released = Instant::now();
        held.release().await?;
        let (hold, acquired) = waiting.await??;
        time += acquired.saturating_duration_since(released);
        hold.release().await?;
    }
    Ok(Measurement { holds: times, time, allocations: 0 })
}
