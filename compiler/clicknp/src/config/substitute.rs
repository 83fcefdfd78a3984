// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Substitutes the arguments of a group for its parameters.
//!
//! Arguments are closed: their own parameters have already been substituted, and the remaining
//! names belong to the file, so no name can be captured.

use crate::ast::{Expr, ExprKind, Name, TemplateArg, TemplateParam, TypeExpr, TypeKind};
use std::collections::HashMap;

/// Parameters and their arguments.
#[derive(Clone, Default)]
pub(super) struct Substitution(HashMap<String, TemplateArg>);

impl Substitution {
    pub(super) fn insert(&mut self, name: &str, arg: TemplateArg) {
        self.0.insert(name.to_string(), arg);
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the argument for each of these parameters, by name.
    pub(super) fn given(&self, params: &[TemplateParam]) -> Vec<(Option<Name>, TemplateArg)> {
        let given = params.iter().filter_map(|param| {
            let arg = self.0.get(&param.name.text)?;
            Some((Some(param.name.clone()), arg.clone()))
        });
        given.collect()
    }

    pub(super) fn arg(&self, arg: &TemplateArg) -> TemplateArg {
        match arg {
            TemplateArg::Type(ty) => TemplateArg::Type(self.type_expr(ty)),
            // A lone name may refer to a type.
            TemplateArg::Value(Expr { kind: ExprKind::Name(name, args), .. })
                if args.is_empty() && self.contains(name) =>
            {
                self.0[name].clone()
            }
            TemplateArg::Value(value) => TemplateArg::Value(self.expr(value)),
        }
    }

    pub(super) fn args(
        &self,
        args: &[(Option<Name>, TemplateArg)],
    ) -> Vec<(Option<Name>, TemplateArg)> {
        args.iter().map(|(name, arg)| (name.clone(), self.arg(arg))).collect()
    }

    pub(super) fn type_expr(&self, ty: &TypeExpr) -> TypeExpr {
        let kind = match &ty.kind {
            TypeKind::Named(name, args) => match self.0.get(name) {
                Some(TemplateArg::Type(given)) => {
                    return TypeExpr { pointers: ty.pointers + given.pointers, ..given.clone() };
                }
                Some(TemplateArg::Value(Expr { kind: ExprKind::Name(given, _), .. })) => {
                    TypeKind::Named(given.clone(), vec![])
                }
                _ => TypeKind::Named(name.clone(), args.iter().map(|arg| self.arg(arg)).collect()),
            },
            TypeKind::Pasted(name, width) => {
                TypeKind::Pasted(name.clone(), Box::new(self.expr(width)))
            }
            TypeKind::Bits { signed, width } => {
                TypeKind::Bits { signed: *signed, width: Box::new(self.expr(width)) }
            }
            TypeKind::Record(record) => TypeKind::Record(record.clone()),
        };
        TypeExpr { kind, ..ty.clone() }
    }

    pub(super) fn expr(&self, value: &Expr) -> Expr {
        let boxed = |inner: &Expr| Box::new(self.expr(inner));
        let kind = match &value.kind {
            ExprKind::Name(name, args) => match self.0.get(name) {
                Some(TemplateArg::Value(given)) => return given.clone(),
                _ => ExprKind::Name(name.clone(), args.iter().map(|arg| self.arg(arg)).collect()),
            },
            ExprKind::Unary(operator, inner) => ExprKind::Unary(*operator, boxed(inner)),
            ExprKind::Binary(operator, left, right) => {
                ExprKind::Binary(*operator, boxed(left), boxed(right))
            }
            ExprKind::Conditional(cond, if_true, if_false) => {
                ExprKind::Conditional(boxed(cond), boxed(if_true), boxed(if_false))
            }
            ExprKind::Call(name, args, values) => {
                let args = args.iter().map(|arg| self.arg(arg)).collect();
                ExprKind::Call(name.clone(), args, values.iter().map(|v| self.expr(v)).collect())
            }
            ExprKind::MethodCall(of, name, values) => {
                let values = values.iter().map(|value| self.expr(value)).collect();
                ExprKind::MethodCall(boxed(of), name.clone(), values)
            }
            ExprKind::Index(of, index) => ExprKind::Index(boxed(of), boxed(index)),
            ExprKind::Slice(of, high, low) => ExprKind::Slice(boxed(of), boxed(high), boxed(low)),
            ExprKind::Cast(ty, inner) => ExprKind::Cast(self.type_expr(ty), boxed(inner)),
            ExprKind::SizeofType(ty) => ExprKind::SizeofType(self.type_expr(ty)),
            ExprKind::SizeofExpr(inner) => match &inner.kind {
                ExprKind::Name(name, _) => match self.0.get(name) {
                    Some(TemplateArg::Type(ty)) => ExprKind::SizeofType(ty.clone()),
                    _ => ExprKind::SizeofExpr(boxed(inner)),
                },
                _ => ExprKind::SizeofExpr(boxed(inner)),
            },
            // No other expression can be part of a constant in the configuration.
            other => other.clone(),
        };
        Expr { kind, span: value.span }
    }
}
