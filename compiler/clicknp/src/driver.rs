// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles a source text to a program of the IR.
//!
//! 1. `load`: the file, its imports, and the library files of the elements it uses.
//! 2. `lower`: the elements and functions of the file, whether used or not, then every element that
//!    an instance requires.
//! 3. `config`: the instances and channels.
//!
//! A step is taken only if the previous one found no errors, so that one mistake is not reported
//! several times.

use crate::ast::{Element, Expr, Name, ObjectProgram, TemplateArg, TypeExpr};
use crate::config::{self, Callable, Elements};
use crate::diagnostic::{Diagnostic, Severity, in_order};
use crate::layouts::Layouts;
use crate::lints;
use crate::load::{Loaded, load_file, load_text};
use crate::lower::Lowering;
use crate::source::{SourceMap, Span};
use freeport_ir as ir;
use freeport_ir::analysis::{ShallowJoin, shallow_joins};
use std::path::{Path, PathBuf};
use std::thread;

/// Stack size of the compiling thread. Nesting is limited, but each level takes several calls.
const STACK_BYTES: usize = 256 << 20;

/// Compiler options.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Folders of library elements, searched in order.
    pub library: Vec<PathBuf>,
}

/// A compiled program.
#[derive(Debug)]
pub struct Compiled {
    /// Elements, functions and the graph.
    pub program: ir::Program,
    /// Source texts.
    pub sources: SourceMap,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
    /// Names and types of state and methods, for the host.
    pub layouts: Layouts,
}

/// A function compiled by itself.
#[derive(Debug)]
pub struct CompiledFunction {
    /// The function and the functions it calls.
    pub program: ir::Program,
    /// Index of the function in the program.
    pub function: ir::FunctionId,
    /// Names and types of its parameters, as spelled in the source.
    pub params: Vec<(String, String)>,
    /// Type of its result, possibly `void`.
    pub result: String,
    /// Source texts.
    pub sources: SourceMap,
    /// Warnings.
    pub warnings: Vec<Diagnostic>,
}

/// A failed compilation.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.render())]
pub struct Failure {
    /// Source texts.
    pub sources: SourceMap,
    /// Errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

impl Failure {
    /// Formats all messages for a terminal.
    pub fn render(&self) -> String {
        let texts: Vec<_> = self.diagnostics.iter().map(|one| one.render(&self.sources)).collect();
        texts.join("\n")
    }
}

/// Compiles the program in a file.
///
/// # Errors
/// All errors found by the first step that fails.
pub fn compile_file(path: impl AsRef<Path>, options: &Options) -> Result<Compiled, Failure> {
    let path = path.as_ref();
    on_large_stack(|| compile(load_file(path, &options.library)))
}

/// Compiles the program in a text. Imports are relative to the folder of `name`.
///
/// # Errors
/// As for [`compile_file`].
pub fn compile_text(
    name: impl AsRef<Path>,
    text: &str,
    options: &Options,
) -> Result<Compiled, Failure> {
    let name = name.as_ref();
    on_large_stack(|| compile(load_text(name, text, &options.library)))
}

/// Compiles the function `name` of a text by itself, with the functions it calls.
///
/// # Errors
/// As for [`compile_file`]; also if there is no such function, or it takes a pointer.
pub fn compile_function(
    text: &str,
    name: &str,
    options: &Options,
) -> Result<CompiledFunction, Failure> {
    on_large_stack(|| {
        let loaded = checked(load_text(Path::new("function.cnp"), text, &options.library))?;
        let mut lowering = Lowering::new(&loaded.files, &loaded.sources);
        let found = lowering.function(name);
        let is_sound = lowering.is_sound();
        let mut finished = lowering.finish();
        if found.is_none() && is_sound {
            let message = format!("no function `{name}` that can be compiled by itself");
            let error = Diagnostic::error("E0518", Span::default(), message);
            let help =
                "a template, or a function that takes pointers, is compiled where it is used";
            finished.diagnostics.push(error.help(help));
        }
        let diagnostics = [loaded.diagnostics, finished.diagnostics].concat();
        let (sources, warnings) = sound(loaded.sources, diagnostics)?;
        let signature = found.expect("without it there was an error");
        Ok(CompiledFunction {
            program: finished.program,
            function: signature.function,
            params: signature
                .params
                .iter()
                .map(|(name, ty)| (name.clone(), ty.to_string()))
                .collect(),
            result: signature.result.to_string(),
            sources,
            warnings,
        })
    })
}

fn compile(loaded: Loaded) -> Result<Compiled, Failure> {
    let mut loaded = checked(loaded)?;
    let mut lowering = Lowering::new(&loaded.files, &loaded.sources);
    lowering.check_file(&loaded.files, 0);
    let mut graph = ir::Graph::default();
    if lowering.is_sound() {
        let diagnostics = &mut loaded.diagnostics;
        graph = config::build(
            &loaded.files,
            &loaded.sources,
            &loaded.library,
            &mut lowering,
            diagnostics,
        );
    }
    let finished = lowering.finish();
    let diagnostics = [loaded.diagnostics, finished.diagnostics].concat();
    let (sources, mut warnings) = sound(loaded.sources, diagnostics)?;
    let stem = sources.files()[0].path.file_stem().unwrap_or_default();
    let name = stem.to_string_lossy().into_owned();
    let program = ir::Program { name, graph, ..finished.program };
    warnings.extend(lints::of_files(&loaded.files, &sources));
    warnings.extend(lints::of_program(&program, &sources));
    warnings.extend(shallow_joins(&program).iter().map(|it| of_join(&program, it, &sources)));
    let warnings = in_order(warnings);
    Ok(Compiled { program, sources, warnings, layouts: finished.layouts })
}

/// Returns the warning for a join whose waiting side has too little room.
fn of_join(program: &ir::Program, join: &ShallowJoin, sources: &SourceMap) -> Diagnostic {
    let channel = |id: ir::ChannelId| &program.graph.channels[id.index()];
    let name = |id| program.channel_name(channel(id));
    let (waiting, awaited) = (name(join.waiting), name(join.awaited));
    let message = format!("`{waiting}` has room for only {} waiting items", join.holds);
    let more = join.needs - join.holds + u64::from(channel(join.waiting).depth);
    // The location of a channel is its arrow.
    Diagnostic::warning("W0603", sources.span(channel(join.waiting).loc, 2), message)
        .label(format!("{} can be on the way to `{awaited}`", join.needs))
        .help(format!("write `->{{depth = {more}}}`, or they are processed one after another"))
}

/// Returns what was loaded, unless there are errors.
pub(crate) fn checked(loaded: Loaded) -> Result<Loaded, Failure> {
    let Loaded { files, sources, diagnostics, library } = loaded;
    let (sources, diagnostics) = sound(sources, diagnostics)?;
    Ok(Loaded { files, sources, diagnostics, library })
}

/// Returns the diagnostics in order, unless there are errors among them.
pub(crate) fn sound(
    sources: SourceMap,
    diagnostics: Vec<Diagnostic>,
) -> Result<(SourceMap, Vec<Diagnostic>), Failure> {
    let mut diagnostics = in_order(diagnostics);
    match diagnostics.iter().any(|one| one.severity == Severity::Error) {
        true => {
            diagnostics.retain(|one| !lints::is_of_sound_programs(one.code));
            Err(Failure { sources, diagnostics })
        }
        false => Ok((sources, diagnostics)),
    }
}

pub(crate) fn on_large_stack<T: Send>(
    work: impl FnOnce() -> Result<T, Failure> + Send,
) -> Result<T, Failure> {
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("compile".into()).stack_size(STACK_BYTES);
        let compiling = builder.spawn_scoped(scope, work).expect("a thread can be started");
        // A panic continues in the caller.
        compiling.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl<'a> Elements<'a> for Lowering<'a> {
    fn element(
        &mut self,
        name: &Name,
        args: &[(Option<Name>, TemplateArg)],
    ) -> Option<ir::ElementId> {
        Lowering::element(self, name, args)
    }

    fn object(
        &mut self,
        object: &ObjectProgram,
        args: &[(Option<Name>, TemplateArg)],
    ) -> Option<ir::ElementId> {
        Lowering::object(self, object, args)
    }

    fn manager(
        &mut self,
        manager: &'a Element,
        name: &str,
        args: &[(Option<Name>, TemplateArg)],
        instances: Vec<Callable>,
    ) -> Option<ir::ElementId> {
        Lowering::manager(self, manager, name, args, instances)
    }

    fn ports(&self, element: ir::ElementId) -> (&[ir::Port], &[ir::Port]) {
        Lowering::ports(self, element)
    }

    fn constant(&mut self, value: &Expr) -> Option<u64> {
        Lowering::constant(self, value)
    }

    fn port_item(&mut self, ty: &TypeExpr) -> Option<ir::Item> {
        Lowering::port_item(self, ty)
    }
}
