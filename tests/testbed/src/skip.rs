// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Lines for the end of a run besides its failures: notes, and tests that cannot run on this
//! machine. No skip is silent. The runner counts skips and prints their reasons, and with
//! `FREEPORT_REQUIRE=all`, as in continuous integration, a skip is a failure.

use crate::variable;
use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::path::Path;
use std::thread;

/// Records that the calling test is skipped. The test returns after this call.
///
/// # Panics
/// If `FREEPORT_REQUIRE=all` is set, and if the note cannot be written.
#[track_caller]
pub fn skip(reason: impl Display) {
    let place = Location::caller();
    let is_required = std::env::var(variable::REQUIRE).is_ok_and(|value| value == "all");
    assert!(!is_required, "skipped, where FREEPORT_REQUIRE=all allows no skip: {reason}");
    let current = thread::current();
    let test = current.name().unwrap_or("unnamed thread");
    report(&format!("{}:{}\t{test}\t{reason}", place.file(), place.line()));
    if let Some(file) = std::env::var_os(variable::SKIPS) {
        let line = format!("{}\t{test}\t{reason}\n", place.file());
        append(Path::new(&file), &line);
    }
}

/// Records a line that the run prints at its end although it is no failure.
///
/// # Panics
/// If the note cannot be written.
pub fn note(text: impl Display) {
    if let Some(file) = std::env::var_os(variable::NOTES) {
        append(Path::new(&file), &format!("{text}\n"));
    }
}

/// Writes with one `write` on a file opened for appending: lines of several processes do not mix.
fn append(file: &Path, line: &str) {
    let opened = OpenOptions::new().append(true).create(true).open(file);
    let written = opened.and_then(|mut file| file.write_all(line.as_bytes()));
    written.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

/// Informs a user who runs one test by hand.
fn report(text: &str) {
    let mut errors = std::io::stderr().lock();
    // Standard error may be closed; the file has the note.
    let _ = writeln!(errors, "skipped: {text}");
}
