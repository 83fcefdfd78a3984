// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Traversal of statements, expressions and types, one level at a time.

use super::{
    Declaration, Expr, ExprKind, LoopKind, PragmaKind, Statement, StatementKind, TemplateArg,
    TypeExpr, TypeKind,
};

/// Returns the statements directly inside a statement.
pub(crate) fn statements_in(statement: &Statement) -> Vec<&Statement> {
    match &statement.kind {
        StatementKind::Block(block) | StatementKind::Async(block) => {
            block.statements.iter().collect()
        }
        StatementKind::If(_, then, otherwise) => {
            [Some(then), otherwise.as_ref()].into_iter().flatten().map(Box::as_ref).collect()
        }
        StatementKind::Loop(one) => {
            let init = match &one.kind {
                LoopKind::For { init, .. } => init.as_deref(),
                _ => None,
            };
            init.into_iter().chain([&one.body]).collect()
        }
        StatementKind::Switch(_, arms) => arms.iter().flat_map(|arm| &arm.statements).collect(),
        _ => vec![],
    }
}

/// Visits a statement and all statements inside it.
pub(crate) fn each_statement<'a>(statement: &'a Statement, visit: &mut dyn FnMut(&'a Statement)) {
    visit(statement);
    statements_in(statement).into_iter().for_each(|inner| each_statement(inner, visit));
}

/// Returns the expressions of a statement itself, without those of nested statements.
pub(crate) fn expressions_in(statement: &Statement) -> Vec<&Expr> {
    match &statement.kind {
        StatementKind::Expr(expr) => vec![expr],
        StatementKind::Declare(all) => all.iter().flat_map(expressions_of_declaration).collect(),
        StatementKind::If(cond, ..) => vec![cond],
        StatementKind::Loop(one) => {
            let step = match &one.kind {
                LoopKind::For { step, .. } => step.as_ref(),
                _ => None,
            };
            let pragmas = one.pragmas.iter().filter_map(|pragma| match &pragma.kind {
                PragmaKind::Unroll(value) => value.as_ref(),
                PragmaKind::Bound(value) => Some(value),
                _ => None,
            });
            pragmas.chain(&one.cond).chain(step).collect()
        }
        StatementKind::Switch(value, arms) => {
            let labels = arms.iter().flat_map(|arm| &arm.labels);
            [value].into_iter().chain(labels.filter_map(|(label, _)| label.as_ref())).collect()
        }
        StatementKind::Return(value) => value.iter().collect(),
        StatementKind::Empty
        | StatementKind::Block(_)
        | StatementKind::Async(_)
        | StatementKind::Break
        | StatementKind::Continue
        | StatementKind::Pragma(_) => vec![],
    }
}

/// Returns the expressions of a declaration: sizes and initialiser, but not those of its type.
pub(crate) fn expressions_of_declaration(one: &Declaration) -> Vec<&Expr> {
    let sizes = one.dimensions.iter().flatten();
    sizes.chain(&one.bit_width).chain(&one.init).collect()
}

/// Returns the direct subexpressions of an expression.
pub(crate) fn parts_of(expr: &Expr) -> Vec<&Expr> {
    match &expr.kind {
        ExprKind::Unary(_, of)
        | ExprKind::Cast(_, of)
        | ExprKind::SizeofExpr(of)
        | ExprKind::Member { of, .. }
        | ExprKind::Step { target: of, .. } => vec![of],
        ExprKind::Binary(_, left, right)
        | ExprKind::Assign(_, left, right)
        | ExprKind::Index(left, right)
        | ExprKind::Comma(left, right) => vec![left, right],
        ExprKind::Conditional(one, two, three) | ExprKind::Slice(one, two, three) => {
            vec![one, two, three]
        }
        ExprKind::Call(_, _, args) => args.iter().collect(),
        ExprKind::MethodCall(of, _, args) => [of.as_ref()].into_iter().chain(args).collect(),
        ExprKind::List(items) => items.iter().map(|(_, value)| value).collect(),
        ExprKind::Number(..)
        | ExprKind::Bool(_)
        | ExprKind::Char(_)
        | ExprKind::Text(_)
        | ExprKind::Ipv4(_)
        | ExprKind::Mac(_)
        | ExprKind::Name(..)
        | ExprKind::SizeofType(_) => vec![],
    }
}

/// Returns the type and the template arguments that an expression contains.
pub(crate) fn types_in(expr: &Expr) -> (Option<&TypeExpr>, &[TemplateArg]) {
    match &expr.kind {
        ExprKind::Cast(ty, _) | ExprKind::SizeofType(ty) => (Some(ty), &[]),
        ExprKind::Name(_, args) | ExprKind::Call(_, args, _) => (None, args),
        _ => (None, &[]),
    }
}

/// Visits every name that a type mentions: a lone name may be a type or a number.
pub(crate) fn each_name_of_type<'a>(ty: &'a TypeExpr, visit: &mut dyn FnMut(&'a str)) {
    match &ty.kind {
        TypeKind::Named(name, args) => {
            visit(name);
            args.iter().for_each(|arg| each_name_of_arg(arg, visit));
        }
        TypeKind::Pasted(_, width) | TypeKind::Bits { width, .. } => each_name(width, visit),
        TypeKind::Record(record) => {
            for member in &record.members {
                each_name_of_type(&member.ty, visit);
                let values = expressions_of_declaration(member);
                values.into_iter().for_each(|value| each_name(value, visit));
            }
        }
    }
}

/// Visits every name that a template argument mentions.
pub(crate) fn each_name_of_arg<'a>(arg: &'a TemplateArg, visit: &mut dyn FnMut(&'a str)) {
    match arg {
        TemplateArg::Type(ty) => each_name_of_type(ty, visit),
        TemplateArg::Value(value) => each_name(value, visit),
    }
}

/// Visits every name that an expression mentions.
pub(crate) fn each_name<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a str)) {
    if let ExprKind::Name(name, _) = &expr.kind {
        visit(name);
    }
    let (ty, args) = types_in(expr);
    ty.into_iter().for_each(|ty| each_name_of_type(ty, visit));
    args.iter().for_each(|arg| each_name_of_arg(arg, visit));
    parts_of(expr).into_iter().for_each(|part| each_name(part, visit));
}

/// Visits an expression and all its subexpressions.
pub(crate) fn each_expression<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&'a Expr)) {
    visit(expr);
    parts_of(expr).into_iter().for_each(|part| each_expression(part, visit));
}
