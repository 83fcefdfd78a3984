// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench ports`: what Freeport adds to the cost of AF_XDP.
//!
//! Frames arrive at one virtual interface and leave by another. Between them is `examples/wire.cnp`
//! as native code on two AF_XDP ports, or a forwarder in C that only moves descriptors from ring to
//! ring. The kernel offers more frames than either can take, so both are always busy, and the
//! processor time of the forwarding thread is that of the frames it has sent.

mod forwarder;

use crate::harness::machine::{Machine, allowed_cores};
use crate::harness::plot;
use crate::harness::report::{self, CaseResult, csv};
use crate::harness::{Measurement, Subject, alternate};
use crate::harness::{Output, folder};
use crate::nf::flows::{Flows, Tuple};
use anyhow::{Result, ensure};
use forwarder::{Forwarding, Minimal, Wire};
use freeport_port::xdp::DEFAULT_RING_FRAMES;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// Measures the cost of a port on an interface, beside a minimal forwarder
///
/// Example: freeport bench ports --rounds 15 --out results
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// Frame size in bytes without the frame check sequence; may be repeated
    #[arg(
        long,
        value_name = "BYTES",
        default_values_t = FRAME_BYTES,
        value_parser = clap::value_parser!(u16).range(60..=1_500)
    )]
    pub frame_bytes: Vec<u16>,
    /// Frames that the rings of each queue hold
    #[arg(long, value_name = "FRAMES", default_value_t = DEFAULT_RING_FRAMES)]
    pub ring_frames: u32,
    /// Milliseconds per subject and round
    #[arg(
        long,
        value_name = "MS",
        default_value_t = 1_000,
        value_parser = clap::value_parser!(u64).range(10..=60_000)
    )]
    pub window_ms: u64,
    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
    /// Number of rounds; each subject runs once per round
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
    /// Also write ports.csv and ports.svg to this folder
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// Default frame sizes.
const FRAME_BYTES: [u16; 2] = [64, 1_500];
/// Number of flows that pass in turn.
const FLOWS: u32 = 1_024;
/// Metric: packets per second of processor time of the forwarding thread.
const PACKETS_PER_CPU_SECOND: &str = "packets_per_cpu_second";
/// Aim for the processor time that Freeport adds, in nanoseconds per packet.
const AIM_NS: f64 = 60.0;

/// Runs the measurement.
///
/// # Errors
/// One of the forwarders cannot run.
pub fn run(arguments: &Arguments) -> Result<Output> {
    let machine = Machine::describe();
    let cores = allowed_cores();
    ensure!(
        cores.len() > 1,
        "two cores are required: one generates frames while the other forwards them"
    );
    let minimal = Rc::new(Minimal::compile()?);
    let wire = Rc::new(Wire::build()?);
    let mut results = vec![];
    for frame_bytes in &arguments.frame_bytes {
        let flows = Rc::new(flows(usize::from(*frame_bytes)));
        let window = Duration::from_millis(arguments.window_ms);
        let cores = [cores[0], cores[1]];
        let frames = arguments.ring_frames.next_power_of_two();
        let forwarding = |side| Forwarding { side, flows: flows.clone(), window, cores, frames };
        let mut subjects: Vec<Box<dyn Subject>> = vec![
            Box::new(forwarding(forwarder::Side::Wire(wire.clone()))),
            Box::new(forwarding(forwarder::Side::Minimal(minimal.clone()))),
        ];
        let measurements = alternate(&mut subjects, arguments.rounds as usize)?;
        results.push(CaseResult {
            bench: "ports".into(),
            case: "xdp".into(),
            frame_bytes: usize::from(*frame_bytes),
            metric: PACKETS_PER_CPU_SECOND.into(),
            notes: notes(&measurements, arguments, &cores),
            measurements,
            has_ours: true,
            published: None,
        });
    }
    if let Some(out) = &arguments.out {
        write(out, &results, &machine)?;
    }
    report::output(&results, &machine, arguments.json)
}

fn flows(frame_bytes: usize) -> Flows {
    let tuple = |at: u32| Tuple {
        source: 0x0a00_0000 | at,
        target: 0x0b00_0001,
        source_port: 1_024,
        target_port: 80,
        protocol: 17,
    };
    Flows::new(&(0..FLOWS).map(tuple).collect::<Vec<_>>(), frame_bytes)
}

fn notes(measurements: &[Measurement], arguments: &Arguments, cores: &[usize]) -> Vec<String> {
    let nanoseconds = |it: &Measurement| 1e3 / it.median().max(f64::MIN_POSITIVE);
    let [ours, theirs] = [0, 1].map(|at| measurements.get(at).map_or(0.0, nanoseconds));
    let mut notes = vec![
        format!(
            "freeport adds {:.1} ns of processor time per packet; the aim is at most {AIM_NS} ns",
            ours - theirs
        ),
        "time is that of the forwarding thread, with the kernel's work on what it sends".into(),
        format!(
            "virtual interfaces, copied by the kernel both ways; rings of {} frames; frames made \
             on core {}, forwarded on core {}",
            arguments.ring_frames.next_power_of_two(),
            cores[0],
            cores[1]
        ),
    ];
    if cfg!(debug_assertions) {
        notes.push("this is a build without optimization: do not quote this".into());
    }
    notes
}

fn write(out: &Path, results: &[CaseResult], machine: &Machine) -> Result<()> {
    folder::make(out)?;
    folder::save(out, "ports.csv", csv(results, machine))?;
    folder::save(
        out,
        "ports.svg",
        plot::svg("Ports: per second of processor time", results, machine),
    )
}
