// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Options by which the kernel does with each segment or message what is not done with rings. Who
//! sets one has the connection in the kernel, from then on or for good.

use freeport_sockets_proto::Reason;

/// Numbers that are newer than the C library may be, or that it does not have.
const SO_TIMESTAMP_NEW: i32 = 63;
const SO_TIMESTAMPNS_NEW: i32 = 64;
const SO_TIMESTAMPING_NEW: i32 = 65;
const TCP_INQ: i32 = 36;

/// Why a TCP connection is the kernel's when that option is set; `None`: it need not be.
pub fn of_tcp(level: i32, name: i32) -> Option<Reason> {
    match (level, name) {
        // What goes along with bytes: times, how much there is, and what was sent without a copy.
        (
            libc::SOL_SOCKET,
            libc::SO_ZEROCOPY
            | libc::SO_TIMESTAMP
            | libc::SO_TIMESTAMPNS
            | libc::SO_TIMESTAMPING
            | SO_TIMESTAMP_NEW
            | SO_TIMESTAMPNS_NEW
            | SO_TIMESTAMPING_NEW,
        )
        | (libc::IPPROTO_TCP, TCP_INQ) => Some(Reason::Ancillary),
        // What reads, changes or drops the bytes themselves.
        (libc::SOL_SOCKET, libc::SO_PEEK_OFF | libc::SO_ATTACH_FILTER | libc::SO_ATTACH_BPF)
        | (libc::IPPROTO_TCP, libc::TCP_ULP | libc::TCP_REPAIR) => Some(Reason::PastLibrary),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_sizes_and_times_to_wait_keep_nothing_in_the_kernel() {
        for name in [libc::SO_RCVBUF, libc::SO_SNDTIMEO, libc::SO_KEEPALIVE, libc::SO_LINGER] {
            assert_eq!(of_tcp(libc::SOL_SOCKET, name), None);
        }
        assert_eq!(of_tcp(libc::IPPROTO_TCP, libc::TCP_NODELAY), None);
        // The same number, of another level.
        assert_eq!(of_tcp(libc::IPPROTO_IP, libc::SO_ZEROCOPY), None);
        assert_eq!(of_tcp(libc::SOL_SOCKET, libc::SO_ZEROCOPY), Some(Reason::Ancillary));
    }
}
