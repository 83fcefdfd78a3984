// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The worker: runs a device between its ports for as long as there may be traffic, and carries out
//! requests in between.
//!
//! A run gives way after [`TURNS`] batches, or behind the next one when a request waits. When
//! nothing moves the worker goes on looking for [`SPIN`], because the next frame of a busy link is
//! nearer than a sleep is long; then it sleeps until a port or a request wakes it.

use super::handle::Jobs;
use super::told::ToldLog;
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

/// Batches of each input between two looks at what was printed and logged.
const TURNS: u32 = 8;
/// How long requests may hold up traffic at a time. A receive ring of 4,096 frames holds what comes
/// in 270 microseconds at 10 Gb/s and the least frame size.
const SHARE: Duration = Duration::from_micros(100);
/// How long the worker looks again before it sleeps.
const SPIN: Duration = Duration::from_micros(50);
/// Sleep of a graph that goes on by itself, without frames.
const SELF_MOVING_SLEEP: Duration = Duration::from_micros(50);
/// Longest sleep: an element may wait for a time, which wakes nobody.
const LONGEST_SLEEP: Duration = Duration::from_millis(10);

/// Ports with the endpoints they are joined to.
#[derive(Default)]
pub struct JoinedPorts {
    /// Into the graph.
    pub inputs: Vec<(String, Box<dyn Receive>)>,
    /// Out of the graph.
    pub outputs: Vec<(String, Box<dyn Transmit>)>,
    /// Whether an input has no end, so that only a request ends the run, even one that stalls.
    pub is_endless: bool,
}

/// Runs a device and carries out requests.
pub struct Worker {
    manager: Manager<Box<dyn Device>>,
    ports: JoinedPorts,
    jobs: Jobs,
    control: Control,
}

/// What requests see and change beside the device.
pub(super) struct Control {
    /// What [`Request::Status`](super::Request::Status) tells of the process.
    pub about: Value,
    pub started: Instant,
    pub told: ToldLog,
    /// Instances that rest at a breakpoint.
    pub resting: BTreeSet<InstanceId>,
    pub state: &'static str,
    pub is_to_stop: bool,
}

/// Why a worker ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WorkerEnd {
    /// Every input has ended, and everything has left.
    Ended,
    /// It was asked to.
    Stopped,
    /// No input brings anything any more, and items wait in the graph for ever.
    Stalled(String),
}

/// Why a worker cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// In the device, or at a port.
    #[error(transparent)]
    Manager(#[from] ManagerError),
    /// Waiting.
    #[error("the ports cannot be waited for: {0}")]
    Wait(io::Error),
}

impl JoinedPorts {
    /// As a device takes them.
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

    /// Frames that each port has lost, by its endpoint.
    pub fn lost(&self) -> impl Iterator<Item = (&str, u64)> {
        let inputs = self.inputs.iter().map(|(endpoint, port)| (endpoint.as_str(), port.lost()));
        let outputs = self.outputs.iter().map(|(endpoint, port)| (endpoint.as_str(), port.lost()));
        inputs.chain(outputs)
    }

    /// What is to be told of the inputs once a run has ended, a line each.
    pub fn remarks(&self) -> impl Iterator<Item = String> {
        self.inputs.iter().flat_map(|(endpoint, port)| {
            port.remarks().into_iter().map(move |remark| format!("{endpoint}: {remark}"))
        })
    }

    /// Whether an input may bring more.
    pub fn are_inputs_open(&self) -> bool {
        self.inputs.iter().any(|(_, port)| !port.is_ended())
    }

    /// Sleeps until something may move again behind a run that ended so, or somebody wakes us.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub fn wait(&self, wake: Option<&Wake>, end: &RunEnd) -> io::Result<()> {
        let mut waiting = Waiting::new(wake).at_most(LONGEST_SLEEP);
        match end {
            RunEnd::OutputFull => {
                self.outputs.iter().for_each(|(_, port)| waiting.for_room(port.readiness()));
            }
            // While an instance rests, or nothing is taken, inputs are no reason to wake.
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
    /// A worker that has not begun. `about` is an object that tells clients what runs here.
    pub fn new(
        manager: Manager<Box<dyn Device>>,
        ports: JoinedPorts,
        jobs: Jobs,
        about: Value,
    ) -> Self {
        let control = Control {
            about,
            started: Instant::now(),
            told: ToldLog::default(),
            resting: BTreeSet::new(),
            state: "starting",
            is_to_stop: false,
        };
        Self { manager, ports, jobs, control }
    }

    /// The device by names and its ports, for what comes behind the run.
    pub fn into_parts(self) -> (Manager<Box<dyn Device>>, JoinedPorts) {
        (self.manager, self.ports)
    }

    /// Runs until every input has ended or somebody stops it. What has come out by then has left,
    /// as far as the ports take it.
    ///
    /// # Errors
    /// What went wrong in the device or at a port.
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
            self.control.keep_told(&mut self.manager);
            self.serve();
            if self.control.is_to_stop {
                self.flush()?;
                return Ok(WorkerEnd::Stopped);
            }
            match run.end {
                RunEnd::Ended => return Ok(WorkerEnd::Ended),
                // A request may get it going again.
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

    /// Carries out what waits, for a bounded time.
    fn serve(&mut self) {
        let Self { manager, control, jobs, ports } = self;
        jobs.serve(SHARE, |work, until| control.execute(manager, ports, work, until));
    }

    /// Pushes out what ports still hold.
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

/// What [`Request::Status`](super::Request::Status) says that it does.
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
