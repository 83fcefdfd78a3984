// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The worker: runs a device between its ports as long as there may be traffic, and executes
//! requests in between.
//!
//! A run ends after [`TURNS`] batches, or after the next one when a request waits. When nothing
//! moves the worker keeps polling for [`SPIN`], because on a busy link the next frame arrives
//! sooner than a sleeping thread wakes up; then it sleeps until a port or a request wakes it.

use super::handle::Jobs;
use super::reported::ReportLog;
use super::waiting::Waiting;
use super::wake::Wake;
use crate::device::{Device, Ports, RunEnd};
use crate::steering::{Manager, ManagerError};
use freeport_ir::InstanceId;
use freeport_port::{Receive, Transmit};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

/// Batches of each input between two checks for probe output.
const TURNS: u32 = 8;
/// Maximum time for which requests hold up traffic. A receive ring of 4,096 frames holds the frames
/// that arrive in 270 microseconds at 10 Gb/s with the minimum frame size.
const SHARE: Duration = Duration::from_micros(100);
/// Time for which the worker polls before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// Sleep of a graph that keeps running by itself, without frames.
const SELF_MOVING_SLEEP: Duration = Duration::from_micros(50);
/// Maximum sleep: an element may wait for a point in time, which wakes no thread.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

/// Ports with the endpoints that they are bound to.
#[derive(Default)]
pub struct JoinedPorts {
    /// Input ports of the graph.
    pub inputs: Vec<(String, Box<dyn Receive>)>,
    /// Output ports of the graph.
    pub outputs: Vec<(String, Box<dyn Transmit>)>,
    /// Whether an input never ends, so that only a request ends the run, even a stalled one.
    pub is_endless: bool,
}

/// Runs a device and executes requests.
pub struct Worker {
    manager: Manager<Box<dyn Device>>,
    ports: JoinedPorts,
    jobs: Jobs,
    control: Control,
}

/// State that requests read and change, apart from the device.
pub(super) struct Control {
    /// Description of the process in the answer to [`Request::Status`](super::Request::Status).
    pub about: Value,
    pub started: Instant,
    pub reported: ReportLog,
    /// Instances paused at a breakpoint.
    pub resting: BTreeSet<InstanceId>,
    pub state: &'static str,
    pub is_to_stop: bool,
}

/// Reason why a worker ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkerEnd {
    /// Every input has ended, and everything has been sent.
    Ended,
    /// A request stopped it.
    Stopped,
    /// No input delivers anything any more, and items wait in the graph indefinitely.
    Stalled(String),
}

/// Errors that end a worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The device or a port failed.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// Waiting for the ports failed.
    #[error("waiting for the ports failed: {0}")]
    Wait(io::Error),
}

impl JoinedPorts {
    /// Returns the ports as a device takes them.
    pub fn ports(&mut self) -> Ports<'_> {
        let mut ports = Ports::new();
        for (endpoint, port) in &mut self.inputs {
            ports = ports.with_input(endpoint, port);
        }
        for (endpoint, port) in &mut self.outputs {
            ports = ports.with_output(endpoint, port);
        }
        ports
    }

    /// Returns the frames that each port has lost, by its endpoint.
    pub fn lost(&self) -> impl Iterator<Item = (&str, u64)> {
        let inputs = self.inputs.iter().map(|(endpoint, port)| (endpoint.as_str(), port.lost()));
        let outputs = self.outputs.iter().map(|(endpoint, port)| (endpoint.as_str(), port.lost()));
        inputs.chain(outputs)
    }

    /// Returns remarks about the inputs for the end of a run, one per line.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.inputs.iter().flat_map(|(endpoint, port)| {
            port.remarks().into_iter().map(move |remark| format!("{endpoint}: {remark}"))
        })
    }

    /// Returns whether an input may deliver more frames.
    pub fn are_inputs_open(&self) -> bool {
        self.inputs.iter().any(|(_, port)| !port.is_ended())
    }

    /// Sleeps until something may move again after a run with this end, or another thread wakes the
    /// worker.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn wait(&self, wake: Option<&Wake>, end: &RunEnd) -> io::Result<()> {
        let mut waiting = Waiting::new(wake).at_most(LONGEST_SLEEP);
        match end {
            RunEnd::OutputFull => {
                self.outputs.iter().for_each(|(_, port)| waiting.for_room(port.readiness()));
            }
            // While an instance is paused, or nothing is taken, inputs need not wake the worker.
            RunEnd::Breakpoint(_) | RunEnd::Stalled(_) => {}
            _ => {
                let open = self.inputs.iter().filter(|(_, port)| !port.is_ended());
                open.for_each(|(_, port)| waiting.for_frames(port.readiness()));
            }
        }
        if matches!(end, RunEnd::Paused | RunEnd::Waiting { .. }) {
            waiting = waiting.at_most(SELF_MOVING_SLEEP);
        }
        waiting.wait()
    }
}

impl Worker {
    /// Creates a worker that has not started. `about` is an object that describes the process to
    /// clients.
    pub fn new(
        manager: Manager<Box<dyn Device>>,
        ports: JoinedPorts,
        jobs: Jobs,
        about: Value,
    ) -> Self {
        let control = Control {
            about,
            started: Instant::now(),
            reported: ReportLog::default(),
            resting: BTreeSet::new(),
            state: "starting",
            is_to_stop: false,
        };
        Self { manager, ports, jobs, control }
    }

    /// Returns the manager and the ports, for use after the run.
    pub fn into_parts(self) -> (Manager<Box<dyn Device>>, JoinedPorts) {
        (self.manager, self.ports)
    }

    /// Runs until every input has ended or a request stops it. All output up to then has been sent,
    /// as far as the ports accept it.
    ///
    /// # Errors
    /// The device or a port failed.
    pub fn run(&mut self) -> Result<WorkerEnd, WorkerError> {
        let mut moved_at = Instant::now();
        loop {
            let wake = self.jobs.wake().clone();
            let mut ports = self.ports.ports().with_pause(TURNS, wake.flag());
            let run = self.manager.run(&mut ports)?;
            let has_moved = run.received + run.sent > 0;
            if has_moved {
                moved_at = Instant::now();
            }
            self.control.state = state(&run.end, has_moved);
            self.control.keep_reported(&mut self.manager);
            self.serve();
            if self.control.is_to_stop {
                self.flush()?;
                return Ok(WorkerEnd::Stopped);
            }
            match run.end {
                RunEnd::Ended => return Ok(WorkerEnd::Ended),
                // A request may make it continue.
                RunEnd::Stalled(report) if !self.ports.is_endless => {
                    return Ok(WorkerEnd::Stalled(report));
                }
                RunEnd::Breakpoint(instance) if self.control.resting.insert(instance) => {}
                _ if has_moved => {}
                RunEnd::Idle | RunEnd::Paused | RunEnd::Waiting { .. }
                    if moved_at.elapsed() < SPIN =>
                {
                    std::hint::spin_loop()
                }
                end => self.ports.wait(Some(&wake), &end).map_err(WorkerError::Wait)?,
            }
        }
    }

    /// Executes waiting requests, for a bounded time.
    fn serve(&mut self) {
        let Self { manager, control, jobs, ports } = self;
        jobs.serve(SHARE, |work, until| control.execute(manager, ports, work, until));
    }

    /// Flushes the frames that ports still hold.
    fn flush(&mut self) -> Result<(), WorkerError> {
        for (endpoint, port) in &mut self.ports.outputs {
            port.flush().map_err(|source| {
                let endpoint = endpoint.clone();
                ManagerError::from(crate::device::DeviceError::Port { endpoint, source })
            })?;
        }
        Ok(())
    }
}

/// Returns the state shown in the answer to [`Request::Status`](super::Request::Status).
fn state(end: &RunEnd, has_moved: bool) -> &'static str {
    match end {
        RunEnd::Breakpoint(_) => "at a breakpoint",
        RunEnd::OutputFull => "waiting for an output",
        RunEnd::Stalled(_) => "stalled",
        RunEnd::Ended => "ended",
        RunEnd::Idle if !has_moved => "idle",
        RunEnd::Idle | RunEnd::Paused | RunEnd::Waiting { .. } => "running",
    }
}
