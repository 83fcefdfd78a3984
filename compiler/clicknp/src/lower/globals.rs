// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Top-level names of files: declared in any order, and evaluated at first use.

use super::constants::Constant;
use super::names::{Binding, ConstantTable};
use super::{Lowered, Lowering};
use crate::ast::{self, ExprKind, File, Name, TopItem};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use crate::types::{INT, Type, UINT};
use std::sync::Arc;

/// Declaration of a top-level name.
#[derive(Clone, Copy, Debug)]
pub enum Global<'a> {
    /// A struct or union.
    Record(&'a ast::Record),
    /// An alias of a type.
    Typedef(&'a ast::Typedef),
    /// The name of an enum's type.
    Enum,
    /// A value of an enum, by index.
    Variant(&'a ast::Enum, usize),
    /// A constant.
    Const(&'a ast::Declaration),
    /// A function.
    Function(&'a ast::Function),
    /// An element.
    Element(&'a ast::Element),
}

impl<'a> Lowering<'a> {
    /// Collects the names of all files.
    pub(super) fn collect(&mut self, files: &'a [File]) {
        let mut seen = std::collections::HashMap::new();
        for item in files.iter().flat_map(|file| &file.items) {
            for (name, global) in declared(item) {
                // Duplicate elements are reported by the configuration.
                let is_element = matches!(global, Global::Element(_));
                let before = seen.insert(name.text.clone(), (name.span, is_element));
                let before = before.filter(|(_, was_element)| !(is_element && *was_element));
                if let Some((before, _)) = before {
                    let message = format!("`{}` is defined twice", name.text);
                    self.report(
                        Diagnostic::error("E0203", name.span, message)
                            .label("defined again here")
                            .note(before, "it was defined here first")
                            .help("rename one of them"),
                    );
                    continue;
                }
                self.globals.entry(name.text.clone()).or_insert(global);
            }
        }
    }

    /// Returns the top-level names that have a value or can be called.
    pub(super) fn value_names(&self) -> impl Iterator<Item = &String> {
        let is_value = |it: &Global| {
            matches!(it, Global::Variant(..) | Global::Const(_) | Global::Function(_))
        };
        self.globals.iter().filter(move |(_, global)| is_value(global)).map(|(name, _)| name)
    }

    /// Returns the names of top-level types.
    pub(super) fn type_names(&self) -> impl Iterator<Item = &String> {
        let is_type =
            |it: &Global| matches!(it, Global::Record(_) | Global::Typedef(_) | Global::Enum);
        self.globals.iter().filter(move |(_, global)| is_type(global)).map(|(name, _)| name)
    }

    /// Returns the names of top-level functions.
    pub(super) fn function_names(&self) -> impl Iterator<Item = &String> {
        let is_function = |it: &Global| matches!(it, Global::Function(_));
        self.globals.iter().filter(move |(_, global)| is_function(global)).map(|(name, _)| name)
    }

    /// Returns the binding of a top-level name in an expression.
    pub(super) fn global(&mut self, name: &str) -> Option<Binding<'a>> {
        if let Some(known) = self.bindings.get(name) {
            return known.clone();
        }
        let global = *self.globals.get(name)?;
        // Until it is evaluated, a constant that depends on itself has no value.
        self.bindings.insert(name.to_string(), None);
        // Its errors are reported once, at the first use, even if that use suppresses diagnostics.
        let others = std::mem::take(&mut self.diagnostics);
        self.in_work.push(name.to_string());
        let binding = match global {
            Global::Const(declaration) => {
                // The error was reported; uses of the constant should not add further ones.
                let zero = Binding::Constant(Constant::of(INT, 0));
                Some(self.constant_body().constant_binding(declaration).unwrap_or(zero))
            }
            Global::Variant(of, at) => Some(Binding::Constant(self.variant(of, at))),
            Global::Function(function) => Some(Binding::Function(function)),
            Global::Record(_) | Global::Typedef(_) | Global::Enum | Global::Element(_) => None,
        };
        self.in_work.pop();
        let own = std::mem::replace(&mut self.diagnostics, others);
        self.settled.extend(own);
        self.bindings.insert(name.to_string(), binding.clone());
        binding
    }

    /// Reports a constant whose value depends on itself, with the whole cycle.
    pub(super) fn circle(&mut self, name: &str, span: Span) -> Option<super::Reported> {
        let start = self.in_work.iter().position(|own| own == name)?;
        let way = self.in_work[start..].to_vec();
        let shown: Vec<String> =
            way.iter().chain([&way[0]]).map(|name| format!("`{name}`")).collect();
        let message = format!("the value of `{name}` depends on itself");
        let mut error = Diagnostic::error("E0217", span, message)
            .label(format!("{} needs this", shown[shown.len() - 2]))
            .help(format!("give one of them a number: {}", shown.join(" -> ")));
        for name in &way {
            let own = match self.globals.get(name) {
                Some(Global::Const(declaration)) => declaration.name.as_ref(),
                Some(Global::Variant(of, at)) => Some(&of.variants[*at].0),
                _ => None,
            };
            if let Some(own) = own {
                error = error.note(own.span, format!("`{name}` is defined here"));
            }
        }
        Some(self.report(error))
    }

    /// Returns the value of an enum's name: the given one, or one more than the previous.
    fn variant(&mut self, of: &'a ast::Enum, at: usize) -> Constant {
        let given = (0..=at).rev().find_map(|at| Some((at, of.variants[at].1.as_ref()?)));
        let (from, base) = match given {
            None => (0, 0),
            Some((from, expr)) => {
                let mut body = self.constant_body();
                let value = body
                    .constant(expr)
                    .ok()
                    .and_then(|value| Some(value.converted(&Type::Int(INT))?.bits.to_u64()));
                (from, value.unwrap_or(0))
            }
        };
        Constant::of(INT, base.wrapping_add((at - from) as u64))
    }

    /// Returns the type that a top-level name stands for.
    pub(super) fn global_type(&mut self, name: &str, span: Span) -> Lowered<Option<Type>> {
        if let Some(known) = self.types.get(name) {
            return match known {
                Some(ty) => Ok(Some(ty.clone())),
                None if self.wrong_types.contains(name) => Err(super::Reported(())),
                None => Err(self.contains_itself(name, span)),
            };
        }
        let Some(global) = self.globals.get(name).copied() else { return Ok(None) };
        if matches!(global, Global::Enum) {
            return Ok(Some(Type::Int(UINT)));
        }
        if !matches!(global, Global::Record(_) | Global::Typedef(_)) {
            return Ok(None);
        }
        self.types.insert(name.to_string(), None);
        let mut body = self.constant_body();
        let resolved = match global {
            Global::Record(record) => {
                body.resolve_record(record).map(|record| Type::Record(Arc::new(record)))
            }
            Global::Typedef(typedef) => body.resolve(&typedef.ty).and_then(|ty| {
                body.with_dimensions(ty, &typedef.dimensions, None, typedef.name.span)
            }),
            _ => return Ok(None),
        };
        match resolved {
            Ok(ty) => {
                self.types.insert(name.to_string(), Some(ty.clone()));
                Ok(Some(ty))
            }
            Err(reported) => {
                // Suppresses errors for its uses.
                self.wrong_types.insert(name.to_string());
                Err(reported)
            }
        }
    }

    fn contains_itself(&mut self, name: &str, span: Span) -> super::Reported {
        self.report(
            Diagnostic::error("E0218", span, format!("`{name}` cannot be used here"))
                .label("its definition is wrong, or would contain itself")
                .help("a type contains only types that are complete without it"),
        )
    }
}

/// Returns the names that an item of a file declares.
fn declared(item: &TopItem) -> Vec<(&Name, Global<'_>)> {
    match item {
        TopItem::Record(record) => {
            record.name.iter().map(|name| (name, Global::Record(record))).collect()
        }
        TopItem::Typedef(typedef) => vec![(&typedef.name, Global::Typedef(typedef))],
        TopItem::Enum(one) => {
            let name = one.name.iter().map(|name| (name, Global::Enum));
            let variants = one.variants.iter().enumerate();
            let variants = variants.map(|(at, (name, _))| (name, Global::Variant(one, at)));
            name.chain(variants).collect()
        }
        TopItem::Const(declaration) => {
            declaration.name.iter().map(|name| (name, Global::Const(declaration))).collect()
        }
        TopItem::Function(function) => vec![(&function.name, Global::Function(function))],
        TopItem::Element(element) => vec![(&element.name, Global::Element(element))],
        TopItem::Group(_) | TopItem::Import(_) | TopItem::Config(_) => vec![],
    }
}

impl<'a> super::body::Body<'_, 'a> {
    /// Returns the binding of a `const` declaration whose initialiser is known at compile time.
    pub(super) fn constant_binding(
        &mut self,
        declaration: &'a ast::Declaration,
    ) -> Lowered<Binding<'a>> {
        let span = declaration.span;
        let Some(init) = &declaration.init else {
            return Err(self.report(
                Diagnostic::error("E0209", span, "a constant without a value")
                    .label("no `= value`")
                    .help("write its value after its name"),
            ));
        };
        let ty = self.declared_type(declaration)?;
        if ty.is_integer() {
            let value = self.constant(init)?;
            let converted = value.converted(&ty).expect("numbers convert to each other");
            return Ok(Binding::Constant(converted));
        }
        if matches!(ty, Type::Array(..)) && ty.innermost().0.is_integer() {
            let elements = self.constant_elements(&ty, init)?;
            let name = declaration.name.as_ref().map_or(String::new(), |name| name.text.clone());
            return Ok(Binding::Table(Arc::new(ConstantTable { name, ty, elements })));
        }
        Err(self.report(
            Diagnostic::error("E0206", span, format!("a constant of type `{ty}`"))
                .label("constants are numbers and arrays of numbers")
                .help("use one constant for each member"),
        ))
    }

    /// Returns the type of a declaration, with its dimensions; `[]` takes the size of the
    /// initialiser.
    pub(super) fn declared_type(&mut self, declaration: &ast::Declaration) -> Lowered<Type> {
        let ty = self.resolve(&declaration.ty)?;
        let given = match declaration.init.as_ref().map(|init| &init.kind) {
            Some(ExprKind::List(items)) => Some(items.len() as u64),
            _ => None,
        };
        self.with_dimensions(ty, &declaration.dimensions, given, declaration.span)
    }
}
