// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The name of a node, which is in its folder.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use freeport_kv_cluster::NodeId;
use thiserror::Error;

/// Name of the file in the folder.
const FILE: &str = "node";

/// A folder has no name of a node, and gets none.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// The file cannot be read or written.
    #[error("cannot use {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The file has something else.
    #[error(
        "{} has no node id of 40 hexadecimal digits; restore it, or remove it to let the node join \
         the cluster as a new one",
        .0.display()
    )]
    Contents(PathBuf),
}

/// The name of the node whose folder this is. The first call makes one.
///
/// # Errors
/// See [`IdentityError`].
pub fn identity(folder: &Path) -> Result<NodeId, IdentityError> {
    let path = folder.join(FILE);
    match fs::read_to_string(&path) {
        Ok(text) => text.trim_end().parse().map_err(|_| IdentityError::Contents(path)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let id = NodeId::random();
            write(folder, &path, &format!("{id}\n"))
                .map_err(|error| IdentityError::File { path, error })?;
            Ok(id)
        }
        Err(error) => Err(IdentityError::File { path, error }),
    }
}

/// Writes the file so that it is there as a whole, or not at all.
///
/// # Errors
/// Those of the system.
pub fn write(folder: &Path, path: &Path, text: &str) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let draft = path.with_extension("new");
    let mut file = fs::File::create(&draft)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&draft, path)?;
    fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = identity(folder.path()).expect("a name is made");
        assert_eq!(identity(folder.path()).expect("it is read"), first);
        fs::write(folder.path().join(FILE), "something else").expect("a file");
        let error = identity(folder.path()).expect_err("it has no name");
        assert!(error.to_string().contains("40 hexadecimal digits"), "{error}");
    }
}
