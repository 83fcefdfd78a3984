// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Statements. After an invalid one, the rest is still checked.

use super::body::{Body, Returns};
use super::globals::Global;
use super::names::Binding;
use super::values::Value;
use super::{Lowered, Reported};
use crate::ast::{self, Block, Declaration, Expr, PragmaKind, Statement, StatementKind};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::Type;
use freeport_ir::{LocalId, ObjectRef, Op, Probe, Space, Term};
use std::sync::Arc;

impl<'a> Body<'_, 'a> {
    /// Lowers the statements of a block, in a new scope.
    pub fn block(&mut self, block: &'a Block) {
        self.scoped(|body| body.statements(&block.statements));
    }

    /// Lowers statements in the current scope.
    pub fn statements(&mut self, statements: &'a [Statement]) {
        for statement in statements {
            // Errors were reported; the next statement may have others.
            let _ = self.statement(statement);
        }
    }

    /// Lowers a statement.
    pub fn statement(&mut self, statement: &'a Statement) -> Lowered<()> {
        let span = statement.span;
        self.at(span);
        match &statement.kind {
            StatementKind::Empty => Ok(()),
            StatementKind::Declare(declarations) => {
                let results: Vec<_> =
                    declarations.iter().map(|one| self.declaration(one)).collect();
                results.into_iter().collect()
            }
            StatementKind::Expr(expr) => self.operand(expr).map(|_| ()),
            StatementKind::Block(block) => {
                self.block(block);
                Ok(())
            }
            StatementKind::If(cond, then, otherwise) => {
                self.branch(cond, then, otherwise.as_deref())
            }
            StatementKind::Loop(one) => self.repeat(one),
            StatementKind::Switch(value, arms) => self.switch(value, arms, span),
            StatementKind::Break => self.leave(true, span),
            StatementKind::Continue => self.leave(false, span),
            StatementKind::Return(value) => self.give_back(value.as_ref(), span),
            StatementKind::Async(block) => self.async_block(block, span),
            StatementKind::Pragma(pragma) => self.pragma(pragma),
        }
    }

    fn pragma(&mut self, pragma: &ast::Pragma) -> Lowered<()> {
        self.at(pragma.span);
        match &pragma.kind {
            PragmaKind::Breakpoint(name) => {
                let line = self.builder.loc.line;
                let name = name.clone().unwrap_or_else(|| format!("line {line}"));
                self.probe(Probe::Breakpoint(name), vec![]);
                Ok(())
            }
            // The parser reports a loop pragma without a loop.
            _ => Ok(()),
        }
    }

    /// Emits a probe.
    pub(super) fn probe(&mut self, probe: Probe, args: Vec<freeport_ir::ValueId>) {
        self.builder.push_effect(Op::Probe { probe, args });
    }

    fn branch(
        &mut self,
        cond: &'a Expr,
        then: &'a Statement,
        otherwise: Option<&'a Statement>,
    ) -> Lowered<()> {
        let cond_span = cond.span;
        let cond = self.condition(cond);
        let constant = cond.as_ref().ok().and_then(Value::as_constant);
        if let Some(constant) = constant {
            // If template arguments decide a condition, the other side is not even checked.
            return match (constant.truth(), otherwise) {
                (true, _) => self.scoped(|body| body.statement(then)),
                (false, Some(otherwise)) => self.scoped(|body| body.statement(otherwise)),
                (false, None) => Ok(()),
            };
        }
        self.at(cond_span);
        let bit = match &cond {
            Ok(value) => self.truth(value),
            Err(_) => self.builder.number(1, 0),
        };
        let [on_true, on_false, exit] = [(); 3].map(|()| self.builder.new_block());
        self.builder.branch(bit, on_true, if otherwise.is_some() { on_false } else { exit });
        let mut outcome = cond.map(|_| ());
        let sides = [(on_true, Some(then)), (on_false, otherwise)];
        for (block, side) in sides {
            let Some(side) = side else { continue };
            self.builder.switch_to(block);
            let lowered = self.perhaps(|body| body.scoped(|body| body.statement(side)));
            outcome = outcome.and(lowered);
            self.builder.jump(exit);
        }
        self.builder.switch_to(exit);
        outcome
    }

    fn leave(&mut self, is_break: bool, span: Span) -> Lowered<()> {
        let target = self
            .control
            .iter()
            .rev()
            .find_map(|control| if is_break { Some(control.exit) } else { control.next });
        if let Some(target) = target {
            self.builder.jump(target);
            return Ok(());
        }
        let word = if is_break { "break" } else { "continue" };
        if matches!(self.returns, Returns::Nowhere) {
            return Err(self.leaves_async(word, span));
        }
        let message = format!("`{word}` outside a loop");
        Err(self.report(
            Diagnostic::error("E0302", span, message)
                .label("nothing encloses this that it could leave")
                .help("use `return` to leave the function or handler"),
        ))
    }

    fn leaves_async(&mut self, word: &str, span: Span) -> Reported {
        let message = format!("`{word}` cannot leave an `async` block");
        self.report(
            Diagnostic::error("E0309", span, message)
                .label("the block runs on its own, and always to its end")
                .help("set a variable in the block, and test it after the block"),
        )
    }

    fn give_back(&mut self, value: Option<&'a Expr>, span: Span) -> Lowered<()> {
        match self.returns.clone() {
            Returns::Nowhere => Err(self.leaves_async("return", span)),
            Returns::Mask(inputs) => {
                let mask = match value {
                    Some(value) => {
                        let written = value.span;
                        let value = self.number(value)?;
                        self.doubt_mask(&value, written);
                        self.at(span);
                        let id = self.materialise(&value);
                        (inputs > 0).then(|| self.builder.resize(id, inputs, value.is_signed()))
                    }
                    None => None,
                };
                self.builder.end(Term::Done { mask });
                Ok(())
            }
            Returns::Answer(answer) => {
                if let Some(value) = value {
                    return Err(self.returns_nothing("`.signal`", value.span));
                }
                let value = self.load(&answer, span)?;
                let id = self.materialise(&value);
                self.builder.end(Term::Return { value: Some(id) });
                Ok(())
            }
            Returns::Value(ty) => {
                let value = self.returned(value, &ty, span)?;
                self.at(span);
                let value = value.map(|value| self.materialise(&value));
                self.builder.end(Term::Return { value });
                Ok(())
            }
            Returns::Expansion { ty, result, exit } => {
                let value = self.returned(value, &ty, span)?;
                if let (Some(value), Some(result)) = (value, result) {
                    self.store(&result, &value, span)?;
                }
                self.builder.jump(exit);
                Ok(())
            }
        }
    }

    fn returned(
        &mut self,
        value: Option<&'a Expr>,
        ty: &Type,
        span: Span,
    ) -> Lowered<Option<Value>> {
        match (value, ty) {
            (None, Type::Void) => Ok(None),
            (Some(value), Type::Void) => Err(self.returns_nothing("a `void` function", value.span)),
            (Some(value), ty) => self.value_as(value, ty).map(Some),
            (None, ty) => Err(self.report(
                Diagnostic::error("E0304", span, "`return` without a value")
                    .label(format!("the function returns a `{ty}`"))
                    .help("write the value after `return`"),
            )),
        }
    }

    fn returns_nothing(&mut self, what: &str, span: Span) -> Reported {
        self.report(
            Diagnostic::error("E0304", span, format!("{what} returns no value"))
                .label("unexpected value")
                .help("write `return;`; the answer to a signal is set with `set_signal`"),
        )
    }

    /// Handles the end of the body, if it is reached.
    pub(super) fn fall_off_end(&mut self, span: Span) {
        if self.builder.is_ended() {
            return;
        }
        self.at(span);
        match self.returns.clone() {
            Returns::Mask(_) => self.builder.end(Term::Done { mask: None }),
            Returns::Value(Type::Void) => self.builder.end(Term::Return { value: None }),
            Returns::Value(ty) => {
                let zero = self.zero(&ty);
                let zero = self.materialise(&zero);
                self.builder.end(Term::Return { value: Some(zero) });
            }
            Returns::Answer(_) => {
                let _ = self.give_back(None, span);
            }
            Returns::Expansion { exit, .. } => self.builder.jump(exit),
            Returns::Nowhere => {}
        }
    }

    /// Lowers a local variable.
    fn declaration(&mut self, declaration: &'a Declaration) -> Lowered<()> {
        let Some(name) = &declaration.name else { return Ok(()) };
        let bound = self.declare_variable(declaration, name);
        if bound.is_err() {
            self.declare_wrong(name);
        }
        bound
    }

    /// Declares a name with an invalid declaration, to suppress errors for its uses.
    pub(super) fn declare_wrong(&mut self, name: &ast::Name) {
        if !self.scopes.last().is_some_and(|scope| scope.contains_key(&name.text)) {
            self.declare(name, Binding::Wrong);
        }
    }

    fn declare_variable(&mut self, one: &'a Declaration, name: &'a ast::Name) -> Lowered<()> {
        let ty = self.declared_type(one)?;
        self.check_shadowing(name);
        if let Type::Packet(_) = &ty {
            return self.declare_packet(one, name);
        }
        if let Type::Pointer(target) = &ty {
            let place = match &one.init {
                Some(init) => match self.decayed(init)? {
                    super::expressions::Operand::Pointer(place) => {
                        self.check_pointed(&place, target, init.span)?;
                        Some(place)
                    }
                    _ => return Err(self.not_a_pointer(init.span)),
                },
                None => None,
            };
            return self.declare_pointer(name, target, place);
        }
        if ty == Type::Void || matches!(ty.innermost().0, Type::Pointer(_)) {
            return Err(self.report(
                Diagnostic::error("E0213", one.span, format!("a variable of type `{ty}`"))
                    .label("not something that can be kept")
                    .help("use an array and indexes"),
            ));
        }
        if one.is_const
            && let Some(binding) = self.constant_local(one)
        {
            self.declare(name, binding);
            return Ok(());
        }
        let local = self.new_object(&name.text, &ty, name.span);
        self.choose_place(one.place, local);
        let place = super::places::Place::whole(ObjectRef::Local(local), &ty);
        // The initialiser cannot refer to the variable, so the name is declared after it.
        let outcome = match &one.init {
            Some(init) => self.initialise(&place, init),
            None if self.control.is_empty() && self.expanding.is_empty() => Ok(()),
            // In a loop, the value of the previous iteration must not be visible.
            None => self.clear(&place, one.span),
        };
        let place = super::places::Place { is_const: one.is_const, ..place };
        self.declare(name, Binding::Variable(place));
        outcome
    }

    /// Returns the binding of a `const` local that is known at compile time.
    fn constant_local(&mut self, one: &'a Declaration) -> Option<Binding<'a>> {
        let before = self.lowering.diagnostics.len();
        let binding = self.constant_binding(one).ok();
        if binding.is_none() {
            self.lowering.diagnostics.truncate(before);
        }
        binding
    }

    fn choose_place(&mut self, place: Option<ast::MemoryQualifier>, local: LocalId) {
        let Some(place) = place else { return };
        let space = match place {
            ast::MemoryQualifier::Register => Space::Register,
            ast::MemoryQualifier::Local => Space::Local,
            ast::MemoryQualifier::Global => Space::Global,
        };
        let object = &mut self.builder.function_mut().locals[local.index()];
        (object.space, object.is_pinned) = (space, true);
    }

    /// Warns about a local variable that hides one of the element.
    fn check_shadowing(&mut self, name: &ast::Name) {
        let Some(element) = self.element.clone() else { return };
        if let Some((Binding::Variable(_) | Binding::Port(..) | Binding::Keyed(_), before)) =
            element.scope.get(&name.text)
        {
            let message = format!("`{}` hides a name of the element", name.text);
            self.report(
                Diagnostic::warning("W0602", name.span, message)
                    .label("a new variable, of this block alone")
                    .note(*before, "the element's")
                    .help("rename one of them"),
            );
        }
    }

    /// Returns the function called `name`, if there is one.
    pub(super) fn function_named(&mut self, name: &str) -> Option<(&'a ast::Function, bool)> {
        let element = self.element.as_ref().map(Arc::clone);
        if let Some((Binding::Function(function), _)) =
            element.as_ref().and_then(|element| element.scope.get(name))
        {
            return Some((*function, true));
        }
        match self.lowering.globals.get(name) {
            Some(Global::Function(function)) => Some((*function, false)),
            _ => None,
        }
    }
}
