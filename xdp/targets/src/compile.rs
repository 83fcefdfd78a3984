// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Compiles sources of XDP programs to objects with clang.

use crate::Error;
use std::path::Path;
use std::process::Command;

/// Returns the compiler with its options; only the files are missing. It compiles for BPF with
/// debug information, which has the types of maps and the lines of instructions.
/// `FREEPORT_BPF_CLANG` names a compiler other than `clang-19`.
pub fn compiler() -> Command {
    let compiler = std::env::var("FREEPORT_BPF_CLANG").unwrap_or_else(|_| "clang-19".into());
    // Debian has `asm/` in the include folder of the architecture.
    let include = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let mut command = Command::new(compiler);
    command.args(["-target", "bpf", "-g", "-O2", "-mcpu=v3", "-Wall", "-Wextra", "-Werror"]);
    command.args(["-idirafter", &include]);
    command
}

/// Compiles a source with the [`compiler`].
///
/// # Errors
/// The compiler is missing, or it rejects the program: its messages are in the error.
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
