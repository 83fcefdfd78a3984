// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Resolves chains: the output and input terminals of each node, with one lane per copy.
//!
//! An edge has one lane, unless a side is *wide*: an array of instances without `#k`, or an array
//! of ports selected by its name alone. Then both sides must have the same number of lanes.

use super::channels::Edge;
use super::{ConfigBuilder, Declared, ENDPOINTS, Node, Terminal, endpoint_of};
use crate::ast::{
    ConfigNode, ConfigStatement, Connection, EdgeOptions, Expr, ExprKind, Name, PortSelector,
};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::spelling::nearest;
use freeport_ir as ir;

/// Role of a node in an edge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Writer,
    Reader,
}

impl Side {
    /// Returns the word for the ports on that side of an instance.
    fn port(self) -> &'static str {
        match self {
            Side::Writer => "output",
            Side::Reader => "input",
        }
    }
}

/// Ports chosen by a selector.
struct Selection {
    terminals: Vec<Terminal>,
    /// Whether a whole array of ports was named.
    is_whole_array: bool,
}

/// One end of an edge: the ports chosen for each copy.
struct End {
    copies: Vec<Selection>,
    is_array: bool,
    span: Span,
}

impl End {
    fn is_wide(&self) -> bool {
        self.is_array || self.copies.iter().any(|copy| copy.is_whole_array)
    }

    /// Returns the terminals of all lanes.
    fn lanes(&self, is_wide: bool) -> Vec<Terminal> {
        match &self.copies[..] {
            [only] if is_wide && !self.is_array => only.terminals.clone(),
            copies => copies.iter().filter_map(|copy| copy.terminals.first().copied()).collect(),
        }
    }
}

impl<'a> ConfigBuilder<'a, '_> {
    /// Resolves the chains of the file and of every instance of a group.
    pub(super) fn connect_all(&mut self, statements: &[&'a ConfigStatement]) {
        for statement in statements {
            self.statement(0, statement);
        }
        for scope in 1..self.scopes.len() {
            let Some(group) = self.scopes[scope].group else { continue };
            for statement in &group.statements {
                self.statement(scope, statement);
            }
        }
    }

    fn statement(&mut self, scope: usize, statement: &'a ConfigStatement) {
        if let ConfigStatement::Connect(chain) = statement {
            self.chain(scope, chain);
        }
    }

    fn chain(&mut self, scope: usize, chain: &'a Connection) {
        let (first, last) = (&chain.nodes[0], &chain.nodes[chain.nodes.len() - 1]);
        if first.input.is_some() {
            self.error("E0513", first.name.span, "nothing enters the start of a chain");
        }
        if last.output.is_some() {
            self.error("E0513", last.name.span, "nothing leaves the end of a chain");
        }
        for (pair, options) in chain.nodes.windows(2).zip(&chain.edges) {
            let writer = self.end(scope, &pair[0], Side::Writer);
            let reader = self.end(scope, &pair[1], Side::Reader);
            if let (Some(writer), Some(reader)) = (writer, reader) {
                self.join(scope, &writer, &reader, options);
            }
        }
    }

    /// Adds the edges between two ends.
    fn join(&mut self, scope: usize, writer: &End, reader: &End, options: &EdgeOptions) {
        let depth = match &options.depth {
            Some(depth) => match self.number(scope, depth, 1, super::DEPTH_MAX) {
                Some(depth) => Some(depth as u32),
                None => return,
            },
            None => None,
        };
        for end in [writer, reader] {
            if end.is_array && end.copies.iter().any(|copy| copy.is_whole_array) {
                let message = "an array of instances takes one port of each";
                return self.error("E0510", end.span, message);
            }
        }
        let is_wide = writer.is_wide() || reader.is_wide();
        let (from, to) = (writer.lanes(is_wide), reader.lanes(is_wide));
        if from.len() != to.len() {
            let message = format!("{} to the left, {} to the right", from.len(), to.len());
            let error = Diagnostic::error("E0510", options.span, message)
                .label("an array of instances or ports is joined to one of the same length");
            return self.report(error);
        }
        for (from, to) in from.into_iter().zip(to) {
            let edge = Edge { from, to, depth, lossy: options.lossy, span: options.span };
            let spans = (writer.span, reader.span);
            self.add_edge(edge, spans);
        }
    }

    /// Adds an edge, unless one of its ends is already connected.
    fn add_edge(&mut self, edge: Edge, (writer, reader): (Span, Span)) {
        let taken = self.edges.from(edge.from).map(|first| (edge.from, writer, first.span));
        let taken = taken.or_else(|| {
            let first = self.edges.to(edge.to)?;
            Some((edge.to, reader, first.span))
        });
        let Some((terminal, span, first)) = taken else { return self.edges.add(edge) };
        let is_writer = terminal == edge.from && span == writer;
        let name = self.terminal_name(terminal, is_writer);
        let error = Diagnostic::error("E0504", span, format!("{name} is connected twice"))
            .note(first, "the first connection is here");
        let error = match is_writer {
            true => error.help("to send items to several places, put a `Tee` between"),
            false => error,
        };
        self.report(error);
    }

    /// Resolves a node as an end of an edge.
    fn end(&mut self, scope: usize, node: &'a ConfigNode, side: Side) -> Option<End> {
        let span = node.name.span;
        let selector = match side {
            Side::Writer => &node.output,
            Side::Reader => &node.input,
        };
        if let Some(endpoint) = endpoint_of(&node.name.text) {
            return self.endpoint(endpoint, node, side);
        }
        if matches!(node.name.text.as_str(), "begin" | "end") {
            return self.group_port(scope, node, side, selector.as_ref());
        }
        let (nodes, is_array) = self.copies(scope, node)?;
        let mut copies = vec![];
        for copy in nodes {
            let ports = self.ports(copy, side)?;
            copies.push(self.select(
                scope,
                &node.name.text,
                ports,
                selector.as_ref(),
                side,
                span,
            )?);
        }
        Some(End { copies, is_array, span })
    }

    /// Returns the instances that a node names, and whether they form an array.
    fn copies(&mut self, scope: usize, node: &'a ConfigNode) -> Option<(Vec<Node>, bool)> {
        let name = &node.name;
        let Some(declared) = self.scopes[scope].names.get(name.text.as_str()) else {
            let error = self.unknown_instance(scope, name);
            self.report(error);
            // Suppresses errors for further uses of the name.
            let nodes = vec![Node::Unknown];
            let declared = Declared { nodes, is_array: false, span: name.span };
            self.scopes[scope].names.insert(&name.text, declared);
            return None;
        };
        let Declared { nodes, is_array, .. } = declared;
        let (nodes, is_array) = (nodes.clone(), *is_array);
        let Some(copy) = &node.copy else { return Some((nodes, is_array)) };
        if !is_array {
            let message = format!("`{}` is one instance, not an array", name.text);
            self.error("E0510", name.span, message);
            return None;
        }
        let copy = self.number(scope, copy, 1, nodes.len() as u64)?;
        Some((vec![nodes[copy as usize - 1]], false))
    }

    /// Returns the error for an unknown name in a chain.
    fn unknown_instance(&mut self, scope: usize, name: &Name) -> Diagnostic {
        let text = name.text.as_str();
        let error = Diagnostic::error("E0502", name.span, format!("no instance `{text}`"));
        let declare = |element: &str| {
            let own = element.to_lowercase();
            format!("declare an instance, `{element} :: {own}`, and put `{own}` in the chain")
        };
        if self.is_element(text) {
            return error.label("an element, not an instance").help(declare(text));
        }
        let is_group = self.scopes[scope].group.is_some();
        if let Some(near) = self.similar_end(scope, text) {
            return error.help(format!("did you mean `{near}`?"));
        }
        if text.starts_with("from_") || text.starts_with("to_") {
            let all: Vec<_> = ENDPOINTS.iter().map(|(end, _)| format!("`{end}`")).collect();
            let message = format!("no endpoint `{text}`");
            return Diagnostic::error("E0502", name.span, message)
                .label("not one of the ends that exist")
                .help(format!(
                    "there are {}; the interface or file of each is given when the program is run: \
                     `--in from_tor=xdp:eth0`",
                    all.join(", ")
                ));
        }
        match (text, self.similar_element(text)) {
            ("input" | "output", _) if is_group => {
                error.help("in a group `begin` and `end` are its own ports")
            }
            (_, Some(element)) => error
                .label(format!("did you mean an instance of `{element}`?"))
                .help(declare(&element)),
            _ => error.help("declare it, `Element :: name`, or connect an endpoint"),
        }
    }

    /// Returns the instance or endpoint with a similar name. All endpoints have the same prefixes,
    /// so the part after the prefix must be similar.
    fn similar_end(&self, scope: usize, text: &str) -> Option<String> {
        for way in ["from_", "to_"] {
            let Some(rest) = text.strip_prefix(way) else { continue };
            let ends = ENDPOINTS.iter().filter_map(|(end, _)| end.strip_prefix(way));
            if let Some(near) = nearest(rest, ends) {
                return Some(format!("{way}{near}"));
            }
        }
        let has_way = text.starts_with("from_") || text.starts_with("to_");
        let ends = ENDPOINTS.iter().map(|(end, _)| *end).filter(|_| !has_way);
        let own = self.scopes[scope].names.keys().copied();
        nearest(text, own.chain(ends)).map(str::to_string)
    }

    fn endpoint(&mut self, endpoint: usize, node: &ConfigNode, side: Side) -> Option<End> {
        let (name, direction) = ENDPOINTS[endpoint];
        let span = node.name.span;
        if (direction == ir::Direction::Into) != (side == Side::Writer) {
            let message = match side {
                Side::Writer => format!("nothing comes from `{name}`"),
                Side::Reader => format!("nothing can be sent to `{name}`"),
            };
            let (_, other) = name.split_once('_')?;
            let help = match side {
                Side::Writer => format!("`from_{other}` is the end that items come from"),
                Side::Reader => format!("`to_{other}` is the end that items go to"),
            };
            self.report(Diagnostic::error("E0508", span, message).help(help));
            return None;
        }
        if node.input.is_some() || node.output.is_some() || node.copy.is_some() {
            self.error("E0513", span, format!("`{name}` has no ports to choose from"));
            return None;
        }
        let terminals = vec![Terminal::Endpoint(endpoint)];
        let copies = vec![Selection { terminals, is_whole_array: false }];
        Some(End { copies, is_array: false, span })
    }

    /// Resolves `begin` and `end`: the ports of the group, seen from inside.
    fn group_port(
        &mut self,
        scope: usize,
        node: &ConfigNode,
        side: Side,
        selector: Option<&PortSelector>,
    ) -> Option<End> {
        let span = node.name.span;
        let own = &self.scopes[scope];
        let is_begin = node.name.text == "begin";
        if own.group.is_none() {
            let message = format!("`{}` has a meaning only in a group", node.name.text);
            self.error("E0514", span, message);
            return None;
        }
        if is_begin != (side == Side::Writer) {
            let message = match side {
                Side::Writer => "nothing comes from `end`",
                Side::Reader => "nothing can be sent to `begin`",
            };
            self.error("E0508", span, message);
            return None;
        }
        let ports = if is_begin { &own.inputs } else { &own.outputs };
        let ports =
            ports.iter().map(|(name, at)| (name.clone(), Terminal::Junction(*at))).collect();
        let selection = self.select(scope, &node.name.text, ports, selector, side, span)?;
        Some(End { copies: vec![selection], is_array: false, span })
    }

    /// Returns the ports of an instance on one side; `None` if it could not be created.
    fn ports(&self, node: Node, side: Side) -> Option<Vec<(String, Terminal)>> {
        match node {
            Node::Unknown => None,
            Node::Group(scope) => {
                let scope = &self.scopes[scope];
                let ports = if side == Side::Reader { &scope.inputs } else { &scope.outputs };
                let terminal =
                    |(name, at): &(String, usize)| (name.clone(), Terminal::Junction(*at));
                Some(ports.iter().map(terminal).collect())
            }
            Node::Element(id) => {
                let element = self.graph.instances[id.index()].element;
                let (inputs, outputs) = self.elements.ports(element);
                let ports = if side == Side::Reader { inputs } else { outputs };
                let terminal = |(at, port): (usize, &ir::Port)| {
                    (port.name.clone(), Terminal::Port(id, ir::PortId::new(at)))
                };
                Some(ports.iter().enumerate().map(terminal).collect())
            }
        }
    }

    /// Returns the ports that a selector chooses: by default the first one, with the rest of its
    /// array.
    fn select(
        &mut self,
        scope: usize,
        of: &str,
        ports: Vec<(String, Terminal)>,
        selector: Option<&PortSelector>,
        side: Side,
        span: Span,
    ) -> Option<Selection> {
        let single = |terminal| Selection { terminals: vec![terminal], is_whole_array: false };
        let port = side.port();
        let Some((first, _)) = ports.first() else {
            self.error("E0503", span, format!("`{of}` has no {port} ports"));
            return None;
        };
        let array = |base: &str| -> Vec<Terminal> {
            let is_part = |name: &str| name.split_once('[').is_some_and(|(own, _)| own == base);
            ports.iter().filter(|(name, _)| is_part(name)).map(|(_, port)| *port).collect()
        };
        let (wanted, span) = match selector {
            None => {
                let base = first.split('[').next().unwrap_or_default();
                let terminals = array(base);
                let is_array = !terminals.is_empty();
                let terminals = if is_array { terminals } else { vec![ports[0].1] };
                return Some(Selection { terminals, is_whole_array: false });
            }
            Some(PortSelector::Name(name)) => {
                let terminals = array(&name.text);
                if !terminals.is_empty() {
                    return Some(Selection { terminals, is_whole_array: true });
                }
                if self.scopes[scope].substitution.contains(&name.text) {
                    let kind = ExprKind::Name(name.text.clone(), vec![]);
                    let number = Expr { kind, span: name.span };
                    return self.numbered(scope, &ports, &number, side, of).map(single);
                }
                (name.text.clone(), name.span)
            }
            Some(PortSelector::Number(number)) => match &number.kind {
                ExprKind::Index(base, index) => {
                    let ExprKind::Name(base, _) = &base.kind else {
                        self.error("E0503", number.span, "this is not a port");
                        return None;
                    };
                    let index = self.number(scope, index, 0, u64::MAX)?;
                    (format!("{base}[{index}]"), number.span)
                }
                _ => return self.numbered(scope, &ports, number, side, of).map(single),
            },
        };
        if let Some((_, terminal)) = ports.iter().find(|(name, _)| *name == wanted) {
            return Some(single(*terminal));
        }
        let message = format!("`{of}` has no {port} port `{wanted}`");
        let names: Vec<_> = ports.iter().take(8).map(|(name, _)| format!("`{name}`")).collect();
        let more = if ports.len() > 8 { ", ..." } else { "" };
        let label = format!("it has {}{more}", names.join(", "));
        self.report(Diagnostic::error("E0503", span, message).label(label));
        None
    }

    /// Returns the port with that number, from 1.
    fn numbered(
        &mut self,
        scope: usize,
        ports: &[(String, Terminal)],
        number: &Expr,
        side: Side,
        of: &str,
    ) -> Option<Terminal> {
        let wanted = self.number(scope, number, 0, u64::MAX)?;
        let at = usize::try_from(wanted).ok().and_then(|wanted| wanted.checked_sub(1));
        let Some((_, terminal)) = at.and_then(|at| ports.get(at)) else {
            let (port, count) = (side.port(), ports.len());
            let message = format!("`{of}` has no {port} port {wanted}");
            let label = format!("its {port} ports are numbered from 1 to {count}");
            self.report(Diagnostic::error("E0503", number.span, message).label(label));
            return None;
        };
        Some(*terminal)
    }
}
