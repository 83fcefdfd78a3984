// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The sockets library, for tests that load it into programs. Cargo does not build a `cdylib` for
//! tests: the runner builds it before the tests, and a test run by hand builds it itself.

use crate::variable;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// File name of the library.
pub const NAME: &str = "libfreeport_preload.so";

/// Returns the library, built from the present sources.
///
/// # Panics
/// If the library cannot be built.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| std::env::var_os(variable::LIBRARY).map_or_else(build, PathBuf::from))
}

fn build() -> PathBuf {
    let folder = profile_folder();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(cargo);
    cargo.args(["build", "--quiet", "--locked", "--package", "freeport-preload"]);
    cargo.arg("--manifest-path").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    cargo.arg("--target-dir").arg(folder.parent().expect("the folder of all profiles"));
    if folder.ends_with("release") {
        cargo.arg("--release");
    }
    assert!(cargo.status().expect("cargo runs").success(), "the library cannot be built");
    folder.join(NAME)
}

/// Returns the folder with the artifacts of the running test's profile: `target/debug`.
pub fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test knows its own file");
    // target/debug/deps/test
    test.ancestors().nth(2).expect("tests lie two folders deep").to_owned()
}
