//! A way to ZooKeeper on which each request of a client is reported to a follower, and what the server answered.
//!
//! An actor of a replay has a session of its own over it: what a strategy sends itself is reported as well as what the lock
//! library sends for it. Heartbeats are not.

use super::Points;
use oversell_lab::clients::{
    proxy::Proxy,
    zookeeper_wire::{Messages, Operation, Request},
};
use parking_lot::Mutex;
use std::{collections::HashMap, io};

/// A proxy to each of the servers in `connect` (`host:port[,host:port…]`), and the same list with the proxies' addresses.
/// Paths are reported as a client with this chroot names them.
pub(crate) fn tap_zookeeper(connect: &str, chroot: &str, points: &Points) -> io::Result<(Vec<Proxy>, String)> {
    let proxies = connect.split(',').map(|server| {
        let (points, chroot) = (points.clone(), chroot.to_owned());
        let connections = Mutex::new(HashMap::<u64, Connection>::new());
        Proxy::filtered(server, move |piece| {
            let mut connections = connections.lock();
            let connection = connections.entry(piece.connection).or_default();
            match piece.from_server {
                true => connection.report_answers(piece.bytes, &points),
                false => connection.report_requests(piece.bytes, &chroot, &points),
            }
            true
        })
    });
    let proxies = proxies.collect::<io::Result<Vec<_>>>()?;
    let addresses: Vec<_> = proxies.iter().map(Proxy::address).collect();
    Ok((proxies, addresses.join(",")))
}

/// What has passed on one connection so far.
#[derive(Default)]
struct Connection {
    to_server: Messages,
    to_client: Messages,
    /// Requests without an answer, in the order in which they were sent.
    unanswered: Vec<Request>,
}

impl Connection {
    fn report_requests(&mut self, bytes: &[u8], chroot: &str, points: &Points) {
        for message in self.to_server.add(bytes) {
            let request = Request::parse(&message).map(|request| request.below(chroot));
            // A `sync` of the root is the client's heartbeat.
            let is_heartbeat = |it: &Request| it.operation == Operation::Sync && it.path == "/";
            if let Some(request) = request.filter(|it| !is_heartbeat(it)) {
                points.report_sent(|| request.to_string());
                self.unanswered.push(request);
            }
        }
    }

    fn report_answers(&mut self, bytes: &[u8], points: &Points) {
        for message in self.to_client.add(bytes) {
            let answers = self.unanswered.iter().map(|request| request.answer(&message));
            let Some((n, answer)) = answers.enumerate().find_map(|(n, it)| Some((n, it?))) else {
                continue;
            };
            points.report_answer(self.unanswered.remove(n), answer);
        }
    }
}
