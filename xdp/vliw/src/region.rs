// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Blocks that are scheduled together: control enters at the first and leaves at any jump. Each
//! result is a separate value, and each jump records the values that it passes on.
//!
//! A value belongs to the register of the program that held it. A node reads a value only where the
//! program, executed in order, still has it in that register. A region can therefore always be
//! executed in program order with each value in its own register. Other registers and other orders
//! are optimisations, and the scheduler can always make progress.

use crate::blocks::NEXT;
use crate::machine::{PACKET, REGISTERS};
use crate::memory::moves_packet;
use crate::operation::{Arithmetic, Operand, Operation, Target, Width};
use freeport_ebpf::analysis::Access;

/// A result, or the content of a register at the entry. The values of registers come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Value(pub usize);

/// The packet's start, until it is moved.
pub const START: Value = Value(PACKET as usize);

/// Values of all registers.
pub type State = [Value; REGISTERS as usize];

/// Blocks with one entry.
#[derive(Clone, Debug)]
pub struct Region {
    /// The block at which control enters, whose number jumps use.
    pub block: usize,
    /// Nodes in program order.
    pub nodes: Vec<Node>,
    /// Facts about each value.
    pub values: Vec<Known>,
}

/// Facts about a value.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Register to which it belongs.
    pub register: u8,
    /// Node that computes it; `None` for values at the entry.
    pub node: Option<usize>,
    /// Its constant, if it is one.
    pub constant: Option<u64>,
    /// Maximum number of low bits that may be set.
    pub bits: u32,
    /// Value and constant of which it is the sum, for values at the entry.
    pub sum: Option<(Value, i64)>,
    /// Whether it is the address of the context, for values at the entry.
    pub is_context: bool,
}

impl Known {
    /// Creates the facts of a value of a register without any knowledge.
    fn nothing(register: u8, node: Option<usize>) -> Self {
        Self { register, node, constant: None, bits: 64, sum: None, is_context: false }
    }
}

/// An operation on values. Its register fields are meaningless until it is scheduled.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation.
    pub operation: Operation,
    /// Slots of the eBPF instructions from which it was made.
    pub origins: Vec<usize>,
    /// Its memory accesses.
    pub accesses: Vec<Access>,
    /// Values that it reads, in the order of [`Operation::read`].
    pub reads: Vec<Value>,
    /// Values that it reads in fixed registers.
    pub fixed: Vec<(u8, Value)>,
    /// Previous value of its result's register, which remains if it is skipped.
    pub before: Option<Value>,
    /// Its result.
    pub result: Option<Value>,
    /// Whether its result must be in its own register.
    pub is_result_fixed: bool,
    /// All nodes with the same number go into one row, in this order, after all others there.
    pub arm: Option<usize>,
    /// Values of registers if it leaves the region.
    pub state: Option<Box<State>>,
    /// Whether another node replaces it.
    pub is_gone: bool,
    /// Whether it is needed.
    pub is_needed: bool,
}

impl Region {
    /// Creates an empty region.
    pub fn new(block: usize) -> Self {
        let entry = |register| Known::nothing(register, None);
        Self { block, nodes: vec![], values: (0..REGISTERS).map(entry).collect() }
    }

    /// Creates a value for the result of the next node.
    pub fn add_value(&mut self, register: u8) -> Value {
        let node = Some(self.nodes.len());
        self.values.push(Known::nothing(register, node));
        Value(self.values.len() - 1)
    }

    /// Returns the facts about a value.
    pub fn known(&self, value: Value) -> &Known {
        &self.values[value.0]
    }

    /// Returns the node that computes a value, unless it may be skipped.
    pub fn giver(&self, value: Value) -> Option<&Node> {
        let node = self.known(value).node.map(|node| &self.nodes[node])?;
        node.arm.is_none().then_some(node)
    }

    /// Returns whether, in program order, a value is in its own register before a node.
    pub fn is_current(&self, value: Value, at: usize) -> bool {
        let register = self.known(value).register;
        if register == PACKET {
            return !self.nodes[..at].iter().any(|node| moves_packet(&node.operation));
        }
        let given = self.nodes[..at].iter().rev().filter_map(|node| node.result);
        let last = given.into_iter().find(|result| self.known(*result).register == register);
        last.unwrap_or(Value(register.into())) == value
    }

    /// Inserts a constant before a node that will use it.
    pub fn insert_constant(&mut self, at: usize, register: u8, constant: i32) -> Value {
        for known in &mut self.values {
            known.node = known.node.map(|node| if node >= at { node + 1 } else { node });
        }
        let value = Value(self.values.len());
        self.values.push(Known::nothing(register, Some(at)));
        let (operation, right) = (Arithmetic::Move, Operand::Immediate(constant));
        let width = Width::Bits64;
        let node = Node {
            operation: Operation::Alu { width, operation, destination: 0, left: 0, right },
            origins: self.nodes[at].origins.clone(),
            accesses: vec![],
            reads: vec![],
            fixed: vec![],
            before: None,
            result: Some(value),
            is_result_fixed: false,
            arm: None,
            state: None,
            is_gone: false,
            is_needed: true,
        };
        self.nodes.insert(at, node);
        value
    }

    /// Duplicates a node after it, for a value of another register.
    pub fn insert_again(&mut self, at: usize, register: u8) -> Value {
        for known in &mut self.values {
            known.node = known.node.map(|node| if node > at { node + 1 } else { node });
        }
        let mut node = self.nodes[at].clone();
        let known = node.result.map_or(Known::nothing(register, None), |it| *self.known(it));
        self.values.push(Known { register, node: Some(at + 1), ..known });
        node.result = Some(Value(self.values.len() - 1));
        self.nodes.insert(at + 1, node);
        Value(self.values.len() - 1)
    }

    /// Returns needed nodes with their indices.
    pub fn needed(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.is_needed)
    }
}

impl Node {
    /// Returns the jump target within the routine.
    pub fn successor(&self) -> Option<usize> {
        match self.operation.target() {
            Some(Target::Row(block)) if block != NEXT => Some(block),
            _ => None,
        }
    }

    /// Returns whether it changes more than a register, so that it must be executed exactly when
    /// the program executes it.
    pub fn has_effect(&self) -> bool {
        matches!(
            self.operation,
            Operation::Store { .. } | Operation::Atomic { .. } | Operation::Call { .. }
        )
    }

    /// Returns all values that it uses, except those that its jump passes on.
    pub fn used(&self) -> impl Iterator<Item = Value> {
        let fixed = self.fixed.iter().map(|(_, value)| *value);
        self.reads.iter().copied().chain(fixed).chain(self.before)
    }

    /// Returns whether it only skips later lanes of its row.
    pub fn is_skip(&self) -> bool {
        self.operation.target() == Some(Target::Row(NEXT))
    }

    /// Returns whether it decides the next row.
    pub fn is_control(&self) -> bool {
        self.operation.is_control() && !self.is_skip()
    }
}
