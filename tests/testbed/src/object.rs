// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Objects of C sources that many tests load, such as those of `programs/xdp`. An object is cached
//! together with a list of the files it was made from, and made again when one of them has changed.

use crate::cache::Cache;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the object that clang, given with its options, makes from a source. For a source in a
/// temporary folder, call clang directly: the cached object would never be used again.
///
/// # Panics
/// If the compiler is missing or refuses the source.
pub fn object(source: &Path, compiler: Command) -> Vec<u8> {
    from(&Cache::of("objects"), source, compiler)
}

fn from(cache: &Cache, source: &Path, compiler: Command) -> Vec<u8> {
    let made = || {
        // The object contains the path of its source, which must not depend on the caller.
        let source = source.canonicalize()?;
        let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let content = (format!("{compiler:?}"), source.clone());
        let kept =
            cache.fresh_file(&name, &content, is_fresh, |path| make(path, &source, compiler))?;
        let kept = fs::read(kept)?;
        Ok::<_, io::Error>(kept[list_bytes(&kept).unwrap_or(0)..].to_vec())
    };
    made().unwrap_or_else(|error| panic!("{}: {error}", source.display()))
}

/// Makes an object, and puts the list of files before it.
fn make(path: &Path, source: &Path, mut compiler: Command) -> io::Result<()> {
    // clang lists headers one per line, after as many dots as they are nested.
    let output = compiler.args(["-H", "-c"]).arg(source).arg("-o").arg(path).output()?;
    let reported = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(io::Error::other(reported));
    }
    let header = |line| str::strip_prefix(line, '.')?.trim_start_matches('.').strip_prefix(' ');
    let mut files: BTreeSet<&str> = reported.lines().filter_map(header).collect();
    let program = program(&compiler);
    files.extend([source, &program].into_iter().filter_map(Path::to_str));
    fs::write(path, [stamped(files).as_bytes(), b"\n", &fs::read(path)?].concat())
}

/// Returns the compiler's file: another version is another file.
fn program(compiler: &Command) -> PathBuf {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&folders).map(|it| it.join(compiler.get_program()));
    places.find(|place| place.is_file()).unwrap_or_else(|| compiler.get_program().into())
}

/// Returns a line for each file: a stamp that changes with the file, and its name.
fn stamped<'f>(files: impl IntoIterator<Item = &'f str>) -> String {
    let stamp = |file: &str| {
        let it = fs::metadata(file).ok()?;
        Some((it.ino(), it.len(), it.mtime(), it.mtime_nsec()))
    };
    files.into_iter().map(|file| format!("{:?}\t{file}\n", stamp(file))).collect()
}

/// Returns whether no file has changed that an object was made from.
fn is_fresh(kept: &Path) -> bool {
    let Ok(kept) = fs::read(kept) else { return false };
    let list = list_bytes(&kept).and_then(|bytes| std::str::from_utf8(&kept[..bytes - 1]).ok());
    list.is_some_and(|list| {
        stamped(list.lines().filter_map(|line| Some(line.split_once('\t')?.1))) == list
    })
}

/// Returns the length of the list, including the empty line that ends it.
fn list_bytes(kept: &[u8]) -> Option<usize> {
    Some(kept.windows(2).position(|pair| pair == b"\n\n")? + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_made_again_when_a_header_has_changed() {
        let folder = std::env::temp_dir().join(format!("freeport-object-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let write = |name: &str, text: &str| {
            fs::write(folder.join(name), text).expect("it can be written");
        };
        write("it.c", "#include \"it.h\"\nint it = IT;\n");
        write("it.h", "#include \"other.h\"\n#define IT 7\n");
        write("other.h", "");
        // In place of clang: writes the sources, and lists the headers.
        let compiler = || {
            let mut command = Command::new("sh");
            let script = "cd \"$0\" && cat it.c it.h other.h > \"$5\" && echo made >> made \
                && echo \". $0/it.h\" >&2 && echo \".. $0/other.h\" >&2";
            command.args(["-c", script]).arg(&folder);
            command
        };
        let cache = Cache::of(&format!("objects-{}", std::process::id()));
        let object = || from(&cache, &folder.join("it.c"), compiler());
        let times =
            || fs::read_to_string(folder.join("made")).expect("it is there").lines().count();
        let first = object();
        assert!(first.starts_with(b"#include \"it.h\"\nint it = IT;\n"), "{first:?}");
        assert_eq!((object(), times()), (first.clone(), 1));
        write("other.h", "#undef IT\n");
        assert_ne!(object(), first);
        assert_eq!((object().len(), times()), (first.len() + 10, 2));
        write("it.h", "");
        assert_eq!((object().len() < first.len(), times()), (true, 3));
        fs::remove_dir_all(folder).expect("it is ours");
        fs::remove_dir_all(cache.path()).expect("it is ours");
    }
}
