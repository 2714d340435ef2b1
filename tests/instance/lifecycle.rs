//! How an instance starts, ends and dies, and what becomes of the requests meanwhile.

use crate::support::{
    buyers::under_load,
    http::{self, check_url, put_stock, readiness, wait_until_ready},
    *,
};
use futures::future::try_join_all;
use oversell::{
    ctx::Ctx,
    server::Server,
    stock::{self, Store},
};
use oversell_lab::{
    addresses::InstanceAddress,
    lab::{Lab, Options, Part},
};
use reqwest::StatusCode;
use sqlx::{Connection, Executor, MySqlConnection};
use std::{ffi::OsStr, path::Path, process::Stdio};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    process::{Child, Command},
};

const STOCK: i64 = 1000;

#[apply(test!)]
async fn an_instance_starts_without_its_servers_and_recovers() -> Result<()> {
    let mut lab = Lab::start(Options {
        without: vec![Part::MySql, Part::Redis, Part::ZooKeeper, Part::Etcd, Part::Nginx],
        redis_ports: vec![0],
        ..labs::short_leases()
    })
    .await?;
    let base = lab.addresses().instances[0].url.clone();
    // Each waits for its servers to come back.
    let buys = stock::ALL.iter().map(async |strategy| {
        let buys = http::client().get(check_url(&base, strategy.slug, 0, 2000));
        let answer = buys.send().await?;
        ensure!(
            answer.status() == StatusCode::SERVICE_UNAVAILABLE && answer.headers().contains_key("retry-after"),
            "{} without servers: {answer:?}",
            strategy.slug
        );
        Ok(())
    });
    try_join_all(buys).await?;
    for server in ["redis", "redis-mine", "zookeeper", "etcd", "mysql"] {
        lab.restart(server).await?;
    }
    wait_until_ready(&base).await?;
    for strategy in stock::ALL.iter() {
        // The tokens of two servers do not compare: a reset comes between.
        if strategy.spec.needs.contains(&Server::Etcd) {
            put_stock(&base, STOCK).await?;
        }
        http::body_with_status(check_url(&base, strategy.slug, 0, 10_000), StatusCode::OK).await.context("after the recovery")?;
    }
    lab.stop().await;
    Ok(())
}

/// The addresses of servers that are not there.
const NOBODY: [&str; 3] =
    ["mysql.url=mysql://root@127.0.0.1:1/test", "redis.url=redis://127.0.0.1:1", "zookeeper.connect=127.0.0.1:1"];

/// An instance with these settings, and its address.
async fn lone_instance<S: AsRef<OsStr>>(folder: &Path, settings: impl IntoIterator<Item = S>) -> Result<(Child, String)> {
    let json = folder.join("instance.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_oversell"));
    command.args(["serve", "--port", "0", "--json"]).arg(&json);
    for setting in settings {
        command.arg("--set").arg(setting);
    }
    let instance = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn()?;
    let at = || serde_json::from_slice::<InstanceAddress>(&std::fs::read(&json).ok()?).ok();
    wait_until("its address", || async { Ok(at().is_some()) }).await?;
    Ok((instance, at().context("no address")?.url))
}

/// A request that is being served, since the server has asked for its body of ten bytes.
async fn begun_request(url: &str) -> Result<TcpStream> {
    let mut request = connection(url).await?;
    let head = "PUT /stock HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 10\r\nexpect: 100-continue\r\n\r\n";
    request.write_all(head.as_bytes()).await?;
    request.read_u8().await?;
    Ok(request)
}

async fn connection(url: &str) -> std::io::Result<TcpStream> {
    TcpStream::connect(url.trim_start_matches("http://")).await
}

/// After SIGTERM an instance finishes its requests; a request whose body never comes would keep it for minutes.
#[apply(test!)]
async fn a_second_signal_ends_an_instance_at_once() -> Result<()> {
    let folder = labs::folder()?;
    let settings = ["server.shutdown_ms=600000", "server.header_timeout_ms=600000"];
    let (mut instance, url) = lone_instance(folder.path(), settings.into_iter().chain(NOBODY)).await?;
    let _request = begun_request(&url).await?;

    labs::terminate(instance.id())?;
    wait_until("it listens no more", || async { Ok(connection(&url).await.is_err()) }).await?;
    ensure!(instance.try_wait()?.is_none(), "it did not wait for the request: the test shows nothing");
    labs::terminate(instance.id())?;
    let ended = within_limit("its end", instance.wait()).await??;
    ensure!(!ended.success(), "it ended as if nothing had been under way");
    Ok(())
}

/// After SIGTERM a request has all of `server.shutdown_ms`: this one takes five sixths of it.
#[apply(test!)]
async fn a_request_has_all_of_the_time_to_end() -> Result<()> {
    let folder = labs::folder()?;
    let settings = ["server.shutdown_ms=6000", "server.header_timeout_ms=600000"];
    let (mut instance, url) = lone_instance(folder.path(), settings.into_iter().chain(NOBODY)).await?;
    let mut request = begun_request(&url).await?;
    labs::terminate(instance.id())?;
    tokio::time::sleep(Duration::from_secs(5)).await;
    request.write_all(b"{\"count\":x").await?;
    let mut answer = String::new();
    request.read_to_string(&mut answer).await?;
    ensure!(answer.contains(" 400 Bad Request"), "it was cut off: {answer:?}");
    let ended = within_limit("its end", instance.wait()).await??;
    ensure!(ended.success(), "it ended with {ended}");
    Ok(())
}

/// An instance dies under load: nginx skips it and sends no request to a second instance. Each piece that left the
/// stock has an answer that said so, or one that was lost.
#[apply(test!)]
async fn an_instance_that_dies_under_load_is_passed_over() -> Result<()> {
    const MORE: u64 = 1000;
    let mut lab = labs::full_lab().await?;
    // The answer of a dying instance is lost. nginx considers GET safe to repeat, and would send it again unless told
    // not to.
    let lost = &[StatusCode::BAD_GATEWAY];
    let row = under_load(&mut lab, "single-update", lost, async |lab, buyers| {
        lab.kill(&lab.addresses().instances[0].name).await?;
        buyers.buy(MORE).await
    })
    .await?;
    lab.restart(&lab.addresses().instances[0].name.clone()).await?;
    labs::keep_for_next_test(lab);
    // The requests in flight at its death, and an occasional probe of the dead one; not a third of all later ones.
    let (lost, refused) = (row.counts.unknown, row.counts.errors);
    ensure!(lost <= MORE / 5 && refused == 0, "{lost} answers were lost, and {refused} requests refused");
    Ok(())
}

/// If MySQL is read-only for its user, or Redis is full, lacks replicas or is a replica, the instance is not ready and names the
/// server. Of several MySQL nodes it takes the next one.
#[apply(test!)]
async fn an_instance_without_writes_is_not_ready() -> Result<()> {
    let lab =
        Lab::start(Options { without: vec![Part::Instances, Part::Nginx], redis_ports: vec![0], ..labs::program() }).await?;
    let at = lab.addresses();
    let mut outsider = MySqlConnection::connect(&at.mysql.url).await?;
    for statement in ["CREATE USER shop@'127.0.0.1'", "GRANT ALL ON test.* TO shop@'127.0.0.1'"] {
        outsider.execute(statement).await?;
    }
    let shop = at.mysql.url.replace("root@", "shop@");
    let folder = labs::folder()?;
    let [redis, zookeeper] = [&at.redis[0].url, &at.zookeeper.connect];
    let settings = [format!("mysql.url={shop}"), format!("redis.url={redis}"), format!("zookeeper.connect={zookeeper}")];
    let (mut instance, url) = lone_instance(folder.path(), settings).await?;
    let is_down = async |server: &str, why: &str| {
        let (is_ready, states) = readiness(&url).await?;
        Ok(!is_ready && states["servers"][server]["detail"].as_str().is_some_and(|detail| detail.starts_with(why)))
    };
    wait_until_ready(&url).await?;

    let urls = || vec![shop.clone().into(), at.mysql.url.clone().into()];
    let mut config = config(at);
    config.mysql.urls = urls();
    let ctx = Ctx::new(config)?;
    let user = async || -> Result<String> {
        ctx.forget_idle();
        let mut conn = ctx.db.conn(TEST_WAIT_LIMIT).await?;
        let user = sqlx::query_scalar("SELECT CURRENT_USER()").fetch_one(&mut *conn).await?;
        conn.done();
        Ok(user)
    };
    ensure!(user().await?.starts_with("shop"), "the first is not taken");
    outsider.execute("SET GLOBAL read_only = ON").await?;
    wait_until("mysql is read-only", || is_down("mysql", "it is read-only")).await?;
    ensure!(user().await?.starts_with("root"), "the first is taken, and takes no writes");
    outsider.execute("SET GLOBAL read_only = OFF").await?;
    wait_until_ready(&url).await?;

    for (broken, mended, why) in [
        (["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"], "it is full (maxmemory)"),
        (
            ["CONFIG", "SET", "min-replicas-to-write", "1"],
            ["CONFIG", "SET", "min-replicas-to-write", "0"],
            "its main node or its replicas are away",
        ),
    ] {
        labs::command_redis::<()>(&lab, &broken).await?;
        wait_until(why, || is_down("redis", why)).await?;
        labs::command_redis::<()>(&lab, &mended).await?;
        wait_until_ready(&url).await?;
    }
    labs::command_redis::<()>(&lab, &["REPLICAOF", "127.0.0.1", "1"]).await?;
    wait_until("redis is a replica", || is_down("redis", "it is a replica")).await?;
    labs::command_redis::<()>(&lab, &["REPLICAOF", "NO", "ONE"]).await?;
    wait_until_ready(&url).await?;
    instance.kill().await?;
    outsider.close().await?;
    lab.stop().await;
    Ok(())
}

/// A strategy whose promise rests on transactions is refused on a table whose engine has none, by the instance and by
/// `oversell doctor`; one that needs none goes on selling. On InnoDB all sell, whatever the server's defaults for sessions.
#[apply(test!)]
async fn a_table_without_transactions_is_refused_by_name() -> Result<()> {
    let mut lab = labs::full_lab().await?;
    let instance = lab.addresses().instances[0].clone();
    let (url, mysql) = (instance.url.clone(), lab.addresses().mysql.url.clone());
    put_stock(&url, STOCK).await?;
    let buy = async |slug: &str| http::ask(check_url(&url, slug, 0, 10_000)).await;
    let doctor = async || -> Result<(Option<i32>, String)> {
        let free = "doctor --http-port 0 --instances 0,0,0 --mysql-port 0 --redis-ports 0 --zookeeper-port 0";
        let mut doctor = Command::new(env!("CARGO_BIN_EXE_oversell"));
        doctor.args(free.split(' ')).env("OVERSELL__MYSQL__URL", &mysql).env("LC_ALL", "C.UTF-8");
        let output = doctor.output().await?;
        Ok((output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()))
    };
    let mut outsider = MySqlConnection::connect(&mysql).await?;
    for (table, engine, refused, unaffected) in
        [("db_stock", "MyISAM", "select-for-update", "single-update"), ("tb_lock", "MEMORY", "table-lock", "version-cas")]
    {
        outsider.execute(format!("ALTER TABLE {table} ENGINE = {engine}").as_str()).await?;
        let named = format!("the engine of {table} is {engine}");
        let is_named = async || {
            let (is_ready, body) = readiness(&url).await?;
            let waits = |slug: &str| body["waiting"].as_array().is_some_and(|all| all.iter().any(|one| *one == slug));
            let detail = body["servers"]["mysql"]["detail"].as_str().is_some_and(|detail| detail.contains(&named));
            Ok(!is_ready && detail && waits(refused) && !waits(unaffected))
        };
        wait_until(&named, is_named).await?;
        let (status, words) = buy(refused).await?;
        ensure!(status == StatusCode::SERVICE_UNAVAILABLE && words.contains(&named), "{refused}: {status} {words}");
        let (status, words) = buy(unaffected).await?;
        ensure!(status == StatusCode::OK, "{unaffected}: {status} {words}");
        let (code, words) = doctor().await?;
        let names_them = [table, engine, refused].iter().all(|name| words.contains(name));
        let names_others = words.contains(&format!(" {unaffected},")) || words.contains(&format!(" {unaffected} "));
        ensure!(code == Some(2) && names_them && !names_others, "doctor: {code:?} {words}");
        outsider.execute(format!("ALTER TABLE {table} ENGINE = InnoDB").as_str()).await?;
        wait_until_ready(&url).await?;
        let (status, words) = buy(refused).await?;
        ensure!(status == StatusCode::OK, "{refused} on InnoDB: {status} {words}");
    }
    for default in ["autocommit = 0", "TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"] {
        outsider.execute(format!("SET GLOBAL {default}").as_str()).await?;
    }
    lab.terminate(&instance.name).await?;
    lab.restart(&instance.name).await?;
    wait_until_ready(&url).await?;
    let before = STOCK - http::stock(&url, Store::MySql).await?;
    for slug in ["single-update", "version-cas", "table-lock", "table-lock-lease"] {
        let (status, words) = buy(slug).await?;
        ensure!(status == StatusCode::OK, "{slug} with other defaults: {status} {words}");
    }
    let count: i64 =
        sqlx::query_scalar("SELECT CAST(count AS SIGNED) FROM db_stock WHERE id = 1").fetch_one(&mut outsider).await?;
    ensure!(STOCK - count == before + 4, "{before} and 4 were sold, and {count} of {STOCK} are left");
    let (code, words) = doctor().await?;
    ensure!(code == Some(0), "doctor: {code:?} {words}");
    for default in ["autocommit = 1", "TRANSACTION ISOLATION LEVEL REPEATABLE READ"] {
        outsider.execute(format!("SET GLOBAL {default}").as_str()).await?;
    }
    labs::keep_for_next_test(lab);
    Ok(())
}
