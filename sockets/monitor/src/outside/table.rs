// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's tables of sockets, as `/proc/PID/net` has them for the namespace of a process.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// `TCP_ESTABLISHED` and `TCP_LISTEN` of the kernel.
const ESTABLISHED: &str = "01";
const LISTENING: &str = "0A";

/// What kind of socket it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Stream,
    Listening,
    Datagram,
    Unix,
}

/// A socket in a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    pub kind: Kind,
    pub established: bool,
    pub inode: u64,
    local: String,
    remote: String,
}

/// The socket with that inode, in the namespace of a process.
pub fn by_inode(pid: i32, inode: u64) -> Option<Found> {
    let is_it = |found: &Found| found.inode == inode;
    let tables = [("tcp", Kind::Stream), ("tcp6", Kind::Stream), ("udp", Kind::Datagram)];
    let tables = tables.into_iter().chain([("udp6", Kind::Datagram), ("unix", Kind::Unix)]);
    tables.into_iter().find_map(|(name, kind)| find(pid, name, kind, is_it))
}

/// The inode of the other end of a connection, if that is in the same namespace.
pub fn peer(pid: i32, inode: u64) -> Option<u64> {
    let one = by_inode(pid, inode)?;
    let is_peer = |found: &Found| found.local == one.remote && found.remote == one.local;
    let found = ["tcp", "tcp6"].iter().find_map(|name| find(pid, name, Kind::Stream, is_peer))?;
    // A socket without a process, which still says farewell, has none.
    (found.inode != 0).then_some(found.inode)
}

fn find(pid: i32, name: &str, kind: Kind, is_it: impl Fn(&Found) -> bool) -> Option<Found> {
    let file = File::open(format!("/proc/{pid}/net/{name}")).ok()?;
    let lines = BufReader::new(file).lines().skip(1).map_while(Result::ok);
    lines.filter_map(|line| read(&line, kind)).find(is_it)
}

/// A line of a table.
fn read(line: &str, kind: Kind) -> Option<Found> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if kind == Kind::Unix {
        let inode = words.get(6)?.parse().ok()?;
        let (local, remote) = (String::new(), String::new());
        return Some(Found { kind, established: true, inode, local, remote });
    }
    let state = *words.get(3)?;
    let kind = match kind {
        Kind::Stream if state == LISTENING => Kind::Listening,
        other => other,
    };
    Some(Found {
        kind,
        established: state == ESTABLISHED,
        inode: words.get(9)?.parse().ok()?,
        local: plain(words.get(1)?),
        remote: plain(words.get(2)?),
    })
}

/// An address of IPv4 that is mapped into IPv6 as one of IPv4.
fn plain(address: &str) -> String {
    address.strip_prefix("0000000000000000FFFF0000").unwrap_or(address).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::{AsFd, BorrowedFd};
    use std::os::unix::net::UnixListener;

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
            let (server, _) = listener.accept().unwrap();
            let (here, there) = (seen(client.as_fd()), seen(server.as_fd()));
            assert_eq!((here.kind, here.established), (Kind::Stream, true));
            let pid = i32::try_from(std::process::id()).unwrap();
            assert_eq!(peer(pid, here.inode), Some(there.inode), "{address}");
            assert_eq!(peer(pid, there.inode), Some(here.inode), "{address}");
        }
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(seen(datagrams.as_fd()).kind, Kind::Datagram);
        let folder = tempfile::tempdir().unwrap();
        let local = UnixListener::bind(folder.path().join("socket")).unwrap();
        assert_eq!(seen(local.as_fd()).kind, Kind::Unix);
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        for line in ["", "0: 1 2", "a b c d e f g h i j k"] {
            assert_eq!(read(line, Kind::Stream), None);
            assert_eq!(read(line, Kind::Unix), None);
        }
    }
}
