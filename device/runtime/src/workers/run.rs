// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run of several workers, as its caller sees it: the caller does the turns of worker 0, which
//! has the ports, until no worker has work.

use super::crew::{Crew, Job, MOST_TURNS_ALONE};
use crate::device::{Bound, DeviceError, Run, RunEnd};
use freeport_ir::{EndpointId, InstanceId, Program};
use freeport_native::RunStatus;

/// Turns in which items came from other workers, but no frame came from or went to a port, after
/// which a run returns to its caller.
const MOST_TURNS_INSIDE: u32 = 1 << 16;

/// Operations of a device on its jobs.
pub(super) trait Host<J> {
    /// Returns the loaded program.
    fn program(&self) -> &Program;

    /// Does a turn of worker 0 between the ports.
    ///
    /// # Errors
    /// A port or the device failed.
    fn turn(job: &mut J, bound: &mut Bound<'_>, run: &mut Run) -> Turn;

    /// Returns whether frames wait for a port that has no room.
    fn is_blocked(job: &J) -> bool;

    /// Returns whether frames of an input wait for the graph to take them.
    fn holds(job: &J, endpoint: EndpointId) -> bool;

    /// Returns whether anything waits in a station's job, or for it.
    fn holds_items(job: &J) -> bool;

    /// Returns the instance of the program for one of a station's job.
    fn name_of(&self, station: usize, there: InstanceId) -> InstanceId;
}

/// Status of a turn, and whether anything moved.
pub(super) type Turn = Result<(RunStatus, bool), DeviceError>;

/// Runs until no worker has work, or the caller has to act.
///
/// # Errors
/// A port or a worker failed.
pub(super) fn run<J: Job + 'static, H: Host<J>>(
    host: &H,
    crew: &Crew<J>,
    bound: &mut Bound<'_>,
) -> Result<Run, DeviceError> {
    let mut run = Run::default();
    let (mut looks, mut turns_inside) = (0, 0);
    crew.arrive();
    loop {
        // While an instance is paused at a breakpoint, no frame is received, but the rest keeps
        // running.
        let is_held = crew.held().is_some();
        let inputs = if is_held { std::mem::take(&mut bound.inputs) } else { vec![] };
        let before = run.received + run.sent;
        let turn = crew.turn(|job| H::turn(job, bound, &mut run));
        if is_held {
            bound.inputs = inputs;
        }
        let (status, has_moved) = turn?;
        if let Some((station, there)) = crew.held() {
            bound.flush(host.program())?;
            run.end = RunEnd::Breakpoint(host.name_of(station, there));
            return Ok(run);
        }
        looks = if has_moved { 0 } else { looks + 1 };
        let continues = status == RunStatus::Budget && looks < MOST_TURNS_ALONE;
        if !has_moved && !continues && crew.rests() {
            run.end = rest::<J, H>(host, crew, bound)?;
            return Ok(run);
        }
        // Turns without frames are not counted, because others work concurrently; but items that
        // circulate between workers may do so endlessly.
        let has_passed = run.received + run.sent != before;
        turns_inside = if has_passed { 0 } else { turns_inside + u32::from(has_moved) };
        let is_over = has_passed && bound.gives_way() || turns_inside == MOST_TURNS_INSIDE;
        if is_over || bound.is_pause_wanted() {
            run.end = RunEnd::Paused;
            return Ok(run);
        }
        if !has_moved && !continues {
            crew.wait(looks);
        }
    }
}

/// Determines why no worker has work.
fn rest<J: Job + 'static, H: Host<J>>(
    host: &H,
    crew: &Crew<J>,
    bound: &mut Bound<'_>,
) -> Result<RunEnd, DeviceError> {
    let is_empty_below = bound.flush(host.program())?;
    if crew.ask(0, |job| H::is_blocked(job))? || !is_empty_below {
        return Ok(RunEnd::OutputFull);
    }
    let statuses = crew.statuses();
    if statuses.iter().any(|(_, status)| *status == RunStatus::Budget) {
        return Ok(RunEnd::Paused);
    }
    if statuses.iter().any(|(_, status)| *status == RunStatus::Waiting) {
        let held = (0..crew.len()).map(|at| crew.ask(at, |job| H::holds_items(job)));
        let held: Vec<bool> = held.collect::<Result<_, _>>()?;
        return Ok(RunEnd::Waiting { holds_items: held.contains(&true) });
    }
    let stalls = stalls(statuses);
    let ids = bound.inputs.iter().map(|(id, _)| *id);
    let held = ids.map(|id| Ok((id, crew.ask(0, |job| H::holds(job, id))?)));
    let held: Vec<(EndpointId, bool)> = held.collect::<Result<_, DeviceError>>()?;
    let is_held = |id: EndpointId| held.iter().any(|(at, is_held)| *at == id && *is_held);
    Ok(match stalls {
        Some(stalls) if bound.are_inputs_over(is_held) => RunEnd::Stalled(stalls),
        _ if !bound.are_inputs_ended() => RunEnd::Idle,
        _ => RunEnd::Ended,
    })
}

/// Describes what waits for what, after the last turns of all stations.
pub(super) fn waits<J: Job + 'static>(crew: &Crew<J>) -> Option<String> {
    stalls(crew.statuses())
}

/// Formats a line for each worker in which something waits, if there is one.
fn stalls(statuses: Vec<(usize, RunStatus)>) -> Option<String> {
    let lines = statuses.into_iter().filter_map(|(worker, status)| {
        let text = match status {
            RunStatus::Idle | RunStatus::Budget | RunStatus::Waiting | RunStatus::Breakpoint(_) => {
                return None;
            }
            RunStatus::Stalled(stall) => stall.to_string(),
            RunStatus::OutputFull => "another worker accepts no more of its output".into(),
            RunStatus::RecordFull => "the recording is full".into(),
        };
        Some(format!("worker {worker}: {text}"))
    });
    let lines: Vec<String> = lines.collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}
