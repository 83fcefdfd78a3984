// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lays out regions so that most fall through to the next one, and resolves jump targets to row
//! numbers.

use crate::analysis::Live;
use crate::blocks::NEXT;
use crate::image::{Function, Image, Row, Slot};
use crate::operation::{Constant, Operation, Target};
use crate::options::Options;
use crate::region::Region;
use crate::schedule::dependences::Dependences;
use crate::schedule::list::{List, late};
use crate::schedule::{Late, Placed};
use std::collections::HashMap;

/// A function as rows; its targets are still blocks and functions.
pub struct Scheduled {
    name: String,
    rows: Vec<Row>,
    /// First row of each region, by its block.
    starts: HashMap<usize, usize>,
    /// Number of rows that dependences alone would need, with unlimited lanes.
    pub critical_rows: usize,
}

/// Schedules the regions of a function.
pub fn schedule(
    name: &str,
    regions: &[Region],
    live: &HashMap<usize, Live>,
    options: &Options,
) -> Scheduled {
    let order = order(regions);
    let name = name.to_owned();
    let mut scheduled = Scheduled { name, rows: vec![], starts: HashMap::new(), critical_rows: 0 };
    let mut left_late = Late::default();
    for (at, &number) in order.iter().enumerate() {
        let region = &regions[number];
        let next = order.get(at + 1).map(|next| regions[*next].block);
        let falls = next.is_some() && end(region) == next;
        let list =
            |renames| List::new(region, live, options.machine, renames, &left_late, falls).rows();
        let rows = list(options.renaming).or_else(|| list(false));
        let rows = rows.expect("the order of the program is always possible");
        scheduled.critical_rows += critical_rows(region, live, falls);
        scheduled.starts.insert(region.block, scheduled.rows.len());
        if let Some(last) = rows.last() {
            // A taken jump to the next row takes no more time than falling through.
            let jumps = last.iter().filter_map(|placed| placed.operation.target());
            let mut ways = jumps.map(|target| next.is_some_and(|it| target == Target::Row(it)));
            let continues = falls || ways.any(|is_next| is_next);
            left_late = if continues { late(region, last) } else { Late::default() };
        }
        let lanes = options.machine.lanes.into();
        scheduled.rows.extend(rows.into_iter().map(|row| row_of(region, row, lanes)));
    }
    scheduled
}

/// Returns regions in the order of layout: each is followed by the target of its final jump, if
/// that is not placed yet.
fn order(regions: &[Region]) -> Vec<usize> {
    let numbers: HashMap<usize, usize> =
        regions.iter().enumerate().map(|(number, region)| (region.block, number)).collect();
    let mut is_placed = vec![false; regions.len()];
    let (mut order, mut left) = (vec![], vec![0]);
    while let Some(number) = left.pop() {
        if std::mem::replace(&mut is_placed[number], true) {
            continue;
        }
        order.push(number);
        let ways = regions[number].needed().filter_map(|(_, node)| node.successor());
        let ways: Vec<_> = ways.filter_map(|block| numbers.get(&block).copied()).collect();
        // The last one is taken first.
        left.extend(ways);
    }
    order
}

/// Returns the block to which a region's final jump always leads, if there is one.
fn end(region: &Region) -> Option<usize> {
    let (_, last) = region.needed().last()?;
    match last.operation {
        Operation::Goto(Target::Row(block)) => Some(block),
        _ => None,
    }
}

/// Returns the longest path through a region's dependences, in rows. `falls` excludes its last
/// jump.
fn critical_rows(region: &Region, live: &HashMap<usize, Live>, falls: bool) -> usize {
    let dependences = Dependences::of(region, live).of;
    let last = region.needed().last().map(|(at, _)| at);
    let (mut earliest, mut rows) = (vec![0; region.nodes.len()], 0);
    for (at, _) in region.needed() {
        let first = dependences[at].iter().map(|it| earliest[it.on] + it.rows).max();
        earliest[at] = first.unwrap_or(0);
        if !(falls && last == Some(at)) {
            rows = rows.max(earliest[at] + 1);
        }
    }
    rows
}

fn row_of(region: &Region, placed: Vec<Placed>, lanes: usize) -> Row {
    let mut row = Row { lanes: vec![None; lanes] };
    for Placed { node, lane, operation } in placed {
        let origins = region.nodes[node].origins.clone();
        row.lanes[lane] = Some(Slot { operation, origins });
    }
    row
}

/// Links all functions of a program, the program itself first, to an image.
pub fn link(name: &str, functions: Vec<Scheduled>, options: &Options) -> Image {
    let mut first = 0;
    let mut add = |rows: usize| {
        first += rows;
        first - rows
    };
    let firsts: Vec<usize> = functions.iter().map(|function| add(function.rows.len())).collect();
    let mut image = Image { name: name.to_owned(), machine: options.machine, ..Image::default() };
    for (function, &row) in functions.into_iter().zip(&firsts) {
        image.functions.push(Function { name: function.name, row });
        let starts = function.starts;
        image.rows.extend(function.rows.into_iter().zip(row..).map(|(mut of, at)| {
            let row_of = |block| if block == NEXT { at + 1 } else { row + starts[&block] };
            for slot in of.lanes.iter_mut().flatten() {
                resolve(&mut slot.operation, &firsts, row_of);
            }
            of
        }));
    }
    image
}

/// Replaces blocks and functions by rows.
fn resolve(operation: &mut Operation, functions: &[usize], row_of: impl Fn(usize) -> usize) {
    if let Some(Target::Row(block)) = operation.target_mut() {
        *block = row_of(*block);
    }
    match operation {
        Operation::CallFunction(function)
        | Operation::Constant { constant: Constant::Function(function), .. } => {
            *function = functions[*function];
        }
        _ => {}
    }
}
