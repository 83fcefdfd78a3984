// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Builds every test binary, the command and the sockets library, by one call of cargo.

use anyhow::{Context, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Size above which the cache of what tests build is emptied.
const CACHE_BYTES_MAX: u64 = 4 << 30;

/// A test binary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Binary {
    /// Package name, without the common prefix `freeport-`.
    pub package: String,
    /// Target: `lib` for unit tests, `bin` for those of a command, otherwise the test's name.
    pub target: String,
    /// Folder of the package, in which its tests run.
    pub folder: PathBuf,
    pub executable: PathBuf,
}

impl Binary {
    /// Returns `package::target`.
    pub fn name(&self) -> String {
        format!("{}::{}", self.package, self.target)
    }
}

/// Everything a run needs.
#[derive(Clone, Debug)]
pub struct Artifacts {
    pub binaries: Vec<Binary>,
    /// Path of the sockets library.
    pub library: PathBuf,
    /// Path of the command.
    pub command: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
    pub cargo: String,
}

impl Artifacts {
    /// Builds everything. Cargo's own messages go to standard error.
    ///
    /// # Errors
    /// Cargo cannot be started, or something does not compile.
    pub fn build(top: &Path) -> anyhow::Result<Self> {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
        let mut command = Command::new(&cargo);
        command.current_dir(top).args(["build", "--locked", "--workspace", "--all-targets"]);
        command.arg("--message-format=json-render-diagnostics");
        let mut child =
            command.stdout(Stdio::piped()).spawn().with_context(|| format!("{cargo} build"))?;
        let mut built = Built::default();
        let output = child.stdout.take().context("cargo's output is piped")?;
        for line in BufReader::new(output).lines() {
            if let Ok(message) = serde_json::from_str(&line?) {
                built.add(&message);
            }
        }
        if !child.wait()?.success() {
            bail!("the tests do not compile");
        }
        let Built { mut binaries, library, command } = built;
        binaries.sort_by_key(Binary::name);
        let command = command.context("cargo built no command `freeport`")?;
        // target/debug/freeport
        let target = command.ancestors().nth(2).context("a target folder")?.to_owned();
        let library = library.context("cargo built no library `freeport_preload`")?;
        Ok(Self { binaries, library, command, target, cargo })
    }

    /// Folder in which tests keep what they build.
    pub fn cache(&self) -> PathBuf {
        self.target.join("test-cache")
    }

    /// Empties the cache if it has grown large: outdated entries stay in it otherwise.
    pub fn bound_cache(&self) {
        if bytes_below(&self.cache()) > CACHE_BYTES_MAX {
            // Files that cannot be removed are in use, or are removed next time.
            let _ = std::fs::remove_dir_all(self.cache());
        }
    }
}

fn bytes_below(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

#[derive(Default)]
struct Built {
    binaries: Vec<Binary>,
    library: Option<PathBuf>,
    command: Option<PathBuf>,
}

impl Built {
    /// Handles a message of cargo.
    fn add(&mut self, message: &Value) {
        if message["reason"] != "compiler-artifact" {
            return;
        }
        let name = message["target"]["name"].as_str().unwrap_or_default();
        let kind = message["target"]["kind"][0].as_str().unwrap_or_default();
        let executable = message["executable"].as_str().map(PathBuf::from);
        if message["profile"]["test"] == true {
            self.binaries.extend(executable.and_then(|it| binary(message, name, kind, it)));
        } else if name == "freeport" && kind == "bin" {
            self.command = executable;
        } else if name == "freeport_preload" {
            let files = message["filenames"].as_array().into_iter().flatten();
            let mut files = files.filter_map(Value::as_str);
            self.library = files.find(|file| file.ends_with(".so")).map(PathBuf::from);
        }
    }
}

fn binary(message: &Value, name: &str, kind: &str, executable: PathBuf) -> Option<Binary> {
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    // path+file:///somewhere/cli#freeport-cli@0.1.0, or …/ring#0.1.0 where the folder has the name.
    let (path, id) = message["package_id"].as_str()?.rsplit_once('#')?;
    let package = match id.split_once('@') {
        Some((package, _)) => package,
        None => path.rsplit('/').next()?,
    };
    let package = package.strip_prefix("freeport-").unwrap_or(package).to_owned();
    let target = match kind {
        "test" => name,
        "bin" => "bin",
        _ => "lib",
    };
    Some(Binary { package, target: target.to_owned(), folder, executable })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_of_cargo_name_binaries_command_and_library() {
        let mut built = Built::default();
        let artifact = |id: &str, name: &str, kind: &str, test: bool, executable: Option<&str>| {
            json!({
                "reason": "compiler-artifact", "package_id": id, "executable": executable,
                "manifest_path": "/top/cli/Cargo.toml", "profile": {"test": test},
                "target": {"name": name, "kind": [kind]},
                "filenames": ["/t/debug/libfreeport_preload.so"],
            })
        };
        let cli = "path+file:///top/cli#freeport-cli@0.1.0";
        built.add(&artifact(cli, "freeport", "bin", false, Some("/t/debug/freeport")));
        built.add(&artifact(cli, "freeport", "bin", true, Some("/t/debug/deps/freeport-1")));
        built.add(&artifact(cli, "help", "test", true, Some("/t/debug/deps/help-1")));
        built.add(&artifact("path+file:///top/it#0.1.0", "x", "lib", true, Some("/t/x-1")));
        built.add(&artifact("registry+…#libc@0.2.0", "libc", "lib", false, None));
        built.add(&artifact(cli, "freeport_preload", "cdylib", false, None));
        built.add(&json!({"reason": "build-finished"}));
        let names: Vec<_> = built.binaries.iter().map(Binary::name).collect();
        assert_eq!(names, ["cli::bin", "cli::help", "it::lib"]);
        assert_eq!(built.command.as_deref(), Some(Path::new("/t/debug/freeport")));
        assert_eq!(built.library.as_deref(), Some(Path::new("/t/debug/libfreeport_preload.so")));
    }
}
