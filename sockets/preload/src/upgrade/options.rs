// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Socket options with an effect on each segment or message that rings do not have. Setting one
//! keeps the connection in the kernel, or brings it back.

use crate::kernel::raw;
use freeport_sockets_proto::Reason;

/// Options that the C library may not define.
const SO_TIMESTAMP_NEW: i32 = 63;
const SO_TIMESTAMPNS_NEW: i32 = 64;
const SO_TIMESTAMPING_NEW: i32 = 65;
const SO_PASSPIDFD: i32 = 76;
const SO_INQ: i32 = 84;
const TCP_INQ: i32 = 36;
const TCP_MD5SIG_EXT: i32 = 32;
const TCP_ZEROCOPY_RECEIVE: i32 = 35;
const TCP_TX_DELAY: i32 = 37;
const TCP_AO_ADD_KEY: i32 = 38;
const TCP_AO_REPAIR: i32 = 42;

/// Why a TCP connection has to be in the kernel with that option; `None`: it need not be.
pub fn of_tcp(level: i32, name: i32) -> Option<Reason> {
    match (level, name) {
        // Data that accompanies bytes: times, amounts, and notices of zero-copy sends.
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
        // Options that change, drop, sign or delay the bytes, or read them elsewhere.
        (
            libc::SOL_SOCKET,
            libc::SO_PEEK_OFF
            | libc::SO_ATTACH_FILTER
            | libc::SO_ATTACH_BPF
            | libc::SO_MAX_PACING_RATE,
        )
        | (
            libc::IPPROTO_TCP,
            libc::TCP_ULP
            | libc::TCP_REPAIR
            | libc::TCP_MD5SIG
            | TCP_MD5SIG_EXT
            | TCP_TX_DELAY
            | TCP_AO_ADD_KEY..=TCP_AO_REPAIR,
        ) => Some(Reason::Option),
        _ => None,
    }
}

/// Whether getting an option takes bytes of a TCP connection.
pub fn takes_bytes(level: i32, name: i32) -> bool {
    (level, name) == (libc::IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE)
}

/// Whether an option has an effect on each message of a Unix socket that rings do not have.
pub fn is_of_unix(level: i32, name: i32) -> bool {
    const EXTRAS: [i32; 6] = [
        libc::SO_PASSCRED,
        libc::SO_PASSSEC,
        libc::SO_PEEK_OFF,
        libc::SO_RCVLOWAT,
        SO_PASSPIDFD,
        SO_INQ,
    ];
    level == libc::SOL_SOCKET && EXTRAS.contains(&name)
}

/// Whether a Unix socket has none of those options. An accepted socket inherits those of its
/// listener.
pub fn is_plain(descriptor: i32) -> bool {
    let is = |name, usual: i32| {
        let mut value = usual;
        // An option that the kernel does not know is not set.
        _ = raw::get_option(descriptor, libc::SOL_SOCKET, name, &mut value);
        value == usual
    };
    is(libc::SO_PASSCRED, 0)
        && is(libc::SO_PASSSEC, 0)
        && is(libc::SO_PEEK_OFF, -1)
        && is(SO_PASSPIDFD, 0)
        && is(SO_INQ, 0)
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
        assert_eq!(of_tcp(libc::IPPROTO_TCP, TCP_AO_ADD_KEY + 1), Some(Reason::Option));
        assert!(takes_bytes(libc::IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE));
    }
}
