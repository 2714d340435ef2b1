//! `oversell lab fault`: injects faults into a running lab, and mends them.
//!
//! 1. `oversell lab` accepts faults on loopback. Its address and token stand in `lab.json`, which only its owner may
//!    read.
//! 2. The command reads them there and sends the fault; GET returns what can be broken, and its state.
//! 3. The lab injects one fault after the other, and answers when it is done: after "killed" no process is left.
//!
//! The instances know address and token too, for their replays.
//!
//! **What it cannot do**: touch a process that this lab has not started. The labs of tests, `compare` and `bench`
//! accept no faults.

use super::{Lab, redis};
use crate::{
    addresses::{Addresses, Control, LAB_JSON, Token},
    clients::http_client::{Answer, Ask, HttpError, client},
    fault::{Action, Breakable, FAULT_TIMEOUT, FaultCommand},
    terminal::{
        failure::{Failure, unusable, unusable_localized},
        stdout::say,
    },
};
use axum::{
    Json, Router,
    extract::{Request, State},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
    routing::put,
};
use http::{StatusCode, header};
use secrecy::SecretString;
use std::{
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use subtle::ConstantTimeEq;
use tokio::{
    net::TcpListener,
    sync::{mpsc, oneshot},
};

const EXAMPLES: &str = "\
Examples:
  oversell lab fault pause 8100     instance 8100 holds what it holds and does nothing, as in a long garbage collection
  oversell lab fault resume 8100    it goes on
  oversell lab fault kill redis-3   kill -9
  oversell lab fault start redis-3  again on its port, with what it had kept of its data

In a lab that was started with --links:
  oversell lab fault cut 8100-redis      instance 8100 reaches redis no longer; the others do
  oversell lab fault cut redis           nobody does
  oversell lab fault slow mysql --by 200ms
  oversell lab fault mend mysql
  oversell lab fault expire 8100         ZooKeeper ends the session of instance 8100
  oversell lab fault jump redis-3 --by 60s   its clock is ahead from now on; `mend redis-3` sets it right

In a lab that was started with --replica:
  oversell lab fault cut replica-redis   the replica hears of no write; after 4 s it is promoted, without them
  oversell lab fault promote replica     at once; the instances follow
  oversell lab fault promote redis       as it was: the first one is the main one, and the other its replica

In a lab that was started with --sentinels 3:
  oversell lab fault kill redis          the Sentinels promote a replica after 4 s; the instances ask them, and follow
  oversell lab fault cut redis           replicas and Sentinels reach it no longer, clients do; a replica is promoted after 4 s
  oversell lab fault mend redis          it follows the new one
  oversell lab fault promote replica-2   a planned fail-over, at once: what this one has not yet is lost, with who holds it

The members are mysql, mysql-2 …, redis, redis-2 …, replica, replica-2 …, sentinel, sentinel-2 …,
zookeeper, zookeeper-2 …, etcd, etcd-2 …, nginx, and the instances by their names.";

/// Breaks a lab that runs, by hand: pauses, kills and starts its members, cuts its links, moves clocks, promotes its
/// replica.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Args {
    /// What is to happen
    action: Action,
    /// The member that it happens to, or the way
    member: String,
    /// How much later answers come on a way that is slow, or by how much a clock jumps [default: 200ms, or 60s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    by: Option<Duration>,
    /// Where the running lab has written its addresses
    #[arg(long, value_name = "PATH", default_value = LAB_JSON)]
    lab_json: PathBuf,
}

/// A request to the lab: to inject a fault, or to describe what can be broken; with the channel for its answer, whose receiver
/// may be gone.
pub(super) enum ControlRequest {
    Fault(FaultCommand, oneshot::Sender<Result<String, Failure>>),
    Describe(oneshot::Sender<Breakable>),
}

/// Sends the fault to the running lab, and prints its report.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let none = || {
        unusable_localized!(
            "这个实验环境不接受故障：用 `oversell lab` 启动一个接受的",
            "this lab accepts no faults: start one with `oversell lab`"
        )
    };
    let control = match lab_of_this_shell(&args.lab_json) {
        Some(control) => control,
        None => Addresses::read_running_lab(&args.lab_json)?.control.ok_or_else(none)?,
    };
    let by_ms = args.by.map_or(args.action.default_by_ms(), |by| u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
    let command = FaultCommand { action: args.action, member: args.member, by_ms };
    let token = SecretString::from(control.token.0);
    let request = client().put(&control.url).json(&command).timeout(FAULT_TIMEOUT);
    let answer = request.token(Some(&token)).answer().await;
    match answer.and_then(Answer::success) {
        Ok(answer) => say!("{}", answer.text()),
        Err(HttpError::Refused { body, .. }) => return Err(Failure::Unusable(body)),
        Err(error) => {
            return Err(unusable_localized!("故障没有注入：{error}", "the fault was not injected: {error}"));
        }
    }
    Ok(())
}

/// The control of the lab of `lab_json`, if this runs in the shell of one of its instances, whose user may be unable to read the
/// file.
fn lab_of_this_shell(lab_json: &Path) -> Option<Control> {
    let setting = |name: &str| std::env::var(format!("OVERSELL__REPLAYS__{name}")).ok();
    let own = setting("LAB_JSON")?;
    let is_own = std::path::absolute(lab_json).ok()? == Path::new(&own);
    is_own.then_some(Control { url: setting("LAB")?, token: Token(setting("LAB_TOKEN")?) })
}

/// Accepts faults on a free port of loopback, until the process ends; answers 503 once the receiver is dropped.
pub(super) async fn listen() -> Result<(Control, mpsc::Receiver<ControlRequest>), Failure> {
    let failed = |e: std::io::Error| unusable!("the lab cannot listen for faults: {e}");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(failed)?;
    let url = format!("http://{}/fault", listener.local_addr().map_err(failed)?);
    let token = Token::fresh();
    let (requests, received) = mpsc::channel(1);
    let bearer: Arc<str> = format!("Bearer {}", token.0).into();
    let router = Router::new()
        .route("/fault", put(inject).get(describe))
        .layer(from_fn_with_state(bearer, require_token))
        .with_state(requests);
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok((Control { url, token }, received))
}

/// Answers 401 to a request without the lab's token.
async fn require_token(State(bearer): State<Arc<str>>, request: Request, next: Next) -> Response {
    let presented = request.headers().get(header::AUTHORIZATION).map_or(&[][..], |presented| presented.as_bytes());
    if bool::from(presented.ct_eq(bearer.as_bytes())) {
        return next.run(request).await;
    }
    (StatusCode::UNAUTHORIZED, "a fault needs the token from lab.json").into_response()
}

/// `PUT /fault`: answers with the report of the fault; 409 if the lab refuses it, 503 if the lab is stopping.
async fn inject(State(requests): State<mpsc::Sender<ControlRequest>>, Json(command): Json<FaultCommand>) -> Response {
    let (reply, answer) = oneshot::channel();
    if requests.send(ControlRequest::Fault(command, reply)).await.is_ok()
        && let Ok(done) = answer.await
    {
        return match done {
            Ok(report) => report.into_response(),
            Err(refusal) => (StatusCode::CONFLICT, refusal.to_string()).into_response(),
        };
    }
    lab_ending_response()
}

/// `GET /fault`: answers with the members and links that can be broken; 503 if the lab is stopping.
async fn describe(State(requests): State<mpsc::Sender<ControlRequest>>) -> Response {
    let (reply, answer) = oneshot::channel();
    match requests.send(ControlRequest::Describe(reply)).await {
        Ok(()) => answer.await.map_or_else(|_| lab_ending_response(), |breakable| Json(breakable).into_response()),
        Err(_) => lab_ending_response(),
    }
}

/// The answer 503: the lab is stopping.
fn lab_ending_response() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "the lab is stopping").into_response()
}

impl Lab {
    /// Answers the request; returns what was done, or `None` if no fault was asked for, or it was refused.
    pub(super) async fn serve(&mut self, request: ControlRequest) -> Option<String> {
        match request {
            ControlRequest::Describe(reply) => {
                drop(reply.send(self.breakable()));
                None
            }
            ControlRequest::Fault(command, reply) => {
                let done = self.carry_out(command).await;
                let report = done.as_ref().ok().cloned();
                drop(reply.send(done));
                report
            }
        }
    }

    /// Injects a fault, and writes the new pids into `lab.json`; returns what was done. The error says why it is refused.
    async fn carry_out(&mut self, FaultCommand { action, member: name, by_ms }: FaultCommand) -> Result<String, Failure> {
        let done = match action {
            Action::Pause => {
                self.pause(&name)?;
                self.wait_until_paused(&name).await.map(|()| "is paused")?
            }
            Action::Resume => self.resume(&name).map(|()| "goes on")?,
            Action::Kill => self.kill(&name).await.map(|()| "is killed")?,
            Action::Start if self.pid(&name).is_some() => {
                return Err(unusable!("{name} runs already"));
            }
            Action::Start => self.restart(&name).await.map(|()| "runs again")?,
            Action::Cut if self.is_grouped(&name) => {
                self.isolate(&name).await.map(|()| "is cut off from its replicas and Sentinels")?
            }
            Action::Cut => self.cut(&name).map(|()| "is cut")?,
            Action::Slow => self.slow(&name, Duration::from_millis(by_ms)).map(|()| "is slow")?,
            Action::Jump => {
                let by = Duration::from_millis(by_ms);
                self.jump(&name, by).await.map(|()| "has a clock that is ahead")?
            }
            Action::Mend => {
                let has_links = self.links.iter().any(|link| link.is_meant_by(&name));
                let mended = self.rejoin(&name).await?;
                if !(self.reset_clock(&name).await? || mended) || has_links {
                    self.mend(&name)?;
                }
                "is mended"
            }
            Action::Promote if self.group.is_some() => self.fail_over(&name).await.map(|()| "is the main one now")?,
            Action::Promote if name == redis::name(0) => self.restore().await.map(|()| "is the main one again")?,
            Action::Promote if name != redis::REPLICA => {
                let first = redis::name(0);
                return Err(unusable!("only {} and {first} can be promoted", redis::REPLICA));
            }
            Action::Promote => self.promote().await.map(|()| "is the main one now")?,
            Action::Expire => self.expire(&name).await.map(|()| "has lost its session")?,
        };
        self.publish()?;
        Ok(format!("{name} {done}"))
    }
}
