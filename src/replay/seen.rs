//! What the servers hold of a replay's product: who has the lock and for how long, the queue, the shelf, the row's token.
//!
//! It is read every 20 ms and whenever an actor has done something; what has changed since becomes an event.
//!
//! Next: `play.rs`.

use super::acts::Act;
use crate::{
    ctx::Ctx,
    error::Error,
    shelf,
    stock::{Name, redis_key, zk_path},
};
use redis::aio::ConnectionManager;
use std::time::Duration;
use tokio::time::timeout;

/// One of several nodes that does not answer within this is not there.
const AT_ONCE: Duration = Duration::from_millis(200);

/// One lock, as its server has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Held {
    /// Its name there.
    pub(super) key: String,
    /// The text that stands for its owner.
    pub(super) owner: String,
    /// What is left of its lease, in milliseconds; -1: it has none.
    pub(super) pttl: Option<i64>,
    /// How often its owner has it, where it counts.
    pub(super) count: Option<i64>,
    /// Who waits after it, in the order in which the server has them, itself first.
    pub(super) queue: Vec<String>,
}

impl Held {
    /// On one of several nodes, whose name stands before the key: `redis-2 redLock:7`.
    fn on_node(self, n: usize) -> Self {
        let node = if n == 0 { "redis".to_owned() } else { format!("redis-{}", n + 1) };
        Self { key: format!("{node} {}", self.key), ..self }
    }
}

/// Everything at one time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) locks: Vec<Held>,
    pub(super) stock: Option<i64>,
    pub(super) fence: Option<u64>,
}

/// What is to be read.
#[derive(Debug, Clone)]
pub(super) struct Sights {
    ctx: Ctx,
    act: Act,
    stock_id: i64,
}

impl Sights {
    pub(super) fn of(ctx: &Ctx, act: Act, stock_id: i64) -> Self {
        Self { ctx: ctx.clone(), act, stock_id }
    }

    /// Reads all of it.
    pub(super) async fn read(&self) -> Result<Seen, Error> {
        let mut seen = Seen::default();
        for name in self.act.names {
            match name {
                Name::Redis(_) | Name::RedisNodes(_) => {
                    let several = matches!(name, Name::RedisNodes(_));
                    for (n, (key, mut node)) in self.keys(name).into_iter().enumerate() {
                        let read = in_redis(key, &mut node);
                        if several {
                            // Some of them may be down: that is what they are several for.
                            let held = timeout(AT_ONCE, read).await.ok().and_then(Result::ok).flatten();
                            seen.locks.extend(held.map(|held| held.on_node(n)));
                        } else {
                            seen.locks.extend(read.await?);
                        }
                    }
                }
                Name::ZooKeeper(path) => seen.locks.extend(self.in_zookeeper(&zk_path(path, self.stock_id)).await?),
                Name::TableLock(name) => {
                    let name = redis_key::for_stock(name, self.stock_id);
                    seen.locks.extend(self.in_table(name).await?);
                }
                Name::Fence => seen.fence = Some(self.fence().await?),
            }
        }
        if let Some(store) = self.act.store {
            seen.stock = Some(shelf::count(&self.ctx, store, self.stock_id).await?);
        }
        Ok(seen)
    }

    /// Ends the lease of each lock in Redis at once, as if its time were over.
    pub(super) async fn end_leases(&self) -> Result<(), Error> {
        for (key, mut node) in self.act.names.iter().flat_map(|name| self.keys(name)) {
            redis::cmd("PEXPIRE").arg(&key).arg(1).exec_async(&mut node).await?;
        }
        Ok(())
    }

    /// The same on the node of this number only.
    pub(super) async fn end_lease_on(&self, node: usize) -> Result<(), Error> {
        let keys = self.act.names.iter().flat_map(|name| self.keys(name).into_iter().nth(node));
        for (key, mut node) in keys {
            redis::cmd("PEXPIRE").arg(&key).arg(1).exec_async(&mut node).await?;
        }
        Ok(())
    }

    /// Whether the main Redis knows no lock: it may have been replaced, and not answer for a moment.
    pub(super) async fn main_has_none(&self) -> Result<bool, Error> {
        let keys = self.act.names.iter().flat_map(|name| self.keys(name).into_iter().next());
        for (key, mut main) in keys {
            if redis::cmd("EXISTS").arg(&key).query_async(&mut main).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The keys of a name, each with the node on which it is.
    fn keys(&self, name: &Name) -> Vec<(String, ConnectionManager)> {
        let key = |name| self.ctx.redis_key(&redis_key::for_stock(name, self.stock_id));
        match name {
            Name::Redis(name) => vec![(key(name), self.ctx.redis.connection())],
            Name::RedisNodes(name) => self.ctx.nodes.iter().map(|node| (key(name), node.connection())).collect(),
            _ => Vec::new(),
        }
    }

    /// The node itself, or those below it in the order of their numbers: the first has the lock.
    async fn in_zookeeper(&self, path: &str) -> Result<Option<Held>, Error> {
        let down = |e: zookeeper_client::Error| shelf::no_zookeeper(e);
        let zk = self.ctx.zk.session()?;
        let mut below = match zk.list_children(path).await {
            Ok(below) => below,
            Err(zookeeper_client::Error::NoNode) => return Ok(None),
            Err(error) => return Err(down(error)),
        };
        let number = |name: &String| name.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default().to_owned();
        below.sort_by_key(number);
        let paths = match below.is_empty() {
            true => vec![path.to_owned()],
            false => below.iter().map(|name| format!("{path}/{name}")).collect(),
        };
        let mut queue = Vec::new();
        for path in paths {
            match zk.get_data(&path).await {
                // A directory has no data: nobody is in it.
                Ok((data, stat)) if !data.is_empty() || stat.ephemeral_owner != 0 => {
                    // A shared count has its four bytes there, and is no lock.
                    let owner = String::from_utf8(data).ok().filter(|owner| !owner.contains('\0'));
                    queue.extend(owner);
                }
                Ok(_) | Err(zookeeper_client::Error::NoNode) => {}
                Err(error) => return Err(down(error)),
            }
        }
        let Some(owner) = queue.first().cloned() else { return Ok(None) };
        Ok(Some(Held { key: path.to_owned(), owner, pttl: None, count: None, queue }))
    }

    async fn in_table(&self, name: String) -> Result<Option<Held>, Error> {
        let mut conn = self.ctx.desk.conn(self.ctx.config.wait()).await?;
        let row: Option<(Option<String>, Option<String>)> =
            sqlx::query_as("SELECT owner, server_name FROM tb_lock WHERE lock_name = ?")
                .bind(&name)
                .fetch_optional(&mut *conn)
                .await?;
        conn.done();
        Ok(row.map(|(owner, server)| {
            let owner = owner.or(server).unwrap_or_default();
            Held { key: name, owner, pttl: Some(-1), count: None, queue: Vec::new() }
        }))
    }

    async fn fence(&self) -> Result<u64, Error> {
        let mut conn = self.ctx.desk.conn(self.ctx.config.wait()).await?;
        let fence = sqlx::query_scalar("SELECT fence FROM db_stock WHERE id = ?").bind(self.stock_id);
        let fence = fence.fetch_one(&mut *conn).await?;
        conn.done();
        Ok(fence)
    }
}

/// A lock in Redis: a text, or a hash of its owners.
async fn in_redis(key: String, node: &mut ConnectionManager) -> Result<Option<Held>, Error> {
    let (kind, pttl): (String, i64) =
        redis::pipe().cmd("TYPE").arg(&key).cmd("PTTL").arg(&key).query_async(node).await?;
    let (owner, count) = match kind.as_str() {
        "string" => (redis::cmd("GET").arg(&key).query_async::<Option<String>>(node).await?, None),
        "hash" => {
            let fields: Vec<(String, String)> = redis::cmd("HGETALL").arg(&key).query_async(node).await?;
            let owner = fields.into_iter().find(|(field, _)| field != "mode");
            let count = owner.as_ref().and_then(|(_, count)| count.parse().ok());
            (owner.map(|(owner, _)| owner), count)
        }
        _ => (None, None),
    };
    Ok(owner.map(|owner| Held { key, owner, pttl: Some(pttl), count, queue: Vec::new() }))
}
