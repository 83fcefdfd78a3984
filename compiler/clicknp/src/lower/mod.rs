// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lowering of the syntax tree to the IR: names, types, constants, templates and checks, in one
//! traversal of each function that is used.
//!
//! A [`Lowering`] holds the names of all files. Elements and functions are lowered on demand, once
//! per set of template arguments. Every local variable becomes an object of the function; the
//! passes of the IR convert them to values.

mod assigned;
mod assignments;
mod async_blocks;
mod body;
mod bounds;
mod builtins;
mod constants;
mod elements;
mod expressions;
mod functions;
mod globals;
mod initialisers;
mod loops;
mod managers;
mod names;
mod objects;
mod operators;
mod packets;
mod places;
mod pointers;
mod ports;
mod statements;
mod subscripts;
mod switches;
mod tables;
mod templates;
mod values;
mod warnings;

pub use constants::Constant;
pub use functions::Signature;
pub use templates::TemplateValue;

use crate::ast::{self, Expr, File, Name, TemplateArg, TypeExpr};
use crate::diagnostic::{Diagnostic, Severity};
use crate::layouts::Layouts;
use crate::source::SourceMap;
use crate::types::Type;
use freeport_ir::{self as ir, ElementId, Function, Item, ObjectId, Program};
use globals::Global;
use names::Binding;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

/// Marks an error that has been reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reported(());

/// A result whose error has been reported.
pub type Lowered<T> = Result<T, Reported>;

/// One side of an element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Side {
    /// Before `->`.
    Input,
    /// After `->`.
    Output,
}

/// The checker and lowering of a whole compilation.
pub struct Lowering<'a> {
    sources: &'a SourceMap,
    globals: HashMap<String, Global<'a>>,
    bindings: HashMap<String, Option<Binding<'a>>>,
    types: HashMap<String, Option<Type>>,
    /// Types whose definition is invalid, which was reported.
    wrong_types: HashSet<String>,
    flit: Type,
    signal: Type,
    program: Program,
    layouts: Layouts,
    diagnostics: Vec<Diagnostic>,
    /// Diagnostics about top-level constants.
    settled: Vec<Diagnostic>,
    /// Top-level constants being evaluated, outermost first.
    in_work: Vec<String>,
    elements: HashMap<templates::Key, Option<ElementId>>,
    /// Programs of objects, by path, name and devices.
    objects: HashMap<(PathBuf, Option<String>, Vec<u32>), Option<ElementId>>,
    functions: HashMap<functions::FunctionKey, functions::Progress>,
    /// State objects that are indexed by a computed number.
    indexed_state: HashSet<(ElementId, ObjectId)>,
    /// State objects that hold constant arrays.
    table_states: Vec<(ElementId, std::sync::Arc<names::ConstantTable>, ObjectId)>,
    /// Methods of each element, in the order of their numbers.
    methods: HashMap<ElementId, Vec<(String, Signature)>>,
    /// Depth of functions being lowered.
    depth: usize,
}

/// Result of a compilation.
#[derive(Debug)]
pub struct Finished {
    /// Elements and functions; the graph is empty.
    pub program: Program,
    /// Errors and warnings, each once.
    pub diagnostics: Vec<Diagnostic>,
    /// Types of state and methods, for the host.
    pub layouts: Layouts,
}

impl<'a> Lowering<'a> {
    /// Starts with the names of all files.
    pub fn new(files: &'a [File], sources: &'a SourceMap) -> Self {
        let name = |file: &crate::source::SourceFile| file.path.display().to_string();
        let program =
            Program { files: sources.files().iter().map(name).collect(), ..Program::default() };
        let mut lowering = Self {
            sources,
            globals: HashMap::new(),
            bindings: HashMap::new(),
            types: HashMap::new(),
            wrong_types: HashSet::new(),
            flit: Type::flit(),
            signal: Type::signal(),
            program,
            layouts: Layouts::default(),
            diagnostics: vec![],
            settled: vec![],
            in_work: vec![],
            elements: HashMap::new(),
            objects: HashMap::new(),
            functions: HashMap::new(),
            indexed_state: HashSet::new(),
            table_states: vec![],
            methods: HashMap::new(),
            depth: 0,
        };
        lowering.collect(files);
        lowering
    }

    /// Returns the element `name`, specialised to arguments given by position or by name; `None`
    /// after an error, which has been reported.
    pub fn element(
        &mut self,
        name: &Name,
        args: &[(Option<Name>, TemplateArg)],
    ) -> Option<ElementId> {
        // The caller knows that the element exists; if the name has another meaning too, that was
        // reported.
        let Some(Global::Element(element)) = self.globals.get(&name.text).copied() else {
            return None;
        };
        let params = &element.params;
        let mut body = self.constant_body();
        let given = body.bind_template(&name.text, params, args, name.span).ok()?;
        self.specialise_element(element, given)
    }

    /// Checks every element of file number `file` whose parameters all have defaults, and every
    /// function that is not a template: these can be checked without being used.
    pub fn check_file(&mut self, files: &'a [File], file: usize) {
        for item in &files[file].items {
            match item {
                ast::TopItem::Element(element)
                    if element.params.iter().all(|param| param.default.is_some()) =>
                {
                    self.element(&element.name, &[]);
                }
                ast::TopItem::Function(function) => self.check_function(function),
                ast::TopItem::Const(declaration) => {
                    if let Some(name) = &declaration.name {
                        self.global(&name.text);
                    }
                }
                ast::TopItem::Enum(one) => {
                    one.variants.iter().for_each(|(name, _)| _ = self.global(&name.text));
                }
                ast::TopItem::Record(ast::Record { name: Some(name), .. })
                | ast::TopItem::Typedef(ast::Typedef { name, .. }) => {
                    let _ = self.global_type(&name.text, name.span);
                }
                _ => {}
            }
        }
    }

    /// Returns the input and output ports of an element. Those of an array are named `name[i]`.
    pub fn ports(&self, element: ElementId) -> (&[ir::Port], &[ir::Port]) {
        let element = self.program.element(element);
        (&element.inputs, &element.outputs)
    }

    /// Returns the value of a constant expression; `None` if it is not constant, which has been
    /// reported.
    pub fn constant(&mut self, value: &Expr) -> Option<u64> {
        self.constant_body().constant_u64(value).ok()
    }

    /// Returns the kind of item of a port of type `ty`; `None` if there is none, which has been
    /// reported.
    pub fn port_item(&mut self, ty: &TypeExpr) -> Option<Item> {
        let mut body = self.constant_body();
        let resolved = body.resolve(ty).ok()?;
        body.item_of(&resolved, ty.span).ok()
    }

    /// Returns the program with its diagnostics.
    pub fn finish(mut self) -> Finished {
        self.place_state();
        self.diagnostics.append(&mut self.settled);
        let mut seen = HashSet::new();
        self.diagnostics.retain(|one| seen.insert((one.code, one.span, one.message.clone())));
        let Self { program, diagnostics, layouts, .. } = self;
        Finished { program, diagnostics, layouts }
    }

    /// Returns whether there are no errors so far.
    pub fn is_sound(&self) -> bool {
        let all = self.diagnostics.iter().chain(&self.settled);
        all.into_iter().all(|one| one.severity != Severity::Error)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        self.diagnostics.push(diagnostic);
        Reported(())
    }

    /// Creates a body for constant expressions, outside any function.
    fn constant_body(&mut self) -> body::Body<'_, 'a> {
        let function = Function::new("constant", None, ir::Loc::default());
        let returns = body::Returns::Nowhere;
        body::Body::new(self, function, None, body::Role::Constant, returns)
    }
}

#[cfg(test)]
mod tests;
