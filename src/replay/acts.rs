//! What an actor can do: any strategy, any step of the seckill that a race is about, and what the lessons have besides.

use super::races;
use crate::{
    classroom::deadlocks,
    ctx::Ctx,
    error::Error,
    seckill::{self, Order},
    section::{Deducted, Job, Name},
    server::Server,
    stock::{self, Deduct, Store, Strategy},
};

/// One thing to do, with the names that it writes in the servers.
#[derive(Clone, Copy)]
pub(super) struct Act {
    /// What it is called.
    pub(super) name: &'static str,
    /// What it writes in the servers besides the stock, for product 1.
    pub(super) names: &'static [Name],
    /// Where the pieces that it takes are counted; none where it takes none.
    pub(super) store: Option<Store>,
    /// Does it.
    pub(super) run: Deduct,
}

/// Those that are no strategies.
const ALL: &[&[Act]] = &[
    &[races::exec_nil::WITHOUT_WATCH],
    races::one_order::ORDERS,
    races::limits::ACTS,
    races::forced::ACTS,
    races::count_to_three::ACTS,
    races::reentry::ACTS,
    races::late_renewal::ACTS,
    races::read_write::ACTS,
    races::permits::ACTS,
    races::latch::ACTS,
    races::node_types::ACTS,
    races::zk_reentry::ACTS,
    races::herd::ACTS,
    races::zk_read_write::ACTS,
    races::zk_barriers::ACTS,
    races::zk_counts::ACTS,
];

impl Act {
    /// The servers without which it cannot be done: those that it writes in. Of several nodes some may be down.
    pub(super) fn servers(&self) -> Vec<Server> {
        let of_store = match self.scope().store {
            Store::MySql => Server::MySql,
            Store::Redis => Server::Redis,
        };
        let of_names = self.names.iter().filter_map(|name| match name {
            Name::Redis(_) | Name::RedisFor(..) | Name::RedisCount(_) => Some(Server::Redis),
            Name::ZooKeeper(_) => Some(Server::ZooKeeper),
            Name::TableLock(_) | Name::Fence => Some(Server::MySql),
            Name::RedisNodes(_) => None,
        });
        let needs = stock::find(self.name).map_or(&[][..], |strategy| strategy.needs);
        [of_store]
            .into_iter()
            .chain(of_names)
            .chain(needs.iter().copied())
            .collect()
    }

    /// What the shelf is set and cleared by: the store of an act that takes nothing is Redis, where its names are.
    pub(super) fn scope(&self) -> Strategy {
        Strategy {
            names: self.names,
            store: self.store.unwrap_or(Store::Redis),
            ..stock::ALL[0]
        }
    }
}

impl std::fmt::Debug for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Act")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The act of this name.
pub(super) fn find(name: &str) -> Option<Act> {
    let strategy = stock::find(name).map(|strategy| Act {
        name: strategy.slug,
        names: strategy.names,
        store: Some(strategy.store),
        run: strategy.deduct,
    });
    let deadlock = || {
        deadlocks::find(name).map(|lesson| Act {
            name: lesson.slug,
            ..PLAYED_AS_A_WHOLE
        })
    };
    strategy
        .or_else(|| {
            ALL.iter()
                .copied()
                .flatten()
                .find(|act| act.name == name)
                .copied()
        })
        .or_else(deadlock)
}

/// A lesson whose sides are played together, and are no actors of their own.
const PLAYED_AS_A_WHOLE: Act = Act {
    name: "",
    names: &[],
    store: None,
    run: |_, _| Box::pin(async { Err(Error::Internal("it is played as a whole".into())) }),
};

/// Orders the voucher of this number, for the one user of the replay, whose number is that of the job's product.
pub(super) async fn order(
    ctx: &Ctx,
    job: &Job,
    step: &str,
    voucher_id: i64,
) -> Result<Deducted, Error> {
    let step = seckill::find(step).ok_or_else(|| Error::NoStrategy(step.to_owned()))?;
    let order = Order {
        voucher_id,
        user_id: job.request.stock_id,
        job: job.same(),
    };
    let ordered = (step.order)(ctx, &order).await?;
    Ok(Deducted {
        remaining: None,
        fence: None,
        retries: 0,
        lock: ordered.lock,
    })
}
