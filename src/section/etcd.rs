//! etcd's JSON gateway, for what is no lock: probes, resets, and looks at the keys of a lock.

use crate::{
    ctx::Ctx,
    error::{ETCD_IS_FULL, Error, etcd_is_full},
    server::Server,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use oversell_lab::clients::http_client::{Answer, Ask, HttpError, client};
use serde_json::{Value, json};
use std::time::Duration;

/// Time limit of one node's answer: a node that does not answer leaves time for the next one.
const NODE_TIMEOUT: Duration = Duration::from_millis(800);
/// Time limit of the only node's answer.
const ONLY_NODE_TIMEOUT: Duration = Duration::from_millis(2400);

/// A key below the prefix of a lock: its owner holds the lock or waits for it.
#[derive(Debug, Clone)]
pub(crate) struct Contender {
    /// The value of the key.
    pub(crate) owner: String,
    pub(crate) lease: String,
}

/// Sends a request such as `kv/range` to the first node that serves it, and returns its JSON.
/// Errors: [`Error::NoEtcd`] if the instance has no etcd, [`Error::Unavailable`] if no node answers; a refusal by its meaning.
pub(crate) async fn ask(ctx: &Ctx, request: &str, body: Value) -> Result<Value, Error> {
    let mut last = Error::NoEtcd;
    let endpoints = &ctx.config.etcd.endpoints;
    let limit = if endpoints.len() == 1 { ONLY_NODE_TIMEOUT } else { NODE_TIMEOUT };
    for endpoint in endpoints {
        match ask_node(endpoint, request, &body, limit).await {
            Ok(answer) => return Ok(answer),
            // Another node may have a leader.
            Err(HttpError::Refused { status, body }) if status.is_server_error() => last = refusal(&body),
            Err(HttpError::Refused { body, .. }) => return Err(refusal(&body)),
            Err(error) => last = Error::unavailable(Server::Etcd, error),
        }
    }
    Err(last)
}

/// Sends a request to the node at `endpoint`, which has to answer within `limit`.
pub(crate) async fn ask_node(endpoint: &str, request: &str, body: &Value, limit: Duration) -> Result<Value, HttpError> {
    let url = format!("{}/v3/{request}", endpoint.trim_end_matches('/'));
    client().post(url).json(body).timeout(limit).answer().await.and_then(Answer::success)?.json()
}

/// The error of a refused request.
fn refusal(said: &str) -> Error {
    match etcd_is_full(said) {
        true => Error::refused(Server::Etcd, ETCD_IS_FULL, said),
        false => Error::unavailable(Server::Etcd, said),
    }
}

/// The keys below the prefix of a lock, the oldest first: the first one has the lock.
pub(crate) async fn contenders(ctx: &Ctx, prefix: &str) -> Result<Vec<Contender>, Error> {
    let oldest_first = json!({"sort_order": "ASCEND", "sort_target": "CREATE"});
    let answer = ask(ctx, "kv/range", below(prefix, oldest_first)).await?;
    let keys = answer["kvs"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let contender = |key: &Value| Contender { owner: decoded(&key["value"]), lease: text(&key["lease"]) };
    Ok(keys.map(contender).collect())
}

/// Deletes the keys below the prefix of a lock.
pub(crate) async fn delete_below(ctx: &Ctx, prefix: &str) -> Result<(), Error> {
    ask(ctx, "kv/deleterange", below(prefix, json!({}))).await.map(drop)
}

/// The request with the range of keys below a prefix. `0` follows `/`, so that no longer name is in it.
fn below(prefix: &str, mut request: Value) -> Value {
    request["key"] = BASE64_STANDARD.encode(format!("{prefix}/")).into();
    request["range_end"] = BASE64_STANDARD.encode(format!("{prefix}0")).into();
    request
}

/// The text in base64; invalid UTF-8 is replaced.
pub(super) fn decoded(text: &Value) -> String {
    let bytes = BASE64_STANDARD.decode(text.as_str().unwrap_or_default()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
