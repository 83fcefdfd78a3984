// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The loop that executes steps.

use super::arithmetic::Word;
use super::compiled::Compiled;
use super::observe::{Observer, Point};
use super::step::{Code, with_operations};
use crate::helper_functions;
use crate::run::{Executor, REGISTERS, Reason, Run};
use std::cell::RefCell;

/// The body of [`BySteps::each_step`]: the table of [`with_operations`] generates the arms of its
/// operations.
macro_rules! execute {
    ($run:ident, $executor:ident,
     arithmetic: $(($operation:ident, $function:ident, $r64:ident, $c64:ident, $r32:ident,
        $c32:ident))*
     jumps: $(($condition:ident, $test:ident, $jr64:ident, $jc64:ident, $jr32:ident,
        $jc32:ident))*) => {{
        let mut steps = $executor.programs[$run.program].steps.as_slice();
        let mut at = $run.at;
        let mut remaining = $run.remaining;
        // Wraps a step that can fail: the place is stored first, for the report of an abort.
        macro_rules! tried {
            ($result:expr) => {{
                match $result {
                    Ok(value) => value,
                    Err(reason) => {
                        ($run.at, $run.remaining) = (at, remaining);
                        return Err(reason);
                    }
                }
            }};
        }
        loop {
            let Some(step) = steps.get(at) else { return Err(Reason::PastTheEnd) };
            at += 1;
            if remaining == 0 {
                tried!(Err(Reason::TooManyInstructions($run.environment.instructions_max)));
            }
            remaining -= 1;
            if OBSERVED {
                $executor.observe($run, at - 1);
            }
            let destination = usize::from(step.destination) % REGISTERS;
            let source = usize::from(step.source) % REGISTERS;
            // Register and address operands, which not every step has.
            macro_rules! from { () => { $run.registers[source] } }
            macro_rules! to { () => { $run.registers[destination] } }
            macro_rules! arithmetic {
                ($word:ty, $name:ident, $other:expr) => {{
                    let other = <$word>::of($other);
                    to!() = <$word>::of(to!()).$name(other).register();
                }};
            }
            macro_rules! jump {
                ($word:ty, $name:ident, $other:expr) => {{
                    if <$word>::of(to!()).$name(<$word>::of($other)) {
                        at = step.offset as usize;
                    }
                }};
            }
            macro_rules! load {
                ($size:literal, $number:ty) => {{
                    let address = from!().wrapping_add_signed(step.offset.into());
                    let value = tried!($run.load::<$size>(address));
                    // A context field is loaded as a whole, for any access size.
                    to!() = value as $number as u64;
                }};
            }
            macro_rules! store {
                ($size:literal, $value:expr) => {{
                    let address = to!().wrapping_add_signed(step.offset.into());
                    tried!($run.store::<$size>(address, $value));
                }};
            }
            match step.code {
                $(
                    Code::$r64 => arithmetic!(u64, $function, from!()),
                    Code::$c64 => arithmetic!(u64, $function, step.constant),
                    Code::$r32 => arithmetic!(u32, $function, from!()),
                    Code::$c32 => arithmetic!(u32, $function, step.constant),
                )*
                $(
                    Code::$jr64 => jump!(u64, $test, from!()),
                    Code::$jc64 => jump!(u64, $test, step.constant),
                    Code::$jr32 => jump!(u32, $test, from!()),
                    Code::$jc32 => jump!(u32, $test, step.constant),
                )*
                Code::Negate64 => to!() = to!().wrapping_neg(),
                Code::Negate32 => to!() = (to!() as u32).wrapping_neg().into(),
                Code::SignExtend8To64 => to!() = from!() as i8 as u64,
                Code::SignExtend16To64 => to!() = from!() as i16 as u64,
                Code::SignExtend32To64 => to!() = from!() as i32 as u64,
                Code::SignExtend8To32 => to!() = (from!() as i8 as u32).into(),
                Code::SignExtend16To32 => to!() = (from!() as i16 as u32).into(),
                Code::Swap16 => to!() = (to!() as u16).swap_bytes().into(),
                Code::Swap32 => to!() = (to!() as u32).swap_bytes().into(),
                Code::Swap64 => to!() = to!().swap_bytes(),
                Code::Truncate16 => to!() = (to!() as u16).into(),
                Code::Truncate32 => to!() = (to!() as u32).into(),
                Code::Constant => to!() = step.constant,
                Code::Load8 => load!(1, u64),
                Code::Load16 => load!(2, u64),
                Code::Load32 => load!(4, u64),
                Code::Load64 => load!(8, u64),
                Code::LoadSigned8 => load!(1, i8),
                Code::LoadSigned16 => load!(2, i16),
                Code::LoadSigned32 => load!(4, i32),
                Code::Store8 => store!(1, from!()),
                Code::Store16 => store!(2, from!()),
                Code::Store32 => store!(4, from!()),
                Code::Store64 => store!(8, from!()),
                Code::StoreConstant8 => store!(1, step.constant),
                Code::StoreConstant16 => store!(2, step.constant),
                Code::StoreConstant32 => store!(4, step.constant),
                Code::StoreConstant64 => store!(8, step.constant),
                Code::Atomic32 => tried!($run.atomic::<u32, 4>(step)),
                Code::Atomic64 => tried!($run.atomic::<u64, 8>(step)),
                Code::Nothing => {}
                Code::Goto => at = step.offset as usize,
                Code::CallHelper => {
                    ($run.at, $run.remaining) = (at, remaining);
                    // A failure in a function that a helper calls has already stored its own place.
                    match helper_functions::call($run, step.constant as u32)? {
                        Some(value) => $run.registers[0] = value,
                        // Another program has replaced this one.
                        None => {
                            steps = $executor.programs[$run.program].steps.as_slice();
                            at = $run.at;
                        }
                    }
                    remaining = $run.remaining;
                }
                Code::CallFunction => {
                    tried!($run.enter(step.offset as usize, at, false));
                    at = $run.at;
                }
                Code::Exit => {
                    $run.remaining = remaining;
                    if $run.leave() {
                        return Ok($run.registers[0]);
                    }
                    steps = $executor.programs[$run.program].steps.as_slice();
                    at = $run.at;
                }
                Code::End => tried!(Err(Reason::PastTheEnd)),
            }
        }
    }};
}

/// Executes programs in their dense form.
pub(super) struct BySteps<'e> {
    programs: &'e [Compiled],
    /// Observer that is called before each step.
    observer: Option<RefCell<&'e mut dyn Observer>>,
}

impl<'e> BySteps<'e> {
    /// Creates an executor for these programs.
    pub fn new(programs: &'e [Compiled], observer: Option<&'e mut dyn Observer>) -> Self {
        Self { programs, observer: observer.map(RefCell::new) }
    }

    /// Runs the loop. There are two versions: the one without an observer does not pay for it. They
    /// are separate functions, so that neither constrains the register allocation of the other.
    #[inline(never)]
    fn each_step<const OBSERVED: bool>(&self, run: &mut Run) -> Result<u64, Reason> {
        let executor = self;
        with_operations!(execute, run, executor,)
    }

    /// Calls the observer, if there is one, before the next step.
    #[cold]
    #[inline(never)]
    fn observe(&self, run: &Run, step: usize) {
        if let Some(observer) = &self.observer {
            observer.borrow_mut().before(&Point::new(run, self.programs, step));
        }
    }
}

impl Executor for BySteps<'_> {
    fn places(&self, program: usize) -> Option<usize> {
        let found = self.programs.get(program)?;
        found.is_runnable.then_some(found.steps.len())
    }

    fn execute(&self, run: &mut Run) -> Result<u64, Reason> {
        match self.observer {
            None => self.each_step::<false>(run),
            Some(_) => self.each_step::<true>(run),
        }
    }
}
