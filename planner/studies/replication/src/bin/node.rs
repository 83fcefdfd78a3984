// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A place of replicated files as a process.
//!
//! Arguments: folder, place (`host`, `soc` or `peer-N`), number of backups, seed. The host prints
//! the file and number of each write that is acknowledged, and in the end what each alternative
//! carried: chunks, their bytes, and their bytes on the network.

use freeport_study_replication::primary::Carried;
use freeport_study_replication::{Alternative, node};
use freeport_study_verbs::Place;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody reads it, if it cannot be written.
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, place, backups, seed] = arguments.as_slice() else {
        return Err("give a folder, a place, the number of backups, and a seed".into());
    };
    let folder = PathBuf::from(folder);
    let place: Place = place.parse()?;
    let backups = backups.parse().map_err(|error| format!("backups, {backups}: {error}"))?;
    let seed = seed.parse().map_err(|error| format!("seed, {seed}: {error}"))?;
    let options = node::options(backups);
    options.check()?;
    let acknowledged = |file: u32, number: u64| {
        // In one piece, or not at all, if this process is killed meanwhile.
        let line = format!("{file} {number}\n");
        let mut output = std::io::stdout().lock();
        let written = output.write_all(line.as_bytes()).and_then(|()| output.flush());
        written.expect("the reader of acknowledgements outlives this process");
    };
    let counters = node::run(&folder, place, &options, seed, acknowledged);
    let counters = counters.map_err(|error| error.to_string())?;
    for alternative in Alternative::ALL {
        let Carried { chunks, raw_bytes, network_bytes } = counters.of(alternative);
        let line = format!("{alternative:?} {chunks} {raw_bytes} {network_bytes}");
        writeln!(std::io::stdout(), "{line}").map_err(|error| format!("output: {error}"))?;
    }
    Ok(())
}
