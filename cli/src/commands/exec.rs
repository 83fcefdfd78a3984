// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport exec`: becomes a command whose sockets are accelerated.

use crate::preload;
use anyhow::{Context, bail};
use clap::Args;
use freeport_monitor::{Control, Error, Location};
use freeport_sockets_proto::MONITOR_VARIABLE;
use std::ffi::{CString, OsString};
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, ExitCode, Stdio};

/// How long a monitor that was begun for a command stays without members, in seconds.
const IDLE_SECONDS: &str = "60";

/// How many descriptors a program has to be allowed: the library's own one is behind those that
/// programs expect to get.
const DESCRIPTORS_MIN: u64 = 49;

/// The status if this command itself fails, if the other cannot be executed, and if there is none
/// of that name: the same as those of `env` and of shells.
const FAILED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport exec redis-server --port 7000\n  \
                  freeport exec -- redis-benchmark -p 7000\n\n\
                  The process stays the same, with its number, its descriptors and its status. \
                  See docs/sockets.md.")]
pub struct Arguments {
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
    command: Vec<OsString>,
}

/// Begins a monitor if none answers, and becomes the command.
pub fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match begin(arguments) {
        Ok(error) => {
            let name = arguments.command[0].display();
            eprintln!("freeport exec: {name}: {error}");
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            Ok((if is_missing { NOT_FOUND } else { NOT_EXECUTABLE }).into())
        }
        Err(error) => {
            eprintln!("freeport exec: {error:#}");
            Ok(FAILED.into())
        }
    }
}

/// Comes back only with the reason why the command could not be executed.
fn begin(arguments: &Arguments) -> anyhow::Result<io::Error> {
    let library = preload::library()?;
    let location = Location::of_environment();
    let begun = ensure_monitor(&location);
    if let Err(error) = &begun {
        // A command is worth more than its speed. It is told of no monitor: who listens there may
        // be somebody to whom sockets should not be shown.
        eprintln!("freeport exec: {error:#}; sockets stay in the kernel");
    }
    if let Some(few) = descriptor_limit().filter(|limit| *limit < DESCRIPTORS_MIN) {
        eprintln!(
            "freeport exec: a program may have {few} descriptors here; with fewer than \
             {DESCRIPTORS_MIN} (`ulimit -n`), its sockets stay in the kernel"
        );
    }
    // A shell may begin programs later. If that is refused, only then something is lost.
    let _ = begun.is_ok().then(|| Control::at(location.clone()).stay());
    let words = arguments.command.iter().map(|word| CString::new(word.clone().into_vec()));
    let words = words.collect::<Result<Vec<_>, _>>().context("an argument with a zero byte")?;
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let (loader, value) = preload::loader_value(&library);
    if begun.is_ok() {
        // SAFETY: there is one thread, so nothing reads the environment meanwhile.
        unsafe { std::env::set_var(loader, value) };
        // SAFETY: as above.
        unsafe { std::env::set_var(MONITOR_VARIABLE, location.path()) };
    }
    // The broken pipe is the only signal whose meaning Rust has changed.
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    // SAFETY: the words end with zero and live as long as the call, and null ends the array.
    unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
    Ok(io::Error::last_os_error())
}

/// How many descriptors a program that is begun may have.
fn descriptor_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the place has room for the answer.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    (result == 0).then_some(limit.rlim_cur)
}

/// Sees to it that a monitor answers.
fn ensure_monitor(location: &Location) -> anyhow::Result<()> {
    match location.connect() {
        Ok(_) => return Ok(()),
        Err(Error::NoMonitor { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["node", "--background", "--idle", IDLE_SECONDS]);
    command.env(MONITOR_VARIABLE, location.path()).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.output().context("a monitor cannot be begun")?;
    if !output.status.success() {
        let told = String::from_utf8_lossy(output.stderr.trim_ascii()).into_owned();
        bail!("{}", told.strip_prefix("freeport: ").unwrap_or(&told));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct CommandLine {
        #[command(flatten)]
        arguments: Arguments,
    }

    #[test]
    fn everything_from_the_command_on_is_the_commands() {
        for given in
            [&["x", "it", "--help", "-v", "--"][..], &["x", "--", "it", "--help", "-v", "--"]]
        {
            let line = CommandLine::try_parse_from(given).unwrap();
            assert_eq!(line.arguments.command, ["it", "--help", "-v", "--"]);
        }
        assert!(CommandLine::try_parse_from(["x"]).is_err());
    }
}
