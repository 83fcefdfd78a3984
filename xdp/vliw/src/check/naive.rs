// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Images that are trivially correct: one instruction a row, in lane 0, and an empty row after each
//! store.

use crate::image::{Function, Image, Row, Slot};
use crate::machine::Machine;
use crate::operation::{Arithmetic, Constant, Operation, Target};
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::instruction::{self as ebpf, Callee};

/// Creates the image of a program for a machine with this number of lanes.
pub fn naive(analysis: &Analysis, lanes: u8) -> Image {
    let graph = analysis.graph();
    let mut row_of = vec![0; graph.slots()];
    let mut row = 0;
    for (slot, operation) in graph.operations(0..graph.slots()) {
        row_of[slot] = row;
        row += if is_store(operation) { 2 } else { 1 };
    }
    let empty = Row { lanes: vec![None; lanes.into()] };
    let mut rows = vec![empty; row];
    for (slot, operation) in graph.operations(0..graph.slots()) {
        let operation = translated(slot, operation, &row_of);
        rows[row_of[slot]].lanes[0] = Some(Slot { operation, origins: vec![slot] });
    }
    let functions = graph.functions().iter().map(|function| Function {
        name: function.name.clone(),
        row: row_of[function.slots.start],
    });
    Image { name: "main".into(), machine: Machine { lanes }, rows, functions: functions.collect() }
}

fn is_store(operation: ebpf::Operation) -> bool {
    matches!(operation, ebpf::Operation::Store { .. } | ebpf::Operation::Atomic { .. })
}

fn translated(slot: usize, operation: ebpf::Operation, row_of: &[usize]) -> Operation {
    let to = |distance: i32| row_of[(slot as i64 + 1 + i64::from(distance)) as usize];
    match operation {
        ebpf::Operation::Alu { width, operation, destination, source } => {
            let left = if operation == Arithmetic::Move { 0 } else { destination };
            Operation::Alu { width, operation, destination, left, right: source }
        }
        ebpf::Operation::Negate { width, destination } => {
            Operation::Negate { width, destination, source: destination }
        }
        ebpf::Operation::MoveSigned { width, destination, source, bits } => {
            Operation::MoveSigned { width, destination, source, bits }
        }
        ebpf::Operation::Swap { order, destination, bits } => {
            Operation::Swap { order, destination, source: destination, bits }
        }
        ebpf::Operation::Load { size, is_signed, destination, base, offset } => {
            let (bytes, is_speculative) = (size.bytes(), false);
            Operation::Load { bytes, is_signed, is_speculative, destination, base, offset }
        }
        ebpf::Operation::Store { size, base, offset, source } => {
            Operation::Store { bytes: size.bytes(), base, offset, source }
        }
        ebpf::Operation::Atomic { width, operation, is_fetching, base, offset, source } => {
            Operation::Atomic { width, operation, is_fetching, base, offset, source }
        }
        ebpf::Operation::LoadConstant { destination, constant } => {
            let constant = match constant {
                ebpf::Constant::Value(value) => Constant::Value(value),
                ebpf::Constant::Map(map) => Constant::Map(map),
                ebpf::Constant::MapValue { map, offset } => Constant::MapValue { map, offset },
                ebpf::Constant::Function(distance) => Constant::Function(to(distance)),
                ebpf::Constant::Variable(_) => panic!("kernel variables are not available here"),
            };
            Operation::Constant { destination, constant }
        }
        ebpf::Operation::Jump { width, condition, left, right, distance } => {
            let target = Target::Row(to(distance.into()));
            Operation::Jump { width, condition, left, right, target }
        }
        ebpf::Operation::Goto { distance, .. } => Operation::Goto(Target::Row(to(distance))),
        ebpf::Operation::Call(Callee::Helper(number)) => Operation::call(number),
        ebpf::Operation::Call(Callee::Local(distance)) => Operation::CallFunction(to(distance)),
        ebpf::Operation::Exit => Operation::Exit,
        other => panic!("`{other}` is not valid in XDP programs"),
    }
}
