// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The report of a compilation to native code: where each variable is stored, how each loop was
//! unrolled, what each pass changed, and which channels are fused.
//!
//! It compares the program as written with the program after the passes. A loop is identified by
//! its place in the source, also if its function was inlined into another.

use freeport_ir::passes::{self, PassSet};
use freeport_ir::{ElementId, Function, Loc, Op, Program, Space, Unroll};
use freeport_native::Manifest;
use freeport_native::manifest::ItemInfo;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A report.
#[derive(Debug, Serialize)]
pub struct Report {
    elements: Vec<ElementReport>,
    channels: Vec<ChannelReport>,
    passes: Vec<PassReport>,
}

#[derive(Debug, Serialize)]
struct ElementReport {
    element: String,
    instances: Vec<String>,
    variables: Vec<VariableReport>,
    loops: Vec<LoopReport>,
}

#[derive(Debug, Serialize)]
struct VariableReport {
    variable: String,
    /// Bits per element.
    width: u32,
    depth: u64,
    stored: &'static str,
}

#[derive(Debug, Serialize)]
struct LoopReport {
    file: String,
    line: u32,
    bound: u64,
    decision: String,
}

#[derive(Debug, Serialize)]
struct ChannelReport {
    channel: String,
    item: ItemInfo,
    depth: u32,
    room: u32,
    asked: Vec<String>,
    is_lossy: bool,
    is_fused: bool,
}

#[derive(Debug, Serialize)]
struct PassReport {
    pass: &'static str,
    changes: BTreeMap<&'static str, u64>,
    notes: Vec<String>,
}

impl Report {
    /// The report of `program`, of which `manifest` was built with the passes of `set`.
    pub fn of(program: &Program, set: &PassSet, manifest: &Manifest) -> Self {
        let mut prepared = program.clone();
        let changes = passes::run(&mut prepared, set);
        let pass = |pass: &'static str| {
            let of_pass = changes.of(pass);
            PassReport { pass, changes: of_pass.counts, notes: of_pass.notes }
        };
        let elements = (0..program.elements.len()).map(ElementId::new);
        let channels = manifest.channels.iter().map(|channel| ChannelReport {
            channel: channel.name.clone(),
            item: channel.item,
            depth: channel.depth,
            room: channel.room,
            asked: channel.asked.clone(),
            is_lossy: channel.is_lossy,
            is_fused: channel.is_fused,
        });
        let has_run = |pass: &&'static str| set.contains(pass);
        Self {
            elements: elements.map(|id| element(program, &prepared, id)).collect(),
            channels: channels.collect(),
            passes: passes::NAMES.into_iter().filter(has_run).map(pass).collect(),
        }
    }
}

fn element(source: &Program, prepared: &Program, id: ElementId) -> ElementReport {
    let element = source.element(id);
    let instances = source.graph.instances.iter().filter(|instance| instance.element == id);
    let state = element.state.iter().zip(&prepared.element(id).state);
    ElementReport {
        element: element.name.clone(),
        instances: instances.map(|instance| instance.name.clone()).collect(),
        variables: state
            .map(|(object, stored)| VariableReport {
                variable: object.name.clone(),
                width: object.elem_bits,
                depth: object.depth,
                stored: place(stored.space),
            })
            .collect(),
        loops: loops(source, prepared, id),
    }
}

fn place(space: Space) -> &'static str {
    match space {
        Space::Register => "register",
        space => space.name(),
    }
}

fn loops(source: &Program, prepared: &Program, id: ElementId) -> Vec<LoopReport> {
    let left = bounds(prepared, id);
    let report = |(at, (bound, unroll)): (Place, (u64, Unroll))| LoopReport {
        file: source.files.get(at.0).cloned().unwrap_or_default(),
        line: at.1,
        bound,
        decision: match (left.get(&at), unroll) {
            (None, _) => "unrolled".to_owned(),
            (Some((rounds, _)), Unroll::By(factor)) if *rounds != bound => {
                format!("unrolled by {factor}, {rounds} rounds remain")
            }
            (Some(_), Unroll::Flatten) => "kept, as requested".to_owned(),
            (Some(_), _) => "kept".to_owned(),
        },
    };
    bounds(source, id).into_iter().map(report).collect()
}

/// File, line and column.
type Place = (usize, u32, u32);

/// Bounds and unroll directives of the loops in all functions of an element, by place.
fn bounds(program: &Program, id: ElementId) -> BTreeMap<Place, (u64, Unroll)> {
    let place = |loc: Loc| (loc.file.index(), loc.line, loc.column);
    let mut found = BTreeMap::new();
    for function in functions(program, id) {
        for block in &function.blocks {
            if let Some(info) = block.loop_info {
                found.insert(place(block.term_loc), (info.bound, info.unroll));
            }
        }
    }
    found
}

/// All functions that an element calls.
fn functions(program: &Program, id: ElementId) -> Vec<&Function> {
    let element = program.element(id);
    let mut waiting = vec![element.handler];
    waiting.extend(element.init);
    waiting.extend(element.signal);
    waiting.extend(element.methods.iter().map(|method| method.function));
    let mut seen = BTreeSet::new();
    let mut found = vec![];
    while let Some(next) = waiting.pop() {
        if !seen.insert(next.index()) {
            continue;
        }
        let function = program.function(next);
        found.push(function);
        for inst in function.blocks.iter().flat_map(|block| &block.insts) {
            if let Op::Call { function, .. } = inst.op {
                waiting.push(function);
            }
        }
    }
    found
}

/// For people.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for ElementReport { element, instances, variables, loops } in &self.elements {
            writeln!(f, "element {element}: {}", instances.join(", "))?;
            for VariableReport { variable, width, depth, stored } in variables {
                let count = if *depth == 1 { String::new() } else { format!(" x {depth}") };
                writeln!(f, "  variable {variable}: {width} bits{count}, {stored}")?;
            }
            for LoopReport { file, line, bound, decision } in loops {
                writeln!(f, "  loop at {file}:{line}: at most {bound} rounds, {decision}")?;
            }
        }
        for found in &self.channels {
            let ChannelReport { channel, item, depth, room, asked, is_lossy, is_fused } = found;
            match item {
                ItemInfo::Flit => write!(f, "channel {channel}: flits, depth {depth}")?,
                ItemInfo::Packet => write!(f, "channel {channel}: packets, depth {depth}")?,
                ItemInfo::Record(width) => {
                    write!(f, "channel {channel}: records of {width} bits, depth {depth}")?;
                }
            }
            if room > depth && !is_fused {
                write!(f, ", room for {room}")?;
            }
            if !asked.is_empty() {
                write!(f, ", asks ahead for {}", asked.join(", "))?;
            }
            let lossy = if *is_lossy { ", drops when full" } else { "" };
            writeln!(f, "{lossy}{}", if *is_fused { ", fused" } else { "" })?;
        }
        for PassReport { pass, changes, notes } in &self.passes {
            let counts = changes.iter().map(|(kind, count)| format!("{count} {kind}"));
            let counts = counts.collect::<Vec<_>>().join(", ");
            writeln!(f, "pass {pass}: {}", if counts.is_empty() { "nothing" } else { &counts })?;
            for note in notes {
                writeln!(f, "  {note}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_clicknp::{Options, compile_text};
    use freeport_testbed::cache::Cache;

    const PROGRAM: &str = "
        .element Sum (flit in -> flit out) {
            .state { uint total; uint16 history[512]; uint next; }
            .handler {
                if (test_input_port(in)) {
                    flit x = read_input_port(in);
                    for (uint i = 0; i < 4; i++)
                        total = total + (uint)(x.data >> 8 * i);
                    history[next] = total;
                    next = (next + 1) % 512;
                    set_output_port(out, x);
                }
            }
        }
        Sum :: one
        Sum :: two
        from_tor -> one -> two -> to_tor
    ";

    #[test]
    fn variables_loops_and_channels_are_told() {
        let compiled = compile_text("sum.cnp", PROGRAM, &Options::default());
        let compiled = compiled.unwrap_or_else(|failure| panic!("{failure}"));
        let cache = Cache::of("native");
        let options = freeport_native::Options {
            cache: Some(cache.path().to_owned()),
            optimization: 0,
            ..freeport_native::Options::default()
        };
        let image = freeport_native::build(&compiled.program, &options).unwrap();
        let text = Report::of(&compiled.program, &options.passes, &image.manifest).to_string();
        let lines: Vec<&str> = text.lines().collect();
        for line in [
            "element Sum: one, two",
            "  variable total: 32 bits, register",
            "  variable history: 16 bits x 512, local",
            "  loop at sum.cnp:7: at most 4 rounds, unrolled",
            "channel one.out -> two.in: flits, depth 16, fused",
        ] {
            assert!(lines.contains(&line), "{line}\n{text}");
        }
        assert!(text.contains("pass unroll: 4 copies, 1 loops unrolled\n"), "{text}");
    }
}
