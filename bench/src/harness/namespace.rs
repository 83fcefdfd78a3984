// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The bench's network: namespaces of its own, which meet nobody else's interfaces, and the tools
//! that set them up.

use anyhow::{Context, Result, ensure};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

pub use freeport_nic::namespace::{Namespace, interface};

/// An empty namespace.
///
/// # Errors
/// No right to make one.
pub fn create() -> Result<Namespace> {
    Namespace::new().context("no network namespace can be made")
}

/// Does something inside, with this thread and the processes that it starts.
///
/// # Errors
/// What went wrong there.
pub fn within<T>(namespace: &Namespace, work: impl FnOnce() -> Result<T>) -> Result<T> {
    namespace.with(work).context("a network namespace cannot be entered")?
}

/// Sets a switch of the kernel's network, such as `ipv4/ip_forward`, in the thread's namespace.
///
/// # Errors
/// No such switch, or no right to set it.
pub fn set(switch: &str, value: &str) -> Result<()> {
    let path = Path::new("/proc/sys/net").join(switch);
    std::fs::write(&path, value).with_context(|| format!("{} cannot be written", path.display()))
}

/// A program, found also where administrators' tools are, which are often not in the path of
/// others.
pub fn tool(program: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut command = Command::new(program);
    command.env("PATH", path);
    command
}

/// Runs a program, whose input is `input`, in the thread's namespace; gives what it printed.
///
/// # Errors
/// It is not there, or it failed: with the first line of what it said.
pub fn run(program: &str, arguments: &[&str], input: &str) -> Result<String> {
    let mut command = tool(program);
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{program} cannot be run"))?;
    let mut pipe = child.stdin.take().context("a pipe was asked for")?;
    let output = std::thread::scope(|scope| {
        // A program that ends early closes the pipe; its exit says why.
        scope.spawn(move || drop(pipe.write_all(input.as_bytes())));
        child.wait_with_output()
    })?;
    let told = String::from_utf8_lossy(&output.stderr);
    let first = told.lines().next().unwrap_or("it says nothing");
    ensure!(output.status.success(), "{program} failed: {first}");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_says_why() {
        let error = run("sh", &["-c", "cat; echo because >&2; exit 1"], "x").expect_err("exit 1");
        assert!(error.to_string().contains("because"), "{error}");
        assert_eq!(run("cat", &[], "abc").expect("it copies"), "abc");
    }
}
