// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Arithmetic on the values of registers: on numbers, and on addresses where the result is an
//! address.

use super::scalar::Scalar;
use super::state::{Base, State};
use super::unknown::{Unknown, Why};
use super::value::{FAR, Kind, Region, Value, is_near};
use super::walk::{Walk, number_or_unknown, unknown};
use crate::instruction::{Arithmetic, Operand, Width};

impl Walk<'_> {
    /// Returns the result of an operation on a register and its second operand.
    pub(super) fn alu(
        &mut self,
        state: &mut State,
        slot: usize,
        (width, operation): (Width, Arithmetic),
        destination: u8,
        source: Operand,
    ) -> Value {
        let (right, register) = match source {
            Operand::Immediate(number) => {
                (Value::number(Scalar::constant(i64::from(number) as u64)), destination)
            }
            Operand::Register(register) => (state.marked(register), register),
        };
        if operation == Arithmetic::Move {
            return moved(slot, width, right, register);
        }
        let left = state.get(destination);
        let is_wide = width == Width::Bits64;
        if let (Arithmetic::Subtract, Width::Bits32, Some(left), Some(right)) =
            (operation, width, whole(left), whole(right))
        {
            return Value::number(distance(state, left, right).lower_half());
        }
        let made = match (left.is_pointer(), right.is_pointer()) {
            (false, false) => {
                let left = number_or_unknown(state, slot, destination);
                let right = operand_number(slot, right, register);
                left.and_then(|left| Ok(Value::number(left.computed(operation, width, &right?))))
            }
            (true, true) if is_wide && operation == Arithmetic::Subtract => {
                Ok(Value::number(distance(state, left, right)))
            }
            (true, false)
                if is_wide && matches!(operation, Arithmetic::Add | Arithmetic::Subtract) =>
            {
                let number = operand_number(slot, right, register);
                let negated = |number: Scalar| match operation {
                    Arithmetic::Subtract => Scalar::constant(0).computed(operation, width, &number),
                    _ => number,
                };
                number.and_then(|number| {
                    offset(state, left, negated(number))
                        .map_err(|why| unknown(slot, destination, why))
                })
            }
            (false, true) if is_wide && operation == Arithmetic::Add => {
                let number = number_or_unknown(state, slot, destination);
                number.and_then(|number| {
                    offset(state, right, number).map_err(|why| unknown(slot, destination, why))
                })
            }
            _ => Err(unknown(slot, destination, Why::NoAddress)),
        };
        made.unwrap_or_else(Value::unknown)
    }
}

/// Returns the result of a move: the value, or with 32 bits the lower half of a number.
fn moved(slot: usize, width: Width, value: Value, register: u8) -> Value {
    match value.kind {
        _ if width == Width::Bits64 => value,
        Kind::Number(scalar) if scalar.unsigned().1 <= u32::MAX.into() => value,
        Kind::Number(scalar) => Value::number(scalar.lower_half()),
        Kind::Nothing | Kind::Unknown(_) => Value { mark: 0, ..value },
        Kind::Packet { base, offset } if !value.may_be_null => {
            Value::new(Kind::Half { base: Some(base), offset })
        }
        Kind::PacketEnd if !value.may_be_null => Value::new(Kind::Half { base: None, offset: 0 }),
        _ => Value::unknown(unknown(slot, register, Why::NoAddress)),
    }
}

/// Returns the packet address, or packet end, that the value is or is the lower half of.
fn whole(value: Value) -> Option<Value> {
    match value.kind {
        Kind::Half { base: Some(base), offset } => Some(Value::new(Kind::Packet { base, offset })),
        Kind::Half { base: None, .. } => Some(Value::new(Kind::PacketEnd)),
        Kind::Packet { .. } | Kind::PacketEnd => Some(value),
        _ => None,
    }
}

fn operand_number(slot: usize, value: Value, register: u8) -> Result<Scalar, Unknown> {
    match value.kind {
        Kind::Number(scalar) => Ok(scalar),
        Kind::Unknown(unknown) => Err(unknown),
        Kind::Nothing => Err(unknown(slot, register, Why::NeverSet)),
        _ => Err(unknown(slot, register, Why::NoAddress)),
    }
}

/// Returns an address moved by a number of bytes.
fn offset(state: &mut State, value: Value, by: Scalar) -> Result<Value, Why> {
    let (least, most) = by.signed();
    if value.may_be_null && by.value() != Some(0) {
        return Err(Why::MayBeNull);
    }
    if !is_near((least, most)) {
        return Err(Why::TooFar);
    }
    let kind = match value.kind {
        Kind::Packet { base, offset } if least == most => {
            let offset = offset + least;
            is_near((offset, offset)).then_some(Kind::Packet { base, offset })
        }
        Kind::Packet { base, offset } => {
            let old = state.bases[base];
            let place = (old.place.0 + least, old.place.1 + most);
            // In the worst case it moves by the most, which leaves that many fewer bytes after it.
            let (proven, room) = (state.proven(base) - most, state.most(base) - least);
            is_near(place).then(|| {
                let base = state.add_base(Base { place, proven, most: room, ..old });
                Kind::Packet { base, offset }
            })
        }
        Kind::Address { region, offset } => {
            let offset = (offset.0 + least, offset.1 + most);
            is_near(offset).then_some(Kind::Address { region, offset })
        }
        _ if by.value() == Some(0) => return Ok(value),
        _ => return Err(Why::NoAddress),
    };
    let kind = kind.ok_or(Why::TooFar)?;
    Ok(Value { kind, may_be_null: value.may_be_null, mark: 0 })
}

/// Returns the distance in bytes between two addresses.
fn distance(state: &State, left: Value, right: Value) -> Scalar {
    if left.may_be_null || right.may_be_null {
        return Scalar::ANY;
    }
    match (left.kind, right.kind) {
        (Kind::Packet { base: one, offset }, Kind::Packet { base: other, offset: from })
            if one == other =>
        {
            Scalar::constant((offset - from) as u64)
        }
        (Kind::PacketEnd, Kind::Packet { base, offset }) if !state.bases[base].is_metadata => {
            let least = (state.proven(base) - offset).max(-2 * FAR);
            let most = state.most(base) - offset;
            Scalar::between_signed(least, most.max(least))
        }
        (Kind::Address { region: one, offset }, Kind::Address { region: other, offset: from })
            if one == other && is_single(one) =>
        {
            Scalar::between_signed(offset.0 - from.1, offset.1 - from.0)
        }
        _ => Scalar::ANY,
    }
}

/// Returns whether all addresses of a region are in the same memory.
fn is_single(region: Region) -> bool {
    matches!(region, Region::Context | Region::Stack { .. })
}

#[cfg(test)]
mod tests {
    use crate::analysis::analysed::{LOOKUP, PACKET, at_end};

    #[test]
    fn addresses_are_moved_by_numbers() {
        assert_eq!(at_end("r2 = r10\nr2 += -8\nexit", 2), "stack-8");
        assert_eq!(at_end("r2 = r10\nr2 -= 8\nr2 += 3\nexit", 2), "stack-5");
        assert_eq!(at_end("r2 = -8\nr2 += r10\nexit", 2), "stack-8");
        // A header whose length is in its first byte.
        let text = format!(
            "{PACKET}r4 = *(u8 *)(r2 + 14)\nr4 &= 15\nr4 <<= 2\nr4 += r2\n\
                            r4 += 14\nexit"
        );
        assert_eq!(at_end(&text, 4), "packet+14..=+74 (-74 bytes there)");
    }

    #[test]
    fn differences_of_addresses_are_numbers() {
        assert_eq!(at_end("r2 = r10\nr2 += -8\nr3 = r10\nr3 -= r2\nexit", 3), "0x8");
        let text = format!(
            "{PACKET}r4 = r2\nr4 += 9\nr4 -= r2\nr5 = r3\nr5 -= r2\n\
                            w0 = w3\nw0 -= w2\nexit"
        );
        assert_eq!(at_end(&text, 4), "0x9");
        assert_eq!(at_end(&text, 5), "0x0..=0x100ff", "as long as a packet can be");
        assert_eq!(at_end(&text, 0), "0x0..=0x100ff");
        let between = format!("{PACKET}r2 -= r10\nexit");
        assert_eq!(at_end(&between, 2), "any number");
    }

    #[test]
    fn what_makes_no_address_says_so() {
        let no_address = |operation: &str| {
            let held = at_end(&format!("r2 = r10\n{operation}\nexit"), 2);
            assert!(held.starts_with("not known (instruction 1, register 2"), "{held}");
        };
        let all = ["r2 *= 2", "w2 += 4", "r2 = -r2", "r2 &= -8", "r2 += r1", "r2 = be64 r2"];
        all.into_iter().for_each(no_address);
        assert!(at_end("r2 = 0x100000001 ll\nr2 += r10\nexit", 2).contains("too far"));
        let null = at_end(&format!("{LOOKUP}r0 += 4\nexit"), 0);
        assert!(null.contains("may be 0 instead of an address"), "{null}");
        assert_eq!(at_end(&format!("{LOOKUP}r0 += 0\nexit"), 0), "value+0 of map 0 or 0");
    }
}
