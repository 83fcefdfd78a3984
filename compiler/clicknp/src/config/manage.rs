// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Creates managers (ClickNP 3.1): an element for each, and one instance named `manager` on the
//! host, which may call the methods of the instances beside it.

use super::{Callable, Callee, ConfigBuilder, Declared, Node, duplicate};
use crate::ast::{Element, Name};
use freeport_ir as ir;

/// Name of the instance of a manager.
const MANAGER: &str = "manager";

impl<'a> ConfigBuilder<'a, '_> {
    /// Creates the manager of a scope, after all its instances.
    pub(super) fn manage(&mut self, scope: usize, manager: &'a Element) {
        let own = &self.scopes[scope];
        if let Some(first) = own.names.get(MANAGER) {
            let first = first.span;
            return self.report(duplicate("instance", &manager.name, first));
        }
        let name = format!("{}{MANAGER}", own.prefix);
        let args = own.substitution.given(&manager.params);
        let mut instances: Vec<Callable> =
            own.names.iter().map(|(name, declared)| self.callable(name, declared)).collect();
        instances.sort_by_key(|it| it.name.span.start);
        let node = match self.elements.manager(manager, &name, &args, instances) {
            Some(element) => {
                let loc = self.sources.loc(manager.span);
                let (host, controlled, verilog) = (true, false, false);
                let instance = ir::Instance { name, element, host, controlled, verilog, loc };
                self.graph.instances.push(instance);
                self.spans.push(manager.name.span);
                Node::Element(ir::InstanceId::new(self.graph.instances.len() - 1))
            }
            None => {
                self.has_failed = true;
                Node::Unknown
            }
        };
        let span = manager.name.span;
        let declared = Declared { nodes: vec![node], is_array: false, span };
        self.scopes[scope].names.insert(MANAGER, declared);
    }

    fn callable(&self, name: &str, declared: &Declared) -> Callable {
        Callable {
            name: Name { text: name.to_string(), span: declared.span },
            is_array: declared.is_array,
            callees: declared.nodes.iter().map(|node| self.callee(*node)).collect(),
        }
    }

    fn callee(&self, node: Node) -> Callee {
        match node {
            Node::Element(id) => Callee::Instance(id, self.graph.instances[id.index()].element),
            Node::Unknown => Callee::Unknown,
            Node::Group(scope) => match self.scopes[scope].names.get(MANAGER) {
                Some(manager) => self.callee(manager.nodes[0]),
                None => Callee::NoManager,
            },
        }
    }
}
