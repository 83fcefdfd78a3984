// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Checks of what `freeport exec` needs.

use super::{Finding, State};
use crate::preload;
use freeport_monitor::confinement::{NEEDED, Rights};
use freeport_monitor::{Control, Error, Location};

/// Checks that the library is found and that a monitor answers.
pub fn acceleration() -> Finding {
    let meaning = "sockets of unmodified programs past the kernel (`exec`, docs/guide/sockets.md); \
                   without it they stay in the kernel, as do those of programs that are linked \
                   statically or call the kernel themselves (Go)";
    let location = Location::of_programs();
    let path = location.path().display().to_string();
    let (monitor, answers) = match Control::at(location).stats() {
        Ok(stats) => (format!("a monitor at {path} with {} members", stats["members"]), true),
        Err(Error::NoMonitor { .. }) => (format!("no monitor at {path}: `exec` starts one"), true),
        Err(error) => (error.to_string(), false),
    };
    let (state, library) = match preload::library() {
        Ok(library) if answers => (State::Present, library.display().to_string()),
        Ok(library) => (State::Limited, library.display().to_string()),
        Err(error) => (State::Missing, error.to_string()),
    };
    Finding { name: "sockets", state, seen: format!("{library}; {monitor}"), meaning }
}

/// Checks which capabilities a monitor of this user would have, and which the running one has kept.
pub fn monitor_rights() -> Finding {
    let meaning = "the capabilities that `node` keeps while it runs; without SYS_PTRACE, rules \
                   with `net` do not match processes of other users";
    // SAFETY: the call takes nothing and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let here = Rights::of(std::process::id());
    let lacks: Vec<&str> = NEEDED
        .iter()
        .filter(|it| is_root && here.is_none_or(|here| !here.has(**it)))
        .map(|it| it.name)
        .collect();
    let names: Vec<&str> = NEEDED.iter().map(|it| it.name).collect();
    let needed = match (is_root, lacks.is_empty()) {
        (false, _) => "a monitor of this user needs none".to_owned(),
        (true, true) => format!("a monitor of root needs {}, held", names.join(", ")),
        (true, false) => {
            format!("a monitor of root needs {}, missing: {}", names.join(", "), lacks.join(", "))
        }
    };
    let running = Control::at(Location::of_programs()).stats().ok();
    let pid = running.and_then(|stats| u32::try_from(stats["pid"].as_u64()?).ok());
    let kept = pid.and_then(|pid| Some((pid, Rights::of(pid)?)));
    let is_confined = kept.is_none_or(|(_, kept)| kept.is_confined());
    let kept = kept.map(|(pid, kept)| format!("; process {pid} has {}", reported(kept)));
    let is_well = lacks.is_empty() && is_confined;
    let state = if is_well { State::Present } else { State::Limited };
    let seen = needed + &kept.unwrap_or_default();
    Finding { name: "monitor", state, seen, meaning }
}

fn reported(kept: Rights) -> String {
    let names = NEEDED.iter().filter(|it| kept.has(**it)).map(|it| it.name.to_owned());
    let mut names: Vec<String> = names.collect();
    let others = kept.others().count_ones();
    if others > 0 {
        names.push(format!("{others} that it does not need"));
    }
    if names.is_empty() {
        names.push("none".to_owned());
    }
    let filter = if kept.is_filtered { "a filter" } else { "no filter" };
    format!("{} and {filter} of system calls", names.join(", "))
}
