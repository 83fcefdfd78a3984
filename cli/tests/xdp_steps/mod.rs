// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport xdp explain` and `freeport xdp trace`: programs step by step.

mod explain;
mod trace;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Map contents for the firewall of `programs/xdp`, and the interface of packets.
const MAPS: [&str; 6] = [
    "--ifindex",
    "2",
    "--map",
    "inside key 0 0 0 0 value 2 0 0 0",
    "--map",
    "ways key 0 0 0 0 value 3 0 0 0",
];

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// A command of `freeport xdp` on a program of `programs/xdp`.
fn freeport(what: &str, program: &str, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_freeport"));
    command.args(["xdp", what]).arg(at("programs/xdp").join(program)).args(more);
    command.output().unwrap()
}

/// Output of a command, which must succeed.
fn reported(output: Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Errors of a command, which must fail.
fn complaint(output: Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}
