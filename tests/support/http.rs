//! Requests to a lab and their answers.

use super::*;
use oversell::stock::Store;
use reqwest::{Client, RequestBuilder, StatusCode, header};
use serde_json::{Value, json};
use std::sync::LazyLock;

/// In milliseconds.
pub(crate) const MINUTE: u64 = 60_000;

pub(crate) fn check_url(base: &str, slug: &str, hold_ms: u64, wait_ms: u64) -> String {
    format!("{base}/check/lock/{slug}?hold_ms={hold_ms}&wait_ms={wait_ms}")
}

pub(crate) fn check_url_of(base: &str, slug: &str, product: usize, hold_ms: u64, wait_ms: u64) -> String {
    format!("{}&stock_id={product}", check_url(base, slug, hold_ms, wait_ms))
}

static CLIENT: LazyLock<Client> = LazyLock::new(new_client);

/// A new client, which uses no proxy of the shell.
pub(crate) fn new_client() -> Client {
    Client::builder().no_proxy().build().expect("a client")
}

/// Shared by the tests; buyers have their own.
pub(crate) fn client() -> &'static Client {
    &CLIENT
}

pub(crate) async fn answer(request: RequestBuilder) -> Result<(StatusCode, String)> {
    let answer = request.send().await?;
    Ok((answer.status(), answer.text().await?))
}

pub(crate) async fn ask(url: String) -> Result<(StatusCode, String)> {
    answer(client().get(url)).await
}

pub(crate) async fn ask_json(url: String) -> Result<Value> {
    let answer = client().get(url).header(header::ACCEPT, "application/json");
    Ok(answer.send().await?.json().await?)
}

/// Elements of a list; none if it is no list.
pub(crate) fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

pub(crate) async fn status(url: String) -> Result<StatusCode> {
    Ok(client().get(url).send().await?.status())
}

/// Whether an instance is ready, and what it says of itself and its servers.
pub(crate) async fn readiness(base: &str) -> Result<(bool, Value)> {
    let answer = client().get(format!("{base}/health/ready")).send().await?;
    Ok((answer.status() == StatusCode::OK, answer.json().await?))
}

pub(crate) async fn wait_until_ready(base: &str) -> Result<()> {
    wait_until("it is ready", || async { Ok(readiness(base).await?.0) }).await
}

/// The body of a GET that must have this status.
pub(crate) async fn body_with_status(url: String, with: StatusCode) -> Result<String> {
    let (status, words) = ask(url.clone()).await?;
    ensure!(status == with, "{url}: {status} {words}");
    Ok(words)
}

pub(crate) async fn put_stock(base: &str, count: i64) -> Result<()> {
    put_stock_of(base, 1, count).await
}

pub(crate) async fn put_stock_of(base: &str, product: usize, count: i64) -> Result<()> {
    let reset = client().put(format!("{base}/stock?stock_id={product}"));
    let (status, words) = answer(reset.json(&json!({"count": count}))).await?;
    ensure!(status.is_success(), "{status} {words}");
    Ok(())
}

pub(crate) async fn stock(base: &str, store: Store) -> Result<i64> {
    stock_of(base, 1, store).await
}

pub(crate) async fn stock_of(base: &str, product: usize, store: Store) -> Result<i64> {
    let stock = ask_json(format!("{base}/stock?stock_id={product}")).await?;
    let store = serde_json::to_value(store)?;
    let count = stock[store.as_str().unwrap_or_default()]["count"].as_i64();
    count.with_context(|| format!("no count in {stock}"))
}

/// Buys until nobody gets in any more, so the earlier request is inside. Returns how many got in before.
pub(crate) async fn wait_until_held(base: &str, slug: &str) -> Result<i64> {
    wait_until_held_of(base, slug, 1).await
}

/// The same of a product.
pub(crate) async fn wait_until_held_of(base: &str, slug: &str, product: usize) -> Result<i64> {
    for sold in 0..200 {
        // A server may take a moment, and so a free lock: it is held if a second is not enough.
        match status(check_url_of(base, slug, product, 0, 1000)).await? {
            // A polling holder must find the lock free in between.
            StatusCode::OK => tokio::time::sleep(Duration::from_millis(20)).await,
            StatusCode::SERVICE_UNAVAILABLE => return Ok(sold),
            other => bail!("{slug}: {other}"),
        }
    }
    bail!("{slug}: nobody is inside")
}
