//! What passes between a client and ZooKeeper, read from the bytes.
//!
//! A message is its length in 4 bytes and its content. The first of each direction opens the session. A request begins with its
//! number and its kind; an answer with the number of its request, and a notification with -1.
//!
//! Source of the formats: ZooKeeper's `zookeeper.jute`, and `ZooDefs.OpCode` for the kinds.

use std::{fmt, iter};

/// The bytes of one direction of a connection, cut into messages. Messages that open the session are left out.
#[derive(Debug, Default)]
pub struct Messages {
    bytes: Vec<u8>,
    has_opened: bool,
}

impl Messages {
    /// Adds bytes, and returns the messages that they complete, without their lengths.
    pub fn add(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        self.bytes.extend_from_slice(bytes);
        let mut complete = Vec::new();
        while let Some(message) = self.next() {
            if std::mem::replace(&mut self.has_opened, true) {
                complete.push(message);
            }
        }
        complete
    }

    /// Takes the first message out of the bytes; `None` if it is not complete yet.
    fn next(&mut self) -> Option<Vec<u8>> {
        let length = u32::from_be_bytes(*self.bytes.first_chunk()?) as usize;
        let message = self.bytes.get(4..4 + length)?.to_vec();
        self.bytes.drain(..4 + length);
        Some(message)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// `flags`: 1 ephemeral, 2 sequential, 4 a container.
    Create {
        data: Vec<u8>,
        flags: i32,
    },
    /// -1 is any version.
    Delete {
        version: i32,
    },
    Exists {
        watches: bool,
    },
    GetData {
        watches: bool,
    },
    SetData {
        data: Vec<u8>,
        version: i32,
    },
    GetChildren {
        watches: bool,
    },
    Check {
        version: i32,
    },
    Sync,
    /// Several requests, of which all are done or none.
    Multi(Vec<Request>),
}

/// A request, with its number in the session.
///
/// Printed as typed in `zkCli.sh`: `create -s -e /lock- data`; `check` and `multi`, which that lacks, in the same style.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// 0 for a part of a `multi`.
    pub number: i32,
    /// The name of its kind in `ZooDefs.OpCode`: `create2`.
    pub kind: &'static str,
    /// Empty for a `multi`.
    pub path: String,
    pub operation: Operation,
}

impl Request {
    /// Reads a message to the server; `None` for what keeps or ends a session, and for kinds that no lock uses.
    #[must_use]
    pub fn parse(mut message: &[u8]) -> Option<Self> {
        let number = read_number(&mut message)?;
        let kind = read_number(&mut message)?;
        Self::read(number, kind, &mut message)
    }

    fn read(number: i32, kind: i32, message: &mut &[u8]) -> Option<Self> {
        let kind = kind_name(kind)?;
        let path = match kind {
            "multi" | "multiRead" => String::new(),
            _ => read_text(message)?,
        };
        let operation = match kind {
            "create" | "create2" | "createContainer" => read_creation(message)?,
            "delete" => Operation::Delete { version: read_number(message)? },
            "exists" => Operation::Exists { watches: read_bool(message)? },
            "getData" => Operation::GetData { watches: read_bool(message)? },
            "setData" => Operation::SetData { data: read_bytes(message)?, version: read_number(message)? },
            "getChildren" | "getChildren2" => Operation::GetChildren { watches: read_bool(message)? },
            "check" => Operation::Check { version: read_number(message)? },
            "sync" => Operation::Sync,
            _ => Operation::Multi(iter::from_fn(|| read_part(message)).collect()),
        };
        Some(Self { number, kind, path, operation })
    }

    /// The answer to this request, or its refusal, as `zkCli.sh` prints it, on one line; `None` if the message answers another
    /// request.
    #[must_use]
    pub fn answer(&self, mut message: &[u8]) -> Option<String> {
        if read_number(&mut message)? != self.number {
            return None;
        }
        let (_zxid, rest) = message.split_at_checked(8)?;
        message = rest;
        Some(match read_number(&mut message)? {
            0 => self.read_result(&mut message).unwrap_or_else(|| "OK".to_owned()),
            error => error_text(error),
        })
    }

    /// What an answer without an error says; `None` if it says only that it is done, or cannot be read.
    fn read_result(&self, message: &mut &[u8]) -> Option<String> {
        match &self.operation {
            Operation::Create { .. } => {
                let path = read_text(message)?;
                if self.kind != "create" {
                    read_stat(message)?;
                }
                Some(format!("Created {path}"))
            }
            Operation::Exists { .. } => Some(format!("cZxid = {:#x}", read_stat(message)?.created_zxid)),
            Operation::SetData { .. } => Some(format!("version {}", read_stat(message)?.version)),
            Operation::GetData { .. } => {
                let data = read_bytes(message)?;
                read_stat(message)?;
                Some(data_text(&data))
            }
            Operation::GetChildren { .. } => {
                let count = read_number(message)?;
                let names: Option<Vec<_>> = (0..count).map(|_| read_text(message)).collect();
                Some(format!("[{}]", names?.join(", ")))
            }
            Operation::Multi(parts) => {
                let results = parts.iter().map(|part| part.read_part_result(message));
                let results: Vec<_> = results.map_while(|result| result).collect();
                Some(results.join("; "))
            }
            Operation::Delete { .. } | Operation::Check { .. } | Operation::Sync => None,
        }
    }

    /// The result of one part of a `multi`; `None` at its end.
    fn read_part_result(&self, message: &mut &[u8]) -> Option<String> {
        let (kind, is_last, _) = (read_number(message)?, read_bool(message)?, read_number(message)?);
        match kind {
            _ if is_last => None,
            -1 => Some(error_text(read_number(message)?)),
            _ => Some(self.read_result(message).unwrap_or_else(|| "OK".to_owned())),
        }
    }

    /// The same request as a client with the chroot `root` sends it: paths below `root` without it. Other paths stay.
    #[must_use]
    pub fn below(mut self, root: &str) -> Self {
        if let Operation::Multi(parts) = self.operation {
            let parts = parts.into_iter().map(|part| part.below(root)).collect();
            self.operation = Operation::Multi(parts);
            return self;
        }
        self.path = match self.path.strip_prefix(root) {
            Some("") => "/".to_owned(),
            Some(rest) if rest.starts_with('/') => rest.to_owned(),
            _ => self.path,
        };
        self
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        let watch = |watches: &bool| if *watches { "-w " } else { "" };
        let of_version = |version: &i32| match version {
            -1 => String::new(),
            version => format!("-v {version} "),
        };
        match &self.operation {
            Operation::Create { data, flags } => {
                f.write_str("create ")?;
                for (option, flag) in [("-s ", 2), ("-e ", 1), ("-c ", 4)] {
                    if flags & flag != 0 {
                        f.write_str(option)?;
                    }
                }
                write!(f, "{path} {}", data_text(data))
            }
            Operation::Delete { version } => write!(f, "delete {}{path}", of_version(version)),
            Operation::Exists { watches } => write!(f, "stat {}{path}", watch(watches)),
            Operation::GetData { watches } => write!(f, "get {}{path}", watch(watches)),
            Operation::SetData { data, version } => {
                write!(f, "set {}{path} {}", of_version(version), data_text(data))
            }
            Operation::GetChildren { watches } => write!(f, "ls {}{path}", watch(watches)),
            Operation::Check { version } => write!(f, "check {}{path}", of_version(version)),
            Operation::Sync => write!(f, "sync {path}"),
            Operation::Multi(parts) => {
                let parts: Vec<_> = parts.iter().map(Self::to_string).collect();
                write!(f, "{} {{ {} }}", self.kind, parts.join("; "))
            }
        }
    }
}

/// The name of a kind in `ZooDefs.OpCode`; `None` for those that no lock uses.
fn kind_name(kind: i32) -> Option<&'static str> {
    Some(match kind {
        1 => "create",
        2 => "delete",
        3 => "exists",
        4 => "getData",
        5 => "setData",
        8 => "getChildren",
        9 => "sync",
        12 => "getChildren2",
        13 => "check",
        14 => "multi",
        15 => "create2",
        19 => "createContainer",
        22 => "multiRead",
        _ => return None,
    })
}

/// The fields that are used of what an answer says of a node.
struct Stat {
    created_zxid: i64,
    version: i32,
}

/// One part of a `multi`; `None` at its end.
fn read_part(message: &mut &[u8]) -> Option<Request> {
    let (kind, is_last, _) = (read_number(message)?, read_bool(message)?, read_number(message)?);
    if is_last {
        return None;
    }
    Request::read(0, kind, message)
}

fn read_creation(message: &mut &[u8]) -> Option<Operation> {
    let data = read_bytes(message)?;
    for _ in 0..read_number(message)? {
        let _rights = read_number(message)?;
        let (_scheme, _id) = (read_text(message)?, read_text(message)?);
    }
    let flags = read_number(message)?;
    Some(Operation::Create { data, flags })
}

fn read_stat(message: &mut &[u8]) -> Option<Stat> {
    const LENGTH: usize = 68;
    let (stat, rest) = message.split_at_checked(LENGTH)?;
    *message = rest;
    Some(Stat { created_zxid: i64::from_be_bytes(*stat.first_chunk()?), version: i32::from_be_bytes(*stat[32..].first_chunk()?) })
}

/// Data as text, or in hexadecimal if it is no text or has control characters.
fn data_text(data: &[u8]) -> String {
    match str::from_utf8(data) {
        Ok(text) if !text.contains(char::is_control) => text.to_owned(),
        _ => data.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")),
    }
}

/// A refusal in the words of `zkCli.sh`, without the path.
fn error_text(error: i32) -> String {
    match error {
        -2 => "not reached: another one was refused".to_owned(),
        -101 => "Node does not exist".to_owned(),
        -103 => "version No is not valid".to_owned(),
        -110 => "Node already exists".to_owned(),
        -111 => "Node not empty".to_owned(),
        -112 => "Session expired".to_owned(),
        error => format!("error {error}"),
    }
}

/// Takes a number off the front of the message, as the other `read_…` do; `None` if the message is too short.
fn read_number(message: &mut &[u8]) -> Option<i32> {
    let (number, rest) = message.split_first_chunk()?;
    *message = rest;
    Some(i32::from_be_bytes(*number))
}

fn read_bool(message: &mut &[u8]) -> Option<bool> {
    let (is, rest) = message.split_first()?;
    *message = rest;
    Some(*is != 0)
}

/// Bytes after their length; empty if there are none (-1).
fn read_bytes(message: &mut &[u8]) -> Option<Vec<u8>> {
    let length = usize::try_from(read_number(message)?).unwrap_or_default();
    let (bytes, rest) = message.split_at_checked(length)?;
    *message = rest;
    Some(bytes.to_vec())
}

fn read_text(message: &mut &[u8]) -> Option<String> {
    Some(String::from_utf8_lossy(&read_bytes(message)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of these parts, with its length before it.
    fn message(parts: &[&[u8]]) -> Vec<u8> {
        let content = parts.concat();
        let length = u32::try_from(content.len()).unwrap();
        [&length.to_be_bytes()[..], &content].concat()
    }

    fn number(number: i32) -> [u8; 4] {
        number.to_be_bytes()
    }

    fn text(text: &str) -> Vec<u8> {
        message(&[text.as_bytes()])
    }

    /// A creation of `/shop/lock-`, ephemeral and sequential, with one access right.
    fn creation() -> Vec<u8> {
        let right = [&number(31)[..], &text("world"), &text("anyone")].concat();
        let rights = [&number(1)[..], &right].concat();
        let (path, data) = (text("/shop/lock-"), text("8000"));
        message(&[&number(7), &number(15), &path, &data, &rights, &number(3)])
    }

    /// The only message in these bytes after the one that opens the session.
    fn read_after_opening(bytes: &[u8]) -> Vec<u8> {
        let mut messages = Messages::default();
        assert!(messages.add(&message(&[b"opens the session"])).is_empty());
        let mut complete = Vec::new();
        for byte in bytes {
            complete.extend(messages.add(&[*byte]));
        }
        assert_eq!(complete.len(), 1);
        complete.remove(0)
    }

    #[test]
    fn a_request_is_read_from_single_bytes() {
        let request = Request::parse(&read_after_opening(&creation())).unwrap();
        assert_eq!(request.kind, "create2");
        assert_eq!(request.to_string(), "create -s -e /shop/lock- 8000");
        assert_eq!(request.clone().below("/shop").path, "/lock-");
        assert_eq!(request.below("/sho").path, "/shop/lock-");
    }

    #[test]
    fn an_answer_is_that_of_its_request() {
        let request = Request::parse(&creation()[4..]).unwrap();
        let answer = |to, error, result: &[u8]| {
            let answer = message(&[&number(to), &[0; 8], &number(error), result]);
            request.answer(&answer[4..])
        };
        let created = [text("/shop/lock-0000000001"), vec![0; 68]].concat();
        let said = answer(7, 0, &created);
        assert_eq!(said.as_deref(), Some("Created /shop/lock-0000000001"));
        assert_eq!(answer(7, -110, &[]).as_deref(), Some("Node already exists"));
        assert_eq!(answer(8, 0, &created), None);
    }

    #[test]
    fn several_requests_are_read_to_their_end() {
        let part = |kind, path, rest: &[u8]| [&number(kind)[..], &[0], &number(-1), &text(path), rest].concat();
        let (deletion, check) = (part(2, "/a", &number(-1)), part(13, "/b", &number(4)));
        let end = [&number(-1)[..], &[1], &number(-1)].concat();
        let both = message(&[&number(9), &number(14), &deletion, &check, &end]);
        let request = Request::parse(&both[4..]).unwrap();
        assert_eq!(request.to_string(), "multi { delete /a; check -v 4 /b }");
        let done = |kind| [&number(kind)[..], &[0], &number(0)].concat();
        let answer = message(&[&number(9), &[0; 8], &number(0), &done(2), &done(13), &end]);
        assert_eq!(request.answer(&answer[4..]).as_deref(), Some("OK; OK"));
    }

    #[test]
    fn a_heartbeat_and_a_broken_message_are_no_request() {
        assert_eq!(Request::parse(&[number(-2), number(11)].concat()), None);
        for length in 0..creation().len() - 4 {
            assert_eq!(Request::parse(&creation()[4..4 + length]), None, "{length}");
        }
    }
}
