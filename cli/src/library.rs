// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Where the element library is: the folders that were named, else the first of a few places that
//! exists, so that it is found from a clone, from a build and from an installed package alike.

use clap::Args;
use std::env;
use std::path::{Path, PathBuf};

/// Library folders on the command line.
#[derive(Args, Clone, Debug, Default)]
pub struct LibraryArguments {
    /// Folder of library elements; may be repeated [default: $FREEPORT_ELEMENTS, or the `elements`
    /// folder above the current folder or beside the program]
    #[arg(short = 'L', long = "library", value_name = "FOLDER")]
    folders: Vec<PathBuf>,
}

impl LibraryArguments {
    /// The folders, in the order they are searched; none if there is no library.
    pub fn folders(&self) -> Vec<PathBuf> {
        if !self.folders.is_empty() {
            return self.folders.clone();
        }
        if let Some(folders) = env::var_os("FREEPORT_ELEMENTS") {
            return env::split_paths(&folders).collect();
        }
        let here = env::current_dir().unwrap_or_default();
        let program = env::current_exe().unwrap_or_default();
        let installed = program.parent().map(|folder| folder.join("../share/freeport/elements"));
        let places = [above(&here), above(&program), installed];
        places.into_iter().flatten().find(|place| place.is_dir()).into_iter().collect()
    }
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
    fn named_folders_win() {
        let folders = vec![PathBuf::from("mine")];
        assert_eq!(LibraryArguments { folders: folders.clone() }.folders(), folders);
    }
}
