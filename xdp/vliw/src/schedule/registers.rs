// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Allocates registers for results when they are placed in rows (publication, section 3.3: physical
//! register assignment).
//!
//! A value that a call or a following region expects in its own register is put there, after all
//! earlier values of that register. Any other value may be put in any register to which no value of
//! the region belongs, or, if none of them is free, in its own. Program order with all values in
//! their own registers is always possible, so no choice made here can lead to a dead end.

use super::dependences::is_barrier;
use crate::analysis::{Live, passed};
use crate::machine::{PACKET, REGISTERS};
use crate::operation::FRAME_POINTER;
use crate::region::{Region, Value};
use std::collections::HashMap;

/// Contents of registers while rows are filled.
pub struct Registers<'r> {
    region: &'r Region,
    renames: bool,
    /// Register of each value that is placed or fixed.
    places: Vec<Option<u8>>,
    /// Number of remaining uses of each value.
    uses: Vec<usize>,
    /// Whether a value must be in its own register.
    stays: Vec<bool>,
    /// Whether it is used after a call that clobbers most registers.
    crosses: Vec<bool>,
    /// Value in each register.
    content: [Option<Value>; REGISTERS as usize],
    /// Values of each register that are not placed yet, in reverse order.
    coming: Vec<Vec<Value>>,
    /// Registers to which no value belongs.
    spare: Vec<u8>,
    /// Registers that are written in this row.
    reserved: u16,
}

impl<'r> Registers<'r> {
    /// Creates the state at the entry of a region.
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

    /// Returns the register of a value.
    pub fn place(&self, value: Value) -> Option<u8> {
        self.places[value.0]
    }

    /// Reserves registers for the results of the nodes of a row, all or none; returns whether it
    /// succeeded.
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

    /// Returns the register to which a node's result could be written in this row.
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

    /// Completes a row with these nodes.
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
