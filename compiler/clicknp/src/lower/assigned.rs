// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A look ahead over statements: which names they assign to, and which they use at all.

use crate::ast::{Block, Declaration, Expr, ExprKind, LoopKind, Statement, StatementKind};
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
        match &statement.kind {
            StatementKind::Declare(declarations) => {
                declarations.iter().for_each(|one| self.declaration(one));
            }
            StatementKind::Expr(expr) => self.expr(expr),
            StatementKind::Block(block) | StatementKind::Async(block) => {
                block.statements.iter().for_each(|inner| self.statement(inner));
            }
            StatementKind::If(cond, then, otherwise) => {
                self.expr(cond);
                self.statement(then);
                otherwise.iter().for_each(|inner| self.statement(inner));
            }
            StatementKind::Loop(one) => {
                if let LoopKind::For { init, step } = &one.kind {
                    init.iter().for_each(|init| self.statement(init));
                    step.iter().for_each(|step| self.expr(step));
                }
                one.cond.iter().for_each(|cond| self.expr(cond));
                self.statement(&one.body);
            }
            StatementKind::Switch(value, arms) => {
                self.expr(value);
                arms.iter().flat_map(|arm| &arm.statements).for_each(|s| self.statement(s));
            }
            StatementKind::Return(value) => value.iter().for_each(|value| self.expr(value)),
            StatementKind::Empty
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Pragma(_) => {}
        }
    }

    fn declaration(&mut self, declaration: &Declaration) {
        declaration.init.iter().for_each(|init| self.expr(init));
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
            ExprKind::Unary(op, of) => {
                if *op == crate::ast::UnaryOperator::AddressOf {
                    self.assign(of);
                }
                self.expr(of);
            }
            ExprKind::Cast(_, of) | ExprKind::Member { of, .. } => self.expr(of),
            ExprKind::Binary(_, left, right) | ExprKind::Comma(left, right) => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Assign(_, target, value) => {
                self.assign(target);
                self.move_whole(target);
                self.expr(target);
                self.expr(value);
            }
            ExprKind::Step { target, .. } => {
                self.assign(target);
                self.move_whole(target);
                self.expr(target);
            }
            ExprKind::Conditional(cond, yes, no) => {
                [cond, yes, no].into_iter().for_each(|part| self.expr(part));
            }
            ExprKind::Call(name, _, args) => {
                self.called.insert(name.text.clone());
                for arg in args {
                    if let Some(name) = root(arg) {
                        self.passed.insert(name.to_string());
                    }
                    self.expr(arg);
                }
            }
            ExprKind::MethodCall(of, _, args) => {
                self.expr(of);
                args.iter().for_each(|arg| self.expr(arg));
            }
            ExprKind::Index(of, at) => {
                if let ExprKind::Name(index, _) = &at.kind {
                    self.indexed.push((of.as_ref().clone(), index.clone()));
                }
                self.expr(of);
                self.expr(at);
            }
            ExprKind::Slice(of, high, low) => {
                [of, high, low].into_iter().for_each(|part| self.expr(part));
            }
            ExprKind::List(items) => items.iter().for_each(|(_, value)| self.expr(value)),
            ExprKind::Number(..)
            | ExprKind::Bool(_)
            | ExprKind::Char(_)
            | ExprKind::Text(_)
            | ExprKind::Ipv4(_)
            | ExprKind::Mac(_)
            | ExprKind::SizeofType(_)
            | ExprKind::SizeofExpr(_) => {}
        }
    }
}
