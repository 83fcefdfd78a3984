// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ends of TCP connections, identified by their addresses.

use super::option::{namespace, number, option};
use freeport_sockets_proto::Reason;
use std::mem::{size_of, zeroed};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd};

/// `TCP_ESTABLISHED` of the kernel.
const ESTABLISHED: u8 = 1;

/// An address, and its interface if it is valid on one only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Address {
    /// IP address and port.
    pub address: SocketAddr,
    scope: u32,
}

/// Returns the cookie of its network namespace, and the addresses of both ends.
pub fn examine(socket: BorrowedFd<'_>) -> Result<(u64, Address, Address), Reason> {
    if number(socket, libc::SOL_SOCKET, libc::SO_PROTOCOL) != Some(libc::IPPROTO_TCP) {
        return Err(Reason::Family);
    }
    // SAFETY: all zero is a valid value.
    let mut about: libc::tcp_info = unsafe { zeroed() };
    option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut about).ok_or(Reason::NotConnected)?;
    if about.tcpi_state != ESTABLISHED {
        return Err(Reason::NotConnected);
    }
    // With encryption in the kernel, the bytes sent are not the bytes received.
    let mut upper = [0_u8; 16];
    let has_upper = option(socket, libc::IPPROTO_TCP, libc::TCP_ULP, &mut upper);
    if has_upper.is_some() && upper != [0; 16] {
        return Err(Reason::PastLibrary);
    }
    let local = address(socket, libc::getsockname).ok_or(Reason::NotConnected)?;
    let remote = address(socket, libc::getpeername).ok_or(Reason::NotConnected)?;
    let net = namespace(socket).ok_or(Reason::Family)?;
    Ok((net, local, remote))
}

/// Returns whether no process of this machine can have the remote address, in the caller's
/// namespace.
pub fn is_elsewhere(local: &Address, remote: &Address) -> bool {
    let address = remote.address.ip();
    if address.is_loopback() || address == local.address.ip() || remote.scope != 0 {
        return false;
    }
    // Only addresses of this machine can be bound to.
    let bound = UdpSocket::bind(SocketAddr::new(address, 0));
    bound.is_err_and(|error| error.kind() == std::io::ErrorKind::AddrNotAvailable)
}

type Ask = unsafe extern "C" fn(i32, *mut libc::sockaddr, *mut libc::socklen_t) -> i32;

/// Returns the address that `ask` reports; an IPv4 address mapped into IPv6 as IPv4.
fn address(socket: BorrowedFd<'_>, ask: Ask) -> Option<Address> {
    // SAFETY: all zero is a valid value.
    let mut found: libc::sockaddr_in6 = unsafe { zeroed() };
    let mut length = size_of::<libc::sockaddr_in6>() as libc::socklen_t;
    // SAFETY: there is room for the address, and `length` is its size.
    if unsafe { ask(socket.as_raw_fd(), (&raw mut found).cast(), &mut length) } != 0 {
        return None;
    }
    let port = u16::from_be(found.sin6_port);
    let family = i32::from(found.sin6_family);
    let (ip, scope) = match family {
        // Both structures have the port at the same offset; the IPv4 address follows it.
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
