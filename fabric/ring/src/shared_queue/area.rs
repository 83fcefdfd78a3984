// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The side area: unread messages that were moved out of the ring.
//!
//! It consists of cells of one line each, chained to the length of a message. The most recently
//! freed cells are used first, so a few messages stay in a few lines, and cells beyond the maximum
//! ever needed are never touched.

use super::at;
use crate::Fault;

/// Bytes of a message in one cell.
pub(super) const CELL_PAYLOAD: usize = 52;

/// A cell of the side area.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Cell {
    /// The next cell of the message, or the next free one.
    next: u32,
    /// In the first cell of a message: the first cell of the connection's next message.
    message: u32,
    /// In the first cell of a message: its length.
    length: u32,
    bytes: [u8; CELL_PAYLOAD],
}

impl Default for Cell {
    fn default() -> Self {
        Self { next: 0, message: 0, length: 0, bytes: [0; CELL_PAYLOAD] }
    }
}

/// Returns the number of cells that a message takes.
#[inline]
pub(super) const fn cells_of(length: usize) -> usize {
    if length <= CELL_PAYLOAD { 1 } else { length.div_ceil(CELL_PAYLOAD) }
}

/// All cells. The number of a cell is its index plus one; 0 is none.
#[derive(Debug)]
pub(super) struct Area<'a> {
    cells: &'a mut [Cell],
    /// The free cell that was used last.
    free: u32,
    /// Number of cells that have ever been used.
    used: u32,
}

impl<'a> Area<'a> {
    pub(super) fn new(cells: &'a mut [Cell]) -> Self {
        Self { cells, free: 0, used: 0 }
    }

    /// Stores a message piece by piece: `read` gets the offset to read from, and the buffer.
    pub(super) fn keep(
        &mut self,
        length: usize,
        read: impl Fn(usize, &mut [u8]),
    ) -> Result<u32, Fault> {
        let (mut first, mut last, mut from) = (0, 0, 0);
        for _ in 0..cells_of(length) {
            let number = self.allocate()?;
            let cell = self.cell(number)?;
            *cell = Cell { length: length as u32, ..Cell::default() };
            let bytes = (length - from).min(CELL_PAYLOAD);
            if let Some(into) = cell.bytes.get_mut(..bytes) {
                read(from, into);
            }
            from += bytes;
            if last == 0 {
                first = number;
            } else {
                self.cell(last)?.next = number;
            }
            last = number;
        }
        Ok(first)
    }

    /// Returns the length of a message.
    #[inline]
    pub(super) fn length(&mut self, first: u32) -> Result<usize, Fault> {
        Ok(self.cell(first)?.length as usize)
    }

    /// Links a message after another one of the same connection.
    pub(super) fn append(&mut self, last: u32, first: u32) -> Result<(), Fault> {
        self.cell(last)?.message = first;
        Ok(())
    }

    /// Copies a message, as far as there is room for it.
    pub(super) fn read(&mut self, first: u32, into: &mut [u8]) -> Result<(), Fault> {
        let mut number = first;
        for piece in into.chunks_mut(CELL_PAYLOAD) {
            let cell = self.cell(number)?;
            if let Some(bytes) = cell.bytes.get(..piece.len()) {
                piece.copy_from_slice(bytes);
            }
            number = cell.next;
        }
        Ok(())
    }

    /// Frees the cells of a message and returns the next message of the connection.
    pub(super) fn release(&mut self, first: u32) -> Result<u32, Fault> {
        let Cell { length, message, .. } = *self.cell(first)?;
        let free = self.free;
        let mut last = first;
        for _ in 1..cells_of(length as usize) {
            last = self.cell(last)?.next;
        }
        self.cell(last)?.next = free;
        self.free = first;
        Ok(message)
    }

    fn allocate(&mut self) -> Result<u32, Fault> {
        if self.free == 0 {
            self.used += 1;
            return Ok(self.used);
        }
        let number = self.free;
        self.free = self.cell(number)?.next;
        Ok(number)
    }

    #[inline]
    fn cell(&mut self, number: u32) -> Result<&mut Cell, Fault> {
        at(self.cells, number.wrapping_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn messages_are_kept_whole_and_cells_used_again() {
        let mut random = fastrand::Rng::with_seed(5);
        let mut cells = [Cell::default(); 40];
        let mut area = Area::new(&mut cells);
        let mut kept: Vec<(u32, Vec<u8>)> = Vec::new();
        for _ in 0..20_000 {
            let in_use: usize = kept.iter().map(|(_, message)| cells_of(message.len())).sum();
            let length = random.usize(..=4 * CELL_PAYLOAD);
            if random.bool() && in_use + cells_of(length) <= 40 {
                let message: Vec<u8> = (0..length).map(|_| random.u8(..)).collect();
                let read = |from, into: &mut [u8]| {
                    into.copy_from_slice(&message[from..from + into.len()]);
                };
                let first = area.keep(length, read).expect("there is room");
                kept.push((first, message));
            } else if !kept.is_empty() {
                let (first, message) = kept.swap_remove(random.usize(..kept.len()));
                assert_eq!(area.length(first), Ok(message.len()));
                let mut into = std::vec![0; message.len()];
                area.read(first, &mut into).expect("it is there");
                assert_eq!(into, message);
                assert_eq!(area.release(first), Ok(0), "nothing was put behind it");
            }
        }
        assert!(area.used <= 40, "{} cells", area.used);
    }
}
