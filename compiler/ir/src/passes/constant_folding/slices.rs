// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Tracing of bits to their source. A slice of a value is followed through inserts, concatenations,
//! extends, shifts and masks by constants to the pieces it consists of: a field read from a flit
//! into which other fields were inserted becomes the inserted value, or a slice of the original
//! flit.

use super::{Folded, Folder};
use crate::{BinaryOp, Bits, Op, UnaryOp, ValueId};

/// Maximum definitions examined for one slice.
const FUEL: u32 = 256;
/// Maximum pieces that a slice is joined from.
const MAX_PIECES: usize = 16;

/// Some bits of a slice; pieces are ordered from the lowest.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Piece {
    Constant(Bits),
    Part { value: ValueId, lo: u32, width: u32 },
}

impl Folder<'_> {
    /// Returns the simpler form of an operation on slices, if there is one.
    pub(super) fn fold_slice(&mut self, op: &Op) -> Option<Folded> {
        match op {
            Op::Truncate(value, width) => {
                Some(Folded::Op(Op::Extract { value: *value, lo: 0, width: *width }))
            }
            Op::Extract { value, lo, width } => self.fold_extract(*value, *lo, *width),
            Op::ExtractDynamic { value, lo, width } => {
                let lo = self.constant(*lo)?.saturating_u64();
                self.fold_fixed_extract(*value, lo, *width)
            }
            Op::Insert { value, lo, part } => self.fold_insert(*value, *lo, *part),
            Op::InsertDynamic { value, lo, part } => {
                let lo = self.constant(*lo)?.saturating_u64();
                self.fold_fixed_insert(*value, lo, *part)
            }
            Op::Concat(parts) => self.fold_concat(parts),
            _ => None,
        }
    }

    fn fold_extract(&mut self, value: ValueId, lo: u32, width: u32) -> Option<Folded> {
        if lo == 0 && width == self.width(value) {
            return Some(Folded::Value(value));
        }
        let pieces = self.pieces_of(value, lo, width);
        if pieces == [Piece::Part { value, lo, width }] || pieces.len() > MAX_PIECES {
            return None;
        }
        Some(self.join(&pieces))
    }

    /// Folds an extract at a constant bit, which may reach beyond the value.
    fn fold_fixed_extract(&mut self, value: ValueId, lo: u64, width: u32) -> Option<Folded> {
        let whole = self.width(value);
        if lo >= u64::from(whole) {
            return Some(Folded::Value(self.number(Bits::zero(width))));
        }
        let lo = lo as u32;
        let inside = width.min(whole - lo);
        if inside == width {
            return Some(Folded::Op(Op::Extract { value, lo, width }));
        }
        let part = self.emit(Op::Extract { value, lo, width: inside }, inside);
        Some(Folded::Op(Op::ZeroExtend(part, width)))
    }

    /// Folds an insert at a constant bit, which may reach beyond the value.
    fn fold_fixed_insert(&mut self, value: ValueId, lo: u64, part: ValueId) -> Option<Folded> {
        let whole = self.width(value);
        if lo >= u64::from(whole) {
            return Some(Folded::Value(value));
        }
        let lo = lo as u32;
        let inside = self.width(part).min(whole - lo);
        let part = self.emit(Op::Extract { value: part, lo: 0, width: inside }, inside);
        Some(Folded::Op(Op::Insert { value, lo, part }))
    }

    fn fold_insert(&mut self, value: ValueId, lo: u32, part: ValueId) -> Option<Folded> {
        let width = self.width(part);
        if width == self.width(value) {
            return Some(Folded::Value(part));
        }
        let old = self.pieces_of(value, lo, width);
        if old.len() == 1 && old == self.pieces_of(part, 0, width) {
            return Some(Folded::Value(value));
        }
        let Op::Insert { value: inner, lo: inner_lo, part: inner_part } =
            *self.definition(value)?
        else {
            return None;
        };
        let inner_width = self.width(inner_part);
        if lo <= inner_lo && inner_lo + inner_width <= lo + width {
            return Some(Folded::Op(Op::Insert { value: inner, lo, part }));
        }
        if !self.is_used_once(value) {
            return None;
        }
        let (low, parts) = if inner_lo + inner_width == lo {
            (inner_lo, vec![inner_part, part])
        } else if lo + width == inner_lo {
            (lo, vec![part, inner_part])
        } else {
            return None;
        };
        let both = self.emit(Op::Concat(parts), width + inner_width);
        Some(Folded::Op(Op::Insert { value: inner, lo: low, part: both }))
    }

    fn fold_concat(&mut self, parts: &[ValueId]) -> Option<Folded> {
        let mut pieces = vec![];
        for part in parts {
            self.flatten(*part, &mut pieces);
        }
        let is_flat =
            parts.iter().all(|part| !matches!(self.definition(*part), Some(Op::Concat(_))));
        let has_zeros_on_top = pieces.len() > 1
            && matches!(pieces.last(), Some(Piece::Constant(bits)) if bits.is_zero());
        if is_flat && pieces.len() == parts.len() && parts.len() > 1 && !has_zeros_on_top {
            return None;
        }
        Some(self.join(&pieces))
    }

    /// Appends the pieces of an operand of a concatenation, without looking into inserts.
    fn flatten(&self, value: ValueId, pieces: &mut Vec<Piece>) {
        match self.definition(value) {
            Some(Op::Const(bits)) => push(pieces, Piece::Constant(bits.clone())),
            Some(Op::Extract { value, lo, width }) => {
                push(pieces, Piece::Part { value: *value, lo: *lo, width: *width });
            }
            Some(Op::Concat(parts)) => parts.iter().for_each(|part| self.flatten(*part, pieces)),
            _ => push(pieces, Piece::Part { value, lo: 0, width: self.width(value) }),
        }
    }

    fn pieces_of(&self, value: ValueId, lo: u32, width: u32) -> Vec<Piece> {
        let mut pieces = vec![];
        self.gather(value, lo, width, &mut FUEL.clone(), &mut pieces);
        pieces
    }

    /// Appends the pieces of `width` bits of `value` from `lo` on.
    fn gather(&self, value: ValueId, lo: u32, width: u32, fuel: &mut u32, pieces: &mut Vec<Piece>) {
        if width == 0 {
            return;
        }
        let itself = Piece::Part { value, lo, width };
        let Some(definition) = self.definition(value).filter(|_| *fuel > 0) else {
            return push(pieces, itself);
        };
        *fuel -= 1;
        let end = lo + width;
        match definition {
            Op::Const(bits) => push(pieces, Piece::Constant(bits.extract(lo, width))),
            Op::Insert { value: whole, lo: at, part } => {
                let part_end = at + self.width(*part);
                let (from, to) = (lo.clamp(*at, part_end), end.clamp(*at, part_end));
                self.gather(*whole, lo, end.min(*at).saturating_sub(lo), fuel, pieces);
                self.gather(*part, from - at, to - from, fuel, pieces);
                let above = lo.max(part_end);
                self.gather(*whole, above, end.saturating_sub(above), fuel, pieces);
            }
            Op::Concat(parts) => {
                let mut at = 0;
                for part in parts {
                    let part_end = at + self.width(*part);
                    let (from, to) = (lo.clamp(at, part_end), end.clamp(at, part_end));
                    self.gather(*part, from - at, to - from, fuel, pieces);
                    at = part_end;
                }
            }
            Op::Extract { value, lo: at, .. } => self.gather(*value, at + lo, width, fuel, pieces),
            Op::Truncate(value, _) => self.gather(*value, lo, width, fuel, pieces),
            Op::ZeroExtend(value, _) => {
                let top = self.width(*value);
                self.gather(*value, lo, end.min(top).saturating_sub(lo), fuel, pieces);
                push_zeros(pieces, end - lo.max(top).min(end));
            }
            Op::SignExtend(value, _) if end <= self.width(*value) => {
                self.gather(*value, lo, width, fuel, pieces);
            }
            Op::Binary(op, left, right) => {
                if !self.gather_binary(*op, *left, *right, (lo, width), fuel, pieces) {
                    push(pieces, itself);
                }
            }
            Op::Unary(UnaryOp::ByteSwap, inner) if width == 8 && lo.is_multiple_of(8) => {
                self.gather(*inner, self.width(*inner) - end, width, fuel, pieces);
            }
            _ => push(pieces, itself),
        }
    }

    /// Handles shifts and masks by a constant. Returns whether the operation was one of those.
    fn gather_binary(
        &self,
        op: BinaryOp,
        left: ValueId,
        right: ValueId,
        (lo, width): (u32, u32),
        fuel: &mut u32,
        pieces: &mut Vec<Piece>,
    ) -> bool {
        let Some(bits) = self.constant(right) else { return false };
        let (whole, end) = (bits.width(), lo + width);
        let by = u32::try_from(bits.saturating_u64()).unwrap_or(u32::MAX).min(whole);
        let mask = bits.extract(lo, width);
        match op {
            BinaryOp::LShr => {
                let top = whole - by;
                self.gather(left, lo + by, end.min(top).saturating_sub(lo), fuel, pieces);
                push_zeros(pieces, end - lo.max(top).min(end));
            }
            BinaryOp::Shl => {
                push_zeros(pieces, end.min(by).saturating_sub(lo));
                let from = lo.max(by).min(end);
                self.gather(left, from.saturating_sub(by), end - from, fuel, pieces);
            }
            BinaryOp::And if mask.is_zero() => push_zeros(pieces, width),
            BinaryOp::And if mask == Bits::ones(width) => {
                self.gather(left, lo, width, fuel, pieces);
            }
            BinaryOp::Or | BinaryOp::Xor if mask.is_zero() => {
                self.gather(left, lo, width, fuel, pieces);
            }
            BinaryOp::Or if mask == Bits::ones(width) => push(pieces, Piece::Constant(mask)),
            _ => return false,
        }
        true
    }

    /// Concatenates the pieces.
    fn join(&mut self, pieces: &[Piece]) -> Folded {
        match pieces {
            [Piece::Constant(bits)] => Folded::Value(self.number(bits.clone())),
            [Piece::Part { value, lo: 0, width }] if *width == self.width(*value) => {
                Folded::Value(*value)
            }
            [Piece::Part { value, lo, width }] => {
                Folded::Op(Op::Extract { value: *value, lo: *lo, width: *width })
            }
            [low @ .., Piece::Constant(bits)] if bits.is_zero() => {
                let width: u32 = low.iter().map(Piece::width).sum();
                let low = self.place(low, width);
                Folded::Op(Op::ZeroExtend(low, width + bits.width()))
            }
            _ => {
                let parts = pieces.iter().map(|piece| {
                    let piece = std::slice::from_ref(piece);
                    self.place(piece, piece[0].width())
                });
                Folded::Op(Op::Concat(parts.collect()))
            }
        }
    }

    fn place(&mut self, pieces: &[Piece], width: u32) -> ValueId {
        match self.join(pieces) {
            Folded::Value(value) => value,
            Folded::Op(op) => self.emit(op, width),
        }
    }
}

impl Piece {
    fn width(&self) -> u32 {
        match self {
            Piece::Constant(bits) => bits.width(),
            Piece::Part { width, .. } => *width,
        }
    }
}

/// Appends a piece; merges it with the previous one if they are adjacent in one value.
fn push(pieces: &mut Vec<Piece>, piece: Piece) {
    match (pieces.last_mut(), &piece) {
        (Some(Piece::Constant(low)), Piece::Constant(high)) => *low = Bits::concat([&*low, high]),
        (
            Some(Piece::Part { value, lo, width }),
            Piece::Part { value: next, lo: next_lo, width: next_width },
        ) if value == next && *lo + *width == *next_lo => *width += next_width,
        _ => pieces.push(piece),
    }
}

fn push_zeros(pieces: &mut Vec<Piece>, width: u32) {
    if width > 0 {
        push(pieces, Piece::Constant(Bits::zero(width)));
    }
}
