//! The configuration: `config/default.toml` < the file named by `OVERSELL_CONFIG` <
//! `OVERSELL__SECTION__KEY` < command line, checked at start.

use config::{Environment, File, FileFormat};
use serde::Deserialize;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

const DEFAULTS: &str = include_str!("../config/default.toml");
const ENV_PREFIX: &str = "OVERSELL";
const ENV_FILE: &str = "OVERSELL_CONFIG";
/// Settings that are lists; outside of files they are written with commas.
const LISTS: [&str; 2] = ["redis.nodes", "cluster.instances"];

/// All settings of an instance. Each is explained in `config/default.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Config {
    pub server: Server,
    pub stock: Stock,
    pub lock: Lock,
    pub mysql: MySql,
    pub redis: Redis,
    pub zookeeper: ZooKeeper,
    pub admin: Admin,
    pub cluster: Cluster,
}

/// `[server]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Server {
    pub host: String,
    pub port: u16,
    pub name: String,
    pub header_timeout_ms: u64,
    pub request_timeout_ms: u64,
    pub shutdown_ms: u64,
    pub body_limit: usize,
    pub concurrency: usize,
}

/// `[stock]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Stock {
    pub strategy: String,
}

/// `[lock]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Lock {
    pub wait_ms: u64,
    pub lease_ms: u64,
}

/// `[mysql]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct MySql {
    pub url: Secret,
    pub pool: usize,
}

/// `[redis]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Redis {
    pub url: Secret,
    pub nodes: Vec<Secret>,
    pub prefix: String,
    pub pool: usize,
    pub timeout_ms: u64,
}

/// `[zookeeper]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct ZooKeeper {
    pub connect: String,
    pub chroot: String,
    pub session_ms: u64,
}

/// `[admin]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Admin {
    pub token: Secret,
}

/// `[cluster]`
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Cluster {
    pub http: String,
    pub instances: Vec<String>,
}

/// A string that is never printed: a token, or an address that may hold a password.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The string itself, for the one that needs it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(s: &str) -> Self {
        Self(s.to_owned())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// A setting that is not there, not known, or out of its range. The text names it and the rule.
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
    /// Reads every layer; `overrides` are the command line's, as `("server.port", "8100")`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], naming the key and the rule.
    pub fn load(overrides: &[(&str, String)]) -> Result<Self, ConfigError> {
        Self::load_with(std::env::var_os(ENV_FILE).map(PathBuf::from).as_deref(), overrides)
    }

    /// As [`load`](Config::load), with this file in the place of the one that `OVERSELL_CONFIG` names.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], naming the key and the rule.
    pub fn load_with(file: Option<&Path>, overrides: &[(&str, String)]) -> Result<Self, ConfigError> {
        let environment = LISTS.iter().fold(
            Environment::with_prefix(ENV_PREFIX).prefix_separator("__").separator("__").list_separator(","),
            |environment, key| environment.with_list_parse_key(key),
        );
        let mut layers = config::Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
        if let Some(path) = file {
            layers = layers.add_source(File::from(path).format(FileFormat::Toml));
        }
        layers = layers.add_source(environment.try_parsing(true));
        for (key, value) in overrides {
            let value: config::Value = if LISTS.contains(key) {
                value.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect::<Vec<_>>().into()
            } else {
                value.as_str().into()
            };
            layers = layers.set_override(*key, value).map_err(|e| ConfigError(e.to_string()))?;
        }
        let config: Self =
            layers.build().and_then(config::Config::try_deserialize).map_err(|e| ConfigError(e.to_string()))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let rules = [
            ("server.concurrency", self.server.concurrency >= 1, "at least 1"),
            ("server.body_limit", self.server.body_limit >= 1024, "at least 1024 bytes"),
            ("server.header_timeout_ms", self.server.header_timeout_ms >= 1, "at least 1"),
            ("lock.wait_ms", self.lock.wait_ms <= 60_000, "at most 60000"),
            ("lock.lease_ms", (1000..=3_600_000).contains(&self.lock.lease_ms), "from 1000 to 3600000"),
            ("mysql.pool", self.mysql.pool >= 1, "at least 1"),
            (
                "mysql.url",
                self.mysql.url.reveal().starts_with("mysql://"),
                "an address like mysql://user@host:3306/test",
            ),
            ("redis.pool", self.redis.pool >= 1, "at least 1"),
            ("redis.url", self.redis.url.reveal().starts_with("redis"), "an address like redis://host:6379"),
            ("zookeeper.session_ms", (1000..=60_000).contains(&self.zookeeper.session_ms), "from 1000 to 60000"),
            (
                "zookeeper.chroot",
                self.zookeeper.chroot.is_empty()
                    || (self.zookeeper.chroot.starts_with('/') && !self.zookeeper.chroot.ends_with('/')),
                "empty, or a path like /oversell",
            ),
        ];
        match rules.iter().find(|(_, holds, _)| !holds) {
            Some((key, _, rule)) => Err(ConfigError(format!("{key} must be {rule}"))),
            None => Ok(()),
        }
    }

    /// The instance's name, as header `x-instance` gives it.
    #[must_use]
    pub fn instance(&self) -> String {
        if self.server.name.is_empty() { self.server.port.to_string() } else { self.server.name.clone() }
    }

    /// The wait of a request that names none.
    #[must_use]
    pub fn wait(&self) -> Duration {
        Duration::from_millis(self.lock.wait_ms)
    }
}
