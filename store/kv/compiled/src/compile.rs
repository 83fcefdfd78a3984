// SPDX-License-Identifier: Apache-2.0 OR MIT
//! From text to a registry: the language's compiler, the shapes of the functions, the proof that
//! they end, their names, and their code.

use crate::code::{Function, Library};
use crate::interpreted::Interpreted;
use crate::shape::{Shape, element_types, shape_of};
use crate::{Code, Options, Refused, total};
use freeport_clicknp::diagnostic::{Diagnostic, in_order};
use freeport_clicknp::{
    CompiledFunctions, FileFunction, compile_functions_of_file, compile_functions_of_text,
};
use freeport_ir::{FunctionId, Program};
use freeport_kv_functions::{Kind, Registry, RegistryBuilder, User};
use freeport_native::{KernelKind, Kernels};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Functions that are registered.
#[derive(Debug)]
pub struct Compiled {
    /// The built-in functions and those of the files, whose ids are 128, 129, ... in the order of
    /// files and declarations.
    pub registry: Registry,
    /// Warnings about the files, as they are shown to the user.
    pub warnings: Vec<String>,
    /// Why functions run in the interpreter although native code was wanted, and what to do.
    pub is_interpreted: Option<String>,
}

/// Compiles the functions of files, and registers them.
///
/// # Errors
/// The errors of the first file that has any: of the language, or a function that cannot be
/// registered.
pub fn compile_files(files: &[impl AsRef<Path>], options: &Options) -> Result<Compiled, Refused> {
    let mut compiler = Compiler::new(options);
    for file in files {
        let language = freeport_clicknp::Options { library: options.library.clone() };
        compiler.add(compile_functions_of_file(file, &element_types(), &language)?)?;
    }
    Ok(compiler.finish())
}

/// Compiles the functions of a text, and registers them. Imports are relative to the folder of
/// `name`.
///
/// # Errors
/// As for [`compile_files`].
pub fn compile_text(
    name: impl Into<PathBuf>,
    text: &str,
    options: &Options,
) -> Result<Compiled, Refused> {
    let mut compiler = Compiler::new(options);
    let language = freeport_clicknp::Options { library: options.library.clone() };
    let name = name.into();
    compiler.add(compile_functions_of_text(name, text, &element_types(), &language)?)?;
    Ok(compiler.finish())
}

struct Compiler<'a> {
    options: &'a Options,
    builder: RegistryBuilder,
    /// Id of the next function; `None` after the last one.
    next: Option<u8>,
    warnings: Vec<String>,
    is_interpreted: Option<String>,
}

impl<'a> Compiler<'a> {
    fn new(options: &'a Options) -> Self {
        let next = Some(Registry::FIRST_USER_ID);
        let builder = Registry::builder();
        Self { options, builder, next, warnings: vec![], is_interpreted: None }
    }

    fn finish(self) -> Compiled {
        let Self { builder, warnings, is_interpreted, .. } = self;
        Compiled { registry: builder.freeze(), warnings, is_interpreted }
    }

    /// Registers the functions of a file.
    fn add(&mut self, file: CompiledFunctions) -> Result<(), Refused> {
        let CompiledFunctions { program, functions, sources, warnings } = file;
        let shapes: Vec<_> = functions.iter().map(|one| (one, shape_of(one))).collect();
        let mut errors = vec![];
        let mut found = vec![];
        for (function, shape) in shapes {
            match shape {
                Ok(shape) => found.push((function, shape)),
                Err(error) => errors.push(*error),
            }
        }
        let bodies = found.iter().flat_map(|(_, shape)| &shape.bodies);
        let bodies: Vec<FunctionId> = bodies.map(|(_, function)| *function).collect();
        errors.extend(total::check(&program, &bodies, &sources));
        if errors.is_empty() {
            let library = Arc::new(self.library(&program, &found));
            errors = self.register(&library, found);
        }
        if !errors.is_empty() {
            return Err(Refused { sources, diagnostics: in_order(errors) });
        }
        self.warnings.extend(warnings.iter().map(|warning| warning.render(&sources)));
        Ok(())
    }

    /// Makes the code of all functions, numbered in their order.
    fn library(&mut self, program: &Program, found: &[(&FileFunction, Shape)]) -> Library {
        let kernels: Vec<(FunctionId, KernelKind)> = found
            .iter()
            .flat_map(|(_, shape)| {
                let kind = match shape.kind {
                    Kind::Update => KernelKind::Map,
                    Kind::Reduce => KernelKind::Fold,
                    Kind::Filter => KernelKind::Test,
                };
                shape.bodies.iter().map(move |(_, function)| (*function, kind))
            })
            .collect();
        if let Code::Native(native) = &self.options.code {
            match Kernels::build(program, &kernels, native) {
                Ok(kernels) => return Library::Native(kernels),
                Err(error) => self.is_interpreted = Some(error.to_string()),
            }
        }
        let functions: Vec<FunctionId> = kernels.iter().map(|(function, _)| *function).collect();
        Library::Interpreted(Interpreted::new(program, &functions))
    }

    /// Registers functions; returns the errors about their names and their number.
    fn register(
        &mut self,
        library: &Arc<Library>,
        found: Vec<(&FileFunction, Shape)>,
    ) -> Vec<Diagnostic> {
        let mut errors = vec![];
        let mut number = 0;
        for (function, Shape { kind, operands, bodies }) in found {
            let elements: Vec<_> = bodies.iter().map(|(element, _)| *element).collect();
            let numbers: Vec<_> = elements.iter().copied().zip(number..).collect();
            number += elements.len();
            let code = Function::new(Arc::clone(library), kind, numbers);
            let name = &function.name;
            let user = User::new(kind, &name.text, elements, Arc::new(code));
            let user = user.with_operands(operands);
            let registered = match self.next {
                Some(id) => self.builder.register(id, user).map_err(|error| error.to_string()),
                None => Err(format!("`{}` is one function too many; 128 are allowed", name.text)),
            };
            match registered {
                Ok(()) => self.next = self.next.and_then(|id| id.checked_add(1)),
                Err(reason) => errors.push(Diagnostic::error("K0106", name.span, reason)),
            }
        }
        errors
    }
}
