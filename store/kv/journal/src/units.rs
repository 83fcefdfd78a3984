// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Buffers in which units and entries are put together, in the form that they have on the disk.

use crate::frame::{FRAME_BYTES, Header, Items, Kind, LENGTH_BYTES, MAX_ITEM_BYTES};

/// Entries of a snapshot become a block from this size on, in bytes.
pub const BLOCK_BYTES: usize = 64 << 10;

/// A worker's buffer of units, which is used again for each batch.
///
/// A unit is what one command, transaction or script has changed; recovery applies it whole or not
/// at all. [`crate::Journal::append`] writes the finished units as one batch, and clears it.
///
/// The buffer also holds the worker's share of the reserved disk space; see
/// [`crate::Journal::admit`].
#[derive(Default)]
pub struct Units {
    /// Room for the batch's header, and then the units.
    frame: Frame,
    /// Reserved bytes of disk that belong to this worker.
    pub(crate) allowance: u64,
    /// The position for which these units were prepared, if they are a copy; see
    /// [`crate::Journal::prepare_copy`].
    pub(crate) place: Option<u64>,
}

impl Units {
    /// An empty buffer.
    pub fn new() -> Units {
        Units::default()
    }

    /// Adds a unit.
    pub fn push(&mut self, unit: &[u8]) {
        self.unit().extend_from_slice(unit);
        self.finish();
    }

    /// The unit that is being put together, to which the caller appends bytes. The first call after
    /// [`Units::finish`] begins one. The caller must not shorten the bytes: others are before them.
    pub fn unit(&mut self) -> &mut Vec<u8> {
        self.frame.item()
    }

    /// Whether a unit is being put together.
    pub fn is_in_unit(&self) -> bool {
        self.frame.start.is_some()
    }

    /// Finishes the unit. Does nothing if there is none.
    ///
    /// # Panics
    ///
    /// If the unit has more than 2 GiB. The caller bounds what one command may change.
    pub fn finish(&mut self) {
        self.frame.finish();
    }

    /// Drops the unit that is being put together, and keeps the finished ones.
    pub fn discard(&mut self) {
        self.frame.discard();
    }

    /// Whether there is no finished unit.
    pub fn is_empty(&self) -> bool {
        self.frame.count == 0
    }

    /// Number of finished units.
    pub fn count(&self) -> u32 {
        self.frame.count
    }

    /// Bytes that a batch of all units takes in the log.
    pub fn bytes(&self) -> u64 {
        self.frame.bytes.len().max(FRAME_BYTES) as u64
    }

    /// The finished units, as a batch of them has them.
    ///
    /// # Panics
    ///
    /// If a unit is unfinished.
    pub fn items(&self) -> Items<'_> {
        assert!(!self.is_in_unit(), "a unit is sent when it is finished");
        Items::known(self.frame.items(), self.frame.count)
    }

    /// Drops all units.
    pub fn clear(&mut self) {
        self.frame.clear();
        self.place = None;
    }

    pub(crate) fn frame(&mut self) -> &mut Frame {
        &mut self.frame
    }
}

/// A buffer of entries of a snapshot, which is used again for each block.
#[derive(Default)]
pub struct Entries {
    frame: Frame,
}

impl Entries {
    /// An empty buffer.
    pub fn new() -> Entries {
        Entries::default()
    }

    /// Adds an entry.
    ///
    /// # Panics
    ///
    /// If the entry has more than 2 GiB.
    pub fn push(&mut self, entry: &[u8]) {
        self.frame.item().extend_from_slice(entry);
        self.frame.finish();
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.frame.count == 0
    }

    /// Whether there is enough for a block ([`BLOCK_BYTES`]), which should be handed over now.
    pub fn is_block(&self) -> bool {
        self.frame.bytes.len() >= BLOCK_BYTES
    }

    /// The buffer's frame, which is left empty.
    pub(crate) fn take(&mut self) -> Frame {
        std::mem::take(&mut self.frame)
    }
}

/// A frame that is being put together: room for its header, and finished items. A last item may be
/// unfinished.
#[derive(Default)]
pub(crate) struct Frame {
    bytes: Vec<u8>,
    count: u32,
    /// Where the unfinished item begins.
    start: Option<usize>,
}

/// A buffer that was larger than this is not kept.
const KEPT_BYTES: usize = 1 << 20;

impl Frame {
    fn item(&mut self) -> &mut Vec<u8> {
        if self.start.is_none() {
            self.bytes.resize(self.bytes.len().max(FRAME_BYTES), 0);
            self.start = Some(self.bytes.len());
            self.bytes.extend_from_slice(&[0; LENGTH_BYTES]);
        }
        &mut self.bytes
    }

    /// Makes the frame one of these items.
    pub fn fill(&mut self, items: &Items<'_>) {
        self.clear();
        self.bytes.reserve(FRAME_BYTES + items.bytes().len());
        self.bytes.resize(FRAME_BYTES, 0);
        self.bytes.extend_from_slice(items.bytes());
        self.count = items.len();
    }

    fn finish(&mut self) {
        let Some(start) = self.start.take() else { return };
        let length = self.bytes.len() - start - LENGTH_BYTES;
        assert!(length as u64 <= MAX_ITEM_BYTES, "a unit or entry of {length} bytes");
        let length = (length as u32).to_le_bytes();
        self.bytes[start..start + LENGTH_BYTES].copy_from_slice(&length);
        self.count += 1;
    }

    fn discard(&mut self) {
        if let Some(start) = self.start.take() {
            self.bytes.truncate(start);
        }
    }

    /// The header for the items, without sequence number and mark. It has their check, which takes
    /// the most time.
    pub fn header(&self, kind: Kind) -> Header {
        let items = self.items();
        Header {
            kind,
            bytes: items.len() as u64,
            sequence: 0,
            mark: 0,
            items_check: crc32c::crc32c(items),
            items: self.count,
        }
    }

    /// The bytes of the whole frame at `place`.
    pub fn seal(&mut self, header: &Header, salt: u64, place: u64) -> &[u8] {
        debug_assert!(self.start.is_none(), "an unfinished item is not sealed");
        self.bytes.resize(self.bytes.len().max(FRAME_BYTES), 0);
        self.bytes[..FRAME_BYTES].copy_from_slice(&header.encode(salt, place));
        &self.bytes
    }

    /// Number of items.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Bytes of the whole frame.
    pub fn len(&self) -> usize {
        self.bytes.len().max(FRAME_BYTES)
    }

    pub fn clear(&mut self) {
        if self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
        self.count = 0;
        self.start = None;
    }

    fn items(&self) -> &[u8] {
        self.bytes.get(FRAME_BYTES..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_unit_can_be_dropped() {
        let mut units = Units::new();
        units.push(b"first");
        units.unit().extend_from_slice(b"half");
        assert!(units.is_in_unit());
        units.discard();
        units.unit().extend_from_slice(b"sec");
        units.unit().extend_from_slice(b"ond");
        units.finish();
        units.finish();
        assert_eq!(units.count(), 2);
        let header = units.frame().header(Kind::Batch);
        let bytes = units.frame().seal(&header, 1, 2);
        let written = Items::parse(&bytes[FRAME_BYTES..], header.items).expect("well-formed");
        assert!(written.eq([&b"first"[..], b"second"]));
        units.frame().clear();
        assert!(units.is_empty());
    }
}
