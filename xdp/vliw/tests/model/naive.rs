// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Images of eBPF programs with one instruction in a row: they behave as in the interpreter, as far
//! as each operation is equivalent to its instruction.

use freeport_ebpf::instruction::{Callee, Constant, Instruction, Operation as Ebpf, decode};
use freeport_vliw::image::{Function, Image, Row, Slot};
use freeport_vliw::machine::Machine;
use freeport_vliw::operation::{Constant as OwnConstant, Operation, Target};

/// Creates the image of a program that can be loaded: instruction number `n` is in lane 0 of row
/// `spacing * n`, and the rows between are empty. Functions are given by their slots, in order.
pub fn naive(program: &[Instruction], functions: &[usize], spacing: usize) -> Image {
    let starts = starts(program);
    let row_of = |slot: usize| spacing * starts.partition_point(|&start| start < slot);
    let mut rows = vec![];
    for &slot in &starts {
        let operation = decode(program, slot).expect("it can be loaded");
        let operation = translated(operation, slot, row_of);
        let machine = Machine::default();
        let mut row = Row { lanes: vec![None; machine.lanes.into()] };
        row.lanes[0] = Some(Slot { operation, origins: vec![slot] });
        rows.push(row);
        let empty = || Row { lanes: vec![None; machine.lanes.into()] };
        rows.extend(std::iter::repeat_with(empty).take(spacing - 1));
    }
    let function = |&slot: &usize| Function { row: row_of(slot), ..Function::default() };
    let functions = functions.iter().map(function).collect();
    Image { rows, functions, ..Image::default() }
}

/// Returns the first slots of instructions.
fn starts(program: &[Instruction]) -> Vec<usize> {
    let (mut starts, mut slot) = (vec![], 0);
    while slot < program.len() {
        starts.push(slot);
        slot += if program[slot].is_wide() { 2 } else { 1 };
    }
    starts
}

fn translated(instruction: Ebpf, slot: usize, row_of: impl Fn(usize) -> usize) -> Operation {
    let behind = |distance: i32| row_of((slot as i64 + 1 + i64::from(distance)) as usize);
    match instruction {
        Ebpf::Alu { width, operation, destination, source } => {
            Operation::Alu { width, operation, destination, left: destination, right: source }
        }
        Ebpf::Negate { width, destination } => {
            Operation::Negate { width, destination, source: destination }
        }
        Ebpf::MoveSigned { width, destination, source, bits } => {
            Operation::MoveSigned { width, destination, source, bits }
        }
        Ebpf::Swap { order, destination, bits } => {
            Operation::Swap { order, destination, source: destination, bits }
        }
        Ebpf::Load { size, is_signed, destination, base, offset } => {
            let (bytes, is_speculative) = (size.bytes(), false);
            Operation::Load { bytes, is_signed, is_speculative, destination, base, offset }
        }
        Ebpf::Store { size, base, offset, source } => {
            Operation::Store { bytes: size.bytes(), base, offset, source }
        }
        Ebpf::Atomic { width, operation, is_fetching, base, offset, source } => {
            Operation::Atomic { width, operation, is_fetching, base, offset, source }
        }
        Ebpf::LoadConstant { destination, constant } => {
            let constant = match constant {
                Constant::Value(value) => OwnConstant::Value(value),
                Constant::Map(map) => OwnConstant::Map(map),
                Constant::MapValue { map, offset } => OwnConstant::MapValue { map, offset },
                Constant::Function(distance) => OwnConstant::Function(behind(distance)),
                Constant::Variable(_) => panic!("it cannot be loaded"),
            };
            Operation::Constant { destination, constant }
        }
        Ebpf::Jump { width, condition, left, right, distance } => {
            let target = Target::Row(behind(distance.into()));
            Operation::Jump { width, condition, left, right, target }
        }
        Ebpf::Goto { distance, .. } => Operation::Goto(Target::Row(behind(distance))),
        Ebpf::Call(Callee::Helper(helper)) => Operation::call(helper),
        Ebpf::Call(Callee::Local(distance)) => Operation::CallFunction(behind(distance)),
        Ebpf::Exit => Operation::Exit,
        Ebpf::Call(Callee::Kernel { .. }) | Ebpf::LoadPacket { .. } => {
            panic!("it cannot be loaded")
        }
    }
}
