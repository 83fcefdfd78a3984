// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The list scheduler: fills one row after the other with the nodes of greatest height
//! (publication, section 3.3). It includes the publication's code motion: nodes of all blocks of a
//! region are candidates from the beginning, and those without an effect may move up across
//! branches.

use super::dependences::{Dependence, Dependences, rows_between};
use super::lanes::{Item, assign};
use super::registers::Registers;
use super::{Late, Placed};
use crate::analysis::Live;
use crate::machine::{CALLS_PER_ROW, Machine, REGISTERS};
use crate::memory::Touch;
use crate::operation::Operation;
use crate::region::{Region, Value};
use std::collections::HashMap;

/// Maximum number of consecutive empty rows; no latency needs more.
const EMPTY_MAX: usize = 2;

/// A region that is being scheduled.
pub struct List<'r> {
    region: &'r Region,
    live: &'r HashMap<usize, Live>,
    machine: Machine,
    late: &'r Late,
    dependences: Dependences,
    registers: Registers<'r>,
    /// Row and lane of each node, once its row is complete.
    places: Vec<Option<(usize, usize)>>,
    /// Final jump that is not placed, since its target is the next region.
    omitted: Option<usize>,
    /// By node, whether a late lane is preferred, because its result is used in an arm.
    prefers_late: Vec<bool>,
}

/// Nodes chosen for the current row.
#[derive(Clone, Default)]
struct Row {
    nodes: Vec<usize>,
    lanes: Vec<usize>,
}

impl<'r> List<'r> {
    /// Prepares a region. With `falls` its last jump is omitted.
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
            prefers_late: prefers_late(region),
        }
    }

    /// Schedules all rows, or returns `None` if no progress is possible, which only renaming can
    /// cause.
    pub fn rows(mut self) -> Option<Vec<Vec<Placed>>> {
        let mut left = self.units();
        let (mut rows, mut empty) = (vec![], 0);
        while !left.is_empty() {
            let row = self.fill(&left, rows.len());
            left.retain(|unit| !row.nodes.contains(&unit[0]));
            empty = if row.nodes.is_empty() { empty + 1 } else { 0 };
            if empty > EMPTY_MAX {
                return None;
            }
            rows.push(self.end(row, rows.len()));
        }
        Some(rows)
    }

    /// Returns nodes, grouped by arm, in the order of decreasing height.
    fn units(&self) -> Vec<Vec<usize>> {
        let mut units: Vec<Vec<usize>> = vec![];
        for (at, node) in self.region.needed().filter(|(at, _)| Some(*at) != self.omitted) {
            let arm_of = |unit: &Vec<usize>| self.region.nodes[unit[0]].arm;
            match units.last_mut() {
                Some(unit) if node.arm.is_some() && arm_of(unit) == node.arm => unit.push(at),
                _ => units.push(vec![at]),
            }
        }
        let height = |unit: &Vec<usize>| {
            unit.iter().map(|at| self.dependences.heights[*at]).max().unwrap_or(0)
        };
        units.sort_by_key(|unit| (std::cmp::Reverse(height(unit)), unit[0]));
        units
    }

    /// Chooses nodes for a row.
    fn fill(&mut self, left: &[Vec<usize>], number: usize) -> Row {
        let mut row = Row::default();
        while let Some(fuller) = left.iter().find_map(|unit| self.with(&row, unit, number)) {
            row = fuller;
        }
        row
    }

    /// Returns the row with another unit, if it fits; registers are then reserved for its results.
    fn with(&mut self, row: &Row, unit: &[usize], number: usize) -> Option<Row> {
        if row.nodes.contains(&unit[0]) {
            return None;
        }
        let nodes: Vec<usize> = row.nodes.iter().chain(unit).copied().collect();
        let is_call =
            |at: &&usize| matches!(self.region.nodes[**at].operation, Operation::Call { .. });
        let is_one_call = nodes.iter().filter(is_call).count() <= CALLS_PER_ROW;
        if !is_one_call || !unit.iter().all(|at| self.is_ready(&nodes, *at, number)) {
            return None;
        }
        let items: Vec<_> = nodes.iter().map(|at| self.item(*at, &nodes, number)).collect();
        let lanes = assign(&items, self.machine.lanes.into())?;
        self.registers.reserve(unit).then_some(Row { nodes, lanes })
    }

    /// Returns whether all dependences of a node are satisfied by earlier rows or the row's nodes.
    fn is_ready(&self, nodes: &[usize], at: usize, number: usize) -> bool {
        let is_behind = |dependence: &Dependence| {
            if Some(dependence.on) == self.omitted {
                return false;
            }
            match self.places[dependence.on] {
                Some((before, _)) => before + dependence.rows <= number,
                None => dependence.rows == 0 && nodes.contains(&dependence.on),
            }
        };
        self.dependences.of[at].iter().all(is_behind) && !(number == 0 && self.meets_late_store(at))
    }

    /// Returns whether a node loads bytes that the row before the region may store.
    fn meets_late_store(&self, at: usize) -> bool {
        let node = &self.region.nodes[at];
        let touch = Touch { operation: &node.operation, accesses: &node.accesses };
        self.late.stored.iter().any(|(operation, accesses)| {
            rows_between(operation, &node.operation) > 1
                && touch.conflicts(&Touch { operation, accesses })
        })
    }

    /// Returns a node as an item to be placed with others of its row.
    fn item(&self, at: usize, nodes: &[usize], number: usize) -> Item {
        let node = &self.region.nodes[at];
        let dependences = self.dependences.of[at].iter().filter(|it| it.rows == 0);
        let number_of = |node: usize| nodes.iter().position(|other| *other == node);
        let mut behind: Vec<usize> = dependences.filter_map(|it| number_of(it.on)).collect();
        if node.arm.is_some() {
            // Nodes outside the arm must not be skipped with it.
            let others = nodes.iter().enumerate();
            let others = others.filter(|(_, other)| self.region.nodes[**other].arm != node.arm);
            behind.extend(others.map(|(number, _)| number));
        }
        let fixed = node.fixed.iter().map(|(_, value)| *value);
        let lanes = node.reads.iter().copied().chain(fixed).filter_map(|it| self.fresh(it, number));
        let allowed = lanes.fold(u16::MAX, |allowed, lane| allowed & 1 << lane);
        let prefers_late = self.prefers_late[at];
        Item { allowed, width: node.operation.lanes(), behind, prefers_late }
    }

    /// Returns the lane in which a value was computed, if that was in the previous row.
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

    /// Completes a row: fixes the lanes and registers of its nodes.
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

    /// Returns a node's operation with registers.
    fn operation(&self, node: usize) -> Operation {
        let node = &self.region.nodes[node];
        let place = |value: &Value| self.registers.place(*value).unwrap_or(0);
        let read: Vec<u8> = node.reads.iter().map(place).collect();
        debug_assert!(node.fixed.iter().all(|(register, value)| place(value) == *register));
        let written = node.result.as_ref().map(place);
        node.operation.with_registers(&read, written)
    }

    /// Marks a load as speculative if it moved before a jump that precedes it in the program.
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

/// Returns, by node, whether its result is used, directly or indirectly, in an arm, whose nodes are
/// in late lanes.
fn prefers_late(region: &Region) -> Vec<bool> {
    let mut prefers = vec![false; region.nodes.len()];
    for (at, node) in region.nodes.iter().enumerate().rev().filter(|(_, node)| node.is_needed) {
        prefers[at] |= node.arm.is_some() && !node.is_skip();
        if prefers[at] {
            let givers = node.reads.iter().filter_map(|value| region.known(*value).node);
            givers.for_each(|giver| prefers[giver] = true);
        }
    }
    prefers
}

/// Returns the results of a region's last row that are not visible yet in the next one.
pub fn late(region: &Region, last: &[Placed]) -> Late {
    let mut late = Late::default();
    for placed in last {
        late.written.extend(placed.operation.written().map(|register| (register, placed.lane)));
        if matches!(placed.operation, Operation::Store { .. } | Operation::Atomic { .. }) {
            let accesses = region.nodes[placed.node].accesses.clone();
            late.stored.push((placed.operation, accesses));
        }
    }
    late
}
