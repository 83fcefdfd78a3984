// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The element library: folders of source files, and an index of the elements they define.

use crate::lexer::{Token, tokens_of};
use crate::source::{SourceMap, without_mark};
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum size of a source file, in bytes.
pub const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum depth of nested folders that are searched.
const FOLDER_DEPTH_MAX: u32 = 8;

/// Index of the files that define elements and groups.
#[derive(Debug, Default)]
pub struct Index(HashMap<String, PathBuf>);

impl Index {
    /// Indexes every `.cnp` file below `folders`. If two define the same name, the one in the
    /// earlier folder takes precedence, then the one with the lesser path. Unreadable files are
    /// skipped.
    pub fn of(folders: &[PathBuf]) -> Self {
        let mut index = Self::default();
        for folder in folders {
            let mut files = vec![];
            collect(folder, 0, &mut files);
            files.sort();
            for path in files {
                index.add(&path);
            }
        }
        index
    }

    /// Returns every name that a file defines.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the file that defines `name`.
    pub fn file_of(&self, name: &str) -> Option<&Path> {
        self.0.get(name).map(PathBuf::as_path)
    }

    fn add(&mut self, path: &Path) {
        let Ok(text) = read(path) else { return };
        let mut sources = SourceMap::default();
        let file = sources.add(path, text);
        // Errors are reported when the file is compiled.
        let tokens = tokens_of(&sources, file, &mut vec![]);
        for name in tokens.windows(3).filter_map(defined) {
            self.0.entry(name.to_string()).or_insert_with(|| path.to_path_buf());
        }
    }
}

/// Returns the name that `.element name` or `group name <or (` defines.
fn defined(tokens: &[Token]) -> Option<&str> {
    let word = |at: usize| tokens[at].name();
    if tokens[0].is_mark(".") && word(1) == Some("element") {
        return word(2);
    }
    let opens = tokens[2].is_mark("(") || tokens[2].is_mark("<");
    if word(0) == Some("group") && opens { word(1) } else { None }
}

fn collect(folder: &Path, depth: u32, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            if depth < FOLDER_DEPTH_MAX {
                collect(&path, depth + 1, files);
            }
        } else if path.extension().is_some_and(|extension| extension == "cnp") {
            files.push(path);
        }
    }
}

/// Reads the text of a source file.
///
/// # Errors
/// A message: the file does not exist, is not a plain file, is too large, or is not UTF-8.
pub fn read(path: &Path) -> Result<String, String> {
    let meta = fs::metadata(path).map_err(|error| error.to_string())?;
    // Reading a device or a pipe might never end.
    if !meta.is_file() {
        return Err("it is not a plain file".into());
    }
    if meta.len() > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text")?;
    Ok(without_mark(&text).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_groups_are_found_wherever_they_are() {
        let top = tempfile::tempdir().unwrap();
        fs::create_dir_all(top.path().join("basic/deep")).unwrap();
        let file = top.path().join("basic/deep/a.cnp");
        fs::write(&file, "/* .element No */ .element A (->) { } group B <uint N> (->) { }")
            .unwrap();
        fs::write(top.path().join("notes.txt"), ".element C").unwrap();
        let index = Index::of(&[top.path().to_path_buf(), "/nowhere/at/all".into()]);
        assert_eq!(index.file_of("A"), Some(file.as_path()));
        assert_eq!(index.file_of("B"), Some(file.as_path()));
        assert_eq!((index.file_of("No"), index.file_of("C")), (None, None));
    }

    #[test]
    fn what_is_no_text_file_is_refused() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("bytes.cnp");
        fs::write(&file, [0xff, 0xfe]).unwrap();
        assert_eq!(read(&file), Err("it is not UTF-8 text".into()));
        assert_eq!(read(top.path()), Err("it is not a plain file".into()));
        assert!(read(&top.path().join("none")).is_err());
    }
}
