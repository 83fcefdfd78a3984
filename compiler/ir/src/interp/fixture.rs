// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Graphs for the interpreter's tests, built piece by piece.

use super::{Interpreter, Options, Outcome};
use crate::*;

/// A program under construction.
#[derive(Default)]
pub(super) struct Fixture {
    pub program: Program,
}

impl Fixture {
    /// Adds an element type with ports `in0`, ..., `out0`, ..., and a handler that `build` writes.
    pub fn element(
        &mut self,
        inputs: &[Item],
        outputs: &[Item],
        build: impl FnOnce(&mut Builder),
    ) -> ElementId {
        let id = ElementId::new(self.program.elements.len());
        let ports = |name: &str, items: &[Item]| -> Vec<Port> {
            let ports = items.iter().enumerate();
            let port = |(at, item): (usize, &Item)| Port {
                name: format!("{name}{at}"),
                item: *item,
                loc: Loc::default(),
            };
            ports.map(port).collect()
        };
        self.program.elements.push(Element {
            name: format!("Element{}", id.0),
            inputs: ports("in", inputs),
            outputs: ports("out", outputs),
            state: vec![],
            tables: vec![],
            init: None,
            handler: FunctionId(0),
            signal: None,
            methods: vec![],
            await_all: false,
            initiation_interval: 1,
            loc: Loc::default(),
        });
        let handler = self.function(Some(id), build);
        self.program.elements[id.index()].handler = handler;
        id
    }

    pub fn function(
        &mut self,
        owner: Option<ElementId>,
        build: impl FnOnce(&mut Builder),
    ) -> FunctionId {
        let id = FunctionId::new(self.program.functions.len());
        let name = format!("function{}", id.0);
        let mut builder = Builder::new(Function::new(name, owner, Loc::default()));
        build(&mut builder);
        self.program.functions.push(builder.finish());
        id
    }

    /// Adds a state variable to an element.
    pub fn state(&mut self, element: ElementId, elem_bits: u32, depth: u64) -> ObjectRef {
        let state = &mut self.program.elements[element.index()].state;
        state.push(object(format!("state{}", state.len()), elem_bits, depth));
        ObjectRef::State(ObjectId::new(state.len() - 1))
    }

    pub fn instance(&mut self, name: &str, element: ElementId) -> InstanceId {
        let instances = &mut self.program.graph.instances;
        instances.push(Instance {
            name: name.into(),
            element,
            host: false,
            controlled: false,
            verilog: false,
            loc: Loc::default(),
        });
        InstanceId::new(instances.len() - 1)
    }

    pub fn join(
        &mut self,
        from: (InstanceId, u32),
        to: (InstanceId, u32),
        depth: u32,
    ) -> ChannelId {
        let item = self.program.element_of(to.0).inputs[to.1 as usize].item;
        let source = Source::Port(from.0, PortId(from.1));
        self.channel(source, Sink::Port(to.0, PortId(to.1)), item, depth)
    }

    pub fn feed_into(&mut self, name: &str, to: (InstanceId, u32), depth: u32) -> EndpointId {
        let item = self.program.element_of(to.0).inputs[to.1 as usize].item;
        let endpoint = self.endpoint(name, Direction::Into, item);
        self.channel(Source::Endpoint(endpoint), Sink::Port(to.0, PortId(to.1)), item, depth);
        endpoint
    }

    pub fn collect(&mut self, from: (InstanceId, u32), name: &str, depth: u32) -> EndpointId {
        let item = self.program.element_of(from.0).outputs[from.1 as usize].item;
        let endpoint = self.endpoint(name, Direction::OutOf, item);
        self.channel(Source::Port(from.0, PortId(from.1)), Sink::Endpoint(endpoint), item, depth);
        endpoint
    }

    /// Completes a program of one instance with an endpoint at each of its ports.
    pub fn alone(mut self, element: ElementId) -> Program {
        let instance = self.instance("alone", element);
        for at in 0..self.program.element(element).inputs.len() as u32 {
            self.feed_into(&format!("to_in{at}"), (instance, at), DEFAULT_DEPTH);
        }
        for at in 0..self.program.element(element).outputs.len() as u32 {
            self.collect((instance, at), &format!("from_out{at}"), DEFAULT_DEPTH);
        }
        self.program
    }

    fn endpoint(&mut self, name: &str, direction: Direction, item: Item) -> EndpointId {
        let endpoints = &mut self.program.graph.endpoints;
        endpoints.push(Endpoint { name: name.into(), direction, item });
        EndpointId::new(endpoints.len() - 1)
    }

    fn channel(&mut self, source: Source, sink: Sink, item: Item, depth: u32) -> ChannelId {
        let channels = &mut self.program.graph.channels;
        let loc = Loc::default();
        channels.push(Channel { source, sink, item, depth, on_full: OnFull::Block, loc });
        ChannelId::new(channels.len() - 1)
    }
}

pub(super) fn object(name: String, elem_bits: u32, depth: u64) -> Object {
    Object {
        name,
        space: Space::Local,
        elem_bits,
        depth,
        addressing: Addressing::Element,
        lifetime: Lifetime::Instance,
        init: vec![],
        host_visible: true,
        is_pinned: false,
        loc: Loc::default(),
    }
}

/// Ends a firing; the next one waits for any input.
pub(super) fn done(builder: &mut Builder) {
    builder.end(Term::Done { mask: None });
}

/// Takes from a port of records.
pub(super) fn take(builder: &mut Builder, port: u32, width: u32) -> ValueId {
    builder.push(Op::Take(PortId(port)), Type::Bits(width))
}

pub(super) fn put(builder: &mut Builder, port: u32, value: ValueId) {
    builder.push_effect(Op::Put { port: PortId(port), value });
}

/// Runs until idle, which it must reach.
pub(super) fn run_to_idle(interpreter: &mut Interpreter<'_>) {
    match interpreter.run(1_000_000) {
        Ok(Outcome::Idle) => {}
        Ok(Outcome::Stalled(report)) => panic!("{report}"),
        other => panic!("{other:?}"),
    }
}

/// Runs a program of one instance with one input and one output of records until all of `items` are
/// consumed; returns the output and the interpreter.
pub(super) fn pass<'p>(program: &'p Program, items: &[Bits]) -> (Vec<Bits>, Interpreter<'p>) {
    let mut interpreter = Interpreter::new(program, &Options::default()).expect("complete");
    let input = interpreter.endpoint("to_in0").expect("there is an input");
    for item in items {
        interpreter.feed_item(input, item.clone()).expect("items fit");
    }
    run_to_idle(&mut interpreter);
    let output = interpreter.endpoint("from_out0").expect("there is an output");
    (interpreter.take_items(output).expect("it is an output"), interpreter)
}

/// Item of most tests' channels: a word of 64 bits.
pub(super) const WORD: Item = Item::Bits(64);

/// Returns a value of a [`WORD`] channel.
pub(super) fn word(value: u64) -> Bits {
    Bits::from_u64(64, value)
}

/// Starts the program with the default schedule.
pub(super) fn start(program: &Program) -> Interpreter<'_> {
    Interpreter::new(program, &Options::default()).expect("the fixture is sound")
}

/// Feeds words to an endpoint.
pub(super) fn feed(interpreter: &mut Interpreter<'_>, endpoint: &str, values: &[u64]) {
    let endpoint = interpreter.endpoint(endpoint).expect("the fixture has it");
    for value in values {
        interpreter.feed_item(endpoint, word(*value)).expect("it takes words");
    }
}

/// Returns the words that have left through the endpoint of output 0.
pub(super) fn collected(interpreter: &mut Interpreter<'_>) -> Vec<u64> {
    let endpoint = interpreter.endpoint("from_out0").expect("the fixture has it");
    let items = interpreter.take_items(endpoint).expect("it is an output");
    items.iter().map(Bits::to_u64).collect()
}
