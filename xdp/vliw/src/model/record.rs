// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Optional recording of the rows that a model executes.

use super::Model;
use super::row::{Control, Found};
use freeport_ebpf::interpreter::Execution;

/// An executed row.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// Number of the program in the object.
    pub program: usize,
    /// Row of its image.
    pub row: usize,
    /// Last lane that was executed: the one that transferred control, or the last of all.
    pub last_lane: usize,
    /// Registers that were written, with their new values.
    pub registers: Vec<(u8, u64)>,
    /// Stores of the row's lanes.
    pub stores: Vec<Stored>,
    /// Control transfer, with the lane that decided it.
    pub way: Option<(usize, Way)>,
}

/// A store of a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    /// Lane.
    pub lane: usize,
    /// Address, as programs see it.
    pub address: u64,
    /// Number of bytes.
    pub bytes: usize,
    /// Value whose low bytes were stored, lowest first.
    pub value: u64,
}

/// Control transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Continues at a row.
    Row(usize),
    /// Calls the function that begins at this row.
    Function(usize),
    /// Exits with a verdict.
    Verdict(u32),
    /// Returns from the function with register 0.
    Return(u64),
}

/// Recorded steps, and the number that may still be recorded.
#[derive(Default)]
pub(super) struct Record {
    pub steps: Vec<Step>,
    pub most: usize,
    pub left_out: u64,
}

impl Model {
    /// Records the first `most` rows executed for each following packet; 0 turns recording off.
    pub fn record(&self, most: usize) {
        let record = &mut self.record.borrow_mut();
        **record = Record { most, ..Record::default() };
    }

    /// Takes the recorded steps, and the number of rows executed beyond them.
    pub fn take_steps(&self) -> (Vec<Step>, u64) {
        let record = &mut self.record.borrow_mut();
        (std::mem::take(&mut record.steps), std::mem::take(&mut record.left_out))
    }

    /// Records a row that has written.
    pub(super) fn note(&self, row: usize, found: &Found, execution: &Execution<'_, '_>) {
        let record = &mut self.record.borrow_mut();
        if record.most == 0 {
            return;
        }
        if record.steps.len() == record.most {
            record.left_out += 1;
            return;
        }
        let now = |register: u8| (register, execution.registers()[usize::from(register)]);
        let mut registers: Vec<(u8, u64)> =
            found.registers.iter().map(|(register, _)| now(*register)).collect();
        if !found.calls.is_empty() {
            registers.push(now(0));
        }
        let stores = found.stores.iter().map(|store| {
            let (lane, address) = (store.lane, store.address);
            Stored { lane, address, bytes: store.bytes, value: store.value }
        });
        record.steps.push(Step {
            program: execution.program(),
            row,
            last_lane: found.control.map_or(usize::MAX, |(lane, _)| lane),
            registers,
            stores: stores.collect(),
            way: found.control.map(|(lane, control)| (lane, control.into())),
        });
    }
}

impl From<Control> for Way {
    fn from(control: Control) -> Self {
        match control {
            Control::Row(row) => Self::Row(row),
            Control::Function(row) => Self::Function(row),
            Control::Verdict(verdict) => Self::Verdict(verdict),
            Control::Exit(value) => Self::Return(value),
        }
    }
}
