//! etcd's JSON gateway: each request is a POST to one of the nodes, and has a time limit.
//!
//! 1. Ask the node that answered last. If it does not answer within its part of the time limit, or cannot now, ask the next.
//! 2. So a request may be carried out twice: those of the locks have the same effect then.
//! 3. Requests run in the client's runtime, since a connection belongs to the runtime in which it was made.
//!
//! Keys and values are base64, and 64-bit numbers are texts. Source: `rpc.proto` of etcd 3.4, and "gRPC gateway" in its
//! documentation.

use super::SERVER;
use crate::{Cause, LockError};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use http::{Request, uri::PathAndQuery};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::{
    client::legacy::{Client, ResponseFuture, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::{Value, json};
use std::{
    error::Error,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{runtime::Handle, time::timeout};
use tokio_util::task::AbortOnDropHandle;

/// The most bytes of an answer: more is none of etcd's to a request of a lock, which reads two keys at most.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;
/// The most idle connections to a node; more are closed.
const MAX_IDLE_CONNECTIONS: usize = 32;

/// gRPC's code for what does not exist, a lease for example.
pub(super) const NOT_FOUND: u64 = 5;
/// gRPC's code for a state that forbids it, as a lease that exists already.
pub(super) const FAILED_PRECONDITION: u64 = 9;
/// gRPC's codes of answers that another node, or the same one later, may not give: cancelled, unknown, deadline exceeded,
/// aborted, internal, unavailable.
const TEMPORARY: [u64; 6] = [1, 2, 4, 10, 13, 14];
/// A refusal with another code that is temporary.
const TOO_MANY_REQUESTS: &str = "too many requests";

/// Why a call failed.
#[derive(Debug)]
pub(super) enum CallFailure {
    /// No node answered, or none could do it now: it may have been carried out.
    Unanswered(Cause),
    /// A node refused, with this code of gRPC.
    Refused { code: u64, message: String },
}

impl From<CallFailure> for LockError {
    fn from(failure: CallFailure) -> Self {
        match failure {
            CallFailure::Unanswered(reason) => Self::unavailable(SERVER, reason),
            CallFailure::Refused { message, .. } => Self::Refused { server: SERVER, reason: message.into() },
        }
    }
}

/// The nodes, the connections to them, and which of them is asked first.
#[derive(Debug)]
pub(super) struct Gateway {
    nodes: Vec<String>,
    /// The index of the node that answered last.
    preferred: AtomicUsize,
    http: Client<HttpConnector, Full<Bytes>>,
    runtime: Handle,
}

impl Gateway {
    pub(super) fn new(nodes: Vec<String>, runtime: Handle) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let mut http = Client::builder(TokioExecutor::new());
        let http = http.pool_max_idle_per_host(MAX_IDLE_CONNECTIONS).build(connector);
        // Processes begin with different nodes.
        let first = fastrand::usize(..nodes.len());
        Self { nodes, preferred: AtomicUsize::new(first), http, runtime }
    }

    /// Sends a request, as `kv/txn`, to one node after the other until one answers, for `limit` at most. Returns the answer, and
    /// whether another node did not answer before: then the request may have been carried out twice.
    ///
    /// # Cancel safety
    ///
    /// It may have been carried out.
    pub(super) async fn call(
        self: &Arc<Self>,
        path: &'static str,
        body: Value,
        limit: Duration,
    ) -> Result<(Value, bool), CallFailure> {
        let (gateway, body) = (Arc::clone(self), Bytes::from(body.to_string()));
        let call = self.runtime.spawn(async move { gateway.ask_each(path, body, limit).await });
        let ended = |_| Err(CallFailure::Unanswered("the client's runtime has ended".into()));
        AbortOnDropHandle::new(call).await.unwrap_or_else(ended)
    }

    async fn ask_each(&self, path: &'static str, body: Bytes, limit: Duration) -> Result<(Value, bool), CallFailure> {
        let nodes = self.nodes.len();
        let mut failures = Vec::new();
        while failures.len() < nodes {
            let node = self.preferred.load(Ordering::Relaxed);
            let part = limit / u32::try_from(nodes).unwrap_or(u32::MAX);
            let failure = match timeout(part, self.ask(node, path, body.clone())).await {
                Ok(Err(CallFailure::Unanswered(reason))) => reason.to_string(),
                Ok(answered) => return answered.map(|answer| (answer, !failures.is_empty())),
                Err(_) => format!("no answer within {} ms", part.as_millis()),
            };
            failures.push(format!("{}: {failure}", self.nodes[node]));
            // Another call may have moved on already.
            self.preferred.compare_exchange(node, (node + 1) % nodes, Ordering::Relaxed, Ordering::Relaxed).ok();
        }
        Err(CallFailure::Unanswered(failures.join("; ").into()))
    }

    /// Sends a request to this node and reads its answer; a message of a stream comes without its wrapper.
    async fn ask(&self, node: usize, path: &str, body: Bytes) -> Result<Value, CallFailure> {
        let response = self.post(node, path, body).await.map_err(|e| unanswered(&e))?;
        let status = response.status();
        let read = Limited::new(response.into_body(), MAX_ANSWER_BYTES).collect().await;
        let bytes = read.map_err(|e| unanswered(&*e))?.to_bytes();
        let mut answer = serde_json::from_slice::<Value>(&bytes).unwrap_or_default();
        // An error of a stream has its code elsewhere.
        let code = [&answer["code"], &answer["error"]["grpc_code"]].into_iter().find_map(Value::as_u64);
        let message = [&answer["message"], &answer["error"]["message"]].into_iter().find_map(Value::as_str);
        match code {
            Some(code) => Err(refusal(code, message.unwrap_or("no reason"))),
            None if status.is_success() && answer.is_object() => {
                let result = answer["result"].take();
                Ok(if result.is_null() { answer } else { result })
            }
            None => {
                let text: String = String::from_utf8_lossy(&bytes).trim().chars().take(100).collect();
                Err(CallFailure::Unanswered(format!("this is no answer of etcd: {status}, {text:?}").into()))
            }
        }
    }

    /// Posts to this node.
    fn post(&self, node: usize, path: &str, body: Bytes) -> ResponseFuture {
        let mut request = Request::post(PathAndQuery::from_static("/")).body(Full::new(body)).unwrap_or_default();
        if let Ok(uri) = format!("http://{}/v3/{path}", self.nodes[node]).parse() {
            *request.uri_mut() = uri;
        }
        self.http.request(request)
    }

    /// Completes once the key is gone, or the node ends the watch or cannot say; never if the connection breaks or the node stands
    /// still. So its caller looks again from time to time.
    ///
    /// It watches from now on, and looks once the watch stands: from a revision that is past etcd serves a watch only every 100 ms.
    pub(super) async fn wait_until_deleted(self: &Arc<Self>, key: &[u8], limit: Duration) {
        let (gateway, key) = (Arc::clone(self), base64(key));
        let create = json!({"create_request": {"key": key, "filters": ["NOPUT"]}});
        let watch = self.runtime.spawn(async move {
            let node = gateway.preferred.load(Ordering::Relaxed);
            let Ok(mut response) = gateway.post(node, "watch", Bytes::from(create.to_string())).await else {
                return pending().await;
            };
            let mut text = Vec::new();
            while let Some(Ok(frame)) = response.frame().await {
                text.extend(frame.into_data().unwrap_or_default());
                // Each line is a message.
                while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<_> = text.drain(..=end).collect();
                    let message = serde_json::from_slice::<Value>(&line).unwrap_or_default();
                    let result = &message["result"];
                    if result["canceled"] == true || result["events"].is_array() {
                        return;
                    }
                    let look = || gateway.call("kv/range", json!({"key": key, "count_only": true}), limit);
                    if result["created"] == true && !look().await.is_ok_and(|(found, _)| number_of(&found["count"]) > 0) {
                        return;
                    }
                }
            }
            pending().await
        });
        AbortOnDropHandle::new(watch).await.ok();
    }
}

/// The failure of a refused call.
fn refusal(code: u64, message: &str) -> CallFailure {
    match TEMPORARY.contains(&code) || message.contains(TOO_MANY_REQUESTS) {
        true => CallFailure::Unanswered(message.into()),
        false => CallFailure::Refused { code, message: message.to_owned() },
    }
}

/// The failure of a request without an answer. etcd hangs up on a client without TLS that it expects to have it.
fn unanswered(error: &dyn Error) -> CallFailure {
    let cause = innermost_cause(error);
    let hint = if cause.contains("closed") { ": does it expect TLS, which is not known here?" } else { "" };
    CallFailure::Unanswered(format!("{cause}{hint}").into())
}

/// The error at the end of the chain of causes: "Connection refused" rather than "client error (Connect)".
fn innermost_cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// A key or a value as the gateway has it.
pub(super) fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// The bytes of a key or a value of an answer; empty if it is left out.
pub(super) fn bytes_of(value: &Value) -> Vec<u8> {
    BASE64_STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default()
}

/// A number of an answer; 0 if it is left out, as etcd means it.
pub(super) fn number_of(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}
