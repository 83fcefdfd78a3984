// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Devices that programs are loaded into.

use anyhow::bail;
use clap::ValueEnum;
use freeport_ir::Program;
use freeport_ir::interp::{self, Schedule};
use freeport_runtime::cpu::CpuDevice;
use freeport_runtime::device::{Device, DeviceError};
use freeport_runtime::interpreter::InterpreterDevice;
use freeport_runtime::placement::Placement;
use freeport_runtime::steering::Manager;
use freeport_runtime::workers::{Replicas, WorkersDevice};
use std::sync::Arc;

/// A back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Backend {
    /// Native code, compiled by clang-19 and cached
    Native,
    /// The reference interpreter, which is slow and exact
    Interpreter,
}

/// The manager of a program on any back end.
pub type Managed = Manager<Box<dyn Device>>;

/// How a program is loaded, at the start and when another one replaces it.
#[derive(Clone, Debug)]
pub struct How {
    /// The back end.
    pub on: Backend,
    /// How native code is compiled.
    pub options: freeport_native::Options,
    /// Seed of random numbers and, in the interpreter, of the order of firings.
    pub seed: Option<u64>,
    /// Whether instances stop at breakpoints.
    pub has_breakpoints: bool,
}

/// Loads a program.
///
/// # Errors
/// A program that the back end does not support, or a missing compiler.
pub fn load(program: Program, how: &How) -> anyhow::Result<Box<dyn Device + Send>> {
    let program = Arc::new(program);
    let seed = how.seed.unwrap_or_default();
    let mut device: Box<dyn Device + Send> = match how.on {
        Backend::Native => match CpuDevice::load_seeded(program, &how.options, seed) {
            Ok(device) => Box::new(device),
            Err(error @ DeviceError::Native(freeport_native::Error::Unsupported { .. })) => {
                bail!("{error}; add --on interpreter")
            }
            Err(error) => return Err(error.into()),
        },
        Backend::Interpreter => {
            let options = interp::Options {
                schedule: how.seed.map_or(Schedule::RoundRobin, |_| Schedule::Random { seed }),
                random_seed: seed,
                clock: interp::Clock::Measured(freeport_runtime::clock::monotonic_ns),
                ..interp::Options::default()
            };
            let mut device = InterpreterDevice::load(program, &options)?;
            // The record is not accessible here, and would grow without limit.
            device.keep_no_record();
            Box::new(device)
        }
    };
    device.set_breakpoints_enabled(how.has_breakpoints);
    Ok(device)
}

/// How a program is spread over several workers.
pub enum Spread<'a> {
    /// Each worker runs the instances that are placed on it.
    Placed(&'a Placement),
    /// Each worker runs a copy of the program; the number of copies.
    Copies(usize),
}

/// Loads a program on several workers.
///
/// # Errors
/// A placement that does not fit the program, one that the back end does not support, or a missing
/// compiler.
pub fn load_spread(
    program: Program,
    spread: &Spread<'_>,
    cores: &[usize],
    how: &How,
) -> anyhow::Result<Box<dyn Device>> {
    if how.on == Backend::Interpreter {
        bail!("the interpreter runs on one worker: omit --place and --workers, or --on");
    }
    let (options, seed) = (&how.options, how.seed.unwrap_or_default());
    let program = Arc::new(program);
    let mut device: Box<dyn Device> = match spread {
        Spread::Placed(placement) => {
            let workers = placement.workers(&program)?;
            Box::new(WorkersDevice::load(program, &workers, cores, options, seed)?)
        }
        Spread::Copies(count) => Box::new(Replicas::load(program, *count, cores, options, seed)?),
    };
    device.set_breakpoints_enabled(how.has_breakpoints);
    Ok(device)
}
