// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The report of a compiled program as text.

use super::Compiled;
use freeport_ebpf::object::Program;
use freeport_vliw::image::{Image, Row};
use freeport_vliw::report::{Effect, Effects, Report, Size};
use std::fmt::Write;

/// The report, with the rows if they are requested.
pub fn program(compiled: &Compiled, has_rows: bool) -> String {
    let mut out = summary(&compiled.report);
    if let Some(effects) = &compiled.effects {
        out += &self::effects(effects, &compiled.report);
    }
    if has_rows {
        out += &rows(&compiled.report.image, compiled.program);
    }
    out
}

fn summary(report: &Report) -> String {
    let Report { image, instructions, size, critical_rows, rows_by_lanes, functions } = report;
    let (name, lanes) = (&image.name, image.machine.lanes);
    let plural = if lanes == 1 { "" } else { "s" };
    let mut out = format!("program `{name}` for {lanes} lane{plural}\n\n");
    let _ = writeln!(out, "eBPF instructions  {instructions:>6}");
    let _ = writeln!(out, "operations         {:>6}", size.operations);
    let _ = writeln!(
        out,
        "rows               {:>6}; dependences alone would need {critical_rows}",
        size.rows
    );
    let _ = writeln!(out, "operations per row {:>6.2}", size.operations_per_row());
    out += "\nlanes used   rows\n";
    for (lanes, rows) in rows_by_lanes.iter().enumerate() {
        let _ = writeln!(out, "{lanes:>10} {rows:>6}");
    }
    if functions.len() > 1 {
        out += "\nfunction                   rows\n";
        for (name, rows) in functions {
            let _ = writeln!(out, "{name:<24} {rows:>6}");
        }
    }
    out
}

fn effects(effects: &Effects, report: &Report) -> String {
    let mut out = table("passes, one after the other");
    out += &line("every instruction kept", &effects.keeping_all);
    effects.cumulative.iter().for_each(|it| out += &effect("with", it));
    out += &table("all passes but one");
    effects.without.iter().for_each(|it| out += &effect("without", it));
    out += &table("passes as requested");
    for (lanes, size) in &effects.lanes {
        let mark = if *lanes == report.image.machine.lanes { " *" } else { "" };
        out += &line(&format!("lanes: {lanes}{mark}"), size);
    }
    out
}

fn table(title: &str) -> String {
    format!("\n{title:<28} operations   rows  per row\n")
}

fn effect(word: &str, effect: &Effect) -> String {
    line(&format!("{word} {}", effect.pass), &effect.size)
}

fn line(name: &str, size: &Size) -> String {
    let Size { rows, operations } = size;
    format!("{name:<28} {operations:>10} {rows:>6} {:>8.2}\n", size.operations_per_row())
}

/// The schedule. Source lines precede a row unless the previous row comes from them too.
fn rows(image: &Image, program: &Program) -> String {
    let mut out = String::from("\n");
    let text = image.to_string();
    let mut lines = text.lines();
    let mut before = vec![];
    for (number, row) in image.rows.iter().enumerate() {
        let begins = image.functions.iter().any(|function| function.row == number);
        if begins && let Some(heading) = lines.next() {
            let _ = writeln!(out, "{heading}");
        }
        let sources = sources(row, program);
        for source in sources.iter().filter(|source| !before.contains(*source)) {
            let _ = writeln!(out, "      // {source}");
        }
        if let Some(line) = lines.next() {
            let _ = writeln!(out, "{line}");
        }
        before = sources;
    }
    out
}

/// The source lines of a row, each once.
fn sources(row: &Row, program: &Program) -> Vec<String> {
    let mut sources = vec![];
    for origin in row.slots().flat_map(|(_, slot)| &slot.origins) {
        let Some(line) = program.line(*origin) else { continue };
        let source = format!("{}:{}: {}", line.file, line.line, line.text.trim());
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    sources
}
