// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Observation of a running program: before each instruction an observer sees registers, memory,
//! and the meaning of the addresses in use.

use super::compiled::Compiled;
use crate::maps::content::Content;
use crate::run::memory::{
    CONTEXT_ADDRESS, function_of_handle, key_address, map_handle, packet_address, stack_address,
    value_address, value_place,
};
use crate::run::{Run, Stack};

/// Observer that is called before each instruction.
pub trait Observer {
    /// Called before the instruction at `point`.
    fn before(&mut self, point: &Point<'_, '_>);
}

/// State of a program before an instruction.
pub struct Point<'r, 'm> {
    run: &'r Run<'m>,
    programs: &'r [Compiled],
    step: usize,
}

impl<'r, 'm> Point<'r, 'm> {
    /// Creates the point before a step of the running program.
    pub(super) fn new(run: &'r Run<'m>, programs: &'r [Compiled], step: usize) -> Self {
        Self { run, programs, step }
    }

    /// Returns the number of the running program in the object.
    pub fn program(&self) -> usize {
        self.run.program
    }

    /// Returns the slot of the next instruction.
    pub fn slot(&self) -> usize {
        let slots = &self.programs[self.run.program].slots;
        slots.get(self.step).map_or(usize::MAX, |slot| *slot as usize)
    }

    /// Returns the registers.
    pub fn registers(&self) -> &[u64; 11] {
        self.run.registers.first_chunk().expect("there is room for sixteen")
    }

    /// Returns the number of active functions, including those of programs that a tail call from
    /// within a function replaced.
    pub fn depth(&self) -> usize {
        self.run.stack.depth()
    }

    /// Returns the frame pointer of an active function, counted from 0.
    pub fn frame_pointer(&self, depth: usize) -> u64 {
        stack_address(Stack::frame_pointer(depth))
    }

    /// Returns the address of the context.
    pub fn context(&self) -> u64 {
        CONTEXT_ADDRESS
    }

    /// Returns the addresses of the metadata, of the packet, and of the packet's end.
    pub fn packet(&self) -> [u64; 3] {
        self.run.packet.places().map(packet_address)
    }

    /// Returns the number of maps.
    pub fn maps(&self) -> usize {
        self.run.maps.len()
    }

    /// Returns the handle of a map.
    pub fn map(&self, map: usize) -> u64 {
        map_handle(map)
    }

    /// Returns the map whose window of values contains an address.
    pub fn map_of_value(&self, address: u64) -> Option<usize> {
        Some(value_place(address)?.0).filter(|map| *map < self.run.maps.len())
    }

    /// Returns the address of a map's first value, and the distance between two values.
    pub fn values(&self, map: usize) -> Option<(u64, u64)> {
        Some((value_address(map, 0), self.run.maps.get(map)?.value_spacing()))
    }

    /// Returns address and length of each ring-buffer record that is currently reserved.
    pub fn records(&self, map: usize) -> Vec<(u64, u64)> {
        match self.run.maps.get(map).map(|found| found.content()) {
            Some(Content::Ring(ring)) => {
                let records = ring.reserved_records();
                records.map(|(start, length)| (value_address(map, start), length)).collect()
            }
            _ => vec![],
        }
    }

    /// Returns the addresses of the keys that were passed to active functions.
    pub fn keys(&self) -> impl Iterator<Item = u64> {
        (0..self.run.keys.len()).map(key_address)
    }

    /// Returns the slot of the function that a handle refers to.
    pub fn function(&self, value: u64) -> Option<usize> {
        let step = function_of_handle(value)?;
        Some(*self.programs[self.run.program].slots.get(step)? as usize)
    }

    /// Returns bytes of memory, if the program may read them.
    pub fn read(&self, address: u64, size: usize) -> Option<&[u8]> {
        self.run.read(address, size).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::assemble;
    use crate::interpreter::{Environment, Machine, Packet};
    use crate::object::{Object, Program};

    /// Observations: slot, call depth, and offset of register 1 from its frame pointer.
    #[derive(Default)]
    struct Seen(Vec<(usize, usize, i64)>);

    impl Observer for Seen {
        fn before(&mut self, point: &Point<'_, '_>) {
            let depth = point.depth();
            let own = point.frame_pointer(depth - 1);
            assert_eq!(point.registers()[10], own);
            let behind = point.registers()[1].wrapping_sub(own) as i64;
            self.0.push((point.slot(), depth, behind));
            let [_, start, end] = point.packet();
            assert_eq!(point.read(start, (end - start) as usize), Some(&[7; 20][..]));
            assert_eq!(point.read(end, 1), None);
        }
    }

    #[test]
    fn each_instruction_is_seen_before_it_is_executed() {
        let text = "r1 = 0x5 ll\nr1 = r10\nr1 += -8\ncall pc + 0x1\nexit\nr1 += 4\nexit";
        let instructions = assemble(text).expect("the text is right");
        let program = Program { instructions, ..Program::default() };
        let object = Object { programs: vec![program], ..Object::default() };
        let mut machine = Machine::load(&object, Environment::default()).expect("it can run");
        let mut packet = Packet::new(&[7; 20]).expect("a short one");
        let mut seen = Seen::default();
        let observed = machine.run_observed(0, &mut packet, &mut seen);
        assert_eq!(observed, machine.run(0, &mut packet));
        assert_eq!(observed.instructions, 7);
        let places: Vec<_> = seen.0.iter().map(|&(slot, depth, _)| (slot, depth)).collect();
        assert_eq!(places, [(0, 1), (2, 1), (3, 1), (4, 1), (6, 2), (7, 2), (5, 1)]);
        let inside: Vec<_> = seen.0[3..].iter().map(|&(.., behind)| behind).collect();
        assert_eq!(inside, [-8, -8 - 1_024, -4 - 1_024, -4]);
    }
}
