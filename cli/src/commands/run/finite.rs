// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A run from the beginning of its inputs to their end, without a socket for requests: at a
//! breakpoint it reads commands from standard input.

use super::device::Managed;
use super::{Arguments, name_of, print_reported};
use freeport_ir::InstanceId;
use freeport_runtime::device::{Run, RunEnd};
use freeport_runtime::server::JoinedPorts;
use std::io::BufRead;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Batches of each input after which printed and logged lines are fetched.
const TURNS: u32 = 8;

/// Runs until all inputs have ended and nothing moves.
///
/// # Errors
/// An error of the device or of a port.
pub fn run(
    manager: &mut Managed,
    ports: &mut JoinedPorts,
    arguments: &Arguments,
) -> anyhow::Result<RunEnd> {
    let mut commands = std::io::stdin().lock().lines();
    let started = Instant::now();
    let mut whole = Run::default();
    let never = AtomicBool::new(false);
    loop {
        let run = manager.run(&mut ports.ports().with_pause(TURNS, &never))?;
        whole.received += run.received;
        whole.sent += run.sent;
        match run.end {
            RunEnd::Breakpoint(instance) => {
                rest_at(manager, instance, &mut commands)?;
                manager.device_mut().resume(instance);
            }
            RunEnd::Paused if run.received + run.sent > 0 => print_reported(manager),
            RunEnd::OutputFull => ports.wait(None, &RunEnd::OutputFull)?,
            // Items are due later.
            end @ RunEnd::Waiting { holds_items: true } => {
                print_reported(manager);
                ports.wait(None, &end)?;
            }
            // An input is slower than the program.
            end @ (RunEnd::Idle | RunEnd::Paused | RunEnd::Waiting { .. })
                if ports.are_inputs_open() =>
            {
                print_reported(manager);
                ports.wait(None, &end)?;
            }
            end => {
                if end == RunEnd::Paused {
                    eprintln!("the program keeps firing without frames; the run ends here");
                }
                if arguments.time {
                    print_time(&whole, started.elapsed().as_secs_f64());
                }
                return Ok(end);
            }
        }
    }
}

fn print_time(run: &Run, seconds: f64) {
    let rate = run.received as f64 / seconds.max(1e-9);
    let (received, sent) = (run.received, run.sent);
    eprintln!("{received} frames in, {sent} out in {seconds:.6} s: {rate:.0} a second");
}

/// Carries out commands from standard input until an empty line or its end.
fn rest_at(
    manager: &mut Managed,
    instance: InstanceId,
    commands: &mut impl Iterator<Item = std::io::Result<String>>,
) -> anyhow::Result<()> {
    print_reported(manager);
    eprintln!("{} stopped; an empty line resumes", name_of(manager, instance));
    for line in commands {
        let line = line?;
        let Some(path) = line.trim().strip_prefix("print ") else {
            if line.trim().is_empty() {
                break;
            }
            eprintln!("expected `print INSTANCE.VARIABLE[INDEX]` or an empty line");
            continue;
        };
        match manager.read(path.trim()) {
            Ok(value) => println!("{} = {value}", path.trim()),
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(())
}
