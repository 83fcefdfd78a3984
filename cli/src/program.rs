// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Loading of a program named on the command line.

use anyhow::{Context, bail};
use freeport_ir::{Program, text};
use std::fs;
use std::path::Path;

/// Loads the program at `path`: the text form of the IR (`.ir`).
///
/// # Errors
/// A file that cannot be read, or that is no program; the message has the place.
pub fn load(path: &Path) -> anyhow::Result<Program> {
    let source =
        fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    if path.extension().is_some_and(|extension| extension == "cnp") {
        bail!(
            "{}: this version checks .cnp programs (`freeport check`) but does not translate them \
             yet; give the text form of the IR, a .ir file",
            path.display()
        );
    }
    let mut program =
        text::parse(&source).map_err(|error| anyhow::anyhow!("{}:{error}", path.display()))?;
    if program.name.is_empty() {
        program.name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    }
    Ok(program)
}
