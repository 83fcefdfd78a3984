// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Translates the configuration to the graph of the IR.
//!
//! 1. `expand` creates the instances: arrays copy by copy, groups recursively. A group's ports
//!    become junctions, each with an outer and an inner side. `manage` creates the manager of the
//!    file, and that of each group, after the instances it may call.
//! 2. `connect` resolves the chains of the file and of every group into edges between terminals:
//!    ports, endpoints and junctions. Each terminal is an end of at most one edge.
//! 3. `channels` follows the edges through the junctions, checks that everything is connected and
//!    that both ends carry the same items, and creates the channels.
//!
//! Parameters of a group are substituted before anything is evaluated, so the checker of
//! expressions and elements sees only constructs that may occur in a file.

mod channels;
mod connect;
mod expand;
mod manage;
mod substitute;

use crate::ast::{
    ConfigStatement, Element, Expr, File, Group, Name, ObjectProgram, TemplateArg, TopItem,
    TypeExpr,
};
use crate::diagnostic::Diagnostic;
use crate::library::Index;
use crate::source::{SourceMap, Span};
use channels::Edges;
use freeport_ir as ir;
use std::collections::HashMap;
use std::path::PathBuf;
use substitute::Substitution;

/// Maximum instances of a graph, and maximum copies in one array.
const INSTANCES_MAX: u64 = 65_536;
/// Maximum depth of a channel.
const DEPTH_MAX: u64 = 1 << 20;

/// Services of the checker of elements for the configuration. A method that returns `None` has
/// reported why.
pub trait Elements<'a> {
    /// Returns the element `name`, specialised to arguments given by position or by name.
    fn element(
        &mut self,
        name: &Name,
        args: &[(Option<Name>, TemplateArg)],
    ) -> Option<ir::ElementId>;

    /// Returns the program of an object as an element, with ports for the given devices.
    fn object(
        &mut self,
        object: &ObjectProgram,
        args: &[(Option<Name>, TemplateArg)],
    ) -> Option<ir::ElementId>;

    /// Returns the element of a manager whose instance has this name and whose group has these
    /// arguments. `instances` are those that it may call.
    fn manager(
        &mut self,
        manager: &'a Element,
        name: &str,
        args: &[(Option<Name>, TemplateArg)],
        instances: Vec<Callable>,
    ) -> Option<ir::ElementId>;

    /// Returns the input and output ports of an element. Those of an array are named `name[i]`.
    fn ports(&self, element: ir::ElementId) -> (&[ir::Port], &[ir::Port]);

    /// Returns the value of a constant expression.
    fn constant(&mut self, value: &Expr) -> Option<u64>;

    /// Returns the kind of item of a port of type `ty`.
    fn port_item(&mut self, ty: &TypeExpr) -> Option<ir::Item>;
}

/// A name that a manager may call: an instance, or the instances of an array.
#[derive(Clone, PartialEq, Debug)]
pub struct Callable {
    /// Name of the instance or array.
    pub name: Name,
    /// Whether it was declared with a count.
    pub is_array: bool,
    /// Callees, one for each instance.
    pub callees: Vec<Callee>,
}

/// Target of a method call on an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callee {
    /// The instance itself; for an instance of a group, the group's manager.
    Instance(ir::InstanceId, ir::ElementId),
    /// No target: a group without a manager.
    NoManager,
    /// An instance that could not be created; the error was reported.
    Unknown,
}

/// Builds the graph of the configuration of `files[0]`; the other files provide elements and
/// groups. Errors go to `diagnostics`; without any, the graph is complete.
pub fn build<'a>(
    files: &'a [File],
    sources: &'a SourceMap,
    library: &'a [PathBuf],
    elements: &mut dyn Elements<'a>,
    diagnostics: &mut Vec<Diagnostic>,
) -> ir::Graph {
    let mut definitions = Definitions::default();
    definitions.collect(files, diagnostics);
    let mut builder = ConfigBuilder {
        sources,
        library,
        index: None,
        elements,
        diagnostics,
        definitions,
        graph: ir::Graph::default(),
        spans: vec![],
        scopes: vec![],
        junctions: vec![],
        edges: Edges::default(),
        has_failed: false,
    };
    let statements = statements_of(&files[0]);
    builder.file_scope(&statements);
    builder.connect_all(&statements);
    builder.make_channels();
    builder.graph
}

fn statements_of<'a>(file: &'a File) -> Vec<&'a ConfigStatement> {
    let of_item = |item: &'a TopItem| match item {
        TopItem::Config(statement) => Some(statement),
        _ => None,
    };
    file.items.iter().filter_map(of_item).collect()
}

/// The elements and groups of all files, by name.
#[derive(Default)]
struct Definitions<'a> {
    elements: HashMap<&'a str, &'a Element>,
    groups: HashMap<&'a str, &'a Group>,
}

impl<'a> Definitions<'a> {
    fn collect(&mut self, files: &'a [File], diagnostics: &mut Vec<Diagnostic>) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for (at, file) in files.iter().enumerate() {
            for item in &file.items {
                let name = match item {
                    TopItem::Element(element) => {
                        self.elements.entry(&element.name.text).or_insert(element);
                        &element.name
                    }
                    TopItem::Group(group) => {
                        self.groups.entry(&group.name.text).or_insert(group);
                        &group.name
                    }
                    TopItem::Config(_) if at > 0 => {
                        warn_of_imported(item, diagnostics);
                        break;
                    }
                    _ => continue,
                };
                if let Some(first) = seen.insert(&name.text, name.span) {
                    diagnostics.push(duplicate("element or group", name, first));
                }
            }
        }
    }
}

fn warn_of_imported(item: &TopItem, diagnostics: &mut Vec<Diagnostic>) {
    let span = match item {
        TopItem::Config(ConfigStatement::Declare(declaration)) => declaration.span,
        TopItem::Config(ConfigStatement::Connect(chain)) => chain.nodes[0].name.span,
        TopItem::Config(ConfigStatement::Manager(manager)) => manager.span,
        _ => return,
    };
    let message = "the configuration of an imported file has no effect";
    diagnostics.push(Diagnostic::warning("W0601", span, message));
}

fn duplicate(what: &str, name: &Name, first: Span) -> Diagnostic {
    let message = format!("{what} `{}` is declared twice", name.text);
    Diagnostic::error("E0509", name.span, message).note(first, "the first is here")
}

/// Meaning of a name in the configuration.
struct Declared {
    /// The instance, or the instances of an array.
    nodes: Vec<Node>,
    is_array: bool,
    span: Span,
}

/// An instance of an element or of a group.
#[derive(Clone, Copy)]
enum Node {
    Element(ir::InstanceId),
    /// Scope of its contents.
    Group(usize),
    /// An instance that could not be created; the error was reported.
    Unknown,
}

/// The file, or the contents of an instance of a group.
struct Scope<'a> {
    /// Prefix of the names of its instances, such as `outer.`.
    prefix: String,
    names: HashMap<&'a str, Declared>,
    substitution: Substitution,
    /// The group; absent for the file.
    group: Option<&'a Group>,
    /// Ports of the group: name and junction.
    inputs: Vec<(String, usize)>,
    outputs: Vec<(String, usize)>,
}

/// A port of an instance of a group.
struct Junction {
    /// Name for messages, such as `input in of pair`.
    name: String,
    item: Option<ir::Item>,
    span: Span,
}

/// One end of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Terminal {
    /// A position in [`ENDPOINTS`].
    Endpoint(usize),
    Port(ir::InstanceId, ir::PortId),
    Junction(usize),
}

/// The endpoints of a graph.
const ENDPOINTS: [(&str, ir::Direction); 8] = [
    ("from_tor", ir::Direction::Into),
    ("to_tor", ir::Direction::OutOf),
    ("from_nic", ir::Direction::Into),
    ("to_nic", ir::Direction::OutOf),
    ("from_host", ir::Direction::Into),
    ("to_host", ir::Direction::OutOf),
    ("from_memory", ir::Direction::Into),
    ("to_memory", ir::Direction::OutOf),
];

fn endpoint_of(name: &str) -> Option<usize> {
    ENDPOINTS.iter().position(|(own, _)| *own == name)
}

struct ConfigBuilder<'a, 'e> {
    sources: &'a SourceMap,
    /// Library folders with elements that no file defines, for advice.
    library: &'a [PathBuf],
    index: Option<Index>,
    elements: &'e mut dyn Elements<'a>,
    diagnostics: &'e mut Vec<Diagnostic>,
    definitions: Definitions<'a>,
    graph: ir::Graph,
    /// Location of the declaration of each instance in the graph.
    spans: Vec<Span>,
    scopes: Vec<Scope<'a>>,
    junctions: Vec<Junction>,
    edges: Edges,
    /// Whether something could not be created, for a reason that was reported.
    has_failed: bool,
}

impl ConfigBuilder<'_, '_> {
    /// Returns whether the graph has reached the size limit; groups in arrays in groups grow fast.
    fn is_full(&self) -> bool {
        let size = self.graph.instances.len() + self.scopes.len() + self.junctions.len();
        size as u64 > INSTANCES_MAX
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.report(Diagnostic::error(code, span, message));
    }

    fn report(&mut self, error: Diagnostic) {
        self.has_failed = true;
        self.diagnostics.push(error);
    }

    /// Returns the value of a constant in that scope, if it is between `least` and `most`.
    fn number(&mut self, scope: usize, value: &Expr, least: u64, most: u64) -> Option<u64> {
        let closed = self.scopes[scope].substitution.expr(value);
        let Some(number) = self.elements.constant(&closed) else {
            self.has_failed = true;
            return None;
        };
        if (least..=most).contains(&number) {
            return Some(number);
        }
        let message = format!("this is {number}; it must be from {least} to {most}");
        self.error("E0511", value.span, message);
        None
    }
}
