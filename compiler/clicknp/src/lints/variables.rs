// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Local variables that are never read. A name that begins with `_` marks this as intended.
//!
//! A write through a pointer, to a member or to an element counts as a use, since it may be visible
//! elsewhere.

use crate::ast::walk::{
    each_name, each_name_of_type, expressions_in, expressions_of_declaration, parts_of,
};
use crate::ast::{Block, Declaration, Expr, ExprKind, LoopKind, Name, Statement, StatementKind};
use crate::diagnostic::Diagnostic;

struct Variable<'a> {
    name: &'a Name,
    is_read: bool,
    is_assigned: bool,
}

#[derive(Default)]
struct Scopes<'a> {
    all: Vec<Vec<Variable<'a>>>,
    unused: Vec<(&'a Name, bool)>,
}

pub(super) fn check(block: &Block, found: &mut Vec<Diagnostic>) {
    let mut scopes = Scopes::default();
    scopes.scope(|scopes| scopes.statements(&block.statements));
    found.extend(scopes.unused.into_iter().map(|(name, is_assigned)| reported(name, is_assigned)));
}

fn reported(name: &Name, is_assigned: bool) -> Diagnostic {
    let text = &name.text;
    let (message, label) = match is_assigned {
        true => (format!("`{text}` is assigned to and never read"), "nothing uses its value"),
        false => (format!("`{text}` is never used"), "nothing names it again"),
    };
    let help = format!("remove it, or name it `_{text}` if this is intended");
    Diagnostic::warning("W0607", name.span, message).label(label).help(help)
}

impl<'a> Scopes<'a> {
    fn scope(&mut self, walk: impl FnOnce(&mut Self)) {
        self.all.push(vec![]);
        walk(self);
        let ended = self.all.pop().unwrap_or_default();
        let unused = ended.into_iter().filter(|it| !it.is_read && !it.name.text.starts_with('_'));
        self.unused.extend(unused.map(|it| (it.name, it.is_assigned)));
    }

    fn named(&mut self, name: &str) -> Option<&mut Variable<'a>> {
        let mut all = self.all.iter_mut().rev().flat_map(|scope| scope.iter_mut().rev());
        all.find(|it| it.name.text == name)
    }

    fn statements(&mut self, statements: &'a [Statement]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &'a Statement) {
        match &statement.kind {
            StatementKind::Declare(declarations) => {
                declarations.iter().for_each(|one| self.declare(one));
            }
            StatementKind::Expr(expr) => self.effect(expr),
            StatementKind::Block(block) | StatementKind::Async(block) => {
                self.scope(|scopes| scopes.statements(&block.statements));
            }
            StatementKind::Loop(one) => self.scope(|scopes| {
                let mut step = None;
                if let LoopKind::For { init, step: own } = &one.kind {
                    init.iter().for_each(|init| scopes.statement(init));
                    step = own.as_ref();
                }
                let read = expressions_in(statement).into_iter();
                let is_step = |expr: &Expr| step.is_some_and(|step| std::ptr::eq(step, expr));
                read.filter(|expr| !is_step(expr)).for_each(|expr| scopes.read(expr));
                step.into_iter().for_each(|step| scopes.effect(step));
                scopes.scope(|scopes| scopes.statement(&one.body));
            }),
            StatementKind::If(cond, then, otherwise) => {
                self.read(cond);
                self.scope(|scopes| scopes.statement(then));
                if let Some(otherwise) = otherwise {
                    self.scope(|scopes| scopes.statement(otherwise));
                }
            }
            StatementKind::Switch(_, arms) => {
                expressions_in(statement).into_iter().for_each(|expr| self.read(expr));
                self.scope(|scopes| {
                    arms.iter().for_each(|arm| scopes.statements(&arm.statements));
                });
            }
            _ => expressions_in(statement).into_iter().for_each(|expr| self.read(expr)),
        }
    }

    fn declare(&mut self, one: &'a Declaration) {
        each_name_of_type(&one.ty, &mut |name| self.read_name(name));
        expressions_of_declaration(one).into_iter().for_each(|value| self.read(value));
        if let (Some(name), Some(scope)) = (&one.name, self.all.last_mut()) {
            scope.push(Variable { name, is_read: false, is_assigned: false });
        }
    }

    /// Handles an expression whose value is unused.
    fn effect(&mut self, expr: &'a Expr) {
        let target = match &expr.kind {
            ExprKind::Comma(left, right) => {
                self.effect(left);
                return self.effect(right);
            }
            ExprKind::Assign(_, target, value) => {
                self.read(value);
                target
            }
            ExprKind::Step { target, .. } => target,
            _ => return self.read(expr),
        };
        match &target.kind {
            ExprKind::Name(name, _) => {
                self.named(name).into_iter().for_each(|it| it.is_assigned = true);
            }
            _ => parts_of(target).into_iter().for_each(|part| self.read(part)),
        }
    }

    fn read(&mut self, expr: &'a Expr) {
        each_name(expr, &mut |name| self.read_name(name));
    }

    fn read_name(&mut self, name: &str) {
        self.named(name).into_iter().for_each(|it| it.is_read = true);
    }
}
