//! Small clients of what is no lock: HTTP, Redis, ZooKeeper's four-letter words, processes in Java and Python; a proxy before a
//! server, and what passes it on the way to ZooKeeper.

pub mod four_letters;
pub mod http_client;
pub mod peer;
pub mod proxy;
pub mod redis_at;
pub mod zookeeper_wire;
