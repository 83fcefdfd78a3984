// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles a file of functions, which a host calls by themselves: no elements, no graph.
//!
//! Each function at the top level of the file that is not `inline` is compiled. A template with a
//! type as its only parameter is compiled once for each type that the host asks for. `inline`
//! functions, and those of imported files, are compiled where they are called.

use crate::ast::{self, ConfigStatement, Name, TopItem};
use crate::diagnostic::{Diagnostic, in_order};
use crate::driver::{Failure, Options, checked, on_large_stack, sound};
use crate::lints;
use crate::load::{Loaded, load_file, load_text};
use crate::lower::{Lowering, Signature, TemplateValue};
use crate::source::{SourceMap, Span};
use crate::types::Type;
use freeport_ir as ir;
use std::path::Path;

/// The functions of a file.
#[derive(Debug)]
pub struct CompiledFunctions {
    /// All functions, and those that they call.
    pub program: ir::Program,
    /// The functions of the file that are not `inline`, in their order.
    pub functions: Vec<FileFunction>,
    /// Source texts.
    pub sources: SourceMap,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

/// A function at the top level of a file.
#[derive(Debug)]
pub struct FileFunction {
    /// Its name.
    pub name: Name,
    /// Locations of its parameters.
    pub params: Vec<Span>,
    /// Location of the type of its result.
    pub result: Span,
    /// The function itself, or the template for each type.
    pub instances: Vec<Signature>,
}

/// Compiles the functions of a file; templates for each of `types`.
///
/// # Errors
/// All errors found by the first step that fails; also an element, a group or a graph in the file,
/// and a template with other parameters than one type.
pub fn compile_functions_of_file(
    path: impl AsRef<Path>,
    types: &[Type],
    options: &Options,
) -> Result<CompiledFunctions, Failure> {
    let path = path.as_ref();
    on_large_stack(|| compile(load_file(path, &options.library), types))
}

/// Compiles the functions of a text. Imports are relative to the folder of `name`.
///
/// # Errors
/// As for [`compile_functions_of_file`].
pub fn compile_functions_of_text(
    name: impl AsRef<Path>,
    text: &str,
    types: &[Type],
    options: &Options,
) -> Result<CompiledFunctions, Failure> {
    let name = name.as_ref();
    on_large_stack(|| compile(load_text(name, text, &options.library), types))
}

fn compile(loaded: Loaded, types: &[Type]) -> Result<CompiledFunctions, Failure> {
    let mut loaded = checked(loaded)?;
    let misplaced = loaded.files[0].items.iter().filter_map(misplaced);
    loaded.diagnostics.extend(misplaced);
    let loaded = checked(loaded)?;
    let mut lowering = Lowering::new(&loaded.files, &loaded.sources);
    lowering.check_file(&loaded.files, 0);
    let items = loaded.files[0].items.iter();
    let compiled = items.filter_map(|item| match item {
        TopItem::Function(function) if !function.is_inline => Some(function),
        _ => None,
    });
    let functions = compiled.map(|function| instances(&mut lowering, function, types)).collect();
    let finished = lowering.finish();
    let diagnostics = [loaded.diagnostics, finished.diagnostics].concat();
    let (sources, mut warnings) = sound(loaded.sources, diagnostics)?;
    warnings.extend(lints::of_files(&loaded.files, &sources));
    let stem = sources.files()[0].path.file_stem().unwrap_or_default();
    let program = ir::Program { name: stem.to_string_lossy().into_owned(), ..finished.program };
    let warnings = in_order(warnings);
    Ok(CompiledFunctions { program, functions, sources, warnings })
}

/// Lowers a function once, or a template for each type. Errors leave no instance.
fn instances<'a>(
    lowering: &mut Lowering<'a>,
    function: &'a ast::Function,
    types: &[Type],
) -> FileFunction {
    let arguments: Vec<Vec<TemplateValue>> = match function.template.is_empty() {
        true => vec![vec![]],
        false => types.iter().map(|ty| vec![TemplateValue::Type(ty.clone())]).collect(),
    };
    let lowered = arguments.into_iter().map(|args| lowering.instance(function, args));
    FileFunction {
        name: function.name.clone(),
        instances: lowered.flatten().collect(),
        params: function.params.iter().map(|param| param.span).collect(),
        result: function.result.span,
    }
}

/// Returns the error of an item that a file of functions cannot have.
fn misplaced(item: &TopItem) -> Option<Diagnostic> {
    let (what, span) = match item {
        TopItem::Element(element) => ("an element", element.name.span),
        TopItem::Group(group) => ("a group", group.name.span),
        TopItem::Config(ConfigStatement::Declare(declaration)) => ("an instance", declaration.span),
        TopItem::Config(ConfigStatement::Connect(connection)) => {
            ("a channel", connection.nodes.first()?.name.span)
        }
        TopItem::Config(ConfigStatement::Manager(manager)) => ("a manager", manager.name.span),
        TopItem::Function(function) if !function.is_inline => return unbound(function),
        _ => return None,
    };
    let message = format!("{what} in a file of functions");
    let error = Diagnostic::error("E0521", span, message);
    Some(error.help("keep functions that are called by themselves in a file of their own"))
}

/// Returns the error of a template that a type alone does not determine.
fn unbound(function: &ast::Function) -> Option<Diagnostic> {
    // A parameter beyond the first has no argument, and the first has none if it is a number.
    let at = usize::from(function.template.first()?.ty.is_none());
    let param = function.template.get(at)?;
    let message = format!("the template `{}` needs more than a type", function.name.text);
    let error = Diagnostic::error("E0522", param.name.span, message);
    let error = error.label("nothing determines this parameter");
    Some(error.help("write `template <T>`, or make the function `inline`"))
}
