// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A whole packet program: functions, element types, and the graph of their instances.

use crate::{
    BlockId, ElementId, FunctionId, InstanceId, Item, Loc, LocalId, MethodId, Object, ObjectRef,
    Op, PortId, Table, Target, Term, Type, ValueId,
};

/// A packet program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Name, for reports.
    pub name: String,
    /// Source files that [`Loc`] refers to.
    pub files: Vec<String>,
    /// Bodies of handlers and functions.
    pub functions: Vec<Function>,
    /// Element types, specialised: all compile-time parameters are bound.
    pub elements: Vec<Element>,
    /// Instances and channels.
    pub graph: Graph,
}

/// A body: blocks of instructions over values. Each value is defined once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Name, for reports.
    pub name: String,
    /// The element whose state, tables and ports it may use; `None` for a plain function.
    pub owner: Option<ElementId>,
    /// Result type, if it returns a value.
    pub result: Option<Type>,
    /// Objects that live for one firing (in a called function: for one call).
    pub locals: Vec<Object>,
    /// Values, indexed by [`ValueId`].
    pub values: Vec<Value>,
    /// Blocks; the first is the entry, and its parameters are the function's.
    pub blocks: Vec<Block>,
    /// Whether it is merged into its callers (ClickNP 2.5).
    pub inline: bool,
    /// Location of the declaration.
    pub loc: Loc,
}

/// Properties of a value besides its definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// Type of the value.
    pub ty: Type,
    /// The source variable that it holds, if any.
    pub name: Option<String>,
}

/// Instructions that run in sequence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Parameters; each predecessor passes the values.
    pub params: Vec<ValueId>,
    /// Instructions in order.
    pub insts: Vec<Inst>,
    /// Terminator.
    pub term: Term,
    /// Location of the terminator.
    pub term_loc: Loc,
    /// Set on the header of a loop.
    pub loop_info: Option<LoopInfo>,
}

/// Properties of a loop, on its header block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopInfo {
    /// Maximum iterations each time the loop is entered. A back end that finds the condition true
    /// once more traps with [`TrapCode::LoopBound`](crate::TrapCode::LoopBound).
    pub bound: u64,
    /// Requested unrolling.
    pub unroll: Unroll,
    /// The programmer asserts that iterations touch different memory (ClickNP 4.7).
    pub independent: bool,
    /// Each return to the header counts for the watchdog. A back end sets this mark before its
    /// passes run ([`mark_watched_loops`](crate::analysis::mark_watched_loops)).
    pub is_watched: bool,
}

/// Requested unrolling of a loop (ClickNP 2.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unroll {
    /// The compiler chooses.
    Auto,
    /// Complete unrolling.
    Full,
    /// Unrolling by this factor, 2 or more.
    By(u32),
    /// No unrolling: one iteration per firing in hardware.
    Flatten,
}

/// An operation with its result and location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inst {
    /// The value it defines, if any.
    pub result: Option<ValueId>,
    /// Operation.
    pub op: Op,
    /// Source location.
    pub loc: Loc,
}

/// An element type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// Name, with its compile-time arguments.
    pub name: String,
    /// Input ports.
    pub inputs: Vec<Port>,
    /// Output ports.
    pub outputs: Vec<Port>,
    /// Objects with the lifetime of an instance.
    pub state: Vec<Object>,
    /// Keyed tables.
    pub tables: Vec<Table>,
    /// Runs once, before any other function.
    pub init: Option<FunctionId>,
    /// Runs at every firing.
    pub handler: FunctionId,
    /// Handles a signal, between firings: takes [`SIGNAL_BITS`] and returns [`SIGNAL_BITS`].
    pub signal: Option<FunctionId>,
    /// Methods that the host can call between firings.
    pub methods: Vec<Method>,
    /// Fires only when every masked port has an item, instead of any.
    pub await_all: bool,
    /// Declared clock cycles between firings in hardware, at least 1.
    pub initiation_interval: u32,
    /// Location of the declaration.
    pub loc: Loc,
}

/// Width of a signal and of its answer: a 64-bit header (command in the low 32 bits, element in the
/// high 32) and [`SIGNAL_WORDS`] words of 64 bits, `LParam[0]` lowest.
pub const SIGNAL_BITS: u32 = 512;
/// Number of parameter words in a signal.
pub const SIGNAL_WORDS: usize = 7;
/// Lowest bit of `LParam[0]`.
pub const SIGNAL_PARAM_BIT: u32 = 64;

/// A named entry point for the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Method {
    /// Name of the method.
    pub name: String,
    /// Body; parameters and result are the method's.
    pub function: FunctionId,
}

/// A port of an element type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Name of the port.
    pub name: String,
    /// Kind of item it carries.
    pub item: Item,
    /// Location of the declaration.
    pub loc: Loc,
}

/// Instances, endpoints, and the channels between them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    /// Element instances.
    pub instances: Vec<Instance>,
    /// Endpoints: network ports, the host, memory.
    pub endpoints: Vec<Endpoint>,
    /// Channels. Every port of an instance and every endpoint belongs to exactly one.
    pub channels: Vec<Channel>,
}

/// An element instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// Name of the instance.
    pub name: String,
    /// Element type.
    pub element: ElementId,
    /// Runs on the CPU even if the rest of the program runs on a NIC.
    pub host: bool,
    /// Takes signals (`@`).
    pub controlled: bool,
    /// Its hardware is a hand-written Verilog module; the element is its model.
    pub verilog: bool,
    /// Location of the declaration.
    pub loc: Loc,
}

/// Direction of the items that pass an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// Into the graph, such as `from_tor`.
    Into,
    /// Out of the graph, such as `to_tor`.
    OutOf,
}

/// A connection of the graph to the outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Name, such as `from_tor`.
    pub name: String,
    /// Direction of its items.
    pub direction: Direction,
    /// Kind of item it carries.
    pub item: Item,
}

/// Source of a channel's items.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// An endpoint into the graph.
    Endpoint(crate::EndpointId),
    /// An output port.
    Port(InstanceId, PortId),
}

/// Destination of a channel's items.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sink {
    /// An endpoint out of the graph.
    Endpoint(crate::EndpointId),
    /// An input port.
    Port(InstanceId, PortId),
}

/// Behaviour of a full channel when another item is offered.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OnFull {
    /// Holds back the next firing of the writer.
    Block,
    /// Drops the item and counts it; on a flit channel the whole packet, from its first flit on.
    DropCounted,
}

/// Items a channel holds if its edge does not specify a depth.
pub const DEFAULT_DEPTH: u32 = 16;

/// A first-in first-out queue with one writer and one reader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    /// Writer.
    pub source: Source,
    /// Reader.
    pub sink: Sink,
    /// Kind of item it carries.
    pub item: Item,
    /// Items it must be able to hold; a back end may hold more.
    pub depth: u32,
    /// See [`OnFull`].
    pub on_full: OnFull,
    /// Location of the edge.
    pub loc: Loc,
}

impl Program {
    /// Returns the function `id`.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }

    /// Returns the element type `id`.
    pub fn element(&self, id: ElementId) -> &Element {
        &self.elements[id.index()]
    }

    /// Returns whether any instance sends of its own accord, having outputs and no inputs.
    pub fn has_sources(&self) -> bool {
        let elements = self.graph.instances.iter().map(|instance| self.element(instance.element));
        elements.into_iter().any(|element| element.inputs.is_empty() && !element.outputs.is_empty())
    }

    /// Returns the instance `id`.
    pub fn instance(&self, id: InstanceId) -> &Instance {
        &self.graph.instances[id.index()]
    }

    /// Returns the element type of instance `id`.
    pub fn element_of(&self, id: InstanceId) -> &Element {
        self.element(self.instance(id).element)
    }

    /// Returns the body of a method of an instance, if that method exists.
    pub fn method(&self, instance: InstanceId, method: MethodId) -> Option<&Function> {
        let element = self.graph.instances.get(instance.index())?.element;
        let method = self.elements.get(element.index())?.methods.get(method.index())?;
        self.functions.get(method.function.index())
    }

    /// Returns the name of a channel from its two ends: `a.out -> b.in`.
    pub fn channel_name(&self, channel: &Channel) -> String {
        let endpoint = |id: crate::EndpointId| self.graph.endpoints[id.index()].name.clone();
        let port = |id, ports: &[Port], port: PortId| {
            format!("{}.{}", self.instance(id).name, ports[port.index()].name)
        };
        let source = match channel.source {
            Source::Endpoint(id) => endpoint(id),
            Source::Port(id, at) => port(id, &self.element_of(id).outputs, at),
        };
        let sink = match channel.sink {
            Sink::Endpoint(id) => endpoint(id),
            Sink::Port(id, at) => port(id, &self.element_of(id).inputs, at),
        };
        format!("{source} -> {sink}")
    }

    /// Returns the object that `object` names inside `function`.
    pub fn object<'a>(&'a self, function: &'a Function, object: ObjectRef) -> Option<&'a Object> {
        match object {
            ObjectRef::Local(LocalId(at)) => function.locals.get(at as usize),
            ObjectRef::State(at) => self.element(function.owner?).state.get(at.index()),
        }
    }
}

impl Function {
    /// Creates an empty function: one entry block that returns no value.
    pub fn new(name: impl Into<String>, owner: Option<ElementId>, loc: Loc) -> Self {
        Self {
            name: name.into(),
            owner,
            result: None,
            locals: vec![],
            values: vec![],
            blocks: vec![Block::new(Term::Return { value: None })],
            inline: false,
            loc,
        }
    }

    /// The entry block.
    pub const ENTRY: BlockId = BlockId(0);

    /// Returns the values of the function's parameters.
    pub fn params(&self) -> &[ValueId] {
        &self.blocks[0].params
    }

    /// Returns the block `id`.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// Returns the block `id`, mutably.
    pub fn block_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.blocks[id.index()]
    }

    /// Returns the type of `value`.
    pub fn type_of(&self, value: ValueId) -> Type {
        self.values[value.index()].ty
    }

    /// Returns the width of `value`, which must be a bit vector.
    ///
    /// If it is not a bit vector; the verifier rules that out.
    pub fn width_of(&self, value: ValueId) -> u32 {
        self.type_of(value).bits().expect("the verifier checked that this is a bit vector")
    }

    /// Adds a value of type `ty`.
    pub fn add_value(&mut self, ty: Type, name: Option<String>) -> ValueId {
        self.values.push(Value { ty, name });
        ValueId::new(self.values.len() - 1)
    }

    /// Adds a block that ends with `term`.
    pub fn add_block(&mut self, term: Term) -> BlockId {
        self.blocks.push(Block::new(term));
        BlockId::new(self.blocks.len() - 1)
    }

    /// Adds a firing-lifetime object.
    pub fn add_local(&mut self, object: Object) -> LocalId {
        self.locals.push(object);
        LocalId::new(self.locals.len() - 1)
    }
}

impl Block {
    /// Creates a block without instructions.
    pub fn new(term: Term) -> Self {
        Self { params: vec![], insts: vec![], term, term_loc: Loc::default(), loop_info: None }
    }
}

impl Target {
    /// Creates a target without arguments.
    pub fn to(block: BlockId) -> Self {
        Self { block, args: vec![] }
    }
}

impl Graph {
    /// Returns the channel that a given output port or endpoint writes.
    pub fn channel_from(&self, source: Source) -> Option<crate::ChannelId> {
        let at = self.channels.iter().position(|channel| channel.source == source)?;
        Some(crate::ChannelId::new(at))
    }

    /// Returns the channel that a given input port or endpoint reads.
    pub fn channel_to(&self, sink: Sink) -> Option<crate::ChannelId> {
        let at = self.channels.iter().position(|channel| channel.sink == sink)?;
        Some(crate::ChannelId::new(at))
    }
}
