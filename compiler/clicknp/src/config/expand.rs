// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Creates the instances: arrays copy by copy, groups with their contents.

use super::{
    ConfigBuilder, Declared, INSTANCES_MAX, Junction, Node, Scope, Substitution, duplicate,
    endpoint_of,
};
use crate::ast::{ConfigStatement, Element, Group, InstanceDeclaration, Name, Port, TemplateArg};
use crate::diagnostic::Diagnostic;
use crate::library::Index;
use crate::source::Span;
use crate::spelling::nearest;
use freeport_ir as ir;
use std::collections::HashMap;

/// Maximum nesting depth of groups.
const GROUP_DEPTH_MAX: usize = 64;

/// Qualifiers of an instance, besides its type and name.
#[derive(Clone, Copy)]
struct Wishes {
    host: bool,
    verilog: bool,
    controlled: bool,
}

impl Wishes {
    fn of(declaration: &InstanceDeclaration) -> Self {
        let InstanceDeclaration { host, verilog, controlled, .. } = *declaration;
        Self { host, verilog, controlled }
    }

    /// Adds the qualifiers of the enclosing group, which apply to all its contents.
    fn with(self, outer: Self) -> Self {
        Self {
            host: self.host || outer.host,
            verilog: self.verilog || outer.verilog,
            controlled: self.controlled || outer.controlled,
        }
    }
}

impl<'a> ConfigBuilder<'a, '_> {
    /// Creates the instances of the file.
    pub(super) fn file_scope(&mut self, statements: &[&'a ConfigStatement]) {
        self.scopes.push(Scope {
            prefix: String::new(),
            names: HashMap::new(),
            substitution: Substitution::default(),
            group: None,
            inputs: vec![],
            outputs: vec![],
        });
        let none = Wishes { host: false, verilog: false, controlled: false };
        self.declare_all(0, statements.iter().copied(), none, &[]);
    }

    fn declare_all(
        &mut self,
        scope: usize,
        statements: impl Iterator<Item = &'a ConfigStatement>,
        outer: Wishes,
        inside: &[&'a str],
    ) {
        let mut managers: Vec<&'a Element> = vec![];
        for statement in statements {
            match statement {
                ConfigStatement::Declare(declaration) => {
                    self.declare(scope, declaration, outer, inside);
                }
                ConfigStatement::Manager(manager) => managers.push(manager),
                ConfigStatement::Connect(_) => {}
            }
        }
        // Managers follow all instances, so that the init functions of those run first.
        for manager in managers {
            self.manage(scope, manager);
        }
    }

    fn declare(
        &mut self,
        scope: usize,
        declaration: &'a InstanceDeclaration,
        outer: Wishes,
        inside: &[&'a str],
    ) {
        let name = &declaration.name;
        if endpoint_of(&name.text).is_some() || matches!(name.text.as_str(), "begin" | "end") {
            let message = format!("`{}` is the name of an endpoint", name.text);
            return self.error("E0509", name.span, message);
        }
        if let Some(first) = self.scopes[scope].names.get(name.text.as_str()) {
            let first = first.span;
            return self.report(duplicate("instance", name, first));
        }
        let count = match &declaration.count {
            Some(count) => self.number(scope, count, 1, INSTANCES_MAX),
            None => Some(1),
        };
        let is_array = declaration.count.is_some();
        let wishes = Wishes::of(declaration).with(outer);
        let mut nodes = vec![];
        for copy in 1..=count.unwrap_or(0) {
            let own = if is_array { format!("{}#{copy}", name.text) } else { name.text.clone() };
            let full = format!("{}{own}", self.scopes[scope].prefix);
            let had_failed = std::mem::take(&mut self.has_failed);
            nodes.push(self.make(scope, declaration, full, wishes, inside));
            let is_made = !std::mem::replace(&mut self.has_failed, had_failed);
            self.has_failed |= !is_made;
            if !is_made {
                // Further copies would have the same errors.
                nodes.resize(count.unwrap_or(0) as usize, Node::Unknown);
                break;
            }
        }
        if nodes.is_empty() {
            nodes.push(Node::Unknown);
        }
        // Registers the intended name of a declaration written in reverse order.
        let is_turned = matches!(nodes[0], Node::Unknown)
            && declaration.object.is_none()
            && !self.is_element(&declaration.element.text)
            && self.is_element(&name.text);
        let own = if is_turned { &declaration.element } else { name };
        self.scopes[scope].names.insert(&own.text, Declared { nodes, is_array, span: name.span });
    }

    /// Creates one instance.
    fn make(
        &mut self,
        scope: usize,
        declaration: &'a InstanceDeclaration,
        name: String,
        wishes: Wishes,
        inside: &[&'a str],
    ) -> Node {
        if self.is_full() {
            let message = format!("this makes more than {INSTANCES_MAX} instances and ports");
            self.error("E0511", declaration.span, message);
            return Node::Unknown;
        }
        let args = self.scopes[scope].substitution.args(&declaration.args);
        let of = &declaration.element;
        if let Some(object) = &declaration.object {
            let element = self.elements.object(object, &args);
            return self.instance(declaration, element, name, wishes);
        }
        if let Some(group) = self.definitions.groups.get(of.text.as_str()).copied() {
            return self.make_group(group, &args, declaration.span, name, wishes, inside);
        }
        if !self.definitions.elements.contains_key(of.text.as_str()) {
            let error = Diagnostic::error("E0501", of.span, format!("no element `{}`", of.text))
                .label("neither defined, nor imported, nor in the library");
            let name = &declaration.name.text;
            let error = match self.similar_element(&of.text) {
                _ if self.is_element(name) => {
                    error.help(format!("the element comes first: `{name} :: {}`", of.text))
                }
                Some(other) => error.help(format!("did you mean `{other}`?")),
                None => error,
            };
            self.report(error);
            return Node::Unknown;
        }
        let element = self.elements.element(of, &args);
        self.instance(declaration, element, name, wishes)
    }

    /// Creates an instance of an element, if the element could be created.
    fn instance(
        &mut self,
        declaration: &InstanceDeclaration,
        element: Option<ir::ElementId>,
        name: String,
        wishes: Wishes,
    ) -> Node {
        let Some(element) = element else {
            self.has_failed = true;
            return Node::Unknown;
        };
        let Wishes { host, verilog, controlled } = wishes;
        let loc = self.sources.loc(declaration.span);
        let instance = ir::Instance { name, element, host, controlled, verilog, loc };
        self.graph.instances.push(instance);
        self.spans.push(declaration.name.span);
        Node::Element(ir::InstanceId::new(self.graph.instances.len() - 1))
    }

    /// Returns whether there is an element or group of that name, in the program or in the library.
    pub(super) fn is_element(&mut self, name: &str) -> bool {
        let own = &self.definitions;
        let is_own = own.elements.contains_key(name) || own.groups.contains_key(name);
        is_own || self.index().file_of(name).is_some()
    }

    /// Returns a similar name of an element or group.
    pub(super) fn similar_element(&mut self, name: &str) -> Option<String> {
        self.index();
        let own = self.definitions.elements.keys().chain(self.definitions.groups.keys());
        let library = self.index.iter().flat_map(Index::names);
        nearest(name, own.copied().chain(library)).map(str::to_string)
    }

    fn index(&mut self) -> &Index {
        let library = self.library;
        self.index.get_or_insert_with(|| Index::of(library))
    }

    fn make_group(
        &mut self,
        group: &'a Group,
        args: &[(Option<Name>, TemplateArg)],
        span: Span,
        name: String,
        wishes: Wishes,
        inside: &[&'a str],
    ) -> Node {
        if inside.contains(&group.name.text.as_str()) || inside.len() >= GROUP_DEPTH_MAX {
            let message = format!("group `{}` contains itself", group.name.text);
            self.error("E0512", span, message);
            return Node::Unknown;
        }
        let Some(substitution) = self.bind(group, args, span) else { return Node::Unknown };
        let scope = self.scopes.len();
        self.scopes.push(Scope {
            prefix: format!("{name}."),
            names: HashMap::new(),
            substitution,
            group: Some(group),
            inputs: vec![],
            outputs: vec![],
        });
        let inputs = self.junctions(scope, &group.inputs, &name);
        let outputs = self.junctions(scope, &group.outputs, &name);
        self.scopes[scope].inputs = inputs;
        self.scopes[scope].outputs = outputs;
        let inside: Vec<&str> = inside.iter().copied().chain([group.name.text.as_str()]).collect();
        self.declare_all(scope, group.statements.iter(), wishes, &inside);
        Node::Group(scope)
    }

    /// Binds each parameter of a group to its argument or default.
    fn bind(
        &mut self,
        group: &'a Group,
        args: &[(Option<Name>, TemplateArg)],
        span: Span,
    ) -> Option<Substitution> {
        let mut given: Vec<Option<&TemplateArg>> = vec![None; group.params.len()];
        for (at, (name, arg)) in args.iter().enumerate() {
            let at = match name {
                Some(name) => {
                    let is_named = |param: &crate::ast::TemplateParam| param.name.text == name.text;
                    group.params.iter().position(is_named)
                }
                None => Some(at).filter(|at| *at < group.params.len()),
            };
            let Some(slot) = at.and_then(|at| given.get_mut(at)).filter(|slot| slot.is_none())
            else {
                let message = format!("group `{}` has no such parameter left", group.name.text);
                let span = name.as_ref().map_or(span, |name| name.span);
                self.error("E0515", span, message);
                return None;
            };
            *slot = Some(arg);
        }
        let mut substitution = Substitution::default();
        for (param, arg) in group.params.iter().zip(given) {
            // A default may refer to earlier parameters.
            let default = param.default.as_ref().map(|default| substitution.arg(default));
            let Some(arg) = arg.cloned().or(default) else {
                let message = format!("parameter `{}` has no value", param.name.text);
                let error = Diagnostic::error("E0515", span, message);
                self.report(error.note(param.name.span, "it has no default"));
                return None;
            };
            substitution.insert(&param.name.text, arg);
        }
        Some(substitution)
    }

    /// Creates a junction for each port of a group.
    fn junctions(&mut self, scope: usize, ports: &[Port], of: &str) -> Vec<(String, usize)> {
        let mut all = vec![];
        for port in ports {
            let ty = self.scopes[scope].substitution.type_expr(&port.ty);
            let item = self.elements.port_item(&ty);
            self.has_failed |= item.is_none();
            let names = match &port.count {
                None => vec![port.name.text.clone()],
                Some(count) => {
                    let count = self.number(scope, count, 1, INSTANCES_MAX).unwrap_or(0);
                    (0..count).map(|at| format!("{}[{at}]", port.name.text)).collect()
                }
            };
            for name in names {
                let full = format!("port `{name}` of group `{of}`");
                self.junctions.push(Junction { name: full, item, span: port.name.span });
                all.push((name, self.junctions.len() - 1));
            }
        }
        all
    }
}
