// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Drawing of a program's element graph: the boxes and channels, their positions (`layout`),
//! and the output (`svg`). Data flows from left to right; channels that go back are
//! routed below everything else.

mod layout;
mod svg;

use freeport_ir::{Direction, EndpointId, InstanceId, Item, OnFull, Program, Sink, Source};

/// Kind of a box.
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

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_ir::{Channel, Element, ElementId, Endpoint, Function, FunctionId, Graph};
    use freeport_ir::{Instance, Loc, Port, PortId};

    fn element(name: &str, inputs: &[&str], outputs: &[&str]) -> Element {
        let ports = |names: &[&str]| {
            let port = |name: &&str| Port {
                name: name.to_string(),
                item: Item::Flit,
                loc: Loc::default(),
            };
            names.iter().map(port).collect()
        };
        Element {
            name: name.into(),
            inputs: ports(inputs),
            outputs: ports(outputs),
            state: vec![],
            tables: vec![],
            init: None,
            handler: FunctionId::new(0),
            signal: None,
            methods: vec![],
            await_all: false,
            initiation_interval: 1,
            loc: Loc::default(),
        }
    }

    /// from_tor -> cnt -> tee, whose first output returns to cnt, whose second goes to a host
    /// element and may drop, and whose third leaves the graph.
    fn program() -> Program {
        let instance = |name: &str, element: usize, host: bool| Instance {
            name: name.into(),
            element: ElementId::new(element),
            host,
            controlled: element == 0,
            verilog: false,
            loc: Loc::default(),
        };
        let endpoint =
            |name: &str, direction| Endpoint { name: name.into(), direction, item: Item::Flit };
        let out = |node: usize, port: usize| Source::Port(InstanceId::new(node), PortId::new(port));
        let into = |node: usize, port: usize| Sink::Port(InstanceId::new(node), PortId::new(port));
        let channel = |source, sink, depth, on_full| Channel {
            source,
            sink,
            item: Item::Flit,
            depth,
            on_full,
            loc: Loc::default(),
        };
        let block = OnFull::Block;
        let channels = vec![
            channel(Source::Endpoint(EndpointId::new(0)), into(0, 0), 16, block),
            channel(out(0, 0), into(1, 0), 16, block),
            channel(out(1, 0), into(0, 1), 4, block),
            channel(out(1, 1), into(2, 0), 64, OnFull::DropCounted),
            channel(out(1, 2), Sink::Endpoint(EndpointId::new(1)), 16, block),
        ];
        Program {
            name: "capture <sample>".into(),
            functions: vec![Function::new("handler", None, Loc::default())],
            elements: vec![
                element("Count", &["in", "again"], &["out"]),
                element("Tee<3>", &["in"], &["out[0]", "out[1]", "out[2]"]),
                element("PktLogger", &["in"], &[]),
            ],
            graph: Graph {
                instances: vec![
                    instance("cnt", 0, false),
                    instance("tee", 1, false),
                    instance("logger", 2, true),
                ],
                endpoints: vec![
                    endpoint("from_tor", Direction::Into),
                    endpoint("to_tor", Direction::OutOf),
                ],
                channels,
            },
            ..Program::default()
        }
    }

    #[test]
    fn a_drawing_shows_every_kind_of_thing() {
        let drawing = draw(&program());
        let count = |what: &str| drawing.matches(what).count();
        assert_eq!(count("class=\"endpoint\""), 2);
        assert_eq!(count("class=\"element\""), 2);
        assert_eq!(count("class=\"host\""), 1);
        assert_eq!(count("class=\"channel\""), 4);
        assert_eq!(count("class=\"channel lossy\""), 1);
        for text in [">cnt<", ">@ Count<", ">out[2]<", ">host PktLogger<", "capture &lt;sample&gt;"]
        {
            assert!(drawing.contains(text), "{text} is not in\n{drawing}");
        }
    }
}
