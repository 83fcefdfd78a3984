// SPDX-License-Identifier: Apache-2.0 OR MIT
//! One firing of one instance, and what the host does between firings.
//!
//! The life of a firing:
//! 1. host events that a replay has for this point happen;
//! 2. items staged by the firing before leave into their channels; until all have, nothing else;
//! 3. the mask and the ports that have an item decide whether it may begin, and which ports it sees;
//! 4. the handler runs to its end, to a suspension or to a trap;
//! 5. if it did something it is counted and recorded, else the instance is quiet until a masked port
//!    or the host changes that.

use super::frame::{Datum, End, Stop};
use super::machine::{Activation, Machine};
use super::{Error, Interpreter};
use crate::oracle::{HostAction, HostEvent, InstanceCounters};
use crate::{Bits, Function, FunctionId, InstanceId, Type};

/// What came of trying to fire an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fired {
    /// Nothing moved.
    Nothing,
    /// Staged items left, or the host did something.
    Moved,
    /// It fired.
    Fired,
}

impl Interpreter<'_> {
    /// The ready ports with which an instance can fire now; none if it cannot.
    pub(super) fn can_fire(&self, id: InstanceId) -> Option<u64> {
        let instance = &self.instances[id.index()];
        let rests = instance.counters.firings >= instance.firing_limit;
        if instance.has_staged() || instance.held_at.is_some() || rests {
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

    /// The ports that an instance waits for; none if it will not fire again.
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

    /// Goes on with an instance as far as one firing.
    pub(super) fn advance(&mut self, id: InstanceId) -> Result<Fired, Error> {
        let mut moved = self.replay_host_events(id)?;
        moved |= self.send_staged(id)?;
        let Some(ready) = self.can_fire(id) else {
            return Ok(if moved { Fired::Moved } else { Fired::Nothing });
        };
        if self.is_replaying_choice(id) {
            self.check_recorded(id, ready)?;
        }
        self.shared.clock_ns += 1;
        self.fire(id, ready)?;
        self.send_staged(id)?;
        Ok(Fired::Fired)
    }

    /// Lets staged items leave where there is room; whether one did.
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

    fn fire(&mut self, id: InstanceId, ready: u64) -> Result<(), Error> {
        let handler = self.program.element_of(id).handler;
        let activation = Activation { has_ports: true, ready, ..self.activation() };
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
        self.settle(id, activation, mask)
    }

    /// Notes how the handler ended; the next mask.
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
                // Where the next firing begins has changed, which is something.
                activation.did_something = true;
                instance.resume = Some(resume);
                mask.unwrap_or(all)
            }
            Err(Stop::Trap(code)) => {
                activation.did_something = true;
                *activation.counters.traps.entry(code).or_default() += 1;
                all
            }
            Err(Stop::Exhausted(exhausted)) => {
                let reason = format!("its record of `{}` has ended", exhausted.stream);
                return Err(self.replay_error(id, reason));
            }
        };
        if instance.resume.is_none() {
            instance.packets.clear();
        }
        Ok(mask & all)
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

    /// Runs the element's init function, before anything else.
    pub(super) fn initialise(&mut self, id: InstanceId) -> Result<(), Error> {
        if let Some(init) = self.program.element_of(id).init {
            self.call_between_firings(id, init, vec![])?;
        }
        Ok(())
    }

    /// Does and records what the host wants; the answer, if there is one.
    pub(super) fn act(
        &mut self,
        id: InstanceId,
        action: HostAction,
    ) -> Result<Option<Bits>, Error> {
        let answer = match &action {
            HostAction::Signal(signal) => {
                let function = self.program.element_of(id).signal;
                let function = function.ok_or_else(|| self.unknown(id, "signal handler"))?;
                self.call_between_firings(id, function, vec![signal.clone()])?
            }
            HostAction::Method(method, args) => {
                let method = self.program.element_of(id).methods.get(*method);
                let method = method.ok_or_else(|| self.unknown(id, "such method"))?;
                self.call_between_firings(id, method.function, args.clone())?
            }
            HostAction::Write { object, index, value } => {
                let instance = &mut self.instances[id.index()];
                let memory = instance.objects.get_mut(object.index());
                let width = memory.as_ref().and_then(|memory| memory.element(*index));
                match (memory, width) {
                    (Some(memory), Some(old)) if old.width() == value.width() => {
                        memory.store(*index, 0, value, None);
                    }
                    _ => return Err(self.unknown(id, "such element of a variable")),
                }
                None
            }
        };
        let instance = &mut self.instances[id.index()];
        let before_firing = instance.counters.firings;
        instance.choice.made.host.push(HostEvent { before_firing, action });
        instance.answers.extend(answer.clone());
        instance.quiet_ready = None;
        Ok(answer)
    }

    /// Runs a function that has no ports; its result, 0 if it trapped.
    fn call_between_firings(
        &mut self,
        id: InstanceId,
        function: FunctionId,
        args: Vec<Bits>,
    ) -> Result<Option<Bits>, Error> {
        let wanted = self.program.function(function);
        let widths = wanted.params().iter().map(|param| wanted.type_of(*param));
        let given = args.iter().map(|arg| Type::Bits(arg.width()));
        if !widths.clone().eq(given.clone()) {
            return Err(Error::Mismatch {
                what: format!("{}: {}", self.instances[id.index()].name, wanted.name),
                wanted: format!("{:?}", widths.collect::<Vec<_>>()),
                given: format!("{:?}", given.collect::<Vec<_>>()),
            });
        }
        let result = wanted.result;
        let activation = self.activation();
        let mut machine = self.machine(id, activation);
        let end = machine.invoke(function, args.into_iter().map(Datum::Bits));
        let mut activation = machine.activation;
        let value = match &end {
            Ok(End::Return { value: Some(Datum::Bits(bits)) }) => Some(bits.clone()),
            _ => None,
        };
        let instance = &mut self.instances[id.index()];
        let (resume, packets) = (instance.resume, instance.packets.len());
        self.end(id, &mut activation, end)?;
        let instance = &mut self.instances[id.index()];
        instance.resume = resume;
        instance.packets.truncate(packets);
        merge(&mut instance.counters, activation.counters);
        Ok(result.and_then(Type::bits).map(|width| value.unwrap_or_else(|| Bits::zero(width))))
    }

    fn replay_host_events(&mut self, id: InstanceId) -> Result<bool, Error> {
        let mut acted = false;
        while let Some(event) = {
            let instance = &self.instances[id.index()];
            instance.choice.due_host_event(instance.counters.firings)
        } {
            self.act(id, event.action)?;
            acted = true;
        }
        Ok(acted)
    }

    /// Whether a recorded ready bitmap is one that the element could have fired with.
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

    fn activation(&self) -> Activation {
        Activation { steps_left: self.step_limit, ..Activation::default() }
    }

    fn machine(&mut self, id: InstanceId, activation: Activation) -> Machine<'_> {
        Machine {
            program: self.program,
            loops: &self.loops,
            id,
            instance: &mut self.instances[id.index()],
            channels: &mut self.channels,
            shared: &mut self.shared,
            activation,
        }
    }
}

/// What an instance waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wanted {
    Nothing,
    Any(u64),
    All(u64),
}

fn merge(into: &mut InstanceCounters, from: InstanceCounters) {
    into.out_of_range += from.out_of_range;
    into.empty_reads += from.empty_reads;
    for (code, count) in from.traps {
        *into.traps.entry(code).or_default() += count;
    }
}
