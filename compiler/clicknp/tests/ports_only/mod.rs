// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A substitute for the checker of elements in tests of the configuration: an element has the ports
//! it declares, and everything else is ignored.

use freeport_clicknp::ast::{
    BinaryOperator, Element, Expr, ExprKind, File, Name, ObjectProgram, Port, TemplateArg, TopItem,
    TypeExpr, TypeKind,
};
use freeport_clicknp::config::{Callable, Elements};
use freeport_ir as ir;
use std::collections::HashMap;

/// Elements with ports only; the count of an array is the first argument.
pub struct PortsOnly {
    declared: HashMap<String, (Vec<Port>, Vec<Port>)>,
    made: Vec<(Vec<ir::Port>, Vec<ir::Port>)>,
}

impl PortsOnly {
    /// Collects the elements of these files.
    pub fn of(files: &[File]) -> Self {
        let elements = files.iter().flat_map(|file| &file.items).filter_map(|item| match item {
            TopItem::Element(element) => Some(element),
            _ => None,
        });
        let declared = elements
            .map(|one| (one.name.text.clone(), (one.inputs.clone(), one.outputs.clone())))
            .collect();
        Self { declared, made: vec![] }
    }

    fn expand(&mut self, ports: &[Port], count: u64) -> Vec<ir::Port> {
        let mut all = vec![];
        for port in ports {
            let Some(item) = self.port_item(&port.ty) else { continue };
            let make = |name| ir::Port { name, item, loc: ir::Loc::default() };
            match port.count {
                None => all.push(make(port.name.text.clone())),
                Some(_) => {
                    all.extend((0..count).map(|at| make(format!("{}[{at}]", port.name.text))));
                }
            }
        }
        all
    }
}

impl Elements<'_> for PortsOnly {
    fn element(
        &mut self,
        name: &Name,
        args: &[(Option<Name>, TemplateArg)],
    ) -> Option<ir::ElementId> {
        let count = match args.first() {
            Some((_, TemplateArg::Value(value))) => self.constant(value)?,
            _ => 2,
        };
        let count = count.min(1 << 10);
        let (inputs, outputs) = self.declared[&name.text].clone();
        let made = (self.expand(&inputs, count), self.expand(&outputs, count));
        self.made.push(made);
        Some(ir::ElementId::new(self.made.len() - 1))
    }

    fn object(
        &mut self,
        _: &ObjectProgram,
        _: &[(Option<Name>, TemplateArg)],
    ) -> Option<ir::ElementId> {
        None
    }

    fn manager(
        &mut self,
        _: &Element,
        _: &str,
        _: &[(Option<Name>, TemplateArg)],
        _: Vec<Callable>,
    ) -> Option<ir::ElementId> {
        self.made.push((vec![], vec![]));
        Some(ir::ElementId::new(self.made.len() - 1))
    }

    fn ports(&self, element: ir::ElementId) -> (&[ir::Port], &[ir::Port]) {
        let (inputs, outputs) = &self.made[element.index()];
        (inputs, outputs)
    }

    fn constant(&mut self, value: &Expr) -> Option<u64> {
        match &value.kind {
            ExprKind::Number(number, _) => u64::try_from(number).ok(),
            ExprKind::Binary(BinaryOperator::Shl, left, right) => {
                self.constant(left)?.checked_shl(self.constant(right)? as u32)
            }
            ExprKind::Binary(BinaryOperator::Add, left, right) => {
                self.constant(left)?.checked_add(self.constant(right)?)
            }
            _ => None,
        }
    }

    fn port_item(&mut self, ty: &TypeExpr) -> Option<ir::Item> {
        match &ty.kind {
            TypeKind::Named(name, _) if name == "flit" => Some(ir::Item::Flit),
            TypeKind::Named(name, _) if name == "uint" => Some(ir::Item::Bits(32)),
            _ => None,
        }
    }
}
