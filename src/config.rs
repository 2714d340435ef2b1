//! The configuration: `config/default.toml` < the file named by `OVERSELL_CONFIG` <
//! `OVERSELL__SECTION__KEY` < command line, checked at start.

use config::{Environment, File, FileFormat};
use garde::Validate;
use http::Uri;
use oversell_lock::{Process, redis::Replicas};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer};
use std::{
    fmt::Display,
    path::{Path, PathBuf},
    time::Duration,
};

/// The lowest layer, which has every setting.
const DEFAULTS: &str = include_str!("../config/default.toml");
/// The beginning of the environment variable of a setting, as in `OVERSELL__MYSQL__URL`.
const ENV_PREFIX: &str = "OVERSELL";
/// The environment variable that names the configuration file.
const ENV_FILE: &str = "OVERSELL_CONFIG";

/// All settings of an instance. Each is explained in `config/default.toml`.
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Config {
    #[garde(dive)]
    pub server: Server,
    pub stock: Stock,
    #[garde(dive)]
    pub lock: Lock,
    #[garde(dive)]
    pub mysql: MySql,
    #[garde(dive)]
    pub redis: Redis,
    #[garde(dive)]
    pub zookeeper: ZooKeeper,
    #[garde(dive)]
    pub etcd: Etcd,
    pub admin: Admin,
    #[garde(dive)]
    pub cluster: Cluster,
    #[garde(dive)]
    pub replays: Replays,
}

/// `[server]`: where an instance listens, its name, and its limits on requests and connections.
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Server {
    pub host: String,
    pub port: u16,
    #[garde(custom(check_empty_or_label))]
    pub name: String,
    pub published: String,
    #[serde(deserialize_with = "read_list_or_commas")]
    pub hosts: Vec<String>,
    #[garde(range(min = 1))]
    pub header_timeout_ms: u64,
    #[garde(range(min = 1))]
    pub request_timeout_ms: u64,
    pub shutdown_ms: u64,
    #[garde(range(min = 1024))]
    pub body_limit: usize,
    #[garde(range(min = 1))]
    pub concurrency: usize,
    #[garde(range(min = 1))]
    pub connections: usize,
    #[garde(range(min = 1))]
    pub write_timeout_ms: u64,
}

/// `[stock]`: how stock is sold where a request names no strategy.
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Stock {
    /// The strategy of `/check/lock`.
    pub strategy: String,
}

/// `[lock]`: the wait and the lease where a request names none.
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Lock {
    #[garde(range(max = 600_000))]
    pub wait_ms: u64,
    #[garde(range(min = 1_000, max = 3_600_000))]
    pub lease_ms: u64,
}

/// `[mysql]`: the addresses of MySQL or of a Galera cluster, and the pool.
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct MySql {
    #[garde(custom(require_scheme("mysql://")))]
    pub url: SecretString,
    #[serde(deserialize_with = "read_list_or_commas")]
    #[garde(length(max = 9), inner(custom(require_scheme("mysql://"))))]
    pub urls: Vec<SecretString>,
    #[garde(range(min = 1))]
    pub pool: usize,
    pub causal_reads: bool,
}

/// `[redis]`: the addresses of Redis, of Redlock's nodes and of the Sentinels, and the pool for WATCH.
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Redis {
    #[garde(custom(require_scheme("redis")))]
    pub url: SecretString,
    #[garde(custom(check_empty_or_redis))]
    pub mine_url: SecretString,
    #[serde(deserialize_with = "read_list_or_commas")]
    #[garde(length(max = 9), inner(custom(require_scheme("redis"))))]
    pub nodes: Vec<SecretString>,
    #[serde(deserialize_with = "read_list_or_commas")]
    #[garde(length(max = 9), inner(custom(require_scheme("redis"))))]
    pub sentinels: Vec<SecretString>,
    #[garde(custom(require_master_name(&self.sentinels)))]
    pub master: String,
    #[serde(deserialize_with = "read_number_or_all")]
    pub wait_replicas: Replicas,
    pub prefix: String,
    #[garde(range(min = 1))]
    pub pool: usize,
    #[garde(range(min = 1, max = 600_000))]
    pub timeout_ms: u64,
}

/// `[zookeeper]`: the addresses of ZooKeeper, and the session.
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ZooKeeper {
    pub connect: String,
    #[garde(custom(check_empty_or_chroot))]
    pub chroot: String,
    #[garde(range(min = 1_000, max = 60_000))]
    pub session_ms: u64,
}

/// `[etcd]`: the addresses of etcd's nodes.
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct Etcd {
    /// Empty: there is no etcd.
    #[serde(deserialize_with = "read_list_or_commas")]
    #[garde(length(max = 9), inner(custom(check_empty_or_http)))]
    pub endpoints: Vec<String>,
}

/// `[admin]`: the token of an administrator.
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Admin {
    pub token: SecretString,
}

/// `[replays]`: whether replays are played, and the lab that injects their faults.
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Replays {
    pub enabled: bool,
    pub lab: String,
    pub lab_token: SecretString,
    pub lab_json: String,
    #[serde(deserialize_with = "read_list_or_commas")]
    pub lab_kinds: Vec<String>,
}

/// `[cluster]`: all instances, this one included, the nginx in front of them, and the names of the servers.
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Cluster {
    /// nginx's URL; empty: there is none.
    #[garde(custom(check_empty_or_http))]
    pub http: String,
    /// The URL of every instance.
    #[serde(deserialize_with = "read_list_or_commas")]
    #[garde(inner(custom(check_empty_or_http)))]
    pub instances: Vec<String>,
    /// Servers as `redis-2=10.0.0.2:6379`.
    #[serde(deserialize_with = "read_list_or_commas")]
    #[garde(inner(custom(check_name_and_address)))]
    pub members: Vec<String>,
}

/// The check of a field by garde: it must hold, or the field breaks this rule.
pub(crate) fn require(holds: bool, rule: impl Display) -> garde::Result {
    if holds { Ok(()) } else { Err(garde::Error::new(rule.to_string())) }
}

/// Requires a name and an address, as in `redis-2=10.0.0.2:6379`.
fn check_name_and_address(member: &str, (): &()) -> garde::Result {
    let parts = member.split_once('=');
    let parts = parts.and_then(|(name, at)| Some((name, at.rsplit_once(':')?)));
    let is_one = parts.is_some_and(|(name, (host, port))| !name.is_empty() && !host.is_empty() && port.parse::<u16>().is_ok());
    require(is_one, "not a name and an address, as redis-2=10.0.0.2:6379")
}

/// Requires an address of plain HTTP, or an empty text.
fn check_empty_or_http(url: &str, (): &()) -> garde::Result {
    let is_one = |url: Uri| url.scheme_str() == Some("http") && url.host().is_some();
    require(url.is_empty() || url.parse().is_ok_and(is_one), "not an address as http://127.0.0.1:8000")
}

/// Requires that an address begins with `scheme`. The error does not repeat the address, which may contain a password.
fn require_scheme(scheme: &'static str) -> impl Fn(&SecretString, &()) -> garde::Result {
    move |url, ()| require(url.expose_secret().starts_with(scheme), format_args!("not an address that begins with {scheme}"))
}

fn check_empty_or_redis(url: &SecretString, (): &()) -> garde::Result {
    match url.expose_secret().is_empty() {
        true => Ok(()),
        false => require_scheme("redis")(url, &()),
    }
}

/// Requires the name of the primary if there are Sentinels, which may know several, and refuses it without them.
fn require_master_name(sentinels: &[SecretString]) -> impl Fn(&String, &()) -> garde::Result {
    let known = !sentinels.is_empty();
    move |master, ()| match (known, master.is_empty()) {
        (true, true) => Err(garde::Error::new("empty, and redis.sentinels are asked for the primary of this name")),
        (false, false) => Err(garde::Error::new("the name by which redis.sentinels know the primary, and there are none")),
        _ => Ok(()),
    }
}

/// Requires a label, or an empty text: the name stands at the beginning of the owners of locks, which servers show.
fn check_empty_or_label(name: &str, (): &()) -> garde::Result {
    let is_fine = name.is_empty() || Process::labelled(name).is_ok();
    require(is_fine, "neither empty nor 1 to 32 letters, digits, -, _ or .")
}

/// Requires an empty text, or a path of ZooKeeper that begins with `/` and does not end with one.
fn check_empty_or_chroot(path: &str, (): &()) -> garde::Result {
    let is_fine = path.is_empty() || (path.starts_with('/') && !path.ends_with('/'));
    require(is_fine, "neither empty nor a path like /oversell")
}

/// A file that cannot be read, or a setting that is missing, unknown, or out of range. The text names the file, or the setting
/// and the rule.
#[derive(Debug, thiserror::Error)]
#[error("configuration: {0}")]
pub struct ConfigError(String);

impl ConfigError {
    /// An error that names a key and its rule.
    pub(crate) fn new(text: String) -> Self {
        Self(text)
    }
}

impl Config {
    /// Reads every layer, and checks the result; `overrides` are the command line's, as `("server.port", "8100")`.
    pub fn load(overrides: &[(&str, String)]) -> Result<Self, ConfigError> {
        Self::load_with(std::env::var_os(ENV_FILE).map(PathBuf::from).as_deref(), overrides)
    }

    /// As [`load`](Config::load), with this file, or none, whatever `OVERSELL_CONFIG` names.
    pub fn load_with(file: Option<&Path>, overrides: &[(&str, String)]) -> Result<Self, ConfigError> {
        Self::read(file, Environment::default(), overrides)
    }

    /// Reads the defaults, then the file, the environment and the overrides, and checks the result.
    fn read(file: Option<&Path>, environment: Environment, overrides: &[(&str, String)]) -> Result<Self, ConfigError> {
        let mut layers = config::Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
        if let Some(path) = file {
            layers = layers.add_source(File::from(path).format(FileFormat::Toml));
        }
        // Text stays text: a field parses its own numbers, and `00123456` may be a token.
        layers = layers.add_source(environment.prefix(ENV_PREFIX).prefix_separator("__").separator("__"));
        for (key, value) in overrides {
            layers = layers.set_override(*key, value.as_str()).map_err(|e| ConfigError(e.to_string()))?;
        }
        let config: Self = layers.build().and_then(config::Config::try_deserialize).map_err(|e| ConfigError(e.to_string()))?;
        config.check()?;
        Ok(config)
    }

    /// Checks the rules of all settings.
    /// Errors: all broken rules together, each with its key.
    fn check(&self) -> Result<(), ConfigError> {
        self.validate().map_err(|report| {
            let broken = report.iter().map(|(key, fault)| format!("{key} is {fault}"));
            ConfigError(broken.collect::<Vec<_>>().join("; "))
        })
    }

    /// The instance's name, as header `x-instance` gives it: `server.name`, else the port.
    pub fn instance(&self) -> String {
        match self.server.name.as_str() {
            "" => self.server.port.to_string(),
            name => name.to_owned(),
        }
    }

    /// The addresses of MySQL's nodes; of a single server one.
    pub fn mysql_urls(&self) -> &[SecretString] {
        several_or_one(&self.mysql.urls, &self.mysql.url)
    }

    /// The addresses of Redlock's nodes: the configured ones, or the main Redis alone.
    pub fn node_urls(&self) -> &[SecretString] {
        several_or_one(&self.redis.nodes, &self.redis.url)
    }

    /// The admin token; `None` if the setting is empty: nothing then asks for a token.
    pub fn admin_token(&self) -> Option<SecretString> {
        let token = &self.admin.token;
        (!token.expose_secret().is_empty()).then(|| token.clone())
    }

    /// The wait of a request that names none.
    pub fn default_wait(&self) -> Duration {
        Duration::from_millis(self.lock.wait_ms)
    }
}

fn several_or_one<'a>(several: &'a [SecretString], one: &'a SecretString) -> &'a [SecretString] {
    if several.is_empty() { std::slice::from_ref(one) } else { several }
}

/// Reads a list as it is, or a text with commas, as the environment has it: the text's empty parts are left out, and spaces stay.
fn read_list_or_commas<'de, D: Deserializer<'de>, T: Deserialize<'de> + From<String>>(value: D) -> Result<Vec<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum List<T> {
        Items(Vec<T>),
        Text(String),
    }
    Ok(match List::deserialize(value)? {
        List::Items(items) => items,
        List::Text(text) => text.split(',').filter(|item| !item.is_empty()).map(|item| item.to_owned().into()).collect(),
    })
}

fn read_number_or_all<'de, D: Deserializer<'de>>(value: D) -> Result<Replicas, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum ReplicaSetting {
        Number(u32),
        Text(String),
    }
    let rule = "not a number of replicas, nor \"all\"";
    match ReplicaSetting::deserialize(value).map_err(|_| serde::de::Error::custom(rule))? {
        ReplicaSetting::Number(number) => Ok(Replicas::AtLeast(number)),
        ReplicaSetting::Text(text) if text == "all" => Ok(Replicas::All),
        ReplicaSetting::Text(text) => match text.parse() {
            Ok(number) => Ok(Replicas::AtLeast(number)),
            Err(_) => Err(serde::de::Error::custom(rule)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_not_as_it_should_be_is_named_with_the_rule() {
        for (key, wrong, rule) in [
            ("server.name", "shop 1", "1 to 32 letters"),
            ("server.concurrency", "0", "lower than 1"),
            ("server.connections", "0", "lower than 1"),
            ("server.body_limit", "1023", "lower than 1024"),
            ("lock.wait_ms", "600001", "greater than 600000"),
            ("lock.lease_ms", "999", "lower than 1000"),
            ("mysql.pool", "0", "lower than 1"),
            ("mysql.url", "http://root:hunter2@db", "begins with mysql://"),
            ("redis.url", "http://:hunter2@db", "begins with redis"),
            ("mysql.urls", "mysql://a,http://root:hunter2@b", "begins with mysql://"),
            ("redis.mine_url", "http://:hunter2@db", "begins with redis"),
            ("redis.timeout_ms", "0", "lower than 1"),
            ("redis.sentinels", "redis://a,http://:hunter2@b", "begins with redis"),
            ("redis.master", "main", "redis.sentinels"),
            ("redis.wait_replicas", "most", "nor \"all\""),
            ("redis.wait_replicas", "-1", "nor \"all\""),
            ("redis.nodes", "redis://a,http://:hunter2@b", "redis"),
            ("redis.nodes", "r1,r2,r3,r4,r5,r6,r7,r8,r9,r10", "greater than 9"),
            ("server.request_timeout_ms", "0", "lower than 1"),
            ("cluster.http", "nginx:80", "http://127.0.0.1:8000"),
            ("cluster.instances", "http://a:8000,b:8100", "http://127.0.0.1:8000"),
            ("cluster.members", "redis=6379", "a name and an address"),
            ("cluster.members", "a=b:1,=b:2", "a name and an address"),
            ("cluster.members", "a=:6379", "a name and an address"),
            ("cluster.members", "a=b:redis", "a name and an address"),
            ("zookeeper.session_ms", "60001", "greater than 60000"),
            ("etcd.endpoints", "http://a:2379,https://b:2379", "http://127.0.0.1:8000"),
            ("zookeeper.chroot", "oversell/", "a path like /oversell"),
        ] {
            let error = Config::load_with(None, &[(key, wrong.to_owned())]).expect_err(key).to_string();
            assert!(error.contains(key) && error.contains(rule) && !error.contains("hunter2"), "{error}");
        }
        assert!(Config::load_with(None, &[]).is_ok(), "the defaults follow their own rules");
    }

    fn from_environment(variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let variables = variables.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Config::read(None, Environment::default().source(Some(variables)), &[])
    }

    #[test]
    fn the_environment_is_read_as_the_type_that_is_asked_for() {
        let config = from_environment(&[
            // Text stays as it was written.
            ("OVERSELL__ADMIN__TOKEN", "00123456"),
            ("OVERSELL__REDIS__PREFIX", "1e3"),
            ("OVERSELL__SERVER__NAME", "08"),
            ("OVERSELL__MYSQL__URL", "mysql://a,b@host/TRUE"),
            // Numbers and lists are read as such.
            ("OVERSELL__SERVER__PORT", "8100"),
            ("OVERSELL__LOCK__LEASE_MS", "2000"),
            ("OVERSELL__MYSQL__CAUSAL_READS", "true"),
            ("OVERSELL__REDIS__NODES", "redis://one,redis://two"),
            ("OVERSELL__REDIS__SENTINELS", "redis://s1,redis://s2"),
            ("OVERSELL__REDIS__MASTER", "main"),
            ("OVERSELL__REDIS__WAIT_REPLICAS", "2"),
            ("OVERSELL__CLUSTER__INSTANCES", ""),
            ("OVERSELL__CLUSTER__MEMBERS", "r=ha-1:6379,s=[::1]:6379"),
        ]);
        let config = config.unwrap();
        assert_eq!(config.admin.token.expose_secret(), "00123456");
        assert_eq!(config.redis.prefix, "1e3");
        assert_eq!(config.server.name, "08");
        assert_eq!(config.mysql.url.expose_secret(), "mysql://a,b@host/TRUE");
        assert_eq!((config.server.port, config.lock.lease_ms), (8100, 2000));
        assert!(config.mysql.causal_reads);
        let nodes = config.redis.nodes.iter();
        let nodes: Vec<_> = nodes.map(ExposeSecret::expose_secret).collect();
        assert_eq!(nodes, ["redis://one", "redis://two"]);
        assert!(config.cluster.instances.is_empty());
        assert_eq!(config.cluster.members, ["r=ha-1:6379", "s=[::1]:6379"]);
        assert_eq!(config.redis.sentinels.len(), 2);
        assert_eq!(config.redis.wait_replicas, Replicas::AtLeast(2));
        let all = from_environment(&[("OVERSELL__REDIS__WAIT_REPLICAS", "all")]).unwrap();
        assert_eq!(all.redis.wait_replicas, Replicas::All);
        let unnamed = from_environment(&[("OVERSELL__REDIS__SENTINELS", "redis://s1")]).unwrap_err();
        assert!(unnamed.to_string().contains("redis.master is empty"), "{unnamed}");
        for (variable, value, key) in
            [("OVERSELL__SERVER__PORT", "eight", "server.port"), ("OVERSELL__MYSQL__CAUSAL_READS", "1s", "mysql.causal_reads")]
        {
            let error = from_environment(&[(variable, value)]).unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
    }

    #[test]
    fn a_secret_is_not_printed() {
        let config = from_environment(&[("OVERSELL__ADMIN__TOKEN", "sesame")]).unwrap();
        assert!(!format!("{config:?}").contains("sesame"));
    }
}
