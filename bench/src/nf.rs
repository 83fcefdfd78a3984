// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport bench nf`: network functions on one core, beside the kernel's XDP doing the same.
//!
//! Case `forward` is the graph `from_tor -> MacSwap -> to_tor`. Freeport's figure is of the whole
//! path: the generator lends batches, the device runs the graph on each frame, the sink takes them.

mod forward;

use crate::Output;
use crate::harness::alternate;
use crate::machine::{Machine, pin_to_one_core};
use crate::plot;
use crate::report::{CaseResult, csv};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};

/// Measures network functions in memory, beside the kernel's XDP and the bare copy of the frames
///
/// Example: freeport bench nf --case forward --rounds 15 --out results
#[derive(Clone, Debug, clap::Args)]
#[group(skip)]
pub struct Arguments {
    /// Which network function; all of them by default
    #[arg(long, value_enum)]
    pub case: Option<Case>,
    /// Print one JSON object a line
    #[arg(long)]
    pub json: bool,
    /// How often each subject is measured
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
    /// Also write nf.csv and nf.svg to this folder
    #[arg(long)]
    pub out: Option<PathBuf>,
}

/// A network function.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Case {
    /// Exchange the Ethernet addresses and send the frame back
    Forward,
}

/// Measures.
///
/// # Errors
/// What kept Freeport from running. A peer that cannot run is named, with the reason, and left out.
pub fn run(arguments: &Arguments) -> Result<Output> {
    let cases = arguments.case.map_or_else(|| vec![Case::Forward], |case| vec![case]);
    // Before the process stays on one core: that would be all the cores it sees.
    let machine = Machine::describe();
    let core = pin_to_one_core();
    let mut results = vec![];
    for case in cases {
        match case {
            Case::Forward => {
                let program = forward::program()?;
                for frame_bytes in forward::FRAME_BYTES {
                    let mut prepared = forward::prepare(&program, frame_bytes)?;
                    let rounds = arguments.rounds as usize;
                    let measurements = alternate(&mut prepared.subjects, rounds)?;
                    let mut notes = prepared.notes;
                    notes.push(pinned(core));
                    if cfg!(debug_assertions) {
                        notes.push("a build without optimization: do not quote this".into());
                    }
                    results.push(CaseResult {
                        bench: "nf".into(),
                        case: "forward".into(),
                        frame_bytes,
                        measurements,
                        notes,
                    });
                }
            }
        }
    }
    if let Some(folder) = &arguments.out {
        write(folder, &results, &machine)?;
    }
    print(&results, &machine, arguments.json)
}

fn pinned(core: Option<usize>) -> String {
    match core {
        Some(core) => format!("everything ran on core {core}, in turn"),
        None => "the system did not let this process stay on one core".into(),
    }
}

/// Lines for programs stand alone; what people need to know goes beside them.
fn print(results: &[CaseResult], machine: &Machine, as_json: bool) -> Result<Output> {
    let mut output = Output::default();
    if !as_json {
        for result in results {
            output.text += &(result.text() + "\n");
        }
        let place = format!("{}; commit {}; {}\n", machine.machine, machine.commit, machine.date);
        output.text += &place;
        return Ok(output);
    }
    for result in results {
        for line in result.lines() {
            output.text += &(serde_json::to_string(&line)? + "\n");
        }
        for note in &result.notes {
            output.notes +=
                &format!("{} {} {} B: {note}\n", result.bench, result.case, result.frame_bytes);
        }
    }
    Ok(output)
}

fn write(folder: &Path, results: &[CaseResult], machine: &Machine) -> Result<()> {
    let save = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
    };
    ensure!(!folder.is_file(), "{} is a file, not a folder", folder.display());
    std::fs::create_dir_all(folder)
        .with_context(|| format!("{} cannot be made", folder.display()))?;
    save("nf.csv", csv(results, machine))?;
    save("nf.svg", plot::svg("Network functions in memory, one core", results, machine))
}
