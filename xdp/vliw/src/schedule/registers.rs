// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Registers for results, as they are placed in rows (publication, section 3.3: physical register
//! assignment).
//!
//! What somebody expects in the value's own register, a call or what comes after the region, goes
//! there, behind all earlier values of that register. Everything else may go to any register that
//! no value of the region belongs to, or, if none of them is free, to its own as well. Since the
//! order of the program with all values in their own registers is always possible, no choice made
//! here can end in a place where nothing goes on.

use super::dependences::is_barrier;
use crate::analysis::{Live, passed};
use crate::machine::{PACKET, REGISTERS};
use crate::operation::FRAME_POINTER;
use crate::region::{Region, Value};
use std::collections::HashMap;

/// Who is where, while rows are filled.
pub struct Registers<'r> {
    region: &'r Region,
    renames: bool,
    /// Where each value is or will be.
    places: Vec<Option<u8>>,
    /// How often each value is still used.
    uses: Vec<usize>,
    /// Whether a value has to be in its own register.
    stays: Vec<bool>,
    /// Whether it is used behind a call that leaves few registers as they are.
    crosses: Vec<bool>,
    /// What each register has.
    content: [Option<Value>; REGISTERS as usize],
    /// Values of each register in their order that are not placed yet; the first is last.
    coming: Vec<Vec<Value>>,
    /// Registers that no value belongs to.
    spare: Vec<u8>,
    /// Registers that are written in this row.
    reserved: u16,
}

impl<'r> Registers<'r> {
    /// Of a region where control enters.
    pub fn new(region: &'r Region, live: &HashMap<usize, Live>, renames: bool) -> Self {
        let count = region.values.len();
        let mut registers = Self {
            region,
            renames,
            places: vec![None; count],
            uses: vec![0; count],
            stays: vec![false; count],
            crosses: vec![false; count],
            content: [None; REGISTERS as usize],
            coming: vec![vec![]; REGISTERS.into()],
            spare: vec![],
            reserved: 0,
        };
        registers.count_uses(live);
        for register in 0..REGISTERS {
            let value = Value(register.into());
            registers.places[value.0] = Some(register);
            registers.content[usize::from(register)] =
                (registers.uses[value.0] > 0).then_some(value);
        }
        for (_, node) in region.needed() {
            if let Some(value) = node.result {
                registers.coming[usize::from(region.known(value).register)].push(value);
            }
        }
        let coming = &mut registers.coming;
        coming.iter_mut().for_each(|values| values.reverse());
        registers.spare = (0..REGISTERS)
            .rev()
            .filter(|it| ![FRAME_POINTER, PACKET].contains(it))
            .filter(|it| coming[usize::from(*it)].is_empty())
            .collect();
        registers
    }

    fn count_uses(&mut self, live: &HashMap<usize, Live>) {
        let mut barriers = vec![];
        for (at, node) in self.region.needed() {
            let chosen = node.reads.iter().map(|value| (*value, false));
            let fixed = node.fixed.iter().map(|(_, value)| (*value, true));
            let before = node.before.iter().map(|value| (*value, true));
            let passed = passed(node, live).map(|(_, value)| (value, true));
            for (value, stays) in chosen.chain(fixed).chain(before).chain(passed) {
                self.uses[value.0] += 1;
                self.stays[value.0] |= stays;
                let given = self.region.known(value).node;
                self.crosses[value.0] |= barriers.iter().any(|it| given.is_none_or(|at| at < *it));
            }
            if let Some(value) = node.result {
                self.stays[value.0] |= node.is_result_fixed;
            }
            if is_barrier(&node.operation) {
                barriers.push(at);
            }
        }
    }

    /// Where a value is.
    pub fn place(&self, value: Value) -> Option<u8> {
        self.places[value.0]
    }

    /// Gives registers to the results of nodes that come into this row, all or none; says whether
    /// there are any.
    pub fn reserve(&mut self, nodes: &[usize]) -> bool {
        let reserved = self.reserved;
        let mut chosen = vec![];
        for &node in nodes {
            let Some(value) = self.region.nodes[node].result else { continue };
            let Some(register) = self.choice(node, value) else {
                self.reserved = reserved;
                return false;
            };
            self.reserved |= 1 << register;
            chosen.push((value, register));
        }
        for (value, register) in chosen {
            self.places[value.0] = Some(register);
            let own = usize::from(self.region.known(value).register);
            self.coming[own].retain(|coming| *coming != value);
        }
        true
    }

    /// The register that a node's result could go to in this row.
    fn choice(&self, node: usize, value: Value) -> Option<u8> {
        let node = &self.region.nodes[node];
        let own_uses = |content: Value| node.used().filter(|value| *value == content).count();
        let is_free = |register: &u8| {
            let content = self.content[usize::from(*register)];
            let is_over = content.is_none_or(|it| self.uses[it.0] <= own_uses(it));
            is_over && self.reserved >> register & 1 == 0
        };
        let own = self.region.known(value).register;
        let may_move = self.renames && !self.stays[value.0] && !self.crosses[value.0];
        if may_move && let Some(&spare) = self.spare.iter().find(|it| is_free(it)) {
            return Some(spare);
        }
        let is_next = self.coming[usize::from(own)].last() == Some(&value);
        (is_next && is_free(&own)).then_some(own)
    }

    /// Ends a row in which these nodes are.
    pub fn end_row(&mut self, nodes: &[usize], live: &HashMap<usize, Live>) {
        for &node in nodes {
            let node = &self.region.nodes[node];
            let passed = passed(node, live).map(|(_, value)| value);
            for value in node.used().chain(passed) {
                self.uses[value.0] -= 1;
            }
        }
        for &node in nodes {
            if let Some(value) = self.region.nodes[node].result
                && let Some(register) = self.places[value.0]
            {
                self.content[usize::from(register)] = Some(value);
            }
        }
        for content in &mut self.content {
            *content = content.filter(|value| self.uses[value.0] > 0);
        }
        self.reserved = 0;
    }
}
