// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The explanation of a program as text.

use super::Explained;
use super::count::Counted;
use crate::table::Table;
use freeport_card::{RowCycles, SPENT_ON};
use freeport_ebpf::instruction::decode;
use freeport_ebpf::object::{Line, Program};
use freeport_vliw::fate::{Fate, Kind, Place};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Maximum number of characters of a cell.
const WIDEST: usize = 56;
/// Maximum number of places that are named for an instruction.
const NAMED_PLACES: usize = 2;
/// Percentage of cycles that one mark of a hot row stands for.
const PERCENT_PER_MARK: f64 = 5.0;

/// The whole explanation.
pub(super) fn of(explained: &Explained<'_>) -> String {
    let Explained { program, schedule, image, fates, counted } = explained;
    let (name, instructions) = (&program.name, fates.len());
    let (operations, rows, lanes) = (image.operations(), image.rows.len(), image.machine.lanes);
    let profile = match schedule.is_profiled() {
        true => ", scheduled for the ways of these packets",
        false => "",
    };
    let mut out = format!(
        "program `{name}`: {instructions} instructions, {operations} operations in {rows} rows of \
         {lanes} lanes{profile}\n"
    );
    if let Some(reason) = schedule.left_out() {
        let _ = writeln!(out, "the schedule for the ways of these packets is left out: {reason}");
    }
    out += "\n";
    out += &instructions_table(explained);
    if let Some(counted) = counted {
        out += &rows_table(explained, counted);
        out += &sum(counted);
    }
    out
}

/// The table of instructions.
fn instructions_table(explained: &Explained<'_>) -> String {
    let Explained { program, fates, counted, .. } = explained;
    let heads = ["source", "instruction", "where", "cycles/packet"];
    let heads = if counted.is_some() { heads } else { [heads[0], heads[1], heads[2], ""] };
    let mut table = Table::new(heads, WIDEST);
    let mut functions = program.functions.iter().peekable();
    let (mut line, mut reported) = (None, BTreeSet::new());
    for fate in fates {
        if let Some(function) = functions.next_if(|function| function.slot <= fate.slot) {
            table.head(format!("{}:", function.name));
            line = None;
        }
        let found = program.line(fate.slot).map(|line| (line.file.as_str(), line.line));
        let source = match program.line(fate.slot) {
            Some(of) if found != line => source(of),
            _ => String::new(),
        };
        line = found;
        let cycles = counted
            .as_ref()
            .map_or_else(String::new, |counted| cycles(counted, fate, &mut reported));
        table.add([source, instruction(program, fate.slot), place(fate), cycles]);
    }
    table.text(" | ", [false, false, false, true])
}

/// A source line with its place.
pub fn source(line: &Line) -> String {
    let file = Path::new(&line.file)
        .file_name()
        .map_or(line.file.as_ref(), |it| it.to_str().unwrap_or("?"));
    format!("{file}:{}  {}", line.line, line.text.trim())
}

/// An instruction with its number, as in a disassembly.
pub fn instruction(program: &Program, slot: usize) -> String {
    match decode(&program.instructions, slot) {
        Ok(operation) => format!("{slot}: {operation}"),
        Err(invalid) => format!("{slot}: // {invalid}"),
    }
}

/// Where an instruction went.
fn place(fate: &Fate) -> String {
    let by = |text: &str| match fate.pass {
        Some(pass) => format!("{text} by {pass}"),
        None => text.to_owned(),
    };
    match &fate.kind {
        Kind::Unreached => "never reached".into(),
        Kind::Gone if fate.pass.is_none() => "no row: falls through".into(),
        Kind::Gone => by("removed"),
        Kind::Placed { places, partners } => {
            let named = |Place { row, lane }: &Place| format!("row {row} lane {lane}");
            let named: Vec<String> = places.iter().take(NAMED_PLACES).map(named).collect();
            let mut text = named.join(", ");
            if places.len() > NAMED_PLACES {
                let _ = write!(text, " and {} more", places.len() - NAMED_PLACES);
            }
            if !partners.is_empty() {
                let slots: Vec<String> = partners.iter().map(ToString::to_string).collect();
                text = by(&format!("{text}, one with {}", slots.join(" ")));
            }
            text
        }
    }
}

/// Cycles of the rows of an instruction; those of each row are shown only at its first instruction.
fn cycles(counted: &Counted, fate: &Fate, reported: &mut BTreeSet<usize>) -> String {
    let Kind::Placed { places, .. } = &fate.kind else { return String::new() };
    let rows: BTreeSet<usize> = places.iter().map(|place| place.row).collect();
    let new: Vec<usize> = rows.into_iter().filter(|row| reported.insert(*row)).collect();
    if new.is_empty() {
        return "\"".into();
    }
    let all = new.iter().filter_map(|row| counted.rows.get(*row)).map(RowCycles::sum).sum();
    format!("{:.1}", counted.per_packet(all))
}

/// The table of rows, with marks for hot ones.
fn rows_table(explained: &Explained<'_>, counted: &Counted) -> String {
    let mut heads = [""; 12];
    heads[..4].copy_from_slice(&["row", "executed", "cycles", "%"]);
    heads[4..10].copy_from_slice(&SPENT_ON);
    heads[10..].copy_from_slice(&["", "operations"]);
    let mut table = Table::new(heads, WIDEST);
    for (number, (row, spent)) in explained.image.rows.iter().zip(&counted.rows).enumerate() {
        let percent = counted.percent(spent.sum());
        let marks = "#".repeat((percent / PERCENT_PER_MARK).round() as usize);
        let operations: Vec<String> =
            row.slots().map(|(_, slot)| slot.operation.to_string()).collect();
        let mut cells: [String; 12] = Default::default();
        cells[0] = number.to_string();
        cells[1] = format!("{:.2}", counted.per_packet(spent.executed));
        cells[2] = format!("{:.2}", counted.per_packet(spent.sum()));
        cells[3] = format!("{percent:.1}");
        for (cell, cycles) in cells[4..10].iter_mut().zip(spent.cycles) {
            *cell = match cycles {
                0 => "-".into(),
                _ => format!("{:.2}", counted.per_packet(cycles)),
            };
        }
        cells[10] = marks;
        cells[11] = operations.join("; ");
        table.add(cells);
    }
    let mut is_right = [true; 12];
    (is_right[10], is_right[11]) = (false, false);
    let what = "\nper packet: executions of each row, and its cycles: its own, and those waiting \
        for memory,\nfor a helper, for long arithmetic, for the row before it (order) and after a \
        taken jump\n";
    format!("{what}{}", table.text("  ", is_right))
}

/// The totals of cycles, by cause.
fn sum(counted: &Counted) -> String {
    let rows: u64 = counted.rows.iter().map(RowCycles::sum).sum();
    let mut out = String::from("\ncycles per packet, simulated:\n");
    let mut line = |what: &str, cycles: u64| {
        let (mean, percent) = (counted.per_packet(cycles), counted.percent(cycles));
        let _ = writeln!(out, "  {what:<44} {mean:>9.2} {percent:>6.1} %");
    };
    line("rows", rows);
    line("first rows on their way to execute", counted.begin);
    line("no packet in work", counted.idle);
    counted.elsewhere.iter().for_each(|(name, cycles)| line(&format!("rows of `{name}`"), *cycles));
    line("together", counted.total);
    let Counted { packets, total, refused, .. } = counted;
    let _ = writeln!(out, "{total} cycles for {packets} packets without a gap");
    if *refused > 0 {
        let lengths = freeport_card::Sim::LENGTHS;
        let (least, most) = (lengths.start(), lengths.end());
        let _ = writeln!(
            out,
            "{refused} packets are left out, since the card takes {least} to {most} bytes"
        );
    }
    out
}
