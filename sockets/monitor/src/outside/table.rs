// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's socket tables in `/proc/PID/net`, for the namespace of a process.

use crate::end::peer_of_unix;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;

/// `TCP_ESTABLISHED` and `TCP_LISTEN` of the kernel.
const ESTABLISHED: &str = "01";
const LISTENING: &str = "0A";
/// `SOCK_STREAM`, `SS_CONNECTED` and `__SO_ACCEPTCON` of the kernel, in the table of Unix sockets.
const UNIX_STREAM: &str = "0001";
const UNIX_CONNECTED: &str = "03";
const UNIX_LISTENING: u32 = 1 << 16;

/// Kind of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Stream,
    Listening,
    Datagram,
}

/// Names of the tables.
const TABLES: [&str; 5] = ["tcp", "tcp6", "udp", "udp6", "unix"];

/// A socket in a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    pub kind: Kind,
    pub is_unix: bool,
    pub established: bool,
    pub inode: u64,
    local: String,
    remote: String,
}

/// Returns the socket with this inode, in the namespace of a process.
pub fn by_inode(pid: i32, inode: u64) -> Option<Found> {
    let is_it = |found: &Found| found.inode == inode;
    TABLES.into_iter().find_map(|name| find(pid, name, is_it))
}

/// Peer of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Peer {
    /// Inode of the peer's socket.
    Socket(u64),
    /// No process holds it: it is not accepted yet, or closed.
    Nobodys,
    /// It is in no table that is visible from here.
    Unseen,
}

/// Returns the peer of a connection, if it is in the same namespace.
pub fn peer(pid: i32, inode: u64) -> Peer {
    let Some(one) = by_inode(pid, inode) else { return Peer::Unseen };
    if one.is_unix {
        // The kernel reports only sockets of the caller's namespace.
        let of = |who: &str| fs::metadata(format!("/proc/{who}/ns/net")).map(|it| it.ino()).ok();
        let found = peer_of_unix(inode).filter(|_| of("self") == of(&pid.to_string()));
        return found.map_or(Peer::Unseen, Peer::Socket);
    }
    let is_peer = |found: &Found| found.local == one.remote && found.remote == one.local;
    match ["tcp", "tcp6"].iter().find_map(|name| find(pid, name, is_peer)) {
        None => Peer::Unseen,
        Some(Found { inode: 0, .. }) => Peer::Nobodys,
        Some(found) => Peer::Socket(found.inode),
    }
}

fn find(pid: i32, name: &str, is_it: impl Fn(&Found) -> bool) -> Option<Found> {
    let file = File::open(format!("/proc/{pid}/net/{name}")).ok()?;
    let lines = BufReader::new(file).lines().skip(1).map_while(Result::ok);
    lines.filter_map(|line| read(&line, name)).find(is_it)
}

/// Parses a line of a table.
fn read(line: &str, table: &str) -> Option<Found> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if table == "unix" {
        return read_unix(&words);
    }
    let state = *words.get(3)?;
    let kind = match table {
        "tcp" | "tcp6" if state == LISTENING => Kind::Listening,
        "tcp" | "tcp6" => Kind::Stream,
        _ => Kind::Datagram,
    };
    Some(Found {
        kind,
        is_unix: false,
        established: state == ESTABLISHED,
        inode: words.get(9)?.parse().ok()?,
        local: plain(words.get(1)?),
        remote: plain(words.get(2)?),
    })
}

fn read_unix(words: &[&str]) -> Option<Found> {
    let flags = u32::from_str_radix(words.get(3)?, 16).ok()?;
    let kind = match *words.get(4)? {
        UNIX_STREAM if flags & UNIX_LISTENING != 0 => Kind::Listening,
        UNIX_STREAM => Kind::Stream,
        _ => Kind::Datagram,
    };
    let (local, remote) = (String::new(), String::new());
    let established = *words.get(5)? == UNIX_CONNECTED;
    let inode = words.get(6)?.parse().ok()?;
    Some(Found { kind, is_unix: true, established, inode, local, remote })
}

/// Converts an IPv4 address mapped into IPv6 to IPv4.
fn plain(address: &str) -> String {
    address.strip_prefix("0000000000000000FFFF0000").unwrap_or(address).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};

    fn seen(socket: BorrowedFd<'_>) -> Found {
        let pid = i32::try_from(std::process::id()).unwrap();
        let file = File::from(socket.try_clone_to_owned().unwrap());
        let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap());
        by_inode(pid, inode).expect("it is in a table")
    }

    #[test]
    fn sockets_are_found_by_their_inodes() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let listener = TcpListener::bind(address).unwrap();
            assert_eq!(seen(listener.as_fd()).kind, Kind::Listening);
            let mut to = listener.local_addr().unwrap();
            if to.ip().is_unspecified() {
                to.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
            }
            let client = TcpStream::connect(to).unwrap();
            let own = i32::try_from(std::process::id()).unwrap();
            assert_eq!(peer(own, seen(client.as_fd()).inode), Peer::Nobodys, "not accepted");
            let (server, _) = listener.accept().unwrap();
            let (here, there) = (seen(client.as_fd()), seen(server.as_fd()));
            assert_eq!((here.kind, here.established), (Kind::Stream, true));
            let pid = i32::try_from(std::process::id()).unwrap();
            assert_eq!(peer(pid, here.inode), Peer::Socket(there.inode), "{address}");
            assert_eq!(peer(pid, there.inode), Peer::Socket(here.inode), "{address}");
        }
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(seen(datagrams.as_fd()).kind, Kind::Datagram);
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
        let found = seen(listener.as_fd());
        assert_eq!((found.kind, found.is_unix), (Kind::Listening, true));
        let (one, other) = UnixStream::pair().unwrap();
        let (here, there) = (seen(one.as_fd()), seen(other.as_fd()));
        assert_eq!((here.kind, here.is_unix, here.established), (Kind::Stream, true, true));
        let pid = i32::try_from(std::process::id()).unwrap();
        assert_eq!(peer(pid, here.inode), Peer::Socket(there.inode));
        drop(other);
        assert_eq!(peer(pid, here.inode), Peer::Unseen);
        let (one, _other) = UnixDatagram::pair().unwrap();
        assert_eq!(seen(one.as_fd()).kind, Kind::Datagram);
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        for line in ["", "0: 1 2", "a b c d e f g h i j k"] {
            TABLES.iter().for_each(|table| assert_eq!(read(line, table), None));
        }
    }
}
