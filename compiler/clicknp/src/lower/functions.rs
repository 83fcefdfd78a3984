// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Functions and calls. A function of values becomes an IR function, once per set of template
//! arguments. One with pointer or array parameters is expanded at each call, because the targets of
//! its parameters must be known.

use super::assigned;
use super::body::{Body, Returns, Role};
use super::elements::ElementContext;
use super::expressions::Operand;
use super::names::{Binding, Scope};
use super::packets::PacketVariable;
use super::templates::{Key, TemplateValue};
use super::values::Value;
use super::{Lowered, Lowering, Reported};
use crate::ast::{self, Expr, Name, TemplateArg};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::Type;
use freeport_ir::{
    BlockId, CallOrder, ElementId, Function, FunctionId, Latency, Op, Type as IrType,
};
use std::sync::Arc;

/// Maximum depth of functions that are lowered within each other, as in template recursion.
pub const MOST_DEPTH: usize = 64;

/// Maximum number of calls expanded in place in one function.
const MOST_EXPANSIONS: usize = 4096;

/// A function with its template arguments, part of an element or standalone.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FunctionKey {
    span: Span,
    args: Vec<TemplateValue>,
    owner: Option<ElementId>,
}

/// State of the lowering of a function.
#[derive(Clone, Debug)]
pub enum Progress {
    /// In progress: a call now would be recursion.
    Begun,
    /// Completed.
    Done(Lowered<Signature>),
}

/// A function of the IR and its types.
#[derive(Clone, Debug)]
pub struct Signature {
    /// Function of the IR.
    pub function: FunctionId,
    /// Names and types of its parameters.
    pub params: Vec<(String, Type)>,
    /// Result type, possibly `void`.
    pub result: Type,
}

impl<'a> Lowering<'a> {
    /// Lowers the top-level function called `name`; returns `None` if it does not exist, is a
    /// template, takes pointers or arrays, or has errors.
    pub fn function(&mut self, name: &str) -> Option<Signature> {
        let Some(super::Global::Function(function)) = self.globals.get(name).copied() else {
            return None;
        };
        if !function.template.is_empty() || takes_references(function) {
            return None;
        }
        let key = Key { name: name.to_string(), args: vec![] };
        self.specialise_function(function, &key, None, function.name.span).ok()
    }

    /// Lowers a top-level function with these template arguments, one for each parameter; returns
    /// `None` if it has errors, which were reported.
    pub fn instance(
        &mut self,
        function: &'a ast::Function,
        args: Vec<TemplateValue>,
    ) -> Option<Signature> {
        let key = Key { name: function.name.text.clone(), args };
        self.specialise_function(function, &key, None, function.name.span).ok()
    }

    /// Checks a function that may never be called.
    pub(super) fn check_function(&mut self, function: &'a ast::Function) {
        if function.template.is_empty() && !takes_references(function) {
            self.function(&function.name.text);
        }
    }

    fn specialise_function(
        &mut self,
        function: &'a ast::Function,
        key: &Key,
        element: Option<Arc<ElementContext<'a>>>,
        call: Span,
    ) -> Lowered<Signature> {
        let owner = element.as_ref().map(|element| element.id);
        let cached = FunctionKey { span: function.name.span, args: key.args.clone(), owner };
        match self.functions.get(&cached) {
            Some(Progress::Done(signature)) => return signature.clone(),
            Some(Progress::Begun) => return Err(self.recursion(&function.name, call)),
            None => {}
        }
        if self.depth >= MOST_DEPTH {
            return Err(self.too_deep(key, call));
        }
        self.depth += 1;
        self.functions.insert(cached.clone(), Progress::Begun);
        let signature = self.lower_function(function, key, element, Role::Function);
        self.functions.insert(cached, Progress::Done(signature.clone()));
        self.depth -= 1;
        signature
    }

    /// Lowers a function or method whose parameters and result are values.
    pub(super) fn lower_function(
        &mut self,
        function: &'a ast::Function,
        key: &Key,
        element: Option<Arc<ElementContext<'a>>>,
        role: Role,
    ) -> Lowered<Signature> {
        let loc = self.sources.loc(function.name.span);
        let owner = element.as_ref().map(|element| element.id);
        let name = match &element {
            Some(element) => format!("{}.{key}", element.name),
            None => key.to_string(),
        };
        let ir = Function::new(name, owner, loc);
        let returns = Returns::Value(Type::Void);
        let mut body = Body::new(self, ir, element, role, returns);
        for (param, value) in function.template.iter().zip(&key.args) {
            body.declare(&param.name, value.binding());
        }
        let result = body.resolve(&function.result)?;
        body.check_result(&result, function.result.span)?;
        body.returns = Returns::Value(result.clone());
        body.moved = assigned::of_block(&function.body).moved;
        body.scopes.push(Scope::new());
        let mut params = vec![];
        for param in &function.params {
            let ty = body.parameter(param, function.is_inline)?;
            let name = param.name.as_ref().map_or(String::new(), |name| name.text.clone());
            params.push((name, ty));
        }
        let is_void = result == Type::Void;
        body.builder.function_mut().result = (!is_void).then(|| result.ir());
        body.builder.function_mut().inline = function.is_inline;
        body.block(&function.body);
        body.doubt_ending(&function.name.text, &result, function.name.span);
        body.fall_off_end(function.body.span);
        let finished = body.finish();
        let function = self.add_function(finished);
        Ok(Signature { function, params, result })
    }

    pub(super) fn add_function(&mut self, function: Function) -> FunctionId {
        self.program.functions.push(function);
        FunctionId::new(self.program.functions.len() - 1)
    }

    fn recursion(&mut self, name: &Name, call: Span) -> Reported {
        self.report(
            Diagnostic::error("E0310", call, format!("`{}` calls itself", name.text))
                .label("recursion")
                .note(name.span, "the function")
                .help("use a loop, or a template that calls itself with a smaller constant"),
        )
    }

    fn too_deep(&mut self, key: &Key, call: Span) -> Reported {
        let message = format!("calls of `{key}` become too many functions, or nest too deeply");
        self.report(
            Diagnostic::error("E0311", call, message)
                .label(format!(
                    "at most {MOST_DEPTH} nested, and {MOST_EXPANSIONS} expanded in place"
                ))
                .help("end the recursion with `if` on a constant"),
        )
    }
}

fn takes_references(function: &ast::Function) -> bool {
    function.params.iter().any(|param| param.ty.pointers > 0 || !param.dimensions.is_empty())
}

impl<'a> Body<'_, 'a> {
    /// Declares a parameter that is passed by value.
    fn parameter(&mut self, param: &'a ast::Declaration, is_inline: bool) -> Lowered<Type> {
        let ty = self.resolve(&param.ty)?;
        if let Type::Packet(_) = ty {
            self.packet_parameter(param, is_inline)?;
            return Ok(ty);
        }
        if matches!(ty, Type::Array(..) | Type::Pointer(_) | Type::Void)
            || !param.dimensions.is_empty()
        {
            return Err(self.not_a_value("parameter", param.span));
        }
        let entry = Function::ENTRY;
        let bits = IrType::Bits(ty.value_bits() as u32);
        let name = param.name.as_ref().map(|name| name.text.clone());
        let id = self.builder.add_param(entry, bits, name);
        if let Some(name) = &param.name {
            let place = self.new_local(&name.text, &ty, name.span);
            self.store(&place, &Value::computed(ty.clone(), id), name.span)?;
            let place = super::places::Place { is_const: param.is_const, ..place };
            self.declare(name, Binding::Variable(place));
        }
        Ok(ty)
    }

    fn check_result(&mut self, ty: &Type, span: Span) -> Lowered<()> {
        match ty {
            Type::Array(..) | Type::Pointer(_) => Err(self.not_a_value("result", span)),
            Type::Packet(_) => Err(self.packet_kept(span)),
            _ => Ok(()),
        }
    }

    fn not_a_value(&mut self, what: &str, span: Span) -> Reported {
        let message = format!("this {what} must be a number, a struct or a union");
        self.report(
            Diagnostic::error("E0313", span, message)
                .label("pointers and arrays are passed only where the callee is expanded")
                .help("make the function `inline`, or put the array in a struct"),
        )
    }

    /// Lowers `name<template>(args)`.
    pub(super) fn call(
        &mut self,
        name: &'a Name,
        template: &'a [TemplateArg],
        args: &'a [Expr],
        span: Span,
    ) -> Lowered<Operand> {
        let Some((function, is_of_element)) = self.function_named(&name.text) else {
            return self.builtin(name, args, span);
        };
        if args.len() != function.params.len() {
            let (wanted, given) = (function.params.len(), args.len());
            return Err(self.wrong_arguments(&name.text, wanted, given, span));
        }
        let labelled: Vec<_> = template.iter().map(|arg| (None, arg.clone())).collect();
        let key = self.bind_template(&name.text, &function.template, &labelled, name.span)?;
        if takes_references(function) || self.has_reference_type(function, &key) {
            if !function.is_inline {
                return Err(self.not_a_value("parameter", function.span));
            }
            return self.expand(function, &key, args, is_of_element, span);
        }
        let element = if is_of_element { self.element.clone() } else { None };
        let lowering = &mut *self.lowering;
        let signature = lowering.specialise_function(function, &key, element, name.span)?;
        let mut values = vec![];
        for (arg, (_, ty)) in args.iter().zip(&signature.params) {
            let value = self.value_as(arg, ty)?;
            values.push(self.materialise(&value));
        }
        self.at(span);
        let latency = if function.is_inline { Latency::Inline } else { Latency::Element };
        let order = CallOrder::InOrder;
        let op = Op::Call { function: signature.function, args: values, latency, order };
        if signature.result == Type::Void {
            self.builder.push_effect(op);
            return Ok(Operand::Void);
        }
        let bits = IrType::Bits(signature.result.value_bits() as u32);
        let id = self.builder.push(op, bits);
        Ok(Operand::Value(Value::computed(signature.result, id)))
    }

    /// Returns whether a typedef or template argument makes a parameter a pointer or an array.
    fn has_reference_type(&mut self, function: &'a ast::Function, key: &Key) -> bool {
        let mut scope = Scope::new();
        for (param, value) in function.template.iter().zip(&key.args) {
            scope.insert(param.name.text.clone(), (value.binding(), param.name.span));
        }
        self.scopes.push(scope);
        let types: Vec<_> = function
            .params
            .iter()
            .map(|param| self.quietly(|body| body.resolve(&param.ty)))
            .collect();
        self.scopes.pop();
        types.iter().flatten().any(|ty| matches!(ty, Type::Array(..) | Type::Pointer(_)))
    }

    pub(super) fn wrong_arguments(
        &mut self,
        name: &str,
        wanted: usize,
        given: usize,
        span: Span,
    ) -> Reported {
        let message = format!("`{name}` takes {wanted} arguments, and {given} are given");
        self.report(
            Diagnostic::error("E0307", span, message)
                .label("wrong number of arguments")
                .help("give one for each parameter"),
        )
    }

    /// Expands a function in place.
    fn expand(
        &mut self,
        function: &'a ast::Function,
        key: &Key,
        args: &'a [Expr],
        is_of_element: bool,
        span: Span,
    ) -> Lowered<Operand> {
        let this = (function as *const ast::Function, key.clone());
        if self.expanding.contains(&this) {
            return Err(self.lowering.recursion(&function.name, span));
        }
        if self.expanding.len() + self.lowering.depth >= MOST_DEPTH {
            return Err(self.lowering.too_deep(key, span));
        }
        self.expansions += 1;
        if self.expansions > MOST_EXPANSIONS {
            return Err(self.lowering.too_deep(key, span));
        }
        let mut operands = vec![];
        for arg in args {
            operands.push((self.decay_kept(arg)?, arg.span));
        }
        let outer = match (&self.element, is_of_element) {
            (Some(element), true) => element.scope.clone(),
            _ => Scope::new(),
        };
        let scopes = std::mem::replace(&mut self.scopes, vec![outer, Scope::new()]);
        let control = std::mem::take(&mut self.control);
        let iterators = std::mem::take(&mut self.iterators);
        let names = assigned::of_block(&function.body).moved;
        let moved = std::mem::replace(&mut self.moved, names);
        let returns = self.returns.clone();
        self.expanding.push(this);
        let outcome = self.expand_body(function, key, operands, span);
        self.expanding.pop();
        self.scopes = scopes;
        self.control = control;
        self.iterators = iterators;
        self.moved = moved;
        self.returns = returns;
        outcome
    }

    /// Lowers an argument, as a place if it has one.
    fn decay_kept(&mut self, arg: &'a Expr) -> Lowered<Operand> {
        match self.operand(arg)? {
            Operand::Place(place) if !matches!(place.ty, Type::Array(..)) => {
                Ok(Operand::Value(self.load(&place, arg.span)?))
            }
            other => Ok(other),
        }
    }

    fn expand_body(
        &mut self,
        function: &'a ast::Function,
        key: &Key,
        operands: Vec<(Operand, Span)>,
        span: Span,
    ) -> Lowered<Operand> {
        for (param, value) in function.template.iter().zip(&key.args) {
            self.declare(&param.name, value.binding());
        }
        for (param, (operand, span)) in function.params.iter().zip(operands) {
            self.bind_argument(param, operand, span)?;
        }
        let ty = self.resolve(&function.result)?;
        self.check_result(&ty, function.result.span)?;
        let result = (ty != Type::Void).then(|| self.new_temporary(&ty, span));
        if let Some(result) = &result {
            // In a loop, the result of the previous call must not be visible.
            self.clear(result, span)?;
        }
        let exit: BlockId = self.builder.new_block();
        self.returns = Returns::Expansion { ty, result: result.clone(), exit };
        self.perhaps(|body| body.block(&function.body));
        if let Returns::Expansion { ty, .. } = self.returns.clone() {
            self.doubt_ending(&function.name.text, &ty, function.name.span);
        }
        self.at(span);
        self.builder.jump(exit);
        self.builder.switch_to(exit);
        match result {
            Some(result) => Ok(Operand::Value(self.load(&result, span)?)),
            None => Ok(Operand::Void),
        }
    }

    fn bind_argument(
        &mut self,
        param: &'a ast::Declaration,
        operand: Operand,
        span: Span,
    ) -> Lowered<()> {
        let Some(name) = &param.name else { return Ok(()) };
        let base = self.resolve(&param.ty)?;
        let first = match &operand {
            Operand::Place(place) => place.decayed(),
            Operand::Pointer(place) => Some(place.clone()),
            _ => None,
        };
        if let (Type::Pointer(target), []) = (&base, param.dimensions.as_slice()) {
            let Some(first) = first else { return Err(self.not_a_pointer(span)) };
            self.check_pointed(&first, target, span)?;
            return self.declare_pointer(name, target, Some(first.part(0, target)));
        }
        let given = match &operand {
            Operand::Place(place) => match &place.ty {
                Type::Array(_, count) => Some(*count),
                _ => None,
            },
            _ => None,
        };
        let ty = self.with_dimensions(base, &param.dimensions, given, param.span)?;
        if matches!(ty, Type::Array(..)) {
            let Some(first) = first else { return Err(self.not_a_pointer(span)) };
            let place = super::places::Place { is_const: param.is_const, ..first.part(0, &ty) };
            self.declare(name, Binding::Variable(place));
            return Ok(());
        }
        let value = self.value_of(operand, span)?;
        let value = self.convert(&value, &ty, span)?;
        if let Type::Packet(_) = ty {
            let id = self.materialise(&value);
            let packet = PacketVariable { id, is_const: param.is_const };
            self.declare(name, Binding::Packet(packet));
            return Ok(());
        }
        let place = self.new_local(&name.text, &ty, name.span);
        self.store(&place, &value, span)?;
        self.declare(name, Binding::Variable(place));
        Ok(())
    }
}
