// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Blocks that are scheduled as one: control enters at the first and leaves at any jump. Each
//! result in it is a value of its own, and what a jump passes on is said by the jump.
//!
//! A value belongs to the register of the program that it was in. Whatever reads a value does so
//! where the program, executed in its order, still has it in that register. So all of a region can
//! be done in the order of the program with each value in its own register: other registers and
//! other orders are only ever faster, and a scheduler always has a way on.

use crate::blocks::NEXT;
use crate::machine::{PACKET, REGISTERS};
use crate::memory::moves_packet;
use crate::operation::{Arithmetic, Operand, Operation, Target, Width};
use freeport_ebpf::analysis::Access;

/// A result, or what a register holds when control enters. Those of the registers come first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Value(pub usize);

/// Where the packet begins, until it is moved.
pub const START: Value = Value(PACKET as usize);

/// What all registers hold.
pub type State = [Value; REGISTERS as usize];

/// Blocks with one entrance.
#[derive(Clone, Debug)]
pub struct Region {
    /// The block at which control enters, whose number jumps use.
    pub block: usize,
    /// What is done, in the order of the program.
    pub nodes: Vec<Node>,
    /// Of each value what is known of it.
    pub values: Vec<Known>,
}

/// What is known of a value.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// The register that it belongs to.
    pub register: u8,
    /// What gives it; nothing for those that a region begins with.
    pub node: Option<usize>,
    /// What it is, if it is a constant.
    pub constant: Option<u64>,
    /// How many of its bits may be set at most, from the lowest on.
    pub bits: u32,
    /// What it is the sum of, if it is there from the beginning.
    pub sum: Option<(Value, i64)>,
    /// Whether it is the address of the context, and there from the beginning.
    pub is_context: bool,
}

impl Known {
    /// Of a value of a register that may be anything.
    fn nothing(register: u8, node: Option<usize>) -> Self {
        Self { register, node, constant: None, bits: 64, sum: None, is_context: false }
    }
}

/// An operation on values. The registers that it names mean nothing until it is scheduled.
#[derive(Clone, Debug)]
pub struct Node {
    /// What is done.
    pub operation: Operation,
    /// Slots of eBPF instructions.
    pub origins: Vec<usize>,
    /// Memory that it touches.
    pub accesses: Vec<Access>,
    /// What it reads, in the order of [`Operation::read`].
    pub reads: Vec<Value>,
    /// What it finds in registers that cannot be chosen.
    pub fixed: Vec<(u8, Value)>,
    /// What the register of its result has if it is skipped.
    pub before: Option<Value>,
    /// What it gives.
    pub result: Option<Value>,
    /// Whether its result is in its own register and no other.
    pub is_result_fixed: bool,
    /// The nodes with this number go into one row, in this order, behind all others there.
    pub arm: Option<usize>,
    /// What registers hold if it leaves.
    pub state: Option<Box<State>>,
    /// Whether another node does what it did.
    pub is_gone: bool,
    /// Whether anybody needs it.
    pub is_needed: bool,
}

impl Region {
    /// A region without anything in it.
    pub fn new(block: usize) -> Self {
        let entry = |register| Known::nothing(register, None);
        Self { block, nodes: vec![], values: (0..REGISTERS).map(entry).collect() }
    }

    /// A new value for what the next node gives.
    pub fn add_value(&mut self, register: u8) -> Value {
        let node = Some(self.nodes.len());
        self.values.push(Known::nothing(register, node));
        Value(self.values.len() - 1)
    }

    /// What is known of a value.
    pub fn known(&self, value: Value) -> &Known {
        &self.values[value.0]
    }

    /// The node that a value is the result of, if it always is.
    pub fn giver(&self, value: Value) -> Option<&Node> {
        let node = self.known(value).node.map(|node| &self.nodes[node])?;
        node.arm.is_none().then_some(node)
    }

    /// Whether the program, executed in its order, has a value in its own register before a node.
    pub fn is_current(&self, value: Value, at: usize) -> bool {
        let register = self.known(value).register;
        if register == PACKET {
            return !self.nodes[..at].iter().any(|node| moves_packet(&node.operation));
        }
        let given = self.nodes[..at].iter().rev().filter_map(|node| node.result);
        let last = given.into_iter().find(|result| self.known(*result).register == register);
        last.unwrap_or(Value(register.into())) == value
    }

    /// Makes a constant before a node, which that one will have for a reason.
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

    /// Does behind a node the same again, for a value of another register.
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

    /// Nodes that are needed, with their places.
    pub fn needed(&self) -> impl Iterator<Item = (usize, &Node)> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.is_needed)
    }
}

impl Node {
    /// Where it may lead within the routine.
    pub fn successor(&self) -> Option<usize> {
        match self.operation.target() {
            Some(Target::Row(block)) if block != NEXT => Some(block),
            _ => None,
        }
    }

    /// Whether it changes more than a register, so that it must be done when the program does it,
    /// and not if it does not.
    pub fn has_effect(&self) -> bool {
        matches!(
            self.operation,
            Operation::Store { .. } | Operation::Atomic { .. } | Operation::Call { .. }
        )
    }

    /// Everything that it uses, but what its jump passes on.
    pub fn used(&self) -> impl Iterator<Item = Value> {
        let fixed = self.fixed.iter().map(|(_, value)| *value);
        self.reads.iter().copied().chain(fixed).chain(self.before)
    }

    /// Whether it only skips what is behind it in its row.
    pub fn is_skip(&self) -> bool {
        self.operation.target() == Some(Target::Row(NEXT))
    }

    /// Whether it decides where control goes.
    pub fn is_control(&self) -> bool {
        self.operation.is_control() && !self.is_skip()
    }
}
