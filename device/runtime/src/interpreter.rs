// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The reference interpreter as a device: slow, and open to inspection. Use it for a program that
//! misbehaves: it stops at breakpoints, prints, logs, and records every choice, so that the run can
//! be replayed.

mod transfer;

use crate::device::{
    Bound, Device, DeviceCounters, DeviceError, EndpointCounters, Ports, Reported, Run, RunEnd,
    Transfer, host_methods, port_error,
};
use freeport_ir::interp::{Interpreter, Options, Outcome, ProbeEvent, Report};
use freeport_ir::oracle::{Execution, Oracles};
use freeport_ir::{ChannelId, Direction, EndpointId, InstanceId, Item, Program, ProgramRef};
use freeport_port::{FrameQueue, MAX_FRAME};
use std::sync::atomic::AtomicBool;

/// Firings between two checks of the ports, for a cycle of instances that keeps running.
const FIRINGS_AT_A_TIME: u64 = 1 << 16;
/// The same for a graph with an instance that fires endlessly because it waits for nothing.
const FIRINGS_BESIDE_SOURCES: u64 = 1 << 10;
/// The flag of runs that no caller interrupts.
static NEVER: AtomicBool = AtomicBool::new(false);

/// A program in the interpreter.
pub struct InterpreterDevice<'p> {
    program: ProgramRef<'p>,
    interpreter: Interpreter<'p>,
    /// By endpoint: output frames that wait for the port.
    waiting: Vec<FrameQueue>,
    counters: Vec<EndpointCounters>,
    /// Counters of the device that this one has replaced.
    counted_before: DeviceCounters,
    /// Time at which the newest frame was received; used as the timestamp of the output.
    clock_ns: u64,
    /// Whether the graph was stopped before it had processed its input.
    is_interrupted: bool,
    /// Whether the history is kept for a replay.
    keeps_record: bool,
    /// Result of the last turn, if items wait.
    stall: Option<Report>,
}

/// Result of one turn of a run.
struct Turn {
    moved: u64,
    outcome: Outcome,
}

impl<'p> InterpreterDevice<'p> {
    /// Loads a verified program.
    ///
    /// # Errors
    /// A program that is too large, or incomplete.
    pub fn load(
        program: impl Into<ProgramRef<'p>>,
        options: &Options,
    ) -> Result<Self, DeviceError> {
        let program = program.into();
        let endpoints = program.graph.endpoints.len();
        Ok(Self {
            interpreter: Interpreter::new(program.clone(), options)?,
            program,
            waiting: vec![FrameQueue::default(); endpoints],
            counters: vec![EndpointCounters::default(); endpoints],
            counted_before: DeviceCounters::default(),
            clock_ns: 0,
            is_interrupted: false,
            keeps_record: true,
            stall: None,
        })
    }

    /// Makes every run drop its history when it ends, so that a program may run indefinitely.
    pub fn keep_no_record(&mut self) {
        self.keeps_record = false;
    }

    /// Takes the output of printf, log and breakpoint probes since the last call.
    pub fn take_probes(&mut self) -> Vec<ProbeEvent> {
        self.interpreter.take_probes()
    }

    /// Returns the choices made so far, for a replay.
    pub fn oracles(&self) -> Oracles {
        self.interpreter.oracles()
    }

    /// Returns the history of the run so far, for comparison.
    pub fn execution(&self) -> Execution {
        self.interpreter.execution()
    }

    fn turn(&mut self, bound: &mut Bound<'_>, run: &mut Run) -> Result<Turn, DeviceError> {
        let before = run.received + run.sent;
        // While frames wait for an output, no frame is received, so that the number held is
        // bounded.
        if !self.is_interrupted && self.waiting.iter().all(|queue| queue.waiting() == 0) {
            run.received += self.receive(bound)?;
        }
        let has_sources = self.program.has_sources();
        let most = if has_sources { FIRINGS_BESIDE_SOURCES } else { FIRINGS_AT_A_TIME };
        let outcome = self.interpreter.run_until(bound.wanted().unwrap_or(&NEVER), most)?;
        self.stall = match &outcome {
            Outcome::Stalled(report) => Some(report.clone()),
            _ => None,
        };
        if !self.keeps_record {
            self.interpreter.forget_record();
        }
        self.is_interrupted = match outcome {
            Outcome::Breakpoint(_) => true,
            // A cycle that keeps running does not hold up the inputs.
            Outcome::Budget => bound.is_pause_wanted() && !has_sources,
            _ => false,
        };
        self.collect()?;
        run.sent += self.send(bound)?;
        Ok(Turn { moved: run.received + run.sent - before, outcome })
    }

    /// Feeds at most one frame of each port, so that the output gets that frame's time. A frame
    /// that was fed and not taken holds up its port, as on every device.
    fn receive(&mut self, bound: &mut Bound<'_>) -> Result<u64, DeviceError> {
        let mut received = 0;
        for (id, port) in &mut bound.inputs {
            if self.interpreter.is_holding(*id) {
                continue;
            }
            let failed = |source| port_error(&self.program, *id, source);
            let batch = port.receive(1).map_err(failed)?;
            for (frame, bytes) in batch.as_frames().iter() {
                self.clock_ns = self.clock_ns.max(frame.timestamp_ns);
                self.interpreter.feed_packet(*id, bytes)?;
                let counters = &mut self.counters[id.index()];
                counters.frames += 1;
                counters.bytes += bytes.len() as u64;
            }
            received += batch.len() as u64;
        }
        Ok(received)
    }

    /// Takes the output of the graph.
    fn collect(&mut self) -> Result<(), DeviceError> {
        for (at, endpoint) in self.program.graph.endpoints.iter().enumerate() {
            if endpoint.direction != Direction::OutOf {
                continue;
            }
            let id = EndpointId::new(at);
            if let Item::Bits(_) = endpoint.item {
                self.counters[at].dropped += self.interpreter.take_items(id)?.len() as u64;
                continue;
            }
            for packet in self.interpreter.take_packets(id)? {
                if (1..=MAX_FRAME).contains(&packet.len()) {
                    let queued = self.waiting[at].push(&packet, packet.len(), self.clock_ns);
                    queued.map_err(|source| port_error(&self.program, id, source))?;
                } else {
                    self.counters[at].dropped += 1;
                }
            }
        }
        Ok(())
    }

    fn send(&mut self, bound: &mut Bound<'_>) -> Result<u64, DeviceError> {
        let mut sent = 0;
        for (id, port) in &mut bound.outputs {
            let queue = &mut self.waiting[id.index()];
            let frames = queue.send_to(*port);
            let frames = frames.map_err(|source| port_error(&self.program, *id, source))?;
            sent += frames.frames as u64;
            let counters = &mut self.counters[id.index()];
            counters.frames += frames.frames as u64;
            counters.bytes += frames.bytes;
        }
        let is_bound = |at: usize| bound.outputs.iter().any(|(id, _)| id.index() == at);
        for (at, queue) in self.waiting.iter_mut().enumerate() {
            if !is_bound(at) {
                self.counters[at].dropped += queue.discard() as u64;
            }
        }
        Ok(sent)
    }

    /// Determines why nothing moves.
    fn rest(&self, bound: &mut Bound<'_>, outcome: Outcome) -> Result<RunEnd, DeviceError> {
        let is_empty_below = bound.flush(&self.program)?;
        let is_waiting = self.waiting.iter().any(|queue| queue.waiting() > 0);
        Ok(match outcome {
            _ if is_waiting || !is_empty_below => RunEnd::OutputFull,
            Outcome::Waiting => RunEnd::Waiting { holds_items: self.interpreter.holds_items() },
            Outcome::Stalled(report)
                if bound.are_inputs_over(|id| self.interpreter.is_holding(id)) =>
            {
                RunEnd::Stalled(report.to_string())
            }
            _ if !bound.are_inputs_ended() => RunEnd::Idle,
            _ => RunEnd::Ended,
        })
    }
}

/// For `host_methods`: forwards to the interpreter.
macro_rules! interpreter {
    ($self:ident, $method:ident, $instance:ident $(, $argument:ident)*) => {
        Ok($self.interpreter.$method($instance $(, $argument.into())*)?)
    };
}

impl Device for InterpreterDevice<'_> {
    fn program(&self) -> &Program {
        &self.program
    }

    fn run(&mut self, ports: &mut Ports<'_>) -> Result<Run, DeviceError> {
        let mut bound = ports.bind(&self.program)?;
        let mut run = Run::default();
        loop {
            let turn = self.turn(&mut bound, &mut run)?;
            match turn.outcome {
                Outcome::Breakpoint(instance) => {
                    bound.flush(&self.program)?;
                    run.end = RunEnd::Breakpoint(instance);
                    return Ok(run);
                }
                Outcome::Budget => {}
                outcome if turn.moved == 0 => {
                    run.end = self.rest(&mut bound, outcome)?;
                    return Ok(run);
                }
                _ => {}
            }
            if bound.gives_way() {
                run.end = RunEnd::Paused;
                return Ok(run);
            }
        }
    }

    host_methods!(interpreter, interpreter);

    fn counters(&self) -> DeviceCounters {
        let graph = &self.program.graph;
        let instances = (0..graph.instances.len()).map(InstanceId::new);
        let channels = (0..graph.channels.len()).map(ChannelId::new);
        let counted = DeviceCounters {
            instances: instances.map(|id| self.interpreter.counters(id).clone()).collect(),
            channels: channels.clone().map(|id| self.interpreter.channel_counters(id)).collect(),
            fills: channels.map(|id| self.interpreter.channel_fill(id)).collect(),
            endpoints: self.counters.clone(),
        };
        counted.after(&self.counted_before)
    }

    fn take_reported(&mut self) -> Reported {
        let events = self.take_probes().into_iter();
        Reported { lines: events.map(|it| (it.instance, it.text)).collect(), lost: 0 }
    }

    fn set_breakpoints_enabled(&mut self, is_enabled: bool) {
        self.interpreter.set_breakpoints_enabled(is_enabled);
    }

    fn resume(&mut self, instance: InstanceId) {
        self.interpreter.resume(instance);
    }

    fn waits(&self) -> Option<String> {
        self.stall.as_ref().map(ToString::to_string)
    }

    fn transfer(&mut self) -> Option<&mut dyn Transfer> {
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_conformance;
    use crate::programs::{mac_swap, mac_swap_of_packets, mac_swap_with_breakpoint};
    use freeport_port::trace::Trace;
    use freeport_port::{Generator, Sink};

    #[test]
    fn it_conforms() {
        for program in [mac_swap(), mac_swap_of_packets()] {
            device_conformance::check(|| {
                InterpreterDevice::load(&program, &Options::default()).expect("a good program")
            });
        }
    }

    #[test]
    fn without_a_record_counters_go_on_and_memory_does_not_grow() {
        let program = mac_swap();
        let mut device = InterpreterDevice::load(&program, &Options::default()).expect("good");
        device.keep_no_record();
        let trace = Trace { frames: 50, ..Trace::default() }.generate();
        let mut source = Generator::once(&trace).expect("good");
        let mut sink = Sink::counting();
        let mut ports =
            Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
        assert_eq!(device.run(&mut ports).expect("nothing fails").end, RunEnd::Ended);
        let execution = device.execution();
        assert!(execution.histories.iter().all(Vec::is_empty));
        assert!(device.counters().channels.iter().all(|channel| channel.items >= 50));
        assert_eq!(sink.frame_count(), 50);
    }

    #[test]
    fn a_frame_keeps_the_time_of_the_one_that_caused_it() {
        let program = mac_swap();
        let mut device = InterpreterDevice::load(&program, &Options::default()).expect("good");
        let trace = Trace { frames: 3, ..Trace::default() }.generate();
        let mut source = Generator::once(&trace).expect("good");
        let mut sink = Sink::keeping();
        let mut ports =
            Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
        device.run(&mut ports).expect("nothing fails");
        let times: Vec<u64> = sink.kept().iter().map(|frame| frame.timestamp_ns).collect();
        let sent: Vec<u64> = trace.iter().map(|frame| frame.timestamp_ns).collect();
        assert_eq!(times, sent);
    }

    #[test]
    fn it_stops_at_breakpoints() {
        let program = mac_swap_with_breakpoint();
        device_conformance::check_breakpoints(|| {
            InterpreterDevice::load(&program, &Options::default()).expect("a good program")
        });
    }
}
