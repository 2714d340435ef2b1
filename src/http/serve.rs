//! `oversell serve`: one instance, from its configuration to its last answer.

use super::{app::App, listen, router::router, startup};
use crate::{
    addresses::Instance,
    config::Config,
    ctx::Ctx,
    failure::Failure,
    telemetry::{self, Form},
};
use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// How often what was measured is put into its buckets.
const SORT_FIGURES: Duration = Duration::from_secs(5);

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
    /// Any setting of config/default.toml, as in lock.wait_ms=5000; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = setting)]
    set: Vec<(String, String)>,
    /// Form of the log on stderr; RUST_LOG filters it
    #[arg(long, value_enum, default_value_t = Form::Text)]
    log: Form,
    /// Write name, address and process to this file once it listens
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("must be KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Runs the command until `stopping` is cancelled, then ends within `server.shutdown_ms`.
///
/// # Errors
///
/// [`Failure::Unusable`] where the configuration does not hold or the port is in use.
pub async fn run(args: Args, stopping: CancellationToken) -> Result<(), Failure> {
    telemetry::init(args.log);
    let mut config = configuration(&args)?;
    let listener = bind(&mut config).await?;
    let limit = Duration::from_millis(config.server.shutdown_ms);
    let header_timeout = Duration::from_millis(config.server.header_timeout_ms);

    let ctx = Ctx::new(config).map_err(|e| Failure::Unusable(e.to_string()))?;
    let app = App::new(ctx.clone(), stopping.clone()).map_err(|e| Failure::Unusable(e.to_string()))?;
    let background = [tokio::spawn(startup::watch(app.clone())), tokio::spawn(sort_figures(app.clone()))];
    tracing::info!("oversell {} listens on {}", ctx.instance, app.own_address());
    if let Some(file) = &args.json {
        let instance = Instance { name: ctx.instance.clone(), url: app.own_address(), pid: std::process::id() };
        write(file, &instance).map_err(|e| Failure::Unusable(format!("{}: {e}", file.display())))?;
    }

    // A fifth of the time is for giving back what those held that did not end by themselves.
    let told = listen::serve(listener, router(app), header_timeout, stopping, limit.mul_f64(0.8)).await;
    background.iter().for_each(tokio::task::JoinHandle::abort);
    ctx.close(limit.saturating_sub(told.elapsed())).await;
    Ok(())
}

fn write(file: &Path, instance: &Instance) -> io::Result<()> {
    std::fs::write(file, serde_json::to_vec_pretty(instance)?)
}

fn configuration(args: &Args) -> Result<Config, Failure> {
    let mut overrides: Vec<(&str, String)> =
        args.set.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    overrides.extend(args.port.map(|port| ("server.port", port.to_string())));
    overrides.extend(args.host.clone().map(|host| ("server.host", host)));
    let config = match &args.config {
        Some(file) => Config::load_with(Some(file), &overrides),
        None => Config::load(&overrides),
    };
    config.map_err(|e| Failure::Unusable(e.to_string()))
}

/// Listens, and puts the port that it got into the configuration.
async fn bind(config: &mut Config) -> Result<TcpListener, Failure> {
    let (host, port) = (config.server.host.as_str(), config.server.port);
    let refused = |e: io::Error| match e.kind() {
        io::ErrorKind::AddrInUse => Failure::Unusable(format!("port {port} is in use; choose another with --port")),
        _ => Failure::Unusable(format!("cannot listen on {host}:{port}: {e}")),
    };
    let listener = TcpListener::bind((host, port)).await.map_err(refused)?;
    config.server.port = listener.local_addr().map_err(refused)?.port();
    Ok(listener)
}

async fn sort_figures(app: App) {
    let mut ticks = tokio::time::interval(SORT_FIGURES);
    loop {
        ticks.tick().await;
        app.figures.sort();
    }
}
