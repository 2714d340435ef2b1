//! An instance of the service: `oversell serve`, configured by its environment.

use super::{
    etcd,
    link::authority,
    mysql, redis,
    server::{CheckContext, HealthCheck, Server, check_instance},
    user::User,
    zookeeper,
};
use crate::{
    addresses::{Addresses, Control, SENTINEL_GROUP},
    programs::Requirement,
};
use futures::FutureExt;
use std::{
    path::{Path, PathBuf},
    process::Command,
    thread,
};

/// The variable from which tokio reads the number of worker threads.
const TOKIO_THREADS_VARIABLE: &str = "TOKIO_WORKER_THREADS";

/// All instances together get as many threads as this machine has cores, and each at least one. More threads would only
/// wake each other.
fn threads_per_instance(instances: usize) -> usize {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    (cores / instances.max(1)).max(1)
}

/// The name of an instance: its port, as in the course.
pub(super) fn name(port: u16) -> String {
    port.to_string()
}

/// The variables of the environment of an instance. `more` comes last: its value counts if a name is there twice. Without nginx
/// the instance knows no load balancer.
pub(super) fn environment(at: &Addresses, is_behind_nginx: bool, more: &[(String, String)]) -> Vec<(String, String)> {
    let all = |urls: Vec<&str>| urls.join(",");
    let nodes = at.mysql_nodes().filter(|_| !at.galera.is_empty());
    let settings = [
        ("OVERSELL__MYSQL__URL", at.mysql.url.clone()),
        ("OVERSELL__MYSQL__URLS", all(nodes.map(|node| node.url.as_str()).collect())),
        ("OVERSELL__REDIS__URL", at.redis.first().map(|node| node.url.clone()).unwrap_or_default()),
        ("OVERSELL__REDIS__NODES", all(at.redis.iter().map(|node| node.url.as_str()).collect())),
        ("OVERSELL__REDIS__MINE_URL", at.mine.as_ref().map(|at| at.url.clone()).unwrap_or_default()),
        ("OVERSELL__REDIS__SENTINELS", all(at.sentinels.iter().map(|one| one.url.as_str()).collect())),
        ("OVERSELL__REDIS__MASTER", at.sentinels.first().map_or("", |_| SENTINEL_GROUP).to_owned()),
        ("OVERSELL__ZOOKEEPER__CONNECT", at.zookeeper.connect.clone()),
        ("OVERSELL__CLUSTER__HTTP", if is_behind_nginx { at.nginx.url.clone() } else { String::new() }),
        ("OVERSELL__CLUSTER__INSTANCES", all(at.instances.iter().map(|i| i.url.as_str()).collect())),
        ("OVERSELL__REPLAYS__ENABLED", "true".to_owned()),
        (TOKIO_THREADS_VARIABLE, threads_per_instance(at.instances.len()).to_string()),
    ];
    let etcd = at.etcd.iter().map(|node| node.url.as_str()).collect();
    let etcd = (!at.etcd.is_empty()).then(|| ("OVERSELL__ETCD__ENDPOINTS", all(etcd)));
    let token = at.admin.as_ref();
    let token = token.map(|token| ("OVERSELL__ADMIN__TOKEN", token.0.clone()));
    settings
        .into_iter()
        .chain(etcd)
        .chain(token)
        .map(|(key, value)| (key.to_owned(), value))
        .chain(more.iter().cloned())
        .collect()
}

/// The members of clusters for the lights of the page, each with its name and its address or that of its link.
pub(super) fn cluster_members(at: &Addresses) -> impl Iterator<Item = String> {
    let nodes = at.mysql_nodes().filter(|_| !at.galera.is_empty());
    let nodes = nodes.map(|node| node.url.as_str()).enumerate();
    let nodes = nodes.map(|(n, url)| (mysql::name(n), authority(url)));
    let replicas = at.replicas.iter().chain(&at.replica);
    let replicas: Vec<_> = replicas.map(|replica| replica.url.as_str()).collect();
    let main = Some(at.first_redis()).filter(|_| !replicas.is_empty());
    let main = main.map(|url| (redis::name(0), authority(url)));
    let replicas = replicas.into_iter().enumerate();
    let replicas = replicas.map(|(n, url)| (redis::replica_name(n), authority(url)));
    let ensemble = at.zookeeper.connect.split(',').enumerate();
    let ensemble = ensemble.filter(|_| at.zookeeper.connect.contains(','));
    let ensemble = ensemble.map(|(n, at)| (zookeeper::name(n), at));
    let etcd = at.etcd.iter().enumerate().filter(|_| at.etcd.len() > 1);
    let etcd = etcd.map(|(n, node)| (etcd::name(n), authority(&node.url)));
    let all = nodes.chain(main).chain(replicas).chain(ensemble).chain(etcd);
    all.map(|(name, at)| cluster_member(&name, at))
}

/// A server's name and address as the setting `cluster.members` has them: `redis-2=127.0.0.1:6380`.
pub(super) fn cluster_member(name: &str, at: &str) -> String {
    format!("{name}={at}")
}

/// How the lab starts one instance of the service.
#[derive(Debug)]
pub(super) struct LabInstance {
    pub(super) port: u16,
    pub(super) program: PathBuf,
    pub(super) env: Vec<(String, String)>,
    pub(super) faults: Option<FaultControl>,
}

/// What an instance is told of the faults of its lab: where to ask for them, the lab's file of addresses, and what this lab can
/// do besides kill and pause: `links` (they can be cut), `replica` (promote it), `clocks` (let clocks of Redis nodes jump).
#[derive(Debug)]
pub(super) struct FaultControl {
    pub(super) control: Control,
    pub(super) lab_json: PathBuf,
    pub(super) kinds: Vec<&'static str>,
}

impl Server for LabInstance {
    fn requirements(&self) -> &'static [Requirement] {
        &[]
    }

    fn command(&self, _folder: &Path, _user: User) -> Command {
        let name = name(self.port);
        let mut command = Command::new(&self.program);
        command
            .args(["serve", "--port", &name])
            .env("OVERSELL__SERVER__HOST", "127.0.0.1")
            .env("OVERSELL__SERVER__NAME", &name)
            .envs(self.env.iter().map(|(key, value)| (key, value)));
        if let Some(FaultControl { control, lab_json, kinds }) = &self.faults {
            command
                .env("OVERSELL__REPLAYS__LAB", &control.url)
                .env("OVERSELL__REPLAYS__LAB_TOKEN", &control.token.0)
                .env("OVERSELL__REPLAYS__LAB_JSON", std::path::absolute(lab_json).unwrap_or_else(|_| lab_json.clone()))
                .env("OVERSELL__REPLAYS__LAB_KINDS", kinds.join(","));
        }
        command
    }

    /// An instance is healthy once it is ready; while a server is down, once it is alive.
    fn check_health<'a>(&'a self, context: CheckContext<'a>) -> HealthCheck<'a> {
        async move {
            let path = if context.dependencies_up { "/health/ready" } else { "/health/live" };
            check_instance(self.port, path, |name_in_answer| name_in_answer == name(self.port)).await
        }
        .boxed()
    }
}
