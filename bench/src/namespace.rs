// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A network namespace of the bench's own: traffic in it meets nobody else's interfaces, and it is
//! gone, with all that is in it, when this is dropped or the process ends.

use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Command, Stdio};

/// A namespace, kept alive by an open file.
#[derive(Debug)]
pub struct Namespace {
    inside: File,
}

const OF_THIS_THREAD: &str = "/proc/thread-self/ns/net";

impl Namespace {
    /// An empty one; the calling thread is where it was.
    ///
    /// # Errors
    /// No right to make one.
    pub fn new() -> Result<Self> {
        let home = File::open(OF_THIS_THREAD).context(OF_THIS_THREAD)?;
        // SAFETY: it changes only which network this thread sees.
        let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
        let error = std::io::Error::last_os_error();
        if result != 0 {
            return Err(error).context("no network namespace can be made");
        }
        let inside = File::open(OF_THIS_THREAD).context(OF_THIS_THREAD);
        enter(&home)?;
        Ok(Self { inside: inside? })
    }

    /// Does something inside, with this thread and the processes that it starts.
    ///
    /// # Errors
    /// What went wrong there.
    pub fn with<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        let home = File::open(OF_THIS_THREAD).context(OF_THIS_THREAD)?;
        enter(&self.inside)?;
        let result = work();
        enter(&home)?;
        result
    }
}

fn enter(namespace: &File) -> Result<()> {
    // SAFETY: it changes only which network this thread sees.
    let result = unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) };
    let error = std::io::Error::last_os_error();
    if result == 0 { Ok(()) } else { Err(error).context("a network namespace cannot be entered") }
}

/// Sets a switch of the kernel's network, such as `ipv4/ip_forward`, in the thread's namespace.
///
/// # Errors
/// No such switch, or no right to set it.
pub fn set(switch: &str, value: &str) -> Result<()> {
    let path = Path::new("/proc/sys/net").join(switch);
    std::fs::write(&path, value).with_context(|| format!("{} cannot be written", path.display()))
}

/// The number of an interface in the thread's namespace.
///
/// # Errors
/// There is none with that name.
pub fn interface(name: &str) -> Result<u32> {
    let text = std::ffi::CString::new(name)?;
    // SAFETY: the name ends with a 0.
    let number = unsafe { libc::if_nametoindex(text.as_ptr()) };
    ensure!(number != 0, "there is no interface {name}");
    Ok(number)
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
    fn a_namespace_has_interfaces_of_its_own() {
        let Ok(namespace) = Namespace::new() else {
            eprintln!("skipped: this process may not make network namespaces");
            return;
        };
        let made = namespace.with(|| {
            run("ip", &["link", "add", "fp0", "type", "veth", "peer", "fp1"], "")?;
            interface("fp1")
        });
        assert!(made.expect("a new namespace has no interfaces") > 0);
        assert!(interface("fp1").is_err(), "the thread is at home again");
    }

    #[test]
    fn a_program_that_fails_says_why() {
        let error = run("sh", &["-c", "cat; echo because >&2; exit 1"], "x").expect_err("exit 1");
        assert!(error.to_string().contains("because"), "{error}");
        assert_eq!(run("cat", &[], "abc").expect("it copies"), "abc");
    }
}
