//! Ports that no other lab of this machine gets, whether anybody listens on them or not.
//!
//! The system hands ports found by binding port 0 to outgoing connections as well. By the time a server binds such a
//! port, or binds it again after a crash, it may be taken. So ports come from below that range, and each is claimed by
//! an abstract Unix socket: the kernel gives the name to one process at a time and releases it when the process dies.

use crate::terminal::{
    chinese::localized,
    failure::{Failure, unusable},
};
use std::{
    io,
    net::{Ipv4Addr, TcpListener},
    ops::Range,
    os::{
        linux::net::SocketAddrExt,
        unix::net::{SocketAddr, UnixListener},
    },
};

/// The range of free ports, below the usual `ip_local_port_range` of Linux, which begins at 32768.
const FREE_PORT_RANGE: Range<u16> = 20_000..32_000;

/// A claimed port of 127.0.0.1; the claim ends when this is dropped.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _claim: UnixListener,
}

impl Port {
    /// Claims a port for `server`; 0 claims any free one. Fails if it is taken; the error names `option`, which chooses another.
    pub(super) fn claim(number: u16, server: &str, option: &str) -> Result<Self, Failure> {
        if number == 0 {
            return Self::free();
        }
        Self::claim_number(number).map_err(|e| {
            Failure::Unusable(match e.kind() {
                io::ErrorKind::AddrInUse => localized!(
                    "{server} 的端口 {number} 被占用：停掉占用者，或用 {option} 另选一个",
                    "port {number} for {server} is occupied: stop what listens there, or choose another port with {option}"
                ),
                _ => localized!(
                    "{server} 的端口 {number} 不能用（{e}）：用 {option} 另选一个",
                    "port {number} for {server} cannot be used ({e}): choose another port with {option}"
                ),
            })
        })
    }

    /// Claims any free port.
    pub fn free() -> Result<Self, Failure> {
        let first = fastrand::u16(FREE_PORT_RANGE);
        (first..FREE_PORT_RANGE.end)
            .chain(FREE_PORT_RANGE.start..first)
            .find_map(|number| Self::claim_number(number).ok())
            .ok_or_else(|| {
                unusable!("no port from {} to {} is free: stop other labs", FREE_PORT_RANGE.start, FREE_PORT_RANGE.end)
            })
    }

    /// Claims the port by a socket's name that one process can have; fails if another has it, or if anybody listens on the
    /// port.
    fn claim_number(number: u16) -> io::Result<Self> {
        let name = SocketAddr::from_abstract_name(format!("oversell-lab-port-{number}"))?;
        let claim = UnixListener::bind_addr(&name)?;
        TcpListener::bind((Ipv4Addr::LOCALHOST, number))?;
        Ok(Self { number, _claim: claim })
    }

    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn no_port_is_handed_out_twice_while_it_is_held() {
        let ports: Vec<Port> = (0..200).map(|_| Port::claim(0, "any", "--any").unwrap()).collect();
        let numbers: HashSet<u16> = ports.iter().map(Port::number).collect();
        assert_eq!(numbers.len(), ports.len());
    }

    #[test]
    fn a_claimed_port_is_refused_although_nobody_listens_yet() {
        let port = Port::claim(0, "any", "--any").unwrap();
        assert!(Port::claim(port.number(), "any", "--any").is_err());
        let number = port.number();
        drop(port);
        assert!(Port::claim(number, "any", "--any").is_ok(), "given back when dropped");
    }
}
