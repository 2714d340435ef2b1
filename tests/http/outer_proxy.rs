//! The proxies that `docs/deploy.md` shows before a lab, run as they stand there: with TLS and a login. They serve a class, and send no
//! purchase again whose answer is lost.

use crate::support::{labs, *};
use oversell_lab::{
    lab::{Lab, Options},
    programs,
};
use std::{
    net::TcpListener,
    os::unix::fs::MetadataExt,
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
};

const DOCUMENT: &str = "docs/deploy.md";
const TOKEN: &str = "a-token-of-the-teacher";

/// The block of the document in this language.
fn block(language: &str) -> Result<String> {
    let document = std::fs::read_to_string(DOCUMENT)?;
    let (_, rest) = document.split_once(&format!("```{language}\n")).with_context(|| format!("no {language}"))?;
    Ok(rest.split("```").next().unwrap_or_default().to_owned())
}

/// A lab that is called shop.example, of whose requests an address may have ten at once in an instance.
async fn lab() -> Result<Lab> {
    let env =
        [("OVERSELL__SERVER__HOSTS", "shop.example"), ("OVERSELL__SERVER__CONCURRENCY", "40"), ("OVERSELL__ADMIN__TOKEN", TOKEN)];
    let env = env.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec();
    Ok(Lab::start(Options { env, ..labs::program() }).await?)
}

/// A folder with a certificate of shop.example, and the users `class` and `teacher` with the password `demo`.
async fn folder() -> Result<TempDir> {
    let folder = labs::folder()?;
    let make = "openssl req -x509 -newkey rsa:2048 -nodes -keyout shop.key -out shop.pem -days 2 -subj /CN=shop.example && \
        for user in class teacher; do echo \"$user:$(openssl passwd -apr1 demo)\"; done > users && chmod 644 shop.key";
    let made = Command::new("sh").args(["-c", make]).current_dir(folder.path()).output().await?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr).into_owned());
    Ok(folder)
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// What a line of a shell prints that asks shop.example by this port: `$AS` names a user with the password, `$AT` the address.
async fn ask(port: u16, line: &str) -> Result<String> {
    let curl = format!("curl -sNk --noproxy '*' --resolve shop.example:{port}:127.0.0.1");
    let line =
        format!("AT=https://shop.example:{port}; AS='-u class:demo'; TEACHER='-u teacher:demo'; {}", line.replace("curl", &curl));
    let ran = Command::new("bash").args(["-c", &line]).stdin(Stdio::null()).output().await?;
    Ok(String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned())
}

async fn wait_until_it_answers(port: u16) -> Result<()> {
    let answers = async || Ok(ask(port, "curl -o /dev/null -w '%{http_code}' $AT/health/live").await? == "401");
    wait_until("the proxy answers", answers).await
}

/// Login, names, the token of the teacher, a page's own changes, and events that come while the stream is open.
async fn ensure_it_serves_a_class(port: u16) -> Result<()> {
    for (line, expected) in [
        ("curl $AS -o /dev/null -w '%{http_code}' $AT/health/live", "200"),
        ("curl $AS -H \"Origin: $AT\" -d hold_ms=1 $AT/check/lock/none", "验库存并锁库存成功！"),
        ("curl $AS -H 'Origin: https://other.example' -o /dev/null -w '%{http_code}' -d '' $AT/check/lock/none", "403"),
        // A student resets nothing; the teacher's name brings the token along.
        (
            "curl $AS -o /dev/null -w '%{http_code}' -X PUT -H 'content-type: application/json' -d '{\"count\":9}' $AT/stock",
            "401",
        ),
        (
            "curl $TEACHER -o /dev/null -w '%{http_code}' -X PUT -H 'content-type: application/json' -d '{\"count\":9}' $AT/stock",
            "200",
        ),
    ] {
        let said = ask(port, line).await?;
        ensure!(said.contains(expected), "{line}: {said}");
    }
    // The reader ends at the visit, which is made once the stream has begun.
    let stream = "timeout 50 curl $AS $AT/classroom/events | while read -r line; do \
        [ -n \"$asked\" ] || { asked=1; curl $AS -o /dev/null $AT/check/lock/none?who=outside & }; \
        case $line in *'\"actor\":\"outside\"'*) echo came; break;; esac; done";
    let came = within_limit("an event through the proxy", ask(port, stream)).await??;
    ensure!(came.contains("came"), "{came}");
    Ok(())
}

/// A purchase whose answer is lost was read once, on a connection that had served another request too.
async fn ensure_it_buys_once(port: u16, purchases: &AtomicUsize) -> Result<()> {
    for buy in ["curl $AS $AT/check/lock/none", "curl $AS -d hold_ms=1 $AT/check/lock/none"] {
        let said = ask(port, &format!("curl $AS $AT/health/live && {buy} -o /dev/null -w '%{{http_code}}'")).await?;
        let read = purchases.swap(0, Relaxed);
        ensure!(said == "502" && read == 1, "{buy}: read {read} times, answered {said}");
    }
    Ok(())
}

/// Answers what is no purchase, and hangs up once it has read a purchase.
async fn lose_the_answers(connection: TcpStream, purchases: &AtomicUsize) -> Result<()> {
    let mut connection = BufReader::new(connection);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            ensure!(connection.read_line(&mut head).await? > 0, "it was closed");
        }
        if head.contains(" /check/lock/") {
            purchases.fetch_add(1, Relaxed);
            return Ok(());
        }
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await?;
    }
}

/// The address of a server that loses answers, and how many purchases it has read.
async fn loser_of_answers() -> Result<(String, Arc<AtomicUsize>)> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let (address, purchases) = (format!("http://{}", listener.local_addr()?), Arc::new(AtomicUsize::new(0)));
    let read = Arc::clone(&purchases);
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let read = Arc::clone(&read);
            tokio::spawn(async move { lose_the_answers(connection, &read).await });
        }
    });
    Ok((address, purchases))
}

async fn stop(mut proxy: Child) -> Result<()> {
    labs::terminate(proxy.id())?;
    within_limit("the end of the proxy", proxy.wait()).await??;
    Ok(())
}

fn start(program: &Path, arguments: &[&str], folder: &Path) -> Result<Child> {
    let log = std::fs::File::create(folder.join("log"))?;
    let mut proxy = Command::new(program);
    proxy.args(arguments).current_dir(folder).env("HOME", folder).kill_on_drop(true);
    Ok(proxy.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?)
}

/// Whether the example keeps its connections to the upstream and asks again on a new one: the twin, as many are set up.
#[derive(Clone, Copy, PartialEq)]
enum Connections {
    OfTheDocument,
    Kept,
}

/// The document's nginx on this port before an upstream.
async fn start_nginx(folder: &Path, port: u16, upstream: &str, connections: Connections) -> Result<Child> {
    let here = folder.display();
    let mut site = block("nginx")?
        .replace("listen 443", &format!("listen 127.0.0.1:{port}"))
        .replace("/etc/nginx/", &format!("{here}/"))
        .replace("THE-TOKEN", TOKEN);
    if connections == Connections::Kept {
        site = site.replace("http://127.0.0.1:8080;", "http://kept; proxy_set_header Connection '';")
            + "upstream kept { server 127.0.0.1:8080; keepalive 1; }";
    }
    let site = site.replace("127.0.0.1:8080", upstream.trim_start_matches("http://"));
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|of| format!("{of}_temp_path tmp-{of};"));
    let user = if std::fs::metadata("/proc/self")?.uid() == 0 { "user root;" } else { "" };
    let main = format!("{user} pid {here}/pid; events {{}} http {{ access_log off; {} {site} }}", temporary.concat());
    std::fs::write(folder.join("nginx.conf"), main)?;
    let config = folder.join("nginx.conf").display().to_string();
    let arguments = ["-e", "stderr", "-p", &here.to_string(), "-c", &config, "-g", "daemon off;"];
    start(&programs::path("nginx"), &arguments, folder)
}

/// The document's Caddy on this port before an upstream.
async fn start_caddy(folder: &Path, port: u16, upstream: &str, connections: Connections) -> Result<Child> {
    let caddy = programs::find("caddy").context("caddy is not installed: apt-get install caddy")?;
    let hash = Command::new(&caddy).args(["hash-password", "--plaintext", "demo"]).output().await?;
    let hash = String::from_utf8(hash.stdout)?;
    let here = folder.display();
    let mut site = block("caddy")?
        .replace("shop.example {", &format!("shop.example:{port} {{\n\ttls {here}/shop.pem {here}/shop.key"))
        .replace("127.0.0.1:8080", upstream.trim_start_matches("http://"))
        .replace("HASH", hash.trim())
        .replace("THE-TOKEN", TOKEN);
    if connections == Connections::Kept {
        site = site.replace("keepalive off", "");
    }
    std::fs::write(folder.join("Caddyfile"), format!("{{\n\tadmin off\n\tauto_https off\n}}\n{site}"))?;
    start(&caddy, &["run", "--config", "Caddyfile", "--adapter", "caddyfile"], folder)
}

/// The example serves a class before a lab, and sends a purchase once to an upstream that hangs up; its twin sends one twice.
async fn ensure_it_holds(example: impl AsyncFn(&Path, u16, &str, Connections) -> Result<Child>) -> Result<()> {
    let folder = folder().await?;
    let log = || std::fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    let run = async |upstream: &str, connections| {
        let port = free_port()?;
        let proxy = example(folder.path(), port, upstream, connections).await?;
        wait_until_it_answers(port).await.with_context(log)?;
        anyhow::Ok((port, proxy))
    };
    let lab = lab().await?;
    let (port, proxy) = run(&lab.addresses().http, Connections::OfTheDocument).await?;
    ensure_it_serves_a_class(port).await.with_context(log)?;
    stop(proxy).await?;
    lab.stop().await;

    let (upstream, purchases) = loser_of_answers().await?;
    let (port, proxy) = run(&upstream, Connections::OfTheDocument).await?;
    ensure_it_buys_once(port, &purchases).await.with_context(log)?;
    stop(proxy).await?;
    let (port, proxy) = run(&upstream, Connections::Kept).await?;
    caught(ensure_it_buys_once(port, &purchases).await, "read 2 times")?;
    stop(proxy).await
}

#[apply(test!)]
async fn the_documents_nginx_serves_a_class() -> Result<()> {
    ensure_it_holds(start_nginx).await
}

#[apply(soak_test!)]
async fn the_documents_caddy_serves_a_class() -> Result<()> {
    ensure_it_holds(start_caddy).await
}

/// The address that a proxy before nginx names is the client's, so its bound holds; what the client itself names is not believed.
#[apply(test!)]
async fn the_bound_of_an_address_holds_behind_a_proxy() -> Result<()> {
    let lab = lab().await?;
    let http = &lab.addresses().http;
    let refused = async |named: &str| {
        let visits = (0..60).map(|_| {
            let visit = http::client().get(format!("{http}/seckill/unlimited?hold_ms=3000"));
            async move { anyhow::Ok(visit.header("x-forwarded-for", named).send().await?.status().as_u16()) }
        });
        let all = futures::future::join_all(visits).await.into_iter().collect::<Result<Vec<_>>>()?;
        anyhow::Ok(all.into_iter().filter(|status| *status == 429).count())
    };
    let one = refused("1.2.3.4, 10.1.2.3").await?;
    ensure!(one > 0, "an address has ten requests at once in each of three instances, and none of 60 was refused");
    ensure!(refused("127.0.0.1").await? == 0, "this machine's own address has no bound");
    lab.stop().await;
    Ok(())
}
