// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Sources of XDP programs to objects, by clang.

use crate::Error;
use std::path::Path;
use std::process::Command;

/// The compiler with its options, to which come only files: for BPF, with debugging information,
/// which has the types of maps and the lines of instructions. `FREEPORT_BPF_CLANG` names another
/// than `clang-19`.
pub fn compiler() -> Command {
    let compiler = std::env::var("FREEPORT_BPF_CLANG").unwrap_or_else(|_| "clang-19".into());
    // Debian keeps `asm/` in the folder of the machine's architecture.
    let include = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new(compiler);
    command.args(["-target", "bpf", "-g", "-O2", "-mcpu=v3", "-Wall", "-Wextra", "-Werror"]);
    command.args(["-idirafter", &include]);
    command
}

/// Compiles a source with the [`compiler`].
///
/// # Errors
/// No compiler, or one that refuses the program: its messages are in the error.
pub fn compile(source: &Path) -> Result<Vec<u8>, Error> {
    let mut command = compiler();
    let compiler = command.get_program().to_string_lossy().into_owned();
    let failed = |source| Error::NoCompiler { compiler: compiler.clone(), source };
    let folder = tempfile::tempdir().map_err(failed)?;
    let object = folder.path().join("program.o");
    let result = command.arg("-c").arg(source).arg("-o").arg(&object).output().map_err(failed)?;
    if !result.status.success() {
        let messages = String::from_utf8_lossy(&result.stderr).trim().to_owned();
        return Err(Error::Compile { file: source.to_owned(), messages });
    }
    std::fs::read(&object).map_err(failed)
}
