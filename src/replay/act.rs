//! What an actor does: a strategy, a step of the seckill, or a function of its race; and the goods that it takes.

use crate::{
    classroom::deadlocks::DeadlockLesson,
    ctx::Ctx,
    error::Error,
    seckill::{self, Order, voucher},
    section::{Deduction, Job, Name},
    server::Server,
    stock::{self, Deduct, Store},
    stock_admin::{self, ResetScope},
};
use chrono::{TimeDelta, Utc};

/// The lock of a user in Redis. In a replay, user and product have the same number.
pub(super) const USER_LOCK: &[Name] = &[Name::Redis("lock:order")];

/// The pieces of a race in stock at first, as many as in the course.
pub(super) const INITIAL_PIECES: i64 = 5000;

/// What an actor does.
#[derive(Clone, Copy)]
pub enum Act {
    /// The strategy of this name takes a piece.
    Strategy(&'static str),
    /// The seckill step of this name places an order for the replay's only user.
    Order(&'static str),
    Custom(CustomAct),
    /// The two transactions of a deadlock lesson, played as one step.
    Deadlock(&'static DeadlockLesson),
}

/// An act that a race defines itself.
#[derive(Clone, Copy)]
pub struct CustomAct {
    /// The name under which another instance finds it.
    name: &'static str,
    /// The names that it writes besides the stock, as they are for product 1.
    names: &'static [Name],
    /// The store of the pieces that it takes, if it takes some.
    store: Option<Store>,
    pub(super) run: Deduct,
}

/// Where the pieces of an act are counted.
#[derive(Debug, Clone, Copy)]
pub(super) enum PieceStore {
    Voucher,
    Stock(Store),
}

impl Act {
    /// A race's own act, which takes no piece.
    pub const fn custom(name: &'static str, names: &'static [Name], run: Deduct) -> Self {
        Self::Custom(CustomAct { name, names, store: None, run })
    }

    /// A race's own act, which takes a piece from this store.
    pub const fn custom_selling(store: Store, name: &'static str, names: &'static [Name], run: Deduct) -> Self {
        Self::Custom(CustomAct { name, names, store: Some(store), run })
    }

    /// The slug of the strategy, step or lesson, or the name that the race has given.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Strategy(slug) | Self::Order(slug) => slug,
            Self::Custom(custom) => custom.name,
            Self::Deadlock(lesson) => lesson.slug,
        }
    }

    /// What a reset of its product sets and clears.
    pub(super) fn reset_scope(self) -> ResetScope<'static> {
        match self {
            Self::Strategy(slug) => stock::find(slug).map(ResetScope::from).unwrap_or_default(),
            Self::Order(_) => ResetScope { store: None, names: USER_LOCK },
            Self::Custom(custom) => ResetScope { store: custom.store, names: custom.names },
            Self::Deadlock(_) => ResetScope::default(),
        }
    }

    /// Whether it takes a piece.
    pub(super) fn sells(self) -> bool {
        matches!(self, Self::Order(_)) || self.reset_scope().store.is_some()
    }

    /// The servers that it needs, or writes to; one may come twice. The nodes of Redlock do not count, since some may be down.
    pub(super) fn servers(self) -> Vec<Server> {
        let needs = match self {
            Self::Strategy(slug) => stock::find(slug).map_or(&[][..], |strategy| strategy.spec.needs),
            Self::Order(_) => &[Server::MySql, Server::Redis],
            Self::Custom(_) => &[],
            Self::Deadlock(_) => &[Server::MySql],
        };
        let scope = self.reset_scope();
        let of_store = scope.store.map(|store| match store {
            Store::MySql => Server::MySql,
            Store::Redis => Server::Redis,
        });
        let of_names = scope.names.iter().filter_map(|name| match name {
            Name::Redis(_) | Name::RedisMine(_) | Name::RedisFor(..) | Name::RedisCount(_) => Some(Server::Redis),
            Name::ZooKeeper(_) => Some(Server::ZooKeeper),
            Name::Etcd(_) => Some(Server::Etcd),
            Name::TableLock(_) | Name::Fence => Some(Server::MySql),
            Name::RedisNodes(_) => None,
        });
        needs.iter().copied().chain(of_store).chain(of_names).collect()
    }

    /// Puts pieces in stock for a voucher, or for a product of a random number, never number 1. Returns the number.
    pub(super) async fn put_pieces(self, ctx: &Ctx, pieces: i64) -> Result<i64, Error> {
        if matches!(self, Self::Order(_)) {
            let id = put_voucher_on_sale(ctx, pieces).await?;
            if id > 1 {
                return Ok(id);
            }
            // Voucher 1 has no number in its names.
            let another = put_voucher_on_sale(ctx, pieces).await;
            voucher::remove(ctx, id).await?;
            return another;
        }
        let stock_id = fastrand::i64(1_000_000_000..2_000_000_000);
        stock_admin::reset(ctx, stock_id, pieces, Some(self.reset_scope())).await?;
        Ok(stock_id)
    }

    /// Where the pieces are; `None` if the act takes none.
    pub(super) fn piece_store(self) -> Option<PieceStore> {
        match self {
            Self::Order(_) => Some(PieceStore::Voucher),
            _ => self.reset_scope().store.map(PieceStore::Stock),
        }
    }

    /// The pieces that are left; `None` if the act takes none.
    pub(super) async fn count_pieces_left(self, ctx: &Ctx, id: i64) -> Result<Option<i64>, Error> {
        match self.piece_store() {
            Some(PieceStore::Voucher) => Ok(Some(voucher::read(ctx, id).await?.stock)),
            Some(PieceStore::Stock(store)) => stock_admin::count(ctx, store, id).await.map(Some),
            None => Ok(None),
        }
    }

    /// Removes the pieces, and clears the act's names; of an order also the voucher and its orders.
    pub(super) async fn remove_pieces(self, ctx: &Ctx, id: i64) -> Result<(), Error> {
        if matches!(self, Self::Order(_)) {
            voucher::remove(ctx, id).await?;
        }
        stock_admin::remove(ctx, id, Some(self.reset_scope())).await.map(drop)
    }
}

impl std::fmt::Debug for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Act").field(&self.name()).finish()
    }
}

/// Adds a voucher that has been on sale for an hour, and is for one more. Returns its id.
pub(super) async fn put_voucher_on_sale(ctx: &Ctx, pieces: i64) -> Result<i64, Error> {
    let (begin, end) = (Utc::now() - TimeDelta::hours(1), Utc::now() + TimeDelta::hours(1));
    voucher::add(ctx, "100元代金券", pieces, begin, end).await
}

/// Orders a voucher for this user, by a step of the seckill. The result has only the state of the lock.
pub async fn place_order(ctx: &Ctx, job: &Job, step: &str, voucher_id: i64, user_id: i64) -> Result<Deduction, Error> {
    let step = seckill::find(step).ok_or_else(|| Error::NoStrategy(step.to_owned()))?;
    let order = Order { voucher_id, user_id, job: job.with_same_owner() };
    let lock = (step.spec.place)(ctx, &order).await?.lock;
    Ok(Deduction::default().with_lock_state(lock))
}
