// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Freeport as a subject: a device between a generator that lends the frames of a case and a sink
//! that counts them, after every frame of all flows was compared with the case's model.

use super::case::{Model, Ours};
use super::flows::{Flows, STAMP_OFFSET, WRITTEN_LAPS};
use crate::harness::{Subject, Work};
use anyhow::{Result, ensure};
use freeport_port::trace::TraceFrame;
use freeport_port::{
    BATCH, DEFAULT_STRIDE_BYTES, Frames, Generator, PortError, Receive, Replay, Sink, Transmit,
};
use freeport_runtime::device::{Device, Ports, RunEnd};
use std::hint::black_box;
use std::time::Instant;

/// Minimum number of frames per round; rounded up to a multiple of all flows.
const ROUND_FRAMES: usize = 1 << 20;

/// Returns the frames of one pass over all flows, or over the ring if nothing is stamped.
pub fn frames_of_a_cycle(flows: &Flows) -> usize {
    if flows.is_stamped() { flows.stamps.len() } else { flows.ring.len() }
}

/// Returns the number of passes over all flows per round.
pub fn cycles_of_a_round(flows: &Flows) -> usize {
    let cycles = ROUND_FRAMES.div_ceil(frames_of_a_cycle(flows));
    if flows.is_written { cycles.min(WRITTEN_LAPS) } else { cycles }
}

/// Creates a generator that lends the frames of a case; it must be rewound before it lends any.
///
/// # Errors
/// The frames do not fit.
pub fn generator(flows: &Flows) -> Result<Generator> {
    let (frames, stride) = (flows.ring.len(), DEFAULT_STRIDE_BYTES);
    let port = Generator::new(&flows.ring, frames, stride, 0, Replay::InPlace)?;
    Ok(match flows.is_stamped() {
        true => port.with_stamps(STAMP_OFFSET, &flows.stamps)?,
        false => port,
    })
}

/// Freeport: a device between ports in memory.
pub struct DeviceSubject<D> {
    name: &'static str,
    device: D,
    ports: (&'static str, &'static str),
    source: Generator,
    /// Original frames, where the ring must be restored after each round.
    written: Vec<TraceFrame>,
    cycle: u64,
    cycles: u64,
    passed: u64,
}

impl<D: Device> DeviceSubject<D> {
    /// Prepares `device` to process `cycles` passes over all flows per round, after checking once
    /// that each output frame agrees with `model`.
    ///
    /// # Errors
    /// The device fails, or its output differs from the model.
    pub fn new(
        name: &'static str,
        mut device: D,
        ours: &Ours<'_>,
        flows: &Flows,
        model: Model<'_>,
        cycles: usize,
    ) -> Result<Self> {
        (ours.set_up)(&mut device)?;
        let cycle = frames_of_a_cycle(flows);
        let mut source = generator(flows)?;
        source.rewind(cycle as u64);
        let mut sink = ModelSink::new(flows, cycle, model);
        let ports = (ours.input, ours.output);
        let mut bound =
            Ports::new().with_input(ports.0, &mut source).with_output(ports.1, &mut sink);
        let run = device.run(&mut bound)?;
        ensure!(run.end == RunEnd::Ended, "{name} stopped: {:?}", run.end);
        let passed = sink.finish()?;
        let written = if flows.is_written { flows.ring.clone() } else { vec![] };
        let (cycle, cycles) = (cycle as u64, cycles as u64);
        Ok(Self { name, device, ports, source, written, cycle, cycles, passed })
    }

    /// Returns the fraction of frames that are not dropped.
    pub fn passed_part(&self) -> f64 {
        self.passed as f64 / self.cycle as f64
    }
}

impl<D: Device> Subject for DeviceSubject<D> {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) -> Result<Work> {
        let total = self.cycle * self.cycles;
        self.source.rewind(total);
        if !self.written.is_empty() {
            self.source.renew(&self.written)?;
        }
        let mut sink = Sink::counting();
        let mut ports = Ports::new()
            .with_input(self.ports.0, &mut self.source)
            .with_output(self.ports.1, &mut sink);
        let begin = Instant::now();
        let run = self.device.run(&mut ports)?;
        let elapsed = begin.elapsed();
        let (came, expected) = (sink.frame_count(), self.passed * self.cycles);
        let is_complete = run.end == RunEnd::Ended && came == expected;
        ensure!(is_complete, "{came} frames came out, not {expected}: {:?}", run.end);
        Ok(Work { frames: total as f64, elapsed })
    }
}

/// Compares output frames with the model one by one, so that only one expected frame is in memory
/// at a time.
pub struct ModelSink<'f> {
    expected: Box<dyn Iterator<Item = Vec<u8>> + 'f>,
    taken: u64,
    fault: Option<String>,
}

impl<'f> ModelSink<'f> {
    /// Expects the results of the first `count` frames.
    pub fn new(flows: &'f Flows, count: usize, mut model: Model<'f>) -> Self {
        let expected = flows.frames().take(count).filter_map(move |frame| model(&frame));
        Self { expected: Box::new(expected), taken: 0, fault: None }
    }

    /// Returns the number of frames received, all of which were as expected and complete.
    ///
    /// # Errors
    /// The first difference.
    pub fn finish(mut self) -> Result<u64> {
        if let Some(fault) = self.fault {
            anyhow::bail!("the output differs from the model: {fault}");
        }
        ensure!(self.expected.next().is_none(), "only {} frames came out", self.taken);
        Ok(self.taken)
    }
}

impl Transmit for ModelSink<'_> {
    fn transmit(&mut self, frames: Frames<'_>) -> Result<usize, PortError> {
        for (_, bytes) in frames.iter() {
            let expected = self.expected.next();
            if self.fault.is_none() && expected.as_deref() != Some(bytes) {
                let expected = expected.map(|bytes| hexadecimal(&bytes));
                let expected = expected.unwrap_or_else(|| "nothing".into());
                let taken = self.taken;
                self.fault = Some(format!(
                    "output frame {taken} is {}; expected {expected}",
                    hexadecimal(bytes)
                ));
            }
            self.taken += 1;
        }
        Ok(frames.len())
    }

    fn flush(&mut self) -> Result<bool, PortError> {
        Ok(true)
    }
}

/// Returns the first bytes of a frame in hexadecimal, for messages.
pub fn hexadecimal(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().take(120).map(|byte| format!("{byte:02x}")).collect();
    format!("[{} bytes] {}", bytes.len(), digits.concat())
}

/// Stamping alone: the cost of generator and sink without anything between them.
pub struct StampingAlone {
    source: Generator,
    total: u64,
}

impl StampingAlone {
    /// Creates the same generator as Freeport's, for as many frames.
    ///
    /// # Errors
    /// The frames do not fit.
    pub fn new(flows: &Flows) -> Result<Self> {
        let total = (frames_of_a_cycle(flows) * cycles_of_a_round(flows)) as u64;
        Ok(Self { source: generator(flows)?, total })
    }
}

impl Subject for StampingAlone {
    fn name(&self) -> &str {
        "stamping alone (limit)"
    }

    fn run(&mut self) -> Result<Work> {
        self.source.rewind(self.total);
        let mut sink = Sink::counting();
        let begin = Instant::now();
        while !self.source.is_ended() {
            let mut batch = self.source.receive(BATCH)?;
            black_box(batch.memory_mut());
            sink.transmit(batch.as_frames())?;
        }
        Ok(Work { frames: sink.frame_count() as f64, elapsed: begin.elapsed() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nf::CaseName;
    use crate::nf::subjects::flows_of;
    use freeport_runtime::cpu::CpuDevice;
    use std::path::Path;

    /// Checks that the native code of every program agrees with its model on many flows.
    #[test]
    fn freeport_does_every_case_as_the_model_does() {
        let library = [Path::new(env!("CARGO_MANIFEST_DIR")).join("../elements")];
        for (name, count) in CaseName::ALL.iter().flat_map(|it| [(it, 3_000), (it, 5_000)]) {
            let case = name.make(Some(count));
            let Some(ours) = case.ours(&library).expect("it compiles") else { continue };
            for frame_bytes in [64, 1_500] {
                let flows = flows_of(case.as_ref(), frame_bytes);
                let options = freeport_native::Options::default();
                let device = CpuDevice::load(&ours.program, &options).expect("native code");
                let subject = DeviceSubject::new("x", device, &ours, &flows, case.model(), 2);
                let mut subject = subject.unwrap_or_else(|error| {
                    panic!("{} of {frame_bytes} B: {error:#}", case.name())
                });
                for _ in 0..2 {
                    let frames = subject.run().expect("as many come out in a round").frames;
                    assert_eq!(frames, 2.0 * frames_of_a_cycle(&flows) as f64);
                }
            }
        }
    }

    #[test]
    fn a_missing_and_an_extra_frame_are_found() {
        let flows = Flows::fixed(vec![TraceFrame::of(vec![1; 60])], 60);
        let sink = || ModelSink::new(&flows, 2, Box::new(|frame| Some(frame.to_vec())));
        for (sent, is_right) in [(1, false), (2, true), (3, false)] {
            let mut sink = sink();
            for _ in 0..sent {
                let mut port = Generator::once(&flows.ring).expect("it fits");
                sink.transmit(port.receive(1).expect("a frame").as_frames()).expect("it takes it");
            }
            assert_eq!(sink.finish().is_ok(), is_right, "{sent} frames");
        }
    }
}
