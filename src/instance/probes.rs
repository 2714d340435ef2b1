//! Probes of the servers: each with a short timeout, and cached for a moment, so that frequent callers do not cause frequent
//! probes.

use crate::{
    ctx::Ctx,
    error::{ETCD_IS_FULL, Error, NOT_IN_ITS_CLUSTER},
    section::etcd,
    server::Server,
    stock::{
        self, LastUnfitTables,
        assumptions::{UnfitTable, other_settings, unfit_tables},
    },
};
use futures::future::{OptionFuture, join_all};
use oversell_lab::clients::four_letters::four_letter_command;
use redis::aio::MultiplexedConnection;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::{Executor, Row, mysql::MySqlRow};
use std::{
    collections::HashMap,
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};
use tokio::{sync::Mutex, time::timeout};
use utoipa::ToSchema;

/// Time limit of the probe of one server.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// Time limit of the query to one member, so that a silent one does not use up [`PROBE_TIMEOUT`].
const MEMBER_TIMEOUT: Duration = Duration::from_millis(300);

/// How long states are cached while all servers are up.
const MAX_CACHE_AGE: Duration = Duration::from_millis(500);
/// How long states are cached while a server is down.
pub(super) const MAX_CACHE_AGE_WHILE_DOWN: Duration = Duration::from_millis(50);

/// Time limit of a test write to Redis: no answer within it means that Redis holds writes back for a while.
const WRITE_TIMEOUT: Duration = Duration::from_millis(300);

/// The error codes with which Redis refuses every write: it cannot write its file, lacks replicas, is full, or is a replica.
const REFUSED_WRITES: [&str; 4] = ["MISCONF", "NOREPLICAS", "OOM", "READONLY"];

/// How long the loss of a session is shown: long enough to read it.
const SESSION_LOSS_DISPLAY_TIME: Duration = Duration::from_secs(10);

/// Whether a server is there.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct State {
    pub(crate) up: bool,
    /// Its version, or what is wrong.
    #[schema(example = "10.11.14-MariaDB")]
    pub(crate) detail: String,
    /// ZooKeeper only: how long ago a new session took the place of one that was lost with all its locks; for 10 s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session_lost_ms: Option<u64>,
    /// The known servers of its kind and their roles, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) members: Vec<NamedServer>,
    /// MySQL only: tables whose engine has no transactions. The strategies that rest on one are refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) unfit_tables: Vec<UnfitTable>,
}

/// One of several servers of a kind, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub(crate) struct NamedServer {
    #[schema(example = "replica-2")]
    pub(crate) name: String,
    pub(crate) role: Role,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// Redis: it takes the writes.
    Primary,
    /// Redis: it has what the primary has, a moment later.
    Replica,
    /// MariaDB: an instance writes to this node of the cluster.
    Writer,
    /// MariaDB: a node that no instance writes to.
    Standby,
    /// ZooKeeper: it orders the writes.
    Leader,
    /// ZooKeeper: it follows the leader.
    Follower,
}

/// Whether each server is there.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct States {
    pub(crate) mysql: State,
    pub(crate) redis: State,
    pub(crate) zookeeper: State,
    /// Absent if the instance has no etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) etcd: Option<State>,
}

impl State {
    pub(super) fn down(detail: String) -> Self {
        Self { up: false, detail, session_lost_ms: None, members: Vec::new(), unfit_tables: Vec::new() }
    }
}

/// The last probe of all servers. Callers share it; during a probe they wait for its end.
#[derive(Default)]
pub(super) struct Probes(Mutex<LastProbe>);

/// What is kept from one probe to the next: the states, a connection to Redis, the ZooKeeper session that was last seen.
#[derive(Default)]
struct LastProbe {
    states: Option<(Instant, Arc<States>)>,
    session: Session,
    /// The connection to Redis that is asked for writes.
    redis_writer: Option<MultiplexedConnection>,
}

/// The ZooKeeper session of this instance, as last seen.
#[derive(Debug, Default)]
struct Session {
    id: Option<i64>,
    lost: Option<Instant>,
}

impl Probes {
    /// The states of all servers, from the last probe if it is new enough.
    pub(super) async fn probe(&self, ctx: &Ctx) -> Arc<States> {
        let mut last = self.0.lock().await;
        if let Some((_, states)) = last.states.as_ref().filter(|(when, states)| when.elapsed() < states.max_age()) {
            return Arc::clone(states);
        }
        let (mut mysql, redis, mut zookeeper, etcd) = tokio::join!(
            probe_state(probe_mysql(ctx)),
            probe_state(probe_redis(ctx, &mut last.redis_writer)),
            probe_state(probe_zookeeper(ctx)),
            OptionFuture::from((!ctx.config.etcd.endpoints.is_empty()).then(|| probe_state(probe_etcd(ctx))))
        );
        zookeeper.session_lost_ms = last.session.session_lost_for_ms(ctx.zk.session().ok().map(|client| client.session_id().0));
        if mysql.up {
            mysql.unfit_tables = ctx.local.of::<LastUnfitTables>().0.read().clone();
        }
        let states = Arc::new(States { mysql, redis, zookeeper, etcd });
        last.states = Some((Instant::now(), Arc::clone(&states)));
        states
    }
}

impl Session {
    /// Notes the live session `id`; returns for [`SESSION_LOSS_DISPLAY_TIME`] how long ago it took the place of another one.
    /// `id` is `None` without a live session: the last one may still come back.
    fn session_lost_for_ms(&mut self, id: Option<i64>) -> Option<u64> {
        if id.is_some() && self.id != id {
            self.lost = self.id.and(Some(Instant::now()));
            self.id = id;
        }
        let ago = self.lost.map(|lost| lost.elapsed()).filter(|ago| *ago < SESSION_LOSS_DISPLAY_TIME)?;
        u64::try_from(ago.as_millis()).ok()
    }
}

impl States {
    /// The servers that the instance has.
    pub(crate) fn each(&self) -> impl Iterator<Item = (Server, &State)> {
        let etcd = self.etcd.as_ref().map(|_| Server::Etcd);
        let all = [Server::MySql, Server::Redis, Server::ZooKeeper].into_iter().chain(etcd);
        all.map(|server| (server, self.of(server)))
    }

    pub(crate) fn of(&self, server: Server) -> &State {
        static ABSENT: LazyLock<State> = LazyLock::new(|| State::down(Error::NoEtcd.to_string()));
        match server {
            Server::MySql => &self.mysql,
            Server::Redis => &self.redis,
            Server::ZooKeeper => &self.zookeeper,
            Server::Etcd => self.etcd.as_ref().unwrap_or(&ABSENT),
        }
    }

    pub(super) fn all_up(&self) -> bool {
        self.each().all(|(_, state)| state.up)
    }

    fn max_age(&self) -> Duration {
        if self.all_up() { MAX_CACHE_AGE } else { MAX_CACHE_AGE_WHILE_DOWN }
    }

    /// The strategies that cannot work now, because a server that they need is down, or a table has no transactions.
    pub(crate) fn blocked_strategies(&self) -> Vec<&'static str> {
        let waits = |s: &&stock::Strategy| {
            self.each().any(|(server, state)| !state.up && s.spec.needs.contains(&server))
                || self.mysql.unfit_tables.iter().any(|table| s.rests_on(table))
        };
        stock::ALL.iter().filter(waits).map(|s| s.slug).collect()
    }
}

/// Runs the probe of a server; one that fails or takes longer than [`PROBE_TIMEOUT`] makes the state down.
async fn probe_state(probe: impl Future<Output = Result<(String, Vec<NamedServer>), Error>>) -> State {
    match timeout(PROBE_TIMEOUT, probe).await {
        Ok(Ok((detail, members))) => State { up: true, detail, session_lost_ms: None, members, unfit_tables: Vec::new() },
        Ok(Err(error)) => State::down(public_detail(&error)),
        Err(_) => State::down(format!("no answer within {} ms", PROBE_TIMEOUT.as_millis())),
    }
}

/// The reason as users see it. The text of the client may contain addresses and users, so it goes to the log only.
fn public_detail(error: &Error) -> String {
    tracing::debug!(%error, "the probe of a server failed");
    match error {
        Error::Refuses { why, .. } => why.to_string(),
        Error::Timeout { .. } => "all connections to it are in use".to_owned(),
        _ => "it cannot be reached".to_owned(),
    }
}

/// The state of a Galera node. Without a majority the node answers this, but refuses to work.
const NODE_STATUS: &str = "SHOW GLOBAL STATUS WHERE Variable_name IN \
                    ('wsrep_provider_name', 'wsrep_cluster_status', 'wsrep_ready', \
                     'wsrep_incoming_addresses', 'wsrep_local_index')";

/// The server at `host:port`; `None` if `cluster.members` does not name this very address.
fn named_server(members: &[String], at: &str, role: Role) -> Option<NamedServer> {
    let mut members = members.iter().filter_map(|member| member.split_once('='));
    let (name, _) = members.find(|(_, of)| *of == at)?;
    Some(NamedServer { name: name.to_owned(), role })
}

/// The version of MySQL with its unfit tables, and the named nodes of its cluster. A server that does not take writes, or whose
/// sessions have other settings than the strategies need, is an error.
async fn probe_mysql(ctx: &Ctx) -> Result<(String, Vec<NamedServer>), Error> {
    let mut conn = ctx.admin_pool.conn(PROBE_TIMEOUT).await?;
    let version: String = sqlx::query_scalar("SELECT VERSION()").fetch_one(&mut *conn).await?;
    let node = conn.fetch_all(NODE_STATUS).await?;
    let said = |row: &MySqlRow| -> sqlx::Result<_> { Ok((row.try_get(0)?, row.try_get(1)?)) };
    let node = node.iter().map(said).collect::<Result<_, _>>()?;
    match takes_writes(&node) {
        true => {
            conn.ask_for_writes().await?;
            let settings = other_settings(&mut conn).await?;
            let unfit = unfit_tables(&mut conn).await?;
            conn.done();
            if let Some(others) = settings {
                return Err(Error::refused(Server::MySql, others, "found by the probe"));
            }
            let version = unfit.iter().fold(version, |said, table| format!("{said}; {table}"));
            *ctx.local.of::<LastUnfitTables>().0.write() = unfit;
            let member = |(at, role)| named_server(&ctx.config.cluster.members, at, role);
            Ok((version, galera_nodes(&node).filter_map(member).collect()))
        }
        false => {
            conn.done();
            Err(Error::refused(Server::MySql, NOT_IN_ITS_CLUSTER, "no majority, or joining"))
        }
    }
}

/// Whether a server accepts writes: it has no Galera provider, or its node is in the primary component.
fn takes_writes(node: &HashMap<String, String>) -> bool {
    let is = |name, value| node.get(name).is_some_and(|said| said == value);
    node.get("wsrep_provider_name").is_none_or(String::is_empty)
        || (is("wsrep_cluster_status", "Primary") && is("wsrep_ready", "ON"))
}

/// The nodes of a cluster, as seen by the node that is written. A node that joined together with another may miss it until
/// the cluster changes again (seen with Galera 26.4.23).
fn galera_nodes(node: &HashMap<String, String>) -> impl Iterator<Item = (&str, Role)> {
    let of = |name| node.get(name).map_or("", String::as_str);
    let (all, own) = (of("wsrep_incoming_addresses"), of("wsrep_local_index"));
    let all = all.split(',').enumerate();
    all.map(move |(n, at)| match own == n.to_string() {
        true => (at, Role::Writer),
        false => (at, Role::Standby),
    })
}

/// The version of Redis, and its named nodes. A server that refuses writes is an error; one that holds them back is none.
async fn probe_redis(ctx: &Ctx, writer: &mut Option<MultiplexedConnection>) -> Result<(String, Vec<NamedServer>), Error> {
    let info = redis::cmd("INFO").query_async(&mut ctx.redis.connection()).await;
    let info: String = info?;
    // A replica refuses this write, which changes nothing, and its connection goes: with Sentinels, the next one leads to the
    // primary.
    if info_value(&info, "role:") == Some("slave") {
        let nothing = ctx.redis_key("oversell:nothing");
        redis::cmd("UNLINK").arg(nothing).exec_async(&mut ctx.redis.connection()).await?;
    }
    ask_redis_for_writes(ctx, writer).await?;
    let version = info_value(&info, "redis_version:").unwrap_or("of unknown version");
    let known = &ctx.config.cluster.members;
    let announced = match known.is_empty() {
        true => HashMap::new(),
        false => announced_addresses(ctx).await,
    };
    let primary = announced_primary(&info, &announced).map(|at| (at, Role::Primary));
    let members = primary.into_iter().chain(replicas_in_info(&info));
    let members = members.filter_map(|(at, role)| named_server(known, &at, role));
    Ok((version.to_owned(), members.collect()))
}

/// Fails if Redis refuses writes ([`REFUSED_WRITES`]) or cannot be connected to; asks by a write that changes nothing. No answer in
/// time is `Ok`: Redis only holds writes back (CLIENT PAUSE). The connection in `writer` is for this alone, because answers behind a
/// held write would wait too; it is kept only after a success.
async fn ask_redis_for_writes(ctx: &Ctx, writer: &mut Option<MultiplexedConnection>) -> Result<(), Error> {
    let mut connection = match writer.take() {
        Some(connection) => connection,
        None => ctx.redis.own_connection().await?,
    };
    let mut nothing = redis::cmd("SETRANGE");
    nothing.arg(ctx.redis_key("oversell:nothing")).arg(0).arg("");
    match timeout(WRITE_TIMEOUT, nothing.exec_async(&mut connection)).await {
        Ok(Ok(())) => *writer = Some(connection),
        Ok(Err(error)) if REFUSED_WRITES.iter().any(|code| error.code() == Some(code)) => {
            return Err(error.into());
        }
        // Other errors are not about writes.
        Ok(Err(error)) => tracing::debug!(%error, "the probe write to redis failed"),
        Err(_) => tracing::debug!("redis did not answer the probe write in time"),
    }
    Ok(())
}

/// The value behind `name`, which ends with a colon, in an answer to `INFO`; `None` if it is not there.
fn info_value<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = info.lines();
    lines.find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// The settings of the address that a Redis announces; empty if they cannot be read.
async fn announced_addresses(ctx: &Ctx) -> HashMap<String, String> {
    let mut ask = redis::cmd("CONFIG");
    ask.arg("GET").arg("replica-announce-*");
    let said = ask.query_async(&mut ctx.redis.connection()).await;
    said.unwrap_or_else(|error| {
        tracing::debug!(%error, "CONFIG GET replica-announce-* failed; this node is shown without a name");
        HashMap::new()
    })
}

/// The address of a primary: the announced host, and the announced port or else that in `INFO`; `None` if it announces no host.
fn announced_primary(info: &str, announced: &HashMap<String, String>) -> Option<String> {
    let is_set = |name, unset| announced.get(name).filter(|value| *value != unset);
    let host = is_set("replica-announce-ip", "")?;
    let port = is_set("replica-announce-port", "0").map(String::as_str);
    let port = port.or_else(|| info_value(info, "tcp_port:"))?;
    Some(format!("{host}:{port}"))
}

/// The replicas of a primary by its `INFO`: `slave0:ip=127.0.0.1,port=6380,state=online,…`.
fn replicas_in_info(info: &str) -> impl Iterator<Item = (String, Role)> {
    let all = info.lines().filter(|line| line.starts_with("slave"));
    all.filter_map(|line| {
        let (_, fields) = line.split_once(':')?;
        let field = |name| fields.split(',').find_map(|field| field.strip_prefix(name));
        Some((format!("{}:{}", field("ip=")?, field("port=")?), Role::Replica))
    })
}

/// The timeout of this instance's session as text, and the named servers of the ensemble that answer in time. Without a live
/// session it is an error.
async fn probe_zookeeper(ctx: &Ctx) -> Result<(String, Vec<NamedServer>), Error> {
    let client = ctx.zk.session()?;
    let known = &ctx.config.cluster.members;
    let ensemble = ctx.config.zookeeper.connect.split(',');
    let ensemble = ensemble.filter(|_| !known.is_empty());
    let members = join_all(ensemble.map(async |at| {
        let said = timeout(MEMBER_TIMEOUT, four_letter_command(at, "srvr")).await;
        let role = match mode(&said.ok()?.ok()?)? {
            "leader" => Role::Leader,
            "follower" => Role::Follower,
            _ => return None,
        };
        named_server(known, at, role)
    }));
    let (there, members) = tokio::join!(client.check_stat("/"), members);
    there.map_err(|e| Error::unavailable(Server::ZooKeeper, e))?;
    let detail = format!("session of {} ms", client.session_timeout().as_millis());
    Ok((detail, members.into_iter().flatten().collect()))
}

/// The version of etcd, and its named nodes that answer in time. One that is full is an error: it gives no lock.
async fn probe_etcd(ctx: &Ctx) -> Result<(String, Vec<NamedServer>), Error> {
    let status = json!({});
    let known = &ctx.config.cluster.members;
    let members = join_all(ctx.config.etcd.endpoints.iter().filter(|_| !known.is_empty()).map(async |endpoint| {
        let node = etcd::ask_node(endpoint, "maintenance/status", &status, MEMBER_TIMEOUT).await.ok()?;
        let role = if node["leader"] == node["header"]["member_id"] { Role::Leader } else { Role::Follower };
        named_server(known, endpoint.trim_start_matches("http://"), role)
    }));
    let (node, members) = tokio::join!(etcd::ask(ctx, "maintenance/status", json!({})), members);
    let node = node?;
    if node["leader"].as_str().is_none_or(|leader| leader == "0") {
        return Err(Error::unavailable(Server::Etcd, "it has no leader"));
    }
    if node["errors"].to_string().contains("NOSPACE") {
        return Err(Error::refused(Server::Etcd, ETCD_IS_FULL, "found by the probe"));
    }
    Ok((node["version"].as_str().unwrap_or("of unknown version").to_owned(), members.into_iter().flatten().collect()))
}

/// The mode of a ZooKeeper server by its answer to `srvr`: `leader` for `Mode: leader`; `None` while it has none.
fn mode(said: &str) -> Option<&str> {
    said.lines().find_map(|line| line.strip_prefix("Mode: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_outside_its_cluster_takes_no_writes() {
        let said = |values: [&str; 3]| {
            let names = ["wsrep_provider_name", "wsrep_cluster_status", "wsrep_ready"];
            let pairs = names.map(str::to_owned).into_iter();
            takes_writes(&pairs.zip(values.map(str::to_owned)).collect())
        };
        assert!(said(["Galera", "Primary", "ON"]));
        assert!(!said(["Galera", "non-Primary", "OFF"]));
        assert!(!said(["Galera", "Primary", "OFF"]), "it is joining");
        assert!(said(["", "Disconnected", "OFF"]), "MariaDB alone");
        assert!(takes_writes(&HashMap::new()), "MySQL");
    }

    #[test]
    fn roles_of_servers_are_read_from_their_own_answers() {
        let status = [("wsrep_incoming_addresses", "127.0.0.1:11,127.0.0.1:12"), ("wsrep_local_index", "1")];
        let status = status.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let status = status.into_iter().collect();
        let all: Vec<_> = galera_nodes(&status).collect();
        assert_eq!(all, [("127.0.0.1:11", Role::Standby), ("127.0.0.1:12", Role::Writer)]);
        let info = "tcp_port:11\r\nrole:master\r\nconnected_slaves:1\r\nslave0:ip=redis-2,port=12,state=online,lag=0\r\n\
                    slave_expires_tracked_keys:0\r\n";
        let all: Vec<_> = replicas_in_info(info).collect();
        assert_eq!(all, [("redis-2:12".to_owned(), Role::Replica)]);
        let announced = |host: &str, port: &str| {
            let said = [("replica-announce-ip", host), ("replica-announce-port", port)];
            let said = said.map(|(name, value)| (name.to_owned(), value.to_owned()));
            announced_primary(info, &said.into())
        };
        assert_eq!(announced("redis-1", "0").as_deref(), Some("redis-1:11"));
        assert_eq!(announced("redis-1", "13").as_deref(), Some("redis-1:13"));
        assert_eq!(announced("", "13"), None, "its host is not known");
        assert_eq!(announced_primary(info, &HashMap::new()), None, "it may not be asked");
        assert_eq!(mode("Zxid: 0x1\nMode: follower\n"), Some("follower"));
    }

    #[test]
    fn a_server_is_named_by_host_and_port_not_port_alone() {
        let members = ["redis-1=ha-1:6379", "redis-2=ha-2:6379"].map(str::to_owned);
        let name = |at| named_server(&members, at, Role::Replica).map(|member| member.name);
        assert_eq!(name("ha-2:6379").as_deref(), Some("redis-2"));
        for nobodys in ["ha-3:6379", "ha-2:6380", "a-2:6379", "6379", "ha-2", ""] {
            assert_eq!(name(nobodys), None, "{nobodys}");
        }
    }
}
