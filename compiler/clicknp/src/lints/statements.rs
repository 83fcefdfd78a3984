// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Mistakes that C permits: `if (x = 3)`, and `x == 5;` alone.

use crate::ast::walk::{each_expression, each_statement};
use crate::ast::{BinaryOperator, TypeKind};
use crate::ast::{Block, Expr, ExprKind, LoopKind, Statement, StatementKind};
use crate::diagnostic::Diagnostic;
use crate::source::SourceMap;

pub(super) fn check(block: &Block, sources: &SourceMap, found: &mut Vec<Diagnostic>) {
    for statement in &block.statements {
        each_statement(statement, &mut |one| {
            condition_of(one).into_iter().for_each(|it| check_condition(it, sources, found));
            effects_of(one).into_iter().for_each(|it| check_effect(it, found));
        });
    }
}

fn condition_of(statement: &Statement) -> Option<&Expr> {
    match &statement.kind {
        StatementKind::If(cond, ..) => Some(cond),
        StatementKind::Loop(one) => one.cond.as_ref(),
        _ => None,
    }
}

/// Warns about an assignment as a condition; extra parentheses mark it as intended.
fn check_condition(cond: &Expr, sources: &SourceMap, found: &mut Vec<Diagnostic>) {
    let ExprKind::Assign(None, ..) = &cond.kind else { return };
    if sources.text(cond.span).starts_with('(') {
        return;
    }
    found.push(
        Diagnostic::warning("W0608", cond.span, "this condition assigns")
            .label("`=` assigns, `==` compares")
            .help("write `==`, or put an intended assignment in extra parentheses"),
    );
}

/// Returns the expressions that are evaluated for their effect, not for their value.
fn effects_of(statement: &Statement) -> Vec<&Expr> {
    let whole = match &statement.kind {
        StatementKind::Expr(expr) => Some(expr),
        StatementKind::Loop(one) => match &one.kind {
            LoopKind::For { step, .. } => step.as_ref(),
            _ => None,
        },
        _ => None,
    };
    let mut waiting: Vec<&Expr> = whole.into_iter().collect();
    let mut all = vec![];
    while let Some(expr) = waiting.pop() {
        match &expr.kind {
            ExprKind::Comma(left, right) => waiting.extend([left.as_ref(), right.as_ref()]),
            _ => all.push(expr),
        }
    }
    all
}

fn check_effect(expr: &Expr, found: &mut Vec<Diagnostic>) {
    // `(void)x;` marks this as intended.
    let is_meant = matches!(&expr.kind, ExprKind::Cast(ty, _)
        if matches!(&ty.kind, TypeKind::Named(name, _) if name == "void"));
    let help = match &expr.kind {
        ExprKind::Binary(BinaryOperator::Eq, ..) => "write `=` to assign",
        // The right operand of these may have an effect, which is often intended.
        ExprKind::Binary(BinaryOperator::And | BinaryOperator::Or, ..) if has_effect(expr) => {
            return;
        }
        ExprKind::Binary(..) => "assign it to something, or remove it",
        _ if has_effect(expr) || is_meant => return,
        _ => "remove it, or use its value",
    };
    found.push(
        Diagnostic::warning("W0609", expr.span, "this statement has no effect")
            .label("its value is not used")
            .help(help),
    );
}

fn has_effect(expr: &Expr) -> bool {
    let mut has_effect = false;
    each_expression(expr, &mut |part| {
        has_effect |= matches!(
            part.kind,
            ExprKind::Call(..)
                | ExprKind::MethodCall(..)
                | ExprKind::Assign(..)
                | ExprKind::Step { .. }
        );
    });
    has_effect
}
