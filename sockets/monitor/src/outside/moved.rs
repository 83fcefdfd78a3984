// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Determines whether another process's connection has had enough traffic to be claimed.

use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Number of bytes from which an end is claimed.
const BYTES: u64 = 32 << 10;
/// Certainly more than eight operations: several may share a packet, but few send several packets.
const PACKETS: u32 = 64;

/// Returns whether it has; `None` if the process cannot be inspected.
pub fn is_much(pid: i32, number: i32) -> Option<bool> {
    let process = opened(libc::SYS_pidfd_open, pid, 0)?;
    let socket = opened(libc::SYS_pidfd_getfd, process.as_raw_fd(), number)?;
    // SAFETY: all zero is a valid value of this structure.
    let mut about: libc::tcp_info = unsafe { zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let value = (&raw mut about).cast();
    let (level, name) = (libc::IPPROTO_TCP, libc::TCP_INFO);
    let number = socket.as_raw_fd();
    // SAFETY: `length` is the size of `about`, whose fields are numbers.
    if unsafe { libc::getsockopt(number, level, name, value, &mut length) } != 0 {
        return None;
    }
    let bytes = about.tcpi_bytes_acked.saturating_add(about.tcpi_bytes_received);
    let packets = about.tcpi_data_segs_in.saturating_add(about.tcpi_data_segs_out);
    Some(bytes >= BYTES || packets >= PACKETS)
}

/// Makes a descriptor by a call with two numbers and no flags.
fn opened(call: libc::c_long, first: i32, second: i32) -> Option<OwnedFd> {
    // SAFETY: no memory is passed.
    let descriptor = i32::try_from(unsafe { libc::syscall(call, first, second, 0) }).ok()?;
    // SAFETY: the descriptor is new and has no other owner.
    (descriptor >= 0).then(|| unsafe { OwnedFd::from_raw_fd(descriptor) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_testbed::skip;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn much_is_many_bytes_or_packets() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let pair = || {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (client, listener.accept().unwrap().0)
        };
        let (mut client, mut server) = pair();
        client.write_all(&[7; 1000]).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        let look = |end: &TcpStream| is_much(pid, end.as_raw_fd());
        if look(&server).is_none() {
            return skip("this process may not look at descriptors of others");
        }
        assert_eq!([look(&client), look(&server)], [Some(false); 2]);
        client.write_all(&[7; BYTES as usize]).unwrap();
        server.read_exact(&mut [0; BYTES as usize]).unwrap();
        assert_eq!(look(&server), Some(true));
        let (mut client, mut server) = pair();
        for _ in 0..PACKETS {
            client.write_all(b"?").unwrap();
            server.read_exact(&mut [0]).unwrap();
            server.write_all(b"!").unwrap();
            client.read_exact(&mut [0]).unwrap();
        }
        assert_eq!(look(&server), Some(true));
        assert_eq!(is_much(pid, 987_654), None);
    }
}
