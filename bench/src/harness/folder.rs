// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folder that results are written to.

use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Creates the folder if it does not exist.
///
/// # Errors
/// The path is a file, or the folder cannot be created.
pub fn make(folder: &Path) -> Result<()> {
    ensure!(!folder.is_file(), "{} is a file, not a folder", folder.display());
    std::fs::create_dir_all(folder)
        .with_context(|| format!("{} cannot be created", folder.display()))
}

/// Writes a file in the folder.
///
/// # Errors
/// The file cannot be written.
pub fn save(folder: &Path, name: &str, text: String) -> Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}
