// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Replies that leave when the append log is safe up to what they depend on, as those of
//! connections do ([`Holding`](crate::persistence::Holding)).
//!
//! The replies of a turn wait together for the end of the log after that turn. Those of datagrams
//! that have changed something are apart, because they wait also while the log cannot be written.
//! More replies than fit are dropped, as the network may drop them.

use std::collections::VecDeque;
use std::net::SocketAddr;

use freeport_kv_datagrams::Outbox;
use freeport_kv_journal::Position;

/// Bytes of replies that wait at most.
const BYTES_MAX: usize = 64 << 20;
/// Memory for the place of a reply.
const PLACE_BYTES: usize = 160;

/// Replies that wait for the log.
#[derive(Debug, Default)]
pub struct Held {
    /// Replies of this turn: to datagrams that changed nothing, and to others.
    turn: [Outbox; 2],
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// Outboxes that keep their memory for later turns.
    spare: Vec<Outbox>,
}

#[derive(Debug)]
struct Waiting {
    position: Position,
    has_written: bool,
    bytes: usize,
    outbox: Outbox,
}

impl Held {
    /// Adds a reply of this turn. Returns false if there is no room for it.
    pub fn push(&mut self, target: SocketAddr, reply: &[u8], has_written: bool) -> bool {
        let bytes = reply.len() + PLACE_BYTES;
        if self.bytes + bytes > BYTES_MAX {
            return false;
        }
        self.bytes += bytes;
        self.turn[usize::from(has_written)].push(target, reply);
        true
    }

    /// The turn has ended: its replies wait for the end of the log.
    pub fn end_turn(&mut self, position: Position) {
        for has_written in [false, true] {
            let turn = &mut self.turn[usize::from(has_written)];
            if !turn.is_empty() {
                let outbox = std::mem::replace(turn, self.spare.pop().unwrap_or_default());
                let bytes = outbox.bytes() + outbox.len() * PLACE_BYTES;
                self.waiting.push_back(Waiting { position, has_written, bytes, outbox });
            }
        }
    }

    /// Sends what the log has released up to a position. While it fails, replies that report no
    /// change are sent too.
    pub fn release(
        &mut self,
        (released, is_failing): (Position, bool),
        mut send: impl FnMut(&mut Outbox),
    ) {
        let is_free = |it: &mut Waiting| it.position <= released || is_failing && !it.has_written;
        let mut number = 0;
        while number < self.waiting.len() {
            // Without a failure, all behind the first that waits do so too.
            if !is_free(&mut self.waiting[number]) {
                if !is_failing {
                    break;
                }
                number += 1;
                continue;
            }
            if let Some(mut free) = self.waiting.remove(number) {
                self.bytes -= free.bytes;
                send(&mut free.outbox);
                if self.spare.len() < self.turn.len() {
                    self.spare.push(free.outbox);
                }
            }
        }
    }

    /// Drops all replies. Returns their number.
    pub fn clear(&mut self) -> usize {
        let waiting = self.waiting.iter().map(|waiting| waiting.outbox.len());
        let dropped = waiting.chain(self.turn.iter().map(Outbox::len)).sum();
        *self = Self::default();
        dropped
    }

    /// Replies wait for the log.
    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn target() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 9).into()
    }

    fn released(held: &mut Held, position: u64, is_failing: bool) -> usize {
        let mut count = 0;
        held.release((Position(position), is_failing), |outbox| {
            count += outbox.len();
            *outbox = Outbox::default();
        });
        count
    }

    #[test]
    fn replies_wait_for_the_log_of_their_turn() {
        let mut held = Held::default();
        assert!(held.push(target(), b"read", false) && held.push(target(), b"write", true));
        assert_eq!(released(&mut held, 1_000, false), 0, "the turn has not ended");
        held.end_turn(Position(10));
        assert!(held.push(target(), b"later", false));
        held.end_turn(Position(20));
        assert_eq!(released(&mut held, 9, false), 0);
        assert_eq!(released(&mut held, 10, false), 2);
        assert!(held.is_waiting());
        assert_eq!(released(&mut held, 20, false), 1);
        assert!(!held.is_waiting() && held.bytes == 0);
    }

    #[test]
    fn replies_of_reads_leave_while_the_log_fails() {
        let mut held = Held::default();
        for position in [10, 20] {
            assert!(held.push(target(), b"write", true) && held.push(target(), b"read", false));
            held.end_turn(Position(position));
        }
        assert_eq!(released(&mut held, 0, true), 2);
        assert!(held.is_waiting());
        assert_eq!(released(&mut held, 20, false), 2);
    }

    #[test]
    fn replies_beyond_the_limit_are_dropped() {
        let (mut held, reply) = (Held::default(), vec![0; 60_000]);
        let taken = (0..2_000).filter(|_| held.push(target(), &reply, true)).count();
        assert_eq!(taken, BYTES_MAX / (reply.len() + PLACE_BYTES));
        held.end_turn(Position(1));
        assert!(!held.push(target(), &reply, false));
        assert_eq!(released(&mut held, 1, false), taken);
        assert!(held.push(target(), &reply, false));
    }
}
