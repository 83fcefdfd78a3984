// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `bpf_loop`: repeated calls of a program function.

use super::flow::Frame;
use super::held::{Held, Shape, State};
use super::{Lifter, NotLiftable};
use crate::instruction::Condition;
use crate::maps::ErrorNumber;
use freeport_ir::{LoopInfo, Target, Term, Type, Unroll, ValueId};

/// The kernel's maximum number of calls.
const TIMES_MAX: u64 = 1 << 23;

impl Lifter<'_> {
    /// Calls the function in register 2 with 0, 1 and so on, as many times as register 1 says, or
    /// until it returns a value other than 0. Returns the number of calls.
    pub fn repeat(&mut self, frame: &Frame, state: &State) -> Result<ValueId, NotLiftable> {
        let Held::Function(called) = state.get(2) else {
            return self.refuse("the function that it calls is not known");
        };
        if self.always(4) != Some(0) {
            return self.refuse("its flags are not 0");
        }
        let Some(function) = self.analysis.graph().function_at(called) else {
            return self.refuse("its argument is not a function");
        };
        let at = self.slot;
        let times = self.number(state.get(1))?;
        let times = self.low_half(times);
        let [header, body, again, ends] = [(); 4].map(|()| self.builder.new_block());
        let turn = self.builder.add_param(header, Type::Bits(64), None);
        let result = self.builder.add_param(ends, Type::Bits(64), None);
        let (bound, unroll) = (TIMES_MAX, Unroll::Auto);
        let info = LoopInfo { bound, unroll, independent: false, is_watched: false };
        self.builder.set_loop(header, info);

        let (most, zero) = (self.word(TIMES_MAX), self.word(0));
        let is_allowed = self.at_most(times, most);
        let too_many = self.error(ErrorNumber::E2BIG);
        self.builder.end(Term::Branch {
            cond: is_allowed,
            if_true: Target { block: header, args: vec![zero] },
            if_false: Target { block: ends, args: vec![too_many] },
        });
        self.builder.switch_to(header);
        let continues = self.compared(Condition::Less, turn, times);
        self.builder.end(Term::Branch {
            cond: continues,
            if_true: Target::to(body),
            if_false: Target { block: ends, args: vec![turn] },
        });
        self.builder.switch_to(body);
        let given = self.builder.add_param(again, Type::Bits(64), None);
        let mut inside = State::new();
        inside.spilled = state.spilled.clone();
        inside.set(1, Held::Number(turn));
        inside.set(2, state.get(3));
        let mut frames = frame.ends.clone();
        frames.push(frame.end() + self.frame_bytes(function));
        self.function(function, frames, Some((again, Some(Shape::Number))), &inside)?;
        self.go_to(at);
        self.builder.switch_to(again);
        let (one, zero) = (self.word(1), self.word(0));
        let next = self.add(turn, one);
        let is_over = self.compared(Condition::NotEqual, given, zero);
        self.builder.end(Term::Branch {
            cond: is_over,
            if_true: Target { block: ends, args: vec![next] },
            if_false: Target { block: header, args: vec![next] },
        });
        self.builder.switch_to(ends);
        Ok(result)
    }
}
