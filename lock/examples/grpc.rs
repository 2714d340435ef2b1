//! A lock around a gRPC service: one call at a time for each product, which the call's metadata name. A refused call gets a
//! gRPC status. A service of tonic is such a router: `Routes::new(StockServer::new(…)).into_axum_router()`.
//!
//! `cargo run -p oversell-lock --example grpc --features redis,tower -- redis://127.0.0.1:6379`

use axum::{
    Router,
    body::Body,
    http::{Request, Response, header::CONTENT_TYPE},
    routing::post,
};
use oversell_lock::{
    LockError,
    redis::{RedisClient, RedisOptions},
    tower::{LockLayer, Refusal},
};
use std::{env, error::Error, time::Duration};
use tower::ServiceExt;

const OK: u8 = 0;
const INVALID_ARGUMENT: u8 = 3;
const ABORTED: u8 = 10;
const UNAVAILABLE: u8 = 14;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let redis = RedisClient::new(RedisOptions::new(url).prefix("example:"))?;

    let locks = redis.clone();
    let layer: LockLayer<Body> = LockLayer::by_key("grpc:{header:x-sku}").no_wait().locks(move |name| locks.lock(name))?;
    let service = Router::new().route("/shop.Stock/Deduct", post(deduct)).route_layer(layer.answer(refused));

    let call = async |sku: &str| {
        let request = Request::post("/shop.Stock/Deduct").header("x-sku", sku);
        let request = request.body(Body::empty()).expect("a request");
        let answer = service.clone().oneshot(request).await;
        let answer = answer.expect("a router does not fail");
        let code = answer.headers()["grpc-status"].to_str();
        code.expect("a number").to_owned()
    };
    let (first, second, other) = tokio::join!(call("a"), call("a"), call("b"));
    println!("two for the same goods: {first} and {second}; one for others: {other}");
    println!("one that does not say which goods: {}", call("").await);
    let mut codes = [first, second];
    codes.sort();
    if codes != [OK, ABORTED].map(|code| code.to_string()) {
        return Err("both or none of the two were inside".into());
    }
    redis.close().await;
    Ok(())
}

/// What a client of gRPC understands, instead of a status of HTTP; tonic has `Status::aborted(…).into_http()`.
fn refused(refusal: Refusal) -> Response<Body> {
    let code = match refusal {
        Refusal::Lock(LockError::Taken { .. } | LockError::Lost { .. }) => ABORTED,
        Refusal::Lock(_) => UNAVAILABLE,
        _ => INVALID_ARGUMENT,
    };
    status(code)
}

/// The whole answer of a call without messages.
fn status(code: u8) -> Response<Body> {
    let answer = Response::builder().header(CONTENT_TYPE, "application/grpc");
    let answer = answer.header("grpc-status", code.to_string());
    answer.body(Body::empty()).expect("valid headers")
}

async fn deduct() -> Response<Body> {
    tokio::time::sleep(Duration::from_millis(300)).await;
    status(OK)
}
