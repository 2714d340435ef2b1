//! The health of all instances of the cluster, asked over HTTP, so that the trouble of one instance is not reported as that
//! of a server.
//!
//! 1. Each instance of `cluster.instances` is asked whether it lives, and one that does, what it reaches.
//! 2. A server that one of them reaches is up ([`merge_states`]); that another does not reach it is that one's trouble, and
//!    so is a ZooKeeper session that it has lost ([`troubles`]).
//!
//! **What it cannot tell**: from a server that is cut off from all instances, one that is down.

use crate::{
    claims::Words,
    config::Config,
    instance::{Role, State, States},
    replay::{self, Pace},
    server::Server,
};
use futures::future::join_all;
use http::StatusCode;
use oversell_lab::clients::http_client::{Answer, Ask, HttpError, client};
use serde::{Deserialize, Serialize};
use std::{
    iter::once,
    time::{Duration, Instant},
};
use tokio::sync::Mutex;
use utoipa::ToSchema;

/// Time limit of the liveness check: a live one answers within a few milliseconds.
const LIVE_TIMEOUT: Duration = Duration::from_millis(500);

/// Time limit of the readiness check: longer than an instance waits for a server that does not answer.
const READY_TIMEOUT: Duration = Duration::from_millis(1500);

/// Time limit of the list of replays. A slow instance is waited for, because a fault during a replay would spoil the
/// replay.
const REPLAYS_TIMEOUT: Duration = Duration::from_secs(3);

/// An instance of the cluster.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Neighbour {
    /// Its name; its address where it does not answer.
    #[schema(example = "8100")]
    name: String,
    #[schema(example = "http://127.0.0.1:8100")]
    url: String,
    /// Whether it answers.
    up: bool,
    /// Why it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    /// The servers as this instance sees them; null if unknown.
    servers: Option<States>,
}

/// A trouble, and the instance that has it.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct InstanceTrouble {
    /// The instance that has it; null if all have it.
    #[schema(example = "8100")]
    instance: Option<String>,
    /// The server that it is about; null if it is about the instance.
    server: Option<Server>,
    says: Words,
}

/// The servers as an instance sees them, from its `/health/ready`.
#[derive(Deserialize)]
struct ReadyBody {
    servers: States,
}

/// The replays in progress in an instance, from its `/replays`.
#[derive(Deserialize)]
struct ReplaysBody {
    playing: Vec<RemoteReplay>,
}

/// A replay in progress in another instance.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct RemoteReplay {
    pub(super) lesson: String,
    pub(super) pace: Pace,
}

impl RemoteReplay {
    /// Its lesson, if it blocks an action: every replay blocks an exclusive action, and an exclusive replay blocks every action.
    /// `None` also for a lesson that has no replay here.
    pub(super) fn blocking_lesson(&self, is_exclusive: bool, config: &Config) -> Option<&'static str> {
        let (lesson, race) = replay::find(&self.lesson)?;
        (is_exclusive || race.is_exclusive(self.pace, config)).then_some(lesson)
    }
}

/// Asks all instances at these addresses, in their order; one that does not answer is there as down.
pub(super) async fn ask_instances(urls: &[String]) -> Vec<Neighbour> {
    join_all(urls.iter().map(|url| ask_instance(url))).await
}

/// Asks one instance for its name and its servers.
async fn ask_instance(url: &str) -> Neighbour {
    let base = url.trim_end_matches('/');
    let silent = |detail| Neighbour { name: url.into(), url: url.into(), up: false, detail: Some(detail), servers: None };
    let asked = |path, limit| client().get(format!("{base}{path}")).timeout(limit).answer();
    let name = match asked("/health/live", LIVE_TIMEOUT).await.and_then(instance_name) {
        Ok(name) => name,
        Err(error) => return silent(error.to_string()),
    };
    // A 503 has a body too.
    let servers = asked("/health/ready", READY_TIMEOUT).await;
    let servers = servers.and_then(|answer| answer.json::<ReadyBody>());
    Neighbour { name, url: url.into(), up: true, detail: None, servers: servers.ok().map(|all| all.servers) }
}

/// The latest answer of all instances. A caller during a request waits for it, and shares the answer if it is new enough.
#[derive(Debug, Default)]
pub(super) struct LatestAnswer<T>(Mutex<Option<(Instant, T)>>);

impl<T: Clone> LatestAnswer<T> {
    /// An answer that was asked for at `since` or later. `ask` runs only if there is none; if its caller is dropped, the next one
    /// asks.
    pub(super) async fn asked_since(&self, since: Instant, ask: impl Future<Output = T>) -> T {
        let mut latest = self.0.lock().await;
        if let Some((asked, answer)) = &*latest
            && *asked >= since
        {
            return answer.clone();
        }
        let asked = Instant::now();
        let answer = ask.await;
        *latest = Some((asked, answer.clone()));
        answer
    }
}

/// The replays in progress in the other instances: all of the cluster whose address does not end with this one's port.
pub(super) async fn fetch_replays_of_others(config: &Config) -> Vec<RemoteReplay> {
    let own = format!(":{}", config.server.port);
    let others = config.cluster.instances.iter();
    let others: Vec<_> = others.filter(|url| !url.trim_end_matches('/').ends_with(&own)).cloned().collect();
    fetch_replays(&others, config).await
}

/// The replays in progress in these instances. An instance that does not answer in time counts as playing nothing: a lab must
/// stay repairable.
pub(super) async fn fetch_replays(urls: &[String], config: &Config) -> Vec<RemoteReplay> {
    let token = config.admin_token();
    let played = join_all(urls.iter().map(async |url| {
        // No race has this lesson: the list of all of them is long.
        let at = format!("{}/replays?all=true&lesson=none", url.trim_end_matches('/'));
        let replays = client().get(at).token(token.as_ref());
        let answer = replays.timeout(REPLAYS_TIMEOUT).answer().await.ok()?;
        Some(answer.json::<ReplaysBody>().ok()?.playing)
    }));
    played.await.into_iter().flatten().flatten().collect()
}

/// The name of the instance that answered; an error if the answer is no instance's, or not 200.
fn instance_name(answer: Answer) -> Result<String, HttpError> {
    let name = answer.instance().map(str::to_owned).filter(|_| answer.status == StatusCode::OK);
    name.ok_or_else(|| HttpError::Failed("it is no instance".into()))
}

/// The state of each server by the first instance that reaches it, else as `own` has it. Every node that an instance writes to
/// is a writer.
pub(super) fn merge_states(own: &States, all: &[Neighbour]) -> States {
    let best = |of: fn(&States) -> &State| {
        let seen = once(own).chain(all.iter().filter_map(|neighbour| neighbour.servers.as_ref())).map(of);
        seen.clone().find(|state| state.up).unwrap_or(of(own)).clone()
    };
    let mut mysql = best(|s| &s.mysql);
    // Each instance knows only its own writer node.
    let seen = all.iter().filter_map(|neighbour| neighbour.servers.as_ref());
    let written: Vec<_> = (seen.flat_map(|seen| &seen.mysql.members))
        .filter(|member| member.role == Role::Writer)
        .map(|member| member.name.as_str())
        .collect();
    for member in &mut mysql.members {
        if written.contains(&member.name.as_str()) {
            member.role = Role::Writer;
        }
    }
    let etcd = own.etcd.is_some().then(|| best(|s| s.of(Server::Etcd)));
    States { mysql, redis: best(|s| &s.redis), zookeeper: best(|s| &s.zookeeper), etcd }
}

/// The troubles in words: each server that no instance reaches, each table without transactions, each instance that does not answer, that does not reach a
/// server which is up, or that has lost its ZooKeeper session.
pub(super) fn troubles(servers: &States, all: &[Neighbour]) -> Vec<InstanceTrouble> {
    let mut notes = Vec::new();
    let mut note = |instance: Option<&str>, server, zh, en| {
        notes.push(InstanceTrouble { instance: instance.map(str::to_owned), server, says: Words::new(zh, en) });
    };
    for (server, state) in servers.each().filter(|(_, state)| !state.up) {
        let name = server.name();
        note(None, Some(server), format!("{name} 停了"), format!("{name} is down: {}", state.detail));
    }
    for table in &servers.mysql.unfit_tables {
        let zh = format!("{} 的引擎 {} 没有事务，依赖事务的策略不能用", table.table, table.engine);
        note(None, Some(Server::MySql), zh, table.to_string());
    }
    for Neighbour { name, detail, servers: own, .. } in all {
        if let Some(why) = detail {
            note(Some(name), None, format!("{name} 没有应答"), format!("{name} does not answer: {why}"));
        }
        for (server, seen) in own.iter().flat_map(|own| own.each()) {
            let (zh, en) = if seen.session_lost_ms.is_some() {
                (format!("{name} 丢了它的 ZooKeeper 会话"), format!("{name} has lost its ZooKeeper session"))
            } else if !seen.up && servers.of(server).up {
                let (it, why) = (server.name(), &seen.detail);
                (format!("{name} 连不上 {it}，别的实例连得上"), format!("{name} does not reach {it}, and others do: {why}"))
            } else {
                continue;
            };
            note(Some(name), Some(server), zh, en);
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instance::NamedServer;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn an_exclusive_replay_blocks_all_and_is_blocked_by_all() {
        let config = Config::load_with(None, &[]).expect("a configuration");
        for (lesson, pace, is_exclusive, is) in [
            ("2.3", Pace::Slow, false, false),
            ("2.3", Pace::Slow, true, true),
            ("2.10.4", Pace::Slow, false, true),
            ("2.8", Pace::Scheduler, false, true),
            ("none", Pace::Slow, true, false),
        ] {
            let lesson = lesson.to_owned();
            let found = RemoteReplay { lesson, pace }.blocking_lesson(is_exclusive, &config);
            assert_eq!(found.is_some(), is, "{found:?} {pace:?} {is_exclusive}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_ask_meanwhile_share_an_answer() {
        let (latest, count) = (LatestAnswer::default(), AtomicUsize::new(0));
        let ask = || async {
            tokio::time::sleep(REPLAYS_TIMEOUT).await;
            count.fetch_add(1, Ordering::Relaxed) + 1
        };
        let begun = Instant::now();
        let shared = join_all((0..40).map(|_| latest.asked_since(begun, ask()))).await;
        assert_eq!(shared, [1; 40]);
        assert_eq!(latest.asked_since(Instant::now(), ask()).await, 2, "a newer one");
    }

    fn state(up: bool) -> State {
        State { up, detail: "why".into(), session_lost_ms: None, members: Vec::new(), unfit_tables: Vec::new() }
    }

    fn seen(zookeeper: State) -> States {
        States { mysql: state(true), redis: state(true), zookeeper, etcd: None }
    }

    fn neighbour(name: &str, servers: Option<States>) -> Neighbour {
        let detail = servers.is_none().then(|| "why".to_owned());
        Neighbour { name: name.into(), url: name.into(), up: detail.is_none(), detail, servers }
    }

    fn summary(own: &States, all: &[Neighbour]) -> (bool, Vec<String>) {
        let servers = merge_states(own, all);
        (servers.zookeeper.up, troubles(&servers, all).into_iter().map(|note| note.says.en).collect())
    }

    #[test]
    fn a_server_is_down_only_if_no_instance_reaches_it() {
        let (with, without) = (seen(state(true)), seen(state(false)));
        let all = [neighbour("8000", Some(without.clone())), neighbour("8100", Some(with.clone()))];
        let of_8000 = "8000 does not reach zookeeper, and others do: why".to_owned();
        assert_eq!(summary(&without, &all), (true, vec![of_8000.clone()]), "asked at 8000");
        assert_eq!(summary(&with, &all), (true, vec![of_8000]), "asked at 8100");
        let all = [neighbour("8000", Some(without.clone())), neighbour("8100", None)];
        assert_eq!(summary(&without, &all), (false, vec!["zookeeper is down: why".into(), "8100 does not answer: why".into()]));
    }

    #[test]
    fn each_node_that_an_instance_writes_to_is_a_writer() {
        let writes_to = |own: &str| {
            let mut seen = seen(state(true));
            seen.mysql.members = ["mysql", "mysql-2", "mysql-3"]
                .map(|name| NamedServer { name: name.into(), role: if name == own { Role::Writer } else { Role::Standby } })
                .to_vec();
            neighbour(own, Some(seen))
        };
        let all = ["mysql-2", "mysql-3"].map(writes_to);
        let own = all[0].servers.clone().unwrap();
        let roles = merge_states(&own, &all).mysql.members;
        let roles: Vec<_> = roles.into_iter().map(|member| member.role).collect();
        assert_eq!(roles, [Role::Standby, Role::Writer, Role::Writer]);
    }

    #[test]
    fn a_lost_session_is_noted_for_its_instance() {
        for up in [true, false] {
            let lost = seen(State { session_lost_ms: Some(700), ..state(up) });
            let all = [neighbour("8000", Some(seen(state(true)))), neighbour("8100", Some(lost.clone()))];
            assert_eq!(summary(&lost, &all), (true, vec!["8100 has lost its ZooKeeper session".into()]));
        }
    }
}
