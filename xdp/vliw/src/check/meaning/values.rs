// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Symbolic values, as hash-consed trees: two values built from the same operands in the same way
//! have the same number.
//!
//! Sums have a canonical form, and so do values composed of bytes: a value assembled from bytes
//! equals the same value loaded at once.

use crate::operation::{Arithmetic, ByteOrder, Width};
use freeport_ebpf::interpreter::compute;
use std::collections::HashMap;

/// A value, by its number in [`Values`].
pub(super) type Id = u32;

/// A value of which only the origin is known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Leaf {
    /// The address of the context.
    Context,
    /// A frame pointer, numbered from the first function.
    Frame(usize),
    /// An address in the context, by its offset: 0 is the packet's start, 4 its end, 8 the start of
    /// the metadata; with the number of calls so far that moved them.
    Field(u8, usize),
    /// A reference to a map.
    Map(u32),
    /// The address of the first value of a map.
    MapValue(u32),
    /// A reference to a function of the program, by its number.
    Function(usize),
    /// The result of a call, by the number of the call.
    Result(usize),
    /// An argument of a function that a helper calls.
    Argument(u8),
    /// The content of a register that a call clobbered, in the image or in the program.
    Lost(bool, usize, u8),
}

/// Construction of a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Node {
    Constant(u64),
    Leaf(Leaf),
    /// A linear combination: terms with their factors, and a constant.
    Sum(Vec<(Id, u64)>, u64),
    Compute(Arithmetic, Width, Id, Id),
    /// Low bits of a value, sign-extended.
    SignExtend(Width, u8, Id),
    /// Eight values of one byte each.
    Bytes([Id; 8]),
    /// A byte of a value.
    Extract(u8, Id),
    /// A byte of memory, after a view's changes.
    Memory {
        base: Id,
        offset: u64,
        view: u32,
    },
}

/// All values.
#[derive(Default)]
pub(super) struct Values {
    nodes: Vec<Node>,
    numbers: HashMap<Node, Id>,
}

impl Values {
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    pub fn of(&mut self, node: Node) -> Id {
        if let Some(id) = self.numbers.get(&node) {
            return *id;
        }
        let id = Id::try_from(self.nodes.len()).expect("paths end long before");
        self.nodes.push(node.clone());
        self.numbers.insert(node, id);
        id
    }

    pub fn constant(&mut self, value: u64) -> Id {
        self.of(Node::Constant(value))
    }

    pub fn leaf(&mut self, leaf: Leaf) -> Id {
        self.of(Node::Leaf(leaf))
    }

    pub fn as_constant(&self, id: Id) -> Option<u64> {
        match self.node(id) {
            Node::Constant(value) => Some(*value),
            _ => None,
        }
    }

    /// Computes an operation on two values.
    pub fn compute(&mut self, operation: Arithmetic, width: Width, left: Id, right: Id) -> Id {
        use Arithmetic::*;
        if operation == Move {
            return self.of_width(width, right);
        }
        if let (Some(left), Some(right)) = (self.as_constant(left), self.as_constant(right)) {
            let value = compute(operation, width, left, right);
            return self.constant(value);
        }
        match operation {
            Add | Subtract => {
                let factor = if operation == Add { 1 } else { u64::MAX };
                let sum = self.add_scaled(left, right, factor);
                self.of_width(width, sum)
            }
            And | Or | Xor => {
                let (left, right) = (self.of_width(width, left), self.of_width(width, right));
                self.bitwise(operation, left, right)
            }
            ShiftLeft | ShiftRight => self.shift(operation, width, left, right),
            _ => {
                let (left, right) = (self.of_width(width, left), self.of_width(width, right));
                self.plain(operation, width, left, right)
            }
        }
    }

    fn plain(&mut self, operation: Arithmetic, width: Width, left: Id, right: Id) -> Id {
        use Arithmetic::{And, Multiply, Or, Xor};
        let is_either = matches!(operation, And | Multiply | Or | Xor) && right < left;
        let (left, right) = if is_either { (right, left) } else { (left, right) };
        self.of(Node::Compute(operation, width, left, right))
    }

    /// Returns the low bits of a value.
    fn of_width(&mut self, width: Width, id: Id) -> Id {
        if width == Width::Bits64 { id } else { self.truncate(id, 4) }
    }

    /// Zero-extends the low bytes of a value.
    pub fn truncate(&mut self, id: Id, bytes: usize) -> Id {
        let id = if bytes <= 4 { self.without_upper_half(id) } else { id };
        let zero = self.constant(0);
        let mut all = self.bytes(id);
        all[bytes.min(8)..].fill(zero);
        self.of_bytes(all)
    }

    /// Simplifies a value of which only the lower half matters.
    fn without_upper_half(&mut self, id: Id) -> Id {
        let low = |value: u64| value & u64::from(u32::MAX);
        match self.node(id).clone() {
            Node::Sum(terms, constant) => {
                let (mut sum, mut changed) = (vec![], false);
                for (term, factor) in terms {
                    let inner = self.untruncated(term);
                    changed |= inner != term;
                    sum.push((inner, low(factor)));
                }
                let mut total = self.sum_of(vec![], low(constant));
                for (term, factor) in sum {
                    total = self.add_scaled(total, term, factor);
                }
                match self.node(total).clone() {
                    Node::Sum(mut terms, constant) => {
                        terms.iter_mut().for_each(|(_, factor)| *factor = low(*factor));
                        let sum = self.sum_of(terms, low(constant));
                        if changed { self.without_upper_half(sum) } else { sum }
                    }
                    _ => total,
                }
            }
            _ => self.untruncated(id),
        }
    }

    /// Returns the value whose lower half this is, if it is one.
    fn untruncated(&mut self, id: Id) -> Id {
        let Node::Bytes(bytes) = *self.node(id) else { return id };
        let Node::Extract(0, whole) = *self.node(bytes[0]) else { return id };
        let all = self.bytes(whole);
        if all[..4] == bytes[..4] { whole } else { id }
    }

    /// Returns `left + factor * right`.
    pub fn add_scaled(&mut self, left: Id, right: Id, factor: u64) -> Id {
        let (mut terms, constant) = self.terms(left);
        let (others, more) = self.terms(right);
        for (term, count) in others {
            let count = count.wrapping_mul(factor);
            match terms.iter_mut().find(|(known, _)| *known == term) {
                Some((_, known)) => *known = known.wrapping_add(count),
                None => terms.push((term, count)),
            }
        }
        self.sum_of(terms, constant.wrapping_add(more.wrapping_mul(factor)))
    }

    fn sum_of(&mut self, mut terms: Vec<(Id, u64)>, constant: u64) -> Id {
        terms.retain(|(_, factor)| *factor != 0);
        terms.sort_unstable();
        match (terms.as_slice(), constant) {
            ([], _) => self.constant(constant),
            ([(only, 1)], 0) => *only,
            _ => self.of(Node::Sum(terms, constant)),
        }
    }

    /// Returns a value as a sum.
    pub fn terms(&self, id: Id) -> (Vec<(Id, u64)>, u64) {
        match self.node(id) {
            Node::Constant(value) => (vec![], *value),
            Node::Sum(terms, constant) => (terms.clone(), *constant),
            _ => (vec![(id, 1)], 0),
        }
    }

    /// Splits a value into the part of its sum that is not constant, and the constant.
    pub fn split(&mut self, id: Id) -> (Id, u64) {
        let (terms, constant) = self.terms(id);
        (self.sum_of(terms, 0), constant)
    }

    /// Adds a constant to a value.
    pub fn offset(&mut self, id: Id, offset: i64) -> Id {
        let offset = self.constant(offset as u64);
        self.add_scaled(id, offset, 1)
    }

    pub fn negate(&mut self, width: Width, id: Id) -> Id {
        let zero = self.constant(0);
        self.compute(Arithmetic::Subtract, width, zero, id)
    }

    pub fn swap(&mut self, order: ByteOrder, bits: u8, id: Id) -> Id {
        let count = usize::from(bits / 8);
        let zero = self.constant(0);
        let mut bytes = self.bytes(id);
        bytes[count..].fill(zero);
        if order != ByteOrder::Little {
            bytes[..count].reverse();
        }
        self.of_bytes(bytes)
    }

    pub fn sign_extend(&mut self, width: Width, bits: u8, id: Id) -> Id {
        let count = usize::from(bits / 8);
        let low = self.truncate(id, count);
        if let Some(value) = self.as_constant(low) {
            let unused = 64 - u32::from(bits);
            let extended = ((value << unused) as i64 >> unused) as u64;
            let extended = self.constant(extended);
            return self.of_width(width, extended);
        }
        match self.byte_count(low) < count {
            true => low,
            false => self.of(Node::SignExtend(width, bits, low)),
        }
    }

    fn bitwise(&mut self, operation: Arithmetic, left: Id, right: Id) -> Id {
        use Arithmetic::{And, Xor};
        if left == right {
            return if operation == Xor { self.constant(0) } else { left };
        }
        let zero = self.constant(0);
        let all = self.constant(0xff);
        // Only bytes that both operands have can be nonzero.
        let count = self.byte_count(left).min(self.byte_count(right));
        let [left, right] = match operation {
            And => [left, right].map(|id| self.truncate(id, count)),
            _ => [left, right],
        };
        let (one, other) = (self.bytes(left), self.bytes(right));
        let pairs = one.into_iter().zip(other);
        let merged = pairs.map(|(one, other)| match operation {
            And if one == zero || other == zero => Some(zero),
            And if one == all => Some(other),
            And => (other == all).then_some(one),
            _ if one == zero => Some(other),
            _ => (other == zero).then_some(one),
        });
        let merged: Option<Vec<_>> = merged.collect();
        match merged.and_then(|merged| <[Id; 8]>::try_from(merged).ok()) {
            Some(bytes) => self.of_bytes(bytes),
            None => self.plain(operation, Width::Bits64, left, right),
        }
    }

    fn shift(&mut self, operation: Arithmetic, width: Width, left: Id, right: Id) -> Id {
        let bits = if width == Width::Bits64 { 64 } else { 32 };
        let right = match self.as_constant(right) {
            Some(count) => self.constant(count % bits),
            None => self.of_width(width, right),
        };
        let left = self.of_width(width, left);
        let count = self.as_constant(right).filter(|count| count % 8 == 0);
        let Some(count) = count else {
            // The upper bits do not affect a right shift within the lower half.
            let is_low = operation == Arithmetic::ShiftRight && self.as_constant(right).is_some();
            let width = if is_low { Width::Bits64 } else { width };
            return self.plain(operation, width, left, right);
        };
        let (zero, count) = (self.constant(0), count as usize / 8);
        let mut bytes = self.bytes(left);
        if operation == Arithmetic::ShiftLeft {
            bytes.rotate_right(count);
            bytes[..count].fill(zero);
        } else {
            bytes.rotate_left(count);
            bytes[8 - count..].fill(zero);
        }
        let shifted = self.of_bytes(bytes);
        self.of_width(width, shifted)
    }

    /// Returns the bytes of a value.
    pub fn bytes(&mut self, id: Id) -> [Id; 8] {
        let zero = self.constant(0);
        match self.node(id).clone() {
            Node::Bytes(bytes) => bytes,
            Node::Constant(value) => value.to_le_bytes().map(|byte| self.constant(byte.into())),
            _ => {
                let count = self.byte_count(id);
                if count == 1 {
                    return [id, zero, zero, zero, zero, zero, zero, zero];
                }
                std::array::from_fn(|at| match at < count {
                    true => self.of(Node::Extract(at as u8, id)),
                    false => zero,
                })
            }
        }
    }

    /// Returns the value of eight bytes.
    pub fn of_bytes(&mut self, bytes: [Id; 8]) -> Id {
        let constants = bytes.map(|byte| self.as_constant(byte).map(|byte| byte as u8));
        if constants.iter().all(Option::is_some) {
            return self.constant(u64::from_le_bytes(constants.map(Option::unwrap_or_default)));
        }
        if constants[1..].iter().all(|byte| *byte == Some(0)) {
            return bytes[0];
        }
        if let Node::Extract(0, whole) = *self.node(bytes[0])
            && self.bytes(whole) == bytes
        {
            return whole;
        }
        self.of(Node::Bytes(bytes))
    }

    /// Returns the number of low bytes that may be nonzero.
    pub fn byte_count(&self, id: Id) -> usize {
        match *self.node(id) {
            Node::Constant(value) => 8 - value.leading_zeros() as usize / 8,
            Node::Bytes(bytes) => {
                bytes.iter().rposition(|byte| self.as_constant(*byte) != Some(0)).unwrap_or(0) + 1
            }
            Node::Extract(..) | Node::Memory { .. } => 1,
            Node::Compute(Arithmetic::And, _, left, right) => {
                self.byte_count(left).min(self.byte_count(right))
            }
            Node::Compute(Arithmetic::Or | Arithmetic::Xor, _, left, right) => {
                self.byte_count(left).max(self.byte_count(right))
            }
            Node::Compute(Arithmetic::ShiftRight, _, left, _) => self.byte_count(left),
            Node::Compute(_, Width::Bits32, ..) | Node::SignExtend(Width::Bits32, ..) => 4,
            _ => 8,
        }
    }
}
