// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Ring buffer: records that a program reserves, fills, and submits or discards, and that the host
//! takes in the order of their reservation.
//!
//! As in the kernel, a record is a header of 8 bytes and its data, padded to a multiple of 8, and
//! the positions of both ends only increase. A record may extend beyond the end of the ring: the
//! memory is twice the size of the ring for that.

use std::collections::VecDeque;

/// Size of the header of each record, in bytes.
const HEADER_BYTES: u64 = 8;

/// A ring of records.
pub(crate) struct Ring {
    memory: Vec<u8>,
    size: u64,
    produced: u64,
    consumed: u64,
    records: VecDeque<Record>,
}

struct Record {
    /// Offset of its data in memory.
    start: usize,
    length: usize,
    /// Position in the ring after the record.
    end: u64,
    state: State,
}

#[derive(PartialEq)]
enum State {
    Reserved,
    Submitted,
    Discarded,
}

impl Ring {
    /// Creates a ring of `size` bytes, a power of two.
    pub fn new(size: u32) -> Self {
        let memory = vec![0; 2 * size as usize];
        Self { memory, size: size.into(), produced: 0, consumed: 0, records: VecDeque::new() }
    }

    /// Reserves `length` bytes; returns their offset in the map's window.
    pub fn reserve(&mut self, length: u64) -> Option<u64> {
        let whole = length.checked_add(HEADER_BYTES)?.checked_next_multiple_of(8)?;
        let end = self.produced.checked_add(whole)?;
        if whole > self.size || end - self.consumed > self.size - 1 {
            return None;
        }
        let start = (self.produced % self.size + HEADER_BYTES) as usize;
        self.produced = end;
        self.records.push_back(Record {
            start,
            length: length as usize,
            end,
            state: State::Reserved,
        });
        Some(start as u64)
    }

    /// Appends a whole record; returns whether there was room.
    pub fn put(&mut self, data: &[u8]) -> bool {
        let Some(offset) = self.reserve(data.len() as u64) else { return false };
        let start = offset as usize;
        self.memory[start..start + data.len()].copy_from_slice(data);
        self.finish(offset, true)
    }

    /// Submits or discards the record that begins at `offset` of the window; returns whether there
    /// is one.
    pub fn finish(&mut self, offset: u64, is_kept: bool) -> bool {
        let place =
            |record: &&mut Record| record.start as u64 == offset && record.state == State::Reserved;
        let Some(record) = self.records.iter_mut().rev().find(place) else { return false };
        record.state = if is_kept { State::Submitted } else { State::Discarded };
        true
    }

    /// Discards reserved records; returns whether there were any.
    pub fn abandon(&mut self) -> bool {
        let mut was_any = false;
        for record in self.records.iter_mut().filter(|record| record.state == State::Reserved) {
            record.state = State::Discarded;
            was_any = true;
        }
        was_any
    }

    /// Returns `size` bytes from `offset` of the window, if they lie in one reserved record,
    /// mutable.
    pub fn bytes_mut(&mut self, offset: u64, size: usize) -> Option<&mut [u8]> {
        let place = self.reserved(offset, size)?;
        self.memory.get_mut(place)
    }

    /// As `bytes_mut`, read-only.
    pub fn bytes(&self, offset: u64, size: usize) -> Option<&[u8]> {
        let place = self.reserved(offset, size)?;
        self.memory.get(place)
    }

    fn reserved(&self, offset: u64, size: usize) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(size)?;
        let holds = |record: &&Record| {
            record.state == State::Reserved
                && start >= record.start
                && end <= record.start + record.length
        };
        self.records.iter().rev().find(holds).map(|_| start..end)
    }

    /// Returns offset in the window and length of each reserved record.
    pub fn reserved_records(&self) -> impl Iterator<Item = (u64, u64)> {
        let reserved = self.records.iter().filter(|record| record.state == State::Reserved);
        reserved.map(|record| (record.start as u64, record.length as u64))
    }

    /// Takes the records that were submitted before the first one that is still reserved.
    pub fn take(&mut self) -> Vec<Vec<u8>> {
        let mut taken = vec![];
        while let Some(record) = self.records.front() {
            match record.state {
                State::Reserved => break,
                State::Submitted => {
                    taken.push(self.memory[record.start..record.start + record.length].to_vec());
                }
                State::Discarded => {}
            }
            self.consumed = record.end;
            self.records.pop_front();
        }
        taken
    }

    /// Returns what `bpf_ringbuf_query` reports: unconsumed bytes (0), size of the ring in bytes
    /// (1), and the positions of the consumer (2) and the producer (3).
    pub fn query(&self, what: u64) -> u64 {
        match what {
            0 => self.produced - self.consumed,
            1 => self.size,
            2 => self.consumed,
            3 => self.produced,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_leave_in_the_order_of_reservation() {
        let mut ring = Ring::new(4_096);
        let first = ring.reserve(3).expect("there is room");
        let second = ring.reserve(8).expect("there is room");
        ring.bytes_mut(second, 8).expect("reserved").fill(2);
        assert!(ring.finish(second, true));
        assert!(ring.take().is_empty(), "the first is still reserved");
        assert_eq!(ring.query(0), 32);
        ring.bytes_mut(first, 3).expect("reserved").fill(1);
        assert!(ring.bytes_mut(first, 4).is_none(), "beyond its three bytes");
        assert!(ring.finish(first, true));
        assert!(!ring.finish(first, true), "once only");
        assert!(ring.bytes_mut(first, 3).is_none(), "submitted");
        assert_eq!(ring.take(), [vec![1; 3], vec![2; 8]]);
        assert_eq!([0, 1, 2, 3, 4].map(|what| ring.query(what)), [0, 4_096, 32, 32, 0]);
    }

    #[test]
    fn a_ring_is_full_one_byte_before_its_size() {
        let mut ring = Ring::new(4_096);
        assert_eq!(ring.reserve(4_089), None);
        assert_eq!(ring.reserve(4_088), None, "it would fill the ring");
        assert_eq!(ring.reserve(u64::MAX - 3), None);
        assert!(ring.reserve(4_080).is_some());
        assert_eq!(ring.reserve(0), None);
        assert!(ring.abandon());
        assert!(!ring.abandon());
        assert!(ring.take().is_empty());
        assert!(ring.reserve(0).is_some());
    }

    #[test]
    fn records_survive_the_end_of_the_ring() {
        let mut ring = Ring::new(64);
        for round in 0..100_u8 {
            let length = 1 + u64::from(round) % 16;
            let both = [round, round ^ 0xff].map(|byte| {
                let at = ring.reserve(length).expect("there is room");
                ring.bytes_mut(at, length as usize).expect("reserved").fill(byte);
                assert!(ring.finish(at, true));
                vec![byte; length as usize]
            });
            assert_eq!(ring.take(), both);
        }
    }
}
