// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Rules of `docs/internals/vliw.md` that can be checked during execution: about operations within
//! a row, and about results of the previous row.
//!
//! Skipped operations count for registers, which are read before, but not for memory, since their
//! addresses may be meaningless.

use super::row::Found;
use super::{Hazard, touched};
use crate::image::{Row, Slot};
use crate::machine::{CALLS_PER_ROW, PACKET, REGISTERS};
use crate::operation::{Argument, Operation};
use freeport_ebpf::helper_functions::{Effect, signature};
use freeport_ebpf::interpreter::Execution;
use std::ops::Range;

/// Results of the previously executed row that are not visible everywhere yet.
#[derive(Default)]
pub(super) struct Pipeline {
    row: usize,
    /// Lane that writes each register there.
    writers: [Option<usize>; REGISTERS as usize],
    stores: Vec<StoreOnItsWay>,
}

struct StoreOnItsWay {
    row: usize,
    lane: usize,
    range: Range<u64>,
}

/// Bytes that a lane accesses.
pub(super) struct Access {
    pub lane: usize,
    pub range: Range<u64>,
    pub is_read: bool,
    pub is_written: bool,
}

impl Pipeline {
    /// Forgets the previous row, whose results are visible.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Checks a row that is about to write, and records it as the previous one.
    pub fn check(
        &mut self,
        at: usize,
        row: &Row,
        found: &Found,
        execution: &Execution<'_, '_>,
    ) -> Result<(), Hazard> {
        places(row)?;
        calls(row)?;
        registers(row)?;
        moves(row)?;
        self.forwarded(row)?;
        let accesses = accesses(found, execution);
        memory(&accesses)?;
        self.stored(&accesses)?;
        self.stores.clear();
        self.stores.extend(found.stores.iter().map(|store| StoreOnItsWay {
            row: at,
            lane: store.lane,
            range: range(store.address, store.bytes),
        }));
        self.note_registers(at, row);
        Ok(())
    }

    /// Records the registers that a row writes.
    pub fn note_registers(&mut self, at: usize, row: &Row) {
        (self.row, self.writers) = (at, Default::default());
        for (lane, slot) in row.slots() {
            // The result of a called function is written by the function's rows.
            let is_call = matches!(slot.operation, Operation::CallFunction(_));
            let register = slot.operation.written().filter(|_| !is_call);
            if let Some(writer) = register.and_then(|it| self.writers.get_mut(usize::from(it))) {
                *writer = Some(lane);
            }
        }
    }

    fn forwarded(&self, row: &Row) -> Result<(), Hazard> {
        for (lane, slot) in row.slots() {
            for register in read(slot) {
                match self.writers.get(usize::from(register)) {
                    Some(&Some(writer)) if writer != lane => {
                        let writer_row = self.row;
                        return Err(Hazard::NotForwarded { lane, register, writer_row, writer });
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn stored(&self, accesses: &[Access]) -> Result<(), Hazard> {
        for access in accesses.iter().filter(|access| access.is_read) {
            if let Some(store) = self.stores.iter().find(|it| overlap(&it.range, &access.range)) {
                return Err(Hazard::StoreThenLoad {
                    lane: access.lane,
                    address: store.range.start,
                    writer_row: store.row,
                    writer: store.lane,
                });
            }
        }
        Ok(())
    }
}

/// Returns the registers that an operation reads, including those of a call's arguments.
fn read(slot: &Slot) -> impl Iterator<Item = u8> {
    let given = match slot.operation {
        Operation::Call { helper, arguments } => {
            let count = signature(helper).map_or(0, |it| it.arguments.len());
            let given = (1..).zip(arguments).take(count);
            given
                .filter(|(_, it)| *it == Argument::Register)
                .map(|(register, _)| register)
                .collect()
        }
        _ => vec![],
    };
    slot.operation.read().chain(given)
}

/// Checks that the second lane of a long constant, and the lanes after an operation that always
/// leaves, are empty.
fn places(row: &Row) -> Result<(), Hazard> {
    let mut left = None;
    for (lane, slot) in row.slots() {
        if let Some(before) = left {
            return Err(Hazard::Behind { lane, before });
        }
        let second = lane + 1;
        if slot.operation.lanes() > 1 && row.lanes.get(second).is_none_or(Option::is_some) {
            return Err(Hazard::Behind { lane: second, before: lane });
        }
        let leaves = matches!(slot.operation, Operation::CallFunction(_));
        left = (leaves || slot.operation.is_terminal()).then_some(lane);
    }
    Ok(())
}

fn calls(row: &Row) -> Result<(), Hazard> {
    let calls = row.slots().filter(|(_, slot)| matches!(slot.operation, Operation::Call { .. }));
    let lanes: Vec<usize> = calls.map(|(lane, _)| lane).collect();
    match lanes.get(CALLS_PER_ROW) {
        Some(&second) => Err(Hazard::Calls { first: lanes[0], second }),
        None => Ok(()),
    }
}

/// Checks that no lane reads or writes a register that another one writes.
fn registers(row: &Row) -> Result<(), Hazard> {
    for (first, slot) in row.slots() {
        let Some(register) = slot.operation.written() else { continue };
        for (second, other) in row.slots().filter(|(lane, _)| *lane != first) {
            // A function finds its arguments as the previous rows left them.
            let is_argument = matches!(other.operation, Operation::CallFunction(_))
                && (1..=5).contains(&register);
            let mut given = read(other);
            if is_argument
                || other.operation.written() == Some(register)
                || given.any(|it| it == register)
            {
                return Err(Hazard::Registers { first, second, register });
            }
        }
    }
    Ok(())
}

/// Checks that no lane reads an end of the packet that another lane moves.
fn moves(row: &Row) -> Result<(), Hazard> {
    let moves = |slot: &Slot| match slot.operation {
        Operation::Call { helper, .. } => {
            signature(helper).is_some_and(|it| it.effect == Some(Effect::MovesPacket))
        }
        _ => false,
    };
    for (call, _) in row.slots().filter(|(_, slot)| moves(slot)) {
        let asks = |slot: &Slot| {
            matches!(slot.operation, Operation::Bound { .. }) || read(slot).any(|it| it == PACKET)
        };
        if let Some((lane, _)) = row.slots().find(|(lane, slot)| *lane != call && asks(slot)) {
            return Err(Hazard::Moves { lane, call });
        }
    }
    Ok(())
}

/// Checks that no lane accesses memory that another lane writes.
fn memory(accesses: &[Access]) -> Result<(), Hazard> {
    for first in accesses.iter().filter(|access| access.is_written) {
        let conflicts = |it: &&Access| it.lane != first.lane && overlap(&it.range, &first.range);
        if let Some(second) = accesses.iter().find(conflicts) {
            return Err(Hazard::Memory {
                first: first.lane,
                second: second.lane,
                address: first.range.start,
            });
        }
    }
    Ok(())
}

/// Returns all memory accesses of a row.
fn accesses(found: &Found, execution: &Execution<'_, '_>) -> Vec<Access> {
    let loads = found.loads.iter().map(|load| Access {
        lane: load.lane,
        range: range(load.address, load.bytes),
        is_read: true,
        is_written: false,
    });
    let stores = found.stores.iter().map(|store| Access {
        lane: store.lane,
        range: range(store.address, store.bytes),
        is_read: false,
        is_written: true,
    });
    let mut all: Vec<Access> = loads.chain(stores).collect();
    for call in &found.calls {
        let mut registers = *execution.registers();
        registers[1..6].copy_from_slice(&call.arguments);
        all.extend(touched::accesses(call.helper, &registers, execution, call.lane));
    }
    all
}

fn range(address: u64, bytes: usize) -> Range<u64> {
    address..address.saturating_add(bytes as u64)
}

fn overlap(left: &Range<u64>, right: &Range<u64>) -> bool {
    left.start < right.end && right.start < left.end
}
