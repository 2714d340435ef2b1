//! Are the servers there? Each is asked with a short limit, and asked again only after a moment, so that whoever asks
//! us often does not ask them often.

use super::Instance;
use crate::{ctx::Ctx, server::Server, stock};
use oversell_lock::LockError;
use serde::Serialize;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::Mutex;
use utoipa::ToSchema;

/// How long a server may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long an answer is good for: one that says that all are there, and one that does not.
const FRESH: Duration = Duration::from_millis(500);
const FRESH_WHILE_DOWN: Duration = Duration::from_millis(50);

/// Whether a server is there.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct State {
    pub(crate) up: bool,
    /// Its version, or what is wrong.
    #[schema(example = "10.11.14-MariaDB")]
    pub(crate) detail: String,
}

/// Whether each server is there.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct States {
    pub(crate) mysql: State,
    pub(crate) redis: State,
    pub(crate) zookeeper: State,
}

/// The last answers.
#[derive(Debug, Default)]
pub(super) struct Probes(Mutex<Option<(Instant, Arc<States>)>>);

impl Instance {
    /// Asks every server, or repeats what they said a moment ago. A MySQL whose tables are not made yet is not up.
    pub(crate) async fn states(&self) -> Arc<States> {
        let states = self.probes.reach(&self.ctx).await;
        if !states.mysql.up || self.startup.migrated() {
            return states;
        }
        let detail = format!("{}, without its tables yet", states.mysql.detail);
        Arc::new(States { mysql: State { up: false, detail }, ..States::clone(&states) })
    }
}

impl Probes {
    /// Asks every server, or repeats what they said a moment ago, whatever is in them.
    pub(super) async fn reach(&self, ctx: &Ctx) -> Arc<States> {
        let mut last = self.0.lock().await;
        if let Some((_, states)) = last.as_ref().filter(|(when, states)| when.elapsed() < states.good_for()) {
            return Arc::clone(states);
        }
        let (mysql, redis, zookeeper) = tokio::join!(within(mysql(ctx)), within(redis(ctx)), within(zookeeper(ctx)));
        let states = Arc::new(States { mysql, redis, zookeeper });
        *last = Some((Instant::now(), Arc::clone(&states)));
        states
    }
}

impl States {
    pub(super) fn of(&self, server: Server) -> &State {
        match server {
            Server::MySql => &self.mysql,
            Server::Redis => &self.redis,
            Server::ZooKeeper => &self.zookeeper,
        }
    }

    fn good_for(&self) -> Duration {
        if self.mysql.up && self.redis.up && self.zookeeper.up { FRESH } else { FRESH_WHILE_DOWN }
    }

    /// The strategies that cannot work now.
    pub(crate) fn waiting(&self) -> Vec<&'static str> {
        let waits = |s: &&stock::Strategy| s.needs.iter().any(|server| !self.of(*server).up);
        stock::ALL.iter().filter(waits).map(|s| s.slug).collect()
    }
}

async fn within(probe: impl Future<Output = Result<String, String>>) -> State {
    match tokio::time::timeout(PATIENCE, probe).await {
        Ok(Ok(detail)) => State { up: true, detail },
        Ok(Err(detail)) => State { up: false, detail },
        Err(_) => State { up: false, detail: format!("no answer within {} ms", PATIENCE.as_millis()) },
    }
}

async fn mysql(ctx: &Ctx) -> Result<String, String> {
    let mut conn = ctx.desk.conn(PATIENCE).await.map_err(reason)?;
    let version = sqlx::query_scalar("SELECT VERSION()").fetch_one(&mut *conn).await;
    let version: String = version.map_err(|e| e.to_string())?;
    conn.done();
    Ok(version)
}

async fn redis(ctx: &Ctx) -> Result<String, String> {
    let info = redis::cmd("INFO").arg("server").query_async(&mut ctx.redis.connection()).await;
    let info: String = info.map_err(|e| e.to_string())?;
    let version = info.lines().find_map(|line| line.strip_prefix("redis_version:"));
    Ok(version.unwrap_or("of unknown version").trim().to_owned())
}

async fn zookeeper(ctx: &Ctx) -> Result<String, String> {
    let client = ctx.zk.session().map_err(reason)?;
    client.check_stat("/").await.map_err(|e| e.to_string())?;
    Ok(format!("session of {} ms", client.session_timeout().as_millis()))
}

/// The server's name stands beside it already.
fn reason(error: LockError) -> String {
    match error {
        LockError::Unavailable { reason, .. } => reason.to_string(),
        error => error.to_string(),
    }
}
