// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Alternatives to the interpreter's own execution: an [`Engine`] has its own form of each program
//! of an object, and uses memory, maps, helpers, frames and tail calls of the
//! [`Machine`](super::Machine) on which it executes them.
//!
//! A place in a program is a number that the engine defines; the first one is 0. References to
//! functions and return addresses are places.

use super::arithmetic::Word;
use super::atomic;
use crate::helper_functions;
use crate::instruction::{AtomicOperation, Width};
use crate::run::memory::{
    self, function_handle, map_handle, map_of_handle, packet_address, value_address, window_end,
};
use crate::run::{Access, Executor, REGISTERS, Reason, Run};

/// Executes programs.
pub trait Engine {
    /// Returns the number of places of a program, by its number in the object, or `None` if it
    /// cannot be run.
    fn places(&self, program: usize) -> Option<usize>;

    /// Executes the program from the current place until [`Execution::leave`] reports its end;
    /// returns register 0. Helpers that call functions re-enter this method from
    /// [`Execution::call_helper`].
    ///
    /// # Errors
    /// The reason for which the program must be aborted.
    fn execute(&self, execution: &mut Execution<'_, '_>) -> Result<u64, Reason>;

    /// Returns the slot of the instruction that was executed last, at this place.
    fn slot(&self, program: usize, place: usize) -> usize;
}

/// A program during its execution, as an engine sees it.
pub struct Execution<'r, 'm> {
    run: &'r mut Run<'m>,
}

/// The effect of an atomic operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Change {
    /// Previous contents of memory.
    pub old: u64,
    /// Contents to be stored.
    pub new: u64,
}

impl Execution<'_, '_> {
    /// Returns the number of the running program.
    pub fn program(&self) -> usize {
        self.run.program
    }

    /// Returns the next place.
    pub fn place(&self) -> usize {
        self.run.at
    }

    /// Sets the next place. If the program is aborted, the place before it is reported.
    pub fn set_place(&mut self, place: usize) {
        self.run.at = place;
    }

    /// Returns the registers.
    pub fn registers(&self) -> &[u64; REGISTERS] {
        &self.run.registers
    }

    /// Returns the registers, mutable.
    pub fn registers_mut(&mut self) -> &mut [u64; REGISTERS] {
        &mut self.run.registers
    }

    /// Decrements the number of remaining instructions.
    ///
    /// # Errors
    /// No instructions remain.
    pub fn spend(&mut self) -> Result<(), Reason> {
        let most = self.run.environment.instructions_max;
        let left = self.run.remaining.checked_sub(1).ok_or(Reason::TooManyInstructions(most))?;
        self.run.remaining = left;
        Ok(())
    }

    /// Loads 1, 2, 4, 6 or 8 bytes in the machine's byte order. A field of the context is loaded as
    /// a whole, for any size.
    ///
    /// # Errors
    /// The bytes are not all in readable memory, or the size is not one of these.
    pub fn load(&self, address: u64, size: usize) -> Result<u64, Reason> {
        match size {
            1 => self.run.load::<1>(address),
            2 => self.run.load::<2>(address),
            4 => self.run.load::<4>(address),
            6 => self.run.load::<6>(address),
            8 => self.run.load::<8>(address),
            _ => Err(self.run.miss(Access::Read, address, size)),
        }
    }

    /// Stores the low 1, 2, 4, 6 or 8 bytes of a value.
    ///
    /// # Errors
    /// The bytes are not all in writable memory, or the size is not one of these.
    pub fn store(&mut self, address: u64, size: usize, value: u64) -> Result<(), Reason> {
        match size {
            1 => self.run.store::<1>(address, value),
            2 => self.run.store::<2>(address, value),
            4 => self.run.store::<4>(address, value),
            6 => self.run.store::<6>(address, value),
            8 => self.run.store::<8>(address, value),
            _ => Err(self.run.miss(Access::Write, address, size)),
        }
    }

    /// Computes an atomic operation on memory, without storing the result. Compare-and-exchange
    /// compares with `expected`.
    ///
    /// # Errors
    /// The memory is not readable for the program.
    pub fn atomic(
        &self,
        address: u64,
        width: Width,
        operation: AtomicOperation,
        operand: u64,
        expected: u64,
    ) -> Result<Change, Reason> {
        fn change<W: Word>(operation: AtomicOperation, [old, operand, expected]: [u64; 3]) -> u64 {
            atomic::changed(operation, W::of(old), W::of(operand), W::of(expected)).register()
        }
        let (old, change): (_, fn(_, _) -> _) = match width {
            Width::Bits32 => (self.run.load_plain::<4>(address)?, change::<u32>),
            Width::Bits64 => (self.run.load_plain::<8>(address)?, change::<u64>),
        };
        Ok(Change { old, new: change(operation, [old, operand, expected]) })
    }

    /// Returns bytes of memory, if the program may read them.
    pub fn memory(&self, address: u64, size: usize) -> Option<&[u8]> {
        self.run.read(address, size).ok()
    }

    /// Returns the addresses of the metadata, of the packet, and of the packet's end.
    pub fn packet(&self) -> [u64; 3] {
        self.run.packet.places().map(packet_address)
    }

    /// Returns the address of the context.
    pub fn context(&self) -> u64 {
        memory::CONTEXT_ADDRESS
    }

    /// Returns the handle of a map, if there is one with this number.
    pub fn map(&self, map: usize) -> Option<u64> {
        (map < self.run.maps.len()).then(|| map_handle(map))
    }

    /// Returns the sizes of key and value of a map, by its handle.
    pub fn sizes(&self, map: u64) -> Option<(usize, usize)> {
        let definition = self.run.maps.get(map_of_handle(map)?)?.definition();
        Some((definition.key_size as usize, definition.value_size as usize))
    }

    /// Returns the address range of a map's values, by its handle.
    pub fn values(&self, map: u64) -> Option<std::ops::Range<u64>> {
        let map = map_of_handle(map).filter(|&map| map < self.run.maps.len())?;
        Some(value_address(map, 0)..value_address(map + 1, 0))
    }

    /// Returns the first higher address that certainly belongs to other memory.
    pub fn window_end(&self, address: u64) -> u64 {
        window_end(address)
    }

    /// Returns the address of a byte in the first value of a map, if there is one with this number.
    pub fn map_value(&self, map: usize, offset: u32) -> Option<u64> {
        (map < self.run.maps.len()).then(|| value_address(map, offset.into()))
    }

    /// Returns the handle of the function at a place.
    pub fn function(&self, place: usize) -> u64 {
        function_handle(place)
    }

    /// Calls a helper with the arguments in registers 1 to 5. Returns register 0, which is not
    /// written yet, or `None` after a tail call: program, place and registers are then those of the
    /// new program.
    ///
    /// # Errors
    /// The reason for which the program must be aborted.
    pub fn call_helper(&mut self, helper: u32) -> Result<Option<u64>, Reason> {
        helper_functions::call(self.run, helper)
    }

    /// Enters a function of the program that returns to the place `back`. Saves registers 6 to 10.
    ///
    /// # Errors
    /// Too many functions are active.
    pub fn enter(&mut self, place: usize, back: usize) -> Result<(), Reason> {
        self.run.enter(place, back, false)
    }

    /// Leaves the current function: restores program, place and registers 6 to 10 of its caller.
    /// Returns whether this execution ends with it.
    pub fn leave(&mut self) -> bool {
        self.run.leave()
    }
}

/// Executes the programs of a run by an engine.
pub(super) struct ByEngine<'e>(pub &'e dyn Engine);

impl Executor for ByEngine<'_> {
    fn places(&self, program: usize) -> Option<usize> {
        self.0.places(program)
    }

    fn execute(&self, run: &mut Run) -> Result<u64, Reason> {
        self.0.execute(&mut Execution { run })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpreter::{Environment, Machine, Outcome, Packet};
    use crate::object::{Object, Program};

    const LOOP: u32 = 181;

    /// A program of three places: the first calls the function at the last one repeatedly, and the
    /// second exits.
    struct Adding {
        function: usize,
    }

    impl Adding {
        fn step(&self, execution: &mut Execution<'_, '_>) -> Result<Option<u64>, Reason> {
            execution.spend()?;
            let place = execution.place();
            execution.set_place(place + 1);
            let sum = execution.registers()[10] - 8;
            match place {
                0 => {
                    let function = execution.function(self.function);
                    execution.registers_mut()[1..5].copy_from_slice(&[4, function, sum, 0]);
                    execution.registers_mut()[6] = 1_000;
                    let times = execution.call_helper(LOOP)?.expect("it is no tail call");
                    execution.registers_mut()[0] = 100 * times;
                    return Ok(None);
                }
                1 => execution.registers_mut()[0] += execution.load(sum, 6)?,
                _ => {
                    let [_, number, sum, ..] = *execution.registers();
                    let so_far = execution.load(sum, 6)?;
                    execution.store(sum, 6, so_far + number)?;
                    execution.registers_mut()[0] = 0;
                    execution.registers_mut()[6] = 9;
                }
            }
            let (value, kept) = (execution.registers()[0], execution.registers()[6]);
            assert_eq!(kept, if place == 1 { 1_000 } else { 9 });
            Ok(execution.leave().then_some(value))
        }
    }

    impl Engine for Adding {
        fn places(&self, program: usize) -> Option<usize> {
            (program == 0).then_some(3)
        }

        fn execute(&self, execution: &mut Execution<'_, '_>) -> Result<u64, Reason> {
            loop {
                if let Some(value) = self.step(execution)? {
                    return Ok(value);
                }
            }
        }

        fn slot(&self, _: usize, place: usize) -> usize {
            10 * place
        }
    }

    /// Runs a program of the engine; that of the object has no instructions.
    fn ran(function: usize, program: usize, instructions_max: u64) -> Outcome {
        let programs = vec![Program::default(); 2];
        let object = Object { programs, ..Object::default() };
        let environment = Environment { instructions_max, ..Environment::default() };
        let mut machine = Machine::load(&object, environment).expect("there is nothing in it");
        let mut packet = Packet::new(&[0; 20]).expect("a short one");
        machine.run_on(&Adding { function }, program, &mut packet)
    }

    #[test]
    fn functions_of_helpers_are_executed_by_the_engine() {
        let outcome = ran(2, 0, 6);
        assert_eq!((outcome.value, outcome.instructions), (4 * 100 + 1 + 2 + 3, 6));
        assert_eq!(outcome.aborted, None);
    }

    #[test]
    fn the_engine_says_what_can_be_run_and_where_it_ended() {
        let reason = |outcome: Outcome| outcome.aborted.expect("it cannot go on");
        let abort = reason(ran(3, 0, 6));
        assert!(matches!(abort.reason, Reason::NotAFunction { .. }), "{abort}");
        assert_eq!(abort.slot, 0);
        assert_eq!(reason(ran(2, 1, 6)).reason, Reason::NotRunnable);
        let abort = reason(ran(2, 0, 5));
        assert_eq!((abort.reason, abort.slot), (Reason::TooManyInstructions(5), 0));
    }

    #[test]
    fn accesses_have_as_many_bytes_as_there_are_instructions_for() {
        struct Odd;
        impl Engine for Odd {
            fn places(&self, _: usize) -> Option<usize> {
                Some(1)
            }

            fn execute(&self, execution: &mut Execution<'_, '_>) -> Result<u64, Reason> {
                let frame = execution.registers()[10];
                for bytes in [1, 2, 4, 6, 8] {
                    execution.store(frame - 8, 8, 0)?;
                    execution.store(frame - 8, bytes, u64::MAX)?;
                    let stored = execution.load(frame - 8, 8)?;
                    assert_eq!(stored, u64::MAX >> (64 - 8 * bytes));
                    assert_eq!(execution.load(frame - 8, bytes), Ok(stored));
                }
                for bytes in [0, 3, 5, 7, 9, 16] {
                    assert!(execution.load(frame - 16, bytes).is_err(), "{bytes}");
                    assert!(execution.store(frame - 16, bytes, 0).is_err(), "{bytes}");
                }
                Ok(7)
            }

            fn slot(&self, _: usize, _: usize) -> usize {
                0
            }
        }
        let object = Object { programs: vec![Program::default()], ..Object::default() };
        let mut machine =
            Machine::load(&object, Environment::default()).expect("there is nothing in it");
        let mut packet = Packet::new(&[0; 20]).expect("a short one");
        assert_eq!(machine.run_on(&Odd, 0, &mut packet).value, 7);
    }
}
