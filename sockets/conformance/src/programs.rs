// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiling the programs, once for each content.

use crate::case::{Case, Over};
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsStr;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// What every program is compiled with.
const FLAGS: [&str; 5] = ["-O1", "-Wall", "-Werror", "-pthread", "-g"];

/// A compiled program.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name, without an ending.
    pub name: String,
    /// The executable file.
    pub executable: PathBuf,
}

/// What every program has in common.
const SHARED: [&str; 4] = ["again", "basics", "case", "other"];

/// Compiles every `.c` file of `folder`, each together with those of `shared`, to a file below
/// `cache` that is named after what went into it. Beside one that asks for it (`static_path`) lies
/// the same linked statically, if the C library can be had for that.
///
/// # Errors
/// A compiler that is not there, or what it says.
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

/// Compiles all `.c` files of a folder, and those that `programs` has for everybody, to one program
/// that is named after the folder, in a file below `cache`.
///
/// # Errors
/// A compiler that is not there, or what it says.
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

/// Links sources to a program with the name of a file, if they were not before.
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
            // Where the C library cannot be linked statically, its cases go without.
            _ = link(compiler().arg("-static"), &beside);
        }
        link(&mut compiler(), &executable)?;
    }
    Ok(Program { name, executable })
}

/// Lets the compiler make a file, elsewhere first: other tests may be at the same one.
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
    /// The cases that it says it has, each as often as there is something that it runs over.
    ///
    /// # Errors
    /// It cannot be run, or lists something else.
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
