//! The cluster that experiments use. They send requests and loads, break a member of the lab, and connect to the servers, as
//! anybody outside can.

use super::{MeasuredRate, NoVerdict, Ratio, java_libraries::JavaLibraries};
use http::{Method, header::ACCEPT};
use oversell::{
    claims::{RateSide, RatioClaim, Target, placeholders::Placeholders},
    load::{
        ONE_INSTANCE, Plan, Row, THREE_BEHIND_NGINX,
        measure::measure_in_rounds,
        plan::Timed,
        run::{Snapshot, run as load},
        target::{self, token},
        terminal::Bar,
    },
    replay::{Faults, LabControl},
    server::Server,
};
use oversell_lab::{
    addresses::Addresses,
    clients::{
        http_client::{Answer, Ask, HttpError, client},
        redis_at::redis_at,
    },
    fault::Action,
    spread::Spread,
    terminal::failure::{Failure, unusable, unusable_localized},
};
use redis::aio::MultiplexedConnection;
use reqwest::RequestBuilder;
use secrecy::SecretString;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Bounds each request, and a whole replay: longer than any wait that an experiment asks for.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(120);
/// The warm-up of each measurement of a rate: connections are open and caches are full by then.
const WARM_UP: Duration = Duration::from_millis(300);

/// The running cluster on which experiments are tried; its methods do what anybody outside can do.
#[derive(Debug)]
pub(crate) struct Cluster {
    http: String,
    instances: Vec<String>,
    lab: Option<Addresses>,
    pub(super) token: Option<SecretString>,
    /// The quick form has fewer rounds and requests.
    pub quick: bool,
    pub(super) java_libraries: JavaLibraries,
    /// Cancelled when the command must stop.
    pub stop: CancellationToken,
    /// The faults that the lab injects, if it takes commands.
    faults: Option<Faults>,
}

/// The name of a target in a load.
pub(super) const fn target_name(target: Target) -> &'static str {
    match target {
        Target::One => ONE_INSTANCE,
        Target::Three => THREE_BEHIND_NGINX,
    }
}

impl Cluster {
    /// Wraps the cluster that a command has found. Fails if an address is not known or, outside a lab, both are the same.
    pub(super) fn new(found: target::Cluster, quick: bool, stop: CancellationToken) -> Result<Self, Failure> {
        let http = found.address(target_name(Target::Three))?.trim_end_matches('/').to_owned();
        let one = found.address(target_name(Target::One))?.trim_end_matches('/').to_owned();
        if found.lab.is_none() && http == one {
            return Err(unusable_localized!(
                "--http 和 --instance 都是 {http}：--http 要给几个实例前面的负载均衡",
                "--http and --instance are both {http}: --http is the load balancer in front of several instances"
            ));
        }
        let instances = match &found.lab {
            Some(lab) => lab.instances.iter().map(|instance| instance.url.clone()).collect(),
            None => vec![one],
        };
        let control = found.lab.as_ref().and_then(|lab| lab.control.clone());
        let faults = control.map(|lab| Faults::new(LabControl::new(lab.url, lab.token.0.into())));
        Ok(Self {
            http,
            instances,
            token: token(found.lab.as_ref()),
            lab: found.lab,
            quick,
            java_libraries: JavaLibraries::default(),
            stop,
            faults,
        })
    }

    /// The address of nginx in front of all instances.
    pub(crate) fn nginx(&self) -> &str {
        &self.http
    }

    /// The address of the first instance.
    pub(crate) fn one_instance(&self) -> &str {
        self.instances.first().map_or(&self.http, String::as_str)
    }

    /// The instances' addresses; of a cluster without a lab only one is known.
    pub(crate) fn instances(&self) -> &[String] {
        &self.instances
    }

    pub(crate) fn address(&self, target: Target) -> &str {
        match target {
            Target::One => self.one_instance(),
            Target::Three => self.nginx(),
        }
    }

    /// Sends a GET to an address with host and port; any status is `Ok`, and the answer is the text of the course.
    pub(crate) async fn get(&self, url: &str) -> Result<Answer, HttpError> {
        self.request(Method::GET, url).answer().await
    }

    /// Builds a request to an address with host and port, with the admin token if there is one.
    pub(crate) fn request(&self, method: Method, url: &str) -> RequestBuilder {
        let request = client().request(method, url).timeout(REQUEST_TIMEOUT);
        request.token(self.token.as_ref())
    }

    /// Sends a request; returns status and JSON, also if it was refused. An answer without JSON is an error.
    pub(crate) async fn answer(&self, method: Method, url: &str) -> Result<(u16, Value), HttpError> {
        let request = self.request(method, url).header(ACCEPT, "application/json");
        let answer = request.answer().await?;
        Ok((answer.status.as_u16(), answer.json()?))
    }

    /// The plan of the course's load, 100 × 50 requests for 5000 pieces of a new product; a caller may change it.
    pub(crate) fn course_load(&self, strategy: &str, target: Target) -> Plan {
        let mut plan = Plan::new(self.address(target), target_name(target), strategy);
        plan.token.clone_from(&self.token);
        plan
    }

    /// Sends the load of a plan; one that [`stop`](Self::stop) cuts short is `Ok`.
    pub(crate) async fn send_load(&self, plan: Plan) -> Result<Row, Failure> {
        load(&plan, &watch::channel(Snapshot::default()).0, &self.stop).await
    }

    /// Measures how many times as fast the first side sells as the second. Each round measures both sides, in the other
    /// order than the last one, so that a slow machine slows both. Fails if more than half of the rounds have errors.
    pub(crate) async fn measure_ratio(&self, first: RateSide, second: RateSide, says: RatioClaim) -> Result<Ratio, Failure> {
        let (rounds, measured) = if self.quick { (3, 700) } else { (5, 2000) };
        let sides = [first, second].map(|side| {
            let mut plan = self.course_load(side.strategy, side.target);
            plan.threads = side.threads;
            plan
        });
        let timed = Timed::closed(WARM_UP, Duration::from_millis(measured));
        let of = |row: &Row| (row.counts.failed(), row.sold_per_sec);
        let (mut pairs, mut why) = (Vec::new(), String::new());
        for round in 0..rounds {
            let mut order = sides.clone();
            order.rotate_left(round % 2);
            let (mut rows, failed) = measure_in_rounds(&order, timed, 1, &Bar::hidden(), &self.stop).await;
            rows.rotate_left(round % 2);
            match rows.concat().as_slice() {
                [one, other] => pairs.push((of(one), of(other))),
                _ => why = failed.into_iter().map(|why| format!("; {why}")).collect(),
            }
        }
        let (ones, others) = rates_without_errors(pairs.into_iter());
        let failed = rounds - ones.len();
        if failed * 2 > rounds {
            return Err(unusable!("{failed} of {rounds} rounds of {} and {} had errors{why}", first.strategy, second.strategy));
        }
        let rated = |side, rates: &[f64]| MeasuredRate { side, per_sec: Spread::from_values(rates.iter().copied()) };
        Ok(Ratio {
            first: rated(first, &ones),
            second: rated(second, &others),
            ratio: Spread::from_ratios(&ones, &others),
            failed,
            says,
        })
    }

    /// Has the lab break or mend a member: `inject_fault(Action::Pause, "8100")`. Faults of the tried lab, but not of an
    /// [`OwnLab`], are mended after the experiment.
    pub(crate) async fn inject_fault(&self, action: Action, member: &str) -> Result<(), NoVerdict> {
        Ok(self.faults()?.inject(action, member).await?)
    }

    /// The faults of the lab; unavailable without a lab that takes commands.
    pub(super) fn faults(&self) -> Result<&Faults, NoVerdict> {
        self.faults
            .as_ref()
            .ok_or_else(|| NoVerdict::unavailable("没有能下命令的实验环境：用 --lab", "no lab that takes orders: pass --lab"))
    }

    /// Mends all faults of the experiment; a member that cannot be mended is named on stderr. The Sentinel has promoted the replica of
    /// a main Redis that stood still for seconds, and the first one comes back as its replica: it is promoted again.
    pub(super) async fn mend_all(&self) {
        if let Some(faults) = &self.faults {
            let failed = |member: &str, why| eprintln!("oversell: {member} is left as it is: {why}");
            faults.mend_all(failed).await;
            if self.lab.as_ref().is_some_and(|lab| lab.replica.is_some())
                && let Err(why) = faults.inject(Action::Promote, "redis").await
            {
                failed("redis", why);
            }
        }
    }

    /// The words in braces of the lines that a student types, with the addresses of this cluster.
    pub(crate) fn placeholders(&self) -> Placeholders {
        let no_redis: [&str; 0] = [];
        match &self.lab {
            Some(lab) => Placeholders::of_lab(lab),
            None => Placeholders::new(&self.http, &self.instances, "", &no_redis, ""),
        }
    }

    /// The addresses of all servers; unavailable without a lab, which alone tells them.
    pub(crate) fn servers(&self) -> Result<&Addresses, NoVerdict> {
        self.lab.as_ref().ok_or_else(|| {
            NoVerdict::unavailable("不知道服务器的地址：要有实验环境", "the servers' addresses are not known: it takes a lab")
        })
    }

    /// Opens a connection to the main Redis, as `redis-cli` does. Unavailable without a lab.
    pub(crate) async fn redis(&self) -> Result<MultiplexedConnection, NoVerdict> {
        let url = self.servers()?.first_redis();
        redis_at(url).await.map_err(does_not_answer(Server::Redis, url))
    }

    /// Opens a session of ZooKeeper, as `zkCli.sh` does. Unavailable without a lab.
    pub(crate) async fn zookeeper(&self) -> Result<zookeeper_client::Client, NoVerdict> {
        let at = &self.servers()?.zookeeper.connect;
        let connected = zookeeper_client::Client::connect(at).await;
        connected.map_err(does_not_answer(Server::ZooKeeper, at))
    }
}

/// The error for a server that does not answer; it says what to type.
fn does_not_answer<E: std::fmt::Display>(server: Server, at: &str) -> impl FnOnce(E) -> NoVerdict {
    let (name, at) = (server.name(), at.to_owned());
    move |why| {
        NoVerdict::failed(format!(
            "{name} at {at} does not answer ({why}): `oversell lab fault start {name}` starts one that was killed"
        ))
    }
}

/// The rates of both sides in the rounds in which both sold, without errors: failing fast must not count as selling fast. A
/// round has, for each side, the failed requests and the pieces sold per second.
fn rates_without_errors(rounds: impl Iterator<Item = ((u64, f64), (u64, f64))>) -> (Vec<f64>, Vec<f64>) {
    let is_one = |(failed, rate): (u64, f64)| failed == 0 && rate > 0.0;
    rounds.filter(|(one, other)| is_one(*one) && is_one(*other)).map(|(one, other)| (one.1, other.1)).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_silent_server_is_named_with_what_to_type() {
        let at = |url: &str| serde_json::json!({"url": url, "pid": 1});
        let lab = serde_json::from_value(serde_json::json!({
            "http": "http://127.0.0.1:1", "instances": [], "nginx": at("http://127.0.0.1:1"),
            "mysql": at("mysql://root@127.0.0.1:1/test"), "redis": [at("redis://127.0.0.1:1")],
            "zookeeper": {"connect": "127.0.0.1:1", "pid": 1},
        }));
        let found = target::Cluster {
            http: Some("http://127.0.0.1:1".to_owned()),
            instance: Some("http://127.0.0.1:1".to_owned()),
            lab: Some(lab.expect("addresses")),
        };
        let on = Cluster::new(found, true, CancellationToken::new()).expect("a cluster");
        let redis = on.redis().await.err();
        let Some(NoVerdict::Failed(Failure::Unusable(said))) = redis else {
            panic!("nobody listens there: {redis:?}");
        };
        assert!(said.starts_with("redis at redis://") && said.contains("`oversell lab fault start redis`"), "{said}");
    }

    #[test]
    fn one_instance_is_no_load_balancer_of_several() {
        let at = |url: &str| Some(url.to_owned());
        let found = |http| target::Cluster { http: at(http), instance: at("http://127.0.0.1:8000"), lab: None };
        let cluster = |http| Cluster::new(found(http), true, CancellationToken::new());
        let error = cluster("http://127.0.0.1:8000/").expect_err("one instance only");
        assert!(error.to_string().contains("load balancer"), "{error}");
        cluster("http://127.0.0.1:8080").expect("two addresses");
    }

    #[test]
    fn a_round_with_errors_does_not_count() {
        let rounds = [((0, 30.0), (0, 20.0)), ((1, 900.0), (0, 20.0)), ((0, 30.0), (7, 0.1)), ((0, 30.0), (0, 0.0))];
        let rates = rates_without_errors(rounds.into_iter());
        assert_eq!(rates, (vec![30.0], vec![20.0]));
    }
}
