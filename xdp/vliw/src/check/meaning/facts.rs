// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Assumptions of a path: outcomes of comparisons, and their consequences.

use super::values::{Id, Leaf, Node, Values};
use crate::operation::{Arithmetic, Condition, Width};
use freeport_ebpf::interpreter::holds;
use std::collections::HashMap;

/// A comparison in canonical form; its negation is the same question with the other answer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Question {
    /// Are they equal?
    Equal(Id, Id),
    /// Is the first one less?
    Less(Id, Id),
    /// Is it less as a number with a sign?
    SignedLess(Id, Id),
    /// Does the packet end before this address plus this number of bytes?
    Short(Id, i64),
}

/// A question, and whether the answer yes means that the comparison holds.
pub(super) type Asked = (Question, bool);

/// Context field of the packet's end.
const END: u8 = 4;

/// Returns the question of a comparison.
pub(super) fn question(
    values: &mut Values,
    condition: Condition,
    width: Width,
    left: Id,
    right: Id,
) -> Asked {
    use Condition::*;
    let is_signed =
        matches!(condition, SignedGreater | SignedGreaterOrEqual | SignedLess | SignedLessOrEqual);
    let [left, right] = [left, right].map(|id| match (width, is_signed) {
        (Width::Bits64, _) => id,
        (Width::Bits32, false) => values.truncate(id, 4),
        (Width::Bits32, true) => values.sign_extend(Width::Bits64, 32, id),
    });
    match condition {
        Equal => equal(values, left, right, true),
        NotEqual => equal(values, left, right, false),
        Set => {
            let both = values.compute(Arithmetic::And, Width::Bits64, left, right);
            let zero = values.constant(0);
            equal(values, both, zero, false)
        }
        Less => less(values, left, right, true),
        Greater => less(values, right, left, true),
        LessOrEqual => less(values, right, left, false),
        GreaterOrEqual => less(values, left, right, false),
        SignedLess => signed_less(values, left, right, true),
        SignedGreater => signed_less(values, right, left, true),
        SignedLessOrEqual => signed_less(values, right, left, false),
        SignedGreaterOrEqual => signed_less(values, left, right, false),
    }
}

/// Returns the question whether the packet ends before an address.
pub(super) fn short(values: &mut Values, address: Id) -> Asked {
    let (base, bytes) = values.split(address);
    (Question::Short(base, bytes as i64), true)
}

fn equal(values: &mut Values, left: Id, right: Id, yes: bool) -> Asked {
    let (left, right) = match (values.as_constant(left), values.as_constant(right)) {
        (None, Some(constant)) => {
            let (base, offset) = values.split(left);
            (base, values.constant(constant.wrapping_sub(offset)))
        }
        (Some(_), None) => return equal(values, right, left, yes),
        _ => (left.min(right), left.max(right)),
    };
    (Question::Equal(left, right), yes)
}

fn less(values: &mut Values, left: Id, right: Id, yes: bool) -> Asked {
    let is_end = |id| matches!(values.node(id), Node::Leaf(Leaf::Field(END, _)));
    let (is_left_end, is_right_end) = (is_end(left), is_end(right));
    if is_left_end {
        let (question, _) = short(values, right);
        return (question, yes);
    }
    if is_right_end {
        let behind = values.offset(left, 1);
        let (question, _) = short(values, behind);
        return (question, !yes);
    }
    match values.as_constant(left) {
        // Greater than a constant is the negation of less than its successor.
        Some(constant) if constant < u64::MAX => {
            let next = values.constant(constant + 1);
            (Question::Less(right, next), !yes)
        }
        _ => (Question::Less(left, right), yes),
    }
}

fn signed_less(values: &mut Values, left: Id, right: Id, yes: bool) -> Asked {
    match values.as_constant(left).map(|constant| constant as i64) {
        Some(constant) if constant < i64::MAX => {
            let next = values.constant((constant + 1) as u64);
            (Question::SignedLess(right, next), !yes)
        }
        _ => (Question::SignedLess(left, right), yes),
    }
}

/// Returns whether a value is a valid address, or the lower half of one: neither is ever near 0.
fn is_address(values: &Values, id: Id) -> bool {
    let is_leaf = |id: Id| {
        use Leaf::{Context, Field, Frame, Map, MapValue};
        let Node::Leaf(leaf) = values.node(id) else { return false };
        matches!(leaf, Field(..) | Context | Frame(_) | Map(_) | MapValue(_))
    };
    let is_sum = |id: Id| {
        let (terms, _) = values.terms(id);
        let mut leaves = terms.iter().filter(|(term, _)| is_leaf(*term));
        matches!((leaves.next(), leaves.next()), (Some((_, 1)), None))
    };
    match *values.node(id) {
        Node::Bytes([first, ..]) => match *values.node(first) {
            Node::Extract(0, whole) => values.byte_count(id) == 4 && is_sum(whole),
            _ => false,
        },
        _ => is_sum(id),
    }
}

/// The assumptions of a path.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    answers: HashMap<Question, bool>,
    /// Unsigned range of values.
    ranges: HashMap<Id, (u64, u64)>,
    signed: HashMap<Id, (i64, i64)>,
    /// For addresses, the proven number of bytes after them, and the least number that is not
    /// available.
    lengths: HashMap<Id, (i64, i64)>,
}

impl Facts {
    /// Returns the answer to a question, if it follows from the assumptions.
    pub fn answer(&self, values: &Values, question: Question) -> Option<bool> {
        if let Some(answer) = self.answers.get(&question) {
            return Some(*answer);
        }
        let constant = |id| values.as_constant(id);
        match question {
            Question::Equal(left, right) if left == right => Some(true),
            Question::Less(left, right) | Question::SignedLess(left, right) if left == right => {
                Some(false)
            }
            Question::Equal(left, right) => {
                let right = constant(right)?;
                if is_address(values, left) && i32::try_from(right as i64).is_ok() {
                    return Some(false);
                }
                let (least, most) = self.range(values, left);
                let (low, high) = self.signed_range(left);
                let is_outside =
                    !(least..=most).contains(&right) || !(low..=high).contains(&(right as i64));
                if is_outside { Some(false) } else { (least == most).then_some(true) }
            }
            Question::Less(left, right) => {
                let (one, other) = (self.range(values, left), self.range(values, right));
                if one.1 < other.0 {
                    return Some(true);
                }
                (one.0 >= other.1).then_some(false)
            }
            Question::SignedLess(left, right) => match (constant(left), constant(right)) {
                (Some(left), Some(right)) => {
                    Some(holds(Condition::SignedLess, Width::Bits64, left, right))
                }
                (None, Some(right)) => {
                    let (least, most) = self.signed_range(left);
                    if most < right as i64 {
                        return Some(true);
                    }
                    (least >= right as i64).then_some(false)
                }
                _ => None,
            },
            Question::Short(base, bytes) => {
                let (there, missing) = self.length(base);
                if bytes >= missing {
                    return Some(true);
                }
                (bytes <= there).then_some(false)
            }
        }
    }

    /// Adds the assumption of an answer.
    pub fn assume(&mut self, values: &Values, question: Question, answer: bool) {
        self.answers.insert(question, answer);
        match question {
            Question::Short(base, bytes) => {
                let (there, missing) = self.length(base);
                let length = match answer {
                    true => (there, missing.min(bytes)),
                    false => (there.max(bytes), missing),
                };
                self.lengths.insert(base, length);
            }
            Question::Less(left, right) => {
                let Some(right) = values.as_constant(right) else { return };
                let (least, most) = self.range(values, left);
                let range = match answer {
                    true => (least, most.min(right.saturating_sub(1))),
                    false => (least.max(right), most),
                };
                self.ranges.insert(left, range);
            }
            Question::SignedLess(left, right) => {
                let Some(right) = values.as_constant(right) else { return };
                let (least, most) = self.signed_range(left);
                let range = match answer {
                    true => (least, most.min((right as i64).saturating_sub(1))),
                    false => (least.max(right as i64), most),
                };
                self.signed.insert(left, range);
            }
            Question::Equal(left, right) => {
                let Some(right) = values.as_constant(right) else { return };
                let (least, most) = self.range(values, left);
                let range = match answer {
                    true => (right, right),
                    false if least == right => (least.saturating_add(1), most),
                    false if most == right => (least, most.saturating_sub(1)),
                    false => return,
                };
                self.ranges.insert(left, range);
            }
        }
    }

    /// Returns the unsigned range of a value, derived from its operands; all 64 bits if nothing is
    /// known.
    pub fn bounds(&self, values: &Values, id: Id) -> (u64, u64) {
        let known = self.range(values, id);
        let moved = |(least, most): (u64, u64), by: i64, limit: u64| {
            let least = i128::from(least) + i128::from(by);
            let most = i128::from(most) + i128::from(by);
            (least >= 0 && most <= limit.into()).then_some((least as u64, most as u64))
        };
        let made = match values.node(id) {
            Node::Compute(Arithmetic::And, _, left, right) => {
                let most = self.bounds(values, *left).1.min(self.bounds(values, *right).1);
                Some((0, most))
            }
            Node::Compute(Arithmetic::ShiftLeft, width, left, right) => {
                let limit = if *width == Width::Bits64 { u64::MAX } else { u32::MAX.into() };
                let (least, most) = self.bounds(values, *left);
                let count = values.as_constant(*right).filter(|count| most <= limit >> count);
                count.map(|count| (least << count, most << count))
            }
            Node::Compute(Arithmetic::ShiftRight, _, left, right) => {
                let (least, most) = self.bounds(values, *left);
                values.as_constant(*right).map(|count| (least >> count, most >> count))
            }
            Node::Sum(terms, constant) => match terms.as_slice() {
                [(term, 1)] => moved(self.bounds(values, *term), *constant as i64, u64::MAX),
                _ => None,
            },
            // The lower half of a sum with a 32-bit constant.
            Node::Bytes([first, ..]) if values.byte_count(id) == 4 => match values.node(*first) {
                Node::Extract(0, whole) => match values.node(*whole) {
                    Node::Sum(terms, constant) if terms.len() == 1 && terms[0].1 == 1 => {
                        let by = i64::from(*constant as u32 as i32);
                        moved(self.bounds(values, terms[0].0), by, u32::MAX.into())
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        let (least, most) = made.unwrap_or(known);
        (least.max(known.0), most.min(known.1))
    }

    /// Returns whether a value is 0, if that is known.
    pub fn is_null(&self, values: &Values, id: Id) -> Option<bool> {
        let (least, most) = self.range(values, id);
        if least > 0 { Some(false) } else { (most == 0).then_some(true) }
    }

    /// Returns the number that a value is, if only one is possible.
    pub fn known(&self, values: &Values, id: Id) -> Option<u64> {
        let (least, most) = self.range(values, id);
        let (low, high) = self.signed_range(id);
        if low == high {
            return Some(low as u64);
        }
        (least == most).then_some(least)
    }

    /// Returns the proven number of packet bytes after an address.
    pub fn bytes_there(&self, base: Id) -> i64 {
        self.length(base).0
    }

    fn length(&self, base: Id) -> (i64, i64) {
        self.lengths.get(&base).copied().unwrap_or((i64::MIN, i64::MAX))
    }

    fn range(&self, values: &Values, id: Id) -> (u64, u64) {
        if let Some(constant) = values.as_constant(id) {
            return (constant, constant);
        }
        let unused = 64 - 8 * values.byte_count(id) as u32;
        let most = u64::MAX.checked_shr(unused).unwrap_or(0);
        self.ranges.get(&id).copied().unwrap_or((0, most))
    }

    fn signed_range(&self, id: Id) -> (i64, i64) {
        self.signed.get(&id).copied().unwrap_or((i64::MIN, i64::MAX))
    }
}
