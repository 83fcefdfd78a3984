// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A whole packet program: functions, element types, and the graph of their instances.

use crate::{
    BlockId, ElementId, FunctionId, InstanceId, Item, Loc, LocalId, MethodId, Object, ObjectRef,
    Op, PortId, Table, Target, Term, Type, ValueId,
};

/// A packet program.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Program {
    /// Its name, for reports.
    pub name: String,
    /// Source files, for [`Loc`].
    pub files: Vec<String>,
    /// Bodies of handlers and functions.
    pub functions: Vec<Function>,
    /// Element types, specialised: no parameters are left.
    pub elements: Vec<Element>,
    /// Instances and channels.
    pub graph: Graph,
}

/// A body: blocks of instructions over values, each defined once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    /// Its name, for reports.
    pub name: String,
    /// The element whose state, tables and ports it may use; none for a plain function.
    pub owner: Option<ElementId>,
    /// What it returns, if anything.
    pub result: Option<Type>,
    /// Objects that live for one firing (for a called function: for one call).
    pub locals: Vec<Object>,
    /// Every value, by [`ValueId`].
    pub values: Vec<Value>,
    /// Blocks; the first is the entry, and its parameters are the function's.
    pub blocks: Vec<Block>,
    /// Whether it is merged into its callers (ClickNP 2.5).
    pub inline: bool,
    /// Where it was declared.
    pub loc: Loc,
}

/// What is known of a value besides its definition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// Its type.
    pub ty: Type,
    /// The source variable that it holds, if any.
    pub name: Option<String>,
}

/// Instructions that run one after the other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    /// Values given by whoever goes here.
    pub params: Vec<ValueId>,
    /// In order.
    pub insts: Vec<Inst>,
    /// How it ends.
    pub term: Term,
    /// Where the end was written.
    pub term_loc: Loc,
    /// Set on the header of a loop.
    pub loop_info: Option<LoopInfo>,
}

/// What is known of a loop, on its header block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoopInfo {
    /// Most times the body runs each time the loop is entered. A back end that finds the
    /// condition true once more traps with [`TrapCode::LoopBound`](crate::TrapCode::LoopBound).
    pub bound: u64,
    /// The programmer's wish.
    pub unroll: Unroll,
    /// The programmer says that iterations touch different memory (ClickNP 4.7).
    pub independent: bool,
    /// Each return to the header counts for the watchdog; a back end marks loops so before its
    /// passes run ([`mark_watched_loops`](crate::analysis::mark_watched_loops)).
    pub is_watched: bool,
}

/// A wish about a loop's shape (ClickNP 2.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unroll {
    /// Let the compiler choose.
    Auto,
    /// Every iteration a copy.
    Full,
    /// That many copies of the body, 2 or more.
    By(u32),
    /// Keep it rolled: one iteration per firing in hardware.
    Flatten,
}

/// An operation and where it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inst {
    /// What it defines, if anything.
    pub result: Option<ValueId>,
    /// What it does.
    pub op: Op,
    /// Where it was written.
    pub loc: Loc,
}

/// An element type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Element {
    /// Its name with its compile-time arguments.
    pub name: String,
    /// Input ports.
    pub inputs: Vec<Port>,
    /// Output ports.
    pub outputs: Vec<Port>,
    /// Objects that live as long as an instance.
    pub state: Vec<Object>,
    /// Keyed tables.
    pub tables: Vec<Table>,
    /// Runs once before any other.
    pub init: Option<FunctionId>,
    /// Runs for every firing.
    pub handler: FunctionId,
    /// Runs for a signal, between firings: takes [`SIGNAL_BITS`], gives [`SIGNAL_BITS`].
    pub signal: Option<FunctionId>,
    /// What the host can call between firings: parameters and result are the function's.
    pub methods: Vec<Method>,
    /// Fires only when every masked port has an item, instead of any.
    pub await_all: bool,
    /// Declared clocks between firings in hardware, at least 1.
    pub initiation_interval: u32,
    /// Where it was declared.
    pub loc: Loc,
}

/// Bits of a signal and of its answer: a 64-bit header (command in the low 32 bits, element in the
/// high 32) and [`SIGNAL_WORDS`] words of 64 bits, `LParam[0]` lowest.
pub const SIGNAL_BITS: u32 = 512;
/// Words of a signal's parameters.
pub const SIGNAL_WORDS: usize = 7;
/// The lowest bit of `LParam[0]`.
pub const SIGNAL_PARAM_BIT: u32 = 64;

/// A named entry point for the host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// Its body.
    pub function: FunctionId,
}

/// A port of an element type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// What passes it.
    pub item: Item,
    /// Where it was declared.
    pub loc: Loc,
}

/// Instances, the outer ends, and the channels between them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Graph {
    /// Element instances.
    pub instances: Vec<Instance>,
    /// Outer ends: network ports, the host, memory.
    pub endpoints: Vec<Endpoint>,
    /// Every port of an instance and every endpoint is an end of exactly one.
    pub channels: Vec<Channel>,
}

/// An element instance.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// Its name.
    pub name: String,
    /// Its type.
    pub element: ElementId,
    /// Runs on the CPU even where the rest is on a NIC.
    pub host: bool,
    /// Takes signals (`@`).
    pub controlled: bool,
    /// Its hardware is a module given by hand; the element is its model.
    pub verilog: bool,
    /// Where it was declared.
    pub loc: Loc,
}

/// Which way items pass an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Direction {
    /// Into the graph, such as `from_tor`.
    Into,
    /// Out of the graph, such as `to_tor`.
    OutOf,
}

/// An outer end of the graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    /// Its name, such as `from_tor`.
    pub name: String,
    /// Which way.
    pub direction: Direction,
    /// What passes it.
    pub item: Item,
}

/// Where a channel's items come from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Source {
    /// From outside.
    Endpoint(crate::EndpointId),
    /// From an output port.
    Port(InstanceId, PortId),
}

/// Where a channel's items go.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Sink {
    /// Outside.
    Endpoint(crate::EndpointId),
    /// Into an input port.
    Port(InstanceId, PortId),
}

/// What a full channel does with one more item.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OnFull {
    /// Holds the next firing of the writer.
    Block,
    /// Drops the item and counts it; a whole packet from its first flit on, on a flit channel.
    DropCounted,
}

/// Items a channel holds unless its edge says otherwise.
pub const DEFAULT_DEPTH: u32 = 16;

/// A first-in first-out queue with one writer and one reader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    /// Who writes.
    pub source: Source,
    /// Who reads.
    pub sink: Sink,
    /// What it carries.
    pub item: Item,
    /// Most items it must hold; a back end may hold more.
    pub depth: u32,
    /// See [`OnFull`].
    pub on_full: OnFull,
    /// Where the edge was written.
    pub loc: Loc,
}

impl Program {
    /// The function `id`.
    pub fn function(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }

    /// The element type `id`.
    pub fn element(&self, id: ElementId) -> &Element {
        &self.elements[id.index()]
    }

    /// Whether an instance sends of its own accord: it has outputs and no inputs.
    pub fn has_sources(&self) -> bool {
        let elements = self.graph.instances.iter().map(|instance| self.element(instance.element));
        elements.into_iter().any(|element| element.inputs.is_empty() && !element.outputs.is_empty())
    }

    /// The instance `id`.
    pub fn instance(&self, id: InstanceId) -> &Instance {
        &self.graph.instances[id.index()]
    }

    /// The element type of instance `id`.
    pub fn element_of(&self, id: InstanceId) -> &Element {
        self.element(self.instance(id).element)
    }

    /// The body of a method of an instance, if there is such a method.
    pub fn method(&self, instance: InstanceId, method: MethodId) -> Option<&Function> {
        let element = self.graph.instances.get(instance.index())?.element;
        let method = self.elements.get(element.index())?.methods.get(method.index())?;
        self.functions.get(method.function.index())
    }

    /// A channel by its ends: `a.out -> b.in`.
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

    /// The object that `object` names inside `function`.
    pub fn object<'a>(&'a self, function: &'a Function, object: ObjectRef) -> Option<&'a Object> {
        match object {
            ObjectRef::Local(LocalId(at)) => function.locals.get(at as usize),
            ObjectRef::State(at) => self.element(function.owner?).state.get(at.index()),
        }
    }
}

impl Function {
    /// An empty function: one entry block that returns nothing.
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

    /// The values of the function's parameters.
    pub fn params(&self) -> &[ValueId] {
        &self.blocks[0].params
    }

    /// The block `id`.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// The block `id`, to change it.
    pub fn block_mut(&mut self, id: BlockId) -> &mut Block {
        &mut self.blocks[id.index()]
    }

    /// The type of `value`.
    pub fn type_of(&self, value: ValueId) -> Type {
        self.values[value.index()].ty
    }

    /// The width of `value`, which is a bit vector.
    ///
    /// # Panics
    /// If it is not; the verifier rules that out.
    pub fn width_of(&self, value: ValueId) -> u32 {
        self.type_of(value).bits().expect("the verifier checked that this is a bit vector")
    }

    /// A new value of type `ty`.
    pub fn add_value(&mut self, ty: Type, name: Option<String>) -> ValueId {
        self.values.push(Value { ty, name });
        ValueId::new(self.values.len() - 1)
    }

    /// A new block that ends with `term`.
    pub fn add_block(&mut self, term: Term) -> BlockId {
        self.blocks.push(Block::new(term));
        BlockId::new(self.blocks.len() - 1)
    }

    /// A new firing-lifetime object.
    pub fn add_local(&mut self, object: Object) -> LocalId {
        self.locals.push(object);
        LocalId::new(self.locals.len() - 1)
    }
}

impl Block {
    /// A block without instructions.
    pub fn new(term: Term) -> Self {
        Self { params: vec![], insts: vec![], term, term_loc: Loc::default(), loop_info: None }
    }
}

impl Target {
    /// `block`, with no arguments.
    pub fn to(block: BlockId) -> Self {
        Self { block, args: vec![] }
    }
}

impl Graph {
    /// The channel that a given output port or outer end writes.
    pub fn channel_from(&self, source: Source) -> Option<crate::ChannelId> {
        let at = self.channels.iter().position(|channel| channel.source == source)?;
        Some(crate::ChannelId::new(at))
    }

    /// The channel that a given input port or outer end reads.
    pub fn channel_to(&self, sink: Sink) -> Option<crate::ChannelId> {
        let at = self.channels.iter().position(|channel| channel.sink == sink)?;
        Some(crate::ChannelId::new(at))
    }
}
