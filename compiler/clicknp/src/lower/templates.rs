// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Template parameters of elements and functions: constants and types.

use super::Lowered;
use super::body::Body;
use super::constants::Constant;
use super::names::{Binding, Scope};
use crate::ast::{Expr, ExprKind, Name, TemplateArg, TemplateParam, TypeExpr, TypeKind};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::Type;
use std::fmt;

/// Value of a template parameter.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum TemplateValue {
    /// A number.
    Constant(Constant),
    /// A type.
    Type(Type),
}

/// A template and its arguments.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Key {
    /// Its name.
    pub name: String,
    /// Arguments, one for each parameter.
    pub args: Vec<TemplateValue>,
}

impl fmt::Display for TemplateValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateValue::Type(ty) => write!(f, "{ty}"),
            TemplateValue::Constant(constant) => match constant.as_i128() {
                Some(number) => write!(f, "{number}"),
                None => write!(f, "{}", constant.bits),
            },
        }
    }
}

/// Prints the key as `Tee<3>`.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)?;
        if self.args.is_empty() {
            return Ok(());
        }
        let args: Vec<_> = self.args.iter().map(|arg| arg.to_string()).collect();
        write!(f, "<{}>", args.join(", "))
    }
}

impl Body<'_, '_> {
    /// Binds every parameter: to the argument given by name or by position, otherwise to its
    /// default.
    pub(super) fn bind_template(
        &mut self,
        name: &str,
        params: &[TemplateParam],
        args: &[(Option<Name>, TemplateArg)],
        span: Span,
    ) -> Lowered<Key> {
        let mut given: Vec<Option<&TemplateArg>> = vec![None; params.len()];
        for (at, (label, arg)) in args.iter().enumerate() {
            let at = match label {
                None => at,
                Some(label) => {
                    let by_name = params.iter().position(|param| param.name.text == label.text);
                    match by_name {
                        Some(at) => at,
                        None => return Err(self.no_such_parameter(name, params, label)),
                    }
                }
            };
            match given.get_mut(at) {
                Some(slot) if slot.is_none() => *slot = Some(arg),
                _ => return Err(self.wrong_count(name, params.len(), args.len(), span)),
            }
        }
        // The value of a parameter may depend on earlier ones.
        self.scopes.push(Scope::new());
        let bound = self.bind_each(name, params, &given, args.len(), span);
        self.scopes.pop();
        Ok(Key { name: name.to_string(), args: bound? })
    }

    fn bind_each(
        &mut self,
        name: &str,
        params: &[TemplateParam],
        given: &[Option<&TemplateArg>],
        count: usize,
        span: Span,
    ) -> Lowered<Vec<TemplateValue>> {
        let mut values = vec![];
        let outer = self.scopes.len() - 1;
        for (param, given) in params.iter().zip(given) {
            let value = match (given, &param.default) {
                (Some(arg), _) => {
                    // An argument is evaluated outside, where the parameters are not in scope.
                    let inner = self.scopes.split_off(outer);
                    let value = self.template_value(param, arg, span);
                    self.scopes.extend(inner);
                    value?
                }
                (None, Some(default)) => self.template_value(param, default, span)?,
                (None, None) => return Err(self.wrong_count(name, params.len(), count, span)),
            };
            self.declare(&param.name, value.binding());
            values.push(value);
        }
        Ok(values)
    }

    fn template_value(
        &mut self,
        param: &TemplateParam,
        arg: &TemplateArg,
        span: Span,
    ) -> Lowered<TemplateValue> {
        let value = match arg {
            TemplateArg::Type(ty) => self.named_constant(ty),
            TemplateArg::Value(expr) => match self.type_argument(param, expr) {
                Some(ty) => return Ok(TemplateValue::Type(ty)),
                None => Some(self.constant(expr)?),
            },
        };
        match (&param.ty, value, arg) {
            (None, Some(constant), _) => Ok(TemplateValue::Constant(constant)),
            (None, None, TemplateArg::Type(ty)) => Ok(TemplateValue::Type(self.resolve(ty)?)),
            (Some(ty), Some(constant), _) => {
                let ty = self.resolve(ty)?;
                match constant.converted(&ty) {
                    Some(constant) => Ok(TemplateValue::Constant(constant)),
                    None => Err(self.wrong_kind(param, span)),
                }
            }
            _ => Err(self.wrong_kind(param, span)),
        }
    }

    /// Returns the constant named by a lone name that the parser took for a type.
    fn named_constant(&mut self, ty: &TypeExpr) -> Option<Constant> {
        match &ty.kind {
            TypeKind::Named(name, args) if args.is_empty() && ty.pointers == 0 => {
                match self.lookup(name)? {
                    Binding::Constant(constant) => Some(constant),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns the type named by a lone name that the parser took for an expression.
    fn type_argument(&mut self, param: &TemplateParam, expr: &Expr) -> Option<Type> {
        let ExprKind::Name(name, args) = &expr.kind else { return None };
        let is_value = matches!(self.lookup(name), Some(Binding::Constant(_)));
        if is_value || !args.is_empty() || param.ty.is_some() {
            return None;
        }
        self.quietly(|body| body.type_named(name, expr.span))
    }

    fn wrong_kind(&mut self, param: &TemplateParam, span: Span) -> super::Reported {
        let message = format!("`{}` must be a number", param.name.text);
        self.report(
            Diagnostic::error("E0216", span, message)
                .label("a type is given for it")
                .note(param.name.span, "the parameter")
                .help("give a constant"),
        )
    }

    fn wrong_count(
        &mut self,
        name: &str,
        wanted: usize,
        given: usize,
        span: Span,
    ) -> super::Reported {
        let message = format!("`{name}` has {wanted} template parameters, and {given} are given");
        self.report(
            Diagnostic::error("E0216", span, message)
                .label("wrong number of arguments between `<` and `>`")
                .help("give each parameter that has no default once"),
        )
    }

    fn no_such_parameter(
        &mut self,
        name: &str,
        params: &[TemplateParam],
        label: &Name,
    ) -> super::Reported {
        let names: Vec<_> = params.iter().map(|param| format!("`{}`", param.name.text)).collect();
        let message = format!("`{name}` has no parameter `{}`", label.text);
        let help = match names.is_empty() {
            true => "it has none".to_string(),
            false => format!("its parameters are {}", names.join(", ")),
        };
        let error = Diagnostic::error("E0216", label.span, message);
        self.report(error.label("no such parameter").help(help))
    }
}

impl TemplateValue {
    /// Returns the binding of the parameter's name.
    pub fn binding<'a>(&self) -> Binding<'a> {
        match self {
            TemplateValue::Constant(constant) => Binding::Constant(constant.clone()),
            TemplateValue::Type(ty) => Binding::Type(ty.clone()),
        }
    }
}
