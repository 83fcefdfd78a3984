// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a program is loaded into.

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

/// What runs a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Backend {
    /// Native code, made with clang-19 and kept for the next time
    Native,
    /// The reference interpreter: slow and exact
    Interpreter,
}

/// A program of any back end, by names.
pub type Managed = Manager<Box<dyn Device>>;

/// How a program is loaded, now and when another replaces it.
#[derive(Clone, Debug)]
pub struct How {
    /// What runs it.
    pub on: Backend,
    /// How native code is made.
    pub options: freeport_native::Options,
    /// Of random numbers, and on the interpreter of the order of firings.
    pub seed: Option<u64>,
    /// Whether instances rest at breakpoints.
    pub has_breakpoints: bool,
}

/// Loads a program.
///
/// # Errors
/// A program that the back end cannot do, or no compiler.
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
            // Nobody can ask for it, and a run may have no end.
            device.keep_no_record();
            Box::new(device)
        }
    };
    device.set_breakpoints_enabled(how.has_breakpoints);
    Ok(device)
}

/// What several workers do.
pub enum Spread<'a> {
    /// Each runs the instances that are placed on it.
    Placed(&'a Placement),
    /// Each runs a copy of the program: so many.
    Copies(usize),
}

/// Loads a program on several workers.
///
/// # Errors
/// A placement that does not fit the program, and as for `load`.
pub fn load_spread(
    program: Program,
    spread: &Spread<'_>,
    cores: &[usize],
    how: &How,
) -> anyhow::Result<Box<dyn Device>> {
    if how.on == Backend::Interpreter {
        bail!("the interpreter runs on one worker: leave --place, --workers or --on away");
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
