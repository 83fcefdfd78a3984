// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp compile`: programs as rows for the small processor of `docs/internals/vliw.md`,
//! and how good
//! they are.

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
    A source is compiled by clang-19, or by what FREEPORT_BPF_CLANG names.")]
pub struct Arguments {
    /// An object, or its source (.c)
    object: PathBuf,
    /// Only this program
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Give a map another size, where the loader is to set it; may be given several times
    #[arg(long, value_name = "NAME=ENTRIES")]
    map_size: Vec<MapSize>,
    /// How many operations a row may hold
    #[arg(long, value_name = "NUMBER", default_value_t = Machine::default().lanes,
          value_parser = clap::value_parser!(u8).range(super::lanes()))]
    lanes: u8,
    /// Leave out this pass; may be given several times, or several with commas
    #[arg(long, value_name = "PASS", value_delimiter = ',', value_parser = pass)]
    without: Vec<&'static str>,
    /// Keep each instruction as it is, and only place it in a row
    #[arg(long)]
    keep_all: bool,
    /// Print the rows, behind the source lines that they come from
    #[arg(long)]
    rows: bool,
    /// Print what each pass and each lane is good for
    #[arg(long)]
    passes: bool,
    /// Draw the rows of a program
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A program, and what became of it.
struct Compiled<'o> {
    program: &'o Program,
    report: Report,
    /// If they are asked for.
    effects: Option<Effects>,
}

/// Compiles, and prints what came of it. Programs that can be compiled are told of though others
/// cannot.
///
/// # Errors
/// What is wrong with the object, no program of that name, what a program has that the processor
/// has not, or a picture that cannot be written.
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
        let told = json!({
            "programs": programs.collect::<Vec<_>>(),
            "refused": refused.iter().map(json::refusal).collect::<Vec<_>>(),
        });
        println!("{}", serde_json::to_string_pretty(&told).context("as JSON")?);
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

/// The XDP programs that are meant.
fn choose<'o>(object: &'o Object, arguments: &Arguments) -> anyhow::Result<Vec<&'o Program>> {
    let is_xdp = |program: &&Program| !matches!(program.kind, ProgramKind::Other(_));
    let all: Vec<&Program> = object.programs.iter().filter(is_xdp).collect();
    let names: Vec<&str> = all.iter().map(|program| program.name.as_str()).collect();
    let names = names.join(", ");
    if all.is_empty() {
        bail!("there is no XDP program in it");
    }
    if arguments.svg.is_some() && arguments.program.is_none() && all.len() > 1 {
        bail!("--svg draws one program; say which with --program; there are: {names}");
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
