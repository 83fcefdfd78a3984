// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport kv bench`: a load on a running server.

use crate::progress::ProgressLine;
use crate::stopping::stop_signals;
use anyhow::Context;
use clap::Args;
use freeport_bench::kv::live;
use std::fs::File;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport kv bench --mix b --value 100\n  \
                  freeport kv bench --protocol memcached --address 127.0.0.1:11211\n  \
                  freeport kv bench --fabric /tmp/kv --pipeline 256 --json\n\n\
                  Every reply is checked: a wrong one ends the load, and the exit status is 1. \
                  Ctrl-C prints what was measured until then. The keys remain in the server. They \
                  are numbers such as 00000042; values that other programs have stored under \
                  such keys are overwritten.")]
pub struct Arguments {
    #[command(flatten)]
    load: live::Arguments,
}

/// Runs the load, and prints the result.
///
/// # Errors
/// Nothing listens, or the options contradict each other.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut signals = File::from(stop_signals().context("cannot receive signals")?);
    let is_stopped = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&is_stopped);
    // It ends with the process.
    thread::spawn(move || {
        let mut signal = [0; 128];
        if signals.read(&mut signal).is_ok() {
            stop.store(true, Ordering::Relaxed);
        }
    });
    let mut progress = ProgressLine::default();
    let output = live::run(&arguments.load, &mut |step| {
        progress.tell(step);
        !is_stopped.load(Ordering::Relaxed)
    })?;
    drop(progress);
    print!("{}", output.text);
    for failure in &output.failures {
        eprintln!("freeport: {failure}");
    }
    let is_well = output.failures.is_empty();
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
