// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The folder that results are written to.

use anyhow::{Context, Result, ensure};
use std::path::Path;

/// Makes it, if it is not there.
///
/// # Errors
/// It is a file, or cannot be made.
pub fn make(folder: &Path) -> Result<()> {
    ensure!(!folder.is_file(), "{} is a file, not a folder", folder.display());
    std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))
}

/// Writes a file in it.
///
/// # Errors
/// It cannot be written.
pub fn save(folder: &Path, name: &str, text: String) -> Result<()> {
    let path = folder.join(name);
    std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}
