// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a model has done, row by row, where somebody wants to know.

use super::Model;
use super::row::{Control, Found};
use freeport_ebpf::interpreter::Execution;

/// A row that was executed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// The program of the object.
    pub program: usize,
    /// The row of its image.
    pub row: usize,
    /// The last lane that did something: one that took control, or the last of all.
    pub last_lane: usize,
    /// Registers that were written, with what they hold since.
    pub registers: Vec<(u8, u64)>,
    /// Lanes that stored, and what.
    pub stores: Vec<Stored>,
    /// Where control goes, and the lane that says so.
    pub way: Option<(usize, Way)>,
}

/// What a lane stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The lane.
    pub lane: usize,
    /// Where, as programs see it.
    pub address: u64,
    /// How many bytes.
    pub bytes: usize,
    /// They are the low ones of this, the lowest first.
    pub value: u64,
}

/// Where control goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// To a row.
    Row(usize),
    /// To a function that begins there.
    Function(usize),
    /// The program ends with a verdict.
    Verdict(u32),
    /// The function ends with register 0.
    Return(u64),
}

/// Steps of a run, and how many there is still room for.
#[derive(Default)]
pub(super) struct Record {
    pub steps: Vec<Step>,
    pub most: usize,
    pub left_out: u64,
}

impl Model {
    /// Keeps what the next packets do, the first `most` rows of it; 0 for nothing.
    pub fn record(&self, most: usize) {
        let record = &mut self.record.borrow_mut();
        **record = Record { most, ..Record::default() };
    }

    /// Takes what was kept, and how many rows more were executed.
    pub fn take_steps(&self) -> (Vec<Step>, u64) {
        let record = &mut self.record.borrow_mut();
        (std::mem::take(&mut record.steps), std::mem::take(&mut record.left_out))
    }

    /// Notes a row that has written.
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
