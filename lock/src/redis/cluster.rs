//! The nodes of a Redis Cluster, and how a command finds the one that has its key.
//!
//! 1. A key belongs to one of 16,384 slots, by what stands in its first braces. A lock's keys and its channel have the
//!    lock's name in braces, so they are in one slot ([`slot_of_key`]).
//! 2. The map of the slots comes from any node that answers `CLUSTER SLOTS`. It is asked for again after a connection
//!    failed, and after a node said that a slot is elsewhere: so a fail-over is noticed.
//! 3. `MOVED` leads to another node for good, `ASK` for this command only; `TRYAGAIN` and `CLUSTERDOWN` are asked again
//!    after a pause, until the time limit of a command is over; then the caller gets the node's `TRYAGAIN`, which lasts as long
//!    as a slot is moved and some of a command's keys are there already. A node that answers so has done nothing.
//! 4. A command that went out and was not answered is **never sent again**: it may have run. Its caller is told, and
//!    what it may have taken is undone. A command that did not go out is sent to the slot's new node, if there is one.
//!
//! The commands of the `redis` crate's own cluster client are sent again by default, which takes a lock twice.
//!
//! Source: the Redis documentation, "Redis cluster specification". Next to read: `shared_connection.rs`.

use super::{
    failure::SLOT_MOVES_CODE,
    keys::{SLOTS, slot_of_key},
    node::RedisNode,
    options::RedisOptions,
    primary::{Address, Primary, client_at},
    shared_connection::{Request, SharedConnection},
};
use crate::Process;
use parking_lot::Mutex;
use redis::{Arg, Client, Cmd, FromRedisValue, Pipeline, RedisError, RedisResult, ServerError, Value};
use std::{
    collections::HashMap,
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    runtime::Handle,
    sync::watch,
    time::{Instant, sleep, timeout},
};

/// The longest wait for one node's map: a dead node must not use up the time in which another one would answer.
const MAX_SLOT_MAP_TIMEOUT: Duration = Duration::from_secs(1);
/// How old a map is at least when the next one is asked for, so that many commands that fail together ask for one.
const MIN_SLOT_MAP_INTERVAL: Duration = Duration::from_millis(50);
/// The first pause before a refused command is sent again; each further one is twice as long. A slot is moved key by key, which
/// takes milliseconds if it has few, seconds if it has many; a fail-over takes seconds.
const FIRST_RETRY_PAUSE: Duration = Duration::from_millis(5);
/// The longest pause before a refused command is sent again.
const MAX_RETRY_PAUSE: Duration = Duration::from_millis(100);
/// The most redirects that a command follows without a pause: nodes that disagree for longer need time.
const MAX_QUICK_REDIRECTS: u32 = 3;

/// The nodes of one cluster, and the map of its slots.
pub(super) struct Cluster {
    /// Says how to connect; a node's host and port replace those in it.
    template: Client,
    seeds: Vec<Address>,
    timeout: Duration,
    process: Process,
    runtime: Handle,
    disconnects: watch::Sender<()>,
    /// The slot of commands without a key.
    home: u16,
    map: Mutex<SlotMap>,
    /// Whether the map may be old.
    is_map_stale: AtomicBool,
    /// When the last map came. Its lock lets one task at a time ask for a map.
    last_map_at: tokio::sync::Mutex<Option<Instant>>,
    /// The place in the order of nodes at which the next request for a map begins.
    next_asked: AtomicUsize,
}

/// The node of each slot, `None` where none is known, and all known nodes by address.
struct SlotMap {
    node_by_slot: Vec<Option<Arc<RedisNode>>>,
    nodes: HashMap<Address, Arc<RedisNode>>,
}

/// Why a node has not carried out a command: its slot is elsewhere for good or for now, or the node cannot yet.
#[derive(Debug, PartialEq, Eq)]
enum NodeRefusal {
    /// Another node has the slot. Its host may be empty: the host of the node that says so.
    Moved(u16, Address),
    /// Another node may have the key.
    Ask(Address),
    /// The same node may carry it out later.
    TryLater,
}

impl Cluster {
    /// Makes the cluster of which the `seeds` are nodes, without a connection or a map.
    pub(super) fn new(
        template: Client,
        seeds: Vec<Address>,
        options: &RedisOptions,
        runtime: &Handle,
        disconnects: &watch::Sender<()>,
    ) -> Arc<Self> {
        Arc::new(Self {
            template,
            seeds,
            timeout: options.timeout,
            process: options.process.clone(),
            runtime: runtime.clone(),
            disconnects: disconnects.clone(),
            home: slot_of_key(options.prefix.as_bytes()),
            map: Mutex::new(SlotMap { node_by_slot: vec![None; SLOTS], nodes: HashMap::new() }),
            is_map_stale: AtomicBool::new(true),
            last_map_at: tokio::sync::Mutex::default(),
            next_asked: AtomicUsize::new(0),
        })
    }

    /// Returns the slot's node by the present map; `None` if it is unknown.
    pub(super) fn node_of_slot(&self, slot: u16) -> Option<Arc<RedisNode>> {
        self.map.lock().node_by_slot[usize::from(slot)].clone()
    }

    /// Returns the node for commands without a key, which has the slot of the prefix; reads the map first if it may be old.
    pub(super) async fn node_for_commands_without_key(&self) -> RedisResult<Arc<RedisNode>> {
        self.refresh_map_if_stale().await?;
        self.node_of_slot(self.home).ok_or_else(slot_without_node_error)
    }

    /// Sends a request to the node that has its key, and again, also to another node, only if it was refused or nothing was
    /// sent, until the client's time limit is over. `last` is the node of the command before, which gets a request without a
    /// key; it becomes the node of this request. `sent` becomes whether a node may have carried it out.
    pub(super) async fn send(
        &self,
        request: Request<'_>,
        limit: Option<Duration>,
        last: &mut Option<Arc<RedisNode>>,
        sent: &mut bool,
    ) -> RedisResult<Value> {
        *sent = false;
        let ends = Instant::now() + self.timeout;
        let slot = key_of(request).map(slot_of_key);
        let (mut redirect, mut redirects, mut pause) = (None, 0, FIRST_RETRY_PAUSE);
        let mut slot_moves = None;
        loop {
            if redirect.is_none() {
                self.refresh_map_if_stale().await?;
            }
            let keyless = || last.clone().or_else(|| self.node_of_slot(self.home));
            let (node, is_asking) = match redirect.take() {
                Some((node, is_asking)) => (Some(node), is_asking),
                None => (slot.map_or_else(keyless, |slot| self.node_of_slot(slot)), false),
            };
            let refusal = match &node {
                Some(node) => {
                    *last = Some(Arc::clone(node));
                    let answer = send_to(&node.shared, request, is_asking, limit, sent).await;
                    match refusal_if_nothing_ran(request, &answer) {
                        Some(refusal) => {
                            if matches!(&answer, Ok(Value::ServerError(error)) if error.code() == SLOT_MOVES_CODE) {
                                slot_moves = Some(answer);
                            }
                            refusal
                        }
                        None if answer.is_ok() => return answer,
                        None => {
                            self.is_map_stale.store(true, Ordering::Release);
                            if *sent || Instant::now() >= ends {
                                return answer;
                            }
                            // Nothing went out. Another node may have the slot by now.
                            self.refresh_map_if_stale().await?;
                            let now = slot.map_or_else(|| None, |slot| self.node_of_slot(slot));
                            if !is_asking && now.is_none_or(|now| Arc::ptr_eq(&now, node)) {
                                return answer;
                            }
                            continue;
                        }
                    }
                }
                None => NodeRefusal::TryLater,
            };
            // A node that refuses a command has not carried it out.
            *sent = false;
            redirects += 1;
            if Instant::now() >= ends {
                return slot_moves.unwrap_or_else(|| Err(slot_without_node_error()));
            }
            redirect = match &node {
                Some(node) => self.redirect_of(refusal, node)?,
                None => None,
            };
            if redirect.is_none() {
                self.is_map_stale.store(true, Ordering::Release);
                redirects += MAX_QUICK_REDIRECTS;
            }
            if redirects > MAX_QUICK_REDIRECTS {
                sleep(pause).await;
                pause = (pause * 2).min(MAX_RETRY_PAUSE);
            }
        }
    }

    /// As [`redirect_of`](Self::redirect_of), for an error of `from`; `None` too if it is no refusal.
    pub(super) fn redirect(&self, error: &RedisError, from: &Arc<RedisNode>) -> RedisResult<Option<(Arc<RedisNode>, bool)>> {
        let errors = error.clone().into_server_errors();
        let refusal = errors.and_then(|errors| NodeRefusal::of(&errors.first()?.1));
        refusal.map_or(Ok(None), |refusal| self.redirect_of(refusal, from))
    }

    /// The node to which this refusal of `from` redirects, and whether it needs `ASKING`; `None`: ask again later. `MOVED` is
    /// noted in the map, which is then read again before the next command.
    fn redirect_of(&self, refusal: NodeRefusal, from: &Arc<RedisNode>) -> RedisResult<Option<(Arc<RedisNode>, bool)>> {
        Ok(match refusal {
            NodeRefusal::Moved(slot, address) => Some((self.record_move(slot, address, from)?, false)),
            NodeRefusal::Ask(address) => Some((self.node_at(&self.full_address(address, from))?, true)),
            NodeRefusal::TryLater => None,
        })
    }

    /// Notes in the map that the slot has moved, and returns its new node; the map is then read again before the next command.
    fn record_move(&self, slot: u16, address: Address, from: &Arc<RedisNode>) -> RedisResult<Arc<RedisNode>> {
        let there = self.node_at(&self.full_address(address, from))?;
        self.map.lock().node_by_slot[usize::from(slot)] = Some(Arc::clone(&there));
        self.is_map_stale.store(true, Ordering::Release);
        Ok(there)
    }

    /// Returns the address; if it has no host, with the host of the node `by` that named it.
    fn full_address(&self, (host, port): Address, by: &Arc<RedisNode>) -> Address {
        if !host.is_empty() {
            return (host, port);
        }
        let map = self.map.lock();
        let named = map.nodes.iter().find(|(_, node)| Arc::ptr_eq(node, by));
        (named.map_or(host, |((host, _), _)| host.clone()), port)
    }

    /// Returns the node at an address; a new one is made without a connection, and added.
    fn node_at(&self, address: &Address) -> RedisResult<Arc<RedisNode>> {
        let mut map = self.map.lock();
        if let Some(node) = map.nodes.get(address) {
            return Ok(Arc::clone(node));
        }
        let client = client_at(&self.template, address)?;
        let primary = Primary::new(client, None, self.timeout, self.disconnects.clone());
        let node = RedisNode::new(primary, true, &self.process, &self.runtime, &self.disconnects);
        map.nodes.insert(address.clone(), Arc::clone(&node));
        Ok(node)
    }

    /// Reads the map if it may be old. Only a client that never had one fails if nobody answers.
    async fn refresh_map_if_stale(&self) -> RedisResult<()> {
        if !self.is_map_stale.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut asked = self.last_map_at.lock().await;
        let is_recent = asked.is_some_and(|asked| asked.elapsed() < MIN_SLOT_MAP_INTERVAL);
        if is_recent || !self.is_map_stale.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        match self.refresh_map().await {
            Ok(()) => {
                *asked = Some(Instant::now());
                Ok(())
            }
            Err(error) => {
                self.is_map_stale.store(true, Ordering::Release);
                tracing::debug!(%error, "no node tells who has which slot");
                if asked.is_some() { Ok(()) } else { Err(error) }
            }
        }
    }

    /// Asks one node after the other who has which slot, and stores the first answer; begins with those whose connections did
    /// not fail.
    async fn refresh_map(&self) -> RedisResult<()> {
        let mut nodes: Vec<_> = self.map.lock().nodes.clone().into_iter().collect();
        for seed in &self.seeds {
            if !nodes.iter().any(|(address, _)| address == seed) {
                nodes.push((seed.clone(), self.node_at(seed)?));
            }
        }
        let (number, first) = (nodes.len(), self.next_asked.fetch_add(1, Ordering::Relaxed));
        nodes.sort_by(|(one, _), (other, _)| one.cmp(other));
        nodes.rotate_left(first % number.max(1));
        nodes.sort_by_key(|(_, node)| node.shared.discards_in_a_row());
        let limit = MAX_SLOT_MAP_TIMEOUT.min(self.timeout / (1 + u32::try_from(number).unwrap_or(u32::MAX - 1)));
        let mut last_error = slot_without_node_error();
        for ((host, _), node) in &nodes {
            match timeout(limit, read_slot_ranges(&node.shared, host)).await {
                Ok(Ok(ranges)) => return self.store_map(ranges),
                Ok(Err(error)) => last_error = error,
                Err(_) => last_error = io::Error::from(io::ErrorKind::TimedOut).into(),
            }
        }
        Err(last_error)
    }

    /// Stores the map, and forgets nodes that have no slot. A slot that the map leaves out keeps its node, which refuses
    /// its commands.
    fn store_map(&self, ranges: Vec<SlotRange>) -> RedisResult<()> {
        let mut node_by_slot = Vec::new();
        for (from, to, address) in ranges {
            node_by_slot.push((from, to, self.node_at(&address)?));
        }
        let mut map = self.map.lock();
        for (from, to, node) in node_by_slot {
            for slot in from..=to.min(SLOTS - 1) {
                map.node_by_slot[slot] = Some(Arc::clone(&node));
            }
        }
        let SlotMap { node_by_slot, nodes } = &mut *map;
        let mut with_slots: Vec<_> = node_by_slot.iter().flatten().map(Arc::as_ptr).collect();
        with_slots.dedup();
        nodes.retain(|_, node| with_slots.contains(&Arc::as_ptr(node)));
        Ok(())
    }
}

/// The first and the last slot of a range, and the address of their node.
type SlotRange = (usize, usize, Address);

/// Asks the node at `host` for its map; leaves out slots whose node it does not know.
async fn read_slot_ranges(node: &Arc<SharedConnection>, host: &str) -> RedisResult<Vec<SlotRange>> {
    let mut ask = redis::cmd("CLUSTER");
    ask.arg("SLOTS");
    let answer = node.send(Request::Command(&ask), None, &mut false).await?;
    let ranges = Vec::<Vec<Value>>::from_redis_value(answer.extract_error()?)?;
    let mut known = Vec::new();
    for range in ranges {
        let [from, to, owner, ..] = &range[..] else {
            continue;
        };
        let owner = Vec::<Value>::from_redis_value_ref(owner)?;
        let [named, port, ..] = &owner[..] else {
            continue;
        };
        let named = Option::<String>::from_redis_value_ref(named)?.unwrap_or_default();
        let at = match named.as_str() {
            // It does not know the owner's address yet.
            "?" => continue,
            // The node that was asked has the slots, or its address is that of all nodes.
            "" => host.to_owned(),
            _ => named,
        };
        let number = usize::from_redis_value_ref;
        known.push((number(from)?, number(to)?, (at, u16::from_redis_value_ref(port)?)));
    }
    Ok(known)
}

/// Sends the request to this node. With `is_asking` an `ASKING` comes first, because the slot is still moving to the node, and
/// a pipeline goes as a transaction.
async fn send_to(
    node: &Arc<SharedConnection>,
    request: Request<'_>,
    is_asking: bool,
    limit: Option<Duration>,
    sent: &mut bool,
) -> RedisResult<Value> {
    if !is_asking {
        return node.send(request, limit, sent).await;
    }
    // As one pipeline, because other tasks write to the same connection.
    let mut commands = redis::pipe();
    commands.cmd("ASKING");
    let (skipped, wanted) = match request {
        Request::Command(cmd) => {
            commands.add_command(cmd.clone());
            (1, 1)
        }
        Request::Pipeline(several, ..) => {
            commands.cmd("MULTI");
            for cmd in several.cmd_iter() {
                commands.add_command(cmd.clone());
            }
            commands.cmd("EXEC");
            (several.len() + 2, 1)
        }
    };
    let asking = Request::Pipeline(&commands, skipped, wanted);
    let answer = node.send(asking, limit, sent).await?;
    match (request, answer) {
        (Request::Command(_), Value::Array(mut answers)) => Ok(answers.pop().unwrap_or(Value::Nil)),
        (_, answer) => Ok(answer),
    }
}

/// The refusal in this answer, if nothing of the request was carried out; `None` for any other answer.
fn refusal_if_nothing_ran(request: Request<'_>, answer: &RedisResult<Value>) -> Option<NodeRefusal> {
    let said = |value: &Value| match value {
        Value::ServerError(error) => NodeRefusal::of(error),
        _ => None,
    };
    match answer {
        Ok(answer) => {
            let mut refusals = request.answers(answer).iter().map(said);
            let first = refusals.next()??;
            if !refusals.all(|refusal| refusal.is_some()) {
                return None;
            }
            // Each command of a pipeline would need an `ASKING` of its own.
            let is_pipeline = matches!(request, Request::Pipeline(commands, ..) if !commands.is_transaction());
            match first {
                NodeRefusal::Ask(_) if is_pipeline => Some(NodeRefusal::TryLater),
                first => Some(first),
            }
        }
        // EXEC carries out nothing if one of its commands was refused.
        Err(error) => {
            let errors = error.clone().into_server_errors()?;
            errors.iter().find_map(|(_, error)| NodeRefusal::of(error))
        }
    }
}

impl NodeRefusal {
    /// Reads the refusal in a server's error; `None` for any other error.
    fn of(error: &ServerError) -> Option<Self> {
        let mut words = error.details().unwrap_or_default().split_whitespace();
        let mut redirect = || {
            let slot = words.next()?.parse::<u16>().ok()?;
            let (host, port) = words.next()?.rsplit_once(':')?;
            let is_slot = usize::from(slot) < SLOTS;
            Some((slot, (host.to_owned(), port.parse().ok()?))).filter(|_| is_slot)
        };
        match error.code() {
            "MOVED" => redirect().map(|(slot, address)| Self::Moved(slot, address)),
            "ASK" => redirect().map(|(_, address)| Self::Ask(address)),
            SLOT_MOVES_CODE | "CLUSTERDOWN" => Some(Self::TryLater),
            _ => None,
        }
    }
}

/// The key by which a request finds its node; `None` if it has none. If this takes another argument for the key, the node says
/// `MOVED`.
fn key_of(request: Request<'_>) -> Option<&[u8]> {
    match request {
        Request::Command(cmd) => key_of_command(cmd),
        Request::Pipeline(commands, ..) => key_of_pipeline(commands),
    }
}

/// Returns the key of the first command that has one.
fn key_of_pipeline(commands: &Pipeline) -> Option<&[u8]> {
    commands.cmd_iter().find_map(key_of_command)
}

/// The first argument, or the first key of a script; `None` if there is none, and for SCRIPT.
fn key_of_command(cmd: &Cmd) -> Option<&[u8]> {
    let mut words = cmd.args_iter().map(|word| match word {
        Arg::Simple(word) => word,
        _ => b"0",
    });
    let name = words.next()?.to_ascii_uppercase();
    match &name[..] {
        b"EVAL" | b"EVALSHA" | b"EVAL_RO" | b"EVALSHA_RO" | b"FCALL" | b"FCALL_RO" => {
            words.nth(1).filter(|keys| *keys != b"0")?;
            words.next()
        }
        // A script is loaded where it then runs: at the node of the command before.
        b"SCRIPT" => None,
        _ => words.next(),
    }
}

fn slot_without_node_error() -> RedisError {
    io::Error::other("no node of the cluster serves the slot for now").into()
}

/// The address may hold a password, so it is not shown.
impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("seeds", &self.seeds).field("nodes", &self.map.lock().nodes.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::parse_redis_value;

    #[test]
    fn a_command_is_sent_by_its_first_key() {
        let key = |words: &[&str]| {
            let mut command = redis::cmd(words[0]);
            command.arg(&words[1..]);
            key_of_command(&command).map(|key| String::from_utf8_lossy(key).into_owned())
        };
        assert_eq!(key(&["GET", "a"]).as_deref(), Some("a"));
        assert_eq!(key(&["evalsha", "5f1", "2", "a", "b", "c"]).as_deref(), Some("a"));
        assert_eq!(key(&["EVALSHA", "5f1", "0", "c"]), None);
        assert_eq!(key(&["SCRIPT", "LOAD", "return 1"]), None);
        assert_eq!(key(&["PING"]), None);
    }

    #[test]
    fn only_a_refusal_that_did_nothing_leads_on() {
        let said = |line: &str| {
            let value = parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
            let cmd = redis::cmd("GET");
            refusal_if_nothing_ran(Request::Command(&cmd), &Ok(value))
        };
        let at = |host: &str| (host.to_owned(), 6381);
        assert_eq!(said("MOVED 3999 10.0.0.1:6381"), Some(NodeRefusal::Moved(3999, at("10.0.0.1"))));
        assert_eq!(said("MOVED 3999 ::1:6381"), Some(NodeRefusal::Moved(3999, at("::1"))));
        assert_eq!(said("MOVED 3999 :6381"), Some(NodeRefusal::Moved(3999, at(""))));
        assert_eq!(said("ASK 3999 10.0.0.1:6381"), Some(NodeRefusal::Ask(at("10.0.0.1"))));
        assert_eq!(said("TRYAGAIN Multiple keys request"), Some(NodeRefusal::TryLater));
        assert_eq!(said("CLUSTERDOWN Hash slot not served"), Some(NodeRefusal::TryLater));
        assert_eq!(said("MOVED 99999 10.0.0.1:6381"), None);
        assert_eq!(said("ERR Script attempted to access a non local key"), None);
        let broken = Err(io::Error::from(io::ErrorKind::TimedOut).into());
        assert_eq!(refusal_if_nothing_ran(Request::Command(&redis::cmd("GET")), &broken), None);
        // One that ran beside one that was refused: nothing is sent again.
        let mut both = redis::pipe();
        both.cmd("GET").arg("a").cmd("GET").arg("b");
        let moved = parse_redis_value(b"-MOVED 3999 10.0.0.1:6381\r\n").unwrap();
        let answers = Ok(Value::Array(vec![moved, Value::Nil]));
        assert_eq!(refusal_if_nothing_ran(Request::Pipeline(&both, 0, 2), &answers), None);
    }
}
