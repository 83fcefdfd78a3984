// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What the kernel tells of Unix sockets besides what they have themselves: which one is the other
//! end (`sock_diag(7)`).

use crate::kernel::raw;

/// `NETLINK_SOCK_DIAG` and its only question, `SOCK_DIAG_BY_FAMILY`.
const PROTOCOL: i32 = 4;
const BY_FAMILY: u16 = 20;
/// `UDIAG_SHOW_PEER`, and the part of the answer that is asked for by that, `UNIX_DIAG_PEER`.
const SHOW_PEER: u32 = 4;
const PEER: u16 = 2;

/// Bytes of a question: a header of netlink, and `struct unix_diag_req`.
const QUESTION: usize = 40;
/// Where the parts of an answer begin: behind the header and `struct unix_diag_msg`.
const PARTS: usize = 32;

/// The inode of the socket at the other end of a Unix socket.
pub fn peer(descriptor: i32) -> Option<u64> {
    let own = u32::try_from(raw::inode(descriptor).ok()?).ok()?;
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    let netlink = raw::socket_of(libc::AF_NETLINK, kind, PROTOCOL).ok()?;
    let mut answer = [0; 512];
    let asked = raw::send(netlink, &question(own), libc::MSG_DONTWAIT);
    let got = asked.and_then(|_| raw::receive(netlink, &mut answer, libc::MSG_DONTWAIT));
    _ = raw::close(netlink);
    peer_in(answer.get(..got.ok()?)?, own).map(u64::from)
}

fn question(inode: u32) -> [u8; QUESTION] {
    let words = [
        QUESTION as u32,
        u32::from(BY_FAMILY) | (libc::NLM_F_REQUEST as u32) << 16,
        1,
        0,
        libc::AF_UNIX as u32,
        // In whatever state.
        u32::MAX,
        inode,
        SHOW_PEER,
        // Whatever it is called otherwise.
        u32::MAX,
        u32::MAX,
    ];
    let mut bytes = [0; QUESTION];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

/// The peer that an answer about a socket names.
fn peer_in(answer: &[u8], own: u32) -> Option<u32> {
    let half = |at: usize| answer.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes);
    let word = |at: usize| answer.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    if half(4)? != BY_FAMILY || word(20)? != own {
        return None;
    }
    let mut at = PARTS;
    loop {
        let bytes = usize::from(half(at)?);
        if half(at + 2)? == PEER && bytes >= 8 {
            return word(at + 4);
        }
        at += bytes.max(4).next_multiple_of(4);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixDatagram, UnixStream};

    #[test]
    fn each_end_of_a_pair_is_the_others_peer() {
        let (one, other) = UnixStream::pair().unwrap();
        let (strange, _) = UnixStream::pair().unwrap();
        let inode = |socket: &UnixStream| raw::inode(socket.as_raw_fd()).unwrap();
        assert_eq!(peer(one.as_raw_fd()), Some(inode(&other)));
        assert_eq!(peer(other.as_raw_fd()), Some(inode(&one)));
        assert_ne!(peer(strange.as_raw_fd()), Some(inode(&one)));
    }

    #[test]
    fn what_has_no_peer_has_none() {
        let alone = UnixDatagram::unbound().unwrap();
        assert_eq!(peer(alone.as_raw_fd()), None);
        assert_eq!(peer(-1), None);
    }

    #[test]
    fn answers_that_are_cut_name_nobody() {
        let mut answer = vec![0; PARTS + 8];
        answer[4..6].copy_from_slice(&BY_FAMILY.to_le_bytes());
        answer[20..24].copy_from_slice(&7_u32.to_le_bytes());
        answer[PARTS..PARTS + 2].copy_from_slice(&8_u16.to_le_bytes());
        answer[PARTS + 2..PARTS + 4].copy_from_slice(&PEER.to_le_bytes());
        answer[PARTS + 4..].copy_from_slice(&9_u32.to_le_bytes());
        assert_eq!(peer_in(&answer, 7), Some(9));
        assert_eq!(peer_in(&answer, 8), None);
        for length in 0..answer.len() {
            assert_eq!(peer_in(&answer[..length], 7), None);
        }
        answer[PARTS..PARTS + 2].copy_from_slice(&0_u16.to_le_bytes());
        answer[PARTS + 2] = 0;
        assert_eq!(peer_in(&answer, 7), None);
    }
}
