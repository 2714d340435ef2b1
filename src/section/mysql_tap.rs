//! A way to MySQL on which each statement on `tb_lock` is reported to a follower, and what the server answered.
//!
//! An actor of a replay has connections of its own over it: what the lock library sends for it is reported as well as what a
//! strategy sends to that table itself. Statements on other tables are reported where they are sent (`mysql.rs`).
//!
//! **What it cannot do**: report a statement that is not prepared, or anything of an encrypted connection (`ssl-mode`).
//!
//! Source of the formats: MySQL's *Client/Server Protocol*, "Command Phase", and "SSLRequest" of the connection phase.

use super::Points;
use oversell_lab::clients::proxy::Proxy;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    fmt, io,
};

/// The table whose statements are reported.
const TABLE: &str = "tb_lock";
/// The first byte of a command that prepares a statement.
const PREPARE: u8 = 0x16;
/// The first byte of a command that executes a prepared statement.
const EXECUTE: u8 = 0x17;
/// The first byte of an answer that the command is done.
const OK: u8 = 0;
/// The first byte of an error.
const ERROR: u8 = 0xff;
/// The length of the packet by which a client asks for encryption.
const SSL_REQUEST_LENGTH: usize = 32;

/// A proxy to the server at `server` (`host:port`) that reports to `points`. Errors: no port is free for it.
pub(crate) fn tap_mysql(server: &str, points: &Points) -> io::Result<Proxy> {
    let points = points.clone();
    let taps = Mutex::new((HashMap::<u64, Connection>::new(), Polls::default()));
    Proxy::filtered(server, move |piece| {
        let (connections, polls) = &mut *taps.lock();
        let connection = connections.entry(piece.connection).or_default();
        match piece.from_server {
            true => connection.report_answers(piece.bytes, polls, &points),
            false => connection.report_commands(piece.bytes, polls, &points),
        }
        true
    })
}

/// What has passed on one connection so far.
#[derive(Default)]
struct Connection {
    to_server: Packets,
    to_client: Packets,
    /// The prepared statements by their numbers.
    prepared: HashMap<u32, String>,
    /// The command without an answer.
    unanswered: Option<Command>,
    is_encrypted: bool,
}

/// A command to the server.
enum Command {
    /// The statement that is prepared.
    Prepare(String),
    /// The statement that is executed, and whether that was reported.
    Execute { line: String, is_reported: bool },
}

/// The statements, over all connections of the proxy, that have changed nothing since one has changed something, each with
/// its answer. A statement that a poll repeats is reported only if the answer differs.
#[derive(Default)]
struct Polls(BTreeMap<String, String>);

impl Connection {
    /// Reports the statements that these bytes of the client execute, except those in `polls`, and keeps each for its answer.
    fn report_commands(&mut self, bytes: &[u8], polls: &Polls, points: &Points) {
        if self.is_encrypted {
            return;
        }
        for packet in self.to_server.add(bytes) {
            // The packets of a login have higher numbers than the first packet of a command.
            if packet.number != 0 {
                // A later packet of this length is an answer to another way of authentication.
                self.is_encrypted |= packet.number == 1 && packet.content.len() == SSL_REQUEST_LENGTH;
                continue;
            }
            let Some((kind, rest)) = packet.content.split_first() else {
                continue;
            };
            self.unanswered = match *kind {
                PREPARE => Some(Command::Prepare(String::from_utf8_lossy(rest).into_owned())),
                EXECUTE => self.prepared_statement(rest).map(|line| {
                    let is_reported = !polls.0.contains_key(&line);
                    if is_reported {
                        points.report_sent(|| &line);
                    }
                    Command::Execute { line, is_reported }
                }),
                _ => None,
            };
        }
    }

    /// The statement whose number these bytes begin with, if it is one on the table.
    fn prepared_statement(&self, bytes: &[u8]) -> Option<String> {
        let number = u32::from_le_bytes(*bytes.first_chunk()?);
        let statement = self.prepared.get(&number)?;
        statement.contains(TABLE).then(|| statement.clone())
    }

    fn report_answers(&mut self, bytes: &[u8], polls: &mut Polls, points: &Points) {
        if self.is_encrypted {
            return;
        }
        for packet in self.to_client.add(bytes) {
            match self.unanswered.take() {
                Some(Command::Prepare(statement)) => {
                    // An OK begins with the statement's number.
                    let number = packet.content.strip_prefix(&[OK]).and_then(<[u8]>::first_chunk);
                    self.prepared.extend(number.map(|number| (u32::from_le_bytes(*number), statement)));
                }
                Some(Command::Execute { line, is_reported }) => match Answer::read(&packet) {
                    Some(answer) => polls.report(line, is_reported, &answer, points),
                    None => self.unanswered = Some(Command::Execute { line, is_reported }),
                },
                None => {}
            }
        }
    }
}

impl Polls {
    /// Reports the answer to a statement, unless it changed nothing and had the same answer before.
    fn report(&mut self, line: String, is_reported: bool, answer: &Answer, points: &Points) {
        let text = answer.to_string();
        if self.0.get(&line) == Some(&text) {
            return;
        }
        if !is_reported {
            points.report_sent(|| &line);
        }
        points.report_answer(&line, &text);
        match answer {
            Answer::Done { rows } if *rows > 0 => self.0.clear(),
            _ => drop(self.0.insert(line, text)),
        }
    }
}

/// The answer to a statement. It is printed as the `mysql` client prints it.
enum Answer {
    Done {
        rows: u64,
    },
    /// The number of an error.
    Refused(u16),
    /// The value of the only row and column.
    Value(i64),
}

impl Answer {
    /// Reads the packet that has the answer; `None` if that comes later.
    fn read(packet: &Packet) -> Option<Self> {
        let (kind, rest) = packet.content.split_first()?;
        match (*kind, packet.number) {
            (OK, 1) => Some(Self::Done { rows: read_length(rest)? }),
            (ERROR, _) => Some(Self::Refused(u16::from_le_bytes(*rest.first_chunk()?))),
            // A row: after the bits of its NULLs, 8 bytes for a BIGINT.
            (OK, _) => Some(Self::Value(i64::from_le_bytes(*rest.last_chunk()?))),
            _ => None,
        }
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done { rows: 1 } => f.write_str("Query OK, 1 row affected"),
            Self::Done { rows } => write!(f, "Query OK, {rows} rows affected"),
            Self::Refused(number) => write!(f, "ERROR {number}"),
            Self::Value(value) => write!(f, "{value}"),
        }
    }
}

/// A length-encoded integer.
fn read_length(bytes: &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    Some(match first {
        0xfc => u16::from_le_bytes(*rest.first_chunk()?).into(),
        0xfd => {
            let [a, b, c] = *rest.first_chunk()?;
            u32::from_le_bytes([a, b, c, 0]).into()
        }
        0xfe => u64::from_le_bytes(*rest.first_chunk()?),
        first => (*first).into(),
    })
}

/// A packet: its number in its command or answer, and its content.
struct Packet {
    number: u8,
    content: Vec<u8>,
}

/// The bytes of one direction of a connection, cut into packets.
#[derive(Default)]
struct Packets(Vec<u8>);

impl Packets {
    /// Adds bytes, and returns the packets that are complete by now.
    fn add(&mut self, bytes: &[u8]) -> Vec<Packet> {
        self.0.extend_from_slice(bytes);
        std::iter::from_fn(|| self.next()).collect()
    }

    fn next(&mut self) -> Option<Packet> {
        let [a, b, c, number] = *self.0.first_chunk()?;
        let length = u32::from_le_bytes([a, b, c, 0]) as usize;
        let content = self.0.get(4..4 + length)?.to_vec();
        self.0.drain(..4 + length);
        Some(Packet { number, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::points::{Follower, FollowerEvent};
    use std::time::Duration;
    use tokio::sync::{mpsc, watch};

    fn packet(number: u8, content: &[u8]) -> Vec<u8> {
        let [a, b, c, _] = u32::try_from(content.len()).unwrap().to_le_bytes();
        [&[a, b, c, number], content].concat()
    }

    /// What a follower hears of these bytes, each to the server or, if marked so, from it.
    fn heard(pieces: &[(bool, Vec<u8>)]) -> Vec<String> {
        let (events, mut received) = mpsc::unbounded_channel();
        let (_stops, stops) = watch::channel(Vec::new());
        let linger = Duration::ZERO;
        let points = Follower { events, stops, linger };
        let (points, mut connection, mut polls) = (Points(Some(points)), Connection::default(), Polls::default());
        for (from_server, bytes) in pieces {
            match from_server {
                true => connection.report_answers(bytes, &mut polls, &points),
                false => connection.report_commands(bytes, &polls, &points),
            }
        }
        let events = std::iter::from_fn(|| received.try_recv().ok());
        let said = events.map(|event| match event {
            FollowerEvent::Sent(line) => line,
            FollowerEvent::Answered { answer, .. } => format!("> {answer}"),
            FollowerEvent::Point { .. } => unreachable!("a tap passes no point"),
        });
        said.collect()
    }

    fn prepare(number: u8, statement: &str) -> [(bool, Vec<u8>); 2] {
        let prepared = [&[OK, number][..], &[0; 10]].concat();
        let statement = [&[PREPARE], statement.as_bytes()].concat();
        [(false, packet(0, &statement)), (true, packet(1, &prepared))]
    }

    fn execute(number: u8, answer: &[u8]) -> [(bool, Vec<u8>); 2] {
        let command = packet(0, &[EXECUTE, number, 0, 0, 0, 0]);
        [(false, command), (true, packet(1, answer))]
    }

    const DUPLICATE: &[u8] = &[ERROR, 0x26, 0x04, b'#'];
    const ONE_ROW: &[u8] = &[OK, 1, 0];

    #[test]
    fn a_statement_is_told_by_its_text_and_answer() {
        let insert = "INSERT INTO tb_lock (lock_name) VALUES (?)";
        let count = "SELECT COUNT(*) FROM tb_lock WHERE lock_name = ?";
        let row = [&[OK, 0][..], &2_i64.to_le_bytes()].concat();
        let rows = [packet(1, &[1]), packet(2, &[3]), packet(3, &row), packet(4, &[0xfe])];
        let pieces = [
            &prepare(1, insert)[..],
            &execute(1, DUPLICATE),
            &prepare(2, count),
            &[(false, packet(0, &[EXECUTE, 2, 0, 0, 0])), (true, rows.concat())],
        ];
        assert_eq!(heard(&pieces.concat()), [insert, "> ERROR 1062", count, "> 2"]);
    }

    #[test]
    fn who_polls_is_told_once_until_the_answer_changes() {
        let insert = "INSERT INTO tb_lock (lock_name) VALUES (?)";
        let pieces =
            [&prepare(1, insert)[..], &execute(1, DUPLICATE), &execute(1, DUPLICATE), &execute(1, ONE_ROW), &execute(1, ONE_ROW)];
        let done = "> Query OK, 1 row affected";
        let told = [insert, "> ERROR 1062", insert, done, insert, done];
        assert_eq!(heard(&pieces.concat()), told);
    }

    #[test]
    fn other_tables_and_encrypted_bytes_are_not_told() {
        let stock = prepare(1, "UPDATE db_stock SET count = ?");
        let lock = prepare(2, "DELETE FROM tb_lock");
        let both = [&stock[..], &execute(1, ONE_ROW), &lock, &execute(2, ONE_ROW)].concat();
        assert_eq!(heard(&both).len(), 2);
        let authenticates_anew = (false, packet(3, &[0; SSL_REQUEST_LENGTH]));
        assert_eq!(heard(&[&[authenticates_anew][..], &both].concat()).len(), 2);
        let asks_for_encryption = (false, packet(1, &[0; SSL_REQUEST_LENGTH]));
        assert!(heard(&[&[asks_for_encryption][..], &both].concat()).is_empty());
    }
}
