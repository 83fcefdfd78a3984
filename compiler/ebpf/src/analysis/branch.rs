// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What is known on either way out of a conditional jump.
//!
//! Compilers write the same check in many forms: the packet's end may stand on either side, the way
//! that the packet is long enough may be the jump or what follows it, and what is compared may be
//! the last byte that is wanted or the one behind it. All of them come down to the address not
//! being behind the end.

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

/// A comparison that tells whether bytes of the packet or its metadata are there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Check {
    pub is_metadata: bool,
    /// How many bytes from the start on there are, if they are: at least and at most.
    pub needed: (i64, i64),
    /// Whether they are there if the jump is made, or else.
    pub holds_if_taken: bool,
}

/// A comparison of an address with the end: it asks whether there are at least, or exactly, so many
/// bytes behind a base.
struct Question {
    base: usize,
    bytes: i64,
    is_exact: bool,
    /// Whether there are if the comparison holds, or else.
    yes_if_so: bool,
}

impl Jump {
    /// What is known if the jump is made and if it is not, unless that cannot be.
    pub fn outcomes(&self, state: &State) -> [Option<State>; 2] {
        [true, false].map(|holds| self.outcome(state, holds))
    }

    /// The check of the packet's length that this is, if it is one.
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
            // Neither so many nor less are more, and neither so many nor more are less.
            (false, true) if state.proven(base) == bytes => state.prove(base, bytes + 1),
            (false, true) if state.most(base) == bytes => state.refute(base, bytes - 1),
            (false, true) => true,
        };
        can_be.then_some(state)
    }

    /// The register with an address that is compared with 0, and what it holds.
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

    /// What it asks of the packet's length, if it does.
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

/// The base and the offset of an address, if the other is the end of what it is in: of the packet,
/// or of the metadata, which ends where the packet starts.
fn place_before_end(state: &State, address: Value, end: Value) -> Option<(usize, i64)> {
    let Kind::Packet { base, offset } = address.kind else { return None };
    match (state.bases[base].is_metadata, end.kind) {
        (false, Kind::PacketEnd) => Some((base, offset)),
        (true, Kind::Packet { base: PACKET, offset: behind }) => Some((base, offset - behind)),
        _ => None,
    }
}

/// The same comparison with its sides exchanged.
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

    /// What is there from the packet's start on behind a comparison of its 14th byte's end with the
    /// packet's end, where the jump is made and where it is not.
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
