// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Runs the bench of each module: `hardware/sephirot/X.bench.cpp` for module `X`, whose first lines
//! name the top module and its parameters:
//!
//! ```text
//! // top: X
//! // parameters: -GLANES=4
//! ```

use crate::verilator;
use crate::verilator::Verilator;
use freeport_testbed::cache::Cache;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Lines of a bench that may contain its build settings.
const HEADER_LINES: usize = 30;
/// Compiler flags. Headers are most of the work, so optimisation is limited to what pays off.
const FLAGS: [&str; 5] = ["-std=c++17", "-O1", "-w", "-pthread", "-DVL_TIME_CONTEXT"];
/// Verilator's own sources, which are linked with each bench.
const RUN_TIME: [&str; 2] = ["verilated.cpp", "verilated_threads.cpp"];

#[test]
fn every_module_keeps_its_contract() {
    let hardware = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../hardware");
    let only = std::env::var("FREEPORT_CASES").ok();
    let mut benches = vec![];
    for folder in ["sephirot", "lib"] {
        let folder = hardware.join(folder);
        benches.extend(verilator::files(&folder, |name| name.ends_with(".bench.cpp")).unwrap());
    }
    benches.retain(|bench| {
        only.as_ref().is_none_or(|only| bench.to_string_lossy().contains(only.as_str()))
    });
    assert!(!benches.is_empty());
    let builder = Builder::new(&hardware).unwrap_or_else(|error| panic!("{error}"));
    let failures: Vec<String> =
        benches.iter().filter_map(|bench| builder.run(bench).err()).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Builds benches, each once for the same inputs.
struct Builder {
    hardware: PathBuf,
    verilator: Verilator,
    cache: Cache,
    /// Objects of Verilator's own sources.
    run_time: Vec<PathBuf>,
    /// All dependencies of benches: sources of the hardware and of benches.
    content: Vec<(String, String)>,
}

impl Builder {
    fn new(hardware: &Path) -> Result<Self, String> {
        let verilator = Verilator::find()?;
        let mut builder = Self {
            hardware: hardware.to_owned(),
            verilator,
            cache: Cache::of("benches"),
            run_time: vec![],
            content: content(hardware)?,
        };
        let sources = RUN_TIME.map(|name| builder.include().map(|folder| folder.join(name)));
        for source in sources {
            let source = source?;
            let key = (source.display().to_string(), builder.version()?, FLAGS);
            let object = builder.cache.file("run-time.o", &key, |object| {
                let mut command = builder.compiler()?;
                run(command.arg("-c").arg(&source).arg("-o").arg(object))
            });
            builder.run_time.push(object.map_err(|error| error.to_string())?);
        }
        Ok(builder)
    }

    /// Builds a bench if needed, and runs it.
    fn run(&self, bench: &Path) -> Result<(), String> {
        let failed = |reason: String| format!("{}: {reason}", bench.display());
        let text = std::fs::read_to_string(bench).map_err(|error| failed(error.to_string()))?;
        let key = (bench.file_name(), &self.content, self.version()?, FLAGS);
        let program = self.cache.file("bench", &key, |program| self.build(bench, &text, program));
        let program = program.map_err(|error| failed(error.to_string()))?;
        verilator::run(&mut Command::new(program)).map_err(failed)
    }

    fn build(&self, bench: &Path, text: &str, program: &Path) -> io::Result<()> {
        let header = |name: &str| {
            let lines = text.lines().take(HEADER_LINES);
            lines.filter_map(|line| line.strip_prefix(&format!("// {name}: "))).next()
        };
        let top = header("top").ok_or_else(|| io::Error::other("no line `// top: X`"))?;
        let folder = tempfile::tempdir()?;
        let mut command = self.verilator.command();
        command.args(["--cc", "-O3", "--no-timing", "--assert", "--top-module", top]);
        command.args(["--prefix", "Vtop", "--Mdir"]).arg(folder.path());
        command.args(verilator::include_flags(&self.hardware));
        command.args(header("parameters").unwrap_or_default().split_whitespace());
        // Submodules are found by their names.
        let mut sources = vec![self.hardware.join("sephirot/sephirot_pkg.sv")];
        for folder in ["sephirot", "lib"] {
            sources.push(self.hardware.join(folder).join(format!("{top}.sv")));
        }
        sources.retain(|source| source.exists());
        run(command.args(sources))?;
        let made = verilator::files(folder.path(), |name| name.ends_with(".cpp"));
        let together = folder.path().join("together.cpp");
        verilator::write_together(&together, made.map_err(io::Error::other)?.iter())
            .map_err(io::Error::other)?;
        let mut command = self.compiler()?;
        command.arg("-I").arg(folder.path()).arg("-I").arg(self.hardware.join("sephirot"));
        command.arg(together).arg(bench).args(&self.run_time).arg("-o").arg(program);
        run(&mut command)
    }

    fn compiler(&self) -> io::Result<Command> {
        let include = self.include().map_err(io::Error::other)?;
        let mut command = Command::new("clang++-19");
        command.args(FLAGS).arg("-I").arg(&include).arg("-I").arg(include.join("vltstd"));
        Ok(command)
    }

    fn include(&self) -> Result<PathBuf, String> {
        Ok(self.verilator.root()?.join("include"))
    }

    fn version(&self) -> Result<String, String> {
        self.verilator.version_line().ok_or_else(|| "Verilator does not say its version".into())
    }
}

fn run(command: &mut Command) -> io::Result<()> {
    verilator::run(command).map_err(io::Error::other)
}

/// Returns names and texts of all sources of the hardware and of its benches.
fn content(hardware: &Path) -> Result<Vec<(String, String)>, String> {
    let mut content = vec![];
    for folder in ["sephirot", "lib"] {
        let is_source =
            |name: &str| [".sv", ".svh", ".cpp", ".h"].iter().any(|it| name.ends_with(it));
        for file in verilator::files(&hardware.join(folder), is_source)? {
            let text = std::fs::read_to_string(&file);
            let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
            content.push((file.display().to_string(), text));
        }
    }
    Ok(content)
}
