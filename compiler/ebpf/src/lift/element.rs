// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The element around a lifted program: the variables with the packet's origin, the objects of a
//! firing, and a graph of that element alone.

use super::{ELEMENT, Ports};
use freeport_ir::{
    Addressing, Bits, Channel, DEFAULT_DEPTH, Direction, Element, Endpoint, EndpointId, Function,
    FunctionId, Graph, Instance, InstanceId, Lifetime, Loc, LocalId, Object, ObjectId, ObjectRef,
    OnFull, PortId, Sink, Source, Space,
};

/// Variable with the number of the ingress device, unless the input determines it.
pub const INGRESS: &str = "ingress_ifindex";
/// Variable with the number of the receive queue.
pub const QUEUE: &str = "rx_queue_index";
/// Indices of these two among the variables. With an input for each device, the first holds the
/// number of the input whose turn it is.
pub(super) const INGRESS_VARIABLE: ObjectRef = ObjectRef::State(ObjectId(0));
pub(super) const TURN_VARIABLE: ObjectRef = ObjectRef::State(ObjectId(0));
pub(super) const QUEUE_VARIABLE: ObjectRef = ObjectRef::State(ObjectId(1));
/// Number of variables before those of the maps.
pub(super) const VARIABLES: usize = 2;
/// Object of a firing that holds the frames.
pub(super) const STACK: LocalId = LocalId(0);
/// Object of a firing that holds the device to which the packet is redirected.
pub(super) const TARGET: LocalId = LocalId(1);
const MOVED: LocalId = LocalId(2);

/// Declares the element without the counterparts of maps.
pub(super) fn declare(name: &str, ports: &Ports) -> Element {
    let first = match ports {
        Ports::Devices(_) => {
            let turn = number("turn", 32, Lifetime::Instance, 0);
            Object { host_visible: false, ..turn }
        }
        Ports::Verdicts | Ports::ByVerdict => number(INGRESS, 32, Lifetime::Instance, 1),
    };
    Element {
        name: name.into(),
        inputs: ports.inputs(),
        outputs: ports.outputs(),
        state: vec![first, number(QUEUE, 32, Lifetime::Instance, 0)],
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

/// Builds a graph of one instance, with an external endpoint at each port.
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
            Direction::Into => (Source::Endpoint(end), Sink::Port(InstanceId(0), PortId::new(at))),
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

/// Declares the objects of a firing: the frames, the device to which the packet is redirected, and
/// the distance in bytes, as 64 bits, by which its start has moved.
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
