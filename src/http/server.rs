//! `oversell serve`: one instance, from its configuration to its last answer. Connections are hyper's own: so their number, the time
//! for a request's head and the time that a client may take to read have limits.

use super::{
    app::{AppResources, AppState},
    routes,
};
use crate::{
    config::{self, Config},
    ctx::Ctx,
    seckill::consumer::Consumer,
    stock_admin,
    telemetry::{self, LogFormat},
};
use axum::{Router, extract::ConnectInfo, serve::Listener};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::GracefulShutdown,
    service::TowerToHyperService,
};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use oversell_lab::{
    addresses::{ADMIN_TOKEN_VARIABLE, InstanceAddress, Token},
    terminal::{
        chinese::localized,
        failure::{Failure, unusable, unusable_localized},
    },
};
use secrecy::ExposeSecret;
use std::{
    io,
    net::IpAddr,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{net::TcpListener, time::timeout};
use tokio_io_timeout::TimeoutStream;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tower_http::add_extension::AddExtension;

/// The most bytes of the head of a request; a longer one is refused.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// How often recorded samples are moved into their buckets, so that they do not pile up.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// How often the stock is asked for at the start, until both stores have it.
const START_RETRY: Duration = Duration::from_millis(200);

/// The part of `server.shutdown_ms` that comes on top of it, for releasing the locks of dropped handlers.
const RELEASE_PART: f64 = 0.25;

/// Runs one instance of the service
///
/// Starts without its servers, answers 503 for what needs them, and recovers by itself.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  oversell serve
  oversell serve --port 8100 --set mysql.url=mysql://root@127.0.0.1:13306/test
  OVERSELL__REDIS__URL=redis://127.0.0.1:16379 oversell serve --set stock.strategy=version-cas
  RUST_LOG=debug oversell serve --config my.toml --log json")]
pub struct Args {
    /// Port to listen on; 0 for a free one
    #[arg(long)]
    port: Option<u16>,
    /// Address to listen on
    #[arg(long)]
    host: Option<String>,
    /// Configuration file, in the place of the one that OVERSELL_CONFIG names
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Any setting of config/default.toml but a secret, as in lock.wait_ms=5000; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_setting)]
    set: Vec<(String, String)>,
    /// Form of the log on stderr; RUST_LOG filters it
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log: LogFormat,
    /// Write name, address and process to this file once it listens
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn parse_setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| localized!("必须写成 KEY=VALUE", "must be KEY=VALUE"))?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Runs the command until `stopping` is cancelled. Requests have `server.shutdown_ms` from then on to end, and then it releases
/// what they held.
/// Errors: [`Failure::Unusable`] if the configuration does not hold or the port is in use.
pub async fn run(args: Args, stopping: CancellationToken) -> Result<(), Failure> {
    telemetry::init(args.log);
    let mut config = load_config(&args)?;
    let listener = bind(&mut config).await?;
    close_to_others(&mut config)?;
    let limit = Duration::from_millis(config.server.shutdown_ms);
    allow_files(config.server.connections);
    if config.replays.enabled && config.redis.mine_url.expose_secret().is_empty() {
        tracing::warn!("redis.mine_url is not set: students' scripts (/mine) run in the Redis that sells, and can fill it");
    }

    let ctx = Ctx::new(config).map_err(|e| Failure::Unusable(e.to_string()))?;
    let app = AppResources::new(ctx.clone(), stopping.clone()).map_err(|e| Failure::Unusable(e.to_string()))?;
    let background = [tokio::spawn(Arc::clone(&app.server_watch).watch()), tokio::spawn(metrics_upkeep(app.clone()))];
    // Writes the queued orders until the instance closes, and then for about 2 s at most; the rest stays in the stream.
    let consumer = tokio::spawn(Consumer::new(ctx.clone()).run());
    tracing::info!("oversell {} listens on {}", ctx.instance, app.own_address());
    if let Some(file) = &args.json {
        let instance = InstanceAddress { name: ctx.instance.clone(), url: app.own_address(), pid: std::process::id() };
        let text = serde_json::to_vec_pretty(&instance).map_err(io::Error::from);
        text.and_then(|text| std::fs::write(file, text)).map_err(|e| unusable!("{}: {e}", file.display()))?;
    }

    let router = routes::router(&app);
    let stopped = serve(listener, router, &ctx.config.server, &stopping, limit).await;
    let limit = limit.mul_f64(1.0 + RELEASE_PART);
    background.iter().for_each(tokio::task::JoinHandle::abort);
    // Answered orders are written while there are connections.
    ctx.closing.cancel();
    drop(timeout(limit.saturating_sub(stopped.elapsed()) / 2, consumer).await);
    ctx.close(limit.saturating_sub(stopped.elapsed())).await;
    Ok(())
}

/// Raises the limit of open files to the configured connections and some for the servers; warns if it cannot.
fn allow_files(connections: usize) {
    const OTHER_FILES: u64 = 1024;
    let wanted = connections as u64 + OTHER_FILES;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return;
    };
    let allowed = wanted.min(hard).max(soft);
    if let Err(error) = setrlimit(Resource::RLIMIT_NOFILE, allowed, hard) {
        tracing::warn!(%error, soft, "the limit of open files was not raised");
    }
    if allowed < wanted {
        tracing::warn!(
            "this process may open {allowed} files, and server.connections asks for {wanted}: clients beyond that wait"
        );
    }
}

/// Serves until `stop`, then waits at most `drain` for requests in progress and drops the rest with their handlers. Returns
/// the time of the stop.
pub(super) async fn serve(
    mut listener: TcpListener,
    router: Router,
    limits: &config::Server,
    stop: &CancellationToken,
    drain: Duration,
) -> Instant {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(Duration::from_millis(limits.header_timeout_ms))
        .max_buf_size(MAX_HEAD_BYTES);
    let (open, ending, cut) = (TaskTracker::new(), GracefulShutdown::new(), CancellationToken::new());
    while let Some((stream, peer)) = stop.run_until_cancelled(Listener::accept(&mut listener)).await {
        // A connection over the limit is closed. Small answers must not wait for acknowledgements.
        if open.len() >= limits.connections || stream.set_nodelay(true).is_err() {
            continue;
        }
        // A client that does not read is cut off.
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(Duration::from_millis(limits.write_timeout_ms)));
        let service = AddExtension::new(router.clone(), ConnectInfo(peer));
        let service = TowerToHyperService::new(service);
        let connection = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
        let (connection, cut) = (ending.watch(connection), cut.clone());
        open.spawn(async move {
            if let Some(Err(error)) = cut.run_until_cancelled(connection).await {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }
    let stopped = Instant::now();
    drop(listener);
    if timeout(drain, ending.shutdown()).await.is_err() {
        let connections = open.len();
        tracing::warn!(connections, "cutting off requests that are still under way");
    }
    // Handlers are dropped before their locks are released.
    cut.cancel();
    open.close();
    open.wait().await;
    stopped
}

/// Whether other machines reach the instance, by `server.published` or else by its host, and no token is set.
pub(super) fn is_open(config: &Config) -> bool {
    let server = &config.server;
    let host = match server.published.as_str() {
        "" => &server.host,
        published => published,
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    !is_local && config.admin.token.expose_secret().is_empty()
}

/// Sets and logs a new token if other machines reach the instance and it has none.
/// Errors: [`Failure::Unusable`] in a cluster, because each of its instances would make another one.
pub(super) fn close_to_others(config: &mut Config) -> Result<(), Failure> {
    if !is_open(config) {
        return Ok(());
    }
    let host = &config.server.host;
    if !config.cluster.instances.is_empty() || !config.cluster.http.is_empty() {
        return Err(unusable_localized!(
            "server.host {host} 对网络开放，而 admin.token 是空的：请设置 admin.token，集群的每个实例用同一个（环境变量 {ADMIN_TOKEN_VARIABLE}；\
             compose 里是 ADMIN_TOKEN）",
            "server.host {host} is open to the network and admin.token is empty: set admin.token, the same one in every instance \
             of the cluster (environment {ADMIN_TOKEN_VARIABLE}; in compose ADMIN_TOKEN)"
        ));
    }
    let Token(token) = Token::fresh();
    tracing::warn!(
        "server.host {host} is open to the network and admin.token is empty: to reset the stock, to add vouchers and to start runs \
         takes the token {token}, which ends with this process; set admin.token to choose one"
    );
    config.admin.token = token.into();
    Ok(())
}

/// Reads the configuration with what the command line overrides.
/// Errors: a secret in `--set`, which others can read; a setting that breaks a rule.
fn load_config(args: &Args) -> Result<Config, Failure> {
    if let Some((key, _)) = args.set.iter().find(|(key, value)| is_secret(key, value)) {
        let variable = key.to_uppercase().replace('.', "__");
        return Err(unusable_localized!(
            "--set {key}：命令行谁都看得到（ps），密码和口令不能写在那里；请用环境变量 OVERSELL__{variable}，或者写进 --config 的文件",
            "--set {key}: anybody can read a command line (ps), and this is a password or token; set OVERSELL__{variable} in the \
             environment, or put it in a file for --config"
        ));
    }
    let mut overrides: Vec<(&str, String)> = args.set.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    overrides.extend(args.port.map(|port| ("server.port", port.to_string())));
    overrides.extend(args.host.clone().map(|host| ("server.host", host)));
    let config = match &args.config {
        Some(file) => Config::load_with(Some(file), &overrides),
        None => Config::load(&overrides),
    };
    config.map_err(|e| Failure::Unusable(e.to_string()))
}

/// Whether this setting is a token, or an address with a password.
fn is_secret(key: &str, value: &str) -> bool {
    let is_token = key.to_lowercase().ends_with("token") && !value.is_empty();
    // A list of addresses has commas, and so may a password.
    let mut urls = std::iter::once(value).chain(value.split(','));
    is_token || urls.any(|url| password_in(url).is_some_and(|password| !password.is_empty()))
}

/// The password in an address, which may be empty; `None` without one. The last @ ends it, because a password may contain one.
fn password_in(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest[..end].rsplit_once('@');
    let (user, _) = host.or_else(|| rest.rsplit_once('@'))?;
    user.split_once(':').map(|(_, password)| password)
}

/// Listens, and stores the port in the configuration, which may have asked for any (0).
async fn bind(config: &mut Config) -> Result<TcpListener, Failure> {
    let (host, port) = (config.server.host.as_str(), config.server.port);
    let refused = |e: io::Error| match e.kind() {
        io::ErrorKind::AddrInUse => {
            unusable_localized!("端口 {port} 被占用；用 --port 另选一个", "port {port} is in use; choose another with --port")
        }
        _ => unusable_localized!("不能监听 {host}:{port}：{e}", "cannot listen on {host}:{port}: {e}"),
    };
    let listener = TcpListener::bind((host, port)).await.map_err(refused)?;
    config.server.port = listener.local_addr().map_err(refused)?.port();
    Ok(listener)
}

/// Runs the upkeep of the metrics every [`METRICS_UPKEEP`]; never returns. First notes the stock of the start, before it is sold from.
async fn metrics_upkeep(app: AppState) {
    while !app.metrics.knows_start() {
        app.metrics.note_levels(stock_admin::read(&app.ctx, 1).await.ok());
        tokio::time::sleep(START_RETRY).await;
    }
    let mut ticks = tokio::time::interval(METRICS_UPKEEP);
    loop {
        ticks.tick().await;
        app.metrics.run_upkeep();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_on_the_command_line_is_known_by_its_key_or_url() {
        for (key, value, wanted) in [
            ("admin.token", "x", true),
            ("Admin.Token", "x", true),
            ("replays.lab_token", "x", true),
            ("mysql.url", "mysql://root:pw@db/test", true),
            ("mysql.url", "mysql://root:p,w@db/test", true),
            ("mysql.url", "mysql://root:p/w@db/test", true),
            ("mysql.urls", "mysql://a/test,mysql://root:pw@b/test", true),
            ("redis.url", "redis://:pw@127.0.0.1", true),
            ("redis.sentinels", "redis://a,redis://:pw@b", true),
            ("admin.token", "", false),
            ("mysql.url", "mysql://root@127.0.0.1:3306/test", false),
            ("mysql.url", "mysql://root:@127.0.0.1:3306/test", false),
            ("redis.url", "redis://127.0.0.1:6379", false),
            ("cluster.http", "http://127.0.0.1:8080", false),
            ("zookeeper.connect", "a:2181,b:2181", false),
            ("redis.prefix", "{x}:", false),
        ] {
            assert_eq!(is_secret(key, value), wanted, "{key}={value}");
        }
    }
}
