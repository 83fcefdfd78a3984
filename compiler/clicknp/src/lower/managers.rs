// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Managers: elements that call methods of the instances beside them (ClickNP 3.1, the host
//! manager; 8.3, which places a firewall's rules).
//!
//! The index in an array of instances may be computed. In the IR, an operation names a fixed
//! instance, so such a call becomes a switch with a call for each instance.

use super::body::Body;
use super::expressions::Operand;
use super::functions::Signature;
use super::names::Binding;
use super::templates::Key;
use super::values::Value;
use super::{Lowered, Lowering, Reported};
use crate::ast::{self, Expr, ExprKind, Name, TemplateArg};
use crate::config::{Callable, Callee};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::Type;
use freeport_ir::{
    self as ir, Bits, ElementId, InstanceId, MethodId, Op, Target, Term, Type as IrType, ValueId,
};
use std::sync::Arc;

/// Instances before the `.` of a method call.
pub struct Callees<'a> {
    callable: Arc<Callable>,
    /// Index in an array.
    index: Option<&'a Expr>,
    span: Span,
}

impl<'a> Lowering<'a> {
    /// Lowers the element of a manager; returns `None` after an error, which has been reported.
    pub fn manager(
        &mut self,
        manager: &'a ast::Element,
        name: &str,
        args: &[(Option<Name>, TemplateArg)],
        instances: Vec<Callable>,
    ) -> Option<ElementId> {
        let mut body = self.constant_body();
        let given = body.bind_template(name, &manager.params, args, manager.span).ok()?;
        let key = Key { name: name.to_string(), args: given.args };
        let instances: Vec<_> = instances.into_iter().map(Arc::new).collect();
        self.make_element(manager, &key, Some(&instances))
    }
}

impl<'a> Body<'_, 'a> {
    /// Returns the instances that `of` names, if any.
    pub(super) fn callees(&mut self, of: &'a Expr) -> Lowered<Option<Callees<'a>>> {
        let (named, index) = match &of.kind {
            ExprKind::Index(array, index) => (array.as_ref(), Some(index.as_ref())),
            _ => (of, None),
        };
        let ExprKind::Name(name, _) = &named.kind else { return Ok(None) };
        let is_manager = self.element.as_ref().is_some_and(|element| element.is_manager);
        match self.lookup(name) {
            Some(Binding::Instances(callable)) => {
                Ok(Some(Callees { callable, index, span: named.span }))
            }
            None if is_manager && name == "manager" => Err(self.report(
                Diagnostic::error("E0310", named.span, "the manager calls itself")
                    .label("recursion")
                    .help("put the shared code of two methods into a function beside them"),
            )),
            None if is_manager => Err(self.no_instance(name, named.span)),
            None => Err(self.report(
                Diagnostic::error("E0340", named.span, format!("`{name}` is not defined"))
                    .label("an element has methods of its own tables only")
                    .help("methods of instances are called by the `.manager` beside them"),
            )),
            Some(_) => Ok(None),
        }
    }

    fn no_instance(&mut self, name: &str, span: Span) -> Reported {
        let names = self.scopes.iter().flat_map(|scope| scope.values());
        let mut there: Vec<String> = names
            .filter_map(|(binding, _)| match binding {
                Binding::Instances(callable) => Some(format!("`{}`", callable.name.text)),
                _ => None,
            })
            .collect();
        there.sort();
        let label = match there.is_empty() {
            true => "there are no instances beside this manager".to_string(),
            false => format!("there are {}", there.join(", ")),
        };
        self.report(
            Diagnostic::error("E0502", span, format!("no instance `{name}`"))
                .label(label)
                .help("a manager calls the instances of its own configuration or group"),
        )
    }

    /// Reports a use of an instance other than a call.
    pub(super) fn instance_as_value(&mut self, name: &str, span: Span) -> Reported {
        self.report(
            Diagnostic::error("E0340", span, format!("the instance `{name}` is not a value"))
                .label("its methods can be called, and nothing else")
                .help("give its element a `.method` that does what is needed"),
        )
    }

    /// Lowers `of.method(args)`.
    pub(super) fn call_method(
        &mut self,
        callees: Callees<'a>,
        method: &'a Name,
        args: &'a [Expr],
        span: Span,
    ) -> Lowered<Operand> {
        let instances = self.instances_of(&callees)?;
        let (at, signature) = self.method_of(instances[0].1, &callees, method)?;
        if args.len() != signature.params.len() {
            let (wanted, given) = (signature.params.len(), args.len());
            return Err(self.wrong_arguments(&method.text, wanted, given, span));
        }
        let which = match callees.index {
            Some(index) => Some(self.which(index, instances.len(), &callees)?),
            None => None,
        };
        let mut values = vec![];
        for (arg, (_, ty)) in args.iter().zip(&signature.params) {
            let value = self.value_as(arg, ty)?;
            values.push(self.materialise(&value));
        }
        self.at(span);
        match which {
            None => Ok(self.call_instance(instances[0].0, at, &signature.result, values)),
            Some(Which::Known(which)) => {
                Ok(self.call_instance(instances[which].0, at, &signature.result, values))
            }
            Some(Which::Computed(which)) => {
                let ids: Vec<InstanceId> = instances.iter().map(|(id, _)| *id).collect();
                self.call_one_of(which, &ids, at, &signature.result, values, span)
            }
        }
    }

    /// Returns the instances that may be called, with their elements, which must be of one kind.
    fn instances_of(&mut self, callees: &Callees<'a>) -> Lowered<Vec<(InstanceId, ElementId)>> {
        let Callees { callable, index, span } = callees;
        let name = &callable.name.text;
        if callable.is_array != index.is_some() {
            let (message, label, help) = match callable.is_array {
                true => (
                    format!("`{name}` is an array of instances"),
                    "one of them is called at a time",
                    format!("write `{name}[0]` for `{name}#1`, and so on"),
                ),
                false => (
                    format!("`{name}` is one instance, not an array"),
                    "it has no number",
                    format!("write `{name}` alone"),
                ),
            };
            let error = Diagnostic::error("E0510", *span, message);
            return Err(self.report(error.label(label).help(help)));
        }
        let mut instances = vec![];
        for callee in &callable.callees {
            match callee {
                Callee::Instance(id, element) => instances.push((*id, *element)),
                Callee::Unknown => return Err(Reported(())),
                Callee::NoManager => {
                    let message = format!("the group of `{name}` has no manager");
                    return Err(self.report(
                        Diagnostic::error("E0341", *span, message)
                            .label("the methods of a group are those of its manager")
                            .help("add `.manager { ... }` to the group"),
                    ));
                }
            }
        }
        match instances.is_empty() {
            true => Err(Reported(())),
            false => Ok(instances),
        }
    }

    /// Returns the number and signature of an element's method by name.
    fn method_of(
        &mut self,
        element: ElementId,
        callees: &Callees<'a>,
        method: &Name,
    ) -> Lowered<(MethodId, Signature)> {
        let methods = self.lowering.methods.get(&element).map_or(&[][..], Vec::as_slice);
        if let Some(at) = methods.iter().position(|(name, _)| *name == method.text) {
            return Ok((MethodId::new(at), methods[at].1.clone()));
        }
        let there: Vec<_> = methods.iter().map(|(name, _)| format!("`{name}`")).collect();
        let label = match there.is_empty() {
            true => "its element has no methods".to_string(),
            false => format!("there are {}", there.join(", ")),
        };
        let name = &callees.callable.name.text;
        let message = format!("`{name}` has no method `{}`", method.text);
        Err(self.report(
            Diagnostic::error("E0341", method.span, message)
                .label(label)
                .help("add it to the element, with `.method`"),
        ))
    }

    /// Determines which instance of an array is called.
    fn which(&mut self, index: &'a Expr, count: usize, callees: &Callees<'a>) -> Lowered<Which> {
        let value = self.number(index)?;
        let Some(constant) = value.as_constant() else {
            let id = self.materialise(&value);
            return Ok(Which::Computed(self.builder.resize(id, 64, value.is_signed())));
        };
        match constant.as_u64().and_then(|at| usize::try_from(at).ok()) {
            Some(at) if at < count => Ok(Which::Known(at)),
            _ => {
                let name = &callees.callable.name.text;
                let message = format!("`{name}` has {count} instances");
                Err(self.report(
                    Diagnostic::error("E0214", index.span, message)
                        .label(format!("the last is `{name}[{}]`", count - 1))
                        .help("instances of an array are numbered from 0 here"),
                ))
            }
        }
    }

    fn call_instance(
        &mut self,
        instance: InstanceId,
        method: MethodId,
        result: &Type,
        args: Vec<ValueId>,
    ) -> Operand {
        let op = Op::CallMethod { instance, method, args };
        if *result == Type::Void {
            self.builder.push_effect(op);
            return Operand::Void;
        }
        let id = self.builder.push(op, IrType::Bits(result.value_bits() as u32));
        Operand::Value(Value::computed(result.clone(), id))
    }

    /// Calls the instance with a computed index; an index out of range gives 0.
    fn call_one_of(
        &mut self,
        which: ValueId,
        instances: &[InstanceId],
        method: MethodId,
        result: &Type,
        args: Vec<ValueId>,
        span: Span,
    ) -> Lowered<Operand> {
        let kept = (*result != Type::Void).then(|| self.new_temporary(result, span));
        if let Some(kept) = &kept {
            // In a loop, the result of the previous call must not be visible.
            self.clear(kept, span)?;
        }
        let exit = self.builder.new_block();
        let blocks: Vec<_> = instances.iter().map(|_| self.builder.new_block()).collect();
        let case = |(at, block): (usize, &ir::BlockId)| {
            (Bits::from_u64(64, at as u64), Target::to(*block))
        };
        let cases = blocks.iter().enumerate().map(case).collect();
        self.builder.end(Term::Switch { value: which, cases, default: Target::to(exit) });
        for (instance, block) in instances.iter().zip(blocks) {
            self.builder.switch_to(block);
            let operand = self.call_instance(*instance, method, result, args.clone());
            if let (Some(kept), Operand::Value(value)) = (&kept, operand) {
                self.store(kept, &value, span)?;
            }
            self.builder.jump(exit);
        }
        self.builder.switch_to(exit);
        match kept {
            Some(kept) => Ok(Operand::Value(self.load(&kept, span)?)),
            None => Ok(Operand::Void),
        }
    }
}

/// Index in an array of instances.
enum Which {
    Known(usize),
    Computed(ValueId),
}
