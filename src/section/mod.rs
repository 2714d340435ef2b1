//! What every critical section is made of, whoever enters it: strategies, steps of the seckill, lessons and races.
//!
//! [`Job`] is a request that is being carried out; [`Point`] a place in its code at which it is seen and can be stopped.
//! `mysql`, `redis_key`, `redis_polling` and `zk_node` bound statements and commands, give connections back, and clean up
//! after callers that go away. What is read and written stands in the files that use them.

mod job;
pub(crate) mod mysql;
pub(crate) mod names;
mod observation;
pub(crate) mod points;
pub(crate) mod poll;
pub(crate) mod redis_key;
pub(crate) mod redis_polling;
pub(crate) mod zk_node;

pub use job::{Deducted, Job, LockState, Request};
pub use names::{Name, Unrenewed};
pub use observation::Observation;
pub(crate) use points::Points;
pub use points::{Pause, Point, Reached};
