// SPDX-License-Identifier: Apache-2.0 OR MIT
//! `freeport exec`: executes a command with accelerated sockets, in place of this process.

use crate::preload;
use anyhow::{Context, bail};
use clap::Args;
use freeport_monitor::executable::Kind;
use freeport_monitor::{Control, DESCRIPTORS_MIN, Error, Location};
use freeport_sockets_proto::MONITOR_VARIABLE;
use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs, io};

/// How long a monitor that was started for a command keeps running without members, in seconds.
const IDLE_SECONDS: &str = "60";

/// Exit statuses if this command itself fails, if the other cannot be executed, and if it is not
/// found: those of `env` and of shells.
const FAILED: u8 = 125;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

#[derive(Args)]
#[command(after_help = "Example:\n  freeport exec redis-server --port 7000\n  \
                  freeport exec -- redis-benchmark -p 7000\n\n\
                  The command replaces this process. It keeps the process ID and the descriptors, \
                  and the caller receives its exit status. See docs/guide/sockets.md.")]
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

/// Starts a monitor if none answers, and executes the command.
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

/// Returns only if the command cannot be executed, with the reason.
fn begin(arguments: &Arguments) -> anyhow::Result<io::Error> {
    let library = preload::library()?;
    let (location, begun) = monitor();
    if let Err(error) = &begun {
        // The command still runs, without acceleration. It is given no monitor: the process
        // that listens there may not be allowed to see its sockets.
        eprintln!("freeport exec: {error:#}; sockets stay in the kernel");
    }
    if let Some(few) = descriptor_limit().filter(|limit| *limit < DESCRIPTORS_MIN) {
        eprintln!(
            "freeport exec: the limit of descriptors is {few}; below {DESCRIPTORS_MIN} (`ulimit \
             -n`), the sockets of a program stay in the kernel"
        );
    }
    if let Some(why) =
        found(&arguments.command[0]).and_then(|it| Kind::of(&it).ok()?.why_in_kernel())
    {
        let name = arguments.command[0].display();
        eprintln!("freeport exec: {name}: {why}; its sockets stay in the kernel");
    }
    // A shell may start programs later. If the request is refused, only those are affected.
    let _ = begun.is_ok().then(|| Control::at(location.clone()).stay());
    let words = arguments.command.iter().map(|word| CString::new(word.clone().into_vec()));
    let words = words.collect::<Result<Vec<_>, _>>().context("an argument contains a zero byte")?;
    let mut pointers: Vec<_> = words.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    let (loader, value) = preload::loader_value(&library);
    if begun.is_ok() {
        // SAFETY: there is one thread, so nothing reads the environment concurrently.
        unsafe { env::set_var(loader, value) };
        // SAFETY: as above.
        unsafe { env::set_var(MONITOR_VARIABLE, location.path()) };
    }
    // SIGPIPE is the only signal whose disposition Rust has changed.
    // SAFETY: no handler is installed.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    // SAFETY: the words end with zero and live as long as the call, and null ends the array.
    unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
    Ok(io::Error::last_os_error())
}

/// The limit of descriptors that a program inherits.
fn descriptor_limit() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the place has room for the answer.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) };
    (result == 0).then_some(limit.rlim_cur)
}

/// The file that `execvp` executes for a command.
fn found(command: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(command.into());
    }
    let folders = env::var_os("PATH")?;
    let paths = env::split_paths(&folders).map(|folder| folder.join(command));
    paths.into_iter().find(|path| {
        fs::metadata(path).is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    })
}

/// Where the monitor of programs is, and why it does not answer if it does not.
fn monitor() -> (Location, anyhow::Result<()>) {
    let location = Location::of_programs();
    let begun = ensure_monitor(&location);
    let own = Location::of_environment();
    // The monitor of the host may just have ended, and only root can start that one again.
    if begun.is_err() && own != location {
        let begun = ensure_monitor(&own);
        return (own, begun);
    }
    (location, begun)
}

/// Starts a monitor unless one answers.
fn ensure_monitor(location: &Location) -> anyhow::Result<()> {
    match location.connect() {
        Ok(_) => return Ok(()),
        Err(Error::NoMonitor { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let mut command = Command::new(env::current_exe()?);
    command.args(["node", "--background", "--idle", IDLE_SECONDS]);
    command.env(MONITOR_VARIABLE, location.path()).stdin(Stdio::null()).stdout(Stdio::null());
    let output = command.output().context("a monitor cannot be started")?;
    if !output.status.success() {
        let reported = String::from_utf8_lossy(output.stderr.trim_ascii()).into_owned();
        bail!("{}", reported.strip_prefix("freeport: ").unwrap_or(&reported));
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
