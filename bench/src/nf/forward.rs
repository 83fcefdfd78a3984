// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The case `forward`: every frame returns where it came from, with its Ethernet addresses swapped.
//! A plain copy of the frames is the limit set by memory.

use super::case::{Case, ClickJob, KernelJob, Model, Ours};
use super::flows::{Flows, RING_FRAMES, Tuple};
use crate::harness::{Subject, Work};
use anyhow::Result;
use freeport_ir::Program;
use freeport_port::DEFAULT_STRIDE_BYTES;
use freeport_port::trace::{Sizes, Trace};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

/// Passes over the frames per round of the copy.
const LAPS: u64 = 256;

/// Source of the library's element.
const ELEMENT: &str = include_str!("../../../elements/ethernet/MacSwap.cnp");

/// The measured graph.
const CONFIGURATION: &str = "MacSwap :: swap\nfrom_tor -> swap -> to_tor\n";

/// The case; it has no tables.
pub struct Forward;

impl Forward {
    /// Returns frames of one size, which are not modified before they are lent.
    pub fn flows(frame_bytes: usize) -> Flows {
        let sizes = Sizes::Fixed(frame_bytes);
        let trace = Trace { frames: RING_FRAMES, sizes, ..Trace::default() };
        Flows::fixed(trace.generate(), frame_bytes)
    }
}

fn compile(text: &str) -> Result<Program> {
    let compiled = freeport_clicknp::compile_text("forward", text, &Default::default());
    let compiled = compiled.map_err(|failure| anyhow::anyhow!("{}", failure.render()))?;
    Ok(Program { name: "forward".into(), ..compiled.program })
}

impl Case for Forward {
    fn name(&self) -> &'static str {
        "forward"
    }

    fn about(&self) -> String {
        "forward: the Ethernet addresses are swapped".into()
    }

    fn tuples(&self) -> &[Tuple] {
        &[]
    }

    fn model(&self) -> Model<'_> {
        Box::new(|frame| Some([&frame[6..12], &frame[..6], &frame[12..]].concat()))
    }

    fn ours(&self, _library: &[PathBuf]) -> Result<Option<Ours<'_>>> {
        let program = compile(&format!("{ELEMENT}{CONFIGURATION}"))?;
        let set_up = Box::new(|_: &mut dyn freeport_runtime::device::Device| Ok(()));
        Ok(Some(Ours { program, input: "from_tor", output: "to_tor", set_up }))
    }

    fn kernel(&self) -> KernelJob {
        KernelJob {
            source: include_str!("../../../programs/mac_swap.bpf.c"),
            entries: vec![],
            contents: vec![],
            growth: 0,
        }
    }

    fn click(&self) -> Result<ClickJob, &'static str> {
        Ok(ClickJob { elements: "in -> EtherMirror -> out;\n".into(), frames: 8_000_000 })
    }
}

/// The limit: copying the frames from one ring to another.
pub struct CopyFloor {
    source: Vec<u8>,
    target: Vec<u8>,
    frame_bytes: usize,
}

impl CopyFloor {
    /// Lays out the frames in memory.
    pub fn new(flows: &Flows) -> Self {
        let mut source = vec![0; RING_FRAMES * DEFAULT_STRIDE_BYTES];
        for (slot, frame) in source.chunks_mut(DEFAULT_STRIDE_BYTES).zip(&flows.ring) {
            slot[..frame.bytes.len()].copy_from_slice(&frame.bytes);
        }
        // Initialised so that its pages are mapped before the measurement.
        let target = source.clone();
        Self { source, target, frame_bytes: flows.frame_bytes }
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
    use crate::nf::ours::DeviceSubject;
    use freeport_ir::interp::Options;
    use freeport_runtime::interpreter::InterpreterDevice;

    #[test]
    fn every_subject_forwards_and_says_how_much() {
        let ours = Forward.ours(&[]).expect("the text is right").expect("there is a program");
        let options = Options::default();
        let flows = Forward::flows(64);
        let device = InterpreterDevice::load(&ours.program, &options).expect("a good program");
        let subject = DeviceSubject::new("x", device, &ours, &flows, Forward.model(), 1);
        let mut subject = subject.expect("it forwards");
        assert_eq!(subject.run().expect("it runs").frames, RING_FRAMES as f64);
        let copy = CopyFloor::new(&flows).run().expect("it runs");
        assert_eq!(copy.frames, (LAPS * RING_FRAMES as u64) as f64);
    }

    #[test]
    fn a_device_that_does_not_forward_is_not_measured() {
        let wrong = ELEMENT.replace("x.data[95:48] = target", "x.data[95:48] = 0");
        assert_ne!(wrong, ELEMENT);
        let program = compile(&format!("{wrong}{CONFIGURATION}")).expect("the text is right");
        let options = Options::default();
        let ours = Ours { program, ..Forward.ours(&[]).expect("right").expect("there is one") };
        let flows = Forward::flows(64);
        let device = InterpreterDevice::load(&ours.program, &options).expect("a good program");
        let subject = DeviceSubject::new("x", device, &ours, &flows, Forward.model(), 1);
        let refused = subject.err().expect("wrong frames");
        assert!(refused.to_string().contains("the output differs from the model"), "{refused}");
    }
}
