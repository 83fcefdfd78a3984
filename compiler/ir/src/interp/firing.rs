// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One firing of one instance.
//!
//! The life of a firing:
//! 1. In a replay, the host events recorded for this point are applied.
//! 2. Items staged by the previous firing enter their channels; until all have, nothing else
//!    happens.
//! 3. The mask and the ports that have an item decide whether it may begin, and what it sees.
//! 4. the handler runs to its end, to a suspension or to a trap;
//! 5. If it did something, it is counted and recorded; otherwise the instance stays quiet until a
//!    masked port or the host changes that.

use super::frame::{End, Stop};
use super::machine::{Activation, Machine};
use super::{Error, Interpreter};
use crate::oracle::InstanceCounters;
use crate::{Function, InstanceId};

/// Result of trying to advance an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Advance {
    /// Nothing moved.
    Nothing,
    /// Staged items left, or a host event was applied.
    Moved,
    /// It fired, but only read the clock.
    Looked,
    /// It fired.
    Fired,
}

impl Interpreter<'_> {
    /// Returns the ready ports with which an instance can fire now; `None` if it cannot.
    pub(super) fn can_fire(&self, id: InstanceId) -> Option<u64> {
        if self.instances[id.index()].has_staged() { None } else { self.would_fire(id) }
    }

    /// Returns the ready ports with which an instance could fire once its staged items have left.
    fn would_fire(&self, id: InstanceId) -> Option<u64> {
        let instance = &self.instances[id.index()];
        let rests = instance.counters.firings >= instance.firing_limit;
        if instance.held_at.is_some() || rests {
            return None;
        }
        let ready = self.ready_ports(id) & instance.mask;
        let wanted = self.wanted_ports(id)?;
        let is_enough = match wanted {
            Wanted::Nothing => true,
            Wanted::Any(ports) => ready & ports != 0,
            Wanted::All(ports) => ready & ports == ports,
        };
        let seen = match wanted {
            Wanted::All(ports) if self.is_replaying_choice(id) => ports,
            _ => ready,
        };
        (is_enough && instance.quiet_ready != Some(seen)).then_some(seen)
    }

    /// Returns the ports that an instance waits for; `None` if it will not fire again.
    pub(super) fn wanted_ports(&self, id: InstanceId) -> Option<Wanted> {
        let instance = &self.instances[id.index()];
        if instance.has_choice
            && let Some(recorded) = instance.choice.recorded_ready()
        {
            return recorded.map(Wanted::All);
        }
        Some(match instance.mask {
            0 => Wanted::Nothing,
            mask if instance.awaits_all => Wanted::All(mask),
            mask => Wanted::Any(mask),
        })
    }

    /// Advances an instance by at most one firing.
    pub(super) fn advance(&mut self, id: InstanceId) -> Result<Advance, Error> {
        let mut moved = self.replay_host_events(id)?;
        moved |= self.send_staged(id)?;
        let Some(ready) = self.can_fire(id) else {
            self.count_stalls(id);
            return Ok(if moved { Advance::Moved } else { Advance::Nothing });
        };
        if self.is_replaying_choice(id) {
            self.check_recorded(id, ready)?;
        }
        self.shared.clock_ns += 1;
        let has_only_looked = self.fire(id, ready)?;
        self.send_staged(id)?;
        Ok(if has_only_looked { Advance::Looked } else { Advance::Fired })
    }

    /// Moves staged items into their channels where there is room; returns whether one moved.
    pub(super) fn send_staged(&mut self, id: InstanceId) -> Result<bool, Error> {
        let instance = &mut self.instances[id.index()];
        let mut moved = false;
        for (staged, channel) in instance.staged.iter_mut().zip(&instance.outputs) {
            if let Some(token) = staged.take() {
                *staged = self.channels[channel.index()].offer(token)?;
                moved |= staged.is_none();
            }
        }
        Ok(moved)
    }

    /// Counts a stall at each channel whose staged item holds back a firing.
    fn count_stalls(&mut self, id: InstanceId) {
        if !self.instances[id.index()].has_staged() || self.would_fire(id).is_none() {
            return;
        }
        let instance = &self.instances[id.index()];
        for (staged, channel) in instance.staged.iter().zip(&instance.outputs) {
            if staged.is_some() {
                self.channels[channel.index()].count_stall();
            }
        }
    }

    /// Fires; returns whether the firing only read the clock.
    fn fire(&mut self, id: InstanceId, ready: u64) -> Result<bool, Error> {
        let handler = self.program.element_of(id).handler;
        let activation = Activation { has_ports: true, ready, ..self.shared.activation() };
        let mut frame = std::mem::take(&mut self.instances[id.index()].frame);
        let mut machine = self.machine(id, activation);
        let resume = machine.instance.resume.take();
        let start = resume.unwrap_or_else(|| {
            frame.reset(machine.program.function(handler));
            Function::ENTRY
        });
        let end = machine.run(handler, &mut frame, start);
        let mut activation = machine.activation;
        self.instances[id.index()].frame = frame;
        let mask = self.end(id, &mut activation, end)?;
        let has_only_looked = activation.has_asked_time
            && activation.taken == 0
            && !self.instances[id.index()].has_staged();
        self.settle(id, activation, mask)?;
        Ok(has_only_looked)
    }

    /// Records how the handler ended; returns the next mask.
    fn end(
        &mut self,
        id: InstanceId,
        activation: &mut Activation,
        end: Result<End, Stop>,
    ) -> Result<u64, Error> {
        let instance = &mut self.instances[id.index()];
        let all = instance.all_ports();
        let mask = match end {
            Ok(End::Done { mask }) => mask.unwrap_or(all),
            Ok(End::Return { .. }) => all,
            Ok(End::Suspend { mask, resume }) => {
                // The next firing begins elsewhere, which counts as doing something.
                activation.did_something = true;
                instance.resume = Some(resume);
                mask.unwrap_or(all)
            }
            Err(Stop::Trap(code)) => {
                activation.did_something = true;
                *activation.counters.traps.entry(code).or_default() += 1;
                all
            }
            Err(stop) => return Err(self.departure(id, stop)),
        };
        if instance.resume.is_none() {
            instance.packets.clear();
        }
        Ok(mask & all)
    }

    /// Returns the error for a departure from the record of a replay.
    pub(super) fn departure(&self, id: InstanceId, stop: Stop) -> Error {
        let reason = match stop {
            Stop::Exhausted(exhausted) => {
                format!("its record of `{}` has ended", exhausted.stream)
            }
            Stop::Departed(reason) => reason,
            Stop::Trap(code) => format!("{code:?}"),
        };
        self.replay_error(id, reason)
    }

    /// Counts and records a firing that did something.
    fn settle(&mut self, id: InstanceId, activation: Activation, mask: u64) -> Result<(), Error> {
        let instance = &mut self.instances[id.index()];
        if !activation.did_something && mask == instance.mask {
            instance.quiet_ready = Some(activation.ready);
            if self.is_replaying_choice(id) {
                let reason = "the recorded firing did nothing".to_owned();
                return Err(self.replay_error(id, reason));
            }
            return Ok(());
        }
        instance.mask = mask;
        instance.quiet_ready = None;
        instance.held_at = activation.breakpoint.filter(|_| self.breakpoints_enabled);
        if instance.has_choice {
            instance.choice.made.ready.push(activation.ready);
        }
        merge(&mut instance.counters, activation.counters);
        instance.counters.firings += 1;
        Ok(())
    }

    /// Checks that the element could have fired with a recorded ready bitmap.
    fn check_recorded(&self, id: InstanceId, ready: u64) -> Result<(), Error> {
        let instance = &self.instances[id.index()];
        let mask = instance.mask;
        let is_possible = match mask {
            _ if ready & !mask != 0 => false,
            0 => true,
            _ if instance.awaits_all => ready == mask,
            _ => ready != 0,
        };
        if is_possible {
            return Ok(());
        }
        let reason = format!("ready ports {ready:#b} cannot be with mask {mask:#b}");
        Err(self.replay_error(id, reason))
    }

    fn is_replaying_choice(&self, id: InstanceId) -> bool {
        let instance = &self.instances[id.index()];
        instance.has_choice && instance.choice.is_replay()
    }

    fn ready_ports(&self, id: InstanceId) -> u64 {
        let inputs = self.instances[id.index()].inputs.iter().enumerate();
        inputs.fold(0, |ready, (port, channel)| {
            ready | u64::from(self.channels[channel.index()].front().is_some()) << port
        })
    }

    pub(super) fn replay_error(&self, id: InstanceId, reason: String) -> Error {
        let instance = &self.instances[id.index()];
        let (instance, firing) = (instance.name.clone(), instance.counters.firings);
        Error::Replay { instance, firing, reason }
    }

    fn machine(&mut self, id: InstanceId, activation: Activation) -> Machine<'_> {
        Machine {
            program: &self.program,
            loops: &self.loops,
            id,
            instance: &mut self.instances[id.index()],
            others: &mut [],
            channels: &mut self.channels,
            shared: &mut self.shared,
            activation,
        }
    }
}

/// Ports that an instance waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wanted {
    /// No item.
    Nothing,
    /// An item at any port of this mask.
    Any(u64),
    /// An item at each port of this mask.
    All(u64),
}

pub(super) fn merge(into: &mut InstanceCounters, from: InstanceCounters) {
    into.out_of_range += from.out_of_range;
    into.empty_reads += from.empty_reads;
    for (code, count) in from.traps {
        *into.traps.entry(code).or_default() += count;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Outcome;
    use super::super::fixture::{
        Fixture, WORD, collected, done, feed, put, run_to_idle, start, take, word,
    };
    use crate::oracle::{HostAction, HostEvent};
    use crate::*;

    /// Ends with a constant mask.
    fn done_with(b: &mut Builder, width: u32, mask: u64) {
        let mask = b.number(width, mask);
        b.end(Term::Done { mask: Some(mask) });
    }

    /// Puts the ready bitmap, and takes every ready item.
    fn observer(b: &mut Builder) {
        let ready = b.push(Op::ReadyMask, Type::Bits(2));
        let ready = b.resize(ready, 64, false);
        put(b, 0, ready);
        for port in 0..2 {
            let (taking, next) = (b.new_block(), b.new_block());
            let is_ready = b.push(Op::Ready(PortId(port)), Type::Bits(1));
            b.branch(is_ready, taking, next);
            b.switch_to(taking);
            take(b, port, 64);
            b.jump(next);
            b.switch_to(next);
        }
    }

    #[test]
    fn a_firing_sees_only_masked_ports() {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD, WORD], &[WORD], |b| {
            observer(b);
            done_with(b, 2, 0b10);
        });
        let program = fixture.alone(element);
        let mut interpreter = start(&program);
        feed(&mut interpreter, "to_in0", &[1, 2, 3]);
        assert!(matches!(interpreter.run(100), Ok(Outcome::Stalled(_))));
        // The first mask selects all ports, the second only the other one.
        assert_eq!(collected(&mut interpreter), [0b01]);
        feed(&mut interpreter, "to_in1", &[4, 5]);
        assert!(matches!(interpreter.run(100), Ok(Outcome::Stalled(_))));
        assert_eq!(collected(&mut interpreter), [0b10, 0b10]);
        let ready = &interpreter.oracles().instances[0].ready;
        assert_eq!(*ready, [0b01, 0b10, 0b10]);
    }

    #[test]
    fn await_all_waits_for_every_masked_port() {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD, WORD], &[WORD], |b| {
            observer(b);
            done(b);
        });
        fixture.program.elements[0].await_all = true;
        let program = fixture.alone(element);
        let mut interpreter = start(&program);
        feed(&mut interpreter, "to_in0", &[1, 2]);
        assert!(matches!(interpreter.run(100), Ok(Outcome::Stalled(_))));
        assert_eq!(interpreter.counters(InstanceId(0)).firings, 0);
        feed(&mut interpreter, "to_in1", &[1, 2]);
        run_to_idle(&mut interpreter);
        assert_eq!(collected(&mut interpreter), [0b11, 0b11]);
        assert!(interpreter.oracles().instances[0].ready.is_empty());
    }

    #[test]
    fn a_mask_of_0_fires_until_nothing_comes_of_it() {
        let mut fixture = Fixture::default();
        // Counts down a state variable; does nothing at 0.
        let element = fixture.element(&[], &[WORD], |b| {
            let left = ObjectRef::State(ObjectId(0));
            let zero = b.number(1, 0);
            let value = b.load(left, zero, 0, 64);
            let (counting, end) = (b.new_block(), b.new_block());
            let is_left = b.unary(UnaryOp::ReduceOr, value);
            b.branch(is_left, counting, end);
            b.switch_to(counting);
            let one = b.number(64, 1);
            let less = b.binary(BinaryOp::Sub, value, one);
            b.store(left, zero, 0, less);
            put(b, 0, value);
            b.jump(end);
            b.switch_to(end);
            done(b);
        });
        let state = fixture.state(element, 64, 1);
        assert_eq!(state, ObjectRef::State(ObjectId(0)));
        fixture.program.elements[0].state[0].init = vec![word(3)];
        let program = fixture.alone(element);
        let mut interpreter = start(&program);
        run_to_idle(&mut interpreter);
        assert_eq!(collected(&mut interpreter), [3, 2, 1]);
        assert_eq!(interpreter.counters(InstanceId(0)).firings, 3);
        // The host can make it fire again.
        interpreter.write_variable(InstanceId(0), "state0", 0, word(2)).unwrap();
        run_to_idle(&mut interpreter);
        assert_eq!(collected(&mut interpreter), [2, 1]);
        let host = &interpreter.oracles().instances[0].host;
        let action = HostAction::Write { object: ObjectId(0), index: 0, value: word(2) };
        assert_eq!(*host, [HostEvent { before_firing: 3, action }]);
    }

    #[test]
    fn a_firing_that_does_nothing_is_not_counted() {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD], &[], |b| {
            b.push(Op::Peek(PortId(0)), Type::Bits(64));
            // Counted only if the firing is: the number of attempts depends on the schedule.
            let far = b.number(8, 9);
            b.load(ObjectRef::State(ObjectId(0)), far, 0, 8);
            done(b);
        });
        fixture.state(element, 8, 1);
        let program = fixture.alone(element);
        let mut interpreter = start(&program);
        feed(&mut interpreter, "to_in0", &[1]);
        let Ok(Outcome::Stalled(report)) = interpreter.run(100) else { panic!("data waits") };
        assert!(report.to_string().contains("alone does nothing with its input"), "{report}");
        assert_eq!(*interpreter.counters(InstanceId(0)), Default::default());
    }

    #[test]
    fn a_quiet_element_wakes_when_another_port_gets_an_item() {
        let mut fixture = Fixture::default();
        // Does nothing unless both ports are ready.
        let element = fixture.element(&[WORD, WORD], &[WORD], |b| {
            let (both, end) = (b.new_block(), b.new_block());
            let ready = b.push(Op::ReadyMask, Type::Bits(2));
            let are_ready = b.unary(UnaryOp::ReduceAnd, ready);
            b.branch(are_ready, both, end);
            b.switch_to(both);
            let (left, right) = (take(b, 0, 64), take(b, 1, 64));
            let sum = b.binary(BinaryOp::Add, left, right);
            put(b, 0, sum);
            b.jump(end);
            b.switch_to(end);
            done(b);
        });
        let program = fixture.alone(element);
        let mut interpreter = start(&program);
        feed(&mut interpreter, "to_in0", &[1, 2]);
        assert!(matches!(interpreter.run(100), Ok(Outcome::Stalled(_))));
        feed(&mut interpreter, "to_in1", &[10]);
        assert!(matches!(interpreter.run(100), Ok(Outcome::Stalled(_))));
        feed(&mut interpreter, "to_in1", &[20]);
        run_to_idle(&mut interpreter);
        assert_eq!(collected(&mut interpreter), [11, 22]);
        assert_eq!(interpreter.oracles().instances[0].ready, [0b11, 0b11]);
    }

    #[test]
    fn a_full_channel_holds_the_next_firing() {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD], &[WORD], |b| {
            let value = take(b, 0, 64);
            put(b, 0, value);
            done(b);
        });
        let mut program = fixture.alone(element);
        program.graph.channels[1].depth = 2;
        let mut interpreter = start(&program);
        let output = interpreter.endpoint("from_out0").unwrap();
        interpreter.stall_output(output, 100, 0).unwrap();
        feed(&mut interpreter, "to_in0", &[1, 2, 3, 4, 5]);
        let Ok(Outcome::Stalled(report)) = interpreter.run(100) else {
            panic!("the output is unread")
        };
        // Two items are in the channel, one is staged.
        assert_eq!(interpreter.counters(InstanceId(0)).firings, 3);
        let text = report.to_string();
        let name = "alone.out0 -> from_out0 (2 of 2)";
        assert!(text.contains(&format!("alone waits for room in {name}")), "{text}");
        assert!(text.contains(&format!("unread output: {name}")), "{text}");
        interpreter.stall_output(output, 50, 1).unwrap();
        run_to_idle(&mut interpreter);
        assert_eq!(collected(&mut interpreter), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_breakpoint_holds_the_next_firing_of_its_instance() {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[WORD], &[WORD], |b| {
            let value = take(b, 0, 64);
            b.push_effect(Op::Probe { probe: Probe::Breakpoint("b".into()), args: vec![] });
            put(b, 0, value);
            done(b);
        });
        let program = fixture.alone(element);
        let mut interpreter = start(&program);
        interpreter.set_breakpoints_enabled(true);
        feed(&mut interpreter, "to_in0", &[1, 2]);
        let held = Ok(Outcome::Breakpoint(InstanceId(0)));
        assert_eq!(interpreter.run(100), held);
        // The instance stays held until it is resumed, whatever else runs.
        assert_eq!(interpreter.run(100), held);
        assert_eq!(collected(&mut interpreter), [1]);
        interpreter.resume(InstanceId(0));
        assert_eq!(interpreter.run(100), held);
        interpreter.set_breakpoints_enabled(false);
        run_to_idle(&mut interpreter);
        assert_eq!(collected(&mut interpreter), [2]);
    }
}
