// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs that are not XDP programs: they take the address of memory in register 1 and its length
//! in register 2, and return 64 bits, like those of the data set bpf_conformance.
//!
//! An XDP program takes a context instead, and returns 32 bits. A prologue is therefore added that
//! finds the packet in its context, calls the bare program as a local function, and stores its
//! return value in a map. The bare program itself is unchanged, with registers and a stack frame of
//! its own.

use crate::{Arrival, Contents, Error, Target};
use freeport_ebpf::instruction::{
    Arithmetic, Callee, Constant, Instruction, Operand, Operation, Size, Width,
};
use freeport_ebpf::interpreter::verdict::PASS;
use freeport_ebpf::object::{Function, MapDefinition, MapKind, Object, Program};

/// Name of the program, and of the map for its return value.
const NAME: &str = "bare";
const RETURNED: &str = "returned";
/// Initial value of the map: one that programs are unlikely to return.
const NOTHING: u64 = 0x5a5a_0123_4567_a5a5;

/// Makes an object of such a program; its local calls stay as they are.
pub fn object_of_bare(instructions: &[Instruction]) -> Object {
    let front = front();
    let functions = vec![
        Function { name: NAME.into(), slot: 0 },
        Function { name: "called".into(), slot: front.len() },
    ];
    let returned = MapDefinition {
        name: RETURNED.into(),
        kind: MapKind::Array,
        key_size: 4,
        value_size: 8,
        max_entries: 1,
        ..MapDefinition::default()
    };
    let program = Program {
        name: NAME.into(),
        section: "xdp".into(),
        instructions: [&front, instructions].concat(),
        functions,
        ..Program::default()
    };
    Object { programs: vec![program], maps: vec![returned], ..Object::default() }
}

/// Builds the prologue: finds the packet, calls the bare program, and stores its return value.
fn front() -> Vec<Instruction> {
    let load = |destination, offset| Operation::Load {
        size: Size::Word,
        is_signed: false,
        destination,
        base: 1,
        offset,
    };
    let alu = |operation, destination, source| Operation::Alu {
        width: Width::Bits64,
        operation,
        destination,
        source,
    };
    let behind = [
        Operation::LoadConstant {
            destination: 1,
            constant: Constant::MapValue { map: 0, offset: 0 },
        },
        Operation::Store { size: Size::Double, base: 1, offset: 0, source: Operand::Register(0) },
        alu(Arithmetic::Move, 0, Operand::Immediate(PASS as i32)),
        Operation::Exit,
    ];
    let behind = slots(&behind);
    let before = [
        load(2, 4),
        load(1, 0),
        alu(Arithmetic::Subtract, 2, Operand::Register(1)),
        Operation::Call(Callee::Local(behind.len() as i32)),
    ];
    [slots(&before), behind].concat()
}

fn slots(operations: &[Operation]) -> Vec<Instruction> {
    let slots = operations.iter().map(Operation::encode);
    slots.flat_map(|(first, second)| [Some(first), second]).flatten().collect()
}

/// Runs the program on memory and returns its result.
///
/// # Errors
/// The target refuses the memory's length or fails, or the program was aborted.
pub fn run_bare(target: &mut dyn Target, memory: &[u8]) -> Result<u64, Error> {
    target.update(RETURNED, &[0; 4], &NOTHING.to_le_bytes())?;
    let arrival = Arrival { bytes: memory, ingress_ifindex: 1, rx_queue_index: 0 };
    let departure = target.run(NAME, &arrival)?;
    let refused = |reason: &str| Error::Refused { what: NAME.into(), reason: reason.into() };
    if departure.verdict != PASS {
        return Err(refused("it was stopped before it ended"));
    }
    let Contents::Entries(entries) = target.contents(RETURNED)? else {
        return Err(refused("its return value cannot be read"));
    };
    let value = entries.get(&[0; 4][..]).and_then(|value| value.first_chunk());
    value.map(|bytes| u64::from_le_bytes(*bytes)).ok_or_else(|| refused("it returned nothing"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Interpreter;
    use freeport_ebpf::instruction::assemble;
    use freeport_ebpf::interpreter::Environment;

    fn ran(text: &str, memory: &[u8]) -> Result<u64, String> {
        let object = object_of_bare(&assemble(text).expect("it is written here"));
        let target = Interpreter::load(&object, Environment::default());
        let mut target = target.map_err(|error| error.to_string())?;
        run_bare(&mut target, memory).map_err(|error| error.to_string())
    }

    #[test]
    fn it_gets_memory_and_length_and_all_64_bits_come_back() {
        let text = "r0 = *(u8 *)(r1 + 1)\nr0 <<= 56\nr0 += r2\nexit";
        assert_eq!(ran(text, &[1, 0xfe, 3]), Ok(0xfe00_0000_0000_0003));
        assert_eq!(ran("r0 = 0\nexit", &[1]), Ok(0));
    }

    #[test]
    fn one_that_is_stopped_returns_nothing() {
        let stopped = ran("r0 = *(u64 *)(r1 + 0)\nexit", &[1, 2, 3]);
        assert!(stopped.is_err_and(|error| error.contains("stopped before it ended")));
    }
}
