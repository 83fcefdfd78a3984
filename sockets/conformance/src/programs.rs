// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles the programs, once for each content.

use crate::case::{Case, Over};
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Compiler flags of every program.
const FLAGS: [&str; 5] = ["-O1", "-Wall", "-Werror", "-pthread", "-g"];

/// A compiled program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Name, without extension.
    pub name: String,
    /// Path of the executable.
    pub executable: PathBuf,
}

/// Sources that every program is linked with.
const SHARED: [&str; 4] = ["again", "basics", "case", "other"];

/// Compiles every `.c` file of `folder`, each together with the shared sources of `shared`, into a
/// file below `cache` whose name contains a hash of the inputs. If a program uses `static_path`, a
/// statically linked variant is put beside it, where the C library allows that.
///
/// # Errors
/// The compiler is missing, or its output.
pub fn compile(folder: &Path, shared: &Path, cache: &Path) -> io::Result<Vec<Program>> {
    fs::create_dir_all(cache)?;
    let mut sources: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    sources.retain(|path| path.extension().is_some_and(|ending| ending == "c"));
    let is_shared = |stem: &OsStr| SHARED.iter().any(|shared| stem == *shared);
    sources.retain(|path| path.file_stem().is_some_and(|stem| !is_shared(stem)));
    sources.sort();
    sources.iter().map(|source| compile_one(source, shared, cache)).collect()
}

fn compile_one(source: &Path, shared: &Path, cache: &Path) -> io::Result<Program> {
    let together = SHARED.map(|name| shared.join(name).with_extension("c"));
    let sources: Vec<&Path> = [source].into_iter().chain(together.iter().map(|it| &**it)).collect();
    let headers = ["again.h", "basics.h", "case.h"].map(|name| shared.join(name));
    link_as(source, &sources, &headers, cache)
}

/// Compiles all `.c` files of a folder, together with the shared sources of `programs`, into one
/// program that is named after the folder, in a file below `cache`.
///
/// # Errors
/// The compiler is missing, or its output.
pub fn compile_folder(folder: &Path, programs: &Path, cache: &Path) -> io::Result<Program> {
    fs::create_dir_all(cache)?;
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    files.sort();
    let has_ending = |file: &PathBuf, wanted| file.extension().is_some_and(|it| it == wanted);
    let mut headers: Vec<PathBuf> = files.extract_if(.., |file| has_ending(file, "h")).collect();
    files.retain(|file| has_ending(file, "c"));
    headers.push(programs.join("basics.h"));
    let basics = programs.join("basics.c");
    let main = folder.with_extension("c");
    let sources: Vec<&Path> = files.iter().chain([&basics]).map(|it| &**it).collect();
    link_as(&main, &sources, &headers, cache)
}

/// Links sources into a program named after a file, unless it exists in the cache.
fn link_as(
    named: &Path,
    sources: &[&Path],
    headers: &[PathBuf],
    cache: &Path,
) -> io::Result<Program> {
    let name = named.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut hasher = DefaultHasher::new();
    FLAGS.hash(&mut hasher);
    let mut asks_for_static = false;
    for input in sources.iter().copied().chain(headers.iter().map(|it| &**it)) {
        let content = fs::read(input)?;
        content.hash(&mut hasher);
        asks_for_static |=
            input == named && String::from_utf8_lossy(&content).contains("static_path()");
    }
    let executable = cache.join(format!("{name}-{:016x}", hasher.finish()));
    let compiler = || {
        let mut compiler = Command::new("cc");
        let folders = headers.iter().filter_map(|header| header.parent());
        compiler.args(FLAGS).args(folders.map(|it| format!("-I{}", it.display()))).args(sources);
        compiler
    };
    if !executable.exists() {
        if asks_for_static {
            let beside = cache.join(format!("{name}-{:016x}-static", hasher.finish()));
            // If the C library cannot be linked statically, the cases run without it.
            _ = link(compiler().arg("-static"), &beside);
        }
        link(&mut compiler(), &executable)?;
    }
    Ok(Program { name, executable })
}

/// Runs the compiler with a temporary output file: other tests may write the same file.
fn link(compiler: &mut Command, file: &Path) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let unfinished = file.with_extension(format!("{}-{number}", std::process::id()));
    let output = compiler.arg("-o").arg(&unfinished).output()?;
    if !output.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()));
    }
    fs::rename(&unfinished, file)
}

impl Program {
    /// Lists the program's cases, each once per kind of connection it runs over.
    ///
    /// # Errors
    /// The program cannot be run, or its list is malformed.
    pub fn cases(&self) -> io::Result<Vec<Case>> {
        let output = Command::new(&self.executable).arg("--list").output()?;
        let mut cases = vec![];
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            let parsed = line
                .split_once(' ')
                .and_then(|(name, flags)| Some((name.to_owned(), flags.parse::<u32>().ok()?)));
            let (name, flags) = parsed.ok_or_else(|| io::Error::other(line.to_owned()))?;
            cases.extend(Over::of(flags).map(|over| Case {
                name: name.clone(),
                over,
                program: self.name.clone(),
                executable: self.executable.clone(),
                flags,
            }));
        }
        Ok(cases)
    }
}
