// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp compile`: compiles programs to rows of the small processor of
//! `docs/internals/vliw.md`, and reports the quality of the schedule.

mod json;
mod text;

use super::subject::open;
use anyhow::{Context, bail};
use clap::Args;
use freeport_ebpf::analysis::Analysis;
use freeport_ebpf::object::{Object, Program, ProgramKind};
use freeport_vliw::machine::Machine;
use freeport_vliw::report::{Effects, Report};
use freeport_vliw::{Options, PASSES, Unsupported};
use freeport_xdp::{MapSize, prepare};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport xdp compile filter.bpf.o\n  \
    freeport xdp compile filter.bpf.c --lanes 2 --without bounds,zeroing --rows\n  \
    freeport xdp compile filter.bpf.c --program filter --svg filter.svg\n  \
    freeport xdp compile filter.bpf.c --passes\n\n\
    A source is compiled by clang-19, or by the compiler that FREEPORT_BPF_CLANG names.")]
pub struct Arguments {
    /// An object, or its source (.c)
    object: PathBuf,
    /// Compile only this program
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Set the size of a map whose size the loader has to set; may be repeated
    #[arg(long, value_name = "NAME=ENTRIES")]
    map_size: Vec<MapSize>,
    /// Number of operations per row
    #[arg(long, value_name = "NUMBER", default_value_t = Machine::default().lanes,
          value_parser = clap::value_parser!(u8).range(super::lanes()))]
    lanes: u8,
    /// Leave out these passes; may be repeated
    #[arg(long, value_name = "PASS", value_delimiter = ',', value_parser = pass)]
    without: Vec<&'static str>,
    /// Place each instruction in a row without optimizing it
    #[arg(long)]
    keep_all: bool,
    /// Print the rows, each after its source lines
    #[arg(long)]
    rows: bool,
    /// Print the effect of each pass and of each lane
    #[arg(long)]
    passes: bool,
    /// Draw the rows of a program as SVG
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A compiled program.
struct Compiled<'o> {
    program: &'o Program,
    report: Report,
    /// With `--passes`.
    effects: Option<Effects>,
}

/// Compiles the programs and prints the reports. If some programs cannot be compiled, the rest are
/// still reported.
///
/// # Errors
/// A malformed object, no program of that name, a program that the processor does not support, or a
/// drawing that cannot be written.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let file = arguments.object.display();
    let (_, mut object) = open(&arguments.object)?;
    prepare(&mut object, &arguments.map_size, &[], vec![]).with_context(|| file.to_string())?;
    let programs = choose(&object, arguments).with_context(|| file.to_string())?;
    let (mut compiled, mut refused) = (vec![], vec![]);
    for program in programs {
        match compile(&object, program, arguments) {
            Ok(done) => compiled.push(done),
            Err(unsupported) => refused.push(unsupported),
        }
    }
    if let Some(path) = &arguments.svg {
        for Compiled { program, report, .. } in &compiled {
            std::fs::write(path, freeport_vliw::svg::svg(&report.image, program))
                .with_context(|| format!("{}: cannot be written", path.display()))?;
        }
    }
    if arguments.json {
        let programs = compiled.iter().map(|it| json::program(it, arguments.rows));
        let reported = json!({
            "programs": programs.collect::<Vec<_>>(),
            "refused": refused.iter().map(json::refusal).collect::<Vec<_>>(),
        });
        println!("{}", serde_json::to_string_pretty(&reported).context("as JSON")?);
    } else {
        let texts: Vec<String> =
            compiled.iter().map(|it| text::program(it, arguments.rows)).collect();
        print!("{}", texts.join("\n"));
    }
    if refused.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let reasons: Vec<String> = refused.iter().map(Unsupported::to_string).collect();
    bail!("{file}: the processor cannot run {}", reasons.join("; "));
}

/// The selected XDP programs.
fn choose<'o>(object: &'o Object, arguments: &Arguments) -> anyhow::Result<Vec<&'o Program>> {
    let is_xdp = |program: &&Program| !matches!(program.kind, ProgramKind::Other(_));
    let all: Vec<&Program> = object.programs.iter().filter(is_xdp).collect();
    let names: Vec<&str> = all.iter().map(|program| program.name.as_str()).collect();
    let names = names.join(", ");
    if all.is_empty() {
        bail!("there is no XDP program in it");
    }
    if arguments.svg.is_some() && arguments.program.is_none() && all.len() > 1 {
        bail!("--svg draws one program; choose one with --program; there are: {names}");
    }
    let Some(name) = &arguments.program else { return Ok(all) };
    match all.iter().find(|program| program.name == *name) {
        Some(program) => Ok(vec![program]),
        None => bail!("there is no XDP program `{name}`; there are: {names}"),
    }
}

fn compile<'o>(
    object: &Object,
    program: &'o Program,
    arguments: &Arguments,
) -> Result<Compiled<'o>, Unsupported> {
    let mut options = if arguments.keep_all { Options::keeping_all() } else { Options::default() };
    options.machine.lanes = arguments.lanes;
    for name in &arguments.without {
        if let Some(switch) = options.pass_mut(name) {
            *switch = false;
        }
    }
    let analysis = Analysis::of(program, &object.maps).map_err(|malformed| Unsupported {
        program: program.name.clone(),
        slot: malformed.slot,
        reason: malformed.reason,
    })?;
    let report = Report::of(program, &analysis, &options)?;
    let effects =
        arguments.passes.then(|| Effects::of(program, &analysis, &options)).transpose()?;
    Ok(Compiled { program, report, effects })
}

/// A pass by its name.
fn pass(name: &str) -> Result<&'static str, String> {
    let found = PASSES.into_iter().find(|pass| *pass == name);
    found.ok_or_else(|| format!("there is no such pass; there are: {}", PASSES.join(", ")))
}
