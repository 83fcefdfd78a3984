// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What `freeport exec` needs.

use super::{Finding, State};
use crate::preload;
use freeport_monitor::{Control, Error, Location};

/// Looks for the library, and asks the monitor.
pub fn acceleration() -> Finding {
    let meaning = "unmodified programs past the kernel (`exec`, docs/sockets.md); without it they \
                   run as always";
    let location = Location::of_environment();
    let path = location.path().display().to_string();
    let (monitor, answers) = match Control::at(location).stats() {
        Ok(stats) => (format!("a monitor at {path} with {} members", stats["members"]), true),
        Err(Error::NoMonitor { .. }) => (format!("no monitor at {path}: `exec` begins one"), true),
        Err(error) => (error.to_string(), false),
    };
    let (state, library) = match preload::library() {
        Ok(library) if answers => (State::Present, library.display().to_string()),
        Ok(library) => (State::Limited, library.display().to_string()),
        Err(error) => (State::Missing, error.to_string()),
    };
    Finding { name: "sockets", state, seen: format!("{library}; {monitor}"), meaning }
}
