// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Description of an image for hosts that load it without the program: endpoints, instances,
//! variables, methods and channels by name and shape. Stored as JSON beside the library.

use freeport_ir::oracle::has_choice;
use freeport_ir::{
    Direction, Element, FunctionId, Item, OnFull, Probe, Program, Sink, Source, TrapCode,
};
use serde::{Deserialize, Serialize};

/// The description of an image.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// Name of the program.
    pub program: String,
    /// Version of this crate that built it.
    pub version: String,
    /// Whether the code records its choices.
    pub records: bool,
    /// Endpoints, in the order of [`EndpointId`](freeport_ir::EndpointId).
    pub endpoints: Vec<EndpointInfo>,
    /// Instances, in the order of [`InstanceId`](freeport_ir::InstanceId).
    pub instances: Vec<InstanceInfo>,
    /// Element types, in the order of [`ElementId`](freeport_ir::ElementId).
    pub elements: Vec<ElementInfo>,
    /// Channels, in the order of [`ChannelId`](freeport_ir::ChannelId).
    pub channels: Vec<ChannelInfo>,
    /// Trap codes that the code counts, in the order of its counters.
    pub traps: Vec<TrapInfo>,
    /// Probes, in the order of their numbers in the code.
    pub probes: Vec<ProbeInfo>,
}

/// An endpoint.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct EndpointInfo {
    /// Name, such as `from_tor`.
    pub name: String,
    /// Whether it leads into the graph.
    pub is_input: bool,
    /// Kind of item it carries.
    pub item: ItemInfo,
}

/// Kind of item at an endpoint or on a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemInfo {
    /// Packets, flit by flit.
    Flit,
    /// Whole packets.
    Packet,
    /// Records of this width.
    Record(u32),
}

/// An element instance.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InstanceInfo {
    /// Name of the instance.
    pub name: String,
    /// Position of its element in [`Manifest::elements`].
    pub element: usize,
}

/// An element type.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ElementInfo {
    /// Name, with its compile-time arguments.
    pub name: String,
    /// Names of its input ports.
    pub inputs: Vec<String>,
    /// Names of its output ports.
    pub outputs: Vec<String>,
    /// State variables, in the order of [`ObjectId`](freeport_ir::ObjectId).
    pub variables: Vec<VariableInfo>,
    /// Tables, in the order of [`TableId`](freeport_ir::TableId).
    #[serde(default)]
    pub tables: Vec<TableInfo>,
    /// Methods.
    pub methods: Vec<MethodInfo>,
    /// Whether it handles signals.
    pub takes_signals: bool,
    /// Whether its ready bitmaps are recorded.
    pub has_choice: bool,
    /// Whether it fires only when all ports that it waits for have an item, instead of any.
    pub awaits_all: bool,
}

/// A state variable.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct VariableInfo {
    /// Name of the variable.
    pub name: String,
    /// Width of one element.
    pub width: u32,
    /// Number of elements.
    pub depth: u64,
    /// Space it was declared in, as spelled in the text form.
    pub place: String,
    /// Whether the host may read and write it by name.
    pub is_host_visible: bool,
}

/// A table.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TableInfo {
    /// Name of the table.
    pub name: String,
    /// Kind of match, as spelled in the text form.
    pub kind: String,
    /// Width of a key.
    pub key_bits: u32,
    /// Width of a value.
    pub value_bits: u32,
    /// Maximum number of entries.
    pub capacity: u64,
    /// Whether its entries are listed in the order of their last use.
    pub is_ordered_by_use: bool,
}

impl TableInfo {
    fn of(table: &freeport_ir::Table) -> Self {
        Self {
            name: table.name.clone(),
            kind: table.kind.name().to_owned(),
            key_bits: table.key_bits,
            value_bits: table.value_bits,
            capacity: table.capacity,
            is_ordered_by_use: table.kind == freeport_ir::TableKind::LruHash,
        }
    }

    pub(crate) fn key_bytes(&self) -> usize {
        self.key_bits.div_ceil(8) as usize
    }

    pub(crate) fn value_bytes(&self) -> usize {
        self.value_bits.div_ceil(8) as usize
    }
}

/// A method.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct MethodInfo {
    /// Name of the method.
    pub name: String,
    /// Widths of its parameters, in bits.
    pub parameters: Vec<u32>,
    /// Width of its result, if it has one.
    pub result: Option<u32>,
}

/// A channel.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ChannelInfo {
    /// Ends of the channel, as `a.out -> b.in`.
    pub name: String,
    /// Kind of item it carries.
    pub item: ItemInfo,
    /// Minimum number of items it can hold.
    pub depth: u32,
    /// Number of items the code lets it hold, which may be more.
    pub room: u32,
    /// Variables and tables of the reader that are prefetched before its firing, because an item
    /// determines where it accesses them.
    pub asked: Vec<String>,
    /// Whether it drops items when full instead of blocking the writer.
    pub is_lossy: bool,
    /// Instance and output port that write it, unless an endpoint feeds it.
    pub writer: Option<(usize, usize)>,
    /// Instance and input port that read it, unless it leads out of the graph.
    pub reader: Option<(usize, usize)>,
    /// Endpoint that feeds it, if any.
    pub endpoint: Option<usize>,
    /// Whether its reader fires immediately after its writer, so that items do not wait in it.
    pub is_fused: bool,
}

/// A trap code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrapInfo {
    /// A loop reached its bound.
    LoopBound,
    /// The watchdog expired.
    Watchdog,
    /// A trap of the program.
    User(u32),
}

/// A probe.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProbeInfo {
    /// Kind of probe.
    pub kind: ProbeKind,
    /// Format string, or name.
    pub text: String,
    /// Widths of its operands, in bits.
    pub operands: Vec<u32>,
}

/// The kind of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeKind {
    /// Prints a formatted text.
    Printf,
    /// Reports that a location was passed.
    Breakpoint,
    /// Reports operands under a name.
    Log,
}

impl Manifest {
    /// Returns the manifest of `program`, which native code supports, without traps, probes and
    /// fusion.
    pub fn of(program: &Program, records: bool) -> Self {
        let graph = &program.graph;
        let endpoints = graph.endpoints.iter().map(|endpoint| EndpointInfo {
            name: endpoint.name.clone(),
            is_input: endpoint.direction == Direction::Into,
            item: ItemInfo::of(endpoint.item),
        });
        let instances = graph.instances.iter().map(|instance| InstanceInfo {
            name: instance.name.clone(),
            element: instance.element.index(),
        });
        let channels = graph.channels.iter().map(|channel| ChannelInfo {
            name: channel_name(program, channel),
            item: ItemInfo::of(channel.item),
            depth: channel.depth,
            room: channel.depth,
            asked: vec![],
            is_lossy: channel.on_full == OnFull::DropCounted,
            writer: match channel.source {
                Source::Port(instance, port) => Some((instance.index(), port.index())),
                Source::Endpoint(_) => None,
            },
            reader: match channel.sink {
                Sink::Port(instance, port) => Some((instance.index(), port.index())),
                Sink::Endpoint(_) => None,
            },
            endpoint: match channel.source {
                Source::Endpoint(endpoint) => Some(endpoint.index()),
                Source::Port(..) => None,
            },
            is_fused: false,
        });
        Self {
            program: program.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            records,
            endpoints: endpoints.collect(),
            instances: instances.collect(),
            elements: program.elements.iter().map(|it| ElementInfo::of(program, it)).collect(),
            channels: channels.collect(),
            traps: vec![],
            probes: vec![],
        }
    }
}

impl ItemInfo {
    pub(crate) fn of(item: Item) -> Self {
        match item {
            Item::Bits(width) => Self::Record(width),
            Item::Flit => Self::Flit,
            Item::Packet { .. } => Self::Packet,
        }
    }

    /// Returns the width of an item; `None` for packets, whose length varies.
    pub fn bits(self) -> Option<u32> {
        match self {
            Self::Flit => Some(freeport_ir::flit::FLIT_BITS),
            Self::Packet => None,
            Self::Record(width) => Some(width),
        }
    }
}

impl ElementInfo {
    fn of(program: &Program, element: &Element) -> Self {
        let names = |ports: &[freeport_ir::Port]| ports.iter().map(|it| it.name.clone()).collect();
        let variables = element.state.iter().map(|object| VariableInfo {
            name: object.name.clone(),
            width: object.elem_bits,
            depth: object.depth,
            place: object.space.name().to_owned(),
            is_host_visible: object.host_visible,
        });
        let methods = element.methods.iter().map(|method| {
            let (parameters, result) = signature(program, method.function);
            MethodInfo { name: method.name.clone(), parameters, result }
        });
        Self {
            name: element.name.clone(),
            inputs: names(&element.inputs),
            outputs: names(&element.outputs),
            variables: variables.collect(),
            tables: element.tables.iter().map(TableInfo::of).collect(),
            methods: methods.collect(),
            takes_signals: element.signal.is_some(),
            has_choice: has_choice(program, element),
            awaits_all: element.await_all,
        }
    }
}

impl From<TrapCode> for TrapInfo {
    fn from(code: TrapCode) -> Self {
        match code {
            TrapCode::LoopBound => Self::LoopBound,
            TrapCode::Watchdog => Self::Watchdog,
            TrapCode::User(code) => Self::User(code),
        }
    }
}

impl From<TrapInfo> for TrapCode {
    fn from(code: TrapInfo) -> Self {
        match code {
            TrapInfo::LoopBound => Self::LoopBound,
            TrapInfo::Watchdog => Self::Watchdog,
            TrapInfo::User(code) => Self::User(code),
        }
    }
}

impl ProbeInfo {
    pub(crate) fn of(probe: &Probe, operands: Vec<u32>) -> Self {
        let (kind, text) = match probe {
            Probe::Printf(format) => (ProbeKind::Printf, format),
            Probe::Breakpoint(name) => (ProbeKind::Breakpoint, name),
            Probe::Log(name) => (ProbeKind::Log, name),
        };
        Self { kind, text: text.clone(), operands }
    }
}

/// Returns the widths of the parameters and of the result of a function over bit vectors.
pub(crate) fn signature(program: &Program, function: FunctionId) -> (Vec<u32>, Option<u32>) {
    let function = program.function(function);
    let params = function.params().iter().filter_map(|param| function.type_of(*param).bits());
    (params.collect(), function.result.and_then(freeport_ir::Type::bits))
}

fn channel_name(program: &Program, channel: &freeport_ir::Channel) -> String {
    let endpoint = |at: usize| program.graph.endpoints[at].name.clone();
    let source = match channel.source {
        Source::Endpoint(id) => endpoint(id.index()),
        Source::Port(id, at) => {
            let port = &program.element_of(id).outputs[at.index()];
            format!("{}.{}", program.instance(id).name, port.name)
        }
    };
    let sink = match channel.sink {
        Sink::Endpoint(id) => endpoint(id.index()),
        Sink::Port(id, at) => {
            let port = &program.element_of(id).inputs[at.index()];
            format!("{}.{}", program.instance(id).name, port.name)
        }
    };
    format!("{source} -> {sink}")
}
