// SPDX-License-Identifier: Apache-2.0 OR MIT
//! For a release, builds the sockets library into the command, so that a command that was copied or
//! installed alone accelerates programs, and records the commit. Other builds find the library in
//! the same folder, and do not depend on the commit.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const NAME: &str = "libfreeport_preload.so";

fn main() -> ExitCode {
    name_commit();
    match carry() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Cargo shows standard error if a build fails.
            eprintln!("the sockets library: {error}");
            ExitCode::FAILURE
        }
    }
}

fn carry() -> Result<(), String> {
    let out = PathBuf::from(variable("OUT_DIR")?);
    let top = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("..");
    for part in ["sockets/preload", "sockets/proto", "fabric/ring"] {
        for within in ["src", "Cargo.toml"] {
            println!("cargo:rerun-if-changed={}", top.join(part).join(within).display());
        }
    }
    println!("cargo:rerun-if-changed=build.rs");
    let library = match variable("PROFILE")?.as_str() {
        "release" => build(&top, &out)?,
        _ => vec![],
    };
    let to = out.join(NAME);
    std::fs::write(&to, library).map_err(|error| format!("{}: {error}", to.display()))
}

/// Passes the commit to the compiler: `FREEPORT_COMMIT`, for sources without a repository, or the
/// one that git reports.
fn name_commit() {
    println!("cargo:rerun-if-env-changed=FREEPORT_COMMIT");
    if std::env::var_os("FREEPORT_COMMIT").is_some()
        || variable("PROFILE").as_deref() != Ok("release")
    {
        return;
    }
    let git = |words: &[&str]| {
        let output = Command::new("git").args(words).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    // The commit changes when one of these files does.
    let head = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for name in ["HEAD".to_owned()].into_iter().chain(head) {
        if let Some(path) = git(&["rev-parse", "--git-path", &name])
            && Path::new(&path).exists()
        {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo:rustc-env=FREEPORT_COMMIT={commit}");
    }
}

/// Builds the library, without debugging information.
fn build(top: &Path, out: &Path) -> Result<Vec<u8>, String> {
    // A separate folder: cargo holds the lock of the current one.
    let folder = out.join("sockets");
    let target = variable("TARGET")?;
    let mut command = Command::new(variable("CARGO")?);
    command.args(["build", "--locked", "--release", "--package", "freeport-preload", "--target"]);
    command.arg(&target).args(["--config", "profile.release.strip=\"debuginfo\""]);
    command.arg("--target-dir").arg(&folder).current_dir(top);
    let status = command.status().map_err(|error| format!("cargo cannot be run: {error}"))?;
    if !status.success() {
        return Err(format!("cargo failed: {status}"));
    }
    let built = folder.join(target).join("release").join(NAME);
    std::fs::read(&built).map_err(|error| format!("{}: {error}", built.display()))
}

fn variable(name: &str) -> Result<String, String> {
    std::env::var(name).map_err(|error| format!("{name}: {error}"))
}
