// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Known contents of a frame: values that were stored in one piece and not overwritten since, and
//! which of the other bytes may be part of an address.

use super::scalar::Scalar;
use super::unknown::{Place, Unknown};
use super::value::{Kind, Value};
use crate::abi::FRAME_BYTES;
use crate::instruction::{Arithmetic, Width};
use std::ops::Range;

/// Contents of a frame. Offsets here count from the frame's first byte.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Content {
    /// Sorted, without overlaps.
    pieces: Vec<Piece>,
    /// Bytes that may be part of an address. Bytes of pieces are not included.
    opaque: ByteSet,
}

/// A value that was stored in one piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub start: usize,
    pub size: usize,
    /// A number of the piece's size; with 8 bytes any value.
    pub value: Value,
}

impl Piece {
    pub fn bytes(&self) -> Range<usize> {
        self.start..self.start + self.size
    }
}

/// A set of bytes of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct ByteSet([u64; FRAME_BYTES / 64]);

impl ByteSet {
    fn contains(&self, byte: usize) -> bool {
        self.0[byte / 64] >> (byte % 64) & 1 == 1
    }

    fn set(&mut self, bytes: Range<usize>, is_in: bool) {
        for byte in bytes {
            let bit = 1 << (byte % 64);
            match is_in {
                true => self.0[byte / 64] |= bit,
                false => self.0[byte / 64] &= !bit,
            }
        }
    }
}

/// Returns the bytes of a frame that an access of `size` bytes at an offset from its frame pointer
/// may touch, if they are all inside.
pub(super) fn bytes_of_frame(offset: (i64, i64), size: u64) -> Option<Range<usize>> {
    let end = FRAME_BYTES as i64;
    let start = offset.0.checked_add(end)?;
    let behind = offset.1.checked_add(end)?.checked_add_unsigned(size)?;
    (start >= 0 && behind <= end && start <= behind).then_some(start as usize..behind as usize)
}

impl Content {
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Returns the values of all pieces, with their first bytes.
    pub fn values_mut(&mut self) -> impl Iterator<Item = (usize, &mut Value)> {
        self.pieces.iter_mut().map(|piece| (piece.start, &mut piece.value))
    }

    /// Stores the low `size` bytes of a value at `start`.
    pub fn store(&mut self, start: usize, size: usize, value: Value) {
        let bytes = start..start + size;
        self.take_out(&bytes);
        self.opaque.set(bytes.clone(), false);
        let kept = match value.kind {
            Kind::Number(scalar) if scalar.unsigned().1 <= low_bits(size) => value,
            Kind::Number(scalar) => {
                let mask = Scalar::constant(low_bits(size));
                Value::number(scalar.computed(Arithmetic::And, Width::Bits64, &mask))
            }
            Kind::Nothing => return self.opaque.set(bytes, true),
            _ if size < 8 => return self.opaque.set(bytes, true),
            _ => value,
        };
        let at = self.pieces.partition_point(|piece| piece.start < start);
        self.pieces.insert(at, Piece { start, size, value: kept });
    }

    /// Records a possible store somewhere in `bytes`.
    pub fn blur(&mut self, bytes: Range<usize>, is_number: bool) {
        // The old contents may also remain.
        self.take_out(&bytes);
        if !is_number {
            self.opaque.set(bytes, true);
        }
    }

    /// Forgets all contents, after a store of anything anywhere.
    pub fn forget(&mut self) {
        self.blur(0..FRAME_BYTES, false);
    }

    /// Loads `size` bytes at `start`.
    pub fn load(&self, start: usize, size: usize, unknown: Unknown) -> Value {
        let found = self.pieces.iter().find(|piece| (piece.start, piece.size) == (start, size));
        if let Some(piece) = found {
            return piece.value;
        }
        let bytes = start..start + size;
        if self.may_hold_address(&bytes) {
            return Value::unknown(unknown);
        }
        let overlapping = self.pieces.iter().filter(|piece| overlap(&piece.bytes(), &bytes));
        let (mut whole, mut known) = (Scalar::constant(0), 0_u64);
        for piece in overlapping {
            let part = Part { piece, start, size };
            known |= part.mask();
            if let Some(scalar) = piece.value.scalar() {
                whole = whole.computed(Arithmetic::Or, Width::Bits64, &part.moved(scalar));
            }
        }
        let others = Scalar::with_bits(0, low_bits(size) & !known);
        Value::number(whole.computed(Arithmetic::Or, Width::Bits64, &others))
    }

    /// Loads `size` bytes from an unknown offset in `bytes`.
    pub fn load_within(&self, bytes: &Range<usize>, size: usize, unknown: Unknown) -> Value {
        if self.may_hold_address(bytes) {
            return Value::unknown(unknown);
        }
        Value::number(Scalar::of_bits(size as u32 * 8))
    }

    /// Returns whether a byte of the range may be part of an address.
    fn may_hold_address(&self, bytes: &Range<usize>) -> bool {
        let mut overlapping = self.pieces.iter().filter(|piece| overlap(&piece.bytes(), bytes));
        bytes.clone().any(|byte| self.opaque.contains(byte))
            || overlapping.any(|piece| piece.value.scalar().is_none())
    }

    /// Removes the pieces that overlap `bytes`. Their bytes of addresses may remain in memory in
    /// part.
    fn take_out(&mut self, bytes: &Range<usize>) {
        let opaque = &mut self.opaque;
        self.pieces.retain(|piece| {
            let stays = !overlap(&piece.bytes(), bytes);
            if !stays && piece.value.scalar().is_none() {
                opaque.set(piece.bytes(), true);
            }
            stays
        });
    }

    /// Joins with other contents; `join` merges the values of pieces that exist in both.
    pub fn join(&self, other: &Self, depth: u8, join: &mut JoinValues<'_>) -> Self {
        let mut opaque = ByteSet::default();
        for (to, (one, another)) in
            opaque.0.iter_mut().zip(self.opaque.0.iter().zip(&other.opaque.0))
        {
            *to = one | another;
        }
        let is_same = |one: &Piece, another: &Piece| one.bytes() == another.bytes();
        let mut joined = Self { pieces: vec![], opaque };
        for piece in &self.pieces {
            let offset = piece.start as i16 - FRAME_BYTES as i16;
            match other.pieces.iter().find(|another| is_same(piece, another)) {
                Some(another) => {
                    let place = Place::Stack { depth, offset };
                    let value = join(&piece.value, &another.value, place);
                    joined.pieces.push(Piece { value, ..*piece });
                }
                None if piece.value.scalar().is_none() => joined.opaque.set(piece.bytes(), true),
                None => {}
            }
        }
        for another in &other.pieces {
            let is_lost = !self.pieces.iter().any(|piece| is_same(piece, another));
            if is_lost && another.value.scalar().is_none() {
                joined.opaque.set(another.bytes(), true);
            }
        }
        joined
    }
}

/// Joins two values at a place.
pub(super) type JoinValues<'j> = dyn FnMut(&Value, &Value, Place) -> Value + 'j;

/// The part of a piece within the `size` bytes from `start` on.
struct Part<'p> {
    piece: &'p Piece,
    start: usize,
    size: usize,
}

impl Part<'_> {
    /// Returns the bits of the loaded value that come from the piece.
    fn mask(&self) -> u64 {
        shifted(low_bits(self.piece.size), self.shift()) & low_bits(self.size)
    }

    /// Shifts a number of the piece to its position in the loaded value.
    fn moved(&self, scalar: Scalar) -> Scalar {
        let shift = self.shift();
        let (operation, by) = match shift {
            0.. => (Arithmetic::ShiftLeft, shift),
            _ => (Arithmetic::ShiftRight, -shift),
        };
        let moved = scalar.computed(operation, Width::Bits64, &Scalar::constant(by as u64));
        moved.computed(Arithmetic::And, Width::Bits64, &Scalar::constant(self.mask()))
    }

    /// Returns the number of bits to shift left.
    fn shift(&self) -> i64 {
        (self.piece.start as i64 - self.start as i64) * 8
    }
}

fn shifted(value: u64, by: i64) -> u64 {
    if by >= 0 { value << by } else { value >> -by }
}

fn overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

/// Returns a mask of this many bytes, at most 8.
fn low_bits(bytes: usize) -> u64 {
    u64::MAX >> (64 - 8 * bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Why;

    const UNKNOWN: Unknown =
        Unknown { slot: 7, place: Place::Register(1), why: Why::PartOfAddress };

    fn number(value: u64) -> Value {
        Value::number(Scalar::constant(value))
    }

    #[test]
    fn numbers_can_be_read_in_other_pieces() {
        let mut content = Content::default();
        content.store(8, 8, number(0x1122_3344_5566_7788));
        content.store(16, 2, number(0xaabb));
        let load = |start, size| content.load(start, size, UNKNOWN).constant();
        assert_eq!(load(8, 4), Some(0x5566_7788));
        assert_eq!(load(9, 2), Some(0x6677));
        assert_eq!(load(14, 4), Some(0xaabb_1122));
        let half_known = content.load(16, 4, UNKNOWN).scalar().expect("is a number");
        assert_eq!(half_known.bits(), (0xaabb, 0xffff_0000));
    }

    #[test]
    fn part_of_an_address_is_nothing_known() {
        let mut content = Content::default();
        content.store(8, 8, Value::new(Kind::PacketEnd));
        assert_eq!(content.load(8, 8, UNKNOWN).kind, Kind::PacketEnd);
        assert_eq!(content.load(8, 4, UNKNOWN).kind, Kind::Unknown(UNKNOWN));
        content.store(12, 4, number(1));
        assert_eq!(content.load(12, 4, UNKNOWN).constant(), Some(1));
        assert_eq!(content.load(8, 4, UNKNOWN).kind, Kind::Unknown(UNKNOWN));
        content.store(8, 4, number(2));
        assert_eq!(content.load(8, 8, UNKNOWN).constant(), Some(0x1_0000_0002));
        content.store(16, 4, Value::new(Kind::PacketEnd));
        assert_eq!(content.load(16, 4, UNKNOWN).kind, Kind::Unknown(UNKNOWN));
    }

    #[test]
    fn what_may_be_overwritten_is_not_known_any_more() {
        let mut content = Content::default();
        content.store(8, 8, Value::new(Kind::PacketEnd));
        content.store(16, 8, number(1));
        content.blur(12..20, true);
        assert_eq!(content.load(8, 8, UNKNOWN).kind, Kind::Unknown(UNKNOWN));
        assert_eq!(content.load(16, 8, UNKNOWN).scalar(), Some(Scalar::ANY));
    }

    #[test]
    fn a_piece_of_one_side_alone_is_forgotten() {
        let (mut one, mut other) = (Content::default(), Content::default());
        one.store(0, 8, number(1));
        one.store(8, 8, number(5));
        one.store(16, 8, Value::new(Kind::PacketEnd));
        other.store(0, 8, number(1));
        let mut join = |one: &Value, _: &Value, _| *one;
        for joined in [one.join(&other, 0, &mut join), other.join(&one, 0, &mut join)] {
            assert_eq!(joined.load(0, 8, UNKNOWN).constant(), Some(1));
            assert_eq!(joined.load(8, 8, UNKNOWN).scalar(), Some(Scalar::ANY));
            assert_eq!(joined.load(16, 8, UNKNOWN).kind, Kind::Unknown(UNKNOWN));
        }
    }
}
