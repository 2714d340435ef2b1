//! A lock around a route: one request at a time for each warehouse and product; the handler does not know of it. The key is made
//! of what the handler reads, so of values: warehouse 007 is warehouse 7.
//!
//! `cargo run -p oversell-lock --example layer --features redis,axum -- redis://127.0.0.1:6379`

use axum::{
    Extension, Router,
    body::Body,
    extract::{Path, Query},
    http::{Request, StatusCode},
    routing::post,
};
use oversell_lock::{
    redis::{RedisClient, RedisOptions},
    tower::{HeldLock, LockLayer, escape},
};
use serde::Deserialize;
use std::{env, error::Error, time::Duration};
use tower::ServiceExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args().nth(1).unwrap_or_else(|| "redis://127.0.0.1:6379".into());
    let redis = RedisClient::new(RedisOptions::new(url).prefix("example:"))?;

    let locks = redis.clone();
    let layer: LockLayer<Body> = LockLayer::by_extractor(|(Path(warehouse), Query(goods)): (Path<u32>, Query<Goods>)| {
        format!("stock:{warehouse}:{}", escape(goods.sku))
    })
    .no_wait()
    .locks(move |name| locks.fenced_lock(name))?;
    let service = Router::new().route("/stock/{warehouse}", post(deduct).layer(layer));

    let ask = async |path: &str| {
        let request = Request::post(path).body(Body::empty()).expect("a request");
        service.clone().oneshot(request).await.expect("a router does not fail").status()
    };
    let (first, second, other) = tokio::join!(ask("/stock/1?sku=a"), ask("/stock/01?sku=%61"), ask("/stock/1?sku=b"));
    println!("two for the same goods: {first} and {second}; one for others: {other}");
    println!("one that does not say which goods: {}", ask("/stock/1").await);
    if [first, second].iter().filter(|status| **status == StatusCode::CONFLICT).count() != 1 {
        return Err("both or none of the two were inside".into());
    }
    redis.close().await;
    Ok(())
}

/// The goods that a request is for.
#[derive(Deserialize)]
struct Goods {
    sku: String,
}

/// The work, with the lock held; its fence is for a resource that must refuse an older holder.
async fn deduct(Extension(held): Extension<HeldLock>) -> String {
    tokio::time::sleep(Duration::from_millis(300)).await;
    format!("one less, under {} with {:?}", held.name, held.fence)
}
