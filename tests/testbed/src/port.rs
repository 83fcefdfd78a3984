// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ports for servers that take a port number on their command line.
//!
//! The kernel chooses the port, and the test process reserves it: a socket stays bound to it with
//! `SO_REUSEADDR`, and never listens. As long as it exists, the kernel gives the port to no other
//! program that requests any free port, and to no outgoing connection; a server that sets
//! `SO_REUSEADDR`, as is usual, can bind it and listen.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Mutex;

/// Sockets that hold ports until the test process ends.
static HELD: Mutex<Vec<OwnedFd>> = Mutex::new(vec![]);

/// Returns a TCP port on the loopback interface, reserved for this process until it ends.
///
/// # Panics
/// If the kernel has no port left.
pub fn free_port() -> u16 {
    let (socket, port) = bind().expect("the kernel has a free port");
    HELD.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(socket);
    port
}

fn bind() -> io::Result<(OwnedFd, u16)> {
    // SAFETY: the call takes no pointer.
    let number =
        check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the descriptor is new and has no other owner.
    let socket = unsafe { OwnedFd::from_raw_fd(number) };
    let one: libc::c_int = 1;
    // SAFETY: the pointer and the length describe `one`, which outlives the call.
    check(unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_REUSEADDR,
            (&raw const one).cast(),
            size_of_val(&one) as libc::socklen_t,
        )
    })?;
    let mut address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes([127, 0, 0, 1]) },
        sin_zero: [0; 8],
    };
    let mut length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the pointer and the length describe `address`, which outlives the call.
    check(unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) })?;
    // SAFETY: `length` is the number of bytes of `address` that the kernel may write.
    check(unsafe {
        libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut length)
    })?;
    Ok((socket, u16::from_be(address.sin_port)))
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn a_held_port_goes_to_a_server_and_to_nobody_who_asks_for_any() {
        let held = free_port();
        // The standard library sets SO_REUSEADDR.
        for address in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
            let server = TcpListener::bind((address, held)).expect("the server binds it");
            TcpStream::connect((Ipv4Addr::LOCALHOST, held)).expect("and listens");
            drop(server);
        }
        let held: BTreeSet<u16> = (0..200).map(|_| free_port()).chain([held]).collect();
        assert_eq!(held.len(), 201, "each port has one holder");
        let others: Vec<_> = (0..200)
            .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("ports are left"))
            .collect();
        let port = |it: &TcpListener| it.local_addr().expect("it is bound").port();
        assert!(others.iter().all(|other| !held.contains(&port(other))));
    }
}
