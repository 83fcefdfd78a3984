// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The one place where the command writes to its terminal. Its `print` macros take the place of the
//! standard library's, which panic when nobody takes what they write.
//!
//! If the reader of standard output has gone, the command ends quietly with status 141: that of
//! `ip`, `bpftool` and others, which the signal SIGPIPE ends, as a shell shows it. Any other error,
//! such as a full disk, is told, and the status is 1. Either way the command unwinds, so that
//! captures are complete and nothing stays attached. What cannot be written to standard error is
//! left out: there is nowhere else to tell it.

use std::any::Any;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;

/// What a shell shows of a process that SIGPIPE has ended.
const BROKEN_PIPE: u8 = 128 + libc::SIGPIPE as u8;

/// Unwinds a command whose output cannot be written.
struct Unwritten(io::Error);

/// Writes to standard output.
pub fn write(text: fmt::Arguments<'_>) {
    if let Err(error) = io::stdout().write_fmt(text) {
        // The hook that tells of panics is not called.
        resume_unwind(Box::new(Unwritten(error)));
    }
}

/// Writes to standard error.
pub fn tell(text: fmt::Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// The status of a command, once all that it wrote has left.
pub fn complete(command: impl FnOnce() -> ExitCode) -> ExitCode {
    let status = catch_unwind(AssertUnwindSafe(command));
    let written = io::stdout().flush();
    match (status, written) {
        (Ok(status), Ok(())) => status,
        (Ok(_), Err(error)) => failed(&error),
        (Err(payload), _) => failed(&unwritten(payload)),
    }
}

/// Why a command was unwound; a panic goes on.
fn unwritten(payload: Box<dyn Any + Send>) -> io::Error {
    match payload.downcast::<Unwritten>() {
        Ok(unwritten) => unwritten.0,
        Err(panic) => resume_unwind(panic),
    }
}

fn failed(error: &io::Error) -> ExitCode {
    if error.kind() == ErrorKind::BrokenPipe {
        return BROKEN_PIPE.into();
    }
    tell(format_args!("freeport: standard output cannot be written: {error}\n"));
    ExitCode::FAILURE
}

macro_rules! print {
    ($($text:tt)*) => { $crate::output::write(format_args!($($text)*)) };
}

macro_rules! println {
    () => { $crate::output::write(format_args!("\n")) };
    ($($text:tt)*) => {
        $crate::output::write(format_args!("{}\n", format_args!($($text)*)))
    };
}

macro_rules! eprint {
    ($($text:tt)*) => { $crate::output::tell(format_args!($($text)*)) };
}

macro_rules! eprintln {
    () => { $crate::output::tell(format_args!("\n")) };
    ($($text:tt)*) => {
        $crate::output::tell(format_args!("{}\n", format_args!($($text)*)))
    };
}
