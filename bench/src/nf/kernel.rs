// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The kernel's XDP as a subject: the case's program in the kernel's test facility, after its
//! verdicts and output were compared with the case's model.
//!
//! A test run takes one frame. So that the program sees the flows of the trace, a prologue writes
//! the next flow into the frame from a map, as the generator does for Freeport. The prologue alone
//! is a separate subject.

use super::case::{Case, KernelJob};
use super::flows::Flows;
use super::ours::{cycles_of_a_round, frames_of_a_cycle, hexadecimal};
use crate::harness::{Subject, Work};
use crate::kernel::{XDP_DROP, XDP_TX, XdpObject};
use anyhow::{Context, Result, ensure};
use std::rc::Rc;
use std::time::Duration;

/// Frames, spread over the ring, on which the program of a case without flows runs.
const SPREAD_FRAMES: usize = 8;
/// Maximum number of frames compared with the model before the measurement.
const CHECKED_FRAMES: usize = 4_096;
/// Minimum number of runs on a frame per round, which makes the fixed cost of a test run
/// negligible.
const LEAST_REPEAT: usize = 1_000_000;

/// The loaded program of a case, with its maps filled.
pub struct KernelSubject {
    name: &'static str,
    object: Rc<XdpObject>,
    section: &'static str,
    frames: Vec<Vec<u8>>,
    repeat: u32,
    /// Frames of a round that the program must pass, where it counts them.
    passed: Option<u64>,
}

/// Prepares the program, and the prologue alone if there is one.
///
/// # Errors
/// The program cannot be loaded, or treats a frame differently from the model.
pub fn subjects(case: &dyn Case, flows: &Flows) -> Result<Vec<KernelSubject>> {
    let job = case.kernel();
    let mut entries = job.entries.clone();
    if !flows.stamps.is_empty() {
        entries.push(("stamps", flows.stamps.len()));
    }
    let object = XdpObject::compile(job.source, &entries)?;
    for (map, key, value) in &job.contents {
        object.map(map)?.update(key, value)?;
    }
    check_plain(case, flows, &object)?;
    if flows.stamps.is_empty() {
        let step = flows.ring.len() / SPREAD_FRAMES;
        let frames = flows.ring.iter().step_by(step).map(|frame| frame.bytes.clone()).collect();
        let subject = KernelSubject {
            name: "kernel XDP test run",
            object: Rc::new(object),
            section: "xdp",
            frames,
            repeat: LEAST_REPEAT as u32,
            passed: None,
        };
        return Ok(vec![subject]);
    }
    prepare_stamps(flows, &object)?;
    check_stamped(case, flows, &object, &job)?;
    let cycles = cycles_of_a_round(flows);
    let mut model = case.model();
    let cycle = frames_of_a_cycle(flows);
    let passed = flows.frames().take(cycle).filter(|frame| model(frame).is_some()).count();
    drop(model);
    let stamped = KernelSubject {
        name: "kernel XDP test run",
        object: Rc::new(object),
        section: "xdp.stamped",
        frames: vec![flows.ring[0].bytes.clone()],
        repeat: u32::try_from(cycle * cycles)?,
        passed: Some((passed * cycles) as u64),
    };
    let alone = KernelSubject {
        name: "kernel stamping alone",
        object: stamped.object.clone(),
        section: "xdp.stamp",
        frames: stamped.frames.clone(),
        repeat: stamped.repeat,
        passed: None,
    };
    Ok(vec![stamped, alone])
}

/// Checks the program without a prologue on the first flows.
fn check_plain(case: &dyn Case, flows: &Flows, object: &XdpObject) -> Result<()> {
    let program = object.program("xdp")?;
    let mut model = case.model();
    for (number, frame) in flows.frames().take(CHECKED_FRAMES).enumerate() {
        let run = program.test_run(&frame, 1)?;
        let is_right = match model(&frame) {
            Some(expected) => run.verdict == XDP_TX && run.frame == expected,
            None => run.verdict == XDP_DROP,
        };
        let made = hexadecimal(&run.frame);
        ensure!(is_right, "the program turns frame {number} into {made}, verdict {}", run.verdict);
    }
    Ok(())
}

fn prepare_stamps(flows: &Flows, object: &XdpObject) -> Result<()> {
    let stamps = object.map("stamps")?;
    for (number, stamp) in (0_u32..).zip(&flows.stamps) {
        stamps.update(&number.to_le_bytes(), stamp)?;
    }
    let mut state = [0; 16];
    state[4..8].copy_from_slice(&u32::try_from(flows.stamps.len())?.to_le_bytes());
    Ok(object.map("states")?.update(&[0; 4], &state)?)
}

/// Checks the program with the prologue on the first flows. The input frame is always the same, and
/// the prepended bytes are removed again.
fn check_stamped(
    case: &dyn Case,
    flows: &Flows,
    object: &XdpObject,
    job: &KernelJob,
) -> Result<()> {
    let program = object.program("xdp.stamped")?;
    let mut model = case.model();
    let count = CHECKED_FRAMES.min(flows.stamps.len());
    for (number, frame) in flows.frames().take(count).enumerate() {
        let run = program.test_run(&flows.ring[number % flows.ring.len()].bytes, 1)?;
        let is_right = match model(&frame) {
            Some(expected) => run.verdict == XDP_TX && run.frame == expected[job.growth..],
            None => run.verdict == XDP_DROP,
        };
        let verdict = run.verdict;
        ensure!(is_right, "after the prologue, frame {number} is wrong, verdict {verdict}");
    }
    Ok(())
}

impl KernelSubject {
    /// Returns the program's counter of passed frames.
    fn count_passed(&self) -> Result<u64> {
        let state = self.object.map("states")?.lookup(&[0; 4])?;
        let passed = state.get(8..16).and_then(|bytes| bytes.try_into().ok());
        Ok(u64::from_le_bytes(passed.context("the state does not have 16 bytes")?))
    }
}

impl Subject for KernelSubject {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&mut self) -> Result<Work> {
        let program = self.object.program(self.section)?;
        let before = self.passed.map(|_| self.count_passed()).transpose()?;
        let mut elapsed = Duration::ZERO;
        for frame in &self.frames {
            let run = program.test_run(frame, self.repeat)?;
            ensure!(
                [XDP_TX, XDP_DROP].contains(&run.verdict),
                "the program returned verdict {}",
                run.verdict
            );
            elapsed += Duration::from_nanos(u64::from(run.duration_ns) * u64::from(self.repeat));
        }
        if let (Some(before), Some(expected)) = (before, self.passed) {
            let passed = self.count_passed()? - before;
            ensure!(passed == expected, "the program passed {passed} frames, not {expected}");
        }
        let frames = self.frames.len() as f64 * f64::from(self.repeat);
        Ok(Work { frames, elapsed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::is_refused_for_want_of_rights;
    use crate::nf::CaseName;
    use crate::nf::subjects::flows_of;
    use freeport_testbed::skip;

    /// Checks that every program agrees with its model on many flows. Skipped only where this
    /// process may not load programs at all.
    #[test]
    fn the_kernel_does_every_case_as_the_model_does() {
        for name in CaseName::ALL {
            let case = name.make(Some(3_000));
            for frame_bytes in [64, 1_500] {
                match subjects(case.as_ref(), &flows_of(case.as_ref(), frame_bytes)) {
                    Ok(subjects) => assert!(!subjects.is_empty()),
                    Err(error) if is_refused_for_want_of_rights(&error) => {
                        skip(format_args!("{error:#}"));
                        return;
                    }
                    Err(error) => panic!("{}: {error:#}", case.name()),
                }
            }
        }
    }

    #[test]
    fn a_program_that_does_something_else_is_found_out() {
        let case = CaseName::Firewall.make(Some(3_000));
        let flows = flows_of(case.as_ref(), 64);
        // Without its rules, the program drops everything.
        let object = match XdpObject::compile(case.kernel().source, &[("stamps", 3_000)]) {
            Ok(object) => object,
            Err(error) if is_refused_for_want_of_rights(&error) => {
                skip(format_args!("{error:#}"));
                return;
            }
            Err(error) => panic!("{error:#}"),
        };
        assert!(check_plain(case.as_ref(), &flows, &object).is_err());
        prepare_stamps(&flows, &object).expect("there is room");
        assert!(check_stamped(case.as_ref(), &flows, &object, &case.kernel()).is_err());
    }
}
