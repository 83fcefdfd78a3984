// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Random programs, for tests: any two ways of running one of them must agree.
//!
//! A program is one element between endpoints. Its handler is a random structured graph of blocks:
//! branches, switches, bounded loops with breaks, continues and traps; pure operations at odd
//! widths; locals and state at constant, narrow and wild indexes, so that some accesses are out of
//! range; ports, suspensions, calls, tables, oracles and probes. It always terminates, and always
//! consumes its input. The seed determines everything.

mod statements;
mod tables;
mod values;

use crate::{
    Addressing, Bits, Builder, Channel, Direction, Element, ElementId, Endpoint, EndpointId,
    Function, FunctionId, Graph, Instance, InstanceId, Item, Lifetime, Loc, Object, OnFull, Port,
    PortId, Program, SIGNAL_BITS, Sink, Source, Space, Term, Type,
};
use statements::Writer;

/// Size and variety of a generated program.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Approximate number of statements in the handler.
    pub statements: u32,
    /// Maximum nesting depth of branches and loops.
    pub nesting: u32,
    /// Maximum number of items fed to each input.
    pub items: usize,
    /// Whether the handler may suspend.
    pub has_suspensions: bool,
    /// Whether there are tables.
    pub has_tables: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { statements: 30, nesting: 3, items: 6, has_suspensions: true, has_tables: true }
    }
}

/// A random program and its input.
#[derive(Clone, Debug)]
pub struct Generated {
    /// Program with one instance, `it`, between endpoints `in0`, ... and `out0`, ...
    pub program: Program,
    /// Items to feed, by endpoint.
    pub feed: Vec<(EndpointId, Vec<Bits>)>,
    /// Signals to send to the instance once the input is consumed.
    pub signals: Vec<Bits>,
}

/// Generates the program of a seed.
pub fn generate(seed: u64, limits: &Limits) -> Generated {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut program = Program { name: format!("generated_{seed}"), ..Program::default() };
    let owner = ElementId(0);
    program.elements.push(random_element(&mut random, limits));
    for at in 0..random.u32(0..3) {
        let function = random_callee(&mut random, &program, limits, at);
        program.functions.push(function);
    }
    let mut signal = Function::new("signal", Some(owner), Loc::default());
    signal.result = Some(Type::Bits(SIGNAL_BITS));
    let mut builder = Builder::new(signal);
    builder.add_param(Function::ENTRY, Type::Bits(SIGNAL_BITS), None);
    let signal = write(&mut random, &program, limits, builder, Role::Signal);
    program.elements[0].signal = Some(FunctionId::new(program.functions.len()));
    program.functions.push(signal);
    let builder = Builder::new(Function::new("handler", Some(owner), Loc::default()));
    let handler = write(&mut random, &program, limits, builder, Role::Handler);
    program.elements[0].handler = FunctionId::new(program.functions.len());
    program.functions.push(handler);
    program.graph = graph_around(&program.elements[0]);
    let feed = feed(&mut random, &program, limits);
    let signals = (0..random.usize(0..3)).map(|_| random_bits(&mut random, SIGNAL_BITS)).collect();
    Generated { program, feed, signals }
}

/// Role of a function, which determines what it may do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Uses ports, suspends, and ends with `done`.
    Handler,
    /// Handles a signal.
    Signal,
    /// Is called by other functions.
    Callee,
}

fn write(
    random: &mut fastrand::Rng,
    program: &Program,
    limits: &Limits,
    builder: Builder,
    role: Role,
) -> Function {
    let mut writer = Writer::new(random, program, limits, builder, role);
    writer.write_body();
    writer.finish()
}

fn random_callee(
    random: &mut fastrand::Rng,
    program: &Program,
    limits: &Limits,
    at: u32,
) -> Function {
    let mut function = Function::new(format!("callee{at}"), Some(ElementId(0)), Loc::default());
    function.inline = true;
    if random.u8(0..4) > 0 {
        function.result = Some(Type::Bits(random_width(random)));
    }
    let mut builder = Builder::new(function);
    for _ in 0..random.usize(0..3) {
        let width = random_width(random);
        builder.add_param(Function::ENTRY, Type::Bits(width), None);
    }
    if !program.elements[0].tables.is_empty() && random.bool() {
        builder.add_param(Function::ENTRY, tables::reference(), None);
    }
    let limits = Limits { statements: limits.statements / 3, ..limits.clone() };
    write(random, program, &limits, builder, Role::Callee)
}

/// Draws a width: most are small and odd, some are machine widths, some those of flits.
fn random_width(random: &mut fastrand::Rng) -> u32 {
    match random.u8(0..10) {
        0 => 1,
        1 => [8, 16, 32, 64][random.usize(0..4)],
        2 => [65, 128, 129, 256, 512][random.usize(0..5)],
        3 => random.u32(65..200),
        _ => random.u32(1..65),
    }
}

/// Draws random bits, often close to one of the ends of their range.
fn random_bits(random: &mut fastrand::Rng, width: u32) -> Bits {
    match random.u8(0..6) {
        0 => Bits::zero(width),
        1 => Bits::ones(width),
        2 => Bits::from_u64(width, random.u64(0..5)),
        _ => {
            let bytes: Vec<u8> = (0..width.div_ceil(8)).map(|_| random.u8(..)).collect();
            Bits::from_le_bytes(width, &bytes)
        }
    }
}

fn random_object(random: &mut fastrand::Rng, name: String, lifetime: Lifetime) -> Object {
    let is_bytes = random.u8(0..6) == 0;
    let elem_bits = if is_bytes { 8 } else { random_width(random) };
    let depth = if is_bytes { random.u64(4..20) } else { [1, 1, 2, 3, 4, 8][random.usize(0..6)] };
    let is_set = lifetime == Lifetime::Instance && random.bool();
    let init = if is_set { vec![random_bits(random, elem_bits)] } else { vec![] };
    Object {
        name,
        space: if random.bool() { Space::Local } else { Space::Register },
        elem_bits,
        depth,
        addressing: if is_bytes { Addressing::Byte } else { Addressing::Element },
        lifetime,
        init,
        host_visible: false,
        is_pinned: false,
        loc: Loc::default(),
    }
}

fn random_element(random: &mut fastrand::Rng, limits: &Limits) -> Element {
    let mut ports = |name: &str| -> Vec<Port> {
        (0..random.usize(1..3))
            .map(|at| {
                let item = Item::Bits(random_width(random));
                Port { name: format!("{name}{at}"), item, loc: Loc::default() }
            })
            .collect()
    };
    let (inputs, outputs) = (ports("in"), ports("out"));
    let state = (0..random.usize(1..4))
        .map(|at| random_object(random, format!("state{at}"), Lifetime::Instance))
        .collect();
    let has_tables = limits.has_tables && random.bool();
    let tables = if has_tables { tables::random_tables(random) } else { vec![] };
    Element {
        name: "Generated".into(),
        inputs,
        outputs,
        state,
        tables,
        init: None,
        handler: FunctionId(0),
        signal: None,
        methods: vec![],
        await_all: random.u8(0..4) == 0,
        initiation_interval: 1,
        loc: Loc::default(),
    }
}

fn graph_around(element: &Element) -> Graph {
    let instance = Instance {
        name: "it".into(),
        element: ElementId(0),
        host: false,
        controlled: true,
        verilog: false,
        loc: Loc::default(),
    };
    let mut graph = Graph { instances: vec![instance], ..Graph::default() };
    let id = InstanceId(0);
    for (at, port) in element.inputs.iter().enumerate() {
        let source = Source::Endpoint(add_endpoint(&mut graph, port, Direction::Into));
        let sink = Sink::Port(id, PortId::new(at));
        graph.channels.push(channel(source, sink, port.item));
    }
    for (at, port) in element.outputs.iter().enumerate() {
        let sink = Sink::Endpoint(add_endpoint(&mut graph, port, Direction::OutOf));
        let source = Source::Port(id, PortId::new(at));
        graph.channels.push(channel(source, sink, port.item));
    }
    graph
}

fn add_endpoint(graph: &mut Graph, port: &Port, direction: Direction) -> EndpointId {
    let name = port.name.clone();
    graph.endpoints.push(Endpoint { name, direction, item: port.item });
    EndpointId::new(graph.endpoints.len() - 1)
}

fn channel(source: Source, sink: Sink, item: Item) -> Channel {
    Channel { source, sink, item, depth: 4, on_full: OnFull::Block, loc: Loc::default() }
}

fn feed(
    random: &mut fastrand::Rng,
    program: &Program,
    limits: &Limits,
) -> Vec<(EndpointId, Vec<Bits>)> {
    let endpoints = program.graph.endpoints.iter().enumerate();
    let inputs = endpoints.filter(|(_, endpoint)| endpoint.direction == Direction::Into);
    inputs
        .map(|(at, endpoint)| {
            let width = endpoint.item.value_type().bits().expect("generated items are bits");
            let count = random.usize(0..=limits.items);
            (EndpointId::new(at), (0..count).map(|_| random_bits(random, width)).collect())
        })
        .collect()
}

/// Returns the terminator of a function with that role.
fn end_of(role: Role, mask: Option<crate::ValueId>, value: Option<crate::ValueId>) -> Term {
    match role {
        Role::Handler => Term::Done { mask },
        Role::Signal | Role::Callee => Term::Return { value },
    }
}
