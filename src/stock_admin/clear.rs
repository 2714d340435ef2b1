//! Clears what strategies and lessons left in the lock servers when the stock is reset: locks, queues, permits, latches. They
//! name it themselves ([`Name`]).

use crate::{
    classroom,
    ctx::Ctx,
    error::Error,
    section::{Name, names, zk_node::unavailable},
    stock::{self, Store, Strategy},
};
use futures::future::{BoxFuture, try_join_all};
use oversell_lock::redis::Connection;
use redis::{ErrorKind, Pipeline, RedisResult, ServerErrorKind, Value};
use zookeeper_client::{Client, Error as Zk};

/// The part of a product to set and clear: that of one strategy, or of one race.
#[derive(Debug, Clone, Copy, Default)]
pub struct ResetScope<'a> {
    /// The store of its pieces; none if it takes none.
    pub store: Option<Store>,
    /// Its names in the servers, for product 1.
    pub names: &'a [Name],
}

impl From<&Strategy> for ResetScope<'static> {
    fn from(strategy: &Strategy) -> Self {
        Self { store: Some(strategy.spec.store), names: strategy.spec.names }
    }
}

/// The names of one product, by the server that has them.
#[derive(Default)]
pub(super) struct ProductNames {
    /// Whether the row's fence is among them.
    pub(super) fence: bool,
    /// The names of locks in `tb_lock`.
    pub(super) rows: Vec<String>,
    /// The keys of locks, permits and latches in the main Redis; the key of the stock is not among them.
    pub(super) keys: Vec<String>,
    /// The keys in the Redis of students' scripts.
    pub(super) mine_keys: Vec<String>,
    /// The keys on each node of Redlock.
    pub(super) node_keys: Vec<String>,
    /// The paths in ZooKeeper.
    pub(super) paths: Vec<String>,
    /// The prefixes of keys in etcd.
    pub(super) prefixes: Vec<String>,
}

impl ProductNames {
    /// The names of this scope; without one, those of all strategies and lessons.
    pub(super) fn of(scope: Option<ResetScope<'_>>, ctx: &Ctx, stock_id: i64) -> Self {
        let names: Vec<_> = match scope {
            Some(scope) => scope.names.iter().collect(),
            None => stock::ALL.iter().flat_map(|strategy| strategy.spec.names).chain(classroom::names()).collect(),
        };
        let key = |name| ctx.redis_key(&names::in_redis(name, stock_id));
        let mut found = Self::default();
        for name in names {
            match name {
                Name::Fence => found.fence = true,
                Name::TableLock(name) => found.rows.push(names::in_redis(name, stock_id)),
                Name::Redis(name) | Name::RedisFor(name, _) | Name::RedisCount(name) => found.keys.push(key(name)),
                Name::RedisMine(name) => found.mine_keys.push(key(name)),
                Name::RedisNodes(name) => found.node_keys.push(key(name)),
                Name::ZooKeeper(path) => found.paths.push(names::as_path(path, stock_id)),
                Name::Etcd(prefix) => found.prefixes.push(names::as_path(prefix, stock_id)),
            }
        }
        found
    }
}

/// Executes all parts in one transaction. A Redis Cluster refuses parts in several slots; then each part is a transaction of
/// its own, in order. Sets `changed` once a part was executed, also if a later one fails. Returns the answers.
pub(super) async fn execute(node: &mut Connection, parts: &[Pipeline], changed: &mut bool) -> RedisResult<Vec<Value>> {
    let mut all = redis::pipe();
    all.atomic();
    for command in parts.iter().flat_map(Pipeline::cmd_iter) {
        all.add_command(command.clone());
    }
    match all.query_async(node).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::CrossSlot) => {
            let mut answers = Vec::new();
            for part in parts {
                answers.extend(part.query_async::<Vec<Value>>(node).await?);
                *changed = true;
            }
            Ok(answers)
        }
        done => {
            *changed |= done.is_ok();
            done
        }
    }
}

/// For each key, the transaction in its slot that deletes the key with its companions and wakes its waiters. Only reads.
pub(super) async fn unlock_commands(node: &mut Connection, keys: &[String]) -> RedisResult<Vec<Pipeline>> {
    let mut parts = Vec::new();
    for (name, holds) in keys.iter().zip(hold_keys_of(node, keys).await?) {
        let braced = names::in_braces(name);
        let mut commands = redis::pipe();
        commands
            .atomic()
            .cmd("DEL")
            .arg(name)
            .arg(&[
                format!("redisson_lock_queue:{braced}"),
                format!("redisson_lock_timeout:{braced}"),
                format!("redisson_lock_token:{braced}"),
                format!("{braced}:timeout"),
                format!("{braced}:claims"),
                format!("{braced}:opened"),
                format!("{braced}:seen"),
                format!("{braced}:came"),
                format!("{braced}:entered"),
            ])
            .arg(holds);
        commands.cmd("PUBLISH").arg(format!("redisson_lock__channel:{braced}")).arg(0);
        commands.cmd("PUBLISH").arg(format!("redisson_rwlock:{braced}")).arg(1);
        commands.cmd("PUBLISH").arg(format!("redisson_countdownlatch__channel__{{{name}}}")).arg(0);
        parts.push(commands);
    }
    Ok(parts)
}

/// For each key, the hold keys of its read-write lock; none for another kind of key.
async fn hold_keys_of(node: &mut Connection, keys: &[String]) -> RedisResult<Vec<Vec<String>>> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let mut types = redis::pipe();
    for key in keys {
        types.cmd("TYPE").arg(key);
    }
    let types: Vec<String> = types.query_async(node).await?;
    let mut found = vec![Vec::new(); keys.len()];
    for ((name, kind), found) in keys.iter().zip(&types).zip(&mut found) {
        if kind != "hash" {
            continue;
        }
        let hash: Vec<(String, String)> = redis::cmd("HGETALL").arg(name).query_async(node).await?;
        if hash.iter().any(|(field, _)| field == "mode") {
            *found = rw_lock_hold_keys(&names::in_braces(name), &hash);
        }
    }
    Ok(found)
}

/// `{n}:<owner>:rwlock_timeout:<i>` for each hold; of a write, only ours have some.
fn rw_lock_hold_keys(braced: &str, hash: &[(String, String)]) -> Vec<String> {
    let owners = hash.iter().filter(|(owner, _)| owner != "mode");
    owners
        .flat_map(|(owner, holds)| {
            let holds: u32 = holds.parse().unwrap_or(0);
            (1..=holds).map(move |i| format!("{braced}:{owner}:rwlock_timeout:{i}"))
        })
        .collect()
}

/// Deletes these nodes of ZooKeeper with all that is below them.
pub async fn delete_nodes(client: &Client, paths: Vec<String>) -> Result<(), Error> {
    try_join_all(paths.into_iter().map(|path| delete(client, path))).await.map_err(unavailable)?;
    Ok(())
}

/// Deletes a node with all that is below it. A node that is gone, or stays since it has children again, is no error.
fn delete(client: &Client, path: String) -> BoxFuture<'_, Result<(), Zk>> {
    Box::pin(async move {
        let children = match client.list_children(&path).await {
            Err(Zk::NoNode) => return Ok(()),
            children => children?,
        };
        for child in children {
            delete(client, format!("{path}/{child}")).await?;
        }
        match client.delete(&path, None).await {
            Err(Zk::NoNode | Zk::NotEmpty) => Ok(()),
            result => result,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hold_of_a_read_write_lock_has_a_key_to_clear() {
        let hash = [("mode", "read"), ("u:1", "2"), ("u:2:write", "1")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let keys = rw_lock_hold_keys("{rwLock}", &hash);
        let expected = ["u:1:rwlock_timeout:1", "u:1:rwlock_timeout:2", "u:2:write:rwlock_timeout:1"];
        assert_eq!(keys, expected.map(|key| format!("{{rwLock}}:{key}")));
    }
}
