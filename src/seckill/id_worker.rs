//! \[002\] Redis实现全局唯一Id: numbers that no two instances give twice, that grow with time, and need no database.
//!
//! 1. Take the seconds since 2022-01-01 (31 bits, until 2090).
//! 2. Count one up in Redis, in a key of this prefix and day (UTC): `icr:order:2026:11:21` (32 bits).
//! 3. Put them together: seconds, then count. A batch counts n up at once and has n numbers.
//!
//! **Unique**: the day follows from the seconds, and no count of a day comes twice; so two numbers differ in the one or
//! in the other, whatever the clocks say. **Increasing**: a number of a later second is greater; within a second, the one
//! that was counted later. So numbers are in order as far as clocks are: between instances only as exactly as these agree.
//! One instance never goes back: where its clock does, it goes on counting in the last second until the clock is there again.
//!
//! What it survives: instances that die, midnight (the count starts again, in a later second), a Redis that restarts. **What
//! breaks it**: a Redis that lost its counter within the very second in which it counted, or by a clock that returns to a
//! day whose key was lost or has expired: four days after that day by Redis' clock, and after its first count.
//!
//! Next: `script_stream.rs`, which takes an order's number from here.

use crate::{ctx::Ctx, error::Error};
use chrono::DateTime;
use serde::Serialize;
use std::{
    ops::RangeInclusive,
    sync::atomic::{AtomicI64, Ordering},
    time::{SystemTime, UNIX_EPOCH},
};
use utoipa::ToSchema;

/// 2022-01-01T00:00:00Z as a Unix second.
const BEGIN_TIMESTAMP: i64 = 1_640_995_200;
/// The text's layout: 31 bits of seconds, 32 of the count.
const COUNT_BITS: u32 = 32;
/// The last second since 2022-01-01 that an id can have, in 2090.
const MAX_SECONDS: i64 = (1 << 31) - 1;
/// The most ids of one prefix and day; more fail with [`Error::NoId`].
const MAX_COUNT: i64 = (1 << COUNT_BITS) - 1;

/// The most new prefixes of one day, because anybody may ask for an id; more fail with [`Error::NoId`].
const MAX_NEW_PREFIXES: i64 = 1000;
/// The prefix of orders. It has a dot, so that no request for ids counts in the key of the orders: anybody could use up the
/// numbers of a day.
pub const ORDERS: &str = "voucher.order";
/// The prefixes of this program and of its lessons, which do not count towards [`MAX_NEW_PREFIXES`].
const OWN_PREFIXES: [&str; 4] = [ORDERS, "order", "by-hand", "bench"];

/// How long the key of a day is kept, from its first count and from the end of its day, whichever is later: it must outlive its
/// day by more than clocks differ or go back, or the day's count would start again. An instance whose clock was ahead goes on
/// counting in a day that has not begun.
const KEY_TTL_SECONDS: i64 = 4 * DAY_SECONDS;
const DAY_SECONDS: i64 = 86_400;

/// A global id and its parts.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Id {
    /// A text, since it is beyond 2^53, up to which a JSON number is exact for every reader.
    #[schema(example = "662539205509742593")]
    pub id: String,
    /// Seconds since 2022-01-01T00:00:00Z.
    #[schema(example = 154259397)]
    pub seconds: i64,
    /// The day's count.
    #[schema(example = 1)]
    pub count: i64,
    /// The day of the count, as in the key.
    #[schema(example = "2026:11:21")]
    pub date: String,
}

/// The latest second since 2022-01-01 that this process has used.
#[derive(Default)]
struct LastSecond(AtomicI64);

/// Draws the next number of this prefix, counting in Redis.
/// Errors: [`Error::NoId`] if there is none to give: the day's count or its new prefixes are used up, or the clock is out of
/// range. [`Error::Unavailable`] if Redis is down.
pub async fn next_id(ctx: &Ctx, prefix: &str) -> Result<i64, Error> {
    next_ids(ctx, prefix, 1).await.map(|ids| *ids.end())
}

/// Draws the next `count` numbers of this prefix, which follow each other, by one command. Errors: as [`next_id`].
pub async fn next_ids(ctx: &Ctx, prefix: &str, count: u32) -> Result<RangeInclusive<i64>, Error> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    next_ids_at(ctx, prefix, count, since.as_secs().cast_signed()).await
}

/// As [`next_ids`], with this Unix second for the clock's: for replays. It never goes back: the latest second of all calls
/// with this `ctx.local` counts, for later calls too.
pub async fn next_ids_at(ctx: &Ctx, prefix: &str, count: u32, now: i64) -> Result<RangeInclusive<i64>, Error> {
    let seconds = now - BEGIN_TIMESTAMP;
    if !(0..=MAX_SECONDS).contains(&seconds) {
        return Err(Error::NoId("the clock is not within the 31 bits of seconds from 2022-01-01 to 2090-01-19".into()));
    }
    let last = ctx.local.of::<LastSecond>().0.fetch_max(seconds, Ordering::Relaxed);
    let seconds = seconds.max(last);
    let key = ctx.redis_key(&format!("icr:{prefix}:{}", format_date(seconds)));
    let mut redis = ctx.redis.connection();
    let counted: i64 = redis::cmd("INCRBY").arg(&key).arg(count).query_async(&mut redis).await?;
    if counted > MAX_COUNT {
        return Err(Error::NoId(format!("{key} has counted 2^32 ids today; there are more after midnight UTC")));
    }
    // A process that dies in between leaves a key of some bytes.
    if counted == i64::from(count) {
        if !OWN_PREFIXES.contains(&prefix) {
            begin_prefix(ctx, &key, seconds).await?;
        }
        let day_end = (seconds / DAY_SECONDS + 1) * DAY_SECONDS;
        let mut keep = redis::pipe();
        keep.cmd("EXPIRE").arg(&key).arg(KEY_TTL_SECONDS);
        // Only a later end counts: by a clock that is behind, the day may be long over.
        keep.cmd("EXPIREAT").arg(&key).arg(BEGIN_TIMESTAMP + day_end + KEY_TTL_SECONDS).arg("GT");
        keep.exec_async(&mut redis).await?;
    }
    let id = |count| seconds << COUNT_BITS | count;
    Ok(id(counted - i64::from(count) + 1)..=id(counted))
}

/// Counts a new prefix of the day of `now_seconds`. If there are too many, removes its key and fails with
/// [`Error::NoId`], because anybody may ask for any prefix.
async fn begin_prefix(ctx: &Ctx, key: &str, now_seconds: i64) -> Result<(), Error> {
    let begun = ctx.redis_key(&format!("icr-prefixes:{}", format_date(now_seconds)));
    let mut redis = ctx.redis.connection();
    let mut count = redis::pipe();
    count.incr(&begun, 1);
    count.expire(&begun, DAY_SECONDS).ignore();
    let (begun,): (i64,) = count.query_async(&mut redis).await?;
    if begun <= MAX_NEW_PREFIXES {
        return Ok(());
    }
    let _: () = redis::cmd("DEL").arg(key).query_async(&mut redis).await?;
    Err(Error::NoId(format!("{MAX_NEW_PREFIXES} prefixes were begun today, and these go on; there are more after midnight UTC")))
}

impl From<i64> for Id {
    fn from(id: i64) -> Self {
        let seconds = id >> COUNT_BITS;
        Self { id: id.to_string(), seconds, count: id & MAX_COUNT, date: format_date(seconds) }
    }
}

/// The UTC day of this second since 2022-01-01, as in the key: `2026:11:21`.
fn format_date(seconds: i64) -> String {
    DateTime::from_timestamp(BEGIN_TIMESTAMP + seconds, 0).unwrap_or_default().format("%Y:%m:%d").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_its_seconds_and_its_count() {
        for (number, id, seconds, count, date) in [
            (1, "1", 0, 1, "2022:01:01"),
            (i64::MAX, "9223372036854775807", MAX_SECONDS, MAX_COUNT, "2090:01:19"),
            (86_399 << 32 | 7, "371080879407111", 86_399, 7, "2022:01:01"),
            (86_400 << 32 | 7, "371085174374407", 86_400, 7, "2022:01:02"),
        ] {
            let (id, date) = (id.to_owned(), date.to_owned());
            let parts = Id { id, seconds, count, date };
            assert_eq!(Id::from(number), parts);
        }
    }
}
