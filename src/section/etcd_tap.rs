//! A way to etcd on which each write of a client is reported to a follower, and what the server answered.
//!
//! An actor of a replay has clients of its own over it: what the lock library sends for it is reported. Reads, watches and renewals
//! are not: a waiter repeats them.

use super::{Points, etcd::decoded};
use http::Uri;
use oversell_lab::clients::proxy::Proxy;
use parking_lot::Mutex;
use serde_json::Value;
use std::{collections::HashMap, io};

/// A proxy to each of these nodes, and the proxies' addresses.
pub(crate) fn tap_etcd(endpoints: &[String], points: &Points) -> io::Result<(Vec<Proxy>, Vec<String>)> {
    let proxies = endpoints.iter().map(|endpoint| {
        let node = endpoint.parse::<Uri>().ok().and_then(|uri| Some(uri.authority()?.to_string())).unwrap_or_default();
        let (points, connections) = (points.clone(), Mutex::new(HashMap::<u64, Connection>::new()));
        Proxy::filtered(node, move |piece| {
            connections.lock().entry(piece.connection).or_default().add(piece.from_server, piece.bytes, &points);
            true
        })
    });
    let proxies = proxies.collect::<io::Result<Vec<_>>>()?;
    let addresses = proxies.iter().map(|proxy| format!("http://{}", proxy.address())).collect();
    Ok((proxies, addresses))
}

/// What has passed on one connection of HTTP/1.1, on which an answer follows its request.
#[derive(Default)]
struct Connection {
    request: Vec<u8>,
    answer: Vec<u8>,
    /// The line of a request without an answer.
    unanswered: Option<String>,
}

impl Connection {
    fn add(&mut self, from_server: bool, bytes: &[u8], points: &Points) {
        let message = if from_server { &mut self.answer } else { &mut self.request };
        message.extend_from_slice(bytes);
        let Some((head, body)) = complete_message(message) else { return };
        message.clear();
        if from_server {
            if let Some(line) = self.unanswered.take() {
                points.report_answer(line, answer_text(&body));
            }
        } else if let Some(line) = request_line(&head, &body) {
            points.report_sent(|| line.clone());
            self.unanswered = Some(line);
        }
    }
}

/// The head and the JSON body of a message that is there in whole; `None` of a part of it, and of a stream.
fn complete_message(message: &[u8]) -> Option<(String, Value)> {
    let text = String::from_utf8_lossy(message);
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.to_owned(), serde_json::from_str(body).ok()?))
}

/// The request in words like those of etcdctl; `None` if it writes nothing but a renewal.
fn request_line(head: &str, body: &Value) -> Option<String> {
    let id = || body["ID"].as_str().and_then(|id| id.parse().ok()).map(|id: i64| format!("{id:x}")).unwrap_or_default();
    match head.split(' ').nth(1)?.trim_start_matches("/v3/") {
        "lease/grant" => Some(format!("lease grant {} {}", body["TTL"].as_str()?, id())),
        "lease/revoke" => Some(format!("lease revoke {}", id())),
        "kv/txn" => {
            let compare = &body["compare"][0];
            let revision = compare["create_revision"].as_str()?;
            let done = body["success"].as_array()?.iter().filter_map(|one| match one {
                put if put["request_put"].is_object() => {
                    let put = &put["request_put"];
                    Some(format!("put {} {}", decoded(&put["key"]), decoded(&put["value"])))
                }
                one => Some(format!("del {}", decoded(one["request_delete_range"].get("key")?))),
            });
            let done: Vec<_> = done.collect();
            Some(format!("txn if create({}) = {revision}: {}", decoded(&compare["key"]), done.join("; ")))
        }
        _ => None,
    }
}

/// What an answer says: whether the transaction was done, the seconds of a lease, or why it is refused.
fn answer_text(body: &Value) -> String {
    match (body["succeeded"].as_bool(), body["TTL"].as_str(), body["error"].as_str()) {
        (Some(true), ..) => "OK".to_owned(),
        (_, Some(seconds), _) => format!("{seconds} s"),
        (.., Some(error)) => error.to_owned(),
        // A field that is false is left out.
        _ if body["responses"].is_array() => "no".to_owned(),
        _ => "OK".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_write_is_told_and_a_renewal_is_not() {
        let line = |path: &str, body: Value| {
            let (head, body) = complete_message(format!("POST /v3/{path} HTTP/1.1\r\nhost: x\r\n\r\n{body}").as_bytes())?;
            request_line(&head, &body)
        };
        assert_eq!(line("lease/grant", json!({"ID": "255", "TTL": "5"})).as_deref(), Some("lease grant 5 ff"));
        let absent = json!([{"key": "L2EvZmY=", "target": "CREATE", "create_revision": "0"}]);
        let put = json!({"request_put": {"key": "L2EvZmY=", "value": "QQ==", "lease": "255"}});
        let join = json!({"compare": absent, "success": [put, {"request_range": {}}]});
        assert_eq!(line("kv/txn", join).as_deref(), Some("txn if create(/a/ff) = 0: put /a/ff A"));
        for (path, body) in
            [("lease/keepalive", json!({"ID": "255"})), ("kv/range", json!({})), ("kv/txn", json!({"success": []}))]
        {
            assert_eq!(line(path, body), None, "{path}");
        }
        assert!(complete_message(b"POST / HTTP/1.1\r\n\r\n{\"a\":").is_none(), "a part");
    }
}
