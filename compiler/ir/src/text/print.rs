// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Prints programs, elements and the graph. The parser infers everything that is omitted; an index
//! out of order, or one whose name is not unique, is written as `#` and the index.

use super::print_function::print_function;
use super::spelling::{function_name, name, quoted, role_name};
use crate::{
    Addressing, Bits, Channel, DEFAULT_DEPTH, Direction, Element, ElementId, FunctionId, Graph,
    Instance, InstanceId, Item, Lifetime, Loc, Object, OnFull, Port, PortId, Program, Sink, Source,
    Table, Type,
};
use std::fmt::Write;

/// Returns the text form of a program; [`parse`](super::parse()) restores the same program.
pub fn print(program: &Program) -> String {
    let mut printer = Printer { program, out: String::new(), next_function: 0, depth: 0 };
    printer.program();
    printer.out
}

/// State of the printer.
pub(super) struct Printer<'p> {
    pub(super) program: &'p Program,
    pub(super) out: String,
    /// Index of the next function if it is not written explicitly.
    pub(super) next_function: u32,
    depth: usize,
}

/// Role of a function in its element, which makes its name redundant.
pub(super) struct Role<'p> {
    pub(super) keyword: &'static str,
    pub(super) method: Option<&'p str>,
    pub(super) default_name: Option<String>,
}

impl<'p> Printer<'p> {
    /// Appends a line.
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        self.out.extend(std::iter::repeat_n("  ", self.depth));
        self.out.push_str(text.as_ref());
        self.out.push('\n');
    }

    /// Opens braces.
    pub(super) fn open(&mut self, text: impl AsRef<str>) {
        self.line(format!("{} {{", text.as_ref()));
        self.depth += 1;
    }

    /// Closes braces.
    pub(super) fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    /// Indents the output of `body` by one level.
    pub(super) fn indented(&mut self, body: impl FnOnce(&mut Self)) {
        self.depth += 1;
        body(self);
        self.depth -= 1;
    }

    fn program(&mut self) {
        if !self.program.name.is_empty() {
            self.line(format!("program {}", name(&self.program.name)));
        }
        for file in &self.program.files {
            self.line(format!("file {}", quoted(file)));
        }
        for (at, function) in self.program.functions.iter().enumerate() {
            if function.owner.is_none() {
                self.blank();
                let role = Role { keyword: "fn", method: None, default_name: None };
                print_function(self, FunctionId::new(at), role);
            }
        }
        for (at, element) in self.program.elements.iter().enumerate() {
            self.blank();
            self.element(ElementId::new(at), element);
        }
        if self.program.graph != Graph::default() {
            self.blank();
            self.graph();
        }
    }

    fn blank(&mut self) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
    }

    fn element(&mut self, id: ElementId, element: &'p Element) {
        self.open(format!("element {}{}", name(&element.name), at(element.loc)));
        if element.await_all {
            self.line("await_all");
        }
        if element.initiation_interval != 1 {
            self.line(format!("interval {}", element.initiation_interval));
        }
        for port in &element.inputs {
            self.port("in", port);
        }
        for port in &element.outputs {
            self.port("out", port);
        }
        for object in &element.state {
            self.object(object, Lifetime::Instance);
        }
        for table in &element.tables {
            self.table(table);
        }
        self.functions(id, element);
        self.close();
    }

    /// Prints the element's functions: those with a role first, each at its first role.
    fn functions(&mut self, id: ElementId, element: &'p Element) {
        let mut roles: Vec<(FunctionId, &'static str, Option<&'p str>)> = vec![];
        roles.extend(element.init.map(|function| (function, "init", None)));
        roles.push((element.handler, "handler", None));
        roles.extend(element.signal.map(|function| (function, "signal", None)));
        for method in &element.methods {
            roles.push((method.function, "method", Some(&method.name)));
        }
        let mut printed = vec![];
        for (function, keyword, method) in roles {
            let owner = self.program.functions.get(function.index()).map(|body| body.owner);
            if owner == Some(Some(id)) && !printed.contains(&function) {
                let default_name = Some(role_name(&element.name, method.unwrap_or(keyword)));
                print_function(self, function, Role { keyword, method, default_name });
                printed.push(function);
            } else {
                let method = method.map(|method| format!(" {}", name(method))).unwrap_or_default();
                let function = function_ref(self.program, function);
                self.line(format!("{keyword}{method} = {function}"));
            }
        }
        for (at, function) in self.program.functions.iter().enumerate() {
            let at = FunctionId::new(at);
            if function.owner == Some(id) && !printed.contains(&at) {
                print_function(self, at, Role { keyword: "fn", method: None, default_name: None });
            }
        }
    }

    fn port(&mut self, side: &str, port: &Port) {
        self.line(format!("{side} {}: {}{}", name(&port.name), item(port.item), at(port.loc)));
    }

    /// Prints the declaration of an object; its lifetime is omitted if it is `usual`.
    pub(super) fn object(&mut self, object: &Object, usual: Lifetime) {
        let mut text = format!("{} {}: ", object.space.name(), name(&object.name));
        match (object.addressing, object.elem_bits) {
            (Addressing::Byte, 8) => put(&mut text, format_args!("bytes[{}]", object.depth)),
            (Addressing::Element, bits) => {
                put(&mut text, format_args!("bits<{bits}>[{}]", object.depth));
            }
            (Addressing::Byte, bits) => {
                put(&mut text, format_args!("bits<{bits}>[{}] bytes", object.depth));
            }
        }
        if object.lifetime != usual {
            text.push_str(match object.lifetime {
                Lifetime::Instance => " instance",
                Lifetime::Firing => " firing",
            });
        }
        if object.host_visible {
            text.push_str(" visible");
        }
        if object.is_pinned {
            text.push_str(" pinned");
        }
        if !object.init.is_empty() {
            let bits = object.init.iter().map(|bits| literal(bits, Some(object.elem_bits)));
            put(&mut text, format_args!(" = {{{}}}", bits.collect::<Vec<_>>().join(", ")));
        }
        self.line(text + &at(object.loc));
    }

    fn table(&mut self, table: &Table) {
        self.line(format!(
            "table {}: {} bits<{}> -> bits<{}> [{}]{}",
            name(&table.name),
            table.kind.name(),
            table.key_bits,
            table.value_bits,
            table.capacity,
            at(table.loc)
        ));
    }

    fn graph(&mut self) {
        self.open("graph");
        let graph = &self.program.graph;
        for instance in &graph.instances {
            self.instance(instance);
        }
        for endpoint in &graph.endpoints {
            let way = match endpoint.direction {
                Direction::Into => "into",
                Direction::OutOf => "out_of",
            };
            let (name, item) = (name(&endpoint.name), item(endpoint.item));
            self.line(format!("endpoint {name}: {way} {item}"));
        }
        for channel in &graph.channels {
            self.channel(channel);
        }
        self.close();
    }

    fn instance(&mut self, instance: &Instance) {
        let elements = &self.program.elements;
        let element = reference(elements.iter().map(|each| &each.name), instance.element.0);
        let mut text = format!("instance {}: {element}", name(&instance.name));
        for (is_set, word) in [
            (instance.host, " host"),
            (instance.controlled, " controlled"),
            (instance.verilog, " verilog"),
        ] {
            if is_set {
                text.push_str(word);
            }
        }
        self.line(text + &at(instance.loc));
    }

    fn channel(&mut self, channel: &Channel) {
        let source = match channel.source {
            Source::Endpoint(endpoint) => self.endpoint(endpoint.0),
            Source::Port(instance, port) => self.joined(instance, port, |each| &each.outputs),
        };
        let sink = match channel.sink {
            Sink::Endpoint(endpoint) => self.endpoint(endpoint.0),
            Sink::Port(instance, port) => self.joined(instance, port, |each| &each.inputs),
        };
        let mut text = format!("{source} -> {sink}");
        if source_item(self.program, channel.source) != Some(channel.item) {
            put(&mut text, format_args!(" item {}", item(channel.item)));
        }
        if channel.depth != DEFAULT_DEPTH {
            put(&mut text, format_args!(" depth {}", channel.depth));
        }
        if channel.on_full == OnFull::DropCounted {
            text.push_str(" drop");
        }
        self.line(text + &at(channel.loc));
    }

    fn endpoint(&self, endpoint: u32) -> String {
        reference(self.program.graph.endpoints.iter().map(|each| &each.name), endpoint)
    }

    fn joined(
        &self,
        instance: InstanceId,
        port: PortId,
        ports: impl Fn(&Element) -> &Vec<Port>,
    ) -> String {
        let graph = &self.program.graph;
        let element = graph.instances.get(instance.index());
        let element = element.and_then(|each| self.program.elements.get(each.element.index()));
        let names = element.map(|element| ports(element).iter().map(|port| &port.name));
        let instance = reference(graph.instances.iter().map(|each| &each.name), instance.0);
        let port = match names {
            Some(names) => reference(names, port.0),
            None => format!("#{}", port.0),
        };
        format!("{instance}.{port}")
    }
}

/// Returns the kind of item at the writing end of a channel.
pub(super) fn source_item(program: &Program, source: Source) -> Option<Item> {
    match source {
        Source::Endpoint(at) => Some(program.graph.endpoints.get(at.index())?.item),
        Source::Port(instance, port) => {
            let element = program.graph.instances.get(instance.index())?.element;
            let element = program.elements.get(element.index())?;
            Some(element.outputs.get(port.index())?.item)
        }
    }
}

/// Formats a reference by name, or by `#` and the index if the name does not resolve to it.
pub(super) fn reference<'n>(names: impl Iterator<Item = &'n String> + Clone, index: u32) -> String {
    let own = names.clone().nth(index as usize);
    match own {
        Some(own) if names.clone().position(|each| each == own) == Some(index as usize) => {
            name(own)
        }
        _ => format!("#{index}"),
    }
}

/// Formats a function by name, or by its index if the name is not unique.
pub(super) fn function_ref(program: &Program, id: FunctionId) -> String {
    let own = program.functions.get(id.index()).map(|function| &function.name);
    let is_unique = |name: &String| {
        program.functions.iter().filter(|function| function.name == *name).count() == 1
    };
    match own {
        Some(own) if !own.is_empty() && is_unique(own) => format!("@{}", function_name(own)),
        _ => format!("@#{}", id.0),
    }
}

/// Formats a location as a suffix; empty if there is none.
pub(super) fn at(loc: Loc) -> String {
    if loc == Loc::default() {
        return String::new();
    }
    format!(" !{}:{}:{}", loc.file.0, loc.line, loc.column)
}

/// Formats a constant, with its width unless that is the expected one.
pub(super) fn literal(bits: &Bits, expected: Option<u32>) -> String {
    if expected == Some(bits.width()) { bits.to_string() } else { format!("{bits:?}") }
}

/// Formats a type. A table has the name from the function's owner.
pub(super) fn type_text(ty: Type, owner: Option<&Element>) -> String {
    match ty {
        Type::Bits(width) => format!("bits<{width}>"),
        Type::Packet => "packet".to_owned(),
        Type::Handle(table) => format!("handle<{}>", table_ref(owner, table.0)),
        Type::Ref(spaces) => {
            format!(
                "ref<{}>",
                spaces.iter().map(|space| space.name()).collect::<Vec<_>>().join("|")
            )
        }
    }
}

/// Formats a table of the owner.
pub(super) fn table_ref(owner: Option<&Element>, table: u32) -> String {
    let tables = owner.map_or(&[][..], |element| &element.tables);
    reference(tables.iter().map(|table| &table.name), table)
}

fn item(item: Item) -> String {
    match item {
        Item::Flit => "flit".to_owned(),
        Item::Bits(width) => format!("bits<{width}>"),
        Item::Packet { window_bytes } => format!("packet<{window_bytes}>"),
    }
}

/// Appends to a line.
pub(super) fn put(text: &mut String, arguments: std::fmt::Arguments) {
    text.write_fmt(arguments).expect("writing to a string cannot fail");
}
