//! The servers of an instance, by name.

use serde::Serialize;
use utoipa::ToSchema;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Server {
    MySql,
    Redis,
    ZooKeeper,
    Etcd,
}

impl Server {
    /// Its name in answers, logs and figures.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MySql => "mysql",
            Self::Redis => "redis",
            Self::ZooKeeper => "zookeeper",
            Self::Etcd => "etcd",
        }
    }
}
