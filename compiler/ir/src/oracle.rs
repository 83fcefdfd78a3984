// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Choices of a run and their record. Everything that the program and its input do not determine is
//! an oracle stream. Given its oracles, a graph is a Kahn network, and every back end must produce
//! the same [`Execution`]. Native code records, the interpreter replays.

use crate::{
    Bits, Element, Function, InstanceId, MethodId, ObjectId, Op, Program, TableId, Term, TrapCode,
};
use std::collections::BTreeMap;

/// All oracle streams of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oracles {
    /// Oracles of each instance.
    pub instances: Vec<InstanceOracle>,
    /// Oracles of each channel.
    pub channels: Vec<ChannelOracle>,
}

/// The choices of one instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceOracle {
    /// For an instance whose element [has a choice](has_choice): the ready bitmap (bit i: input i
    /// is masked and has an item) of each counted firing, in order.
    pub ready: Vec<u64>,
    /// Results of `now`, in order.
    pub now: Vec<u64>,
    /// Results of `random`, in order.
    pub random: Vec<u64>,
    /// Actions of the host, in order; if other instances call its methods, those calls too.
    pub host: Vec<HostEvent>,
    /// Methods of other instances that it called, in order. Each is also among the `host` events of
    /// the called instance, so that every instance can be replayed independently.
    pub calls: Vec<MethodCall>,
}

/// A method call by an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodCall {
    /// Called instance.
    pub instance: InstanceId,
    /// Called method.
    pub method: MethodId,
    /// Arguments.
    pub args: Vec<Bits>,
    /// Result, if the method has one; 0 if it trapped.
    pub result: Option<Bits>,
}

/// An action of the host on an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEvent {
    /// Number of the firing that it preceded, counting from 0 the firings that did something.
    pub before_firing: u64,
    /// The action.
    pub action: HostAction,
}

/// An action that the host can perform on an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAction {
    /// A signal of [`SIGNAL_BITS`](crate::SIGNAL_BITS).
    Signal(Bits),
    /// A call of the method with this number, with these arguments.
    Method(usize, Vec<Bits>),
    /// A write to a state object.
    Write {
        /// Object written.
        object: ObjectId,
        /// Index of the element written.
        index: u64,
        /// Value written.
        value: Bits,
    },
    /// An update of a table.
    TableUpdate {
        /// Table updated.
        table: TableId,
        /// Key of the entry.
        key: Bits,
        /// Value of the entry.
        value: Bits,
    },
    /// A deletion from a table.
    TableDelete {
        /// Table.
        table: TableId,
        /// Key deleted.
        key: Bits,
    },
}

/// The entries of a table, keys with values: least recently used first if the table keeps that
/// order, otherwise in the numerical order of their keys.
pub type TableEntries = Vec<(Bits, Bits)>;

/// Sorts the entries of a table that does not order them by use.
pub fn sort_entries(entries: &mut TableEntries) {
    entries
        .sort_by(|(left, _), (right, _)| left.limbs().iter().rev().cmp(right.limbs().iter().rev()));
}

/// The choices of one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelOracle {
    /// For a lossy channel: whether each item was kept, in order of arrival.
    pub keep: Vec<bool>,
}

/// Observable results of a run, for comparison between back ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Execution {
    /// By channel: every item that entered it, in order (a packet as the bits of its bytes).
    pub histories: Vec<Vec<Bits>>,
    /// By instance, state object and element: final contents.
    pub state: Vec<Vec<Vec<Bits>>>,
    /// By instance and table: final contents.
    pub tables: Vec<Vec<TableEntries>>,
    /// Counters of each instance.
    pub counters: Vec<InstanceCounters>,
    /// Counters of each channel, [without stalls](ChannelCounters::without_stalls).
    pub channels: Vec<ChannelCounters>,
    /// By instance: answers to signals, methods and actions on tables, in order.
    pub answers: Vec<Vec<Bits>>,
}

/// Counters of an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceCounters {
    /// Firings that did something: a take of an item, a put, a store to state (in range or not), a
    /// table update or delete, a lookup in a table that orders its entries by use, an oracle read,
    /// a probe, a trap, a suspension, or a change of mask. The counters below do not include
    /// firings that did nothing.
    pub firings: u64,
    /// Loads and stores out of range, of objects, references and packets.
    pub out_of_range: u64,
    /// Takes and peeks of a port without an item.
    pub empty_reads: u64,
    /// Number of traps by code.
    pub traps: BTreeMap<TrapCode, u64>,
}

/// Counters of a channel. An item is counted when it enters; an item fed by the host is counted
/// when the reader takes it, because its position until then is unspecified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Number of items.
    pub items: u64,
    /// Number of packets: flits with `sop`, packet items, or records.
    pub packets: u64,
    /// Number of bytes: payload of flits without padding, length of packets, or bits of records
    /// rounded up to whole bytes.
    pub bytes: u64,
    /// Firings that had to wait because the channel was full, each counted once. The number depends
    /// on the schedule.
    pub stalls: u64,
    /// Items that a lossy channel dropped while full.
    pub dropped: u64,
}

/// Fill level of a channel. It depends on the schedule, and back ends need not agree on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Items waiting now.
    pub waiting: u64,
    /// Maximum number of items observed waiting.
    pub peak: u64,
    /// Capacity in items.
    pub room: u64,
}

impl Occupancy {
    /// Combines channels with the same role: the maximum of each number.
    pub fn or_fuller(self, other: Self) -> Self {
        Self {
            waiting: self.waiting.max(other.waiting),
            peak: self.peak.max(other.peak),
            room: self.room.max(other.room),
        }
    }
}

impl ChannelCounters {
    /// Returns the counters that do not depend on the schedule.
    pub fn without_stalls(self) -> Self {
        Self { stalls: 0, ..self }
    }
}

/// Returns whether the firings of an element depend on which inputs happen to be ready. Only such
/// elements have a `ready` stream: an element that waits for a single port, or for all of them, has
/// no choice.
pub fn has_choice(program: &Program, element: &Element) -> bool {
    if element.inputs.is_empty() {
        return false;
    }
    let waits_for_one_set = element.inputs.len() == 1 || element.await_all;
    let handler = program.function(element.handler);
    !(waits_for_one_set && masks_are_constant(handler))
}

/// Returns whether every firing ends with a constant mask that is not 0.
fn masks_are_constant(handler: &Function) -> bool {
    let constant = |value| {
        let mut insts = handler.blocks.iter().flat_map(|block| &block.insts);
        insts.any(|inst| {
            inst.result == Some(value) && matches!(&inst.op, Op::Const(bits) if !bits.is_zero())
        })
    };
    handler.blocks.iter().all(|block| match &block.term {
        Term::Done { mask } | Term::Suspend { mask, .. } => mask.is_none_or(constant),
        _ => true,
    })
}
