// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A look ahead over statements: which names they assign to, and which they use at all.

use crate::ast::walk::{expressions_in, parts_of, statements_in};
use crate::ast::{Block, Declaration, Expr, ExprKind, Statement, StatementKind, UnaryOperator};
use std::collections::HashSet;

/// Names of a piece of program.
#[derive(Default, Debug)]
pub struct Names {
    /// Assigned to, whole or in part, or with their address taken.
    pub assigned: HashSet<String>,
    /// Assigned to as a whole: pointers among them move.
    pub moved: HashSet<String>,
    /// Occurring in any way.
    pub used: HashSet<String>,
    /// Called functions.
    pub called: HashSet<String>,
    /// Passed to functions: an array among them may be assigned to there.
    pub passed: HashSet<String>,
    /// Whether pointers are declared, through which anything may be assigned to.
    pub has_pointers: bool,
    /// Ways an array is indexed by a lone name: array and index.
    pub indexed: Vec<(Expr, String)>,
}

/// The names of a block.
pub fn of_block(block: &Block) -> Names {
    let mut names = Names::default();
    block.statements.iter().for_each(|statement| names.statement(statement));
    names
}

/// The names of a statement.
pub fn of_statement(statement: &Statement) -> Names {
    let mut names = Names::default();
    names.statement(statement);
    names
}

/// The names of an expression.
pub fn of_expr(expr: &Expr) -> Names {
    let mut names = Names::default();
    names.expr(expr);
    names
}

/// The variable that a target is part of.
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
        // A pointer to something lets it be assigned to.
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
            // Nothing of it happens.
            ExprKind::SizeofExpr(_) => return,
            _ => {}
        }
        parts_of(expr).into_iter().for_each(|part| self.expr(part));
    }
}
