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
                Name::Redis(_) | Name::RedisFor(..) | Name::RedisNodes(_) => {
                    for (key, mut node) in self.keys(name) {
                        seen.locks.extend(in_redis(key, &mut node).await?);
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

    /// The keys of a name, each with the node on which it is.
    fn keys(&self, name: &Name) -> Vec<(String, ConnectionManager)> {
        let key = |name| self.ctx.redis_key(&redis_key::for_stock(name, self.stock_id));
        match name {
            Name::Redis(name) | Name::RedisFor(name, _) => vec![(key(name), self.ctx.redis.connection())],
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
                    queue.push(String::from_utf8_lossy(&data).into_owned());
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
