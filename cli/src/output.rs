// SPDX-License-Identifier: Apache-2.0 OR MIT
//! All output to the standard streams. The `print` macros of this module replace those of the
//! standard library, which panic if the stream cannot be written.
//!
//! If the reader of standard output has closed the pipe, the command exits silently with status
//! 141, the one that a shell reports for `ip`, `bpftool` and others that SIGPIPE kills. Any other
//! error, such as a full disk, is reported, and the status is 1. In both cases the command unwinds,
//! so that captures are complete and nothing stays attached. Text that cannot be written to
//! standard error is dropped: there is no other place to report it.

use std::any::Any;
use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;

/// Status that a shell reports for a process that SIGPIPE has killed.
const BROKEN_PIPE: u8 = 128 + libc::SIGPIPE as u8;

/// Unwinds a command whose output cannot be written.
struct Unwritten(io::Error);

/// Writes to standard output.
pub fn write(text: fmt::Arguments<'_>) {
    if let Err(error) = io::stdout().write_fmt(text) {
        // The panic hook is not called.
        resume_unwind(Box::new(Unwritten(error)));
    }
}

/// Writes bytes, which need not be text, to standard output.
pub fn write_bytes(bytes: &[u8]) {
    if let Err(error) = io::stdout().write_all(bytes) {
        // The panic hook is not called.
        resume_unwind(Box::new(Unwritten(error)));
    }
}

/// Writes to standard error.
pub fn tell(text: fmt::Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// Runs a command and flushes its output; returns its status.
pub fn complete(command: impl FnOnce() -> ExitCode) -> ExitCode {
    let status = catch_unwind(AssertUnwindSafe(command));
    let written = io::stdout().flush();
    match (status, written) {
        (Ok(status), Ok(())) => status,
        (Ok(_), Err(error)) => failed(&error),
        (Err(payload), _) => failed(&unwritten(payload)),
    }
}

/// The error that unwound a command; a panic is resumed.
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
