// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Network namespaces of the bench, isolated from the host's interfaces, and the tools that set
//! them up.

use anyhow::{Context, Result, ensure};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

pub use freeport_port::namespace::{Namespace, interface};

/// Creates an empty namespace.
///
/// # Errors
/// The process has no right to create one.
pub fn create() -> Result<Namespace> {
    Namespace::new().context("no network namespace can be created")
}

/// Runs `work` inside the namespace, with this thread and the processes that it starts.
///
/// # Errors
/// The error of `work`, or the namespace cannot be entered.
pub fn within<T>(namespace: &Namespace, work: impl FnOnce() -> Result<T>) -> Result<T> {
    namespace.with(work).context("a network namespace cannot be entered")?
}

/// Sets a kernel parameter below `/proc/sys/net`, such as `ipv4/ip_forward`, in the thread's
/// namespace.
///
/// # Errors
/// The parameter does not exist, or the process has no right to set it.
pub fn set(switch: &str, value: &str) -> Result<()> {
    let path = Path::new("/proc/sys/net").join(switch);
    std::fs::write(&path, value).with_context(|| format!("{} cannot be written", path.display()))
}

/// Returns a command for a program that is also searched for in the folders of administration
/// tools, which are often not in the `PATH` of users.
pub fn tool(program: &str) -> Command {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut command = Command::new(program);
    command.env("PATH", path);
    command
}

/// Runs a program with standard input `input` in the thread's namespace, and returns its standard
/// output.
///
/// # Errors
/// The program is not installed, or it failed; the message has the first line of its standard
/// error.
pub fn run(program: &str, arguments: &[&str], input: &str) -> Result<String> {
    let mut command = tool(program);
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{program} cannot be run"))?;
    let mut pipe = child.stdin.take().context("standard input is no pipe")?;
    let output = std::thread::scope(|scope| {
        // A program that ends early closes the pipe; its exit status says why.
        scope.spawn(move || drop(pipe.write_all(input.as_bytes())));
        child.wait_with_output()
    })?;
    let reported = String::from_utf8_lossy(&output.stderr);
    let first = reported.lines().next().unwrap_or("no message");
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
