// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The element around a lifted program: its ports, the variables that say where packets come from,
//! and how a verdict becomes an output.

use super::ELEMENT;
use crate::interpreter::verdict;
use freeport_ir::{
    Addressing, Bits, BlockId, Builder, Channel, DEFAULT_DEPTH, Direction, Element, Endpoint,
    EndpointId, Function, FunctionId, Graph, Instance, InstanceId, Item, Lifetime, Loc, LocalId,
    Object, ObjectId, ObjectRef, OnFull, Op, Port, PortId, Sink, Source, Space, Target, Term, Type,
    ValueId,
};

/// The variable with the number of the device that packets come from.
pub const INGRESS: &str = "ingress_ifindex";
/// The variable with the number of the queue that they come from.
pub const QUEUE: &str = "rx_queue_index";
/// Where these two are among the variables.
pub(super) const INGRESS_VARIABLE: ObjectId = ObjectId(0);
pub(super) const QUEUE_VARIABLE: ObjectId = ObjectId(1);
/// How many variables come before those of the maps.
pub(super) const VARIABLES: usize = 2;
/// The frames, among the objects of a firing.
pub(super) const STACK: LocalId = LocalId(0);
const TARGET: LocalId = LocalId(1);
const MOVED: LocalId = LocalId(2);
/// Bytes of a packet that programs read first, as a rule.
const WINDOW_BYTES: u32 = 64;
const IN: PortId = PortId(0);

/// Which outputs an element has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ports {
    /// `out` for every packet, whatever becomes of it, and `verdict` for what that is: 32 bits of
    /// verdict, below 32 bits of device.
    Verdicts,
    /// `pass`, `tx` and `redirect` for the packets that get this verdict; others end.
    ByVerdict,
}

impl Ports {
    fn outputs(self) -> Vec<Port> {
        let packets = Item::Packet { window_bytes: WINDOW_BYTES };
        let port = |name: &str, item| Port { name: name.into(), item, loc: Loc::default() };
        match self {
            Self::Verdicts => vec![port("out", packets), port("verdict", Item::Bits(64))],
            Self::ByVerdict => ["pass", "tx", "redirect"].map(|name| port(name, packets)).to_vec(),
        }
    }
}

/// The element without what the maps become.
pub(super) fn declare(name: &str, ports: Ports) -> Element {
    let packets = Item::Packet { window_bytes: WINDOW_BYTES };
    Element {
        name: name.into(),
        inputs: vec![Port { name: "in".into(), item: packets, loc: Loc::default() }],
        outputs: ports.outputs(),
        state: vec![
            number(INGRESS, 32, Lifetime::Instance, 1),
            number(QUEUE, 32, Lifetime::Instance, 0),
        ],
        tables: vec![],
        init: None,
        handler: FunctionId(0),
        signal: None,
        methods: vec![],
        await_all: false,
        initiation_interval: 1,
        loc: Loc::default(),
    }
}

/// One instance of it, with an outer end at each port.
pub(super) fn graph(element: &Element) -> Graph {
    let instance = Instance {
        name: element.name.clone(),
        element: ELEMENT,
        host: false,
        controlled: false,
        verilog: false,
        loc: Loc::default(),
    };
    let mut graph = Graph { instances: vec![instance], ..Graph::default() };
    let inputs = element.inputs.iter().map(|port| (port, Direction::Into));
    let outputs = element.outputs.iter().map(|port| (port, Direction::OutOf));
    for (at, (port, direction)) in inputs.chain(outputs).enumerate() {
        let end = EndpointId::new(at);
        let (source, sink) = match direction {
            Direction::Into => (Source::Endpoint(end), Sink::Port(InstanceId(0), IN)),
            Direction::OutOf => {
                let out = PortId::new(at - element.inputs.len());
                (Source::Port(InstanceId(0), out), Sink::Endpoint(end))
            }
        };
        graph.endpoints.push(Endpoint { name: port.name.clone(), direction, item: port.item });
        graph.channels.push(Channel {
            source,
            sink,
            item: port.item,
            depth: DEFAULT_DEPTH,
            on_full: OnFull::Block,
            loc: Loc::default(),
        });
    }
    graph
}

/// The objects of a firing: the frames, the device that the packet is redirected to, and by how
/// many bytes, in 64 bits, its start has moved.
pub(super) fn locals(function: &mut Function) -> [LocalId; 3] {
    let frames = Object {
        name: "frames".into(),
        space: Space::Stack,
        elem_bits: 8,
        depth: 8,
        addressing: Addressing::Byte,
        lifetime: Lifetime::Firing,
        init: vec![],
        host_visible: false,
        is_pinned: true,
        loc: Loc::default(),
    };
    let stack = function.add_local(frames);
    let target = function.add_local(number("target", 32, Lifetime::Firing, 0));
    let moved = function.add_local(number("moved", 64, Lifetime::Firing, 0));
    debug_assert_eq!([stack, target, moved], [STACK, TARGET, MOVED]);
    [stack, target, moved]
}

fn number(name: &str, bits: u32, lifetime: Lifetime, value: u64) -> Object {
    let is_state = lifetime == Lifetime::Instance;
    Object {
        name: name.into(),
        space: Space::Register,
        elem_bits: bits,
        depth: 1,
        addressing: Addressing::Element,
        lifetime,
        init: if is_state { vec![Bits::from_u64(bits, value)] } else { vec![] },
        host_visible: is_state,
        is_pinned: is_state,
        loc: Loc::default(),
    }
}

/// Takes the packet; gives it, and the block that the program ends in, whose parameter is the
/// verdict.
pub(super) fn begin(builder: &mut Builder) -> (ValueId, BlockId) {
    let packet = builder.push(Op::Take(IN), Type::Packet);
    let epilogue = builder.new_block();
    builder.add_param(epilogue, Type::Bits(32), Some("verdict".into()));
    (packet, epilogue)
}

/// Puts the packet where the verdict says.
pub(super) fn end(
    builder: &mut Builder,
    epilogue: BlockId,
    packet: ValueId,
    target: ObjectRef,
    ports: Ports,
) {
    builder.switch_to(epilogue);
    let found = builder.function().block(epilogue).params[0];
    match ports {
        Ports::Verdicts => {
            let zero = builder.number(32, 0);
            let device = builder.load(target, zero, 0, 32);
            let record = builder.push(Op::Concat(vec![found, device]), Type::Bits(64));
            builder.push_effect(Op::Put { port: PortId(0), value: packet });
            builder.push_effect(Op::Put { port: PortId(1), value: record });
            builder.end(Term::Done { mask: None });
        }
        Ports::ByVerdict => {
            let others = builder.new_block();
            let outputs = [verdict::PASS, verdict::TX, verdict::REDIRECT];
            let cases = outputs.map(|of| (Bits::from_u64(32, of.into()), builder.new_block()));
            let term = Term::Switch {
                value: found,
                cases: cases.iter().map(|(of, block)| (of.clone(), Target::to(*block))).collect(),
                default: Target::to(others),
            };
            builder.end(term);
            for (at, (_, block)) in cases.iter().enumerate() {
                builder.switch_to(*block);
                builder.push_effect(Op::Put { port: PortId::new(at), value: packet });
                builder.end(Term::Done { mask: None });
            }
            builder.switch_to(others);
            builder.end(Term::Done { mask: None });
        }
    }
}
