//! A proxy that refuses in a server's place for a while, as one that is read-only, is loading its data or has lost its
//! disk, each request in its turn; and a proxy that delays requests.

use RequestKind::{Everything, Statements, Writes};
use parking_lot::Mutex;
use std::{
    collections::{HashSet, VecDeque},
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{Instant, sleep_until},
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The kinds of requests that are refused; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RequestKind {
    Writes,
    Statements,
    /// Also a client's first message.
    Everything,
}

/// A server's refusal, and the requests it applies to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Refusal {
    pub(crate) says: &'static str,
    pub(crate) number: u16,
    pub(crate) to: RequestKind,
}

const fn redis(says: &'static str, to: RequestKind) -> Refusal {
    let number = 0;
    Refusal { says, number, to }
}

pub(crate) const REDIS: [Refusal; 6] = [
    redis("READONLY You can't write against a read only replica.", Writes),
    redis(
        "ERR Error running script (call to f_0): @user_script:1: -READONLY You can't write against a read only replica.",
        Writes,
    ),
    redis("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", Writes),
    redis("NOREPLICAS Not enough good replicas to write.", Writes),
    redis("LOADING Redis is loading the dataset in memory", Statements),
    redis("NOAUTH Authentication required.", Everything),
];

/// The refusals of a demoted MySQL, and of a Galera node that lost the others.
pub(crate) const MYSQL: [Refusal; 2] = [
    Refusal {
        says: "#HY000The MariaDB server is running with the --read-only option so it cannot execute this statement",
        number: 1290,
        to: Writes,
    },
    Refusal { says: "#08S01WSREP has not yet prepared node for application use", number: 1047, to: Statements },
];

struct Request {
    /// The kind of refusal that applies to it.
    is: RequestKind,
    length: usize,
    is_answered: bool,
}

/// What the proxy needs to know of a protocol.
trait Protocol: Default + Send {
    /// The first request in these bytes; `None` if it is incomplete.
    fn request(&mut self, bytes: &[u8]) -> Option<Request>;

    /// The length of the server's first message in these bytes, and whether it answers a request.
    fn answer(&mut self, bytes: &[u8]) -> Option<(usize, bool)>;

    fn refuse(refusal: &Refusal) -> Vec<u8>;
}

pub(crate) struct Refuser {
    address: SocketAddr,
    injection: Arc<Mutex<Injection>>,
    _serving: DropGuard,
}

#[derive(Default)]
struct Injection {
    refusal: Option<Refusal>,
    late: Duration,
}

impl Refuser {
    pub(crate) fn redis(server: String) -> io::Result<Self> {
        Self::to::<Resp>(server)
    }

    pub(crate) fn mysql(server: String) -> io::Result<Self> {
        Self::to::<Packets>(server)
    }

    fn to<P: Protocol + 'static>(server: String) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        let (address, ends) = (listener.local_addr()?, CancellationToken::new());
        let injection = Arc::<Mutex<Injection>>::default();
        let given = Arc::clone(&injection);
        let serving = ends.clone();
        tokio::spawn(ends.clone().run_until_cancelled_owned(async move {
            while let Ok((client, _)) = listener.accept().await {
                let talk = talk::<P>(client, server.clone(), Arc::clone(&given));
                // A broken connection is broken for both sides.
                tokio::spawn(serving.clone().run_until_cancelled_owned(talk));
            }
        }));
        Ok(Self { address, injection, _serving: ends.drop_guard() })
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Refuses requests from now on; `None`: passes them to the server again.
    pub(crate) fn refuse(&self, refusal: Option<Refusal>) {
        self.injection.lock().refusal = refusal;
    }

    /// Delays each request from now on, even if its client has gone: a later one on another connection may overtake it.
    pub(crate) fn delay(&self, late: Duration) {
        self.injection.lock().late = late;
    }
}

async fn talk<P: Protocol>(mut client: TcpStream, server: String, injection: Arc<Mutex<Injection>>) -> io::Result<()> {
    let mut server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ((mut asks, mut to_client), (mut answers, mut to_server)) = (client.split(), server.split());
    let (mut requests, mut said, mut protocol) = (Vec::new(), Vec::new(), P::default());
    // The pending answers in turn: the server's or ours.
    let mut owed = VecDeque::<Option<Vec<u8>>>::new();
    let mut late = VecDeque::<(Instant, Vec<u8>)>::new();
    loop {
        let due = late.front().map(|(due, _)| *due);
        let read = tokio::select! {
            read = asks.read_buf(&mut requests) => read?,
            read = answers.read_buf(&mut said) => read?,
            () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                if let Some((_, request)) = late.pop_front() {
                    to_server.write_all(&request).await?;
                }
                continue;
            }
        };
        if read == 0 {
            break;
        }
        while let Some(request) = protocol.request(&requests) {
            let Injection { refusal, late: by } = *injection.lock();
            let refusal = refusal.filter(|refusal| request.is <= refusal.to);
            let bytes: Vec<_> = requests.drain(..request.length).collect();
            match refusal {
                Some(refusal) => owed.push_back(Some(P::refuse(&refusal))),
                None => {
                    if by.is_zero() && late.is_empty() {
                        to_server.write_all(&bytes).await?;
                    } else {
                        late.push_back((Instant::now() + by, bytes));
                    }
                    owed.extend(request.is_answered.then_some(None));
                }
            }
        }
        while let Some((length, answers)) = protocol.answer(&said) {
            let bytes: Vec<_> = said.drain(..length).collect();
            to_client.write_all(&bytes).await?;
            if answers {
                owed.pop_front();
            }
        }
        while let Some(Some(_)) = owed.front()
            && let Some(Some(refusal)) = owed.pop_front()
        {
            to_client.write_all(&refusal).await?;
        }
    }
    for (due, request) in late {
        sleep_until(due).await;
        to_server.write_all(&request).await?;
    }
    Ok(())
}

/// Redis's protocol.
#[derive(Default)]
struct Resp;

/// The length of a line with its end, and its text after the first character.
fn line(bytes: &[u8]) -> Option<(usize, &str)> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")?;
    Some((end + 2, std::str::from_utf8(&bytes[1..end]).unwrap_or_default()))
}

/// The length of a value of RESP3.
fn value(bytes: &[u8]) -> Option<usize> {
    let (mut length, head) = line(bytes)?;
    let number = head.parse::<usize>().unwrap_or(0);
    let parts = match bytes[0] {
        b'$' | b'=' | b'!' if head != "-1" => {
            length += number + 2;
            0
        }
        b'*' | b'~' | b'>' => number,
        b'%' => 2 * number,
        // A prefix of a value.
        b'|' => 2 * number + 1,
        _ => 0,
    };
    for _ in 0..parts {
        length += value(bytes.get(length..)?)?;
    }
    (length <= bytes.len()).then_some(length)
}

impl Protocol for Resp {
    fn request(&mut self, bytes: &[u8]) -> Option<Request> {
        let length = value(bytes)?;
        let word = bytes[..length].split(|byte| *byte == b'\n').nth(2)?;
        let word = String::from_utf8_lossy(word).trim().to_ascii_uppercase();
        let is = match word.as_str() {
            "HELLO" | "CLIENT" | "SELECT" => Everything,
            word if word.ends_with("SUBSCRIBE") => Everything,
            "GET" | "MGET" | "PING" | "SCRIPT" => Statements,
            _ => Writes,
        };
        // Its answer comes out of turn.
        let is_answered = !word.ends_with("SUBSCRIBE");
        Some(Request { is, length, is_answered })
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<(usize, bool)> {
        Some((value(bytes)?, bytes[0] != b'>'))
    }

    fn refuse(refusal: &Refusal) -> Vec<u8> {
        format!("-{}\r\n", refusal.says).into_bytes()
    }
}

/// MySQL's protocol: one request is answered before the next is sent.
#[derive(Default)]
struct Packets {
    /// A read-only statement is being prepared.
    prepares_reading: bool,
    reading: HashSet<[u8; 4]>,
}

/// The length of a packet with its header.
fn packet(bytes: &[u8]) -> Option<usize> {
    let head: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    let length = 4 + u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize;
    (length <= bytes.len()).then_some(length)
}

const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;
const EXECUTE: u8 = 0x17;

impl Protocol for Packets {
    fn request(&mut self, bytes: &[u8]) -> Option<Request> {
        let length = packet(bytes)?;
        let body = &bytes[4..length];
        let reads = |text: &[u8]| ["SELECT", "SET ", "KILL "].iter().any(|word| text.starts_with(word.as_bytes()));
        let is = match body.split_first() {
            // A login continues the numbers of the server's packets.
            _ if bytes[3] != 0 => Everything,
            Some((&PREPARE, text)) => {
                self.prepares_reading = reads(text);
                if reads(text) { Statements } else { Writes }
            }
            Some((&QUERY, text)) if reads(text) => Statements,
            Some((&EXECUTE, rest)) if rest.get(..4).is_some_and(|id| self.reading.contains(id)) => Statements,
            Some((&(QUERY | EXECUTE), _)) => Writes,
            _ => Everything,
        };
        Some(Request { is, length, is_answered: false })
    }

    fn answer(&mut self, bytes: &[u8]) -> Option<(usize, bool)> {
        let length = packet(bytes)?;
        if let (true, Some([0, id @ ..])) = (self.prepares_reading, bytes.get(4..9)) {
            self.reading.extend(<[u8; 4]>::try_from(id));
        }
        self.prepares_reading = false;
        Some((length, false))
    }

    fn refuse(refusal: &Refusal) -> Vec<u8> {
        let mut body = vec![0xff];
        body.extend(refusal.number.to_le_bytes());
        body.extend(refusal.says.as_bytes());
        let mut packet = vec![body.len() as u8, 0, 0, 1];
        packet.extend(body);
        packet
    }
}
