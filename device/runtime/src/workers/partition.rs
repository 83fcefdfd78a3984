// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Partitioning of a program into one program for each worker.
//!
//! A channel between two workers becomes an endpoint of both parts, and a ring connects the two.
//! Given its oracles a graph is a Kahn network, and a declared depth is a minimum: such a ring is
//! only a deeper channel, so no instance can observe the number of workers.
//!
//! A ring transfers what the channel did. Records and packets pass unchanged. Flits inside the
//! graph become records, because a ring of frames would hold back a packet's first flits until its
//! last, which the writer may put only after an answer to them, and would lose their metadata.
//! Between an endpoint and an element, flits pass as the frames of that endpoint. A lossy channel
//! drops at its writer.

use crate::placement::PlacementError;
use freeport_ir::flit::FLIT_BITS;
use freeport_ir::{
    Builder, Channel, ChannelId, Direction, Element, ElementId, Endpoint, EndpointId, Function,
    FunctionId, Instance, InstanceId, Item, Loc, OnFull, Op, Port, PortId, Program, Sink, Source,
    Term, TrapCode, Type,
};

/// A program in parts.
#[derive(Clone, Debug)]
pub struct Partition {
    /// The parts; the first belongs to worker 0, and has the endpoints of the program.
    pub parts: Vec<Part>,
    /// Links between the parts.
    pub links: Vec<Link>,
}

/// Program of one worker.
#[derive(Clone, Debug)]
pub struct Part {
    /// Number of the worker.
    pub worker: usize,
    /// Program of the part.
    pub program: Program,
    /// By instance of the part: the corresponding instance of the whole; none for an added one.
    pub instances: Vec<Option<InstanceId>>,
    /// By channel of the part: the channel of the whole that it counts for.
    pub channels: Vec<Option<ChannelId>>,
    /// By endpoint of the part: the corresponding endpoint of the whole, or the one for which it
    /// drops frames that no port carries.
    pub endpoints: Vec<Option<EndpointId>>,
}

/// A channel between two parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// The writing part, and its endpoint.
    pub from: (usize, EndpointId),
    /// The reading part, and its endpoint.
    pub to: (usize, EndpointId),
    /// Type of the items; flits stand for frames.
    pub item: Item,
}

impl Partition {
    /// Partitions a verified program; `workers` has the worker of each instance.
    ///
    /// # Errors
    /// A manager and an instance whose methods it calls are on two workers: a call is executed
    /// immediately, between two firings of both.
    pub fn new(program: &Program, workers: &[usize]) -> Result<Self, PlacementError> {
        check_calls(program, workers)?;
        let mut numbers: Vec<usize> = workers.iter().copied().chain([0]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let of = |worker: usize| numbers.partition_point(|it| *it < worker);
        let mut cutter = Cutter {
            program,
            parts: numbers.iter().map(|worker| Part::new(program, *worker)).collect(),
            links: vec![],
            instances: vec![],
        };
        for (at, worker) in workers.iter().enumerate() {
            cutter.place(InstanceId::new(at), of(*worker));
        }
        for (at, endpoint) in program.graph.endpoints.iter().enumerate() {
            let added = cutter.parts[0].add_endpoint(endpoint.clone());
            cutter.parts[0].endpoints[added.index()] = Some(EndpointId::new(at));
        }
        cutter.number_calls();
        for at in 0..program.graph.channels.len() {
            cutter.join(ChannelId::new(at));
        }
        Ok(Self { parts: cutter.parts, links: cutter.links })
    }
}

/// Returns the calls of methods of other instances, by the calling element.
fn calls(program: &Program) -> impl Iterator<Item = (ElementId, InstanceId)> {
    program.functions.iter().flat_map(|function| {
        let insts = function.blocks.iter().flat_map(|block| &block.insts);
        insts.filter_map(|inst| match inst.op {
            Op::CallMethod { instance, .. } => Some((function.owner?, instance)),
            _ => None,
        })
    })
}

fn check_calls(program: &Program, workers: &[usize]) -> Result<(), PlacementError> {
    for (element, called) in calls(program) {
        let callers = program.graph.instances.iter().zip(workers);
        for (caller, worker) in callers.filter(|(caller, _)| caller.element == element) {
            if *worker != workers[called.index()] {
                let names = [&caller.name, &program.instance(called).name].map(String::clone);
                let [caller, called] = names;
                return Err(PlacementError::Apart { caller, called });
            }
        }
    }
    Ok(())
}

impl Part {
    fn new(program: &Program, worker: usize) -> Self {
        let name = format!("{} on worker {worker}", program.name);
        let program = Program { name, graph: Default::default(), ..program.clone() };
        Self { worker, program, instances: vec![], channels: vec![], endpoints: vec![] }
    }

    fn add_endpoint(&mut self, endpoint: Endpoint) -> EndpointId {
        self.program.graph.endpoints.push(endpoint);
        self.endpoints.push(None);
        EndpointId::new(self.endpoints.len() - 1)
    }

    fn add_channel(&mut self, channel: Channel, counts_for: Option<ChannelId>) {
        self.program.graph.channels.push(channel);
        self.channels.push(counts_for);
    }

    fn add_instance(&mut self, instance: Instance, stands_for: Option<InstanceId>) -> InstanceId {
        self.program.graph.instances.push(instance);
        self.instances.push(stands_for);
        InstanceId::new(self.instances.len() - 1)
    }

    /// Inserts an element between a channel and an endpoint, with flits on one side and records on
    /// the other.
    fn add_conversion(&mut self, name: &str, from: Item, to: Item) -> InstanceId {
        let element = ElementId::new(self.program.elements.len());
        let handler = FunctionId::new(self.program.functions.len());
        self.program.functions.push(conversion(element));
        let port = |name: &str, item| Port { name: name.into(), item, loc: Loc::default() };
        self.program.elements.push(Element {
            name: "Conversion".into(),
            inputs: vec![port("in", from)],
            outputs: vec![port("out", to)],
            state: vec![],
            tables: vec![],
            init: None,
            handler,
            signal: None,
            methods: vec![],
            await_all: false,
            initiation_interval: 1,
            loc: Loc::default(),
        });
        let instance = Instance {
            name: name.to_owned(),
            element,
            host: false,
            controlled: false,
            verilog: false,
            loc: Loc::default(),
        };
        self.add_instance(instance, None)
    }
}

/// Passes each item on unchanged: a flit is a record of 512 bits.
fn conversion(element: ElementId) -> Function {
    let function = Function::new("Conversion.handler", Some(element), Loc::default());
    let mut build = Builder::new(function);
    let value = build.push(Op::Take(PortId::new(0)), Type::Bits(FLIT_BITS));
    build.push_effect(Op::Put { port: PortId::new(0), value });
    build.end(Term::Done { mask: None });
    build.finish()
}

struct Cutter<'p> {
    program: &'p Program,
    parts: Vec<Part>,
    links: Vec<Link>,
    /// By instance of the whole: its part, and its number there.
    instances: Vec<(usize, InstanceId)>,
}

impl Cutter<'_> {
    fn place(&mut self, id: InstanceId, part: usize) {
        let instance = self.program.instance(id).clone();
        let there = self.parts[part].add_instance(instance, Some(id));
        self.instances.push((part, there));
    }

    /// Renumbers the instances in method calls to their numbers in the part. A function that calls
    /// into another part belongs to an element without an instance here; its body is removed.
    fn number_calls(&mut self) {
        for (at, part) in self.parts.iter_mut().enumerate() {
            for function in &mut part.program.functions {
                let insts = function.blocks.iter_mut().flat_map(|block| &mut block.insts);
                let mut is_elsewhere = false;
                for inst in insts {
                    if let Op::CallMethod { instance, .. } = &mut inst.op {
                        let (of, there) = self.instances[instance.index()];
                        is_elsewhere |= of != at;
                        *instance = there;
                    }
                }
                if is_elsewhere {
                    function.blocks.truncate(1);
                    function.blocks[0].insts.clear();
                    function.blocks[0].term = Term::Trap(TrapCode::User(0));
                    function.blocks[0].loop_info = None;
                }
            }
        }
    }

    /// Returns where a channel is written: the part, and the end there. Endpoints keep their
    /// numbers.
    fn source(&self, source: Source) -> (usize, Source) {
        match source {
            Source::Endpoint(_) => (0, source),
            Source::Port(id, port) => {
                let (part, there) = self.instances[id.index()];
                (part, Source::Port(there, port))
            }
        }
    }

    fn sink(&self, sink: Sink) -> (usize, Sink) {
        match sink {
            Sink::Endpoint(_) => (0, sink),
            Sink::Port(id, port) => {
                let (part, there) = self.instances[id.index()];
                (part, Sink::Port(there, port))
            }
        }
    }

    fn join(&mut self, id: ChannelId) {
        let channel = &self.program.graph.channels[id.index()];
        let ((from, source), (to, sink)) = (self.source(channel.source), self.sink(channel.sink));
        if from == to {
            let channel = Channel { source, sink, ..channel.clone() };
            self.parts[from].add_channel(channel, Some(id));
            return;
        }
        let outer = match (channel.source, channel.sink) {
            (Source::Endpoint(id), _) | (_, Sink::Endpoint(id)) => Some(id),
            _ => None,
        };
        let name = self.link_name(&self.program.channel_name(channel));
        let record = Item::Bits(FLIT_BITS);
        let item = match channel.item {
            Item::Flit if outer.is_none() => record,
            item => item,
        };
        let end = |direction| Endpoint { name: name.clone(), direction, item };
        let written = self.parts[from].add_endpoint(end(Direction::OutOf));
        let read = self.parts[to].add_endpoint(end(Direction::Into));
        self.links.push(Link { from: (from, written), to: (to, read), item });
        if item == Item::Flit && matches!(channel.sink, Sink::Endpoint(_)) {
            self.parts[from].endpoints[written.index()] = outer;
        }
        let (out_of, into) = (Sink::Endpoint(written), Source::Endpoint(read));
        let further = |item| Channel { item, on_full: OnFull::Block, ..channel.clone() };
        if item == channel.item {
            let first = Channel { source, sink: out_of, ..channel.clone() };
            self.parts[from].add_channel(first, Some(id));
            self.parts[to].add_channel(Channel { source: into, sink, ..further(item) }, None);
            return;
        }
        let port = PortId::new(0);
        let part = &mut self.parts[from];
        let there = part.add_conversion(&name, Item::Flit, record);
        let first = Channel { source, sink: Sink::Port(there, port), ..channel.clone() };
        part.add_channel(first, Some(id));
        let source = Source::Port(there, port);
        part.add_channel(Channel { source, sink: out_of, ..further(record) }, None);
        let part = &mut self.parts[to];
        let there = part.add_conversion(&name, record, Item::Flit);
        let first = Channel { source: into, sink: Sink::Port(there, port), ..further(record) };
        part.add_channel(first, None);
        let source = Source::Port(there, port);
        part.add_channel(Channel { source, sink, ..further(Item::Flit) }, None);
    }

    /// Returns a name for the two ends of a link that no endpoint and no instance has.
    fn link_name(&self, channel: &str) -> String {
        let graph = &self.program.graph;
        let mut name = format!("link {} ({channel})", self.links.len());
        while graph.endpoints.iter().any(|it| it.name == name)
            || graph.instances.iter().any(|it| it.name == name)
        {
            name.push('\'');
        }
        name
    }
}
