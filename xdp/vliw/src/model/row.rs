// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Evaluation of a row: the values that its operations read before any of them writes, and which
//! operations are executed.

use super::{Hazard, Stop};
use crate::image::Row;
use crate::machine::PACKET;
use crate::operation::{
    Argument, Arithmetic, ByteOrder, Constant, Operand, Operation, Target, Width,
};
use freeport_ebpf::instruction::FRAME_POINTER;
use freeport_ebpf::interpreter::{Execution, REGISTERS, compute, holds};

/// Results of a row's operations, from lane 0 to the one that transfers control.
#[derive(Default)]
pub(super) struct Found {
    /// Registers to be written.
    pub registers: Vec<(u8, u64)>,
    /// Stores to be made.
    pub stores: Vec<Store>,
    /// Loads that were made.
    pub loads: Vec<Load>,
    /// Helpers to be called.
    pub calls: Vec<Call>,
    /// Control transfer, with the lane that decides it; without one, the next row follows.
    pub control: Option<(usize, Control)>,
    /// Number of executed operations.
    pub operations: u64,
}

/// A helper that a lane calls, with its arguments.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub lane: usize,
    pub helper: u32,
    pub arguments: [u64; 5],
}

/// Bytes that a lane loads.
pub(super) struct Load {
    pub lane: usize,
    pub address: u64,
    pub bytes: usize,
}

/// Bytes that a lane stores.
pub(super) struct Store {
    pub lane: usize,
    pub address: u64,
    pub bytes: usize,
    pub value: u64,
}

/// Control transfer.
#[derive(Clone, Copy)]
pub(super) enum Control {
    /// Continues at a row.
    Row(usize),
    /// Calls a function.
    Function(usize),
    /// Exits with a verdict.
    Verdict(u32),
    /// Returns from the function with register 0.
    Exit(u64),
}

impl From<Target> for Control {
    fn from(target: Target) -> Self {
        match target {
            Target::Row(row) => Self::Row(row),
            Target::Exit(verdict) => Self::Verdict(verdict),
        }
    }
}

impl Found {
    /// Evaluates the lanes of a row; `at_work` is the last one that was evaluated.
    pub fn read(
        row: &Row,
        execution: &Execution<'_, '_>,
        at_work: &mut usize,
    ) -> Result<Self, Stop> {
        let mut reading = Reading { execution, lane: 0, found: Self::default() };
        for (lane, slot) in row.slots() {
            (reading.lane, *at_work) = (lane, lane);
            reading.operation(slot.operation)?;
            reading.found.operations += 1;
            if reading.found.control.is_some() {
                break;
            }
        }
        Ok(reading.found)
    }

    /// Writes registers.
    pub fn write(&self, execution: &mut Execution<'_, '_>) {
        for &(register, value) in &self.registers {
            execution.registers_mut()[usize::from(register)] = value;
        }
    }

    /// Writes registers again, except for one.
    pub fn write_besides(&self, execution: &mut Execution<'_, '_>, kept: u8) {
        for &(register, value) in self.registers.iter().filter(|written| written.0 != kept) {
            execution.registers_mut()[usize::from(register)] = value;
        }
    }
}

/// Evaluation of a lane.
struct Reading<'e, 'r, 'm> {
    execution: &'e Execution<'r, 'm>,
    lane: usize,
    found: Found,
}

impl Reading<'_, '_, '_> {
    fn operation(&mut self, operation: Operation) -> Result<(), Stop> {
        match operation {
            Operation::Alu { width, operation, destination, left, right } => {
                let (left, right) = (self.register(left)?, self.operand(right)?);
                self.write(destination, compute(operation, width, left, right))
            }
            Operation::Negate { width, destination, source } => {
                let source = self.register(source)?;
                self.write(destination, compute(Arithmetic::Subtract, width, 0, source))
            }
            Operation::MoveSigned { width, destination, source, bits } => {
                let value = self.signed(self.register(source)?, bits.into())?;
                self.write(destination, compute(Arithmetic::Move, width, 0, value))
            }
            Operation::Swap { order, destination, source, bits } => {
                let value = self.swapped(order, self.register(source)?, bits)?;
                self.write(destination, value)
            }
            Operation::Constant { destination, constant } => {
                let value = self.constant(constant)?;
                self.write(destination, value)
            }
            Operation::Load { .. } => self.load(operation),
            Operation::Store { bytes, base, offset, source } => {
                let value = self.operand(source)?;
                self.store(self.address(base, offset)?, bytes, value)
            }
            Operation::Atomic { .. } => self.atomic(operation),
            Operation::Jump { width, condition, left, right, target } => {
                let (left, right) = (self.register(left)?, self.operand(right)?);
                self.control_if(holds(condition, width, left, right), target.into())
            }
            Operation::Bound { base, bytes, target } => {
                let is_short = self.is_short(base, bytes)?;
                self.control_if(is_short, target.into())
            }
            Operation::Goto(target) => self.control_if(true, target.into()),
            Operation::Call { helper, arguments } => {
                let mut given = [0; 5];
                for (place, (register, argument)) in given.iter_mut().zip((1..).zip(arguments)) {
                    *place = self.argument(register, argument)?;
                }
                let lane = self.lane;
                self.found.calls.push(Call { lane, helper, arguments: given });
                Ok(())
            }
            Operation::CallFunction(row) => self.control_if(true, Control::Function(row)),
            Operation::Exit => self.control_if(true, Control::Exit(self.register(0)?)),
        }
    }

    /// Returns the argument of a helper that belongs to a register.
    fn argument(&self, register: u8, argument: Argument) -> Result<u64, Stop> {
        match argument {
            Argument::Register => self.register(register),
            Argument::Context => Ok(self.execution.context()),
            Argument::Map(map) => self.constant(Constant::Map(map.into())),
            Argument::Stack(offset) => self.address(FRAME_POINTER, offset),
            Argument::Number(value) => Ok(value.into()),
        }
    }

    fn load(&mut self, operation: Operation) -> Result<(), Stop> {
        let Operation::Load { bytes, is_signed, is_speculative, destination, base, offset } =
            operation
        else {
            return Ok(());
        };
        let (address, size) = (self.address(base, offset)?, self.size(bytes)?);
        let loaded = match self.execution.load(address, size) {
            Err(_) if is_speculative => 0,
            loaded => loaded?,
        };
        self.found.loads.push(Load { lane: self.lane, address, bytes: size });
        let value = if is_signed { self.signed(loaded, u32::from(bytes) * 8)? } else { loaded };
        self.write(destination, value)
    }

    fn store(&mut self, address: u64, bytes: u8, value: u64) -> Result<(), Stop> {
        let (lane, bytes) = (self.lane, self.size(bytes)?);
        self.found.stores.push(Store { lane, address, bytes, value });
        Ok(())
    }

    fn atomic(&mut self, atomic: Operation) -> Result<(), Stop> {
        let Operation::Atomic { width, operation, base, offset, source, .. } = atomic else {
            return Ok(());
        };
        let (address, bytes) =
            (self.address(base, offset)?, if width == Width::Bits32 { 4 } else { 8 });
        let operand = self.register(source)?;
        // Operations other than compare-and-exchange ignore it.
        let expected = self.register(0)?;
        let change = self.execution.atomic(address, width, operation, operand, expected)?;
        self.found.loads.push(Load { lane: self.lane, address, bytes: bytes.into() });
        self.store(address, bytes, change.new)?;
        atomic.written().map_or(Ok(()), |register| self.write(register, change.old))
    }

    /// Transfers control, if a condition holds.
    fn control_if(&mut self, is_taken: bool, control: Control) -> Result<(), Stop> {
        if is_taken {
            self.found.control = Some((self.lane, control));
        }
        Ok(())
    }

    /// Returns whether the packet is shorter than `bytes`, counted from an address in it or from
    /// its start.
    fn is_short(&self, base: Option<u8>, bytes: i32) -> Result<bool, Stop> {
        let [_, start, end] = self.execution.packet();
        let from = base.map_or(Ok(start), |base| self.register(base))?;
        Ok(from.wrapping_add_signed(bytes.into()) > end)
    }

    fn constant(&self, constant: Constant) -> Result<u64, Stop> {
        let found = match constant {
            Constant::Value(value) => Some(value),
            Constant::Map(map) => self.execution.map(map as usize),
            Constant::MapValue { map, offset } => self.execution.map_value(map as usize, offset),
            Constant::Function(row) => Some(self.execution.function(row)),
        };
        found.ok_or_else(|| self.malformed("there is no such map"))
    }

    fn signed(&self, value: u64, bits: u32) -> Result<u64, Stop> {
        match bits {
            8 => Ok(value as i8 as u64),
            16 => Ok(value as i16 as u64),
            32 => Ok(value as i32 as u64),
            _ => Err(self.malformed("sign extension from this number of bits is not valid")),
        }
    }

    /// Swaps the byte order of a value; memory is little-endian.
    fn swapped(&self, order: ByteOrder, value: u64, bits: u8) -> Result<u64, Stop> {
        let low = match bits {
            16 => value & 0xffff,
            32 => value & 0xffff_ffff,
            64 => value,
            _ => return Err(self.malformed("a byte swap of this number of bits is not valid")),
        };
        Ok(match order {
            ByteOrder::Little => low,
            ByteOrder::Big | ByteOrder::Reverse => low.swap_bytes() >> (64 - u32::from(bits)),
        })
    }

    fn address(&self, base: u8, offset: i16) -> Result<u64, Stop> {
        Ok(self.register(base)?.wrapping_add_signed(offset.into()))
    }

    fn operand(&self, operand: Operand) -> Result<u64, Stop> {
        match operand {
            Operand::Register(register) => self.register(register),
            Operand::Immediate(immediate) => Ok(i64::from(immediate) as u64),
        }
    }

    fn register(&self, register: u8) -> Result<u64, Stop> {
        let found = self.execution.registers().get(usize::from(register)).copied();
        found.ok_or_else(|| self.malformed("there is no such register"))
    }

    fn write(&mut self, register: u8, value: u64) -> Result<(), Stop> {
        let is_kept = register == FRAME_POINTER || register == PACKET;
        if is_kept || usize::from(register) >= REGISTERS {
            return Err(self.malformed(
                "it writes a register that does not exist or is reserved for the processor",
            ));
        }
        self.found.registers.push((register, value));
        Ok(())
    }

    fn size(&self, bytes: u8) -> Result<usize, Stop> {
        match bytes {
            1 | 2 | 4 | 6 | 8 => Ok(bytes.into()),
            _ => Err(self.malformed("an access of this number of bytes is not valid")),
        }
    }

    fn malformed(&self, reason: &'static str) -> Stop {
        Hazard::Malformed { lane: self.lane, reason }.into()
    }
}
