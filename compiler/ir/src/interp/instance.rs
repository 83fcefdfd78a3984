// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State of an instance between firings.

use super::Error;
use super::channel::Token;
use super::choice::Choice;
use super::frame::Frame;
use super::memory::ObjectMemory;
use super::packet::PacketBuffer;
use super::table::TableMemory;
use crate::oracle::{InstanceCounters, has_choice};
use crate::{Bits, BlockId, ChannelId, InstanceId, PortId, Program, Sink, Source};

/// Maximum number of input ports of an element: masks are held in a machine word.
const MAX_INPUTS: usize = 64;

/// An element instance at run time; the default is a vacancy that is never inspected.
#[derive(Default)]
pub(super) struct InstanceState {
    pub name: String,
    pub objects: Vec<ObjectMemory>,
    pub tables: Vec<TableMemory>,
    /// Channel of each input port.
    pub inputs: Vec<ChannelId>,
    /// Channel of each output port.
    pub outputs: Vec<ChannelId>,
    /// For each output port: the item that is about to enter the channel.
    pub staged: Vec<Option<Token>>,
    /// Frame of the handler.
    pub frame: Frame,
    /// Block where the next firing begins, if the last one was suspended.
    pub resume: Option<BlockId>,
    /// Packets of the current firing.
    pub packets: Vec<PacketBuffer>,
    /// Ports that the next firing waits for.
    pub mask: u64,
    pub awaits_all: bool,
    pub choice: Choice,
    /// Whether its ready bitmaps are an oracle stream.
    pub has_choice: bool,
    pub counters: InstanceCounters,
    /// Answers to signals and methods.
    pub answers: Vec<Bits>,
    /// Ready ports of its last firing if that did nothing; firing again with the same would do
    /// nothing.
    pub quiet_ready: Option<u64>,
    /// Breakpoint that holds it.
    pub held_at: Option<String>,
    /// Number of firings after which it stops.
    pub firing_limit: u64,
}

impl InstanceState {
    pub fn new(program: &Program, id: InstanceId, choice: Choice) -> Result<Self, Error> {
        let name = program.instance(id).name.clone();
        let element = program.element_of(id);
        let too_large = |what: &str| Error::TooLarge { what: format!("{name}: {what}") };
        if element.inputs.len() > MAX_INPUTS {
            return Err(too_large("its number of inputs"));
        }
        let mut objects = vec![];
        for object in &element.state {
            objects.push(ObjectMemory::new(object).ok_or_else(|| too_large(&object.name))?);
        }
        let mut tables = vec![];
        for table in &element.tables {
            tables.push(TableMemory::new(table).ok_or_else(|| too_large(&table.name))?);
        }
        let open = |port: &str| Error::Unknown {
            instance: name.clone(),
            what: format!("channel at port {port}"),
        };
        let mut inputs = vec![];
        for (at, port) in element.inputs.iter().enumerate() {
            let channel = program.graph.channel_to(Sink::Port(id, PortId::new(at)));
            inputs.push(channel.ok_or_else(|| open(&port.name))?);
        }
        let mut outputs = vec![];
        for (at, port) in element.outputs.iter().enumerate() {
            let channel = program.graph.channel_from(Source::Port(id, PortId::new(at)));
            outputs.push(channel.ok_or_else(|| open(&port.name))?);
        }
        let handler = program.function(element.handler);
        Ok(Self {
            objects,
            tables,
            staged: outputs.iter().map(|_| None).collect(),
            mask: all_ports(inputs.len()),
            inputs,
            outputs,
            frame: Frame::new(handler).ok_or_else(|| too_large("its handler's objects"))?,
            resume: None,
            packets: vec![],
            awaits_all: element.await_all,
            choice,
            has_choice: has_choice(program, element),
            counters: InstanceCounters::default(),
            answers: vec![],
            quiet_ready: None,
            held_at: None,
            firing_limit: u64::MAX,
            name,
        })
    }

    /// Returns the mask of all input ports.
    pub fn all_ports(&self) -> u64 {
        all_ports(self.inputs.len())
    }

    /// Returns whether staged items wait for room in their channels.
    pub fn has_staged(&self) -> bool {
        self.staged.iter().any(Option::is_some)
    }
}

fn all_ports(count: usize) -> u64 {
    u64::MAX.checked_shr(64 - count as u32).unwrap_or(0)
}
