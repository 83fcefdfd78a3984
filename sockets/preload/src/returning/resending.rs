// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sending bytes again through the kernel that the peer has not read from a ring, when a connection
//! comes back.

use crate::kernel::raw;
use crate::kernel::scratch::Scratch;
use crate::returning::buffer::LargeBuffer;
use crate::state::backlog::Backlog;
use crate::state::slot::{Reader, Slot};
use crate::waiting::patience::Patience;
use freeport_ring::bytes::Read;
use freeport_ring::{ReceiverCursor, SenderCursor};
use freeport_sockets_proto::slab::{AREAS, DIRECTION_BYTES, REFUND_BYTES};

/// Upper bound of such bytes. Both sides can write the entries read here, so without it a ring
/// could lead in circles.
const BYTES_MAX: u64 = (DIRECTION_BYTES + REFUND_BYTES) as u64;

/// How long, in ticks, a side that wants a connection back waits for room for bytes that it sends
/// itself: about five seconds.
const OWN_TICKS: u64 = 12_000_000_000;

/// The result of sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resent {
    /// All bytes were sent.
    All,
    /// There is no room now for the remaining bytes.
    NoRoom,
    /// The kernel accepts nothing more, or the ring is not well-formed.
    Failed,
}

/// The state of sending.
struct Resending<'a> {
    descriptor: i32,
    slot: &'a Slot,
    backlog: &'a Backlog,
    /// The side that has not read the bytes.
    reader: Reader,
    /// The end of this side's ring: the cursor and the last area. None for the peer's ring.
    until: Option<(&'a SenderCursor, u32)>,
    patience: Patience,
}

/// Begins to send again what the peer wants. This side has sent `sent_by_kernel` bytes through the
/// kernel. False: the peer wants more than that.
pub fn begin(slot: &Slot, backlog: &Backlog, sent_by_kernel: u64) -> bool {
    let (stopped, given_back) = slot.peer_stopped();
    let is_possible = given_back as u64 <= sent_by_kernel;
    if is_possible {
        backlog.begin(given_back as u64, stopped);
    }
    is_possible
}

/// Continues with that, up to `sender` in the area `last`.
pub fn proceed(
    descriptor: i32,
    slot: &Slot,
    backlog: &Backlog,
    (sender, last): (&SenderCursor, u32),
    patience: Patience,
) -> Resent {
    let (reader, until) = (Reader::Peer, Some((sender, last)));
    Resending { descriptor, slot, backlog, reader, until, patience }.proceed()
}

/// Sends, in the peer's place and through the peer's socket, the bytes that this side gives back
/// and has not read. Returns their number, and whether they were all.
pub fn send_for_peer(descriptor: i32, slot: &Slot, stopped: (u32, ReceiverCursor)) -> (u64, bool) {
    let given_back = slot.refunded().min(REFUND_BYTES as u64);
    let (area, cursor) = stopped;
    let Some(stopped) = cursor.stop() else { return (0, false) };
    let backlog = Backlog::default();
    backlog.begin(given_back, Some((area, stopped)));
    let (patience, backlog) = (Patience(OWN_TICKS), &backlog);
    let (reader, until) = (Reader::Own, None);
    let resent = Resending { descriptor, slot, backlog, reader, until, patience }.proceed();
    (backlog.sent(), resent == Resent::All)
}

impl Resending<'_> {
    fn proceed(&mut self) -> Resent {
        let _buffer = LargeBuffer::new(self.descriptor);
        let resent = self.given_back();
        if resent != Resent::All {
            return resent;
        }
        self.backlog.continues_with_unread();
        let resent = self.unread();
        if resent != Resent::NoRoom {
            self.backlog.forget();
        }
        resent
    }

    /// Sends the bytes that were given back.
    fn given_back(&mut self) -> Resent {
        let mut scratch = Scratch::new();
        while let Some((at, left)) = self.backlog.left_of_given_back() {
            let room = scratch.bytes();
            let count = room.len().min(left);
            let piece = room.get_mut(..count).unwrap_or_default();
            self.slot.read_given_back(self.reader, at, piece);
            match self.send_some(piece) {
                Ok(sent) => self.backlog.has_sent_given_back(sent),
                Err(resent) => return resent,
            }
        }
        Resent::All
    }

    /// Sends the bytes that were not read.
    fn unread(&mut self) -> Resent {
        let Some((mut area, stopped)) = self.backlog.unread() else { return Resent::All };
        let last = self.until.map_or(AREAS - 1, |(_, last)| last);
        let cursor = match self.until {
            Some((sender, _)) => ReceiverCursor::behind(&stopped, sender),
            None => ReceiverCursor::at(&stopped),
        };
        let cursor = cursor.filter(|_| area <= last);
        let unread = cursor.and_then(|cursor| self.slot.unread(self.reader, area, cursor));
        let Some(mut unread) = unread else { return Resent::Failed };
        let mut scratch = Scratch::new();
        loop {
            let room = scratch.bytes();
            // Bytes without room stay in the ring.
            let Ok(found) = unread.peek(room) else { return Resent::Failed };
            match found {
                Read::Bytes(count) => {
                    let sent = match self.send_some(room.get(..count).unwrap_or_default()) {
                        Ok(sent) => sent,
                        Err(resent) => return resent,
                    };
                    let taken = unread.read(room.get_mut(..sent).unwrap_or_default());
                    let stopped = unread.ring().cursor().stop();
                    let is_taken = taken.is_ok_and(|it| it.outcome == Read::Bytes(sent));
                    let Some(stopped) = stopped.filter(|_| is_taken) else { return Resent::Failed };
                    self.backlog.has_sent(sent);
                    self.backlog.is_at(area, &stopped);
                }
                Read::Nothing | Read::End => return Resent::All,
                Read::Moved { name, entry } => {
                    let next = u32::try_from(name).ok();
                    let next = next.filter(|next| *next > area && *next <= last);
                    let Some(next) = next else { return Resent::Failed };
                    if !self.slot.follow_unread(self.reader, &mut unread, next, &entry) {
                        return Resent::Failed;
                    }
                    area = next;
                    if let Some(stopped) = unread.ring().cursor().stop() {
                        self.backlog.is_at(area, &stopped);
                    }
                }
            }
        }
    }

    /// Sends as much as there is room for, at least one byte; waits for room within the patience.
    fn send_some(&mut self, bytes: &[u8]) -> Result<usize, Resent> {
        if self.backlog.sent() + bytes.len() as u64 > BYTES_MAX {
            return Err(Resent::Failed);
        }
        loop {
            match raw::send(self.descriptor, bytes, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) {
                Ok(0) => return Err(Resent::Failed),
                Ok(sent) => return Ok(sent),
                Err(libc::EAGAIN) if self.patience.wait(self.descriptor, libc::POLLOUT) => {}
                Err(libc::EAGAIN) => return Err(Resent::NoRoom),
                Err(libc::EINTR) => {}
                Err(_) => return Err(Resent::Failed),
            }
        }
    }
}
