// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Determines the binaries that need not run again: those that passed, without a skip, with the
//! same binary, the same command and library, the same files of the repository except Rust sources,
//! the same environment and the same machine. Continuous integration and `--again` run everything.

use crate::arguments::Arguments;
use crate::artifacts::{Artifacts, Binary};
use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders with programs that tests start.
const PROGRAMS: [&str; 3] = ["/usr/bin", "/usr/sbin", "/usr/local/bin"];
/// Binary whose tests also read the Rust sources.
const READS_SOURCES: &str = "tests::tidy";

/// Results of earlier runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unchanged {
    file: PathBuf,
    passed: BTreeSet<String>,
    /// Hashes of everything that any test may use, and of the Rust sources; `None`: everything
    /// runs.
    common: Option<[u64; 2]>,
}

impl Unchanged {
    /// Reads the results of earlier runs. If they cannot be read, everything runs.
    pub fn read(folder: &Path, top: &Path, artifacts: &Artifacts, arguments: &Arguments) -> Self {
        let file = folder.join("passed");
        let text = fs::read_to_string(&file).unwrap_or_default();
        let is_usual = *arguments == Arguments { list: arguments.list, ..Arguments::default() };
        let is_counted = is_usual && std::env::var_os("CI").is_none();
        let common = if is_counted { common(top, artifacts) } else { None };
        Self { file, passed: text.lines().map(str::to_owned).collect(), common }
    }

    /// Returns whether a binary need not run.
    pub fn has_passed(&self, binary: &Binary) -> bool {
        self.key(binary).is_some_and(|key| self.passed.contains(&key))
    }

    /// Records the binaries that passed in this run, where all their tests ran.
    pub fn note(&self, passed: &[&Binary]) {
        let passed = passed.iter().filter_map(|binary| self.key(binary));
        let passed: BTreeSet<String> = self.passed.iter().cloned().chain(passed).collect();
        // Outdated keys match nothing; without the file everything runs.
        let lines: Vec<&str> = passed.iter().map(String::as_str).collect();
        let _ = fs::write(&self.file, lines.join("\n"));
    }

    fn key(&self, binary: &Binary) -> Option<String> {
        let [common, sources] = self.common?;
        let mut hasher = DefaultHasher::new();
        (common, (binary.name() == READS_SOURCES).then_some(sources)).hash(&mut hasher);
        stamp(&binary.executable)?.hash(&mut hasher);
        Some(format!("{} {:016x}", binary.name(), hasher.finish()))
    }
}

/// Hashes everything that any test may use, and the Rust sources.
fn common(top: &Path, artifacts: &Artifacts) -> Option<[u64; 2]> {
    let mut hashers = [DefaultHasher::new(), DefaultHasher::new()];
    let mut git = Command::new("git");
    git.current_dir(top).args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    let output = git.output().ok().filter(|output| output.status.success())?;
    for path in String::from_utf8(output.stdout).ok()?.split_terminator('\0') {
        let is_source = path.ends_with(".rs") || path.ends_with("Cargo.toml");
        // A removed file has no stamp, and its name disappears with the commit.
        (path, stamp(&top.join(path))).hash(&mut hashers[usize::from(is_source)]);
    }
    let [all, sources] = &mut hashers;
    for path in [&artifacts.command, &artifacts.library] {
        stamp(path)?.hash(all);
    }
    for folder in PROGRAMS {
        stamp(Path::new(folder)).hash(all);
    }
    fs::read_to_string("/proc/version").ok()?.hash(all);
    let mut variables: Vec<_> = std::env::vars_os()
        .filter(|(name, _)| name.to_string_lossy().starts_with("FREEPORT_"))
        .collect();
    variables.sort();
    variables.hash(all);
    Some([all.finish(), sources.finish()])
}

/// Returns a value that changes with the file.
fn stamp(path: &Path) -> Option<(u64, i64, i64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.mtime(), metadata.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_runs_again_when_it_or_what_it_uses_has_changed() {
        let folder = std::env::temp_dir().join(format!("freeport-passed-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let executable = folder.join("binary");
        fs::write(&executable, "one").expect("it can be written");
        let [other, tidy] = [("cli", "help"), ("tests", "tidy")].map(|(package, target)| Binary {
            package: package.into(),
            target: target.into(),
            folder: folder.clone(),
            executable: executable.clone(),
        });
        let file = folder.join("passed");
        let read = |common| {
            let text = fs::read_to_string(&file).unwrap_or_default();
            let passed = text.lines().map(str::to_owned).collect();
            Unchanged { file: file.clone(), passed, common }
        };
        assert!(!read(Some([1, 2])).has_passed(&other));
        read(Some([1, 2])).note(&[&other, &tidy]);
        assert!(read(Some([1, 2])).has_passed(&other) && read(Some([1, 2])).has_passed(&tidy));
        // Sources matter only to the test that reads them; everything else to all.
        assert!(read(Some([1, 3])).has_passed(&other) && !read(Some([1, 3])).has_passed(&tidy));
        assert!(!read(Some([2, 2])).has_passed(&other));
        assert!(!read(None).has_passed(&other), "nothing is left out where all has to run");
        fs::write(&executable, "another").expect("it can be written");
        assert!(!read(Some([1, 2])).has_passed(&other));
        fs::remove_dir_all(folder).expect("it is ours");
    }
}
