// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a program is loaded into.

use super::Arguments;
use anyhow::bail;
use clap::ValueEnum;
use freeport_ir::Program;
use freeport_ir::interp::{self, Schedule};
use freeport_nic::cpu::CpuDevice;
use freeport_nic::device::{Device, DeviceError};
use freeport_nic::interpreter::InterpreterDevice;
use freeport_nic::manager::Manager;

/// What runs a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Backend {
    /// Native code, made with clang-19 and kept for the next time
    Native,
    /// The reference interpreter: slow and exact
    Interpreter,
}

/// A program of any back end, by names.
pub type Managed<'p> = Manager<Box<dyn Device + 'p>>;

/// Loads a program as the arguments say.
///
/// # Errors
/// A program that the back end cannot do, or no compiler.
pub fn load<'p>(
    program: &'p Program,
    arguments: &Arguments,
) -> anyhow::Result<Box<dyn Device + 'p>> {
    let seed = arguments.seed.unwrap_or_default();
    let mut device: Box<dyn Device + 'p> = match arguments.on {
        Backend::Native => {
            let options = freeport_native::Options::default();
            match CpuDevice::load_seeded(program, &options, seed) {
                Ok(device) => Box::new(device),
                Err(error @ DeviceError::Native(freeport_native::Error::Unsupported { .. })) => {
                    bail!("{error}; add --on interpreter")
                }
                Err(error) => return Err(error.into()),
            }
        }
        Backend::Interpreter => {
            let options = interp::Options {
                schedule: arguments
                    .seed
                    .map_or(Schedule::RoundRobin, |_| Schedule::Random { seed }),
                random_seed: seed,
                ..interp::Options::default()
            };
            let mut device = InterpreterDevice::load(program, &options)?;
            // Nobody can ask for it, and a run may have no end.
            device.keep_no_record();
            Box::new(device)
        }
    };
    device.set_breakpoints_enabled(arguments.breakpoints);
    Ok(device)
}
