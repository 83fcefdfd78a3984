// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One packet's way through a program: registers, frames, and what of the machine it uses. All of
//! it is reached by addresses as the program has them ([`memory`]).
//!
//! A run does not know how programs are executed. Helpers that call functions of the program do so
//! by the run's [`Executor`], which belongs to the interpreter.

pub mod abort;
pub mod environment;
pub mod memory;
pub mod packet;
mod redirect;
mod scratch;
mod stack;

pub use abort::{Abort, Access, Reason, Window};
pub use environment::{Clock, Device, Environment, Neighbour, Route, Way};
pub use packet::{Packet, TooLong};
pub use redirect::Redirect;
pub(crate) use scratch::Scratch;
pub(crate) use stack::Stack;

use crate::abi::FRAMES_MAX;
use crate::instruction;
use crate::maps::Map;
use memory::{CONTEXT_ADDRESS, map_of_handle, stack_address};

/// Registers that there is room for: 11 are used, and any four bits are one of these.
pub const REGISTERS: usize = 16;
/// The frame pointer.
const FRAME_POINTER: usize = instruction::FRAME_POINTER as usize;
/// Tail calls that one packet may take.
const TAIL_CALLS_MAX: u32 = 33;

/// Executes programs and their functions on a run.
pub(crate) trait Executor {
    /// Number of places in a program; nothing if it cannot be run.
    fn places(&self, program: usize) -> Option<usize>;

    /// Executes from the run's program and place, until the function returns whose frame is on top;
    /// gives register 0.
    ///
    /// # Errors
    /// Why the program has to be ended.
    fn execute(&self, run: &mut Run) -> Result<u64, Reason>;
}

/// A run of a program.
pub(crate) struct Run<'m> {
    pub registers: [u64; REGISTERS],
    /// Number of programs in the object.
    programs: usize,
    executor: &'m dyn Executor,
    pub maps: &'m mut [Map],
    pub stack: &'m mut Stack,
    pub packet: &'m mut Packet,
    pub environment: &'m Environment,
    pub scratch: &'m mut Scratch,
    /// Keys of the elements that functions are called for, one in the other.
    pub keys: Vec<Vec<u8>>,
    /// Which program is running.
    pub program: usize,
    /// Its next step.
    pub at: usize,
    /// Instructions that may still be executed.
    pub remaining: u64,
    pub redirect: Option<Redirect>,
    /// Where the lock is that is held.
    pub lock: Option<u64>,
    tail_calls: u32,
}

/// Where a function returns to.
#[derive(Clone, Copy, Default)]
pub(crate) struct Frame {
    program: usize,
    at: usize,
    /// Registers 6 to 9 of the caller.
    saved: [u64; 4],
    frame_pointer: u64,
    /// A helper called it, which goes on when it returns.
    ends_execution: bool,
}

impl<'m> Run<'m> {
    /// A run that begins at a program's first step, with a frame and a context.
    pub fn new(
        executor: &'m dyn Executor,
        programs: usize,
        maps: &'m mut [Map],
        environment: &'m Environment,
        stack: &'m mut Stack,
        scratch: &'m mut Scratch,
        packet: &'m mut Packet,
    ) -> Self {
        let mut run = Self {
            registers: [0; REGISTERS],
            programs,
            executor,
            maps,
            stack,
            packet,
            environment,
            scratch,
            keys: vec![],
            program: 0,
            at: 0,
            remaining: environment.instructions_max,
            redirect: None,
            lock: None,
            tail_calls: 0,
        };
        run.stack.clear();
        run.registers[1] = CONTEXT_ADDRESS;
        run
    }

    /// Runs a program from its first step to its end.
    pub fn program(&mut self, program: usize) -> Result<u64, Reason> {
        self.program = program;
        self.enter(0, 0, true)?;
        let value = self.execute()?;
        if self.lock.is_some() {
            return Err(Reason::LockLeft);
        }
        self.abandon_records().map_or(Ok(value), |name| Err(Reason::RecordLeft(name)))
    }

    /// Number of places in a program; nothing if it cannot be run.
    pub fn places(&self, program: usize) -> Option<usize> {
        self.executor.places(program)
    }

    /// Executes until the function returns whose frame is on top, and gives register 0.
    fn execute(&mut self) -> Result<u64, Reason> {
        let executor = self.executor;
        executor.execute(self)
    }

    /// Puts a frame on top for the function at step `target`, which returns to step `back`.
    pub fn enter(&mut self, target: usize, back: usize, ends: bool) -> Result<(), Reason> {
        let depth = self.stack.depth();
        let end = self.stack.push().ok_or(Reason::TooManyFrames(FRAMES_MAX))?;
        let registers = &mut self.registers;
        self.scratch.frames[depth] = Frame {
            program: self.program,
            at: back,
            saved: [registers[6], registers[7], registers[8], registers[9]],
            frame_pointer: registers[FRAME_POINTER],
            ends_execution: ends,
        };
        registers[FRAME_POINTER] = stack_address(end);
        self.at = target;
        Ok(())
    }

    /// Takes the frame on top away; says whether the execution ends with it.
    pub fn leave(&mut self) -> bool {
        self.stack.pop();
        let frame = self.scratch.frames[self.stack.depth()];
        self.registers[6..10].copy_from_slice(&frame.saved);
        self.registers[FRAME_POINTER] = frame.frame_pointer;
        (self.program, self.at) = (frame.program, frame.at);
        frame.ends_execution
    }

    /// Calls the function at step `target` for a helper, with these arguments.
    pub fn call_back(&mut self, target: usize, arguments: [u64; 4]) -> Result<u64, Reason> {
        self.registers[1..5].copy_from_slice(&arguments);
        self.enter(target, self.at, true)?;
        self.execute()
    }

    /// Lets another program take the place of the running function; says whether it may.
    pub fn tail_call(&mut self, program: usize) -> Result<bool, Reason> {
        if program >= self.programs || self.tail_calls >= TAIL_CALLS_MAX {
            return Ok(false);
        }
        if self.places(program).is_none() {
            return Err(Reason::NotRunnable);
        }
        self.tail_calls += 1;
        let frame = self.scratch.frames[self.stack.depth() - 1];
        self.leave();
        self.program = program;
        self.enter(0, frame.at, frame.ends_execution)?;
        // The caller's program is the one to come back to.
        self.scratch.frames[self.stack.depth() - 1] = frame;
        let frame_pointer = self.registers[FRAME_POINTER];
        self.registers = [0; REGISTERS];
        self.registers[1] = CONTEXT_ADDRESS;
        self.registers[FRAME_POINTER] = frame_pointer;
        Ok(true)
    }

    /// Argument `which`, from 1 on, of the helper that is called.
    pub fn argument(&self, which: usize) -> u64 {
        self.registers[which]
    }

    /// The same as a number of 32 bits with a sign.
    pub fn argument_as_i32(&self, which: usize) -> i32 {
        self.registers[which] as i32
    }

    /// The number of the map that an argument stands for.
    pub fn map_argument(&self, which: usize, helper: &'static str) -> Result<usize, Reason> {
        let value = self.argument(which);
        let map = map_of_handle(value).filter(|&map| map < self.maps.len());
        map.ok_or(Reason::NotAMap { helper, value })
    }

    /// Checks that an argument is the context.
    pub fn context_argument(&self, which: usize, helper: &'static str) -> Result<(), Reason> {
        match self.argument(which) {
            CONTEXT_ADDRESS => Ok(()),
            value => Err(Reason::NotTheContext { helper, value }),
        }
    }

    /// Discards records of ring buffers that are still reserved; the name of a map with such.
    pub fn abandon_records(&mut self) -> Option<String> {
        if self.scratch.records_reserved == 0 {
            return None;
        }
        self.scratch.records_reserved = 0;
        let mut left = None;
        for map in self.maps.iter_mut() {
            if map.abandon_records() {
                left = Some(map.definition().name.clone());
            }
        }
        left
    }
}
