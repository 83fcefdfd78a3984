// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Creates channels from edges: through the junctions of groups, with a check that every port is
//! connected and that both ends carry the same items.

use super::{ConfigBuilder, ENDPOINTS, Terminal};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::WINDOW_BYTES;
use freeport_ir as ir;
use std::collections::HashMap;

/// A connection as written in the source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: Terminal,
    pub(super) to: Terminal,
    pub(super) depth: Option<u32>,
    pub(super) lossy: bool,
    /// Location of the arrow.
    pub(super) span: Span,
}

/// All edges, in the order of the source.
#[derive(Default)]
pub(super) struct Edges {
    all: Vec<Edge>,
    by_writer: HashMap<Terminal, usize>,
    by_reader: HashMap<Terminal, usize>,
}

impl Edges {
    pub(super) fn from(&self, terminal: Terminal) -> Option<Edge> {
        self.by_writer.get(&terminal).map(|at| self.all[*at])
    }

    pub(super) fn to(&self, terminal: Terminal) -> Option<Edge> {
        self.by_reader.get(&terminal).map(|at| self.all[*at])
    }

    pub(super) fn add(&mut self, edge: Edge) {
        self.by_writer.insert(edge.from, self.all.len());
        self.by_reader.insert(edge.to, self.all.len());
        self.all.push(edge);
    }
}

impl ConfigBuilder<'_, '_> {
    /// Creates the channels. After other errors, unconnected ports are not reported: the faulty
    /// chain may be the one that should have connected them.
    pub(super) fn make_channels(&mut self) {
        for edge in self.edges.all.clone() {
            if !matches!(edge.from, Terminal::Junction(_))
                && let Some((whole, item)) = self.through_junctions(edge)
            {
                self.add_channel(whole, item);
            }
        }
        if !self.has_failed {
            self.check_ports();
            self.check_junctions();
        }
    }

    /// Follows an edge through the junctions it meets; returns the whole edge and its kind of item,
    /// or `None` if a junction has no further edge. The channel gets the greatest depth along the
    /// way.
    fn through_junctions(&mut self, edge: Edge) -> Option<(Edge, ir::Item)> {
        let mut whole = edge;
        let mut item = self.item_of(edge.from, true);
        let mut arrow = edge.span;
        loop {
            let read = self.item_of(whole.to, false);
            if let (Some(written), Some(read)) = (item, read)
                && written != read
            {
                self.report(items_differ(arrow, written, read));
                return None;
            }
            item = item.or(read);
            if !matches!(whole.to, Terminal::Junction(_)) {
                return Some((whole, item.unwrap_or(ir::Item::Flit)));
            }
            let next = self.edges.from(whole.to)?;
            arrow = next.span;
            whole.to = next.to;
            whole.depth = whole.depth.max(next.depth);
            whole.lossy |= next.lossy;
        }
    }

    fn add_channel(&mut self, edge: Edge, item: ir::Item) {
        let source = match edge.from {
            Terminal::Port(instance, port) => ir::Source::Port(instance, port),
            Terminal::Endpoint(at) => ir::Source::Endpoint(self.add_endpoint(at, item)),
            Terminal::Junction(_) => return,
        };
        let sink = match edge.to {
            Terminal::Port(instance, port) => ir::Sink::Port(instance, port),
            Terminal::Endpoint(at) => ir::Sink::Endpoint(self.add_endpoint(at, item)),
            Terminal::Junction(_) => return,
        };
        let depth = edge.depth.unwrap_or(ir::DEFAULT_DEPTH);
        let on_full = if edge.lossy { ir::OnFull::DropCounted } else { ir::OnFull::Block };
        let loc = self.sources.loc(edge.span);
        self.graph.channels.push(ir::Channel { source, sink, item, depth, on_full, loc });
    }

    fn add_endpoint(&mut self, at: usize, item: ir::Item) -> ir::EndpointId {
        let (name, direction) = ENDPOINTS[at];
        self.graph.endpoints.push(ir::Endpoint { name: name.into(), direction, item });
        ir::EndpointId::new(self.graph.endpoints.len() - 1)
    }

    /// Returns the kind of item of a port; `None` for an endpoint, which adapts to its peer.
    fn item_of(&self, terminal: Terminal, is_writer: bool) -> Option<ir::Item> {
        match terminal {
            Terminal::Endpoint(_) => None,
            Terminal::Junction(at) => self.junctions[at].item,
            Terminal::Port(..) => Some(self.port(terminal, is_writer)?.item),
        }
    }

    fn port(&self, terminal: Terminal, is_writer: bool) -> Option<&ir::Port> {
        let Terminal::Port(instance, port) = terminal else { return None };
        let instance = &self.graph.instances[instance.index()];
        let (inputs, outputs) = self.elements.ports(instance.element);
        (if is_writer { outputs } else { inputs }).get(port.index())
    }

    /// Returns the name of a terminal for messages.
    pub(super) fn terminal_name(&self, terminal: Terminal, is_writer: bool) -> String {
        match terminal {
            Terminal::Endpoint(at) => format!("`{}`", ENDPOINTS[at].0),
            Terminal::Junction(at) => self.junctions[at].name.clone(),
            Terminal::Port(instance, _) => {
                let port = self.port(terminal, is_writer).map_or("?", |port| port.name.as_str());
                let instance = &self.graph.instances[instance.index()].name;
                let side = if is_writer { "output" } else { "input" };
                format!("{side} `{port}` of `{instance}`")
            }
        }
    }

    /// Reports the ports of instances without an edge.
    fn check_ports(&mut self) {
        let mut errors = vec![];
        for (at, instance) in self.graph.instances.iter().enumerate() {
            let id = ir::InstanceId::new(at);
            let (inputs, outputs) = self.elements.ports(instance.element);
            let span = self.spans[at];
            let open = |count: usize, edges: &HashMap<Terminal, usize>| -> Vec<Terminal> {
                let ports = (0..count).map(|port| Terminal::Port(id, ir::PortId::new(port)));
                ports.filter(|port| !edges.contains_key(port)).collect()
            };
            for port in open(inputs.len(), &self.edges.by_reader) {
                let message = format!("nothing writes to {}", self.terminal_name(port, false));
                errors.push(Diagnostic::error("E0506", span, message));
            }
            for port in open(outputs.len(), &self.edges.by_writer) {
                let message = format!("nothing reads from {}", self.terminal_name(port, true));
                errors.push(Diagnostic::error("E0505", span, message));
            }
        }
        self.diagnostics.append(&mut errors);
    }

    /// Reports the ports of groups that lack an edge on one side or both.
    fn check_junctions(&mut self) {
        let mut errors = vec![];
        for (at, junction) in self.junctions.iter().enumerate() {
            let terminal = Terminal::Junction(at);
            if self.edges.to(terminal).is_none() {
                let message = format!("nothing writes to {}", junction.name);
                errors.push(Diagnostic::error("E0506", junction.span, message));
            }
            if self.edges.from(terminal).is_none() {
                let message = format!("nothing reads from {}", junction.name);
                errors.push(Diagnostic::error("E0505", junction.span, message));
            }
        }
        self.diagnostics.append(&mut errors);
    }
}

fn items_differ(span: Span, written: ir::Item, read: ir::Item) -> Diagnostic {
    let (written, read) = (describe(written), describe(read));
    Diagnostic::error("E0507", span, format!("{written} cannot go where {read} are read"))
}

fn describe(item: ir::Item) -> String {
    match item {
        ir::Item::Flit => "flits".into(),
        ir::Item::Bits(width) => format!("records of {width} bits"),
        ir::Item::Packet { window_bytes: WINDOW_BYTES } => "packets".into(),
        ir::Item::Packet { window_bytes } => {
            format!("packets with {window_bytes} bytes of header")
        }
    }
}
