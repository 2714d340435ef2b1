//! §2.1, §2.2, [001] and [003]: SETNX and SET … NX, a lock that is checked before each write, and Redisson's read lock as a hash.

use crate::trials::{
    Cluster, NoVerdict, Observation,
    tools::{open_clients, own_key, send_command, wait_for_key},
};
use futures::future::try_join_all;
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use oversell::claims::words;
use redis::Value;
use std::{process::Stdio, time::Duration};
use tokio::{process::Command, time::sleep};

experiments! {
    "2.1" => one_of_many_clients_locks("SETNX"), twin("SET");
    "2.2.expire" => lock_without_expiry_stays("SET", &["EX", "1", "NX"]), twin("SETNX", &[]);
    "001.set-nx" => set_nx_answers_like_setnx(false), twin(true);
    "001.rw" => read_lock_is_a_hash(&[20_000, 1000]), twin(&[1000]);
    "003.look" => paused_writer_overwrites(CHECK_THEN_WRITE), twin(CHECK_AND_WRITE);
}

/// A program that writes while the lock is its own, and checks the lock by a command of its own before each write.
const CHECK_THEN_WRITE: &str =
    r#"while [ "$($cli get $lock)" = A ]; do $cli set $data A > /dev/null; done"#;
/// A program that checks the lock and writes in one script, while the lock is its own.
const CHECK_AND_WRITE: &str = r#"while [ "$($cli eval "if redis.call('get', KEYS[1]) == 'A' then return redis.call('set', KEYS[2], 'A') end return 0" 2 $lock $data)" = OK ]; do :; done"#;

/// Claim: a process that is paused at any moment, and resumed when another has the lock and has written, may write once more.
async fn paused_writer_overwrites(on: &Cluster, program: &str) -> Result<Observation, NoVerdict> {
    /// Many, because only some pauses fall between the check and the write.
    const PAUSES: usize = 30;
    let mut redis = on.redis().await?;
    let cli = format!("redis-cli -u {}", on.servers()?.first_redis());
    let mut overwritten = 0;
    for _ in 0..PAUSES {
        let [lock, data] = ["lock", "data"].map(own_key);
        send_command::<()>(&mut redis, &["SET", &lock, "A", "PX", "60000"]).await?;
        let mut process = Command::new("sh");
        process.args(["-c", program]).stdout(Stdio::null());
        process
            .env("cli", &cli)
            .env("lock", &lock)
            .env("data", &data);
        let mut process = process
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(NoVerdict::failed)?;
        let group = process
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .map(Pid::from_raw);
        let group = group.ok_or_else(|| NoVerdict::failed("sh has ended"))?;
        let signal = |signal| killpg(group, signal).map_err(NoVerdict::failed);
        wait_for_key(&mut redis, &data).await?;
        sleep(Duration::from_millis(fastrand::u64(0..40))).await;
        signal(Signal::SIGSTOP)?;
        for key in [&lock, &data] {
            send_command::<()>(&mut redis, &["SET", key, "B"]).await?;
        }
        signal(Signal::SIGCONT)?;
        process.wait().await.map_err(NoVerdict::failed)?;
        let written: String = send_command(&mut redis, &["GET", &data]).await?;
        overwritten += usize::from(written != "B");
        send_command::<()>(&mut redis, &["DEL", &lock, &data]).await?;
    }
    let words = words!(
        "一个进程每次写之前都先判断锁；随机的时刻让它停顿，锁换了人、新的持有者写完，它再继续：{PAUSES} 次里 {overwritten} 次又写了一次，覆盖了新的数据。",
        "A process looks at its lock before each write. It is stopped at random moments, another has the lock and writes, and it goes on: {overwritten} of {PAUSES} times it wrote once more, over what is new."
    );
    Ok(Observation::holds(overwritten > 0, words).value("overwritten", overwritten))
}

/// Claim: of fifty clients that send `command` at once for one key, exactly one succeeds.
async fn one_of_many_clients_locks(on: &Cluster, command: &str) -> Result<Observation, NoVerdict> {
    const CLIENTS: usize = 50;
    /// A command that lets two succeed shows it in the first round; more rounds make a chance unlikely.
    const ROUNDS: usize = 20;
    let (mut clients, mut ones) = (open_clients(on, CLIENTS).await?, Vec::new());
    for _ in 0..ROUNDS {
        let key = own_key("lock");
        let line = [command, &key, "111"];
        let sent = clients.iter_mut().map(|client| send_command(client, &line));
        let answers: Vec<Value> = try_join_all(sent).await?;
        send_command::<()>(&mut clients[0], &["DEL", &key]).await?;
        ones.push(answers.iter().filter(|a| **a != Value::Int(0)).count());
    }
    let words = words!(
        "{CLIENTS} 个客户端同时发，{ROUNDS} 次；每次成功的个数：{ones:?}。",
        "{CLIENTS} clients at once, {ROUNDS} times; how many had it each time: {ones:?}."
    );
    Ok(Observation::holds(ones.iter().all(|n| *n == 1), words).value("had_it", ones))
}

/// Claim: the lock of a client that dies between SETNX and EXPIRE never ends, and that of one that has sent SET … EX NX does.
async fn lock_without_expiry_stays(
    on: &Cluster,
    second: &str,
    with_expiry: &[&str],
) -> Result<Observation, NoVerdict> {
    let keys = [own_key("lock"), own_key("lock")];
    let two = ["SETNX", &keys[0], "111"];
    let one = [&[second, &keys[1], "111"], with_expiry].concat();
    for line in [&two[..], &one] {
        let mut client = open_clients(on, 1).await?;
        send_command::<Value>(&mut client[0], line).await?;
        // The connection ends here, as if its process had died.
    }
    let mut redis = on.redis().await?;
    sleep(Duration::from_millis(1500)).await;
    let mut left = Vec::new();
    for key in &keys {
        left.push(send_command::<i64>(&mut redis, &["TTL", key]).await?);
    }
    send_command::<()>(&mut redis, &["DEL", &keys[0], &keys[1]]).await?;
    let words = words!(
        "1.5 s 以后的 TTL：SETNX 之后、EXPIRE 之前就断开的 {}（-1 是永不过期），SET … EX 1 NX 之后断开的 {}（-2 是键已经没有了）。",
        "TTL 1.5 s later: {} where the client was gone between SETNX and EXPIRE (-1: it never ends), {} where it was gone after SET … EX 1 NX (-2: there is no key).",
        left[0],
        left[1]
    );
    Ok(Observation::holds(left == [-1, -2], words).value("ttl", left))
}

/// Claim: SET … NX answers 1 to the first client and 0 to the second.
async fn set_nx_answers_like_setnx(
    on: &Cluster,
    is_deleted: bool,
) -> Result<Observation, NoVerdict> {
    let (mut redis, key) = (on.redis().await?, own_key("lock"));
    let first: Value = send_command(&mut redis, &["SET", &key, "any", "NX"]).await?;
    if is_deleted {
        send_command::<()>(&mut redis, &["DEL", &key]).await?;
    }
    let second: Value = send_command(&mut redis, &["SET", &key, "any", "NX"]).await?;
    send_command::<()>(&mut redis, &["DEL", &key]).await?;
    let words = words!(
        "第一次 {first:?}，第二次 {second:?}：SET … NX 返回 OK 或空，返回 1 和 0 的是 SETNX。",
        "First {first:?}, then {second:?}: SET … NX answers OK or nil; it is SETNX that answers 1 and 0."
    );
    Ok(Observation::holds(
        first == Value::Int(1) && second == Value::Int(0),
        words,
    ))
}

/// Claim: the read lock is a hash with `mode` and a count for each reader, and lasts as long as the longest lease. One reader for
/// each of `leases`, in ms; it holds for two readers, if more than 1000 ms are left.
async fn read_lock_is_a_hash(on: &Cluster, leases: &[u64]) -> Result<Observation, NoVerdict> {
    let product = on.create_product(5000).await?;
    let (mut redis, key) = (on.redis().await?, format!("rwLock:{}", product.id));
    for lease in leases {
        on.get(&format!(
            "{}/test/read?stock_id={}&hold_ms={lease}&who={lease}",
            on.nginx(),
            product.id
        ))
        .await?
        .success()?;
    }
    let fields: Vec<(String, String)> = send_command(&mut redis, &["HGETALL", &key]).await?;
    let left: i64 = send_command(&mut redis, &["PTTL", &key]).await?;
    product.remove().await?;
    let mode = fields
        .iter()
        .find(|(field, _)| field == "mode")
        .map_or("", |(_, mode)| mode.as_str());
    let readers = fields
        .iter()
        .filter(|(field, count)| field != "mode" && count == "1")
        .count();
    let words = words!(
        "读者的租约 {leases:?} ms：mode 是 {mode}，{readers} 个持有者，租约还剩 {left} ms。",
        "Readers with leases of {leases:?} ms: mode is {mode}, {readers} holders, {left} ms are left."
    );
    Ok(Observation::holds(
        mode == "read" && readers == 2 && left > 1000,
        words,
    ))
}
