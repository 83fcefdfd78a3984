// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp show`: the contents of an object, and what cannot run in user space.

use super::subject::open;
use anyhow::{Context, bail};
use clap::Args;
use freeport_ebpf::interpreter::{Environment, LoadError, Machine};
use freeport_ebpf::lift::{Ports, lift};
use freeport_ebpf::object::{MapDefinition, Object, Program, ProgramKind};
use freeport_ebpf::refusal::check;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport xdp show filter.bpf.o\n  \
    freeport xdp show filter.bpf.o --program filter --disassemble\n  \
    freeport xdp show filter.bpf.c --json\n\n\
    A source is compiled by clang-19, or by the compiler that FREEPORT_BPF_CLANG names.")]
pub struct Arguments {
    /// An object, or its source (.c)
    object: PathBuf,
    /// Print only this program
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Print the instructions with their source lines
    #[arg(long, conflicts_with = "json")]
    disassemble: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the object.
///
/// # Errors
/// A malformed object, or no program of that name.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let file = arguments.object.display();
    let (_, object) = open(&arguments.object)?;
    let is_meant =
        |program: &&Program| arguments.program.as_ref().is_none_or(|name| *name == program.name);
    let programs: Vec<&Program> = object.programs.iter().filter(is_meant).collect();
    if let (Some(name), true) = (&arguments.program, programs.is_empty()) {
        let names: Vec<&str> = object.programs.iter().map(|it| it.name.as_str()).collect();
        bail!("{file}: there is no program `{name}`; there are: {}", names.join(", "));
    }
    let refused = Machine::load(&object, Environment::default()).err();
    if arguments.json {
        let text = serde_json::to_string_pretty(&as_json(&object, &programs, refused.as_ref()));
        println!("{}", text.context("as JSON")?);
    } else if arguments.disassemble {
        programs.iter().for_each(|program| print!("{program}"));
    } else {
        print(&object, &programs, refused.as_ref());
    }
    Ok(ExitCode::SUCCESS)
}

fn print(object: &Object, programs: &[&Program], refused: Option<&LoadError>) {
    println!("license \"{}\"", object.license.escape_debug());
    for program in programs {
        let Program { name, section, kind, instructions, .. } = program;
        println!("program {name}: section {section}, {kind}, {} slots", instructions.len());
        if let Some(reason) = outside_kernel(object, program) {
            println!("    not outside the kernel: {reason}");
            continue;
        }
        reasons(program, refused).iter().for_each(|reason| println!("    not here: {reason}"));
        if let Some(reason) = not_lifted(object, program) {
            println!("    not as compiled code: {reason}");
        }
    }
    for map in &object.maps {
        let what = if map.initial.is_some() { "variables" } else { "map" };
        println!("{what} {}: {map}", map.name);
    }
    if let Some(error) = of_object(refused) {
        println!("the interpreter does not load the object: {error}");
    }
}

/// Reasons why a program cannot run in the interpreter, one for each instruction concerned.
fn reasons(program: &Program, refused: Option<&LoadError>) -> Vec<String> {
    if matches!(program.kind, ProgramKind::Other(_)) {
        return vec!["it is not an XDP program".into()];
    }
    let Some(LoadError::Unsupported(all)) = refused else { return vec![] };
    let of_it = all.iter().filter(|unsupported| unsupported.program == program.name);
    of_it.map(ToString::to_string).collect()
}

/// Why an XDP program runs only in the kernel, if so.
fn outside_kernel(object: &Object, program: &Program) -> Option<String> {
    if matches!(program.kind, ProgramKind::Other(_)) {
        return None;
    }
    check(program, &object.maps).err().map(|unsupported| unsupported.to_string())
}

/// Why an XDP program cannot become an element or compiled code, if so.
fn not_lifted(object: &Object, program: &Program) -> Option<String> {
    if matches!(program.kind, ProgramKind::Other(_)) {
        return None;
    }
    let refusal = lift(object, program, &Ports::Verdicts).err()?;
    Some(refusal.explain(program))
}

/// Why the interpreter does not load the object, if the reason is not in one program.
fn of_object(refused: Option<&LoadError>) -> Option<String> {
    let error = refused.filter(|error| !matches!(error, LoadError::Unsupported(_)));
    error.map(ToString::to_string)
}

fn as_json(object: &Object, programs: &[&Program], refused: Option<&LoadError>) -> Value {
    let program = |program: &&Program| {
        json!({
            "name": program.name,
            "section": program.section,
            "kind": program.kind.to_string(),
            "slots": program.instructions.len(),
            "refused": reasons(program, refused),
            "not_outside_kernel": outside_kernel(object, program),
            "not_lifted": not_lifted(object, program),
        })
    };
    json!({
        "license": object.license,
        "programs": programs.iter().map(program).collect::<Vec<_>>(),
        "maps": object.maps.iter().map(map_as_json).collect::<Vec<_>>(),
        "refused": of_object(refused),
    })
}

fn map_as_json(map: &MapDefinition) -> Value {
    json!({
        "name": map.name,
        "kind": map.kind.to_string(),
        "key_bytes": map.key_size,
        "value_bytes": map.value_size,
        "max_entries": map.max_entries,
        "flags": map.flags,
        "is_variables": map.initial.is_some(),
        "inner": map.inner.as_deref().map(map_as_json),
    })
}
