// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Finds Verilator and its inputs. The build script and the tests share this module; neither uses
//! all of it.

#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest supported version.
const OLDEST: (u32, u32) = (5, 30);

/// An executable Verilator.
pub struct Verilator {
    program: PathBuf,
    /// `VERILATOR_ROOT` for it, if it is installed elsewhere than it was built for.
    root: Option<PathBuf>,
}

impl Verilator {
    /// Finds the one that `VERILATOR` names, else one on the path that is recent enough, else that
    /// of `scripts/install.sh`.
    pub fn find() -> Result<Self, String> {
        if let Some(program) = std::env::var_os("VERILATOR") {
            return Ok(Self { program: program.into(), root: None });
        }
        let on_path = Self { program: "verilator".into(), root: None };
        if on_path.version().is_some_and(|version| version >= OLDEST) {
            return Ok(on_path);
        }
        let home = PathBuf::from(std::env::var_os("HOME").unwrap_or_default());
        let installed = home.join(".cache/freeport/hardware-tools/lib");
        let versions = files(&installed, |name| name.starts_with("python3")).unwrap_or_default();
        for python in versions {
            let root = python.join("site-packages/verilator");
            let program = root.join("bin/verilator");
            if program.exists() {
                return Ok(Self { program, root: Some(root) });
            }
        }
        let (major, minor) = OLDEST;
        Err(format!(
            "the hardware is simulated by Verilator {major}.{minor:03} or later, which is neither \
             in VERILATOR, nor on the path, nor in {}: run `make tools`",
            installed.display()
        ))
    }

    /// Returns a command that calls it.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        if let Some(root) = &self.root {
            command.env("VERILATOR_ROOT", root);
        }
        command
    }

    /// Returns the folder of its own headers and sources.
    pub fn root(&self) -> Result<PathBuf, String> {
        if let Some(root) = &self.root {
            return Ok(root.clone());
        }
        let output = self.command().args(["--getenv", "VERILATOR_ROOT"]).output();
        let output = output.map_err(|error| format!("{}: {error}", self.program.display()))?;
        Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
    }

    /// Returns the line with its version.
    pub fn version_line(&self) -> Option<String> {
        let output = self.command().arg("--version").output().ok()?;
        String::from_utf8(output.stdout).ok().filter(|line| !line.is_empty())
    }

    fn version(&self) -> Option<(u32, u32)> {
        let text = self.version_line()?;
        let (major, minor) = text.split_whitespace().nth(1)?.split_once('.')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    }
}

/// Returns all modules of the processor, its package of constants first.
#[allow(dead_code)]
pub fn sources(hardware: &Path) -> Result<Vec<PathBuf>, String> {
    let mut sources = vec![];
    for folder in ["sephirot", "lib"] {
        sources.extend(files(&hardware.join(folder), |name| name.ends_with(".sv"))?);
    }
    sources.sort_by_key(|source| !source.to_string_lossy().ends_with("_pkg.sv"));
    Ok(sources)
}

/// Returns the flags with the folders of modules.
pub fn include_flags(hardware: &Path) -> Vec<String> {
    ["sephirot", "lib"].map(|folder| format!("-I{}", hardware.join(folder).display())).into()
}

/// Runs a command, which must succeed without output.
pub fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    Err(format!("{command:?} failed:\n{}", String::from_utf8_lossy(&said)))
}

/// Writes a C++ file that includes others.
pub fn write_together<'a>(
    file: &Path,
    others: impl Iterator<Item = &'a PathBuf>,
) -> Result<(), String> {
    let lines = others.map(|other| format!("#include \"{}\"\n", other.display()));
    let failed = |error: std::io::Error| format!("{}: {error}", file.display());
    std::fs::write(file, lines.collect::<String>()).map_err(failed)
}

/// Returns files of a folder with matching names, in order.
pub fn files(folder: &Path, is_wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name().to_str().is_some_and(&is_wanted) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
