//! A look at etcd from outside.

use super::{
    object::Kind,
    ours::Process,
    support::{Context, Result},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use oversell_lab::clients::http_client::{Answer, Ask, client};
use oversell_lock::etcd::{EtcdClient, EtcdOptions};
use serde_json::{Value, json};
use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

/// A busy machine renews it in time.
const LEASE: Duration = Duration::from_secs(40);

pub(crate) struct Etcd {
    pub(crate) url: String,
}

/// A key or value as the gateway has it.
fn base64(text: &str) -> String {
    BASE64_STANDARD.encode(text)
}

impl Etcd {
    pub(crate) fn process(&self) -> Result<Process> {
        Ok(Process::Etcd(EtcdClient::new(EtcdOptions::new(&self.url).lease(LEASE))?))
    }

    async fn ask(&self, path: &str, body: Value) -> Result<Value> {
        let request = client().post(format!("{}/v3/kv/{path}", self.url)).body(body.to_string());
        Ok(request.answer().await.and_then(Answer::success)?.json()?)
    }

    async fn put(&self, key: &str, value: &str) -> Result<()> {
        self.ask("put", json!({"key": base64(key), "value": base64(value)})).await.map(drop)
    }

    /// The keys below `folder/`.
    async fn below(&self, folder: &str) -> Result<Vec<String>> {
        let range = json!({"key": base64(&format!("{folder}/")), "range_end": base64(&format!("{folder}0")), "keys_only": true});
        let answer = self.ask("range", range).await?;
        let keys = answer["kvs"].as_array().into_iter().flatten();
        Ok(keys.filter_map(|key| key["key"].as_str().map(str::to_owned)).collect())
    }

    pub(crate) async fn queue(&self, _: Kind, name: &str) -> Result<Option<usize>> {
        Ok(Some(self.below(name).await?.len()))
    }

    pub(crate) async fn left(&self, _: Kind, name: &str) -> Result<Vec<String>> {
        self.below(name).await
    }

    pub(crate) async fn prepare(&self, name: &str) -> Result<()> {
        self.put(&format!("{name}-counter"), "0").await
    }

    /// Each contender inside has a key below `NAME-inside/`, so that others are seen.
    pub(crate) async fn section(&self, name: &str) -> Result<(i64, i64)> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (folder, number) = (format!("{name}-inside"), NEXT.fetch_add(1, Ordering::Relaxed));
        let own = format!("{folder}/ours-{number}");
        self.put(&own, "").await?;
        let inside = self.below(&folder).await?.len();
        let before = self.counted(name).await?;
        self.put(&format!("{name}-counter"), &(before + 1).to_string()).await?;
        self.ask("deleterange", json!({"key": base64(&own)})).await?;
        Ok((before, inside.try_into()?))
    }

    pub(crate) async fn counted(&self, name: &str) -> Result<i64> {
        let answer = self.ask("range", json!({"key": base64(&format!("{name}-counter"))})).await?;
        let value = answer["kvs"][0]["value"].as_str().context("no counter")?;
        Ok(String::from_utf8(BASE64_STANDARD.decode(value)?)?.parse()?)
    }
}
