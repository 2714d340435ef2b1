//! What the servers of a lab may do, what they keep, and what the instances print.

use super::*;
use crate::clients::http_client::{Answer, Ask, client};
use crate::lab::{
    mysql::{MySql, MySqlProgram},
    server::Server,
    user::User,
};
use std::{fs::Permissions, os::unix::fs::PermissionsExt, path::PathBuf};

/// Real, effective, saved and file-system user of a process.
fn users_of(pid: u32) -> Vec<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    users.split_whitespace().map(str::to_owned).collect()
}

/// Only root can make such a folder for others, and only root's servers would run as another user.
#[tokio::test]
async fn in_a_closed_folder_servers_run_as_the_user() {
    let closed =
        tempfile::Builder::new().prefix("oversell-closed-").permissions(Permissions::from_mode(0o700)).tempdir().unwrap();
    let lab = start(Options { dir: Some(closed.path().join("lab")), ..one_redis() }).await;
    let us = nix::unistd::geteuid();
    assert_eq!(users_of(lab.pid("redis").unwrap()), vec![us.to_string(); 4]);
    let warning = lab.warning().map(str::to_owned);
    lab.stop().await;
    match warning {
        Some(text) => {
            assert!(us.is_root() && text.contains("run as root") && text.contains("oversell-closed"), "{text}")
        }
        None => assert!(!us.is_root(), "root was not told"),
    }
}

#[tokio::test]
async fn mysql_has_the_promised_settings_and_touches_no_files() {
    let lab = start(only_parts(&[Part::MySql])).await;
    let url = &lab.addresses().mysql.url;
    for (query, value) in
        [("SELECT CAST(@@innodb_flush_log_at_trx_commit AS CHAR)", "1"), ("SELECT CAST(@@log_bin AS CHAR)", "OFF")]
    {
        assert_eq!(query_text(url, query).await, value, "{query}");
    }
    // `tx_isolation` on MariaDB, `transaction_isolation` on MySQL; MariaDB 11.1 and later have both.
    let isolation = "SHOW VARIABLES WHERE Variable_name IN ('tx_isolation', 'transaction_isolation')";
    let mut connection = MySqlConnection::connect(url).await.unwrap();
    let levels: Vec<(String, String)> = sqlx::query_as(isolation).fetch_all(&mut connection).await.unwrap();
    assert!(!levels.is_empty());
    for (variable, level) in levels {
        assert_eq!(level, "REPEATABLE-READ", "{variable}");
    }
    let target = std::env::temp_dir().join(format!("oversell-outfile-{}", std::process::id()));
    let query = format!("SELECT 1 INTO OUTFILE '{}'", target.display());
    let error = sqlx::query(&query).execute(&mut connection).await.unwrap_err().to_string();
    assert!(error.contains("--secure-file-priv"), "{error}");
    assert!(!target.exists());
    let read: Option<String> = sqlx::query_scalar("SELECT LOAD_FILE('/etc/hostname')").fetch_one(&mut connection).await.unwrap();
    assert_eq!(read, None);
    let folder = query_text(url, "SELECT CAST(@@secure_file_priv AS CHAR)").await;
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "the only folder that it may read is empty");
    lab.stop().await;
}

/// The second node is the twin: it has no append-only file, and comes back empty.
#[tokio::test]
async fn only_the_main_redis_keeps_its_data_over_restart_and_kill() {
    let mut lab = start(Options { redis_ports: vec![0; 2], ..only_parts(&[Part::Redis]) }).await;
    let nodes: Vec<String> = lab.addresses().redis.iter().map(|node| node.url.clone()).collect();
    for (kill, value) in [(false, 5000), (true, 4999)] {
        for (name, url) in ["redis", "redis-2"].iter().zip(&nodes) {
            let mut node = redis_at(url).await.unwrap();
            node.set::<_, _, ()>("stock", value).await.unwrap();
            if kill {
                lab.kill(name).await.unwrap();
            }
            lab.restart(name).await.unwrap();
        }
        let mut kept = Vec::new();
        for url in &nodes {
            let mut node = redis_at(url).await.unwrap();
            kept.push(node.get::<_, Option<i64>>("stock").await.unwrap());
        }
        assert_eq!(kept, [Some(value), None]);
    }
    lab.stop().await;
}

/// `kv` of etcd's gateway at this node; keys and values are base64.
async fn ask_etcd(url: &str, call: &str, body: &'static str) -> serde_json::Value {
    let request = client().post(format!("{url}/v3/kv/{call}")).body(body);
    request.answer().await.and_then(Answer::success).and_then(|answer| answer.json()).unwrap()
}

/// A lab without the option has none: neither an address nor a member.
#[tokio::test]
async fn etcd_is_there_where_it_is_asked_for_and_keeps_its_data() {
    let mut lab = start(Options { etcd: 3, ..only_parts(&[Part::Etcd]) }).await;
    let urls: Vec<String> = lab.addresses().etcd.iter().map(|node| node.url.clone()).collect();
    assert_eq!(urls.len(), 3);
    assert!(lab.addresses().versions["etcd"].starts_with("etcd 3."), "{:?}", lab.addresses().versions);
    ask_etcd(&urls[0], "put", r#"{"key": "c3RvY2s=", "value": "NTAwMA=="}"#).await;
    let leader = lab.etcd_leader().await.unwrap();
    lab.kill(&leader).await.unwrap();
    let deadline = Instant::now() + TEST_TIMEOUT;
    while lab.etcd_leader().await.is_none_or(|next| next == leader) {
        assert!(Instant::now() < deadline, "no other node leads");
    }
    lab.restart(&leader).await.unwrap();
    for url in &urls {
        let kept = ask_etcd(url, "range", r#"{"key": "c3RvY2s="}"#).await;
        assert_eq!(kept["kvs"][0]["value"], "NTAwMA==", "{url}");
    }
    // Two of three are no majority: the third only listens.
    for node in ["etcd", "etcd-2", "etcd-3"] {
        lab.kill(node).await.unwrap();
    }
    lab.restart("etcd-3").await.unwrap();
    lab.stop().await;
    let without = start(only_parts(&[Part::Etcd])).await;
    assert!(without.addresses().etcd.is_empty() && without.pid("etcd").is_none());
    without.stop().await;
}

#[tokio::test]
async fn console_lines_carry_the_instance_name_and_logs_stay_out() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (console, mut lines) = tokio::sync::mpsc::unbounded_channel();
    // This program stands for an instance: it prints two lines, logs one, and ends.
    let program = dir.join("talker");
    std::fs::write(&program, "#!/bin/sh\necho '12:01:02.345 小明 测试读锁。。。。'\necho second\necho logged >&2\n").unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let options = Options {
        instance_ports: vec![0],
        program: Some(program),
        console: Some(console),
        dir: Some(dir.join("lab")),
        ..only_parts(&[Part::Instances])
    };
    let port = start_error(options).await;
    let name = port.split_whitespace().nth(1).unwrap().to_owned();
    assert_eq!(lines.recv().await.unwrap(), format!("{name} | 12:01:02.345 小明 测试读锁。。。。"));
    assert_eq!(lines.recv().await.unwrap(), format!("{name} | second"));
    assert_eq!(lines.recv().await, None, "the log is no console");
    let log = std::fs::read_to_string(dir.join(format!("lab/instance-{name}.log"))).unwrap();
    assert_eq!(log, "logged\n");
}

fn server_sharing(shared: &Path) -> MySql {
    MySql {
        program: MySqlProgram::with_version(crate::programs::path("mariadbd")),
        shared: Some(shared.to_owned()),
        port: 0,
        galera: None,
    }
}

/// Each lab has its own copy of a database that is created once, even if both start without one.
#[tokio::test]
async fn concurrent_labs_share_one_seed_database_and_copy_it() {
    let shared = tempfile::tempdir().unwrap();
    let user = User::choose(shared.path(), &[]).0;
    let server = server_sharing(shared.path());
    let folders = ["one", "two"].map(|name| shared.path().join(name));
    let [one, two] = &folders;
    let (first, second) = tokio::join!(server.prepare(one, user), server.prepare(two, user));
    first.unwrap();
    second.unwrap();
    let seeds = entries(shared.path(), "mariadb-");
    assert_eq!(seeds.len(), 1, "{seeds:?}");
    assert_eq!(entries(shared.path(), "lab-"), Vec::<PathBuf>::new());
    for folder in &folders {
        let ours = folder.join("data/ibdata1");
        assert_eq!(std::fs::read(&ours).unwrap(), std::fs::read(seeds[0].join("ibdata1")).unwrap());
        std::fs::write(ours, "a lab writes in its own").unwrap();
    }
    assert!(seeds[0].join("ibdata1").metadata().unwrap().len() > 1_000_000);
}

/// A start is cancelled while it creates the first database: the half must not be used by the next lab. The twin puts a
/// half in the place of the seed, and the next lab uses it.
#[tokio::test]
async fn a_half_made_database_is_never_used() {
    let shared = tempfile::tempdir().unwrap();
    let user = User::choose(shared.path(), &[]).0;
    let server = server_sharing(shared.path());
    let [given_up, next, twin] = ["given-up", "next", "twin"].map(|name| shared.path().join(name));
    let begun = || entries(shared.path(), "lab-").iter().any(|making| making.join("mysql/data/ibdata1").exists());
    tokio::select! {
        biased;
        _ = server.prepare(&given_up, user) => panic!("it was not to get that far"),
        () = wait_until("half a database", begun) => {}
    }
    assert_eq!(entries(shared.path(), "mariadb-"), Vec::<PathBuf>::new());
    server.prepare(&next, user).await.unwrap();
    let is_whole = |folder: &Path| folder.join("data/mysql/global_priv.frm").exists();
    assert!(is_whole(&next));

    let seed = entries(shared.path(), "mariadb-").remove(0);
    std::fs::remove_dir_all(seed.join("mysql")).unwrap();
    server.prepare(&twin, user).await.unwrap();
    assert!(!is_whole(&twin), "the twin found what was not there");
}

fn entries(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let all = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix)).collect()
}

/// If a server lacks a feature, the lessons that need it say so; the lab starts all the same.
#[tokio::test]
async fn a_redis_without_a_movable_clock_does_not_stop_the_lab() {
    let folder = tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().unwrap();
    let program = folder.path().join("redis-server");
    let text = format!(
        "#!/bin/sh\n[ -z \"$LD_PRELOAD\" ] || kill -SEGV $$\nexec '{}' \"$@\"\n",
        crate::programs::path("redis-server").display()
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let lab =
        start(Options { links: true, servers: Servers { redis_server: Some(program), ..Servers::default() }, ..one_redis() })
            .await;
    let [why] = lab.unavailable_lessons() else { panic!("{:?}", lab.unavailable_lessons()) };
    assert!(why.contains("clock") && why.contains("signal: 11 (SIGSEGV)"), "{why}");
    let refused = lab.jump("redis", Duration::from_secs(1)).await;
    assert!(refused.unwrap_err().to_string().contains("cannot jump"));
    lab.stop().await;
}

#[tokio::test]
async fn galera_on_mysql_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("mysqld");
    std::fs::write(&program, "#!/bin/sh\necho mysqld Ver 9.7.4 for Linux\n").unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let options =
        Options { galera: 3, servers: Servers { mysql_server: Some(program), ..Servers::default() }, ..Options::default() };
    let refused = Lab::start(options).await.unwrap_err().to_string();
    assert!(refused.contains("only MariaDB"), "{refused}");
}
