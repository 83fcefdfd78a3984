// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The location of the sockets library, and the value of `LD_PRELOAD` that loads it.

use anyhow::bail;
use freeport_native::own;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// File name of the library.
const NAME: &str = "libfreeport_preload.so";
/// The environment variable with its path.
const VARIABLE: &str = "FREEPORT_PRELOAD";
/// The variable that the dynamic loader reads.
const LOADER: &str = "LD_PRELOAD";

/// The library embedded in this executable; empty unless it was built for a release.
const CARRIED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libfreeport_preload.so"));

/// Finds the library: `$FREEPORT_PRELOAD`, else beside this executable, else in `../lib/freeport`,
/// else the embedded one, which is extracted into the user's [cache](own::cache).
///
/// Every accelerated program runs its code, so only this user and root may have write access to it
/// and to its folder.
///
/// # Errors
/// The library is not found, its path cannot be passed to the loader, or other users have write
/// access.
pub fn library() -> anyhow::Result<PathBuf> {
    if let Some(path) = env::var_os(VARIABLE).filter(|it| !it.is_empty()).map(PathBuf::from) {
        if !path.is_file() {
            bail!("{VARIABLE} is {}, which is not a file", path.display());
        }
        return usable(&path);
    }
    let executable = env::current_exe()?;
    let folder = executable.parent().unwrap_or(Path::new("/"));
    let places = [folder.join(NAME), folder.join("../lib/freeport").join(NAME)];
    match places.iter().find(|path| path.is_file()) {
        Some(path) => usable(path),
        None if !CARRIED.is_empty() => usable(&unpack(CARRIED, &own::cache()?)?),
        None => bail!(
            "{NAME} is neither in {} nor in ../lib/freeport from there; build it with \
             `cargo build --release -p freeport-preload`, or set {VARIABLE} to where it is",
            folder.display()
        ),
    }
}

/// Extracts the library into a folder, under a name with a hash of its content, unless it is there
/// already. All users may read it: programs of this user may start programs of others.
fn unpack(library: &[u8], folder: &Path) -> anyhow::Result<PathBuf> {
    let mut hasher = DefaultHasher::new();
    library.hash(&mut hasher);
    let path = folder.join(format!("{:016x}-{NAME}", hasher.finish()));
    if own::read(&path)?.is_some_and(|found| found == library) {
        return Ok(path);
    }
    let unfinished = path.with_extension(format!("{}.so", std::process::id()));
    fs::write(&unfinished, library)?;
    fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o644))?;
    fs::rename(&unfinished, &path)?;
    Ok(path)
}

/// Checks the permissions and the format of a library, and that the loader can take its path.
fn usable(path: &Path) -> anyhow::Result<PathBuf> {
    let path = path.canonicalize()?;
    own::check(&path)?;
    own::check(path.parent().unwrap_or(Path::new("/")))?;
    if !is_shared_object(&path)? {
        bail!("{}: not a shared library for this machine", path.display());
    }
    reachable(path)
}

/// Whether the loader would load a file. For other files it prints an error in each program that is
/// started, and continues without the library.
fn is_shared_object(path: &Path) -> io::Result<bool> {
    let mut header = vec![];
    fs::File::open(path)?.take(ELF_HEADER_BYTES).read_to_end(&mut header)?;
    let mut own = vec![];
    fs::File::open("/proc/self/exe")?.take(ELF_HEADER_BYTES).read_to_end(&mut own)?;
    // Class, byte order and machine must match this program, and the type must be that of shared
    // objects.
    let alike = |range: Range<usize>| header.get(range.clone()) == own.get(range);
    let kind = header.get(16..18).and_then(|it| Some(u16::from_ne_bytes(it.try_into().ok()?)));
    Ok(alike(0..6) && alike(18..20) && kind == Some(libc::ET_DYN))
}

/// Number of bytes of an ELF header that are compared.
const ELF_HEADER_BYTES: u64 = 20;

fn reachable(path: PathBuf) -> anyhow::Result<PathBuf> {
    if path.as_os_str().as_bytes().iter().any(|byte| b" :\t\n".contains(byte)) {
        bail!(
            "{}: the loader does not accept paths with spaces or colons; set {VARIABLE} to \
             another path",
            path.display()
        );
    }
    Ok(path)
}

/// The new value of `LD_PRELOAD`: the current one, and then the library, which is thus nearest to
/// the C library.
pub fn loader_value(library: &Path) -> (&'static str, OsString) {
    (LOADER, appended(env::var_os(LOADER).as_deref(), library.as_os_str()))
}

fn appended(before: Option<&OsStr>, library: &OsStr) -> OsString {
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
        let given = |before: Option<&str>| appended(before.map(OsStr::new), OsStr::new("/l.so"));
        assert_eq!(given(None), "/l.so");
        assert_eq!(given(Some("")), "/l.so");
        assert_eq!(given(Some("/a.so b.so")), "/a.so b.so:/l.so");
        assert_eq!(given(Some("/a.so:/l.so")), "/a.so:/l.so");
    }

    #[test]
    fn a_path_that_the_loader_would_cut_is_refused() {
        let error = reachable("/a b/l.so".into()).unwrap_err();
        assert!(error.to_string().contains("FREEPORT_PRELOAD"));
        assert!(reachable("/a:b/l.so".into()).is_err());
        assert_eq!(reachable("/ab/l.so".into()).unwrap(), Path::new("/ab/l.so"));
    }

    #[test]
    fn a_library_that_is_carried_is_put_down_once_and_mended() {
        let folder = tempfile::tempdir().unwrap();
        let path = unpack(b"a library", folder.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"a library");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
        fs::write(&path, "half of").unwrap();
        assert_eq!(unpack(b"a library", folder.path()).unwrap(), path);
        assert_eq!(fs::read(&path).unwrap(), b"a library");
        assert_ne!(unpack(b"another one", folder.path()).unwrap(), path);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_is_no_library_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        for content in ["", "code", "\x7fELF\x02\x01 and nothing more"] {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            let error = usable(&path).unwrap_err().to_string();
            assert!(error.ends_with(": not a shared library for this machine"), "{error}");
        }
    }

    #[test]
    fn a_library_that_others_may_write_to_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(NAME);
        fs::copy("/proc/self/exe", &path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(usable(&path).unwrap(), path.canonicalize().unwrap());
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = usable(&path).unwrap_err().to_string();
        assert!(error.contains("may be written to by others (mode 777)"), "{error}");
    }
}
