//! The configuration: `config/default.toml` < the file named by `OVERSELL_CONFIG` <
//! `OVERSELL__SECTION__KEY` < command line, checked at start.

use config::{Environment, File, FileFormat};
use garde::Validate;
use serde::Deserialize;
use std::{
    path::{Path, PathBuf},
    time::Duration,
};

const DEFAULTS: &str = include_str!("../config/default.toml");
const ENV_PREFIX: &str = "OVERSELL";
const ENV_FILE: &str = "OVERSELL_CONFIG";
/// Settings that are lists; outside of files they are written with commas.
const LISTS: [&str; 3] = ["server.hosts", "redis.nodes", "cluster.instances"];

/// All settings of an instance. Each is explained in `config/default.toml`.
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
#[allow(missing_docs)]
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
    pub admin: Admin,
    pub cluster: Cluster,
}

/// `[server]`
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
#[allow(missing_docs)]
pub struct Server {
    pub host: String,
    pub port: u16,
    pub name: String,
    pub hosts: Vec<String>,
    #[garde(range(min = 1))]
    pub header_timeout_ms: u64,
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

/// `[stock]`
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
#[allow(missing_docs)]
pub struct Stock {
    pub strategy: String,
}

/// `[lock]`
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
#[allow(missing_docs)]
pub struct Lock {
    #[garde(range(max = 600_000))]
    pub wait_ms: u64,
    #[garde(range(min = 1_000, max = 3_600_000))]
    pub lease_ms: u64,
    #[garde(range(min = 100, max = 3_600_000))]
    pub stage_lease_ms: u64,
}

/// `[mysql]`
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
#[allow(missing_docs)]
pub struct MySql {
    #[garde(custom(starts_with("mysql://")))]
    pub url: Secret,
    #[garde(range(min = 1))]
    pub pool: usize,
}

/// `[redis]`
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
#[allow(missing_docs)]
pub struct Redis {
    #[garde(custom(starts_with("redis")))]
    pub url: Secret,
    pub nodes: Vec<Secret>,
    pub prefix: String,
    #[garde(range(min = 1))]
    pub pool: usize,
    pub timeout_ms: u64,
}

/// `[zookeeper]`
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
#[allow(missing_docs)]
pub struct ZooKeeper {
    pub connect: String,
    #[garde(custom(no_path_or_absolute))]
    pub chroot: String,
    #[garde(range(min = 1_000, max = 60_000))]
    pub session_ms: u64,
}

/// `[admin]`
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
#[allow(missing_docs)]
pub struct Admin {
    pub token: Secret,
}

/// `[cluster]`
#[derive(Debug, Clone, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
#[garde(allow_unvalidated)]
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

/// An address must begin so. The rule does not repeat the address, which may hold a password.
fn starts_with(scheme: &'static str) -> impl Fn(&Secret, &()) -> garde::Result {
    move |url, ()| match url.reveal().starts_with(scheme) {
        true => Ok(()),
        false => Err(garde::Error::new(format!("not an address that begins with {scheme}"))),
    }
}

fn no_path_or_absolute(path: &str, (): &()) -> garde::Result {
    if path.is_empty() || (path.starts_with('/') && !path.ends_with('/')) {
        return Ok(());
    }
    Err(garde::Error::new("neither empty nor a path like /oversell"))
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
        self.validate().map_err(|report| {
            let broken: Vec<_> = report.iter().map(|(key, fault)| format!("{key} is {fault}")).collect();
            ConfigError(broken.join("; "))
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_is_not_as_it_should_be_is_named_with_the_rule() {
        for (key, wrong, rule) in [
            ("server.concurrency", "0", "lower than 1"),
            ("server.connections", "0", "lower than 1"),
            ("server.body_limit", "1023", "lower than 1024"),
            ("lock.wait_ms", "600001", "greater than 600000"),
            ("lock.lease_ms", "999", "lower than 1000"),
            ("mysql.pool", "0", "lower than 1"),
            ("mysql.url", "postgres://root:hunter2@db", "begins with mysql://"),
            ("redis.url", "http://:hunter2@db", "begins with redis"),
            ("zookeeper.session_ms", "60001", "greater than 60000"),
            ("zookeeper.chroot", "oversell/", "a path like /oversell"),
        ] {
            let error = Config::load_with(None, &[(key, wrong.to_owned())]).expect_err(key).to_string();
            assert!(error.contains(key) && error.contains(rule) && !error.contains("hunter2"), "{error}");
        }
        assert!(Config::load_with(None, &[]).is_ok(), "the defaults follow their own rules");
    }
}
