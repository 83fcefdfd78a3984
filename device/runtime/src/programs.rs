// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Programs for the tests of devices, built by hand so that they do not depend on a front end.

use freeport_ir::flit::{FLIT_BITS, SOP_BIT};
use freeport_ir::*;

/// `from_tor -> swap -> to_tor`: exchanges the Ethernet addresses and counts packets in `count`.
/// A signal answers with `count` and adds its first parameter to it; so does the method
/// `add(uint64) -> uint64`. `marks` is an array of four
/// 16-bit numbers that starts as 1, 2. `hosts` and `routes` are tables of two entries, which only
/// the host uses.
pub fn mac_swap() -> Program {
    let mut program = Program { name: "mac_swap".into(), ..Program::default() };
    let element = ElementId::new(0);
    program.functions = vec![handler(element), signal(element), add(element)];
    program.elements = vec![Element {
        name: "MacSwap".into(),
        inputs: vec![port("in", Item::Flit)],
        outputs: vec![port("out", Item::Flit)],
        state: vec![
            object("count", 64, 1, vec![]),
            object("marks", 16, 4, vec![Bits::from_u64(16, 1), Bits::from_u64(16, 2)]),
        ],
        tables: vec![
            table("hosts", TableKind::LruHash, 48, 16),
            table("routes", TableKind::LongestPrefix, 64, 32),
        ],
        init: None,
        handler: FunctionId::new(0),
        signal: Some(FunctionId::new(1)),
        methods: vec![Method { name: "add".into(), function: FunctionId::new(2) }],
        await_all: false,
        initiation_interval: 1,
        loc: Loc::default(),
    }];
    program.graph = Graph {
        instances: vec![Instance {
            name: "swap".into(),
            element,
            host: false,
            controlled: true,
            verilog: false,
            loc: Loc::default(),
        }],
        endpoints: vec![
            endpoint("from_tor", Direction::Into),
            endpoint("to_tor", Direction::OutOf),
        ],
        channels: vec![
            channel(
                Source::Endpoint(EndpointId::new(0)),
                Sink::Port(InstanceId::new(0), PortId::new(0)),
            ),
            channel(
                Source::Port(InstanceId::new(0), PortId::new(0)),
                Sink::Endpoint(EndpointId::new(1)),
            ),
        ],
    };
    program
}

/// The same on whole packets; a packet that begins with 0xff becomes one without bytes.
#[cfg(test)]
pub fn mac_swap_of_packets() -> Program {
    let mut program = mac_swap();
    let item = Item::Packet { window_bytes: 64 };
    let element = &mut program.elements[0];
    element.inputs.iter_mut().chain(&mut element.outputs).for_each(|port| port.item = item);
    program.graph.endpoints.iter_mut().for_each(|endpoint| endpoint.item = item);
    program.graph.channels.iter_mut().for_each(|channel| channel.item = item);
    program.functions[0] = packet_handler(ElementId::new(0));
    program
}

/// The same with a breakpoint at the start of each packet.
pub fn mac_swap_with_breakpoint() -> Program {
    let mut program = mac_swap();
    let handler = &mut program.functions[0];
    let probe = Op::Probe { probe: Probe::Breakpoint("packet".into()), args: vec![] };
    // Block 1 runs for the first flit of a packet.
    let inst = Inst { result: None, op: probe, loc: Loc::default() };
    handler.blocks[1].insts.insert(0, inst);
    program
}

/// Returns what the program makes of a frame.
pub fn swapped(frame: &[u8]) -> Vec<u8> {
    let mut padded = frame.to_vec();
    padded.resize(frame.len().max(12), 0);
    let mut out = [&padded[6..12], &padded[..6], &padded[12..]].concat();
    out.truncate(frame.len());
    out
}

fn handler(element: ElementId) -> Function {
    let mut build = Builder::new(Function::new("MacSwap.handler", Some(element), Loc::default()));
    let (at_start, at_end) = (build.new_block(), build.new_block());
    let flit = build.push(Op::Take(PortId::new(0)), Type::Bits(FLIT_BITS));
    let sop = build.extract(flit, SOP_BIT, 1);
    let out = build.add_param(at_end, Type::Bits(FLIT_BITS), None);
    build.end(Term::Branch {
        cond: sop,
        if_true: Target::to(at_start),
        if_false: Target { block: at_end, args: vec![flit] },
    });
    build.switch_to(at_start);
    let target = build.extract(flit, 0, 48);
    let source = build.extract(flit, 48, 48);
    let part = build.push(Op::Concat(vec![source, target]), Type::Bits(96));
    let swapped = build.push(Op::Insert { value: flit, lo: 0, part }, Type::Bits(FLIT_BITS));
    let (count, zero) = (ObjectRef::State(ObjectId::new(0)), build.number(1, 0));
    let old = build.load(count, zero, 0, 64);
    let one = build.number(64, 1);
    let new = build.binary(BinaryOp::Add, old, one);
    build.store(count, zero, 0, new);
    build.end(Term::Jump(Target { block: at_end, args: vec![swapped] }));
    build.switch_to(at_end);
    build.push_effect(Op::Put { port: PortId::new(0), value: out });
    build.end(Term::Done { mask: None });
    build.finish()
}

#[cfg(test)]
fn packet_handler(element: ElementId) -> Function {
    let mut build = Builder::new(Function::new("MacSwap.handler", Some(element), Loc::default()));
    let packet = build.push(Op::Take(PortId::new(0)), Type::Packet);
    // A packet that is too short for two addresses is padded with zeros for the exchange.
    let [more, less, none] = [12, 0xf4, 0].map(|by| build.number(8, by));
    let grows = build.push(Op::PacketAdjustTail { packet, delta: more }, Type::Bits(1));
    let back = Op::Select { cond: grows, if_true: less, if_false: none };
    let back = build.push(back, Type::Bits(8));
    let [target_at, source_at] = [0, 6].map(|at| build.number(8, at));
    let [target, source] = [target_at, source_at]
        .map(|offset| build.push(Op::PacketLoad { packet, offset, bytes: 6 }, Type::Bits(48)));
    build.push_effect(Op::PacketStore { packet, offset: target_at, value: source });
    build.push_effect(Op::PacketStore { packet, offset: source_at, value: target });
    build.push(Op::PacketAdjustTail { packet, delta: back }, Type::Bits(1));
    let (count, zero) = (ObjectRef::State(ObjectId::new(0)), build.number(1, 0));
    let old = build.load(count, zero, 0, 64);
    let one = build.number(64, 1);
    let new = build.binary(BinaryOp::Add, old, one);
    build.store(count, zero, 0, new);
    let (emptying, end) = (build.new_block(), build.new_block());
    let first = build.extract(target, 0, 8);
    let is_marked = build.unary(UnaryOp::ReduceAnd, first);
    build.branch(is_marked, emptying, end);
    build.switch_to(emptying);
    let length = build.push(Op::PacketLength(packet), Type::Bits(32));
    build.push(Op::PacketAdjustHead { packet, delta: length }, Type::Bits(1));
    build.jump(end);
    build.switch_to(end);
    build.push_effect(Op::Put { port: PortId::new(0), value: packet });
    build.end(Term::Done { mask: None });
    build.finish()
}

fn signal(element: ElementId) -> Function {
    let function = Function::new("MacSwap.signal", Some(element), Loc::default());
    let mut build = Builder::new(Function { result: Some(Type::Bits(SIGNAL_BITS)), ..function });
    let signal = build.add_param(Function::ENTRY, Type::Bits(SIGNAL_BITS), None);
    let more = build.extract(signal, SIGNAL_PARAM_BIT, 64);
    let (count, zero) = (ObjectRef::State(ObjectId::new(0)), build.number(1, 0));
    let old = build.load(count, zero, 0, 64);
    let new = build.binary(BinaryOp::Add, old, more);
    build.store(count, zero, 0, new);
    let answer = Op::Insert { value: signal, lo: SIGNAL_PARAM_BIT, part: old };
    let answer = build.push(answer, Type::Bits(SIGNAL_BITS));
    build.end(Term::Return { value: Some(answer) });
    build.finish()
}

fn add(element: ElementId) -> Function {
    let function = Function::new("MacSwap.add", Some(element), Loc::default());
    let mut build = Builder::new(Function { result: Some(Type::Bits(64)), ..function });
    let more = build.add_param(Function::ENTRY, Type::Bits(64), None);
    let (count, zero) = (ObjectRef::State(ObjectId::new(0)), build.number(1, 0));
    let old = build.load(count, zero, 0, 64);
    let new = build.binary(BinaryOp::Add, old, more);
    build.store(count, zero, 0, new);
    build.end(Term::Return { value: Some(old) });
    build.finish()
}

fn table(name: &str, kind: TableKind, key_bits: u32, value_bits: u32) -> Table {
    Table { name: name.into(), kind, key_bits, value_bits, capacity: 2, loc: Loc::default() }
}

fn port(name: &str, item: Item) -> Port {
    Port { name: name.into(), item, loc: Loc::default() }
}

fn object(name: &str, elem_bits: u32, depth: u64, init: Vec<Bits>) -> Object {
    Object {
        name: name.into(),
        space: Space::Register,
        elem_bits,
        depth,
        addressing: Addressing::Element,
        lifetime: Lifetime::Instance,
        init,
        host_visible: true,
        is_pinned: false,
        loc: Loc::default(),
    }
}

fn endpoint(name: &str, direction: Direction) -> Endpoint {
    Endpoint { name: name.into(), direction, item: Item::Flit }
}

fn channel(source: Source, sink: Sink) -> Channel {
    let (item, depth) = (Item::Flit, DEFAULT_DEPTH);
    Channel { source, sink, item, depth, on_full: OnFull::Block, loc: Loc::default() }
}
