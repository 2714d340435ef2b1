//! Whole instances behind nginx, and what happens to them: killed, stopped, hung up on, started too early.
//!
//! Each test has a lab of its own, so that it may break it.

use crate::{
    buyers::{until, until_seen},
    program,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use oversell::{
    lab::{Lab, Options, Part, Port},
    redis_at::redis_at,
    section::Name,
    stock::{self, Promise},
};
use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use std::{
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};
use tokio::{io::AsyncWriteExt, net::TcpStream, process::Command};

type Outcome = Result<(), String>;

/// Short enough for a test, long enough for a busy machine. The hand-written locks of Redis have the same by default.
pub(crate) const LEASE: Duration = Duration::from_secs(3);
/// An instance that hears nothing from ZooKeeper for a fifth of it makes its connection anew: a stall is no reason for that.
pub(crate) const SESSION: Duration = Duration::from_secs(10);
pub(crate) const STOCK: i64 = 1000;
pub(crate) const MINUTE: u64 = 60_000;

/// A lab with three instances whose leases and sessions are short.
pub(crate) async fn cluster(without: Vec<Part>) -> Result<Lab, String> {
    cluster_with(Options {
        without,
        ..program()
    })
    .await
}

/// The same, of these options.
pub(crate) async fn cluster_with(options: Options) -> Result<Lab, String> {
    let env = [
        ("OVERSELL__LOCK__LEASE_MS", LEASE.as_millis().to_string()),
        (
            "OVERSELL__ZOOKEEPER__SESSION_MS",
            SESSION.as_millis().to_string(),
        ),
    ];
    let env = env.map(|(key, value)| (key.to_owned(), value)).to_vec();
    Lab::start(Options {
        env,
        redis_ports: vec![0],
        ..options
    })
    .await
    .map_err(|e| e.to_string())
}

pub(crate) async fn put_stock(client: &Client, base: &str, count: i64) -> Outcome {
    let answer = client
        .put(format!("{base}/stock"))
        .json(&json!({"count": count}))
        .send()
        .await;
    let answer = answer.map_err(|e| e.to_string())?;
    if answer.status().is_success() {
        Ok(())
    } else {
        Err(answer.text().await.unwrap_or_default())
    }
}

pub(crate) async fn shelf(client: &Client, base: &str) -> Result<i64, String> {
    let stock: Value = json_of(client.get(format!("{base}/stock")).send().await).await?;
    stock["mysql"]["count"]
        .as_i64()
        .ok_or_else(|| format!("no count in {stock}"))
}

async fn json_of(answer: reqwest::Result<reqwest::Response>) -> Result<Value, String> {
    answer
        .map_err(|e| e.to_string())?
        .json()
        .await
        .map_err(|e| e.to_string())
}

pub(crate) fn check(base: &str, slug: &str, hold_ms: u64, wait_ms: u64) -> String {
    format!("{base}/check/lock/{slug}?hold_ms={hold_ms}&wait_ms={wait_ms}")
}

pub(crate) fn status(
    client: &Client,
    url: String,
) -> impl Future<Output = Result<StatusCode, String>> + use<> {
    let answer = client.get(url).send();
    async { answer.await.map(|a| a.status()).map_err(|e| e.to_string()) }
}

/// Asks until nobody gets in any more: the one who was sent before is inside. How many got in before it.
pub(crate) async fn until_held(client: &Client, base: &str, slug: &str) -> Result<i64, String> {
    for sold in 0..200 {
        match status(client, check(base, slug, 0, 100)).await? {
            // One that polls must find the lock free in between.
            StatusCode::OK => tokio::time::sleep(Duration::from_millis(20)).await,
            StatusCode::SERVICE_UNAVAILABLE => return Ok(sold),
            other => return Err(format!("{slug}: {other}")),
        }
    }
    Err(format!("{slug}: nobody is inside"))
}

/// `kill -9` of the instance that holds the lock, with others waiting: they go on once its lease or session has ended,
/// nothing is oversold, and nothing is left.
pub(crate) async fn others_go_on_after_the_holder_is_killed(slug: &'static str) -> Outcome {
    const WAITERS: i64 = 20;
    let lab = cluster(vec![]).await?;
    let client = Client::new();
    let (victim, others) = (
        lab.addresses().instances[0].clone(),
        &lab.addresses().instances[1..],
    );
    let other = others[0].url.clone();
    put_stock(&client, &other, STOCK).await?;
    let held = tokio::spawn(client.get(check(&victim.url, slug, MINUTE, MINUTE)).send());
    let mut sold = until_held(&client, &other, slug).await?;
    // Far longer than the lease or session lasts: who is not let in by then is answered 503.
    let waiters: Vec<_> = (0..WAITERS)
        .map(|n| {
            tokio::spawn(status(
                &client,
                check(&others[n as usize % 2].url, slug, 0, MINUTE),
            ))
        })
        .map(|waiter| async { waiter.await.map_err(|e| e.to_string())? })
        .collect();
    lab.kill(&victim.name).await.map_err(|e| e.to_string())?;
    if held.await.is_ok_and(|answer| answer.is_ok()) {
        return Err("the killed instance has answered".into());
    }
    for outcome in futures::future::join_all(waiters).await {
        match outcome? {
            StatusCode::OK => sold += 1,
            other => return Err(format!("a waiter was answered {other}")),
        }
    }
    let strategy = stock::find(slug).ok_or("no such strategy")?;
    let left = stock_of(&client, &other, strategy).await?;
    // The killed one was before its write, which it never sent.
    if STOCK - left != sold {
        return Err(format!(
            "{sold} were sold, and {} left the shelf",
            STOCK - left
        ));
    }
    let free = status(&client, check(&other, slug, 0, 0)).await?;
    lab.stop().await;
    if free == StatusCode::OK {
        Ok(())
    } else {
        Err(format!("the lock is not free: {free}"))
    }
}

/// Clients that hang up while they are inside, or while they wait, leave nothing: the next gets in at once.
pub(crate) async fn a_client_that_hangs_up_leaves_nothing() -> Outcome {
    let lab = cluster(vec![]).await?;
    let client = Client::new();
    let (first, second) = (
        lab.addresses().instances[0].url.clone(),
        lab.addresses().instances[1].url.clone(),
    );
    for strategy in stock::ALL.iter() {
        let slug = strategy.slug;
        put_stock(&client, &first, STOCK).await?;
        let inside = tokio::spawn(client.get(check(&first, slug, MINUTE, MINUTE)).send());
        let exclusive = strategy.promise == Promise::Lease
            || ["select-for-update", "redis-setnx", "table-lock"].contains(&slug);
        let mut sold = if exclusive {
            until_held(&client, &second, slug).await?
        } else {
            0
        };
        let waiting: Vec<_> = (0..5)
            .map(|_| tokio::spawn(client.get(check(&second, slug, MINUTE, MINUTE)).send()))
            .collect();
        inside.abort();
        waiting.iter().for_each(tokio::task::JoinHandle::abort);
        for base in [&first, &second] {
            match status(&client, check(base, slug, 0, 20_000)).await? {
                StatusCode::OK => sold += 1,
                other => return Err(format!("{slug}: after the hang-up {other}")),
            }
        }
        let gone = STOCK - stock_of(&client, &first, strategy).await?;
        if gone != sold && strategy.promise != Promise::Unsafe {
            return Err(format!(
                "{slug}: {sold} were sold, and {gone} left the shelf"
            ));
        }
    }
    nothing_is_left(&lab).await?;
    lab.stop().await;
    Ok(())
}

async fn stock_of(client: &Client, base: &str, strategy: &stock::Strategy) -> Result<i64, String> {
    let stock: Value = json_of(client.get(format!("{base}/stock")).send().await).await?;
    let store = serde_json::to_value(strategy.store).map_err(|e| e.to_string())?;
    stock[store.as_str().unwrap_or_default()]["count"]
        .as_i64()
        .ok_or_else(|| format!("no count in {stock}"))
}

/// No lock key, lock row, open transaction or lock node. What is given back in the background is waited for.
pub(crate) async fn nothing_is_left(lab: &Lab) -> Outcome {
    let every = Duration::from_millis(50);
    match until_seen(every, "nothing is left", || async {
        Ok(leftovers(lab).await?.is_empty())
    })
    .await
    {
        Err(never) => Err(format!("{never}; {}", leftovers(lab).await?)),
        clean => clean,
    }
}

/// What [`nothing_is_left`] sees now.
pub(crate) async fn leftovers(lab: &Lab) -> Result<String, String> {
    use sqlx::Connection;
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let mut mysql = sqlx::MySqlConnection::connect(&lab.addresses().mysql.url)
        .await
        .map_err(|e| text(&e))?;
    let rows: (i64,) = sqlx::query_as("SELECT COUNT(*) FROM tb_lock")
        .fetch_one(&mut mysql)
        .await
        .map_err(|e| text(&e))?;
    let open: (i64,) = sqlx::query_as("SELECT COUNT(*) FROM information_schema.innodb_trx")
        .fetch_one(&mut mysql)
        .await
        .map_err(|e| text(&e))?;
    let mut redis = redis_at(&lab.addresses().redis[0].url)
        .await
        .map_err(|e| text(&e))?;
    let mut keys: Vec<String> = redis::cmd("KEYS")
        .arg("*ock*")
        .query_async(&mut redis)
        .await
        .map_err(|e| text(&e))?;
    // The counter of a fenced lock never ends.
    keys.retain(|key| key != "stock" && !key.starts_with("redisson_lock_token:"));
    let zk = zookeeper_client::Client::connect(&lab.addresses().zookeeper.connect)
        .await
        .map_err(|e| text(&e))?;
    let named = stock::ALL.iter().flat_map(|strategy| strategy.names);
    let mut paths: Vec<String> = named
        .filter_map(|name| match name {
            Name::ZooKeeper(path) => Some((*path).to_owned()),
            _ => None,
        })
        .collect();
    let mut nodes = Vec::new();
    while let Some(path) = paths.pop() {
        match zk.get_children(&path).await {
            Err(zookeeper_client::Error::NoNode) => {}
            Ok((_, stat)) if stat.ephemeral_owner != 0 => nodes.push(path),
            below => paths.extend(
                below
                    .map_err(|e| text(&e))?
                    .0
                    .iter()
                    .map(|child| format!("{path}/{child}")),
            ),
        }
    }
    if (rows.0, open.0, keys.len(), nodes.len()) == (0, 0, 0, 0) {
        return Ok(String::new());
    }
    Ok(format!(
        "left: {} lock rows, {} transactions, keys {keys:?}, nodes {nodes:?}",
        rows.0, open.0
    ))
}

/// An instance starts without MySQL, says so, does what does not need it, and recovers.
pub(crate) async fn an_instance_starts_without_its_servers_and_recovers() -> Outcome {
    let mut lab = cluster(vec![Part::MySql, Part::Redis, Part::ZooKeeper, Part::Nginx]).await?;
    let client = Client::new();
    let base = lab.addresses().instances[0].url.clone();
    for strategy in stock::ALL.iter() {
        let answer = client
            .get(check(&base, strategy.slug, 0, 2000))
            .send()
            .await
            .map_err(|e| e.to_string())?;
        if answer.status() != StatusCode::SERVICE_UNAVAILABLE
            || !answer.headers().contains_key("retry-after")
        {
            return Err(format!(
                "{} without servers: {} {:?}",
                strategy.slug,
                answer.status(),
                answer.headers()
            ));
        }
    }
    for server in ["redis", "zookeeper", "mysql"] {
        lab.restart(server).await.map_err(|e| e.to_string())?;
    }
    until("it is ready, since all servers are there", || async {
        Ok(status(&client, format!("{base}/health/ready")).await? == StatusCode::OK)
    })
    .await?;
    for strategy in stock::ALL.iter() {
        let answered = status(&client, check(&base, strategy.slug, 0, 10_000)).await?;
        if answered != StatusCode::OK {
            return Err(format!("{} after the recovery: {answered}", strategy.slug));
        }
    }
    lab.stop().await;
    Ok(())
}

/// SIGTERM: what is under way is finished and answered.
pub(crate) async fn an_instance_that_is_told_to_end_finishes_what_is_under_way() -> Outcome {
    let lab = cluster(vec![Part::Nginx]).await?;
    let client = Client::new();
    let (victim, other) = (&lab.addresses().instances[0], &lab.addresses().instances[1]);
    put_stock(&client, &other.url, STOCK).await?;
    let under_way = tokio::spawn(status(
        &client,
        check(&victim.url, "redis-lock", 6000, MINUTE),
    ));
    let sold = until_held(&client, &other.url, "redis-lock").await?;
    lab.terminate(&victim.name)
        .await
        .map_err(|e| e.to_string())?;
    let answered = under_way.await.map_err(|e| e.to_string())??;
    let gone = STOCK - shelf(&client, &other.url).await?;
    nothing_is_left(&lab).await?;
    lab.stop().await;
    if answered == StatusCode::OK && gone == sold + 1 {
        Ok(())
    } else {
        Err(format!(
            "answered {answered}; {} were sold, and {gone} left the shelf",
            sold + 1
        ))
    }
}

/// A second SIGTERM ends an instance that still waits for a request to end.
pub(crate) async fn a_second_signal_ends_an_instance_at_once() -> Outcome {
    let text = |e: std::io::Error| e.to_string();
    let port = Port::free().map_err(|e| e.to_string())?;
    let address = format!("127.0.0.1:{}", port.number());
    // Its servers are not there, and it has minutes for a request whose body never comes to its end.
    let mut instance = Command::new(env!("CARGO_BIN_EXE_oversell"))
        .args([
            "serve",
            "--port",
            &port.number().to_string(),
            "--set",
            "server.shutdown_ms=600000",
        ])
        .args([
            "--set",
            "server.header_timeout_ms=600000",
            "--set",
            "mysql.url=mysql://root@127.0.0.1:1/test",
        ])
        .args([
            "--set",
            "redis.url=redis://127.0.0.1:1",
            "--set",
            "zookeeper.connect=127.0.0.1:1",
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(text)?;
    let pid = instance
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .ok_or("no process")?;
    let terminate = || kill(Pid::from_raw(pid), Signal::SIGTERM).map_err(|e| e.to_string());
    until("it listens", || async {
        Ok(TcpStream::connect(&address).await.is_ok())
    })
    .await?;
    let mut request = TcpStream::connect(&address).await.map_err(text)?;
    let head = "PUT /stock HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{";
    request.write_all(head.as_bytes()).await.map_err(text)?;
    let live = format!("http://{address}/health/live");
    status(&Client::new(), live).await?;
    terminate()?;
    until("it listens no more", || async {
        Ok(TcpStream::connect(&address).await.is_err())
    })
    .await?;
    if instance.try_wait().map_err(text)?.is_some() {
        return Err("it did not wait for the request".into());
    }
    terminate()?;
    match instance.wait().await.map_err(text)? {
        ended if ended.success() => Err("it ended as if nothing had been under way".into()),
        _ => Ok(()),
    }
}

/// An instance dies under load: nginx passes it over, no request is sent to a second instance, and each piece that left
/// the shelf has an answer that said so or one that was lost.
pub(crate) async fn an_instance_that_dies_under_load_is_passed_over() -> Outcome {
    const BUYERS: usize = 20;
    const EACH: usize = 100;
    let lab = cluster(vec![]).await?;
    let client = Client::new();
    let (nginx, victim) = (
        lab.addresses().http.clone(),
        lab.addresses().instances[0].name.clone(),
    );
    put_stock(&client, &nginx, (BUYERS * EACH) as i64).await?;
    let (sold, unknown) = (Arc::new(AtomicI64::new(0)), Arc::new(AtomicI64::new(0)));
    let buyers: Vec<_> = (0..BUYERS)
        .map(|_| {
            let (client, nginx, sold, unknown) =
                (client.clone(), nginx.clone(), sold.clone(), unknown.clone());
            tokio::spawn(async move {
                // GET: nginx holds it to be safe to repeat, and would send it again unless told not to.
                for _ in 0..EACH {
                    let counter =
                        match status(&client, check(&nginx, "single-update", 0, MINUTE)).await {
                            Ok(StatusCode::OK) => &sold,
                            _ => &unknown,
                        };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    while sold.load(Ordering::Relaxed) < (BUYERS * EACH / 4) as i64 {
        tokio::task::yield_now().await;
    }
    lab.kill(&victim).await.map_err(|e| e.to_string())?;
    for buyer in buyers {
        buyer.await.map_err(|e| e.to_string())?;
    }
    let (sold, unknown) = (
        sold.load(Ordering::Relaxed),
        unknown.load(Ordering::Relaxed),
    );
    let gone = (BUYERS * EACH) as i64 - shelf(&client, &lab.addresses().instances[1].url).await?;
    lab.stop().await;
    if !(sold..=sold + unknown).contains(&gone) {
        return Err(format!(
            "{sold} were sold, {unknown} are unknown, and {gone} left the shelf"
        ));
    }
    // Those under way at the death, and a probe of the dead one now and then; not a third of all that followed.
    if unknown > (BUYERS * EACH / 10) as i64 {
        Err(format!("{unknown} answers were lost"))
    } else {
        Ok(())
    }
}
