// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The subjects of a case for one frame size: Freeport first, then its peers and the limits, with
//! notes on what each figure includes and which peers could not run.

use super::case::{Case, Ours};
use super::click::ClickSubject;
use super::flows::Flows;
use super::forward::{CopyFloor, Forward};
use super::kernel;
use super::network::NetworkSubject;
use super::ours::{DeviceSubject, StampingAlone, cycles_of_a_round};
use crate::harness::{Measurement, Subject};
use anyhow::{Error, Result};
use freeport_runtime::cpu::CpuDevice;
use std::path::{Path, PathBuf};

/// Peers that take part in addition to the kernel's XDP.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Peers {
    /// Whether peers between two interfaces take part; they need a network namespace.
    pub has_network: bool,
    /// Path of a FastClick program.
    pub click: Option<PathBuf>,
}

/// Subjects ready to be measured, and notes on them.
#[derive(Default)]
pub struct Prepared<'p> {
    /// Subjects; Freeport first, if it has a program.
    pub subjects: Vec<Box<dyn Subject + 'p>>,
    /// Contents of each figure, and which peers could not run and why.
    pub notes: Vec<String>,
    /// Whether the first subject is Freeport.
    pub has_ours: bool,
}

/// Returns the frames of a case.
pub fn flows_of(case: &dyn Case, frame_bytes: usize) -> Flows {
    match case.tuples() {
        [] => Forward::flows(frame_bytes),
        tuples => Flows::new(tuples, frame_bytes),
    }
}

/// Prepares all subjects of a case for one frame size.
///
/// # Errors
/// Freeport's program fails. Peers that cannot run are left out with a note.
pub fn prepare<'p>(
    case: &dyn Case,
    ours: Option<&'p Ours<'_>>,
    frame_bytes: usize,
    peers: &Peers,
) -> Result<Prepared<'p>> {
    let flows = flows_of(case, frame_bytes);
    let mut prepared = Prepared { notes: vec![case.about()], ..Prepared::default() };
    match ours {
        Some(ours) => add_ours(&mut prepared, case, ours, &flows)?,
        None => {
            prepared.notes.push("freeport is left out: it has no program for this case yet".into())
        }
    }
    add_kernel(&mut prepared, case, &flows);
    if peers.has_network && !flows.stamps.is_empty() {
        add_network(&mut prepared, case, &flows);
    }
    if let Some(click) = &peers.click {
        add_click(&mut prepared, click, case, &flows);
    }
    add_limits(&mut prepared, &flows)?;
    prepared.notes.push("frame sizes exclude the frame check sequence".into());
    Ok(prepared)
}

fn add_ours<'p>(
    prepared: &mut Prepared<'p>,
    case: &dyn Case,
    ours: &'p Ours<'_>,
    flows: &Flows,
) -> Result<()> {
    let device = CpuDevice::load(&ours.program, &freeport_native::Options::default())?;
    let cycles = cycles_of_a_round(flows);
    let subject = DeviceSubject::new(OURS, device, ours, flows, case.model(), cycles)?;
    let passed = subject.passed_part() * 100.0;
    prepared.subjects.push(Box::new(subject));
    prepared.has_ours = true;
    let stamped = if !flows.is_stamped() {
        "frames are not rebuilt"
    } else {
        "a flow is stamped into each frame, which the time includes"
    };
    prepared.notes.push(format!(
        "{OURS}: batches of 256 frames from a port in memory, the graph as native code on each, \
         and a port that counts what comes out; no driver; {stamped}; {passed:.1} % of the frames \
         are not dropped"
    ));
    Ok(())
}

fn add_kernel(prepared: &mut Prepared<'_>, case: &dyn Case, flows: &Flows) {
    match kernel::subjects(case, flows) {
        Ok(subjects) => {
            let is_stamped = subjects.len() > 1;
            for subject in subjects {
                prepared.subjects.push(Box::new(subject));
            }
            let what = if is_stamped {
                "on one frame, hot in the nearest cache, into which a prologue stamps the flows"
            } else {
                "on each of 8 frames of the trace, each hot in the nearest cache"
            };
            prepared.notes.push(format!(
                "kernel XDP: the time that BPF_PROG_TEST_RUN reports for the program and the \
                 kernel's call of it, over a million runs {what}; no driver, queue or buffer, and \
                 the mean is in whole nanoseconds"
            ));
        }
        Err(error) => prepared.notes.push(format!("kernel XDP is left out: {error:#}")),
    }
}

fn add_network(prepared: &mut Prepared<'_>, case: &dyn Case, flows: &Flows) {
    let stack = case.network().map_err(Error::msg);
    let stack = stack.and_then(|job| NetworkSubject::stack(&job, case, flows));
    let switch = case.open_flow().map_err(Error::msg);
    let switch = switch.and_then(|rules| NetworkSubject::vswitch(&rules, case, flows));
    for (name, subject) in [
        ("kernel XDP on veth", NetworkSubject::xdp(case, flows)),
        ("the kernel's stack", stack),
        (VSWITCH, switch),
    ] {
        match subject {
            Ok(subject) => {
                prepared.notes.push(format!(
                    "{}: between virtual interfaces in a private namespace; the time includes \
                     generating the frames in the kernel, two or four passes through an interface, \
                     and counting them, all on this core; lost frames do not count",
                    subject.name()
                ));
                if name == VSWITCH {
                    prepared.notes.push(VSWITCH_NOTE.into());
                }
                prepared.subjects.push(Box::new(subject));
            }
            Err(error) => prepared.notes.push(format!("{name} is left out: {error:#}")),
        }
    }
}

fn add_click(prepared: &mut Prepared<'_>, click: &Path, case: &dyn Case, flows: &Flows) {
    let subject = case.click().map_err(Error::msg);
    match subject.and_then(|job| ClickSubject::new(click, &job, case, flows)) {
        Ok(subject) => {
            prepared.subjects.push(Box::new(subject));
            prepared.notes.push(
                "FastClick: its own elements between 4,096 packets that it replays from memory \
                 and a counter, which reports the rate; at most as many flows as packets, and an \
                 element that modifies a packet copies it first"
                    .into(),
            );
        }
        Err(error) => prepared.notes.push(format!("FastClick is left out: {error:#}")),
    }
}

fn add_limits(prepared: &mut Prepared<'_>, flows: &Flows) -> Result<()> {
    if !flows.is_stamped() {
        prepared.subjects.push(Box::new(CopyFloor::new(flows)));
        prepared.notes.push(
            "memory copy: the same frames copied from one ring to another, and nothing else; a \
             path that does not copy can be faster"
                .into(),
        );
    } else {
        prepared.subjects.push(Box::new(StampingAlone::new(flows)?));
        prepared.notes.push(
            "stamping alone: Freeport's two ports and nothing between them; kernel stamping \
             alone: the kernel's prologue"
                .into(),
        );
    }
    Ok(())
}

/// Name of Freeport as a subject.
const OURS: &str = "freeport native";

/// Name of Open vSwitch as a subject.
pub const VSWITCH: &str = "Open vSwitch";

/// Note on Open vSwitch.
const VSWITCH_NOTE: &str = "Open vSwitch: its data path in user space, with AF_PACKET sockets, so \
    each frame is copied out of the kernel and back, which the time includes; flows are not \
    revalidated during the measurement, and lost frames cost the time to generate them";

/// Rates minus the cost of stamping, as far as both were measured. Stages overlap in a processor,
/// so this is an estimate of the function's own rate, not a measurement.
pub fn less_stamping(measurements: &[Measurement]) -> Vec<String> {
    let median =
        |name: &str| measurements.iter().find(|it| it.name == name).map(Measurement::median);
    let pairs =
        [(OURS, "stamping alone (limit)"), ("kernel XDP test run", "kernel stamping alone")];
    let less = |(name, stamping): (&str, &str)| {
        let (whole, part) = (1e3 / median(name)?, 1e3 / median(stamping)?);
        let rest = whole - part;
        (rest > 0.0).then(|| {
            format!(
                "{name} less stamping, by subtraction: {rest:.1} of {whole:.1} ns a packet, {:.1} \
                 M packets a second",
                1e3 / rest
            )
        })
    };
    pairs.into_iter().filter_map(less).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamping_is_taken_off_where_both_were_measured() {
        let measured =
            |name: &str, rate: f64| Measurement { name: name.into(), rates: vec![rate; 3] };
        let all = [
            measured(OURS, 20.0),
            measured("stamping alone (limit)", 100.0),
            measured("kernel XDP test run", 10.0),
        ];
        let notes = less_stamping(&all);
        assert_eq!(notes.len(), 1);
        assert!(notes[0].contains("40.0 of 50.0 ns a packet, 25.0 M"), "{}", notes[0]);
    }
}
