// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The run of a program on a packet: registers, frames, and the machine's state that it uses.
//! Programs reach all of it by addresses ([`memory`]).
//!
//! A run does not depend on how programs are executed. Helpers that call program functions do so
//! through the run's [`Executor`], which belongs to the interpreter.

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

/// Size of the register array: 11 are used, and any four-bit number is a valid index.
pub const REGISTERS: usize = 16;
/// Index of the frame pointer.
const FRAME_POINTER: usize = instruction::FRAME_POINTER as usize;
/// Maximum number of tail calls for a packet.
const TAIL_CALLS_MAX: u32 = 33;

/// Executes programs and their functions on a run.
pub(crate) trait Executor {
    /// Returns the number of places in a program, or `None` if it cannot be run.
    fn places(&self, program: usize) -> Option<usize>;

    /// Executes from the run's program and place, until the function of the top frame returns.
    /// Returns register 0.
    ///
    /// # Errors
    /// The reason for which the program must be aborted.
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
    /// Keys of the elements for which functions are being called, outermost first.
    pub keys: Vec<Vec<u8>>,
    /// Number of the running program.
    pub program: usize,
    /// Its next step.
    pub at: usize,
    /// Number of instructions that may still be executed.
    pub remaining: u64,
    pub redirect: Option<Redirect>,
    /// Address of the lock that is held.
    pub lock: Option<u64>,
    tail_calls: u32,
}

/// Return address and saved registers of a function.
#[derive(Clone, Copy, Default)]
pub(crate) struct Frame {
    program: usize,
    at: usize,
    /// Registers 6 to 9 of the caller.
    saved: [u64; 4],
    frame_pointer: u64,
    /// Whether a helper called the function and continues when it returns.
    ends_execution: bool,
}

impl<'m> Run<'m> {
    /// Creates a run at the first step of a program, with a frame and a context.
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

    /// Returns the number of places in a program, or `None` if it cannot be run.
    pub fn places(&self, program: usize) -> Option<usize> {
        self.executor.places(program)
    }

    /// Executes until the function of the top frame returns. Returns register 0.
    fn execute(&mut self) -> Result<u64, Reason> {
        let executor = self.executor;
        executor.execute(self)
    }

    /// Pushes a frame for the function at step `target`, which returns to step `back`.
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

    /// Pops the top frame; returns whether the execution ends with it.
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

    /// Replaces the running function by another program; returns whether that is permitted.
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
        // The return goes to the caller's program.
        self.scratch.frames[self.stack.depth() - 1] = frame;
        let frame_pointer = self.registers[FRAME_POINTER];
        self.registers = [0; REGISTERS];
        self.registers[1] = CONTEXT_ADDRESS;
        self.registers[FRAME_POINTER] = frame_pointer;
        Ok(true)
    }

    /// Returns argument `which`, from 1 on, of the current helper call.
    pub fn argument(&self, which: usize) -> u64 {
        self.registers[which]
    }

    /// As [`argument`](Self::argument), as a signed 32-bit number.
    pub fn argument_as_i32(&self, which: usize) -> i32 {
        self.registers[which] as i32
    }

    /// Returns the number of the map that an argument refers to.
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

    /// Discards ring-buffer records that are still reserved; returns the name of a map with such
    /// records.
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
