//! Small clients of what is no lock: HTTP, Redis, ZooKeeper's four-letter words, processes in Java and Python.

pub mod four_letters;
pub mod http_client;
pub mod peer;
pub mod redis_at;
pub(crate) mod redis_pool;
