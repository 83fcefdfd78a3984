// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The plan of how the instances of a graph are connected in native code.
//!
//! A channel into an element with a single input is fused unless it closes a cycle: the reader's
//! firing follows the writer's in the same C function, and the item never goes through memory.
//! Every instance without an incoming fused channel is a root, which the worker fires from the
//! rings of its inputs or from the host's frames. Instances are stepped in topological order as far
//! as one exists.
//!
//! A channel whose items predict accesses of the reader to large memory ([`Slices`]) is not fused:
//! the memory is prefetched when the item enters the ring, and the reader fires once there are
//! many. For that, all rings around it hold at least [`AHEAD`] items, whatever depth was declared.

use super::prefetch::Slices;
use super::{Emitter, units};
use crate::transparency::{Transparency, transparency};
use crate::{Error, Options};
use freeport_ir::{
    Channel, ChannelId, ElementId, EndpointId, Graph, InstanceId, Item, OnFull, PortId, Program,
    Sink, Source,
};
use std::collections::BTreeSet;

/// Maximum instances in one root's function; the next one is a root again.
const MAX_FUSED: usize = 64;

/// The same limit in a graph of many instances: the compile time of such a function grows faster
/// than its size, and rings between the functions cost little compared with eight firings.
const MAX_FUSED_OF_MANY: usize = 8;

/// Maximum instances in all functions of such a graph's roots, shared functions counted once. If
/// roots differ more than that, nothing is fused: then only elements differ.
const MAX_FUSED_IN_ALL: usize = 32;

/// Capacity of a ring, one staged item included, if memory is prefetched ahead of the firing.
pub(super) const AHEAD: u32 = 64;

/// Minimum declared depth of a lossy channel, which is not increased, to be worth a ring.
const MIN_LOSSY_DEPTH: u32 = 8;

/// Maximum input ports: masks are held in a machine word.
const MAX_INPUTS: usize = 64;

/// Source of an input port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Input {
    /// A ring that another instance writes.
    Ring(ChannelId),
    /// The host's frames or records, with the channel they represent.
    Host(EndpointId, ChannelId),
}

impl Input {
    pub fn channel(self) -> ChannelId {
        match self {
            Input::Ring(channel) | Input::Host(_, channel) => channel,
        }
    }
}

/// Connections of the instances of a graph.
pub(super) struct Plan {
    /// By instance and input port: its source.
    pub inputs: Vec<Vec<Input>>,
    /// By instance and output port: its channel.
    pub outputs: Vec<Vec<ChannelId>>,
    /// By channel: whether its reader's firing is part of its writer's.
    pub is_fused: Vec<bool>,
    /// By instance: whether it has no incoming fused channel.
    pub is_root: Vec<bool>,
    /// By instance: the root whose function contains it.
    pub root: Vec<InstanceId>,
    /// Whether identical instances share the functions that step them.
    pub shares: bool,
    /// By channel: the items it holds before it blocks its writer, or drops.
    pub depths: Vec<u32>,
    /// Predictions, from items, of memory accesses of their readers.
    pub slices: Slices,
    /// All instances, writers before readers unless there is a cycle.
    pub order: Vec<InstanceId>,
    /// By element: how it handles the bodies of packets.
    transparency: Vec<Transparency>,
}

impl Plan {
    /// Makes a plan. `emitter` must already contain what is forwarded and recorded.
    pub fn of(emitter: &Emitter<'_>, options: &Options) -> Result<Self, Error> {
        if emitter.program.graph.instances.len() < options.many_instances {
            return Self::with(emitter, options, MAX_FUSED, false);
        }
        let plan = Self::with(emitter, options, MAX_FUSED_OF_MANY, true)?;
        match units::fused_in_all(emitter, &plan) > MAX_FUSED_IN_ALL {
            true => Self::with(emitter, options, 1, true),
            false => Ok(plan),
        }
    }

    fn with(
        emitter: &Emitter<'_>,
        options: &Options,
        max_fused: usize,
        shares: bool,
    ) -> Result<Self, Error> {
        let program = emitter.program;
        let graph = &program.graph;
        check(program)?;
        let mut inputs = vec![];
        let mut outputs = vec![];
        for at in 0..graph.instances.len() {
            let (reads, writes) = ports(program, InstanceId::new(at))?;
            inputs.push(reads);
            outputs.push(writes);
        }
        let order = topological_order(graph);
        let slices = match options.prefetch {
            true => Slices::of(emitter, options.large_memory),
            false => Slices::default(),
        };
        let (is_fused, root) = fuse(program, &slices, &inputs, &order, max_fused);
        let is_root = (root.iter().enumerate()).map(|(at, root)| root.index() == at).collect();
        let depths = depths(program, &slices);
        let elements = (0..program.elements.len()).map(ElementId::new);
        let transparency = elements.map(|id| transparency(program, id)).collect();
        Ok(Self {
            inputs,
            outputs,
            is_fused,
            is_root,
            root,
            shares,
            depths,
            slices,
            order,
            transparency,
        })
    }

    /// Returns how an instance handles the bodies of packets.
    pub fn transparency(&self, program: &Program, id: InstanceId) -> Transparency {
        self.transparency[program.instance(id).element.index()]
    }

    /// Returns the endpoints whose host frames an instance reads.
    pub fn host_flits(&self, program: &Program, id: InstanceId) -> Vec<EndpointId> {
        let inputs = self.inputs[id.index()].iter().filter_map(|input| match input {
            Input::Host(endpoint, _) => Some(*endpoint),
            Input::Ring(_) => None,
        });
        let is_flit = |id: &EndpointId| program.graph.endpoints[id.index()].item == Item::Flit;
        inputs.filter(is_flit).collect()
    }

    /// Returns, in C, the input whose flits may enter this channel in a step of the writer's root.
    pub fn source(&self, program: &Program, id: ChannelId) -> Option<String> {
        let Source::Port(writer, _) = program.graph.channels[id.index()].source else {
            return None;
        };
        match self.host_flits(program, self.root[writer.index()])[..] {
            [] => None,
            [one] => Some(format!("&graph->endpoint_{}", one.0)),
            _ => Some("graph->newest".to_owned()),
        }
    }

    /// Returns the names of objects that are prefetched when an item enters a channel.
    pub fn asked(&self, program: &Program, id: ChannelId) -> Vec<String> {
        match program.graph.channels[id.index()].sink {
            Sink::Port(reader, port) => {
                self.slices.names(program, program.instance(reader).element, port)
            }
            Sink::Endpoint(_) => vec![],
        }
    }

    /// Returns the instances that fire in the function of `id`: those fused into it, or it alone.
    pub fn members(&self, id: InstanceId) -> Vec<InstanceId> {
        match self.is_root[id.index()] {
            true => self.order.iter().copied().filter(|at| self.root[at.index()] == id).collect(),
            false => vec![id],
        }
    }

    /// Returns the channels that are read or written when `id` and its members fire.
    pub fn channels(&self, id: InstanceId) -> Vec<ChannelId> {
        let members = self.members(id);
        let reads = members.iter().flat_map(|at| &self.inputs[at.index()]).map(|it| it.channel());
        let writes = members.iter().flat_map(|at| &self.outputs[at.index()]).copied();
        let channels: BTreeSet<ChannelId> = reads.chain(writes).collect();
        channels.into_iter().collect()
    }
}

/// Returns whether items of a channel predict accesses of its reader.
fn tells(program: &Program, slices: &Slices, channel: &Channel) -> bool {
    match channel.sink {
        Sink::Port(reader, port) => slices.has(program.instance(reader).element, port),
        Sink::Endpoint(_) => false,
    }
}

/// Returns the depth of each channel. Every channel connected to a reader with prefetching has to
/// hold as much as its ring: a writer that is blocked earlier would make the batches smaller, above
/// all one that feeds a second path to the point where both meet again. A lossy channel keeps its
/// declared depth: how much it drops is visible to the programmer.
fn depths(program: &Program, slices: &Slices) -> Vec<u32> {
    let channels = &program.graph.channels;
    let mut is_deep: Vec<bool> = program.graph.instances.iter().map(|_| false).collect();
    for channel in channels.iter().filter(|channel| tells(program, slices, channel)) {
        if let (Source::Port(writer, _), Sink::Port(reader, _)) = (channel.source, channel.sink) {
            is_deep[writer.index()] = true;
            is_deep[reader.index()] = true;
        }
    }
    let inner = || {
        channels.iter().filter_map(|channel| match (channel.source, channel.sink) {
            (Source::Port(from, _), Sink::Port(to, _)) => Some((from.index(), to.index())),
            _ => None,
        })
    };
    while let Some((from, to)) = inner().find(|(from, to)| is_deep[*from] != is_deep[*to]) {
        is_deep[from] = true;
        is_deep[to] = true;
    }
    let depth = |channel: &Channel| match (channel.source, channel.sink, channel.on_full) {
        (Source::Port(from, _), Sink::Port(..), OnFull::Block) if is_deep[from.index()] => {
            channel.depth.max(AHEAD - 1)
        }
        _ => channel.depth,
    };
    channels.iter().map(depth).collect()
}

/// Rejects features that native code does not support.
fn check(program: &Program) -> Result<(), Error> {
    for instance in &program.graph.instances {
        let element = program.element(instance.element);
        let refuse =
            |what: &str| Err(Error::unsupported(program, what, &element.name, element.loc));
        if element.inputs.len() > MAX_INPUTS {
            return refuse("more than 64 inputs");
        }
    }
    for channel in &program.graph.channels {
        let refuse = |what: &str| Err(Error::unsupported(program, what, "a channel", channel.loc));
        if channel.depth > 1 << 20 {
            return refuse("a channel deeper than 1048576 items");
        }
    }
    Ok(())
}

fn ports(program: &Program, id: InstanceId) -> Result<(Vec<Input>, Vec<ChannelId>), Error> {
    let graph = &program.graph;
    let element = program.element_of(id);
    let open =
        |port: &str| Error::unknown(&program.instance(id).name, format!("channel at port {port}"));
    let mut inputs = vec![];
    for (at, port) in element.inputs.iter().enumerate() {
        let channel = graph.channel_to(Sink::Port(id, PortId::new(at)));
        let channel = channel.ok_or_else(|| open(&port.name))?;
        inputs.push(match graph.channels[channel.index()].source {
            Source::Endpoint(endpoint) => Input::Host(endpoint, channel),
            Source::Port(..) => Input::Ring(channel),
        });
    }
    let mut outputs = vec![];
    for (at, port) in element.outputs.iter().enumerate() {
        let channel = graph.channel_from(Source::Port(id, PortId::new(at)));
        outputs.push(channel.ok_or_else(|| open(&port.name))?);
    }
    Ok((inputs, outputs))
}

/// Returns which channels are fused, and the root of each instance. A root contains at most
/// `max_fused` instances.
fn fuse(
    program: &Program,
    slices: &Slices,
    inputs: &[Vec<Input>],
    order: &[InstanceId],
    max_fused: usize,
) -> (Vec<bool>, Vec<InstanceId>) {
    let channels = &program.graph.channels;
    let mut is_fused = vec![false; channels.len()];
    let mut root: Vec<usize> = (0..inputs.len()).collect();
    let mut taken_in = vec![1; inputs.len()];
    let mut is_placed = vec![false; inputs.len()];
    for reader in order.iter().map(|id| id.index()) {
        is_placed[reader] = true;
        let [Input::Ring(channel)] = inputs[reader][..] else { continue };
        let Source::Port(writer, _) = channels[channel.index()].source else { continue };
        // A writer later in the order is on a cycle with its reader.
        let root_of_writer = root[writer.index()];
        let closes_cycle = !is_placed[writer.index()] || writer.index() == reader;
        let found = &channels[channel.index()];
        let is_deep = found.on_full == OnFull::Block || found.depth >= MIN_LOSSY_DEPTH;
        if is_deep && tells(program, slices, found) {
            continue;
        }
        if !closes_cycle && taken_in[root_of_writer] < max_fused {
            is_fused[channel.index()] = true;
            root[reader] = root_of_writer;
            taken_in[root_of_writer] += 1;
        }
    }
    (is_fused, root.into_iter().map(InstanceId::new).collect())
}

/// Orders writers before readers; if a cycle prevents that, the first remaining instance is next.
fn topological_order(graph: &Graph) -> Vec<InstanceId> {
    let count = graph.instances.len();
    let mut readers = vec![vec![]; count];
    let mut waits = vec![0; count];
    for channel in &graph.channels {
        if let (Source::Port(from, _), Sink::Port(to, _)) = (channel.source, channel.sink) {
            readers[from.index()].push(to.index());
            waits[to.index()] += 1;
        }
    }
    let mut order = vec![];
    let mut is_placed = vec![false; count];
    while order.len() < count {
        let free = (0..count).find(|at| !is_placed[*at] && waits[*at] == 0);
        let next = free.or_else(|| (0..count).find(|at| !is_placed[*at]));
        let next = next.expect("fewer are placed than there are");
        is_placed[next] = true;
        order.push(InstanceId::new(next));
        readers[next].iter().for_each(|reader| waits[*reader] -= 1);
    }
    order
}
