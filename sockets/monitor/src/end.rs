// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a claimed descriptor is, by the kernel's word.
//!
//! Nothing is asked of it before it is known to be a socket: a file system of somebody's own could
//! let us wait for the answer.

use freeport_sockets_proto::Reason;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd};

/// `TCP_ESTABLISHED` of the kernel.
const ESTABLISHED: u8 = 1;

/// What tells a connection's end from all others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// The cookie of the namespace of the network.
    pub net: u64,
    /// The address of this end.
    pub local: Address,
    /// The address of the other one.
    pub remote: Address,
}

/// An address, and on which interface if it is of one only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Address {
    /// The address and the port.
    pub address: SocketAddr,
    scope: u32,
}

/// A claimed end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// Which one.
    pub key: Key,
    /// The inode of the socket, as it stands in `/proc/PID/fd`.
    pub inode: u64,
    /// What the kernel calls the socket; no other is called so until the machine begins anew.
    pub cookie: u64,
}

impl Key {
    /// The key of the other end.
    pub fn reversed(self) -> Self {
        Self { net: self.net, local: self.remote, remote: self.local }
    }
}

/// What it is, if it is an end of a TCP connection that is established.
pub fn examine(socket: BorrowedFd<'_>) -> Result<End, Reason> {
    let family = number(socket, libc::SOL_SOCKET, libc::SO_DOMAIN).ok_or(Reason::NotStream)?;
    if number(socket, libc::SOL_SOCKET, libc::SO_TYPE) != Some(libc::SOCK_STREAM) {
        return Err(Reason::NotStream);
    }
    let protocol = number(socket, libc::SOL_SOCKET, libc::SO_PROTOCOL);
    let is_internet = family == libc::AF_INET || family == libc::AF_INET6;
    if !is_internet || protocol != Some(libc::IPPROTO_TCP) {
        return Err(Reason::Family);
    }
    // SAFETY: all zero is a value of it.
    let mut about: libc::tcp_info = unsafe { zeroed() };
    option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut about).ok_or(Reason::NotConnected)?;
    if about.tcpi_state != ESTABLISHED {
        return Err(Reason::NotConnected);
    }
    // Where the kernel encrypts, what is sent is not what is received.
    let mut upper = [0_u8; 16];
    let has_upper = option(socket, libc::IPPROTO_TCP, libc::TCP_ULP, &mut upper);
    if has_upper.is_some() && upper != [0; 16] {
        return Err(Reason::PastLibrary);
    }
    let local = address(socket, libc::getsockname).ok_or(Reason::NotConnected)?;
    let remote = address(socket, libc::getpeername).ok_or(Reason::NotConnected)?;
    let net = namespace(socket).ok_or(Reason::Family)?;
    let inode = inode(socket).ok_or(Reason::Resources)?;
    let cookie = cookie(socket).ok_or(Reason::Resources)?;
    Ok(End { key: Key { net, local, remote }, inode, cookie })
}

fn cookie(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut cookie = 0_u64;
    option(socket, libc::SOL_SOCKET, libc::SO_COOKIE, &mut cookie)?;
    Some(cookie)
}

/// The cookie of the namespace that a socket is in.
pub fn namespace(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut cookie = 0_u64;
    option(socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, &mut cookie)?;
    Some(cookie)
}

/// Whether no process of this machine can have an address, in the namespace of who asks.
pub fn is_elsewhere(key: &Key) -> bool {
    let address = key.remote.address.ip();
    if address.is_loopback() || address == key.local.address.ip() || key.remote.scope != 0 {
        return false;
    }
    // Only what is an address of this machine can be bound to.
    let bound = UdpSocket::bind(SocketAddr::new(address, 0));
    bound.is_err_and(|error| error.kind() == std::io::ErrorKind::AddrNotAvailable)
}

fn number(socket: BorrowedFd<'_>, level: i32, name: i32) -> Option<i32> {
    let mut value = 0_i32;
    option(socket, level, name, &mut value)?;
    Some(value)
}

/// Reads an option of a socket into what is made of numbers only.
fn option<T: Copy>(socket: BorrowedFd<'_>, level: i32, name: i32, into: &mut T) -> Option<()> {
    let mut length = size_of::<T>() as libc::socklen_t;
    let value = (into as *mut T).cast();
    // SAFETY: room for `length` bytes; each caller passes a type that any bytes are a value of.
    let result = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, value, &mut length) };
    (result == 0).then_some(())
}

fn inode(socket: BorrowedFd<'_>) -> Option<u64> {
    // SAFETY: all zero is a value of it, and there is room for the answer.
    unsafe {
        let mut about: libc::stat = zeroed();
        (libc::fstat(socket.as_raw_fd(), &mut about) == 0).then_some(about.st_ino)
    }
}

type Ask = unsafe extern "C" fn(i32, *mut libc::sockaddr, *mut libc::socklen_t) -> i32;

/// The address that `ask` gives; one of IPv4 that is mapped into IPv6 is one of IPv4.
fn address(socket: BorrowedFd<'_>, ask: Ask) -> Option<Address> {
    // SAFETY: all zero is a value of it.
    let mut found: libc::sockaddr_in6 = unsafe { zeroed() };
    let mut length = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    // SAFETY: room for the answer, and its length.
    if unsafe { ask(socket.as_raw_fd(), (&raw mut found).cast(), &mut length) } != 0 {
        return None;
    }
    let port = u16::from_be(found.sin6_port);
    let family = i32::from(found.sin6_family);
    let (ip, scope) = match family {
        // Both have the port at the same place, and the address of IPv4 is behind it.
        libc::AF_INET => (Ipv4Addr::from(found.sin6_flowinfo.to_ne_bytes()).into(), 0),
        libc::AF_INET6 => {
            let ip = Ipv6Addr::from(found.sin6_addr.s6_addr);
            let mapped = ip.to_ipv4_mapped();
            (mapped.map_or(IpAddr::V6(ip), IpAddr::V4), found.sin6_scope_id)
        }
        _ => return None,
    };
    Some(Address { address: SocketAddr::new(ip, port), scope })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Shutdown, TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    fn pair(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).unwrap();
        let mut to = listener.local_addr().unwrap();
        if to.ip().is_unspecified() {
            to.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let client = TcpStream::connect(to).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn two_ends_of_a_connection_are_each_others() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let (client, server) = pair(address);
            let (here, there) = (examine(client.as_fd()), examine(server.as_fd()));
            let (here, there) = (here.unwrap(), there.unwrap());
            assert_eq!(here.key.reversed(), there.key, "{address}");
            assert_eq!(here.key.local.address.ip(), client.local_addr().unwrap().ip());
            assert_ne!(here.inode, there.inode);
            assert!(!is_elsewhere(&here.key));
        }
    }

    #[test]
    fn what_is_no_established_connection_is_refused() {
        let (client, server) = pair("127.0.0.1:0");
        server.shutdown(Shutdown::Write).unwrap();
        assert_eq!(examine(server.as_fd()), Err(Reason::NotConnected));
        drop((client, server));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(examine(listener.as_fd()), Err(Reason::NotConnected));
        let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(examine(datagrams.as_fd()), Err(Reason::NotStream));
        let (local, _) = UnixStream::pair().unwrap();
        assert_eq!(examine(local.as_fd()), Err(Reason::Family));
        let file = std::fs::File::open("/proc/self/maps").unwrap();
        assert_eq!(examine(file.as_fd()), Err(Reason::NotStream));
    }

    #[test]
    fn an_address_of_nobody_here_is_elsewhere() {
        let (client, _server) = pair("127.0.0.1:0");
        let mut key = examine(client.as_fd()).unwrap().key;
        // One that is kept for documentation.
        key.remote.address.set_ip(Ipv4Addr::new(192, 0, 2, 77).into());
        assert!(is_elsewhere(&key));
    }
}
