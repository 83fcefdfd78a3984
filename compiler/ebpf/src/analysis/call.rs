// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The effect of a helper call, from its signature: the memory it accesses, its result, and the
//! facts that it invalidates.

use super::access::{Access, AccessKind, Space};
use super::scalar::Scalar;
use super::state::{LENGTH_MAX, State};
use super::unknown::{Unknown, Why};
use super::value::{Kind, MapName, Region, Value};
use super::walk::{Touch, Touched, Walk, unknown};
use crate::helper_functions::{Argument, Effect, Gives, Signature, signature};

/// Size in bytes of the lock in a map value.
const LOCK_BYTES: u64 = 4;

/// A function that a helper calls, possibly many times.
pub(super) struct Callback {
    /// Entry of the function.
    pub function: usize,
    /// Values of registers 1 to 5 at its entry.
    pub arguments: [Value; 5],
}

/// A helper call during its analysis.
struct Helper {
    slot: usize,
    signature: Signature,
    /// Map among its arguments.
    map: Option<MapName>,
}

impl Walk<'_> {
    /// Analyses a call of a helper. Returns the function that the helper calls, if any.
    ///
    /// # Errors
    /// The helper calls an unknown function.
    pub fn call(
        &mut self,
        state: &mut State,
        slot: usize,
        number: u32,
    ) -> Result<Option<Callback>, Unknown> {
        let Some(signature) = signature(number) else {
            self.call_unknown(state, slot, Why::UnknownCall);
            return Ok(None);
        };
        let position = signature.arguments.iter().position(|kind| *kind == Argument::Map);
        let map = position.and_then(|at| match state.get(1 + at as u8).kind {
            Kind::Map(map) => Some(map),
            _ => None,
        });
        let helper = Helper { slot, signature, map };
        let callback = self.callback(state, &helper)?;
        let result = self.result(state, &helper);
        for (register, argument) in (1..).zip(signature.arguments) {
            self.argument(state, &helper, register, *argument);
        }
        self.effect(state, &helper);
        state.registers[1..6].fill(Value::NOTHING);
        state.set(0, result);
        Ok(callback)
    }

    /// Analyses a call of which nothing is known.
    pub fn call_unknown(&mut self, state: &mut State, slot: usize, why: Why) {
        let (register, kind, size) = (None, AccessKind::Change, None);
        let (space, offset) = (Space::Unknown(unknown(slot, 0, why)), (0, 0));
        self.accesses.push(Access { slot, register, kind, space, offset, size, is_proven: false });
        state.lose_stack();
        state.lose_packet(slot);
        state.registers[1..6].fill(Value::NOTHING);
        state.set(0, Value::unknown(unknown(slot, 0, why)));
    }

    /// Records the accesses that an argument causes, and their effect on the state.
    fn argument(&mut self, state: &mut State, helper: &Helper, register: u8, argument: Argument) {
        use AccessKind::{Change, Read, Write};
        let definition = helper.map.and_then(|map| self.map(map));
        let key = definition.map(|map| u64::from(map.key_size));
        let value = definition.map(|map| u64::from(map.value_size));
        let (size, kind) = match argument {
            Argument::Key => (key, Read),
            Argument::Value => (value, Read),
            Argument::Room => (value, Change),
            Argument::Read => (size_argument(state, register + 1), Read),
            Argument::Write => (size_argument(state, register + 1), Write),
            Argument::Change => (size_argument(state, register + 1), Change),
            Argument::Word => (Some(4), Change),
            Argument::Lock => (Some(LOCK_BYTES), Change),
            Argument::Long => (Some(8), Write),
            Argument::Text => (None, Read),
            Argument::Printed if state.get(register).is_pointer() => (None, Read),
            Argument::Record => return self.release(state, helper.slot, register),
            _ => return,
        };
        // A length of zero needs no address.
        if size == Some(0) {
            return;
        }
        let (slot, offset, is_argument) = (helper.slot, 0, true);
        let touched = self.touch(state, Touch { slot, register, offset, size, kind, is_argument });
        if argument == Argument::Lock {
            self.widen_to_element();
        }
        if !kind.writes() {
            return;
        }
        match touched {
            Touched::Stack(depth, Some(bytes)) => {
                state.frames[usize::from(depth)].content.blur(bytes, true);
            }
            Touched::Stack(..) | Touched::Unknown(_) => state.lose_stack(),
            Touched::Field(_) | Touched::Numbers => {}
        }
    }

    /// Widens the access of a lock to the element that contains it. A lock guards the whole
    /// element, so accesses to it must not be moved across the call.
    fn widen_to_element(&mut self) {
        let Some(&lock) = self.accesses.last() else { return };
        let Space::MapValue(map) = lock.space else { return };
        let size = self.map(map).map(|map| map.value_size.into());
        self.accesses.push(Access { register: None, offset: (0, 0), size, ..lock });
    }

    /// Handles the release of a ring-buffer record: addresses in it become invalid.
    fn release(&mut self, state: &mut State, slot: usize, register: u8) {
        let touch = Touch {
            slot,
            register,
            offset: 0,
            size: None,
            kind: AccessKind::Change,
            is_argument: true,
        };
        self.touch(state, touch);
        if let Some(access) = self.accesses.last_mut() {
            // The access spans exactly the bytes that are known.
            access.is_proven = access.offset == (0, 0) && !state.get(register).may_be_null;
        }
        let given = match state.get(register).kind {
            Kind::Address { region: Region::Record { map, slot, .. }, .. } => Some((map, slot)),
            _ => None,
        };
        state.lose(slot, Why::RecordGone, |value| match value.kind {
            Kind::Address { region: Region::Record { map, slot, .. }, .. } => {
                given.is_none_or(|given| given == (map, slot))
            }
            _ => false,
        });
    }

    fn effect(&mut self, state: &mut State, helper: &Helper) {
        let slot = helper.slot;
        let changed = helper.map.and_then(|map| Some((map, self.map(map)?.value_size)));
        let mut note = |kind, space, size| {
            let (offset, register) = ((0, 0), None);
            let access = Access { slot, register, kind, space, offset, size, is_proven: true };
            self.accesses.push(access);
        };
        let whole_packet = Some(LENGTH_MAX as u64);
        match helper.signature.effect {
            Some(Effect::ReadsPacket) => note(AccessKind::Read, Space::Packet, whole_packet),
            Some(Effect::WritesPacket) => note(AccessKind::Write, Space::Packet, whole_packet),
            Some(Effect::MovesPacket) => {
                for space in [Space::Context, Space::Packet, Space::Metadata] {
                    note(AccessKind::Change, space, whole_packet);
                }
                state.lose_packet(slot);
            }
            Some(Effect::ChangesMap) => match changed {
                Some((map, size)) => {
                    note(AccessKind::Change, Space::MapValue(map), Some(size.into()));
                }
                // The lock's element was recorded with the lock's address.
                None if helper.signature.arguments.contains(&Argument::Lock) => {}
                None => {
                    let space = Space::Unknown(unknown(slot, 1, Why::UnknownCall));
                    note(AccessKind::Change, space, None);
                }
            },
            Some(Effect::ReadsTexts) => {
                let space = Space::Unknown(unknown(slot, 0, Why::UnknownCall));
                note(AccessKind::Read, space, None);
            }
            Some(Effect::Repeats | Effect::RepeatsForElements) | None => {}
        }
    }

    fn result(&self, state: &mut State, helper: &Helper) -> Value {
        let slot = helper.slot;
        let nothing_known = Value::unknown(unknown(slot, 0, Why::UnknownCall));
        let found = match (helper.signature.gives, helper.map) {
            (Gives::Number, _) => return Value::ANY_NUMBER,
            (_, None) => return nothing_known,
            (Gives::Value, Some(map)) => match (self.map(map), map) {
                (Some(outer), MapName::Map(number)) if outer.kind.is_of_maps() => {
                    Value::new(Kind::Map(MapName::Inside(number)))
                }
                (Some(_), _) => Value::start_of(Region::Value(map)),
                (None, _) => return nothing_known,
            },
            (Gives::Record, Some(map)) => {
                let size = state.get(2).scalar().map_or(0, |size| size.unsigned().0);
                Value::start_of(Region::Record { map, slot, size })
            }
        };
        Value { may_be_null: true, mark: state.new_mark(), ..found }
    }

    fn callback(&self, state: &State, helper: &Helper) -> Result<Option<Callback>, Unknown> {
        if !helper.signature.calls_function() {
            return Ok(None);
        }
        let effect = helper.signature.effect;
        let function = match state.get(2).kind {
            Kind::Function(function) => function,
            Kind::Unknown(unknown) => return Err(unknown),
            _ => return Err(unknown(helper.slot, 2, Why::UnknownCall)),
        };
        let (first, passed) = (state.get(1), state.get(3));
        let nothing = Value::NOTHING;
        let arguments = match (effect, helper.map) {
            (Some(Effect::Repeats), _) => {
                let count =
                    first.scalar().map_or(u32::MAX.into(), |it| it.lower_half().unsigned().1);
                let index = Scalar::between(0, count.saturating_sub(1));
                [Value::number(index), passed, nothing, nothing, nothing]
            }
            (_, Some(map)) => {
                let depth = state.depth() as u8 + 1;
                let key = Value::start_of(Region::Key { map, depth });
                [first, key, Value::start_of(Region::Value(map)), passed, nothing]
            }
            _ => return Err(unknown(helper.slot, 1, Why::UnknownCall)),
        };
        Ok(Some(Callback { function, arguments }))
    }
}

/// Returns the maximum length that the argument in a register gives.
fn size_argument(state: &State, register: u8) -> Option<u64> {
    let most = state.get(register).scalar()?.unsigned().1;
    (most <= u32::MAX.into()).then_some(most)
}

#[cfg(test)]
mod tests {
    use crate::analysis::analysed::{LOOKUP, PACKET, analysed, at_end, before, last_touched};

    #[test]
    fn keys_and_values_are_as_large_as_the_map_says() {
        let text = "r2 = r10\nr2 += -4\nr3 = r10\nr3 += -16\nr4 = 0\nr1 = map[0]\ncall 0x2\nexit";
        assert_eq!(
            last_touched(text),
            [
                "Read stack -4..=-4 for 4",
                "Read stack -16..=-16 for 8",
                "Change value of map 0 0..=0 for 8",
            ]
        );
    }

    #[test]
    fn the_map_of_a_value_or_of_another_map_is_known() {
        assert_eq!(at_end(&format!("{LOOKUP}exit"), 0), "value+0 of map 0 or 0");
        let inner = format!(
            "{}if r0 == 0 goto out\nr1 = r0\nr2 = r10\nr2 += -4\ncall 0x1\nout:\nexit",
            LOOKUP.replace("map[0]", "map[2]")
        );
        let analysis = analysed(&inner);
        assert_eq!(before(&analysis, 8, 0), "a map inside map 2");
        assert_eq!(before(&analysis, 12, 0), "value+0 of a map inside map 2 or 0");
    }

    #[test]
    fn what_is_done_to_a_map_that_is_not_known_may_be_done_to_any() {
        let text = "r2 = r10\nr2 += -4\nr3 = r10\nr3 += -16\nr4 = 0\nr1 = 5\ncall 0x2\nexit";
        let touched = last_touched(text);
        assert!(touched.len() == 3 && touched[2].starts_with("Change not known"), "{touched:?}");
        // The number of bytes read after the key is unknown as well.
        assert_eq!(touched[0], "Read stack of some function -4..=-4 for ?, not proven");
    }

    #[test]
    fn addresses_in_the_packet_end_where_its_ends_are_moved() {
        let text = format!(
            "r6 = r1\n{PACKET}r7 = r2\nr8 = r10\n*(u64 *)(r10 - 8) = r3\n\
                            r2 = 4\ncall 0x2c\nr9 = *(u64 *)(r10 - 8)\nexit"
        );
        assert!(at_end(&text, 7).contains("in the packet, and this instruction moves"));
        assert!(at_end(&text, 9).contains("in the packet, and this instruction moves"));
        assert_eq!(at_end(&text, 8), "stack+0");
        assert!(at_end(&text, 2).starts_with("nothing"), "arguments do not outlast a call");
    }

    #[test]
    fn what_was_checked_has_to_be_checked_again_once_an_end_was_moved() {
        let text = |helper: &str| {
            format!(
                "r6 = r1\n{PACKET}r4 = r2\nr4 += 14\nif r4 > r3 goto out\nr1 = r6\nr2 = 0\n\
                     call {helper}\nr2 = *(u32 *)(r6 + 0)\nr0 = *(u8 *)(r2 + 13)\nout:\nexit"
            )
        };
        for helper in ["0x2c", "0x36", "0x41"] {
            let touched = last_touched(&text(helper));
            assert_eq!(touched, ["Read packet 13..=13 for 1, not proven"], "{helper}");
        }
        assert_eq!(last_touched(&text("0xbc")), ["Read packet 13..=13 for 1"], "only its length");
    }

    #[test]
    fn a_record_is_what_was_reserved_until_it_is_given_away() {
        let text = "r1 = map[1]\nr2 = 24\nr3 = 0\ncall 0x83\nif r0 == 0 goto out\nr7 = r0\n\
                    *(u64 *)(r0 + 16) = 1\n*(u8 *)(r0 + 24) = 1\nr1 = r0\nr2 = 0\ncall 0x84\n\
                    r5 = r7\nout:\nr0 = 0\nexit";
        let analysis = analysed(text);
        assert_eq!(before(&analysis, 7, 7), "record+0 of map 1 (24 bytes)");
        let proven: Vec<_> = [7, 8].map(|slot| analysis.accesses(slot)[0].is_proven).into();
        assert_eq!(proven, [true, false]);
        let (store, submit) = (analysis.accesses(7)[0], analysis.accesses(11)[0]);
        assert!(store.conflicts(&submit), "what is stored has to be there before");
        assert!(
            before(&analysis, 12, 7).contains("the ring-buffer record is submitted or discarded")
        );
    }

    #[test]
    fn what_a_lock_guards_is_not_moved_across_it() {
        let text = format!(
            "{LOOKUP}if r0 == 0 goto out\n*(u32 *)(r0 + 4) = 1\nr1 = r0\n\
                            call 0x5d\nout:\nexit"
        );
        let analysis = analysed(&text);
        let store = analysis.accesses(8)[0];
        assert!(analysis.accesses(10).iter().any(|access| access.conflicts(&store)));
    }

    #[test]
    fn memory_that_a_helper_writes_holds_other_numbers() {
        let text = "*(u64 *)(r10 - 8) = 5\n*(u64 *)(r10 - 16) = 6\nr2 = 0\nr3 = r10\nr3 += -8\n\
                    r4 = 4\ncall 0xbd\nr7 = *(u64 *)(r10 - 8)\nr8 = *(u64 *)(r10 - 16)\nexit";
        assert_eq!([7, 8].map(|register| at_end(text, register)), ["any number", "0x6"]);
        let text = text.replace("r4 = 4", "r4 = 9");
        assert!(at_end(&text, 8).starts_with("not known"), "it may be beyond the frame");
        let text = text.replace("r4 = 9", "r4 = 0");
        assert_eq!(at_end(&text, 7), "0x5", "no bytes are written");
    }
}
