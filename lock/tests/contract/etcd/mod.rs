//! One etcd or three nodes, the lock on it, and what only etcd does to it.

pub(crate) mod faults;

use crate::{
    family::{Capability::*, operator},
    support::*,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use oversell_lab::clients::http_client::{Answer as HttpAnswer, Ask as _, client as http_client};
use oversell_lock::etcd::{EtcdClient, EtcdOptions};
use serde_json::{Value, json};

/// A renewed lease: a busy machine keeps it, and a test can wait for its loss.
pub(crate) const LEASE: Duration = Duration::from_secs(6);
/// Ends within a test whose process stands still.
const BRIEF_LEASE: Duration = Duration::from_secs(3);

static KINDS: &[Kind<Etcd>] =
    &[Kind::new("etcd", &[Contract, OneServer, Losable, Reentrant, Layered, Shown], |etcd: &EtcdClient, name, ask| {
        let lock = etcd.lock(name);
        match ask.owner {
            Some(owner) => lock.owner(owner).boxed(),
            None => lock.boxed(),
        }
    })
    .shows(|etcd: &EtcdClient, name| operator!(etcd.lock(name)))];

pub(crate) struct Etcd {
    /// `http://host:port` of each node, with commas.
    pub(crate) url: String,
}

impl Etcd {
    pub(crate) const fn at(url: String) -> Self {
        Self { url }
    }

    /// A process with a lease of this length, at `address`.
    pub(crate) fn process(&self, address: &str, lease: Duration) -> EtcdClient {
        EtcdClient::new(EtcdOptions::new(address).lease(lease)).expect("an address")
    }

    /// What the gateway answers to this request, as `kv/range`: that of the first node that answers.
    pub(crate) async fn ask(&self, path: &str, body: Value) -> Result<Value> {
        let ask = async || {
            for url in self.urls() {
                let request = http_client().post(format!("{url}/v3/{path}")).body(body.to_string()).timeout(SOON / 4);
                if let Ok(answer) = request.answer().await.and_then(HttpAnswer::success) {
                    return Some(answer);
                }
            }
            None
        };
        // During an election none does.
        loop {
            if let Some(answer) = ask().await {
                return Ok(answer.json()?);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Each node's.
    pub(crate) fn urls(&self) -> impl Iterator<Item = &str> {
        self.url.split(',')
    }

    /// Deletes all keys of a lock's queue.
    pub(crate) async fn delete(&self, name: &str) {
        let deleted = self.ask("kv/deleterange", range(name)).await;
        deleted.expect("deleted");
    }

    /// The leases that exist.
    pub(crate) async fn leases(&self) -> Result<Vec<String>> {
        let leases = self.ask("lease/leases", json!({})).await?;
        let leases = leases["leases"].as_array().into_iter().flatten();
        Ok(leases.filter_map(|lease| lease["ID"].as_str().map(str::to_owned)).collect())
    }
}

/// A key or value as the gateway has it.
pub(crate) fn base64(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

/// The text of a key or value.
pub(crate) fn text_of(value: &Value) -> String {
    let bytes = BASE64_STANDARD.decode(value.as_str().unwrap_or_default()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The range of a lock's keys.
pub(crate) fn range(name: &str) -> Value {
    json!({"key": base64(&format!("{name}/")), "range_end": base64(&format!("{name}0")), "sort_target": "CREATE"})
}

impl Server for Etcd {
    type Client = EtcdClient;

    fn kinds() -> &'static [Kind<Self>] {
        KINDS
    }

    fn address(&self) -> String {
        self.url.replace("http://", "")
    }

    async fn client_at(&self, address: &str) -> EtcdClient {
        self.process(address, LEASE)
    }

    async fn brief_client(&self) -> EtcdClient {
        self.process(&self.url, BRIEF_LEASE)
    }

    fn owner(etcd: &EtcdClient) -> Owner {
        etcd.owner()
    }

    async fn left(&self, name: &str) -> Vec<String> {
        let keys = self.ask("kv/range", range(name)).await.expect("a list");
        let keys = keys["kvs"].as_array().into_iter().flatten();
        let lease = |key: &Value| text_of(&key["key"]).trim_start_matches(&format!("{name}/")).to_owned();
        keys.map(|key| format!("{} {}", lease(key), text_of(&key["value"])).trim_end().to_owned()).collect()
    }

    async fn take_away(&self, _: &EtcdClient, name: &str) {
        self.delete(name).await;
    }

    async fn is_waited_for(&self, name: &str) -> bool {
        self.left(name).await.len() > 1
    }
}

/// The key that Go's client would have, with the owner as its value and a lease of this hold alone, as long as the client's or as
/// the lock asks for.
#[apply(test!)]
async fn a_hold_has_a_lease_of_its_own_and_the_key_of_go(etcd: &Etcd) -> Result {
    let (process, names) = (etcd.client().await, [name(), name()]);
    let mut leases = Vec::new();
    let mut guards = Vec::new();
    for (name, length) in names.iter().zip([LEASE, 2 * LEASE]) {
        let lock = process.lock(name);
        guards.push(take(&if length == LEASE { lock } else { lock.lease(length) }).await?);
        let keys = etcd.ask("kv/range", range(name)).await?;
        let key = &keys["kvs"][0];
        let lease: i64 = key["lease"].as_str().context("a lease")?.parse()?;
        ensure_equal("the key", text_of(&key["key"]), format!("{name}/{lease:x}"))?;
        let granted = etcd.ask("lease/timetolive", json!({"ID": lease.to_string()})).await?;
        ensure_equal("the lease", granted["grantedTTL"].as_str().map(str::to_owned), Some(length.as_secs().to_string()))?;
        let fence = guards.last().and_then(Guard::fence).map(|fence| fence.0.to_string());
        ensure_equal("the fence", key["create_revision"].as_str().map(str::to_owned), fence)?;
        leases.push(lease.to_string());
    }
    ensure!(leases[0] != leases[1], "one lease for two holds");
    ensure_invalid("its lease has one length", guards[0].extend(SOON).await)?;
    ensure_invalid("half a second", process.lock(&names[0]).lease(Duration::from_millis(2500)).try_acquire().await)?;
    for guard in guards {
        guard.release().await?;
    }
    let are_gone = async || etcd.leases().await.is_ok_and(|there| !leases.iter().any(|lease| there.contains(lease)));
    until("the leases are revoked", are_gone).await
}

/// Two waiters are queued before the first holder releases: each later holder's token is larger. The twin shows the revision of an
/// answer's header, which is that of whatever was written last: the next holder's key is older.
#[apply(test!)]
async fn a_fence_is_the_revision_of_its_own_key(etcd: &'static Etcd) -> Result {
    async fn ensure_growing(etcd: &Etcd, name: &str, locks: [AnyLock; 3]) -> Result {
        let [first, second, third] = locks;
        let mut held = take(&first).await?;
        let mut waiting = Vec::new();
        for (n, lock) in [second, third].into_iter().enumerate() {
            waiting.push(spawn_acquire(lock));
            until("it is queued", async || etcd.left(name).await.len() == n + 2).await?;
        }
        for next in waiting {
            let before = held.fence();
            held.release().await?;
            held = next.await??;
            ensure!(held.fence() > before, "{:?} after {before:?}", held.fence());
        }
        Ok(held.release().await?)
    }
    let (name, processes) = (name(), etcd.clients(3).await);
    let locks = || [0, 1, 2].map(|n| processes[n].lock(&name).boxed());
    ensure_growing(etcd, &name, locks()).await?;
    let [first, honest, third] = locks();
    let twin = fixed_lock(&name, Arc::new(honest), move |lock, name, wait| async move {
        let held = lock.acquire(wait).await?;
        let answer = etcd.ask("kv/range", range(&name)).await.expect("an answer");
        let header = answer["header"]["revision"].as_str().and_then(|text| text.parse().ok());
        Ok(guard(&name, header.map(oversell_lock::Fence), held.release()))
    });
    caught(ensure_growing(etcd, &name, [first, twin, third]).await, " after ")
}

/// Two requests to acquire, one to release, and one behind the caller's back that revokes the lease. The twin asks once more.
#[apply(test!)]
async fn a_section_costs_three_requests_and_one_behind(etcd: &Etcd) -> Result {
    const TIMES: u64 = 50;
    let (name, mute) = (name(), Mute::to(etcd.address())?);
    // Nothing is renewed meanwhile.
    let process = etcd.process(&mute.address(), SOON * 3);
    let lock = process.lock(&name);
    let costs = async |asks_more: bool| {
        let before = mute.requests();
        for _ in 0..TIMES {
            pass(&lock).await?;
            if asks_more {
                lock.holder().await?;
            }
        }
        let all = async || mute.requests() - before >= 4 * TIMES;
        until("the leases are revoked", all).await?;
        ensure_equal("requests", mute.requests() - before, 4 * TIMES)
    };
    pass(&lock).await?;
    until("the first lease is revoked", async || mute.requests() >= 4).await?;
    costs(false).await?;
    caught(costs(true).await, "requests: ")
}
