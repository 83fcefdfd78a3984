// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds the peer of a Unix socket: the kernel answers queries by netlink about the sockets of one
//! network namespace.
//!
//! A query is answered before sending it returns, so this module never waits.

use super::option::inode;
use freeport_sockets_proto::Reason;
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// `SOCK_DIAG_BY_FAMILY` of the kernel: type of a query, and of its answer.
const BY_FAMILY: u16 = 20;
/// `UDIAG_SHOW_PEER`: requests the inode of the peer.
const SHOW_PEER: u32 = 4;
/// `UNIX_DIAG_PEER` and `UNIX_DIAG_SHUTDOWN`: attributes of an answer.
const PEER: u16 = 2;
const SHUTDOWN: u16 = 6;
/// Cookie that matches any socket.
const NO_COOKIE: u64 = u64::MAX;
/// State of a connected socket.
const ESTABLISHED: u8 = 1;

/// Size of a netlink header, and of the fixed part of an answer before its attributes.
const HEADER_BYTES: usize = 16;
const ABOUT_BYTES: usize = 16;
const QUESTION_BYTES: usize = HEADER_BYTES + 24;
const ANSWER_BYTES_MAX: usize = 4096;
/// Maximum number of answers to earlier queries that are skipped.
const STALE_MAX: usize = 8;

/// A netlink socket for queries.
pub struct Diagnosis {
    socket: OwnedFd,
    /// Number of the last query.
    number: Cell<u32>,
}

/// State of a socket as the kernel reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Reported {
    inode: u32,
    kind: u8,
    state: u8,
    shutdown: u8,
    peer: u32,
}

impl Diagnosis {
    /// Opens a netlink socket in the network namespace of this process.
    ///
    /// # Errors
    /// The system cannot create the socket.
    pub fn new() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: no memory is passed.
        let descriptor = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG) };
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and has no other owner.
        let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
        Ok(Self { socket, number: Cell::new(0) })
    }

    /// Returns whether the kernel answers. If the responsible part of the kernel is a module, this
    /// call loads it, so that a later query is not delayed by it.
    pub fn works(&self) -> bool {
        UnixStream::pair().is_ok_and(|(one, other)| {
            let [one, other] = [&one, &other].map(|it| inode(it.as_fd()));
            one.is_some_and(|one| self.peer(one, None).ok() == other)
        })
    }

    /// Returns the inode of the peer of a Unix stream socket with this inode, and with this cookie
    /// if given.
    pub fn peer(&self, inode: u64, cookie: Option<u64>) -> Result<u64, Reason> {
        let inode = u32::try_from(inode).map_err(|_| Reason::Resources)?;
        let number = self.number.get().wrapping_add(1);
        self.number.set(number);
        self.send(&question(number, inode, cookie.unwrap_or(NO_COOKIE)))?;
        let mut answer = [0; ANSWER_BYTES_MAX];
        for _ in 0..=STALE_MAX {
            let length = self.receive(&mut answer)?;
            match read(answer.get(..length).unwrap_or_default(), number) {
                Answer::OfBefore => {}
                // The kernel does not answer, although the socket exists.
                Answer::Nothing => return Err(Reason::Family),
                Answer::Of(reported) => return reported.peer(inode),
            }
        }
        Err(Reason::Resources)
    }

    fn send(&self, question: &[u8]) -> Result<(), Reason> {
        let (start, length) = (question.as_ptr().cast(), question.len());
        // SAFETY: the bytes outlive the call.
        let sent =
            unsafe { libc::send(self.socket.as_raw_fd(), start, length, libc::MSG_DONTWAIT) };
        if sent == QUESTION_BYTES as isize { Ok(()) } else { Err(Reason::Resources) }
    }

    fn receive(&self, into: &mut [u8]) -> Result<usize, Reason> {
        let (start, length) = (into.as_mut_ptr().cast(), into.len());
        // SAFETY: `into` has room for `length` bytes. Only the kernel sends to this socket: its
        // address is not published, and sending to it requires a privilege.
        let length =
            unsafe { libc::recv(self.socket.as_raw_fd(), start, length, libc::MSG_DONTWAIT) };
        usize::try_from(length).map_err(|_| Reason::Resources)
    }
}

impl Reported {
    fn peer(self, inode: u32) -> Result<u64, Reason> {
        if i32::from(self.kind) != libc::SOCK_STREAM || self.inode != inode {
            return Err(Reason::NotStream);
        }
        match (self.state, self.shutdown, self.peer) {
            // Not accepted yet: it will get a peer.
            (ESTABLISHED, 0, 0) => Err(Reason::PeerPlain),
            (ESTABLISHED, 0, peer) => Ok(peer.into()),
            _ => Err(Reason::NotConnected),
        }
    }
}

fn question(number: u32, inode: u32, cookie: u64) -> Vec<u8> {
    let mut bytes = vec![];
    bytes.extend((QUESTION_BYTES as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    bytes.extend(number.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    // Family, no protocol, any state.
    bytes.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(inode.to_ne_bytes());
    bytes.extend(SHOW_PEER.to_ne_bytes());
    // Lower half first, regardless of the byte order.
    bytes.extend((cookie as u32).to_ne_bytes());
    bytes.extend(((cookie >> 32) as u32).to_ne_bytes());
    bytes
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    /// An answer to another query.
    OfBefore,
    /// The kernel does not answer.
    Nothing,
    Of(Reported),
}

/// Parses a message of the kernel.
fn read(bytes: &[u8], question: u32) -> Answer {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if word(8) != Some(question) {
        return Answer::OfBefore;
    }
    let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let reported = || {
        let length = usize::try_from(word(0)?).ok()?;
        if half(4)? != BY_FAMILY || length > bytes.len() {
            return None;
        }
        let (kind, state) = (*bytes.get(17)?, *bytes.get(18)?);
        let mut reported = Reported { inode: word(20)?, kind, state, shutdown: 0, peer: 0 };
        let mut at = HEADER_BYTES + ABOUT_BYTES;
        while at + 4 <= length {
            let part = usize::from(half(at)?);
            match half(at + 2)? {
                PEER => reported.peer = word(at + 4)?,
                SHUTDOWN => reported.shutdown = *bytes.get(at + 4)?,
                _ => {}
            }
            at += part.max(4).next_multiple_of(4);
        }
        Some(reported)
    };
    reported().map_or(Answer::Nothing, Answer::Of)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds an answer to the query of that number, as the kernel sends it.
    fn answer(number: u32, parts: &[&[u8]]) -> Vec<u8> {
        let length = (HEADER_BYTES + ABOUT_BYTES + parts.concat().len()) as u32;
        let mut bytes = [length, u32::from(BY_FAMILY), number, 0].map(u32::to_ne_bytes).concat();
        bytes.extend([libc::AF_UNIX as u8, libc::SOCK_STREAM as u8, ESTABLISHED, 0]);
        bytes.extend([77, 0, 0].map(u32::to_ne_bytes).concat());
        bytes.extend(parts.concat());
        bytes
    }

    #[test]
    fn answers_are_read_as_far_as_they_go() {
        let half = |value: u16| value.to_ne_bytes();
        let peer = [&half(8)[..], &half(PEER), &55_u32.to_ne_bytes()].concat();
        let shutdown = [&half(5)[..], &half(SHUTDOWN), &[1, 0, 0, 0]].concat();
        let other = [&half(6)[..], &half(9), &[1, 2, 0, 0]].concat();
        let whole = answer(3, &[&other, &peer, &shutdown]);
        let kind = libc::SOCK_STREAM as u8;
        let reported = Reported { inode: 77, kind, state: ESTABLISHED, shutdown: 1, peer: 55 };
        assert_eq!(read(&whole, 3), Answer::Of(reported));
        assert_eq!(reported.peer(77), Err(Reason::NotConnected));
        let reported = Reported { shutdown: 0, ..reported };
        assert_eq!(read(&answer(3, &[&peer]), 3), Answer::Of(reported));
        assert_eq!((reported.peer(77), reported.peer(78)), (Ok(55), Err(Reason::NotStream)));
        assert_eq!(Reported { peer: 0, ..reported }.peer(77), Err(Reason::PeerPlain));
        assert_eq!(read(&whole, 2), Answer::OfBefore);
        for length in 0..whole.len() {
            let expected = if length < 12 { Answer::OfBefore } else { Answer::Nothing };
            assert_eq!(read(&whole[..length], 3), expected, "{length}");
        }
        let mut endless = whole;
        endless[HEADER_BYTES + ABOUT_BYTES] = 0;
        endless[HEADER_BYTES + ABOUT_BYTES + 1] = 0;
        assert!(matches!(read(&endless, 3), Answer::Of(_)), "a part without a length");
    }

    #[test]
    fn an_answer_to_a_question_of_before_is_passed_over() {
        let (one, other) = UnixStream::pair().unwrap();
        let inode = |socket: &UnixStream| inode(socket.as_fd()).unwrap();
        let diagnosis = Diagnosis::new().unwrap();
        assert!(diagnosis.works());
        let before = question(1234, inode(&other) as u32, NO_COOKIE);
        diagnosis.send(&before).unwrap();
        assert_eq!(diagnosis.peer(inode(&one), None), Ok(inode(&other)));
        assert_eq!(diagnosis.peer(inode(&one), Some(1)), Err(Reason::Family), "of another name");
        assert_eq!(diagnosis.peer(u64::MAX, None), Err(Reason::Resources));
        // If answers are not read, a query is lost, and nothing else.
        for _ in 0..10_000 {
            let _ = diagnosis.send(&before);
        }
        assert!(diagnosis.peer(inode(&one), None).is_err());
        let again = (0..10_000).find_map(|_| diagnosis.peer(inode(&one), None).ok());
        assert_eq!(again, Some(inode(&other)));
    }
}
