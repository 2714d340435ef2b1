//! Shared by strategies, seckill steps, lessons and races: the request, its critical section, and the plumbing.
//!
//! A [`Job`] is a request in progress; a [`Point`] is a place in its code where it can be observed and paused.
//! `mysql`, `session`, `redis_key`, `redis_polling` and `zk_node` limit how long statements and commands take, return
//! connections, and clean up after cancelled callers. The statements and commands stand in the files that use them.

pub(crate) mod backstop;
pub(crate) mod etcd;
mod etcd_tap;
mod job;
pub(crate) mod lua;
pub(crate) mod mysql;
mod mysql_tap;
pub(crate) mod names;
mod observation;
pub(crate) mod points;
pub(crate) mod poll;
pub(crate) mod product;
pub(crate) mod redis_key;
pub(crate) mod redis_polling;
mod redis_tap;
pub(crate) mod session;
pub(crate) mod zk_node;
mod zookeeper_tap;

pub(crate) use etcd_tap::tap_etcd;
pub use job::{Deduction, Job, LockState, Request};
pub(crate) use mysql_tap::tap_mysql;
pub use names::{FixedLease, Name};
pub use observation::Observation;
pub(crate) use points::Points;
pub use points::{FollowerEvent, Pause, Point};
pub(crate) use redis_tap::RedisTap;
pub(crate) use zookeeper_tap::tap_zookeeper;
