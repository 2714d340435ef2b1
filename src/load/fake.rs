//! A small shop for the generator's own tests: honest, or with a fault at every nth request.

use super::{
    answer,
    plan::{ONE_INSTANCE, Plan},
    row::Row,
    run::{Snapshot, run},
};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Bytes, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

/// How long a shop that stalls answers nobody: longer than the loads that its tests send.
pub(super) const STALL: Duration = Duration::from_millis(1200);

/// The fault of a shop.
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
    /// Somebody else sets product 1.
    Reset,
    /// Once, nobody is answered for [`STALL`].
    Stalls,
}

#[derive(Debug, Default)]
/// The state of a shop.
pub(super) struct Shop {
    stock: BTreeMap<i64, i64>,
    pub(super) requests: u64,
    fault: Option<(Fault, u64)>,
    stalled_until: Option<Instant>,
}

/// A running shop, and its addresses.
pub(super) struct Fake {
    pub(super) base: String,
    /// The address at which the shop answers as three instances in turn.
    pub(super) http: String,
    pub(super) shop: Arc<Mutex<Shop>>,
}

impl Fake {
    /// Opens a shop; every n-th request meets the fault.
    pub(super) async fn open(fault: Option<(Fault, u64)>) -> Self {
        let shop = Arc::new(Mutex::new(Shop { fault, ..Shop::default() }));
        let base = listen(&shop, &["8000"]).await;
        let http = listen(&shop, &["8000", "8100", "8200"]).await;
        Self { base, http, shop }
    }

    pub(super) fn plan(&self, strategy: &str, threads: usize, loops: usize, count: i64) -> Plan {
        let mut plan = Plan::new(&self.base, ONE_INSTANCE, strategy);
        (plan.threads, plan.loops, plan.count) = (threads, loops, count);
        plan
    }

    pub(super) async fn run(&self, strategy: &str, threads: usize, loops: usize, count: i64) -> Row {
        run_to_its_end(&self.plan(strategy, threads, loops, count)).await
    }

    /// The ids of the products.
    pub(super) fn products(&self) -> Vec<i64> {
        self.shop.lock().unwrap().stock.keys().copied().collect()
    }

    pub(super) fn requests(&self) -> u64 {
        self.shop.lock().unwrap().requests
    }
}

pub(super) async fn run_to_its_end(plan: &Plan) -> Row {
    run(plan, &watch::channel(Snapshot::default()).0, &CancellationToken::new()).await.unwrap()
}

/// Serves the shop on a free port and returns its base URL. Each connection gets the next of these names, which all its answers
/// have as `x-instance`.
async fn listen(shop: &Arc<Mutex<Shop>>, names: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let shop = Arc::clone(shop);
    tokio::spawn(async move {
        let mut turn = names.iter().cycle();
        while let (Ok((stream, _)), Some(name)) = (listener.accept().await, turn.next()) {
            let shop = Arc::clone(&shop);
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    let shop = Arc::clone(&shop);
                    async move {
                        let mut answer = serve(shop, request).await?;
                        answer.headers_mut().insert("x-instance", http::HeaderValue::from_static(name));
                        Ok::<_, &'static str>(answer)
                    }
                });
                http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
            });
        }
    });
    base
}

async fn serve(shop: Arc<Mutex<Shop>>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, &'static str> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| "no body")?.to_bytes();
    let query = head.uri.query().unwrap_or_default();
    let product = query.split('&').find_map(|field| field.strip_prefix("stock_id=")?.parse().ok()).unwrap_or(1);
    match (&head.method, head.uri.path()) {
        (&Method::PUT, "/stock") => {
            let wanted: Value = serde_json::from_slice(&body).map_err(|_| "no JSON")?;
            let count = wanted["count"].as_i64().ok_or("no count")?;
            shop.lock().unwrap().stock.insert(product, count);
            Ok(text_answer(StatusCode::OK, "{}"))
        }
        (&Method::DELETE, "/stock") => {
            shop.lock().unwrap().stock.remove(&product);
            Ok(text_answer(StatusCode::OK, "{}"))
        }
        (&Method::GET, "/stock") => {
            let left = shop.lock().unwrap().stock.get(&product).copied();
            let left = json!({"count": left.ok_or("no such product")?});
            let stock = json!({"mysql": left, "redis": left});
            Ok(text_answer(StatusCode::OK, &stock.to_string()))
        }
        (&Method::GET, "/strategies") => {
            let known = crate::stock::ALL.iter().map(|s| json!({"slug": s.slug}));
            Ok(text_answer(StatusCode::OK, &known.collect::<Value>().to_string()))
        }
        (&Method::GET, "/" | "/health/live") => Ok(text_answer(StatusCode::OK, "<!doctype html>")),
        (&Method::POST, _) => sell(&shop, product).await,
        _ => Ok(text_answer(StatusCode::NOT_FOUND, "")),
    }
}

async fn sell(shop: &Mutex<Shop>, product: i64) -> Result<Response<Full<Bytes>>, &'static str> {
    let (fault, sold, stalled) = {
        let mut shop = shop.lock().unwrap();
        shop.requests += 1;
        let fault = shop.fault.filter(|(_, every)| shop.requests.is_multiple_of(*every)).map(|(fault, _)| fault);
        if fault == Some(Fault::Reset) {
            shop.stock.insert(1, 1_000_000);
        }
        if fault == Some(Fault::Stalls) && shop.stalled_until.is_none() {
            shop.stalled_until = Some(Instant::now() + STALL);
        }
        let left = shop.stock.entry(product).or_default();
        let sold = *left > 0;
        let untouched = matches!(fault, Some(Fault::LostUpdate | Fault::CutBefore | Fault::Refuses | Fault::Hangs));
        *left -= i64::from(sold && !untouched);
        (fault, sold, shop.stalled_until)
    };
    if let Some(until) = stalled {
        tokio::time::sleep_until(until.into()).await;
    }
    match fault {
        Some(Fault::CutBefore | Fault::CutAfter) => Err("cut"),
        Some(Fault::TakesAndDoesNotKnow) => Ok(text_answer(StatusCode::INTERNAL_SERVER_ERROR, "outcome: unknown")),
        Some(Fault::Refuses) => Ok(text_answer(StatusCode::SERVICE_UNAVAILABLE, "lock not had")),
        Some(Fault::Hangs) => std::future::pending().await,
        _ if !sold => Ok(text_answer(StatusCode::CONFLICT, "库存不足！")),
        Some(Fault::Closes) => {
            let mut answer = text_answer(StatusCode::OK, answer::SOLD);
            answer.headers_mut().insert("connection", http::HeaderValue::from_static("close"));
            Ok(answer)
        }
        _ => Ok(text_answer(StatusCode::OK, answer::SOLD)),
    }
}

fn text_answer(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text.to_owned()));
    *response.status_mut() = status;
    response
}
