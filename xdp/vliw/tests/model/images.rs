// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Images written as rows of operations, and their outcomes.

use crate::program::{object, packet};
use freeport_ebpf::interpreter::{Environment, Machine, Outcome, Packet};
use freeport_ebpf::object::MapDefinition;
use freeport_vliw::image::{Function, Image, Row, Slot};
use freeport_vliw::model::{Fault, Hazard, Mode, Model, Run};
use freeport_vliw::operation::{
    Argument, Arithmetic, AtomicOperation, Condition, Constant, Operand, Operation, Target, Width,
};

/// A lane.
pub type Lane = Option<Operation>;

/// An empty lane.
pub const NOTHING: Lane = None;

/// Creates an image of one function, with four lanes or as many as the longest row has. The origin
/// of each operation is the slot that is four times its row plus its lane.
pub fn image(rows: &[&[Lane]]) -> Image {
    let lanes = rows.iter().map(|row| row.len()).max().unwrap_or(0).max(4);
    let row = |(at, row): (usize, &&[Lane])| {
        let slot = |(lane, operation): (usize, &Lane)| {
            operation.map(|operation| Slot { operation, origins: vec![4 * at + lane] })
        };
        let mut lane_slots: Vec<_> = row.iter().enumerate().map(slot).collect();
        lane_slots.resize_with(lanes, || None);
        Row { lanes: lane_slots }
    };
    let rows = rows.iter().enumerate().map(row).collect();
    Image { rows, functions: vec![Function::default()], ..Image::default() }
}

/// As `image`, with further functions, by their first rows.
pub fn image_with(functions: &[usize], rows: &[&[Lane]]) -> Image {
    let mut image = image(rows);
    image.functions.extend(functions.iter().map(|&row| Function { name: String::new(), row }));
    image
}

/// Creates a machine with these maps for this number of programs.
pub fn machine(programs: usize, maps: Vec<MapDefinition>) -> Machine {
    let object = object(vec![vec![]; programs], maps);
    Machine::load(&object, Environment::default()).expect("maps can be made")
}

/// Runs images in strict mode, the first of them on a packet.
pub fn run_on(
    images: Vec<Image>,
    machine: &mut Machine,
    packet: &mut Packet,
) -> Result<Run, Fault> {
    Model::new(images.into_iter().map(Some).collect(), Mode::Strict).run(machine, 0, packet)
}

/// Runs an image in strict mode on a packet of 64 bytes that count from 0.
pub fn run(image: Image) -> Run {
    let ran = run_on(vec![image], &mut machine(1, vec![]), &mut packet(64));
    ran.unwrap_or_else(|fault| panic!("{fault}"))
}

/// Returns register 0 at the end of rows that exit regularly.
pub fn value(rows: &[&[Lane]]) -> u64 {
    ended(run(image(rows)).outcome)
}

/// Returns register 0 of an outcome without an abort.
pub fn ended(outcome: Outcome) -> u64 {
    assert_eq!(outcome.aborted, None);
    outcome.value
}

/// Returns the violation of an image, and its row.
pub fn fault(image: Image) -> (usize, Hazard) {
    let found = run_on(vec![image], &mut machine(1, vec![]), &mut packet(64));
    let fault = found.expect_err("it breaks a rule");
    assert_eq!(fault.program, 0);
    (fault.row, fault.hazard)
}

pub fn register(register: u8) -> Operand {
    Operand::Register(register)
}

pub fn number(number: i32) -> Operand {
    Operand::Immediate(number)
}

/// `destination = left operation right`.
pub fn alu(operation: Arithmetic, destination: u8, left: u8, right: Operand) -> Lane {
    Some(Operation::Alu { width: Width::Bits64, operation, destination, left, right })
}

/// `destination = left + right`.
pub fn add(destination: u8, left: u8, right: Operand) -> Lane {
    alu(Arithmetic::Add, destination, left, right)
}

/// `destination = source`.
pub fn set(destination: u8, source: Operand) -> Lane {
    alu(Arithmetic::Move, destination, 0, source)
}

/// `destination = constant`.
pub fn constant(destination: u8, constant: Constant) -> Lane {
    Some(Operation::Constant { destination, constant })
}

pub fn load(destination: u8, bytes: u8, base: u8, offset: i16) -> Lane {
    let (is_signed, is_speculative) = (false, false);
    Some(Operation::Load { bytes, is_signed, is_speculative, destination, base, offset })
}

pub fn load_signed(destination: u8, bytes: u8, base: u8, offset: i16) -> Lane {
    let (is_signed, is_speculative) = (true, false);
    Some(Operation::Load { bytes, is_signed, is_speculative, destination, base, offset })
}

pub fn load_if_there(destination: u8, bytes: u8, base: u8, offset: i16) -> Lane {
    let (is_signed, is_speculative) = (false, true);
    Some(Operation::Load { bytes, is_signed, is_speculative, destination, base, offset })
}

pub fn store(bytes: u8, base: u8, offset: i16, source: Operand) -> Lane {
    Some(Operation::Store { bytes, base, offset, source })
}

pub fn atomic(operation: AtomicOperation, base: u8, offset: i16, source: u8) -> Lane {
    let (width, is_fetching) = (Width::Bits64, true);
    Some(Operation::Atomic { width, operation, is_fetching, base, offset, source })
}

/// Jumps to a row if a register equals the operand.
pub fn if_equal(left: u8, right: Operand, row: usize) -> Lane {
    jump(Condition::Equal, left, right, Target::Row(row))
}

pub fn jump(condition: Condition, left: u8, right: Operand, target: Target) -> Lane {
    Some(Operation::Jump { width: Width::Bits64, condition, left, right, target })
}

pub fn bound(base: Option<u8>, bytes: i32, target: Target) -> Lane {
    Some(Operation::Bound { base, bytes, target })
}

pub fn goto(row: usize) -> Lane {
    Some(Operation::Goto(Target::Row(row)))
}

pub fn exit_with(verdict: u32) -> Lane {
    Some(Operation::Goto(Target::Exit(verdict)))
}

pub fn exit() -> Lane {
    Some(Operation::Exit)
}

pub fn call(helper: u32) -> Lane {
    Some(Operation::call(helper))
}

/// Returns a call with some explicit arguments; the others are in registers.
pub fn call_with(helper: u32, named: &[Argument]) -> Lane {
    let mut arguments = [Argument::Register; 5];
    arguments[..named.len()].copy_from_slice(named);
    Some(Operation::Call { helper, arguments })
}

pub fn call_function(row: usize) -> Lane {
    Some(Operation::CallFunction(row))
}
