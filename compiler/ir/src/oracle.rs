// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Choice and its record. Everything in a run that the program and its input do not decide is an
//! oracle stream; given its oracles, a graph is a Kahn network, and every back end must produce the
//! same [`Execution`]. Native code records, the interpreter replays.

use crate::{
    Bits, Element, Function, InstanceId, MethodId, ObjectId, Op, Program, TableId, Term, TrapCode,
};
use std::collections::BTreeMap;

/// All oracle streams of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oracles {
    /// By instance.
    pub instances: Vec<InstanceOracle>,
    /// By channel.
    pub channels: Vec<ChannelOracle>,
}

/// The choices of one instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceOracle {
    /// For an instance whose element [has a choice](has_choice): the ready bitmap (bit i: input i
    /// is masked and has an item) of each firing that did something, in order.
    pub ready: Vec<u64>,
    /// What `now` gave, in order.
    pub now: Vec<u64>,
    /// What `random` gave, in order.
    pub random: Vec<u64>,
    /// What the host did, in order; for an instance whose methods another one calls, also that.
    pub host: Vec<HostEvent>,
    /// The methods of other instances that it called, in order. Each is among the `host` events of
    /// its instance too, so that every instance is replayed by itself.
    pub calls: Vec<MethodCall>,
}

/// A call of a method by an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodCall {
    /// Of which instance.
    pub instance: InstanceId,
    /// Which of its methods.
    pub method: MethodId,
    /// With what.
    pub args: Vec<Bits>,
    /// What it gave, if it has a result; 0 if it trapped.
    pub result: Option<Bits>,
}

/// Something the host did to an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEvent {
    /// It happened before the firing of that number (counted from 0, those that did something).
    pub before_firing: u64,
    /// What it was.
    pub action: HostAction,
}

/// What the host can do to an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostAction {
    /// Sent a signal of [`SIGNAL_BITS`](crate::SIGNAL_BITS).
    Signal(Bits),
    /// Called the method of that number with these arguments.
    Method(usize, Vec<Bits>),
    /// Wrote a state object.
    Write {
        /// Which.
        object: ObjectId,
        /// Which of its elements.
        index: u64,
        /// What.
        value: Bits,
    },
    /// Updated a table.
    TableUpdate {
        /// Which.
        table: TableId,
        /// Under which key.
        key: Bits,
        /// What.
        value: Bits,
    },
    /// Deleted from a table.
    TableDelete {
        /// Which.
        table: TableId,
        /// Which key.
        key: Bits,
    },
}

/// The entries of a table, keys with values: of a table that orders its entries by use from the
/// longest unused on, of others in the order of their keys as numbers.
pub type TableEntries = Vec<(Bits, Bits)>;

/// Puts the entries of a table that does not order them by use in order.
pub fn sort_entries(entries: &mut TableEntries) {
    entries
        .sort_by(|(left, _), (right, _)| left.limbs().iter().rev().cmp(right.limbs().iter().rev()));
}

/// The choices of one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelOracle {
    /// For a lossy channel: whether each item put was kept, in order.
    pub keep: Vec<bool>,
}

/// What a run did, for comparison between back ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Execution {
    /// By channel: every item that entered it, in order (a packet as its bytes' bits).
    pub histories: Vec<Vec<Bits>>,
    /// By instance, by state object, by element: contents at the end.
    pub state: Vec<Vec<Vec<Bits>>>,
    /// By instance, by table: contents at the end.
    pub tables: Vec<Vec<TableEntries>>,
    /// By instance.
    pub counters: Vec<InstanceCounters>,
    /// By channel, [without stalls](ChannelCounters::without_stalls).
    pub channels: Vec<ChannelCounters>,
    /// By instance: answers to signals, methods and actions on tables, in order.
    pub answers: Vec<Vec<Bits>>,
}

/// What went on in an instance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InstanceCounters {
    /// Firings that did something: a take of an item, a put, a store to state (in range or not), a
    /// table update or delete, a lookup in a table that orders its entries by use, an oracle read,
    /// a probe, a trap, a suspension, or a mask other than the one before. What a firing that did
    /// nothing counts below is not counted either.
    pub firings: u64,
    /// Loads and stores out of range, of objects, references and packets.
    pub out_of_range: u64,
    /// Takes and peeks of a port that was not ready.
    pub empty_reads: u64,
    /// Traps.
    pub traps: BTreeMap<TrapCode, u64>,
}

/// What went through a channel. An item is counted when it enters; one that the host feeds, when
/// the other end of the channel takes it, because nothing says where it waits until then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Items.
    pub items: u64,
    /// Packets: flits with `sop`, packet items, or records.
    pub packets: u64,
    /// Bytes: the payload of flits without their pad, the length of packets, or of records their
    /// bits in whole bytes.
    pub bytes: u64,
    /// Firings that had to wait because the channel was full, each counted once. How many these
    /// are depends on the schedule.
    pub stalls: u64,
    /// Items that a lossy channel dropped because it was full.
    pub dropped: u64,
}

/// How full a channel is. That depends on the schedule, and back ends need not agree on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Items that wait in it now.
    pub waiting: u64,
    /// Most items that waited in it at a time, as far as anybody looked.
    pub peak: u64,
    /// Items it has room for.
    pub room: u64,
}

impl Occupancy {
    /// Of several channels that do the same, what the fullest one says.
    pub fn or_fuller(self, other: Self) -> Self {
        Self {
            waiting: self.waiting.max(other.waiting),
            peak: self.peak.max(other.peak),
            room: self.room.max(other.room),
        }
    }
}

impl ChannelCounters {
    /// What does not depend on the schedule.
    pub fn without_stalls(self) -> Self {
        Self { stalls: 0, ..self }
    }
}

/// Whether the firings of an element depend on which inputs happen to be ready. Only such elements
/// have a `ready` stream: one that waits for a single port, or for all of them, has no choice.
pub fn has_choice(program: &Program, element: &Element) -> bool {
    if element.inputs.is_empty() {
        return false;
    }
    let waits_for_one_set = element.inputs.len() == 1 || element.await_all;
    let handler = program.function(element.handler);
    !(waits_for_one_set && masks_are_constant(handler))
}

/// Whether every firing ends with a constant mask that is not 0.
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
