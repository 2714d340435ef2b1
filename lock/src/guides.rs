//! From another library to this one, call by call; and the words of this one.

#[doc = include_str!("guides/from_redisson.md")]
pub mod from_redisson {}

#[doc = include_str!("guides/from_rslock.md")]
pub mod from_rslock {}

#[doc = include_str!("guides/from_redis_py.md")]
pub mod from_redis_py {}

#[doc = include_str!("guides/words.md")]
pub mod words {}
