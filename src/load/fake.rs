//! A small shop for the generator's own tests: honest, or with one fault at every so many requests.

use super::{
    answer,
    row::{ONE, Row},
    run::{Plan, Snapshot, run},
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::sync::{Arc, Mutex};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Says sold, and writes nothing.
    LostUpdate,
    /// Cuts the connection before it takes the piece.
    CutBefore,
    /// Takes the piece, then cuts the connection without an answer.
    CutAfter,
    /// Takes the piece, and says that it does not know.
    TakesAndDoesNotKnow,
    /// 503, nothing changed.
    Refuses,
    /// Answers, then closes the connection properly.
    Closes,
    /// Never answers.
    Hangs,
}

#[derive(Debug, Default)]
pub(super) struct Shop {
    pub(super) left: i64,
    pub(super) requests: u64,
    fault: Option<(Fault, u64)>,
}

pub(super) struct Fake {
    pub(super) base: String,
    pub(super) shop: Arc<Mutex<Shop>>,
}

impl Fake {
    /// Opens a shop; every `every`-th request meets the fault.
    pub(super) async fn open(fault: Option<(Fault, u64)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let shop = Arc::new(Mutex::new(Shop { fault, ..Shop::default() }));
        let served = Arc::clone(&shop);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shop = Arc::clone(&served);
                tokio::spawn(async move {
                    let service = service_fn(move |request| serve(Arc::clone(&shop), request));
                    http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
                });
            }
        });
        Self { base, shop }
    }

    pub(super) fn plan(&self, strategy: &str, threads: usize, loops: usize, count: i64) -> Plan {
        Plan {
            base: self.base.clone(),
            target: ONE.into(),
            strategy: strategy.into(),
            threads,
            loops,
            hold_ms: 0,
            stock_id: 1,
            count,
            token: None,
        }
    }

    pub(super) async fn run(&self, strategy: &str, threads: usize, loops: usize, count: i64) -> Row {
        let plan = self.plan(strategy, threads, loops, count);
        run(&plan, &watch::channel(Snapshot::default()).0, &CancellationToken::new()).await.unwrap()
    }

    pub(super) fn requests(&self) -> u64 {
        self.shop.lock().unwrap().requests
    }
}

async fn serve(shop: Arc<Mutex<Shop>>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, &'static str> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| "no body")?.to_bytes();
    match (&head.method, head.uri.path()) {
        (&Method::PUT, "/stock") => {
            let wanted: serde_json::Value = serde_json::from_slice(&body).map_err(|_| "no JSON")?;
            shop.lock().unwrap().left = wanted["count"].as_i64().ok_or("no count")?;
            Ok(say(StatusCode::OK, "{}"))
        }
        (&Method::GET, "/stock") => {
            let left = shop.lock().unwrap().left;
            Ok(say(StatusCode::OK, &format!(r#"{{"mysql":{{"count":{left}}},"redis":{{"count":{left}}}}}"#)))
        }
        (&Method::GET, "/strategies") => {
            let known: Vec<_> = crate::stock::ALL.iter().map(|s| format!(r#"{{"slug":"{}"}}"#, s.slug)).collect();
            Ok(say(StatusCode::OK, &format!("[{}]", known.join(","))))
        }
        (&Method::GET, "/") => Ok(say(StatusCode::OK, "<!doctype html>")),
        (&Method::POST, _) => sell(&shop).await,
        _ => Ok(say(StatusCode::NOT_FOUND, "")),
    }
}

async fn sell(shop: &Mutex<Shop>) -> Result<Response<Full<Bytes>>, &'static str> {
    let (fault, sold) = {
        let mut shop = shop.lock().unwrap();
        shop.requests += 1;
        let fault = shop.fault.filter(|(_, every)| shop.requests.is_multiple_of(*every)).map(|(fault, _)| fault);
        let sold = shop.left > 0;
        let untouched = matches!(fault, Some(Fault::LostUpdate | Fault::CutBefore | Fault::Refuses | Fault::Hangs));
        shop.left -= i64::from(sold && !untouched);
        (fault, sold)
    };
    match fault {
        Some(Fault::CutBefore | Fault::CutAfter) => Err("cut"),
        Some(Fault::TakesAndDoesNotKnow) => Ok(say(StatusCode::INTERNAL_SERVER_ERROR, "outcome: unknown")),
        Some(Fault::Refuses) => Ok(say(StatusCode::SERVICE_UNAVAILABLE, "lock not had")),
        Some(Fault::Hangs) => std::future::pending().await,
        _ if !sold => Ok(say(StatusCode::CONFLICT, "库存不足！")),
        Some(Fault::Closes) => {
            let mut answer = say(StatusCode::OK, answer::SOLD);
            answer.headers_mut().insert("connection", http::HeaderValue::from_static("close"));
            Ok(answer)
        }
        _ => Ok(say(StatusCode::OK, answer::SOLD)),
    }
}

fn say(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text.to_owned()));
    *response.status_mut() = status;
    response.headers_mut().insert("x-instance", http::HeaderValue::from_static("fake"));
    response
}
