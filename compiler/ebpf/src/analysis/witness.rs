// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks facts against execution: each executed instruction must be reachable, registers must hold
//! values that the facts allow, and memory accesses must be where the facts place them.

use super::facts::{Fact, Type};
use super::value::MapName;
use super::{Access, Analysis, Space, Spill};
use crate::helper_functions::{Argument, signature};
use crate::instruction::{Callee, Operation, Width};
use crate::interpreter::{Observer, Outcome, Point, Reason};
use crate::object::Object;

/// Observes the execution of an object's programs and checks it against the static facts.
pub struct Witness<'a> {
    object: &'a Object,
    /// Analysis of each program; `None` for programs that were not analysed.
    analyses: &'a [Option<Analysis>],
    failure: Option<String>,
    /// Facts of registers that were checked.
    pub registers: u64,
    /// Facts of frames that were checked.
    pub spills: u64,
    /// Accesses that were checked.
    pub accesses: u64,
}

impl<'a> Witness<'a> {
    /// Creates a witness for the programs of an object, in its order.
    pub fn new(object: &'a Object, analyses: &'a [Option<Analysis>]) -> Self {
        Self { object, analyses, failure: None, registers: 0, spills: 0, accesses: 0 }
    }

    /// Returns the first fact that failed since the last call; `outcome` is that of the packet.
    pub fn failure(&mut self, outcome: &Outcome) -> Option<String> {
        let aborted = outcome.aborted.as_ref();
        let missed = aborted.filter(|abort| matches!(abort.reason, Reason::OutOfBounds { .. }));
        if let Some(abort) = missed
            && let Some(Some(analysis)) = self.analyses.get(abort.program)
        {
            let mut accesses = analysis.accesses(abort.slot).iter();
            if accesses.all(|access| access.is_proven) {
                let failure = format!("instruction {}: proven, but {abort}", abort.slot);
                self.failure.get_or_insert(failure);
            }
        }
        self.failure.take()
    }

    fn check(&mut self, point: &Point<'_, '_>) -> Result<(), String> {
        let (program, slot) = (point.program(), point.slot());
        let Some(Some(analysis)) = self.analyses.get(program) else { return Ok(()) };
        let Some(facts) = analysis.registers(slot) else {
            return Err("is executed, though nothing leads there".to_owned());
        };
        for (register, (fact, value)) in facts.iter().zip(point.registers()).enumerate() {
            self.registers += 1;
            if !self.holds(point, fact, *value) {
                return Err(format!("register {register} is {value:#x}, not {fact}"));
            }
        }
        self.check_spills(point, analysis)?;
        self.check_accesses(point, analysis)
    }

    fn check_spills(&mut self, point: &Point<'_, '_>, analysis: &Analysis) -> Result<(), String> {
        let end = point.frame_pointer(point.depth() - 1);
        for Spill { offset, size, fact } in analysis.spills(point.slot()) {
            let bytes = point.read(end.wrapping_add_signed((*offset).into()), (*size).into());
            let mut value = [0; 8];
            let Some(bytes) = bytes else { return Err(format!("no stack at {offset}")) };
            value[..bytes.len()].copy_from_slice(bytes);
            let value = u64::from_le_bytes(value);
            self.spills += 1;
            if !self.holds(point, fact, value) {
                return Err(format!("the stack at {offset} is {value:#x}, not {fact}"));
            }
        }
        Ok(())
    }

    fn check_accesses(&mut self, point: &Point<'_, '_>, analysis: &Analysis) -> Result<(), String> {
        let Some(operation) = analysis.graph().operation(point.slot()) else { return Ok(()) };
        let accesses = analysis.accesses(point.slot());
        for access in accesses {
            let Some(register) = access.register else { continue };
            let Some((address, size)) = touched(point, operation, register) else { continue };
            let mut alternatives = accesses.iter().filter(|other| other.register == Some(register));
            self.accesses += 1;
            let is_it = |access: &Access| {
                self.is_at(point, access, address)
                    && size.zip(access.size).is_none_or(|(size, most)| size <= most)
            };
            if !alternatives.any(is_it) {
                return Err(format!(
                    "register {register} leads to {address:#x} ({size:?} bytes), not to {} at {:?}",
                    access.space, access.offset
                ));
            }
        }
        Ok(())
    }

    /// Returns whether an access begins where the facts place it. Using 0 as an address misses
    /// anyway.
    fn is_at(&self, point: &Point<'_, '_>, access: &Access, address: u64) -> bool {
        let offset = access.offset;
        let (proven, size) = (None, 0);
        let holds = match access.space {
            Space::Unknown(_) => return true,
            Space::Context => Type::Context { offset },
            Space::Packet => Type::Packet { offset, proven },
            Space::Metadata => Type::Metadata { offset, proven },
            Space::Stack { calls_up } => Type::Stack { calls_up, offset },
            Space::MapValue(map) => Type::MapValue { map, offset },
            Space::Record(map) => Type::Record { map, size, offset },
            Space::Key(map) => Type::Key { map, offset },
        };
        let misses = point.read(address, 1).is_none() && !access.is_proven;
        misses || self.is(point, &holds, address)
    }

    fn holds(&self, point: &Point<'_, '_>, fact: &Fact, value: u64) -> bool {
        fact.may_be_null && value == 0 || self.is(point, &fact.holds, value)
    }

    /// Returns whether a value is one that the type allows.
    fn is(&self, point: &Point<'_, '_>, holds: &Type, value: u64) -> bool {
        let behind = |start: u64, offset: &(i64, i64)| {
            (offset.0..=offset.1).contains(&(value.wrapping_sub(start) as i64))
        };
        let [metadata, start, end] = point.packet();
        let exist = |proven: &Option<i64>, end: u64| {
            proven.is_none_or(|proven| end.wrapping_sub(value) as i64 >= proven)
        };
        match holds {
            Type::Nothing | Type::Unknown(_) => true,
            Type::Number(scalar) => scalar.contains(value),
            Type::Half => value <= u32::MAX.into(),
            Type::Context { offset } => behind(point.context(), offset),
            Type::Packet { offset, proven } => behind(start, offset) && exist(proven, end),
            Type::Metadata { offset, proven } => behind(metadata, offset) && exist(proven, start),
            Type::PacketEnd => value == end,
            Type::Stack { calls_up: Some(calls), offset } => {
                let depth = (point.depth() - 1).checked_sub(usize::from(*calls));
                depth.is_some_and(|depth| behind(point.frame_pointer(depth), offset))
            }
            Type::Stack { calls_up: None, offset } => {
                (0..point.depth()).any(|depth| behind(point.frame_pointer(depth), offset))
            }
            Type::Map(MapName::Map(map)) => value == point.map(*map as usize),
            Type::Map(name) => maps(point, *name).any(|map| value == point.map(map)),
            Type::MapValue { map, offset } => {
                let found = point.map_of_value(value.wrapping_sub(offset.0 as u64));
                let is_one = found.is_some_and(|found| maps(point, *map).contains(&found));
                let values = found.and_then(|found| point.values(found));
                is_one
                    && values.is_some_and(|(first, spacing)| {
                        let behind = value.wrapping_sub(first).wrapping_sub(offset.0 as u64);
                        behind % spacing <= (offset.1 - offset.0) as u64
                    })
            }
            Type::Record { map, size, offset } => {
                let mut maps = maps(point, *map);
                maps.any(|map| {
                    let records = point.records(map);
                    let is_it =
                        |&(start, length): &(u64, u64)| behind(start, offset) && length >= *size;
                    records.iter().any(is_it)
                })
            }
            Type::Key { offset, .. } => point.keys().any(|key| behind(key, offset)),
            Type::Function(slot) => point.function(value) == Some(*slot),
        }
    }
}

/// Returns the address at which an operation accesses memory by a register, and the number of bytes
/// if known; `None` if a helper is passed a length of zero, since the address does not matter then.
fn touched(
    point: &Point<'_, '_>,
    operation: Operation,
    register: u8,
) -> Option<(u64, Option<u64>)> {
    let held = |register: u8| point.registers()[usize::from(register)];
    let (offset, size) = match operation {
        Operation::Load { offset, size, .. } | Operation::Store { offset, size, .. } => {
            (offset, Some(size.bytes().into()))
        }
        Operation::Atomic { offset, width: Width::Bits64, .. } => (offset, Some(8)),
        Operation::Atomic { offset, width: Width::Bits32, .. } => (offset, Some(4)),
        Operation::Call(Callee::Helper(number)) => {
            let arguments = signature(number).map_or(&[][..], |it| it.arguments);
            let is_sized = arguments.get(usize::from(register)) == Some(&Argument::Size);
            (0, is_sized.then(|| held(register + 1)))
        }
        _ => (0, None),
    };
    let address = held(register).wrapping_add_signed(offset.into());
    (size != Some(0)).then_some((address, size))
}

/// Returns the maps that a name may refer to.
fn maps(point: &Point<'_, '_>, name: MapName) -> std::ops::Range<usize> {
    match name {
        MapName::Map(map) => map as usize..map as usize + 1,
        MapName::Inside(_) => 0..point.maps(),
    }
}

impl Observer for Witness<'_> {
    fn before(&mut self, point: &Point<'_, '_>) {
        if self.failure.is_none()
            && let Err(what) = self.check(point)
        {
            let name = self.object.programs.get(point.program()).map_or("", |it| &it.name);
            self.failure = Some(format!("{name}, instruction {}: {what}", point.slot()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analysed::{LOOKUP, PACKET, object, program};
    use crate::interpreter::{Environment, Machine, Packet};

    /// Checks the execution of a program against the facts of another one with as many slots.
    fn failure(runs: &str, believed: &str, length: usize) -> Option<String> {
        let object = object(program(runs));
        let analyses = [Analysis::of(&program(believed), &object.maps).ok()];
        let mut witness = Witness::new(&object, &analyses);
        let mut machine = Machine::load(&object, Environment::default()).expect("it can run");
        let mut packet = Packet::new(&vec![7; length]).expect("a short one");
        let outcome = machine.run_observed(0, &mut packet, &mut witness);
        witness.failure(&outcome)
    }

    #[test]
    fn what_is_so_is_no_failure() {
        let text = format!("{LOOKUP}if r0 == 0 goto +1\n*(u64 *)(r0 + 0) = 1\nexit");
        assert_eq!(failure(&text, &text, 20), None);
    }

    #[test]
    fn what_is_not_so_is_told() {
        let reported = |runs: &str, believed: &str| {
            failure(runs, believed, 20).expect("it is another program")
        };
        let wrong = reported("r2 = 6\nr0 = r2\nexit", "r2 = 5\nr0 = r2\nexit");
        assert_eq!(wrong, "main, instruction 1: register 2 is 0x6, not 0x5");
        let wrong = reported(
            "r2 = 6\nif r2 > 5 goto +1\nr0 = 1\nexit",
            "r2 = 4\nif r2 > 5 goto +1\nr0 = 1\nexit",
        );
        assert!(wrong.ends_with("register 2 is 0x6, not 0x4"), "{wrong}");
        let wrong =
            reported("*(u64 *)(r10 - 8) = 1\nr0 = 0\nexit", "*(u64 *)(r10 - 8) = 2\nr0 = 0\nexit");
        assert!(wrong.contains("the stack at -8 is 0x1, not 0x2"), "{wrong}");
    }

    #[test]
    fn a_check_that_proves_a_byte_too_many_is_told() {
        let text = |bytes: u32| {
            format!(
                "{PACKET}r4 = r2\nr4 += {bytes}\nif r4 > r3 goto out\nr0 = *(u8 *)(r2 + 13)\n\
                     out:\nexit"
            )
        };
        assert_eq!(failure(&text(14), &text(14), 14), None);
        // With 13 bytes the check of 13 passes and the load misses that the check of 14 proves.
        let wrong = failure(&text(13), &text(14), 13).expect("a byte is missing");
        assert!(wrong.contains("register 4") || wrong.contains("proven, but"), "{wrong}");
    }

    #[test]
    fn no_bytes_may_be_anywhere() {
        // The context or an address in the packet, which does not matter if no byte is read.
        let text = "r2 = *(u32 *)(r1 + 12)\nr3 = 0\nr4 = r10\nr4 += -8\nif r2 == 0 goto +2\n\
                    r2 = 8\ngoto +2\nr1 = *(u32 *)(r1 + 0)\nr2 = 0\ncall 0x6a\nexit";
        assert_eq!(failure(text, text, 20), None);
    }
}
