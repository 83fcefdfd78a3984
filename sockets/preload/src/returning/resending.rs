// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending through the kernel what the peer has not read from a ring, when a connection comes back.

use crate::data::scratch::Scratch;
use crate::kernel::raw;
use crate::socket::unix::LargeBuffer;
use crate::upgrade::slot::{Reader, Slot};
use crate::waiting::patience::Patience;
use freeport_ring::bytes::Read;
use freeport_ring::{ReceiverCursor, SenderCursor};
use freeport_sockets_proto::slab::{AREAS, DIRECTION_BYTES, REFUND_BYTES};

/// More than this there cannot be. Both sides can write what is sent here, so it may go round in
/// circles.
const BYTES_MAX: u64 = (DIRECTION_BYTES + REFUND_BYTES) as u64;

/// For how long, in ticks, who wants a connection back waits for room for what it sends itself:
/// about five seconds.
const OWN_TICKS: u64 = 12_000_000_000;

/// What is being sent, and where.
struct Resending<'a> {
    descriptor: i32,
    slot: &'a Slot,
    sent: u64,
    patience: Patience,
}

/// Sends what the peer gives back, and what is behind the place where it has stopped reading, of
/// what was sent until `sender` through the areas until `last`. Gives how much that was, and
/// whether it was all.
pub fn send(
    descriptor: i32,
    slot: &Slot,
    sender: &SenderCursor,
    last: u32,
    patience: Patience,
) -> (u64, bool) {
    let _buffer = LargeBuffer::new(descriptor);
    let (stopped, refunded) = slot.peer_stopped();
    let mut resending = Resending { descriptor, slot, sent: 0, patience };
    let mut is_all = resending.refund(refunded, Reader::Peer);
    if let Some((area, stopped)) = stopped {
        let cursor = ReceiverCursor::behind(&stopped, sender).filter(|_| area <= last);
        is_all = is_all && resending.unread(area, cursor, last, Reader::Peer);
    }
    (resending.sent, is_all)
}

/// Sends in the peer's place, to this side itself, what it gives back and has not read, through the
/// peer's socket. Gives how much that was, and whether it was all.
pub fn send_for_peer(descriptor: i32, slot: &Slot, stopped: (u32, ReceiverCursor)) -> (u64, bool) {
    let _buffer = LargeBuffer::new(descriptor);
    let patience = Patience(OWN_TICKS);
    let mut resending = Resending { descriptor, slot, sent: 0, patience };
    let refunded = usize::try_from(slot.refunded()).unwrap_or(usize::MAX).min(REFUND_BYTES);
    let mut is_all = resending.refund(refunded, Reader::Own);
    let (area, cursor) = stopped;
    is_all = is_all && resending.unread(area, Some(cursor), AREAS - 1, Reader::Own);
    (resending.sent, is_all)
}

impl Resending<'_> {
    /// Sends what the peer gives back. False: not all of it.
    fn refund(&mut self, bytes: usize, to: Reader) -> bool {
        let (mut scratch, mut done) = (Scratch::new(), 0);
        while done < bytes {
            let room = scratch.bytes();
            let count = room.len().min(bytes - done);
            let piece = room.get_mut(..count).unwrap_or_default();
            self.slot.read_given_back(to, done, piece);
            if !self.send(piece) {
                return false;
            }
            done += piece.len();
        }
        true
    }

    /// Sends what was not read. False: not all of it.
    fn unread(
        &mut self,
        mut area: u32,
        from: Option<ReceiverCursor>,
        last: u32,
        by: Reader,
    ) -> bool {
        let unread = from.and_then(|cursor| self.slot.unread(by, area, cursor));
        let Some(mut unread) = unread else { return false };
        let mut scratch = Scratch::new();
        loop {
            let room = scratch.bytes();
            let Ok(read) = unread.read(room) else { return false };
            match read.outcome {
                Read::Bytes(count) => {
                    if !self.send(room.get(..count).unwrap_or_default()) {
                        return false;
                    }
                }
                Read::Nothing | Read::End => return true,
                Read::Moved { name, entry } => {
                    let next = u32::try_from(name).ok();
                    let Some(next) = next.filter(|next| *next > area && *next <= last) else {
                        return false;
                    };
                    if !self.slot.follow_unread(by, &mut unread, next, &entry) {
                        return false;
                    }
                    area = next;
                }
            }
        }
    }

    /// Sends all, waiting for room. False: not all of it.
    fn send(&mut self, bytes: &[u8]) -> bool {
        if self.sent + bytes.len() as u64 > BYTES_MAX {
            return false;
        }
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            match raw::send(self.descriptor, rest, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
                Ok(count) => {
                    done += count;
                    self.sent += count as u64;
                }
                Err(libc::EAGAIN) if self.waits_for_room() => {}
                Err(libc::EINTR) => {}
                Err(_) => return false,
            }
        }
        true
    }

    fn waits_for_room(&mut self) -> bool {
        self.patience.wait(self.descriptor, libc::POLLOUT)
    }
}
