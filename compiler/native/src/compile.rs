// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles emitted C to a shared object on disk. Its name is derived from everything that it
//! depends on: the code, the compiler, its options and the machine.

use crate::emit::{Emission, emit_functions, emit_kernels, emit_program};
use crate::kernel::KernelKind;
use crate::manifest::Manifest;
use crate::{Error, Options, own};
use freeport_ir::analysis::mark_watched_loops;
use freeport_ir::{FunctionId, Program, passes};
use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program compiled to native code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Image {
    /// Path of the shared object.
    pub library: PathBuf,
    /// Path of the C file that it was compiled from.
    pub source: PathBuf,
    /// Description of its contents.
    pub manifest: Manifest,
}

/// Returns the C file of a program.
///
/// # Errors
/// A feature that native code does not support in this version, see [`Error::Unsupported`].
pub fn emit(program: &Program, options: &Options) -> Result<String, Error> {
    Ok(emission(program, options)?.text)
}

/// Builds a program, or reuses an earlier build.
///
/// # Errors
/// Features that native code does not support; a compiler that is missing or fails; file errors.
pub fn build(program: &Program, options: &Options) -> Result<Image, Error> {
    compile(emission(program, options)?, options)
}

/// Builds functions that belong to no element, for [`Functions::load`](crate::Functions::load).
///
/// # Errors
/// As for [`build`].
pub fn build_functions(
    program: &Program,
    functions: &[FunctionId],
    options: &Options,
) -> Result<Image, Error> {
    compile(emit_functions(&prepared(program, options), functions, options)?, options)
}

/// Builds kernels, for [`Kernels::build`](crate::Kernels::build).
pub(crate) fn build_kernels(
    program: &Program,
    kernels: &[(FunctionId, KernelKind)],
    options: &Options,
) -> Result<Image, Error> {
    compile(emit_kernels(&prepared(program, options), kernels, options)?, options)
}

fn emission(program: &Program, options: &Options) -> Result<Emission, Error> {
    emit_program(program, &prepared(program, options), options)
}

/// Returns the program as it is emitted, after the passes.
fn prepared(program: &Program, options: &Options) -> Program {
    let mut program = program.clone();
    mark_watched_loops(&mut program, options.turn_limit);
    passes::run(&mut program, &options.passes);
    program
}

fn compile(emission: Emission, options: &Options) -> Result<Image, Error> {
    let Emission { text, manifest } = emission;
    let name = file_name(&text, &manifest, options);
    let folder = prepare_folder(options)?;
    let path = |extension: &str| folder.join(format!("{name}.{extension}"));
    let (library, source, description) = (path("so"), path("c"), path("json"));
    let known = read_manifest(&description)?.filter(|known| *known == manifest);
    if known.is_some() && exists(&library)? && exists(&source)? {
        return Ok(Image { library, source, manifest });
    }
    place(&source, |path| fs::write(path, &text).map_err(|source| file_error(path, source)))?;
    place(&library, |path| run_compiler(&source, path, options))?;
    let json = serde_json::to_string_pretty(&manifest).map_err(std::io::Error::from);
    let json = json.map_err(|source| file_error(&description, source))?;
    place(&description, |path| fs::write(path, &json).map_err(|source| file_error(path, source)))?;
    Ok(Image { library, source, manifest })
}

/// Prepares the folder for built code. Other users must not be able to write to it, because the
/// code is executed.
fn prepare_folder(options: &Options) -> Result<PathBuf, Error> {
    let folder = match &options.cache {
        Some(folder) => folder.clone(),
        None => own::cache().map_err(Error::NoFolder)?.join("native"),
    };
    own::make_folder(&folder, 0o700).map_err(Error::NoFolder)?;
    Ok(folder)
}

/// Returns whether the file exists; fails if another user could have written it.
fn exists(path: &Path) -> Result<bool, Error> {
    match own::check(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::NoFolder(error)),
    }
}

/// Creates a file under a temporary name first, so that other processes never see it incomplete.
/// Removes write permission for other users, whatever the umask.
fn place(path: &Path, make: impl FnOnce(&Path) -> Result<(), Error>) -> Result<(), Error> {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    let partial = path.with_extension(format!("{}-{count}.{extension}", std::process::id()));
    make(&partial)?;
    let is_own = fs::Permissions::from_mode(0o600);
    fs::set_permissions(&partial, is_own).map_err(|source| file_error(&partial, source))?;
    fs::rename(&partial, path).map_err(|source| file_error(path, source))
}

fn run_compiler(source: &Path, library: &Path, options: &Options) -> Result<(), Error> {
    let mut command = Command::new(&options.compiler);
    command.args(flags(options)).arg(source).arg("-o").arg(library);
    let output = command.output().map_err(|error| Error::CompilerMissing {
        compiler: options.compiler.clone(),
        reason: error.to_string(),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(Error::CompilerFailed { source_file: source.to_owned(), message })
}

fn flags(options: &Options) -> Vec<String> {
    let mut flags: Vec<String> =
        ["-std=gnu23", "-march=native", "-fPIC", "-shared", "-w"].map(str::to_owned).to_vec();
    flags.push(format!("-O{}", options.optimization.min(3)));
    flags.extend(["-fvisibility=hidden", "-fno-strict-aliasing"].map(str::to_owned));
    if options.sanitize || options.sanitize_addresses {
        // Enough to name the faulty line; full debug information would double the compile time of
        // the checks.
        flags.push("-gline-tables-only".to_owned());
    }
    if options.sanitize {
        flags.extend(["-fsanitize=undefined", "-fsanitize-trap=undefined"].map(str::to_owned));
    }
    if options.sanitize_addresses {
        flags.extend(["-fsanitize=address", "-fno-sanitize-link-runtime"].map(str::to_owned));
    }
    flags
}

/// Returns a file name from the program's name and a hash of everything that the library depends
/// on.
fn file_name(text: &str, manifest: &Manifest, options: &Options) -> String {
    let name: String = manifest.program.chars().filter(char::is_ascii_alphanumeric).collect();
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let features = processor.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let hash = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, text, features, &options.compiler, flags(options)).hash(&mut hasher);
        format!("{manifest:?}").hash(&mut hasher);
        hasher.finish()
    };
    let start = if name.is_empty() { "program" } else { &name[..name.len().min(40)] };
    format!("{start}-{:016x}{:016x}", hash(1), hash(2))
}

/// Reads a manifest; returns `None` if it is missing or from another version.
fn read_manifest(path: &Path) -> Result<Option<Manifest>, Error> {
    let text = own::read(path).map_err(Error::NoFolder)?;
    Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
}

fn file_error(path: &Path, source: std::io::Error) -> Error {
    Error::File { path: path.to_owned(), source }
}
