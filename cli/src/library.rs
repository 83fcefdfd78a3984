// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Location of the element library: the folders on the command line, then those of the environment
//! or, without any, the first default place that exists. It is found from a clone, from a build and
//! from an installed package.

use clap::Args;
use std::collections::HashSet;
use std::env;
use std::path::{Path, PathBuf};

/// Library folders on the command line.
#[derive(Args, Clone, Debug, Default)]
pub struct LibraryArguments {
    /// Folder of library elements, searched before $FREEPORT_ELEMENTS; may be repeated. Without
    /// that variable, the last folder is `elements` above the current folder or above that of the
    /// command
    #[arg(short = 'L', long = "library", value_name = "FOLDER")]
    folders: Vec<PathBuf>,
}

impl LibraryArguments {
    /// The folders in search order; empty if there is no library.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders = self.folders.clone();
        match env::var_os("FREEPORT_ELEMENTS") {
            Some(more) => folders.extend(env::split_paths(&more)),
            None => folders.extend(usual_place()),
        }
        // A folder that is named twice is searched once.
        let mut seen = HashSet::new();
        folders.retain(|folder| seen.insert(folder.canonicalize().unwrap_or(folder.clone())));
        folders
    }
}

/// The first default place that exists.
fn usual_place() -> Option<PathBuf> {
    let here = env::current_dir().unwrap_or_default();
    let program = env::current_exe().unwrap_or_default();
    let installed = program.parent().map(|folder| folder.join("../share/freeport/elements"));
    let places = [above(&here), above(&program), installed];
    places.into_iter().flatten().find(|place| place.is_dir())
}

/// The nearest `elements` folder of a Freeport clone that holds `start`.
fn above(start: &Path) -> Option<PathBuf> {
    let mut folders = start.ancestors().map(|folder| folder.join("elements"));
    folders.find(|folder| folder.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_of_the_nearest_clone_is_found() {
        let top = tempfile::tempdir().unwrap();
        let deep = top.path().join("target/release");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir(top.path().join("elements")).unwrap();
        assert_eq!(above(&deep.join("freeport")), Some(top.path().join("elements")));
    }

    #[test]
    fn named_folders_come_first_and_once() {
        let top = tempfile::tempdir().unwrap();
        let mine = top.path().to_owned();
        let twice = vec![mine.clone(), mine.join("."), "nowhere".into()];
        let folders = LibraryArguments { folders: twice }.folders();
        assert_eq!(folders[..2], [mine, "nowhere".into()]);
        assert!(folders.len() > 2, "the library of this clone stays: {folders:?}");
    }
}
