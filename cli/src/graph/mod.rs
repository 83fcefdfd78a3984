// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Drawing of a program's element graph: what there is to draw ([`Picture`]), where it goes
//! (`layout`), and how it looks (`svg`). Data flows from left to right; channels that go back are
//! led below everything else.

mod layout;
mod svg;

use freeport_ir::{Direction, EndpointId, InstanceId, Item, OnFull, Program, Sink, Source};

/// What a box stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Endpoint,
    Element,
    HostElement,
}

/// A box.
#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    title: String,
    subtitle: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

/// A channel between two ports, each a node and the port's number.
#[derive(Clone, Debug)]
struct Edge {
    source: (usize, usize),
    sink: (usize, usize),
    label: String,
    is_lossy: bool,
}

/// Boxes and the channels between them.
#[derive(Clone, Debug, Default)]
struct Picture {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

/// The element graph of `program` as an SVG document.
pub fn draw(program: &Program) -> String {
    let picture = Picture::of(program);
    svg::render(&program.name, &picture, &layout::place(&picture))
}

impl Picture {
    /// Instances come first, then endpoints.
    fn of(program: &Program) -> Self {
        let graph = &program.graph;
        let mut nodes: Vec<Node> = (0..graph.instances.len())
            .map(|at| instance_node(program, InstanceId::new(at)))
            .collect();
        let endpoint = |id: EndpointId| graph.instances.len() + id.index();
        for end in &graph.endpoints {
            let port = vec![String::new()];
            let (inputs, outputs) = match end.direction {
                Direction::Into => (vec![], port),
                Direction::OutOf => (port, vec![]),
            };
            nodes.push(Node {
                kind: Kind::Endpoint,
                title: end.name.clone(),
                subtitle: item_name(end.item),
                inputs,
                outputs,
            });
        }
        let edges = graph.channels.iter().map(|channel| Edge {
            source: match channel.source {
                Source::Endpoint(id) => (endpoint(id), 0),
                Source::Port(instance, port) => (instance.index(), port.index()),
            },
            sink: match channel.sink {
                Sink::Endpoint(id) => (endpoint(id), 0),
                Sink::Port(instance, port) => (instance.index(), port.index()),
            },
            label: match channel.item {
                Item::Flit => format!("{}", channel.depth),
                item => format!("{} × {}", channel.depth, item_name(item)),
            },
            is_lossy: channel.on_full == OnFull::DropCounted,
        });
        Self { nodes, edges: edges.collect() }
    }
}

fn instance_node(program: &Program, id: InstanceId) -> Node {
    let (instance, element) = (program.instance(id), program.element_of(id));
    let names = |ports: &[freeport_ir::Port]| ports.iter().map(|port| port.name.clone()).collect();
    let mut marks = String::new();
    for (is_set, mark) in
        [(instance.host, "host "), (instance.controlled, "@ "), (instance.verilog, "verilog ")]
    {
        if is_set {
            marks += mark;
        }
    }
    Node {
        kind: if instance.host { Kind::HostElement } else { Kind::Element },
        title: instance.name.clone(),
        subtitle: format!("{marks}{}", element.name),
        inputs: names(&element.inputs),
        outputs: names(&element.outputs),
    }
}

fn item_name(item: Item) -> String {
    match item {
        Item::Flit => "flits".into(),
        Item::Bits(width) => format!("{width} bits"),
        Item::Packet { .. } => "packets".into(),
    }
}
