// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Look-ahead over statements: the names they assign to, and the names they use.

use crate::ast::walk::{expressions_in, parts_of, statements_in};
use crate::ast::{Block, Declaration, Expr, ExprKind, Statement, StatementKind, UnaryOperator};
use std::collections::HashSet;

/// Names in a part of a program.
#[derive(Default, Debug)]
pub struct Names {
    /// Names assigned to, completely or partly, or whose address is taken.
    pub assigned: HashSet<String>,
    /// Names assigned to completely; pointers among them change their target.
    pub moved: HashSet<String>,
    /// Names that occur in any way.
    pub used: HashSet<String>,
    /// Names of called functions.
    pub called: HashSet<String>,
    /// Names passed to functions, which may assign to arrays among them.
    pub passed: HashSet<String>,
    /// Whether pointers are declared, through which anything may be assigned to.
    pub has_pointers: bool,
    /// Arrays indexed by a lone name, with that name.
    pub indexed: Vec<(Expr, String)>,
}

/// Returns the names of a block.
pub fn of_block(block: &Block) -> Names {
    let mut names = Names::default();
    block.statements.iter().for_each(|statement| names.statement(statement));
    names
}

/// Returns the names of a statement.
pub fn of_statement(statement: &Statement) -> Names {
    let mut names = Names::default();
    names.statement(statement);
    names
}

/// Returns the names of an expression.
pub fn of_expr(expr: &Expr) -> Names {
    let mut names = Names::default();
    names.expr(expr);
    names
}

/// Returns the variable that a target is part of.
pub fn root(target: &Expr) -> Option<&str> {
    match &target.kind {
        ExprKind::Name(name, _) => Some(name),
        ExprKind::Index(of, _) | ExprKind::Slice(of, ..) | ExprKind::Member { of, .. } => root(of),
        ExprKind::Cast(_, of) | ExprKind::Unary(_, of) => root(of),
        ExprKind::Binary(_, left, right) => root(left).or_else(|| root(right)),
        _ => None,
    }
}

impl Names {
    fn statement(&mut self, statement: &Statement) {
        if let StatementKind::Declare(declarations) = &statement.kind {
            declarations.iter().for_each(|one| self.declaration(one));
        }
        expressions_in(statement).into_iter().for_each(|expr| self.expr(expr));
        statements_in(statement).into_iter().for_each(|inner| self.statement(inner));
    }

    fn declaration(&mut self, declaration: &Declaration) {
        self.has_pointers |= declaration.ty.pointers > 0;
        // A pointer to a variable allows assignments to it.
        if declaration.ty.pointers > 0
            && let Some(name) = declaration.init.as_ref().and_then(root)
        {
            self.assigned.insert(name.to_string());
        }
    }

    fn assign(&mut self, target: &Expr) {
        if let Some(name) = root(target) {
            self.assigned.insert(name.to_string());
        }
    }

    fn move_whole(&mut self, target: &Expr) {
        if let ExprKind::Name(name, _) = &target.kind {
            self.moved.insert(name.clone());
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Name(name, _) => {
                self.used.insert(name.clone());
            }
            ExprKind::Unary(UnaryOperator::AddressOf, of) => self.assign(of),
            ExprKind::Assign(_, target, _) | ExprKind::Step { target, .. } => {
                self.assign(target);
                self.move_whole(target);
            }
            ExprKind::Call(name, _, args) => {
                self.called.insert(name.text.clone());
                self.passed.extend(args.iter().filter_map(root).map(str::to_owned));
            }
            ExprKind::Index(of, at) => {
                if let ExprKind::Name(index, _) = &at.kind {
                    self.indexed.push((of.as_ref().clone(), index.clone()));
                }
            }
            // The operand is not evaluated.
            ExprKind::SizeofExpr(_) => return,
            _ => {}
        }
        parts_of(expr).into_iter().for_each(|part| self.expr(part));
    }
}
