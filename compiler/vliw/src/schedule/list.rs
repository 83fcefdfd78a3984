// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The list scheduler: fills one row after the other with what has the most behind it (publication,
//! section 3.4, whose code motion this does as well: nodes of all blocks of a region are there from
//! the beginning, and what has no effect may come before the branches that it is behind).

use super::dependences::{Dependence, Dependences, rows_between};
use super::lanes::{Item, assign};
use super::registers::Registers;
use super::{Late, Placed};
use crate::machine::{CALLS_PER_ROW, Machine, REGISTERS};
use crate::memory::Touch;
use crate::operation::Operation;
use crate::passes::dead::Live;
use crate::region::{Region, Value};
use std::collections::HashMap;

/// Rows without anything in them that may follow each other: more are waited for by nobody.
const EMPTY_MAX: usize = 2;

/// A region that is placed in rows.
pub struct List<'r> {
    region: &'r Region,
    live: &'r HashMap<usize, Live>,
    machine: Machine,
    late: &'r Late,
    dependences: Dependences,
    registers: Registers<'r>,
    /// Row and lane of each node, once it is in a row that is full.
    places: Vec<Option<(usize, usize)>>,
    /// The node at the end that is not placed, since what it goes to comes next anyway.
    omitted: Option<usize>,
}

/// What is chosen for the row that is being filled.
#[derive(Clone, Default)]
struct Row {
    nodes: Vec<usize>,
    lanes: Vec<usize>,
}

impl<'r> List<'r> {
    /// Prepares a region. With `falls` its last jump is left out.
    pub fn new(
        region: &'r Region,
        live: &'r HashMap<usize, Live>,
        machine: Machine,
        renames: bool,
        late: &'r Late,
        falls: bool,
    ) -> Self {
        let last = region.needed().last().map(|(at, _)| at);
        Self {
            region,
            live,
            machine,
            late,
            dependences: Dependences::of(region, live),
            registers: Registers::new(region, live, renames),
            places: vec![None; region.nodes.len()],
            omitted: last.filter(|_| falls),
        }
    }

    /// All rows; nothing if there is no way on, which only renaming can be the reason of.
    pub fn rows(mut self) -> Option<Vec<Vec<Placed>>> {
        let mut left: Vec<usize> = self.region.needed().map(|(at, _)| at).collect();
        left.retain(|at| Some(*at) != self.omitted);
        left.sort_by_key(|&at| (std::cmp::Reverse(self.dependences.heights[at]), at));
        let (mut rows, mut empty) = (vec![], 0);
        while !left.is_empty() {
            let row = self.fill(&left, rows.len());
            left.retain(|at| !row.nodes.contains(at));
            empty = if row.nodes.is_empty() { empty + 1 } else { 0 };
            if empty > EMPTY_MAX {
                return None;
            }
            rows.push(self.end(row, rows.len()));
        }
        Some(rows)
    }

    /// Chooses nodes for a row.
    fn fill(&mut self, left: &[usize], number: usize) -> Row {
        let mut row = Row::default();
        loop {
            let candidates = left.iter().copied().filter(|at| !row.nodes.contains(at));
            let fitting = candidates.into_iter().find_map(|at| {
                let lanes = self.lanes_with(&row, at, number)?;
                let register = match self.region.nodes[at].result {
                    Some(_) => Some(self.registers.choice(at)?),
                    None => None,
                };
                Some((at, lanes, register))
            });
            let Some((at, lanes, register)) = fitting else { return row };
            if let Some(register) = register {
                self.registers.reserve(at, register);
            }
            row.nodes.push(at);
            row.lanes = lanes;
        }
    }

    /// Lanes for a row with one node more, if it may be in it.
    fn lanes_with(&self, row: &Row, at: usize, number: usize) -> Option<Vec<usize>> {
        let is_call =
            |at: &usize| matches!(self.region.nodes[*at].operation, Operation::Call { .. });
        let calls = row.nodes.iter().filter(|at| is_call(at)).count();
        if is_call(&at) && calls >= CALLS_PER_ROW || !self.is_ready(row, at, number) {
            return None;
        }
        let nodes: Vec<usize> = row.nodes.iter().copied().chain([at]).collect();
        let items: Vec<_> = nodes.iter().map(|at| self.item(*at, &nodes, number)).collect();
        assign(&items, self.machine.lanes.into())
    }

    /// Whether all that a node waits for is far enough ahead of a row.
    fn is_ready(&self, row: &Row, at: usize, number: usize) -> bool {
        let is_behind = |dependence: &Dependence| {
            if Some(dependence.on) == self.omitted {
                return false;
            }
            match self.places[dependence.on] {
                Some((before, _)) => before + dependence.rows <= number,
                None => dependence.rows == 0 && row.nodes.contains(&dependence.on),
            }
        };
        self.dependences.of[at].iter().all(is_behind) && !(number == 0 && self.meets_late_store(at))
    }

    /// Whether a node loads what the row before the region may store.
    fn meets_late_store(&self, at: usize) -> bool {
        let node = &self.region.nodes[at];
        let touch = Touch { operation: &node.operation, accesses: &node.accesses };
        self.late.stored.iter().any(|(operation, accesses)| {
            rows_between(operation, &node.operation) > 1
                && touch.conflicts(&Touch { operation, accesses })
        })
    }

    /// A node as it may be placed beside others of its row.
    fn item(&self, at: usize, nodes: &[usize], number: usize) -> Item {
        let node = &self.region.nodes[at];
        let dependences = self.dependences.of[at].iter().filter(|it| it.rows == 0);
        let behind =
            dependences.filter_map(|it| nodes.iter().position(|other| *other == it.on)).collect();
        let fixed = node.fixed.iter().map(|(_, value)| *value);
        let lanes = node.reads.iter().copied().chain(fixed).filter_map(|it| self.fresh(it, number));
        let allowed = lanes.fold(u16::MAX, |allowed, lane| allowed & 1 << lane);
        Item { allowed, width: node.operation.lanes(), behind }
    }

    /// The lane that a value was computed in, if that was in the row right before.
    fn fresh(&self, value: Value, number: usize) -> Option<usize> {
        match self.region.known(value).node {
            Some(node) => {
                let (row, lane) = self.places[node]?;
                (row + 1 == number).then_some(lane)
            }
            None if number == 0 && value.0 < REGISTERS.into() => {
                let mut written = self.late.written.iter();
                written.find(|(register, _)| usize::from(*register) == value.0).map(|it| it.1)
            }
            None => None,
        }
    }

    /// Ends a row: its nodes have their lanes and registers for good.
    fn end(&mut self, row: Row, number: usize) -> Vec<Placed> {
        let mut placed = vec![];
        for (&node, &lane) in row.nodes.iter().zip(&row.lanes) {
            self.places[node] = Some((number, lane));
            placed.push(Placed { node, lane, operation: self.operation(node) });
        }
        self.registers.end_row(&row.nodes, self.live);
        for placed in &mut placed {
            self.mark_speculation(placed);
        }
        placed.sort_by_key(|placed| placed.lane);
        placed
    }

    /// A node's operation with registers.
    fn operation(&self, node: usize) -> Operation {
        let node = &self.region.nodes[node];
        let place = |value: &Value| self.registers.place(*value).unwrap_or(0);
        let read: Vec<u8> = node.reads.iter().map(place).collect();
        debug_assert!(node.fixed.iter().all(|(register, value)| place(value) == *register));
        let written = node.result.as_ref().map(place);
        node.operation.with_registers(&read, written)
    }

    /// A load that comes before a jump that the program makes first may miss.
    fn mark_speculation(&self, placed: &mut Placed) {
        let Operation::Load { is_speculative, .. } = &mut placed.operation else { return };
        let Some(place) = self.places[placed.node] else { return };
        let before = self.region.nodes[..placed.node].iter().enumerate();
        let mut jumps = before.filter(|(_, node)| node.is_needed && node.is_control());
        *is_speculative |= jumps.any(|(jump, _)| match self.places[jump] {
            Some(jump) => place < jump,
            None => true,
        });
    }
}

/// What the last of some rows leaves for the next region.
pub fn late(region: &Region, rows: &[Vec<Placed>]) -> Late {
    let mut late = Late::default();
    for placed in rows.last().into_iter().flatten() {
        late.written.extend(placed.operation.written().map(|register| (register, placed.lane)));
        if matches!(placed.operation, Operation::Store { .. } | Operation::Atomic { .. }) {
            let accesses = region.nodes[placed.node].accesses.clone();
            late.stored.push((placed.operation, accesses));
        }
    }
    late
}
