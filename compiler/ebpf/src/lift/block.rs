// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lifts one instruction after the other.

use super::flow::Frame;
use super::held::{Held, State};
use super::{Lifter, MapPlace, NotLiftable};
use crate::instruction::{Constant, Operation};

impl Lifter<'_> {
    /// Lifts an instruction that neither jumps nor exits.
    pub fn instruction(
        &mut self,
        frame: &Frame,
        operation: Operation,
        state: &mut State,
    ) -> Result<(), NotLiftable> {
        match operation {
            Operation::Alu { width, operation, destination, source } => {
                let result = self.alu(width, operation, destination, source, state)?;
                state.set(destination, result);
            }
            Operation::Negate { width, destination } => {
                let value = self.number(state.get(destination))?;
                state.set(destination, self.negated(width, value));
            }
            Operation::MoveSigned { width, destination, source, bits } => {
                let value = self.number(state.get(source))?;
                state.set(destination, self.sign_extended(width, value, bits.into()));
            }
            Operation::Swap { order, destination, bits } => {
                let value = self.number(state.get(destination))?;
                state.set(destination, self.swapped(order, value, bits.into()));
            }
            Operation::LoadConstant { destination, constant } => {
                let held = self.constant(constant)?;
                state.set(destination, held);
            }
            Operation::Load { size, is_signed, destination, base, offset } => {
                let place = (base, i64::from(offset));
                let held = self.load(frame, size, is_signed, destination, place, state)?;
                state.set(destination, held);
            }
            Operation::Store { size, base, offset, source } => {
                self.store(frame, size, (base, offset.into()), source, state)?;
            }
            Operation::Atomic { width, operation, is_fetching, base, offset, source } => {
                let place = (base, i64::from(offset));
                self.atomic(frame, width, operation, is_fetching, place, source, state)?;
            }
            Operation::Call(callee) => self.call(frame, callee, state)?,
            Operation::LoadPacket { .. } => {
                return self.refuse("it is a packet access of socket filters");
            }
            Operation::Jump { .. } | Operation::Goto { .. } | Operation::Exit => {}
        }
        Ok(())
    }

    fn constant(&mut self, constant: Constant) -> Result<Held, NotLiftable> {
        Ok(match constant {
            Constant::Value(value) => Held::Number(self.word(value)),
            Constant::Map(map) => Held::Map(map),
            Constant::MapValue { map, offset } => match self.maps[map as usize] {
                Some(MapPlace::Data(_)) => Held::Data(map, self.word(offset.into())),
                _ => return self.refuse("it is an address in a map that is not a data section"),
            },
            Constant::Function(distance) => {
                let slot = self.slot as i64 + 1 + i64::from(distance);
                Held::Function(usize::try_from(slot).unwrap_or_default())
            }
            Constant::Variable(_) => return self.refuse("it is a kernel variable"),
        })
    }
}
