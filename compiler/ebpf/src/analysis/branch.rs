// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Facts on both outcomes of a conditional jump.
//!
//! Compilers write the same check in many forms: the packet's end may be on either side, a
//! sufficient length may be the taken or the fall-through path, and the compared address may be
//! that of the last byte needed or the one after it. All forms reduce to the condition that the
//! address is not beyond the end.

use super::scalar::Scalar;
use super::state::{PACKET, State};
use super::value::{Kind, Value};
use crate::instruction::{Condition, Operand, Width};

/// A conditional jump.
#[derive(Clone, Copy)]
pub(super) struct Jump {
    pub width: Width,
    pub condition: Condition,
    pub left: u8,
    pub right: Operand,
}

/// A comparison that determines whether bytes of the packet or its metadata exist.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Check {
    pub is_metadata: bool,
    /// Least and greatest number of bytes from the start that exist if the check succeeds.
    pub needed: (i64, i64),
    /// Whether the check succeeds if the jump is taken, or if it falls through.
    pub holds_if_taken: bool,
}

/// A comparison of an address with the end: it tests whether there are at least, or exactly, a
/// number of bytes after a base.
struct Question {
    base: usize,
    bytes: i64,
    is_exact: bool,
    /// Whether the answer is yes if the comparison holds, or if it does not.
    yes_if_so: bool,
}

impl Jump {
    /// Returns the states after the jump is taken and after it falls through; `None` if impossible.
    pub fn outcomes(&self, state: &State) -> [Option<State>; 2] {
        [true, false].map(|holds| self.outcome(state, holds))
    }

    /// Returns the jump as a check of the packet's length, if it is one.
    pub fn check(&self, state: &State) -> Option<Check> {
        let question = self.question(state).filter(|question| !question.is_exact)?;
        let base = state.bases[question.base];
        let needed = (base.place.0 + question.bytes, base.place.1 + question.bytes);
        let holds_if_taken = question.yes_if_so;
        Some(Check { is_metadata: base.is_metadata, needed, holds_if_taken })
    }

    fn operands(&self, state: &State) -> (Value, Value) {
        let right = match self.right {
            Operand::Register(register) => state.get(register),
            Operand::Immediate(number) => Value::number(Scalar::constant(i64::from(number) as u64)),
        };
        (state.get(self.left), right)
    }

    fn outcome(&self, state: &State, holds: bool) -> Option<State> {
        let mut state = state.clone();
        let (left, right) = self.operands(&state);
        if let (Some(one), Some(other)) = (left.scalar(), right.scalar()) {
            let (one, other) = one.compared(self.condition, self.width, &other, holds)?;
            set_number(&mut state, self.left, left.mark, one);
            match self.right {
                Operand::Register(register) if register != self.left => {
                    set_number(&mut state, register, right.mark, other);
                }
                _ => {}
            }
            return Some(state);
        }
        if let Some((register, value)) = self.tested_for_null(left, right) {
            let is_null = holds == (self.condition == Condition::Equal);
            if is_null && !value.may_be_null {
                return None;
            }
            state.refine(register, value.mark, |value| match is_null {
                true => *value = Value::number(Scalar::constant(0)),
                false => value.may_be_null = false,
            });
            return Some(state);
        }
        let Some(Question { base, bytes, is_exact, yes_if_so }) = self.question(&state) else {
            return Some(state);
        };
        let can_be = match (holds == yes_if_so, is_exact) {
            (true, false) => state.prove(base, bytes),
            (false, false) => state.refute(base, bytes - 1),
            (true, true) => state.prove(base, bytes) && state.refute(base, bytes),
            // A length other than the proven minimum exceeds it; a length other than the maximum is
            // below it.
            (false, true) if state.proven(base) == bytes => state.prove(base, bytes + 1),
            (false, true) if state.most(base) == bytes => state.refute(base, bytes - 1),
            (false, true) => true,
        };
        can_be.then_some(state)
    }

    /// Returns the register with an address that is compared with 0, and its value.
    fn tested_for_null(&self, left: Value, right: Value) -> Option<(u8, Value)> {
        let tests = matches!(self.condition, Condition::Equal | Condition::NotEqual);
        if !tests || self.width != Width::Bits64 {
            return None;
        }
        match self.right {
            _ if left.is_pointer() && right.constant() == Some(0) => Some((self.left, left)),
            Operand::Register(register) if right.is_pointer() && left.constant() == Some(0) => {
                Some((register, right))
            }
            _ => None,
        }
    }

    /// Returns the test of the packet's length that the jump makes, if it makes one.
    fn question(&self, state: &State) -> Option<Question> {
        let (left, right) = self.operands(state);
        if self.width != Width::Bits64 || left.may_be_null || right.may_be_null {
            return None;
        }
        let (condition, base, offset) = match place_before_end(state, left, right) {
            Some((base, offset)) => (self.condition, base, offset),
            None => {
                let (base, offset) = place_before_end(state, right, left)?;
                (mirrored(self.condition), base, offset)
            }
        };
        let (bytes, is_exact, yes_if_so) = match condition {
            Condition::Less => (offset + 1, false, true),
            Condition::LessOrEqual => (offset, false, true),
            Condition::Greater => (offset, false, false),
            Condition::GreaterOrEqual => (offset + 1, false, false),
            Condition::Equal => (offset, true, true),
            Condition::NotEqual => (offset, true, false),
            _ => return None,
        };
        Some(Question { base, bytes, is_exact, yes_if_so })
    }
}

/// Returns base and offset of an address, if the other value is the end of its memory: the packet's
/// end, or the packet's start, where the metadata ends.
fn place_before_end(state: &State, address: Value, end: Value) -> Option<(usize, i64)> {
    let Kind::Packet { base, offset } = address.kind else { return None };
    match (state.bases[base].is_metadata, end.kind) {
        (false, Kind::PacketEnd) => Some((base, offset)),
        (true, Kind::Packet { base: PACKET, offset: behind }) => Some((base, offset - behind)),
        _ => None,
    }
}

/// Returns the same comparison with its sides exchanged.
fn mirrored(condition: Condition) -> Condition {
    match condition {
        Condition::Less => Condition::Greater,
        Condition::LessOrEqual => Condition::GreaterOrEqual,
        Condition::Greater => Condition::Less,
        Condition::GreaterOrEqual => Condition::LessOrEqual,
        other => other,
    }
}

fn set_number(state: &mut State, register: u8, mark: u32, number: Scalar) {
    state.refine(register, mark, |value| {
        if let Kind::Number(known) = &mut value.kind {
            *known = number;
        }
    });
}

#[cfg(test)]
mod tests {
    use crate::analysis::analysed::{LOOKUP, PACKET, analysed, before, touched};

    /// Returns the bytes proven from the packet's start after a comparison of the end of its 14th
    /// byte with the packet's end, if the jump is taken and if it falls through.
    fn there(comparison: &str) -> [String; 2] {
        let text = format!(
            "{PACKET}r4 = r2\nr4 += 14\nif {comparison} goto taken\nr0 = 0\ngoto out\n\
             taken:\nr0 = 1\nout:\nr0 = r2\nexit"
        );
        let analysis = analysed(&text);
        [7, 5].map(|slot| before(&analysis, slot, 2))
    }

    #[test]
    fn every_form_of_a_check_proves_as_many_bytes_as_it_says() {
        let [none, fourteen, fifteen] =
            ["packet+0 (0 bytes there)", "packet+0 (14 bytes there)", "packet+0 (15 bytes there)"];
        for (comparison, expected) in [
            ("r4 > r3", [none, fourteen]),
            ("r4 >= r3", [none, fifteen]),
            ("r4 < r3", [fifteen, none]),
            ("r4 <= r3", [fourteen, none]),
            ("r3 > r4", [fifteen, none]),
            ("r3 >= r4", [fourteen, none]),
            ("r3 < r4", [none, fourteen]),
            ("r3 <= r4", [none, fifteen]),
            ("r4 == r3", [fourteen, none]),
            ("r3 != r4", [none, fourteen]),
            ("w4 > w3", [none, none]),
            ("r4 s> r3", [none, none]),
        ] {
            assert_eq!(there(comparison), expected, "{comparison}");
        }
    }

    #[test]
    fn the_last_byte_that_is_there_can_be_touched_and_the_next_cannot() {
        let text = format!(
            "{PACKET}r4 = r2\nr4 += 14\nif r4 > r3 goto out\nr0 = *(u8 *)(r2 + 13)\n\
             r0 = *(u8 *)(r2 + 14)\nr0 = *(u32 *)(r2 + 10)\nr0 = *(u32 *)(r2 + 11)\n\
             r0 = *(u8 *)(r2 - 1)\nr0 = *(u8 *)(r4 - 1)\nr0 = *(u8 *)(r4 + 0)\nout:\nexit"
        );
        let analysis = analysed(&text);
        let proven: Vec<_> = (5..12).map(|slot| analysis.accesses(slot)[0].is_proven).collect();
        assert_eq!(proven, [true, false, true, false, false, true, false]);
    }

    #[test]
    fn a_check_of_more_bytes_than_there_can_be_is_not_passed() {
        let text = format!(
            "{PACKET}r4 = r2\nr4 += 14\nif r4 <= r3 goto out\nr5 = r2\nr5 += 13\n\
             if r5 > r3 goto out\nr4 = r2\nr4 += 14\nif r4 > r3 goto out\nr0 = 1\nout:\nexit"
        );
        let analysis = analysed(&text);
        assert_eq!(analysis.outcomes(7), [true, true], "13 bytes may be there");
        assert_eq!(analysis.outcomes(10), [true, false], "14 may not");
        assert!(!analysis.is_reachable(11));
    }

    #[test]
    fn a_check_of_an_address_says_nothing_of_another_behind_an_unknown_number() {
        let text = format!(
            "{PACKET}r4 = *(u32 *)(r1 + 12)\nr5 = *(u32 *)(r1 + 16)\nr4 &= 31\nr5 &= 31\n\
             r4 += r2\nr5 += r2\nr0 = r4\nr0 += 8\nif r0 > r3 goto out\nr0 = *(u64 *)(r4 + 0)\n\
             r0 = *(u64 *)(r5 + 0)\nr0 = *(u64 *)(r2 + 0)\nr0 = *(u64 *)(r2 + 1)\nout:\nexit"
        );
        let analysis = analysed(&text);
        assert_eq!(touched(&analysis, 11), ["Read packet 0..=31 for 8"]);
        assert_eq!(touched(&analysis, 12), ["Read packet 0..=31 for 8, not proven"]);
        assert_eq!(touched(&analysis, 13), ["Read packet 0..=0 for 8"]);
        assert_eq!(touched(&analysis, 14), ["Read packet 1..=1 for 8, not proven"]);
    }

    #[test]
    fn an_address_and_its_copies_are_none_where_one_is_compared_with_0() {
        let text = format!(
            "{LOOKUP}r7 = r0\nif r7 == 0 goto none\nr1 = *(u64 *)(r0 + 0)\nnone:\nr0 = 0\nexit"
        );
        let analysis = analysed(&text);
        assert_eq!(before(&analysis, 8, 7), "value+0 of map 0 or 0");
        assert_eq!(before(&analysis, 9, 0), "value+0 of map 0");
        assert_eq!(touched(&analysis, 9), ["Read value of map 0 0..=0 for 8"]);
    }

    #[test]
    fn metadata_is_there_as_far_as_the_packet_is_behind_it() {
        let text = "r2 = *(u32 *)(r1 + 8)\nr3 = *(u32 *)(r1 + 0)\nr4 = r2\nr4 += 4\n\
                    if r4 > r3 goto out\nr0 = *(u32 *)(r2 + 0)\nr0 = *(u8 *)(r2 + 4)\nout:\nexit";
        let analysis = analysed(text);
        assert_eq!(touched(&analysis, 5), ["Read metadata 0..=0 for 4"]);
        assert_eq!(touched(&analysis, 6), ["Read metadata 4..=4 for 1, not proven"]);
        let check = analysis.bounds_check(4).expect("it is one");
        assert!(check.is_metadata && !check.holds_if_taken);
    }
}
