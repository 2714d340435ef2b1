//! A consumer of the stream of orders: one in each instance, all of one group, so that each entry is delivered to one.
//!
//! 1. Claim what was delivered to a consumer long ago and is not settled: it died, or could not write it.
//! 2. Read up to 200 new entries, waiting for one at most a second, on a connection of its own: a command that
//!    waits on the shared one holds up all others.
//! 3. Write their orders in one transaction. Where that is refused, write each by itself: one that is there already is
//!    fine, one that is refused is delivered again, and buried after the fifth time.
//! 4. Settle the entries, **after** the commit. While MySQL is down, keep them and try again. Then let new ones gather for a
//!    moment.
//! 5. When the instance closes: go on until nothing is left, two seconds at most.
//!
//! What it survives: `kill -9` anywhere, a restart of either server: an entry is settled only once it is written, and written
//! only once however often it is delivered. **What breaks it**: settling before the commit (what a crash finds in between
//! is lost), and a write that does not know its order again (what a crash finds in between is doubled).
//!
//! Next: `write_behind.rs`.

use super::{
    stream::{self, QueuedOrder, StreamEntry},
    voucher,
    write_behind::{self, WriteFailure},
};
use crate::{
    ctx::Ctx,
    error::Error,
    section::{Pause, Point, Points},
};
use redis::{
    AsyncCommands,
    aio::MultiplexedConnection,
    streams::{StreamAutoClaimReply, StreamPendingCountReply, StreamReadReply},
};
use std::{pin::pin, time::Duration};
use tokio::time::Instant;

/// Most entries of one read, and so of one transaction; more wait for the next one.
const MAX_BATCH: usize = 200;
/// Longest wait of one read for new entries in Redis, or half of `redis.timeout_ms` if that is shorter; then it reads again.
const MAX_BLOCK: Duration = Duration::from_secs(1);
/// The pause before the next read, in which entries gather: a transaction for a few entries costs more than it writes.
const GATHER_TIME: Duration = Duration::from_millis(50);
/// An entry that another consumer has read and not settled for this long is taken over: a live one settles a batch sooner.
const CLAIM_IDLE: Duration = Duration::from_secs(5);
/// How often abandoned entries are looked for.
const CLAIM_INTERVAL: Duration = Duration::from_secs(1);
/// An order that the database still refuses after this many deliveries is buried.
const MAX_DELIVERIES: usize = 5;
/// The pause after the first failed try while a server is down; it doubles with each.
const FIRST_OUTAGE_PAUSE: Duration = Duration::from_millis(50);
/// The longest of these pauses, and so the longest that orders wait once the server is back.
const MAX_OUTAGE_PAUSE: Duration = Duration::from_secs(2);
/// How long a stopping instance writes what it has read, within the grace that it is given.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// One instance's consumer of the stream of orders. It reads and writes nothing until it [runs](Self::run).
#[derive(Debug)]
pub struct Consumer {
    ctx: Ctx,
    name: String,
    idle: Duration,
    points: Points,
}

impl Consumer {
    /// Names the consumer after the instance. It reads nothing until it [runs](Self::run).
    pub fn new(ctx: Ctx) -> Self {
        Self { name: ctx.instance.clone(), idle: CLAIM_IDLE, points: Points::default(), ctx }
    }

    /// The same consumer under another name, for a replay; it takes over entries that were not settled for `idle`.
    pub fn with_name(self, name: &str, idle: Duration) -> Self {
        Self { name: name.to_owned(), idle, ..self }
    }

    /// Makes the consumer stop at a point, for a replay: `delivered` (entries are there, nothing is written) or `written`
    /// (nothing is settled).
    pub fn pause_at(&mut self, point: Point) -> Pause {
        let (points, pause) = Points::paused_at(point);
        self.points = points;
        pause
    }

    /// Consumes until the instance closes, and tries again after each failure. Unwritten orders stay in the stream.
    pub async fn run(self) {
        let mut pause = FIRST_OUTAGE_PAUSE;
        while let Err(error) = self.consume(&mut pause).await {
            if self.ctx.closing.is_cancelled() {
                return tracing::warn!(%error, "closing with unwritten orders; they stay in the stream");
            }
            if pause == FIRST_OUTAGE_PAUSE {
                tracing::warn!(%error, "orders cannot be consumed; they wait in the stream");
            }
            self.back_off(&mut pause).await;
        }
    }

    /// Creates the consumer group if it is missing, then reads and writes until the instance closes; fails if a server does.
    /// Each read resets `pause`.
    async fn consume(&self, pause: &mut Duration) -> Result<(), Error> {
        // Its own, since a blocking read would delay others.
        let mut redis = self.ctx.redis.own_connection().await?;
        let client: i64 = redis::cmd("CLIENT").arg("ID").query_async(&mut redis).await?;
        let (orders, mut last_look) = (self.ctx.redis_key(stream::ORDERS_STREAM), None::<Instant>);
        match redis.xgroup_create_mkstream(&orders, stream::CONSUMER_GROUP, "0").await {
            Ok(()) => {}
            Err(error) if error.code() == Some("BUSYGROUP") => {}
            Err(error) => return Err(error.into()),
        }
        let mut end = None;
        loop {
            let closing = self.ctx.closing.is_cancelled();
            if closing && *end.get_or_insert_with(|| Instant::now() + DRAIN_TIMEOUT) < Instant::now() {
                return Ok(());
            }
            let mut entries = Vec::new();
            if last_look.is_none_or(|at| at.elapsed() >= CLAIM_INTERVAL) {
                entries = self.claim_abandoned(&mut redis, &orders).await?;
                last_look = entries.is_empty().then(Instant::now);
            }
            if entries.is_empty() {
                entries = self.read_new_entries(&mut redis, &orders, client).await?;
            }
            *pause = FIRST_OUTAGE_PAUSE;
            if entries.is_empty() && closing {
                return Ok(());
            }
            if !entries.is_empty() {
                let full = entries.len() == MAX_BATCH;
                self.points.reach(Point::Delivered).await;
                self.write_and_settle(&mut redis, entries).await?;
                if !full {
                    drop(tokio::time::timeout(GATHER_TIME, self.ctx.closing.cancelled()).await);
                }
            }
        }
    }

    /// Takes over up to [`MAX_BATCH`] entries that any consumer, this one too, has read and left unsettled for `idle`.
    async fn claim_abandoned(&self, redis: &mut MultiplexedConnection, orders: &str) -> Result<Vec<StreamEntry>, Error> {
        let mut claim = redis::cmd("XAUTOCLAIM");
        claim.arg(orders).arg(stream::CONSUMER_GROUP).arg(&self.name).arg(self.idle.as_millis() as u64).arg("0-0");
        let claimed: StreamAutoClaimReply = claim.arg("COUNT").arg(MAX_BATCH).query_async(redis).await?;
        Ok(claimed.claimed.into_iter().map(StreamEntry::from).collect())
    }

    /// Reads up to [`MAX_BATCH`] new entries, waiting at most [`MAX_BLOCK`] for the first one. Closing ends the wait by the
    /// connection's id, `client`.
    async fn read_new_entries(
        &self,
        redis: &mut MultiplexedConnection,
        orders: &str,
        client: i64,
    ) -> Result<Vec<StreamEntry>, Error> {
        let mut read = redis::cmd("XREADGROUP");
        read.arg("GROUP").arg(stream::CONSUMER_GROUP).arg(&self.name).arg("COUNT").arg(MAX_BATCH);
        let closing = &self.ctx.closing;
        if !closing.is_cancelled() {
            let timeout = Duration::from_millis(self.ctx.config.redis.timeout_ms);
            read.arg("BLOCK").arg(MAX_BLOCK.min(timeout / 2).as_millis() as u64);
        }
        let mut read = pin!(read.arg("STREAMS").arg(orders).arg(">").query_async(redis));
        // A cancelled read would leave delivered entries pending, so Redis is asked to end the wait.
        let read: Option<StreamReadReply> = tokio::select! {
            read = &mut read => read?,
            () = closing.cancelled() => {
                let unblock = redis::cmd("CLIENT").arg("UNBLOCK").arg(client).to_owned();
                unblock.exec_async(&mut self.ctx.redis.connection()).await?;
                read.await?
            }
        };
        let keys = read.map(|reply| reply.keys).unwrap_or_default();
        Ok(keys.into_iter().flat_map(|key| key.ids).map(StreamEntry::from).collect())
    }

    /// Writes these entries in one transaction, or one by one if that is refused. Settles those that are written, and buries
    /// those that cannot be. The rest stay, and are claimed again after `idle`.
    async fn write_and_settle(&self, redis: &mut MultiplexedConnection, entries: Vec<StreamEntry>) -> Result<(), Error> {
        let orders: Vec<_> = entries.iter().filter_map(|entry| entry.order.as_ref().ok().copied()).collect();
        if orders.len() == entries.len() && self.write_until_answered(&orders).await?.is_ok() {
            self.points.reach(Point::Written).await;
            return stream::acknowledge_and_delete(&self.ctx, redis, &entries).await;
        }
        for entry in entries {
            match self.write_entry(redis, &entry).await? {
                EntryOutcome::Written => stream::acknowledge_and_delete(&self.ctx, redis, &[entry]).await?,
                EntryOutcome::Unwritable { reason, given_back } => {
                    let keys = |order: &QueuedOrder| given_back.iter().map(|key| key(&self.ctx, order.voucher_id)).collect();
                    let keys: Vec<_> = entry.order.as_ref().map(keys).unwrap_or_default();
                    stream::move_to_dead_letters(&self.ctx, redis, &entry, &reason, &keys).await?;
                }
                EntryOutcome::RetryLater => {}
            }
        }
        Ok(())
    }

    /// Writes one entry alone. Settling or burying it is left to the caller.
    async fn write_entry(&self, redis: &mut MultiplexedConnection, entry: &StreamEntry) -> Result<EntryOutcome, Error> {
        let order = match &entry.order {
            Ok(order) => order,
            Err(reason) => return Ok(EntryOutcome::Unwritable { reason: reason.clone(), given_back: &[] }),
        };
        Ok(match self.write_until_answered(std::slice::from_ref(order)).await? {
            Ok(()) => EntryOutcome::Written,
            Err(WriteFailure::Duplicate) if write_behind::is_stored(&self.ctx, order).await? => EntryOutcome::Written,
            Err(WriteFailure::Duplicate) => {
                EntryOutcome::Unwritable { reason: "用户已经购买过一次!".into(), given_back: PIECE }
            }
            // MySQL has none left, so one more in Redis could never be sold.
            Err(WriteFailure::SoldOut) => EntryOutcome::Unwritable { reason: "库存不足！".into(), given_back: &[] },
            Err(WriteFailure::Refused(reason)) if self.count_deliveries(redis, entry).await? >= MAX_DELIVERIES => {
                EntryOutcome::Unwritable { reason, given_back: PIECE_AND_USER }
            }
            Err(WriteFailure::Refused(_) | WriteFailure::Down(_)) => EntryOutcome::RetryLater,
        })
    }

    /// Writes these orders, trying until MySQL answers. The inner result is its answer, never `Down`; the outer one fails only
    /// if the instance closes meanwhile.
    async fn write_until_answered(&self, orders: &[QueuedOrder]) -> Result<Result<(), WriteFailure>, Error> {
        let mut pause = FIRST_OUTAGE_PAUSE;
        loop {
            match write_behind::write(&self.ctx, orders).await {
                Err(WriteFailure::Down(error)) if self.ctx.closing.is_cancelled() => {
                    return Err(error);
                }
                Err(WriteFailure::Down(error)) => {
                    if pause == FIRST_OUTAGE_PAUSE {
                        tracing::warn!(%error, orders = orders.len(), "orders wait to be written");
                    }
                    self.back_off(&mut pause).await;
                }
                answered => return Ok(answered),
            }
        }
    }

    /// The number of deliveries of an entry, this one included; 0 if it is no longer pending.
    async fn count_deliveries(&self, redis: &mut MultiplexedConnection, entry: &StreamEntry) -> Result<usize, Error> {
        let orders = self.ctx.redis_key(stream::ORDERS_STREAM);
        let pending: StreamPendingCountReply =
            redis.xpending_count(orders, stream::CONSUMER_GROUP, &entry.at, &entry.at, 1).await?;
        Ok(pending.ids.first().map_or(0, |entry| entry.times_delivered))
    }

    /// Sleeps for 50 to 100 % of `pause`, or until the instance closes, then doubles `pause` up to [`MAX_OUTAGE_PAUSE`].
    async fn back_off(&self, pause: &mut Duration) {
        let drawn = pause.mul_f64(0.5 + fastrand::f64() / 2.0);
        drop(tokio::time::timeout(drawn, self.ctx.closing.cancelled()).await);
        *pause = (*pause * 2).min(MAX_OUTAGE_PAUSE);
    }
}

/// The keys of a voucher that get something back of an order that cannot be written.
type GivenBack = &'static [fn(&Ctx, i64) -> String];

/// The piece; the user has another order.
const PIECE: GivenBack = &[voucher::stock_key];
/// The piece; the user may order again.
const PIECE_AND_USER: GivenBack = &[voucher::stock_key, voucher::users_key];

/// What became of an entry that was written alone.
enum EntryOutcome {
    Written,
    /// It cannot be written, for this reason.
    Unwritable {
        reason: String,
        given_back: GivenBack,
    },
    /// It stays as it is, and is claimed again.
    RetryLater,
}
