// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the library is that programs are given, and how they are given it.

use anyhow::bail;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What it is called.
const NAME: &str = "libfreeport_preload.so";
/// The variable of the environment that says where it is.
const VARIABLE: &str = "FREEPORT_PRELOAD";
/// The variable that the loader of programs reads.
const LOADER: &str = "LD_PRELOAD";

/// The library: `$FREEPORT_PRELOAD`, else beside this executable, else in `../lib/freeport`.
///
/// # Errors
/// It is nowhere, or where the loader cannot be told.
pub fn library() -> anyhow::Result<PathBuf> {
    if let Some(path) = env::var_os(VARIABLE).filter(|it| !it.is_empty()).map(PathBuf::from) {
        if !path.is_file() {
            bail!("{VARIABLE} is {}, where there is no file", path.display());
        }
        return usable(std::path::absolute(path)?);
    }
    let executable = env::current_exe()?;
    let folder = executable.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(NAME), folder.join("../lib/freeport").join(NAME)];
    match places.iter().find(|path| path.is_file()) {
        Some(path) => usable(path.canonicalize()?),
        None => bail!(
            "{NAME} is neither in {} nor in ../lib/freeport from there; build it with \
             `cargo build --release -p freeport-preload`, or set {VARIABLE} to where it is",
            folder.display()
        ),
    }
}

/// The loader takes spaces and colons for the end of a path.
fn usable(path: PathBuf) -> anyhow::Result<PathBuf> {
    if path.as_os_str().as_bytes().iter().any(|byte| b" :\t\n".contains(byte)) {
        bail!(
            "{}: the loader takes no path with spaces or colons; set {VARIABLE} to another",
            path.display()
        );
    }
    Ok(path)
}

/// What `LD_PRELOAD` is to be: what it is, and then the library, which so is the one that is
/// nearest to the C library.
pub fn loader_value(library: &Path) -> (&'static str, OsString) {
    (LOADER, behind(env::var_os(LOADER).as_deref(), library.as_os_str()))
}

fn behind(before: Option<&OsStr>, library: &OsStr) -> OsString {
    let Some(before) = before.filter(|it| !it.is_empty()) else { return library.to_owned() };
    let mut parts = before.as_bytes().split(|byte| b" :".contains(byte));
    if parts.any(|part| part == library.as_bytes()) {
        return before.to_owned();
    }
    let mut all = before.to_owned();
    all.push(":");
    all.push(library);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_comes_behind_what_is_there_and_once() {
        let given = |before: Option<&str>| behind(before.map(OsStr::new), OsStr::new("/l.so"));
        assert_eq!(given(None), "/l.so");
        assert_eq!(given(Some("")), "/l.so");
        assert_eq!(given(Some("/a.so b.so")), "/a.so b.so:/l.so");
        assert_eq!(given(Some("/a.so:/l.so")), "/a.so:/l.so");
    }

    #[test]
    fn a_path_that_the_loader_would_cut_is_refused() {
        assert!(usable("/a b/l.so".into()).unwrap_err().to_string().contains("FREEPORT_PRELOAD"));
        assert!(usable("/a:b/l.so".into()).is_err());
        assert_eq!(usable("/ab/l.so".into()).unwrap(), Path::new("/ab/l.so"));
    }
}
