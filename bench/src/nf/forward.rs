// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The subjects of the case `forward`, all on the same trace: Freeport's device, the kernel's XDP,
//! and a bare copy of the frames, which is what the memory alone allows.

use crate::harness::{Subject, Work};
use crate::kernel::{XDP_TX, XdpProgram};
use anyhow::{Result, ensure};
use freeport_ir::Program;
use freeport_nic::cpu::CpuDevice;
use freeport_nic::device::{Device, Ports, RunEnd};
use freeport_nic::port::{DEFAULT_STRIDE_BYTES, Generator, Replay, Sink};
use freeport_nic::trace::{Sizes, Trace, TraceFrame};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Frame sizes that are measured, without the frame check sequence.
pub const FRAME_BYTES: [usize; 2] = [64, 1_500];

/// Frames in memory, [`DEFAULT_STRIDE_BYTES`] apart.
const RING_FRAMES: usize = 4_096;
/// Times that each round goes through the frames.
const LAPS: u64 = 256;
/// Frames of the trace that the kernel runs on, spread over it.
const KERNEL_FRAMES: usize = 8;
/// Runs on each of them: enough to hide that the kernel reports whole nanoseconds of the mean.
const KERNEL_REPEAT: u32 = 1_000_000;

const KERNEL_PROGRAM: &str = include_str!("../../../programs/mac_swap.bpf.c");

/// The library's element.
const ELEMENT: &str = include_str!("../../../elements/ethernet/MacSwap.cnp");

/// The graph that is measured.
const CONFIGURATION: &str = "MacSwap :: swap\nfrom_tor -> swap -> to_tor\n";

/// The program of the case.
///
/// # Errors
/// None but a mistake in the texts that are built in.
pub fn program() -> Result<Program> {
    compile(&format!("{ELEMENT}{CONFIGURATION}"))
}

fn compile(text: &str) -> Result<Program> {
    let compiled = freeport_clicknp::compile_text("forward", text, &Default::default());
    let compiled = compiled.map_err(|failure| anyhow::anyhow!("{}", failure.render()))?;
    Ok(Program { name: "forward".into(), ..compiled.program })
}

/// Subjects ready to be measured, and what to say about them.
pub struct Prepared<'p> {
    /// Ours first.
    pub subjects: Vec<Box<dyn Subject + 'p>>,
    /// What each figure includes, and who could not run and why.
    pub notes: Vec<String>,
}

/// Frames of one size, as each subject gets them.
pub fn trace(frame_bytes: usize) -> Vec<TraceFrame> {
    let sizes = Sizes::Fixed(frame_bytes);
    Trace { frames: RING_FRAMES, sizes, ..Trace::default() }.generate()
}

/// What forwarding makes of a frame.
pub fn forwarded(frame: &[u8]) -> Vec<u8> {
    [&frame[6..12], &frame[..6], &frame[12..]].concat()
}

/// All subjects for frames of one size.
///
/// # Errors
/// What keeps Freeport from forwarding. Peers that cannot run are left out with a note.
pub fn prepare(program: &Program, frame_bytes: usize) -> Result<Prepared<'_>> {
    let trace = trace(frame_bytes);
    let device = CpuDevice::load(program, &freeport_native::Options::default())?;
    let ours = DeviceForward::new("freeport native", device, &trace, LAPS)?;
    let mut prepared = Prepared { subjects: vec![Box::new(ours)], notes: vec![] };
    prepared.notes.push(
        "freeport native: batches of 256 frames from a port in memory, the graph as native code on \
         each, and a port that counts what comes out; no driver, and frames are not made anew"
            .into(),
    );
    add_peers(&mut prepared, &trace);
    Ok(prepared)
}

/// The peers, after ours: the kernel where it lets us, and the limit.
fn add_peers(prepared: &mut Prepared<'_>, trace: &[TraceFrame]) {
    match KernelForward::new(trace) {
        Ok(kernel) => {
            prepared.subjects.push(Box::new(kernel));
            prepared.notes.push(format!(
                "kernel XDP: the time that BPF_PROG_TEST_RUN reports for the program and the \
                 kernel's call of it, {KERNEL_REPEAT} runs on each of {KERNEL_FRAMES} frames of \
                 the trace, each hot in the nearest cache; no driver, queue or buffer, and the \
                 mean is in whole nanoseconds"
            ));
        }
        Err(error) => prepared.notes.push(format!("kernel XDP is left out: {error:#}")),
    }
    prepared.subjects.push(Box::new(CopyFloor::new(trace)));
    prepared.notes.push(
        "memory copy: the same frames copied from one ring to another, and nothing else; a path \
         that does not copy can be faster"
            .into(),
    );
    prepared.notes.push("frame sizes are without the frame check sequence".into());
}

/// Freeport: a device between memory ports.
pub struct DeviceForward<D> {
    name: &'static str,
    device: D,
    source: Generator,
    laps: u64,
}

impl<D: Device> DeviceForward<D> {
    /// Runs `device` `laps` times through the trace, after checking once that it forwards every
    /// frame of it.
    ///
    /// # Errors
    /// A device that fails, or does not forward.
    pub fn new(name: &'static str, mut device: D, trace: &[TraceFrame], laps: u64) -> Result<Self> {
        let expected = trace.iter().map(|frame| forwarded(&frame.bytes)).collect();
        let mut sink = Sink::checking(expected);
        let mut source = Generator::once(trace)?;
        let mut ports =
            Ports::new().with_input("from_tor", &mut source).with_output("to_tor", &mut sink);
        device.run(&mut ports)?;
        ensure!(sink.is_as_expected(), "{name} does not forward: {:?}", sink.first_mismatch());
        let (stride, replay) = (DEFAULT_STRIDE_BYTES, Replay::InPlace);
        let source = Generator::new(trace, RING_FRAMES, stride, 0, replay)?;
        Ok(Self { name, device, source, laps })
    }
}

impl<D: Device> Subject for DeviceForward<D> {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) -> Result<Work> {
        let total = self.laps * RING_FRAMES as u64;
        self.source.refill(total);
        let mut sink = Sink::counting();
        let mut ports =
            Ports::new().with_input("from_tor", &mut self.source).with_output("to_tor", &mut sink);
        let begin = Instant::now();
        let run = self.device.run(&mut ports)?;
        let elapsed = begin.elapsed();
        let is_complete = run.end == RunEnd::Ended && sink.frame_count() == total;
        ensure!(is_complete, "{} of {total} frames came out: {:?}", sink.frame_count(), run.end);
        Ok(Work { frames: total as f64, elapsed })
    }
}

/// The kernel: XDP in its test facility.
struct KernelForward {
    program: XdpProgram,
    frames: Vec<Vec<u8>>,
}

impl KernelForward {
    fn new(trace: &[TraceFrame]) -> Result<Self> {
        let program = XdpProgram::compile(KERNEL_PROGRAM)?;
        let step = (trace.len() / KERNEL_FRAMES).max(1);
        let frames: Vec<Vec<u8>> =
            trace.iter().step_by(step).take(KERNEL_FRAMES).map(|it| it.bytes.clone()).collect();
        for frame in &frames {
            let run = program.test_run(frame, 1)?;
            let is_right = run.verdict == XDP_TX && run.frame == forwarded(frame);
            ensure!(is_right, "its program does not forward");
        }
        Ok(Self { program, frames })
    }
}

impl Subject for KernelForward {
    fn name(&self) -> &str {
        "kernel XDP test run"
    }

    fn run(&mut self) -> Result<Work> {
        let mut elapsed = Duration::ZERO;
        for frame in &self.frames {
            let run = self.program.test_run(frame, KERNEL_REPEAT)?;
            ensure!(run.verdict == XDP_TX, "the kernel's program gave {}", run.verdict);
            elapsed += Duration::from_nanos(u64::from(run.duration_ns) * u64::from(KERNEL_REPEAT));
        }
        let frames = self.frames.len() as f64 * f64::from(KERNEL_REPEAT);
        Ok(Work { frames, elapsed })
    }
}

/// The limit: the frames copied from one ring to another.
struct CopyFloor {
    source: Vec<u8>,
    target: Vec<u8>,
    frame_bytes: usize,
}

impl CopyFloor {
    fn new(trace: &[TraceFrame]) -> Self {
        let mut source = vec![0; RING_FRAMES * DEFAULT_STRIDE_BYTES];
        for (slot, frame) in source.chunks_mut(DEFAULT_STRIDE_BYTES).zip(trace) {
            slot[..frame.bytes.len()].copy_from_slice(&frame.bytes);
        }
        // Written once, so that its pages are there before anything is measured.
        let target = source.clone();
        Self { source, target, frame_bytes: trace[0].bytes.len() }
    }
}

impl Subject for CopyFloor {
    fn name(&self) -> &str {
        "memory copy (limit)"
    }

    fn run(&mut self) -> Result<Work> {
        let begin = Instant::now();
        for _ in 0..LAPS {
            let targets = self.target.chunks_exact_mut(DEFAULT_STRIDE_BYTES);
            for (target, source) in targets.zip(self.source.chunks_exact(DEFAULT_STRIDE_BYTES)) {
                target[..self.frame_bytes].copy_from_slice(&source[..self.frame_bytes]);
            }
            black_box(&mut self.target);
        }
        Ok(Work { frames: (LAPS * RING_FRAMES as u64) as f64, elapsed: begin.elapsed() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_ir::interp::Options;
    use freeport_nic::interpreter::InterpreterDevice;

    #[test]
    fn every_subject_forwards_and_says_how_much() {
        let program = program().expect("the text is right");
        for frame_bytes in FRAME_BYTES {
            let device = InterpreterDevice::load(&program, &Options::default()).expect("good");
            let trace = trace(frame_bytes);
            let ours = DeviceForward::new("x", device, &trace, 1).expect("it forwards");
            let mut prepared = Prepared { subjects: vec![Box::new(ours)], notes: vec![] };
            prepared.subjects.push(Box::new(CopyFloor::new(&trace)));
            let counts = [RING_FRAMES as f64, (LAPS * RING_FRAMES as u64) as f64];
            for (subject, frames) in prepared.subjects.iter_mut().zip(counts) {
                let work = subject.run().expect("it runs");
                assert_eq!(work.frames, frames);
                assert!(work.elapsed > Duration::ZERO);
            }
        }
    }

    #[test]
    fn a_device_that_does_not_forward_is_not_measured() {
        let wrong = ELEMENT.replace("x.data[95:48] = target", "x.data[95:48] = 0");
        assert_ne!(wrong, ELEMENT);
        let program = compile(&format!("{wrong}{CONFIGURATION}")).expect("the text is right");
        let device = InterpreterDevice::load(&program, &Options::default()).expect("good");
        let refused = DeviceForward::new("x", device, &trace(64), 1).err().expect("wrong frames");
        assert!(refused.to_string().contains("does not forward"), "{refused}");
    }
}
