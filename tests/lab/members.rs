//! Faults on members of whole labs.

use crate::support::{
    buyers::under_load,
    http::{answer, ask, client},
    labs, *,
};
use oversell_lab::{
    addresses::{self, Addresses},
    lab::{Lab, Options},
};
use reqwest::StatusCode;
use sqlx::MySqlPool;
use std::{os::unix::fs::PermissionsExt, path::Path, time::Instant};
use tokio::process::Command;

/// Only if root starts the lab; otherwise no process could be root's.
#[apply(test!)]
async fn no_process_of_a_lab_is_root_and_both_page_urls_agree() -> Result<()> {
    let lab = labs::full_lab().await?;
    let at = lab.addresses();
    let servers = [at.mysql.pid, at.zookeeper.pid, at.nginx.pid];
    let nodes = at.redis.iter().map(|node| node.pid);
    let instances = at.instances.iter().map(|instance| instance.pid);
    let root: Vec<_> =
        servers.into_iter().chain(nodes).chain(instances).flat_map(with_children).filter(|pid| is_root(*pid)).collect();
    ensure!(root.is_empty() && lab.warning().is_none(), "processes that run as root: {root:?}; {:?}", lab.warning());
    let through_nginx = page(&at.http).await?;
    let embedded = page(&at.instances[0].url).await?;
    ensure!(through_nginx == embedded, "{through_nginx:?} through nginx, {embedded:?} without");
    labs::keep_for_next_test(lab);
    Ok(())
}

/// The page in a browser.
async fn page(base: &str) -> Result<(String, Vec<String>)> {
    let answer = client().get(base).send().await?;
    let mut headers = Vec::new();
    for name in ["content-security-policy", "referrer-policy", "x-content-type-options", "cache-control"] {
        let header = answer.headers().get(name);
        let header = header.with_context(|| format!("{base} leaves out {name}"))?;
        headers.push(header.to_str()?.to_owned());
    }
    Ok((answer.text().await?, headers))
}

fn status(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

fn is_root(pid: u32) -> bool {
    status(pid).lines().filter_map(|line| line.strip_prefix("Uid:")).any(|users| users.split_whitespace().any(|u| u == "0"))
}

/// nginx has worker processes.
fn with_children(pid: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let others = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = format!("PPid:\t{pid}");
    let children = others.filter(|other| status(*other).lines().any(|line| line == parent));
    children.chain([pid]).collect()
}

/// `oversell lab` and `oversell lab fault`, as typed by a teacher.
#[apply(test!)]
async fn a_member_of_a_running_lab_is_broken_and_mended_by_hand() -> Result<()> {
    labs::with_lab_command(&["--instances=0", "--redis-ports=0,0"], by_hand).await
}

async fn by_hand(lab_json: &Path, start: Addresses) -> Result<()> {
    let rights = std::fs::metadata(lab_json)?.permissions().mode();
    ensure!(rights.trailing_zeros() >= 6, "others can read the token");
    let expect = async |action: &str, member: &str, code: i32, words: &str| {
        let said = Command::new(env!("CARGO_BIN_EXE_oversell"))
            .args(["lab", "fault", action, member, "--lab-json"])
            .arg(lab_json)
            .output()
            .await?;
        let ended = said.status.code();
        let said = [said.stdout, said.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
        ensure!(ended == Some(code) && said.contains(words), "{action} {member}: {ended:?}, {said}");
        Ok(())
    };
    let instance = &start.instances[0];
    let is_stopped = async || {
        let state = status(instance.pid);
        let mut states = state.lines().filter_map(|line| line.strip_prefix("State:"));
        Ok(states.any(|state| state.contains('T')))
    };
    expect("pause", &instance.name, 0, "is paused").await?;
    wait_until("its stop", is_stopped).await?;
    expect("resume", &instance.name, 0, "goes on").await?;
    wait_until("its going on", async || Ok(!is_stopped().await?)).await?;
    expect("kill", "redis-2", 0, "is killed").await?;
    let now = || labs::addresses(lab_json).context("no lab.json");
    ensure!(status(start.redis[1].pid).is_empty() && now()?.redis[1].pid == 0, "redis-2 was to be gone, and lab.json to say so");
    expect("kill", "redis-2", 2, "redis-2 is not running").await?;
    expect("start", "redis-2", 0, "runs again").await?;
    ensure!(!status(now()?.redis[1].pid).is_empty(), "redis-2 was to run again, and lab.json to say so");
    let members = "the lab has no redis-3; it has mysql, zookeeper, redis, redis-2, ";
    expect("kill", "redis-3", 2, members).await?;

    let control = start.control.context("the lab accepts no faults")?;
    let fault = format!(r#"{{"action":"kill","member":"{}","by_ms":0}}"#, instance.name);
    let request = client().put(&control.url).bearer_auth("0".repeat(32)).header("content-type", "application/json").body(fault);
    let (refused, words) = answer(request).await?;
    ensure!(refused == StatusCode::UNAUTHORIZED && !status(instance.pid).is_empty(), "with another token: {refused} {words}");
    Ok(())
}

/// One instance is cut off and the other is not: affected requests get an error, no piece is lost, and the instance
/// recovers. A slow link is slow.
#[apply(test!)]
async fn a_way_is_cut_slowed_and_mended() -> Result<()> {
    const CUT_OFF: &[StatusCode] = &[StatusCode::SERVICE_UNAVAILABLE];
    let mut lab =
        Lab::start(Options { links: true, instance_ports: vec![0; 2], redis_ports: vec![0], ..labs::short_leases() }).await?;
    let [near, far] = [0, 1].map(|n| lab.addresses().instances[n].clone());
    let ask = |instance: &addresses::InstanceAddress, path: &str| ask(format!("{}/check/lock/{path}", instance.url));
    let answers = async |instance: &addresses::InstanceAddress, status: StatusCode| {
        let (seen, words) = ask(instance, "redis-script").await?;
        let known = [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE].contains(&seen);
        ensure!(known, "{}: {seen} {words}", instance.name);
        anyhow::Ok(seen == status)
    };
    let cut_off = format!("{}-redis", near.name);
    under_load(&mut lab, "redis-lock", CUT_OFF, async |lab, buyers| {
        lab.cut(&cut_off)?;
        buyers.wait_until_refused().await?;
        // The forwarding tasks apply the cut, each as soon as it runs.
        wait_until("it is cut off", || answers(&near, CUT_OFF[0])).await?;
        ensure!(answers(&far, StatusCode::OK).await?, "the other one is cut off, too");
        buyers.buy(100).await?;
        lab.mend("redis")?;
        wait_until("it is mended", || answers(&near, StatusCode::OK)).await
    })
    .await?;

    let late = Duration::from_millis(300);
    lab.slow("mysql", late)?;
    let begun = Instant::now();
    let slow = ask(&near, "single-update").await?;
    let took = begun.elapsed();
    ensure!(slow.0 == StatusCode::OK && took >= late, "by a slow way after {took:?}: {slow:?}");
    // A client that hangs up before the answer to its INSERT leaves no row.
    let pool = MySqlPool::connect(&lab.addresses().mysql.url).await?;
    let rows = async || {
        let count = sqlx::query_scalar::<_, i64>("SELECT COUNT(*) FROM tb_lock");
        anyhow::Ok(count.fetch_one(&pool).await?)
    };
    tokio::select! {
        told = ask(&near, "table-lock-as-printed") => anyhow::bail!("it was told {told:?}"),
        there = wait_until("its row is there", async || Ok(rows().await? == 1)) => there?,
    }
    lab.mend("mysql")?;
    wait_until("its row is gone", async || Ok(rows().await? == 0)).await?;

    caught(lab.cut("8888-redis").map_err(Into::into), "no link 8888-redis")?;
    lab.stop().await;
    Ok(())
}
