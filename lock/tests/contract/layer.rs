//! The layer of the feature `tower`, around an axum router, over each family of locks.
//!
//! The routes: `/stay/{sku}` stays inside until it is released, `/pass/{sku}` returns at once, `/read/{sku}` reads the
//! body, `/panic/{sku}` panics inside.

use super::{
    redis::client,
    register::{layered, layered_and_losable},
    support::*,
};
use axum::{
    Extension, Router,
    body::{Body, Bytes, to_bytes},
    extract::{Path, Query},
    response::Response,
    routing::{get, post},
};
use oversell_lock::{
    redis::RedisClient,
    tower::{HeldLock, LockKey, LockLayer},
};
use serde::Deserialize;
use std::{
    collections::HashMap,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
};
use tokio::sync::Semaphore;
use tower::ServiceExt;

/// How many keys are held at once; `make bench` does it with 100,000.
const KEYS: usize = 20_000;

/// Counts and releases the requests inside.
struct Inside {
    now: AtomicUsize,
    /// Each permit releases one.
    go_on: Semaphore,
}

struct Visit<'a>(&'a Inside);

impl Inside {
    fn enter(&self) -> Visit<'_> {
        self.now.fetch_add(1, SeqCst);
        Visit(self)
    }

    async fn are(&self, so_many: usize) -> Result {
        until(&format!("{so_many} are inside"), async || self.now.load(SeqCst) == so_many).await
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, SeqCst);
    }
}

/// A service under a layer, whose lock names begin with this one.
struct Service {
    inside: Arc<Inside>,
    /// Its requests wait for their lock.
    waiting: Router,
    /// Its requests do not wait.
    at_once: Router,
}

impl Service {
    fn new<L: Lock + 'static>(name: &str, locks: impl Fn(&str) -> L + Clone + Send + Sync + 'static) -> Self {
        let inside = Arc::new(Inside { now: AtomicUsize::new(0), go_on: Semaphore::new(0) });
        let layer = |wait| -> LockLayer<Body> {
            let key = LockLayer::by_key(format!("{name}:{{sku}}")).route("/{how}/{sku}");
            key.wait(wait).locks(locks.clone()).expect("a good template")
        };
        let routes = Router::new()
            .route("/stay/{sku}", get(stay))
            .route("/pass/{sku}", get(async |Extension(held): Extension<HeldLock>| format!("{:?}", held.fence)))
            .route("/read/{sku}", post(async |_: Bytes| {}))
            .route("/panic/{sku}", get(panic))
            .layer(Extension(Arc::clone(&inside)));
        let waiting = routes.clone().layer(layer(SOON));
        Self { inside, waiting, at_once: routes.layer(layer(Duration::ZERO)) }
    }

    /// Starts a request that waits for its lock.
    fn send(&self, path: &str) -> JoinHandle<u16> {
        let answer = ask(&self.waiting, path);
        tokio::spawn(async { answer.await.status().as_u16() })
    }

    /// Checks the status of a request that does not wait.
    async fn now(&self, what: &str, path: &str, status: u16) -> Result {
        let answer = ask(&self.at_once, path).await;
        ensure_equal(what, answer.status().as_u16(), status)
    }
}

async fn stay(Extension(inside): Extension<Arc<Inside>>, Path(_): Path<String>) {
    let _visit = inside.enter();
    inside.go_on.acquire().await.expect("never closed").forget();
}

async fn panic(Path(_): Path<String>) {
    std::panic::resume_unwind(Box::new("a bug"));
}

fn ask(router: &Router, path: &str) -> impl Future<Output = Response> + Send + use<> {
    let request = axum::http::Request::get(path).body(Body::empty()).expect("a request");
    let answer = router.clone().oneshot(request);
    async { answer.await.expect("infallible") }
}

/// Checks the status of an answer.
async fn answers(who: &str, request: JoinHandle<u16>, status: u16) -> Result {
    ensure_equal(who, request.await?, status)
}

/// One key lets one in; another key is another lock; a request that does not wait is refused at once, and one that
/// waits is next.
#[apply(layered!)]
async fn a_key_lets_one_in_and_does_not_wait_for_other_keys<S: Server>(family: Family<S>) -> Result {
    let process = Arc::new(family.process().await);
    one_at_a_time(&Service::new(&name(), move |name: &str| process.lock(name))).await
}

async fn one_at_a_time(service: &Service) -> Result {
    let first = service.send("/stay/1");
    service.inside.are(1).await?;
    service.now("a key that is taken", "/pass/1", 409).await?;
    service.now("another key", "/pass/2", 200).await?;
    let second = service.send("/stay/1");
    let other = service.send("/stay/2");
    service.inside.are(2).await?;
    service.inside.go_on.add_permits(3);
    answers("the first", first, 200).await?;
    answers("the one that has waited", second, 200).await?;
    answers("the other key's", other, 200).await?;
    service.now("after the answer", "/pass/1", 200).await
}

/// The twin gives each request a name of its own, which locks nothing.
#[apply(test!)]
async fn a_new_name_for_each_request_is_caught(redis: &Redis) -> Result {
    let process = Arc::new(redis.client().await);
    let locks = move |_: &str| process.lock(&name());
    let verdict = one_at_a_time(&Service::new(&name(), locks)).await;
    caught(verdict, "a key that is taken: 200")
}

/// The values that the handler of `/stock/{warehouse}` reads.
#[derive(Deserialize)]
struct Goods {
    sku: u32,
}

type Product = (Path<u32>, Query<Goods>);

/// A service whose handler reads numbers, under a layer with this key that does not wait.
fn stock(redis: &RedisClient, inside: &Arc<Inside>, key: LockKey) -> Result<Router> {
    let (locks, inside) = (redis.clone(), Arc::clone(inside));
    let layer: LockLayer<Body> = key.no_wait().locks(move |name| locks.lock(name))?;
    let handler = async move |(Path(_), Query(goods)): Product| {
        let _visit = inside.enter();
        if goods.sku == 5 {
            inside.go_on.acquire().await.expect("never closed").forget();
        }
    };
    Ok(Router::new().route("/stock/{warehouse}", get(handler).layer(layer)))
}

/// One product in each of its spellings, while a request for it is inside.
async fn one_product_is_one_lock(redis: &RedisClient, key: impl Fn() -> LockKey) -> Result {
    const SPELLINGS: [&str; 6] = ["%37?sku=%35", "007?sku=5", "+7?sku=5", "7?sku=05", "7?sku=%2B5", "7?sku=5&sku2=6"];
    let inside = Arc::new(Inside { now: AtomicUsize::new(0), go_on: Semaphore::new(0) });
    let service = stock(redis, &inside, key())?;
    let first = tokio::spawn(ask(&service, "/stock/7?sku=5"));
    inside.are(1).await?;
    for spelling in SPELLINGS {
        let beside = timeout(SHORT, ask(&service, &format!("/stock/{spelling}"))).await;
        let answer = beside.with_context(|| format!("{spelling} is inside too"))?;
        ensure_equal(spelling, answer.status().as_u16(), 409)?;
    }
    let other = ask(&service, "/stock/7?sku=6").await;
    ensure_equal("another product", other.status().as_u16(), 200)?;
    let bad = ask(&service, "/stock/seven?sku=5").await;
    ensure_equal("no number", bad.status().as_u16(), 400)?;
    let says = text(bad).await;
    ensure!(says.contains("Cannot parse"), "the extractor's own answer: {says}");
    inside.go_on.add_permits(1);
    ensure_equal("the first", first.await?.status().as_u16(), 200)
}

/// Two spellings of one value are never inside at once. The twin's key is text, as the request has it.
#[apply(test!)]
async fn a_key_is_made_of_values_and_not_of_spellings(redis: &Redis) -> Result {
    let process = redis.client().await;
    let prefix = name();
    let typed = || {
        let prefix = prefix.clone();
        LockLayer::by_extractor(move |(Path(warehouse), Query(goods)): Product| format!("{prefix}:{warehouse}:{}", goods.sku))
    };
    one_product_is_one_lock(&process, typed).await?;
    let name = name();
    let text = || LockLayer::by_key(format!("{name}:{{warehouse}}:{{sku}}")).route("/stock/{warehouse}").query(["sku"]);
    caught(one_product_is_one_lock(&process, text).await, "007?sku=5 is inside too")
}

/// A key of extractors reads no route and no query, and says so.
#[apply(test!)]
async fn a_route_that_no_key_reads_is_refused(redis: &Redis) -> Result {
    let process = redis.client().await;
    let key = LockLayer::by_extractor(|Path(sku): Path<u32>| sku.to_string()).route("/{sku}");
    let layer: Result<LockLayer<Body>, _> = key.locks(move |name| process.lock(name));
    ensure!(layer.is_err_and(|error| error.rule.contains("no route")), "it was dropped in silence");
    Ok(())
}

/// A request that waited in vain gets `Retry-After`, and the service was not called.
#[apply(layered!)]
async fn a_wait_that_is_over_is_told_with_a_time_to_come_again<S: Server>(family: Family<S>) -> Result {
    let (process, name) = (family.process().await, name());
    let held = take(&process.lock(&format!("{name}:1"))).await?;
    let layer: LockLayer<Body> = LockLayer::by_key(format!("{name}:{{query:sku}}"))
        .wait(Duration::from_millis(50))
        .locks(move |name| process.lock(name))?;
    let router = Router::new().route("/", get(async || "inside")).layer(layer);
    let answer = ask(&router, "/?sku=1").await;
    ensure_equal("status", answer.status().as_u16(), 503)?;
    ensure_equal("when to come again", &answer.headers()["retry-after"], "1")?;
    let body = text(answer).await;
    ensure!(body.starts_with("another request") && !body.contains(&name), "the body is {body}");
    held.release().await?;
    let answer = ask(&router, "/?sku=1").await;
    ensure_equal("once it is free", text(answer).await, "inside")
}

async fn text(answer: Response) -> String {
    String::from_utf8_lossy(&to_bytes(answer.into_body(), 1000).await.expect("a body")).into_owned()
}

/// Every lock is released: after a panic, a client that hung up inside, and one that hung up while waiting.
#[apply(layered!)]
async fn a_request_that_panics_or_hangs_up_leaves_no_lock<S: Server>(family: Family<S>) -> Result {
    let process = Arc::new(family.process().await);
    let service = Service::new(&name(), move |name: &str| process.lock(name));
    let panicked = service.send("/panic/1").await;
    ensure!(panicked.is_err(), "it did not panic");
    answers("after the panic", service.send("/pass/1"), 200).await?;
    let inside = service.send("/stay/1");
    service.inside.are(1).await?;
    let waits = service.send("/stay/1");
    let next = service.send("/pass/1");
    waits.abort();
    inside.abort();
    answers("after those that have hung up", next, 200).await
}

/// The work ends when its lock is lost, and the client is told.
#[apply(layered_and_losable!)]
async fn a_lost_lock_ends_the_work<S: Server>(family: Family<S>) -> Result {
    let (process, name) = (Arc::new(family.process().await), name());
    let locks = Arc::clone(&process);
    let service = Service::new(&name, move |name: &str| locks.lock(name));
    let held = service.send("/stay/1");
    service.inside.are(1).await?;
    family.take_away(&process, &format!("{name}:1")).await;
    answers("the request that has lost its lock", held, 409).await?;
    service.inside.are(0).await
}

/// A client that does not finish its body has no lock yet, and blocks nobody.
#[apply(layered!)]
async fn a_body_that_does_not_come_holds_no_lock<S: Server>(family: Family<S>) -> Result {
    let process = Arc::new(family.process().await);
    let service = Service::new(&name(), move |name: &str| process.lock(name));
    let post = |body| {
        let request = axum::http::Request::post("/read/1").body(body);
        service.waiting.clone().oneshot(request.expect("a request"))
    };
    let never = futures::stream::pending::<Result<Bytes, std::convert::Infallible>>();
    let slow = tokio::spawn(post(Body::from_stream(never)));
    for n in 0..5 {
        let answer = post(Body::from("all of it")).await?;
        ensure_equal(&format!("request {n} beside it"), answer.status().as_u16(), 200)?;
    }
    ensure!(!slow.is_finished(), "it was answered");
    slow.abort();
    Ok(())
}

#[apply(test!)]
async fn the_work_has_its_fence(redis: &Redis) -> Result {
    let process = Arc::new(redis.client().await);
    let service = Service::new(&name(), move |name: &str| process.fenced_lock(name));
    for fence in ["Some(Fence(1))", "Some(Fence(2))"] {
        let answer = ask(&service.waiting, "/pass/1").await;
        ensure_equal("its fence", text(answer).await, fence)?;
    }
    Ok(())
}

/// [004]'s open question: many keys are held at once, and afterwards nothing is left.
#[apply(test!)]
async fn keys_that_nobody_uses_are_dropped(redis: &Redis) -> Result {
    // So many keys could exceed a command's timeout and a lease, which are not the subject.
    let (minutes, process) = (Duration::from_secs(600), oversell_lock::Process::new());
    let client = client(&process, &redis.host(), minutes, minutes);
    let locks = client.clone();
    let service = Service::new(&name(), move |name: &str| locks.lock(name));
    let mut requests = JoinSet::new();
    for key in 0..KEYS {
        requests.spawn(ask(&service.waiting, &format!("/stay/{key}")));
    }
    // A busy machine needs time for them.
    while service.inside.now.load(SeqCst) < KEYS && requests.len() == KEYS {
        tokio::time::sleep(Duration::from_millis(20)).await;
        while requests.try_join_next().is_some() {}
    }
    ensure_equal("keys while they are held", client.locks_in_use(), KEYS)?;
    service.inside.go_on.add_permits(KEYS);
    while let Some(answer) = requests.join_next().await {
        ensure_equal("a request", answer?.status().as_u16(), 200)?;
    }
    until("no key is kept", async || client.locks_in_use() == 0).await
}

/// The twin is the text's factory: a map that keeps every key's lock for ever.
#[apply(test!)]
async fn a_map_of_locks_by_key_is_caught(redis: &Redis) -> Result {
    let process = redis.client().await;
    let (client, map) = (process.clone(), Arc::new(Mutex::new(HashMap::new())));
    let locks = move |name: &str| {
        let mut map = map.lock().expect("not poisoned");
        let lock = map.entry(name.to_owned());
        lock.or_insert_with(|| client.lock(name)).clone()
    };
    let service = Service::new(&name(), locks);
    for key in 0..100 {
        service.now("a request", &format!("/pass/{key}"), 200).await?;
    }
    ensure_equal("what the map keeps", process.locks_in_use(), 100)
}
