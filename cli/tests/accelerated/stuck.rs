// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State of a program that hangs: its threads, those of all others with the same monitor, and the
//! kernel queues of their sockets.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

const MONITOR_VARIABLE: &[u8] = b"FREEPORT_MONITOR=";

/// The state of a process, and of all others with the same monitor.
pub fn describe(pid: i32) -> String {
    let mut reported = String::new();
    let monitor = monitor_of(&PathBuf::from(format!("/proc/{pid}")));
    for process in entries(Path::new("/proc")) {
        let is_it = process.ends_with(pid.to_string());
        if is_it || monitor.is_some() && monitor_of(&process) == monitor {
            describe_one(&process, &mut reported);
        }
    }
    reported
}

fn describe_one(process: &Path, reported: &mut String) {
    let command = text(process.join("cmdline")).replace('\0', " ");
    let _ = writeln!(reported, "-- {} {command}", process.display());
    for thread in entries(&process.join("task")) {
        let name = thread.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (at, call) = (text(thread.join("wchan")), text(thread.join("syscall")));
        let _ = writeln!(reported, "   thread {name} at {at}: {}", call.trim());
    }
    let connections = text(process.join("net/tcp"));
    for descriptor in entries(&process.join("fd")) {
        let Ok(link) = fs::read_link(&descriptor) else { continue };
        let number = descriptor.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let _ = writeln!(reported, "   descriptor {number}: {}", link.display());
        let inode = link.to_string_lossy().replace("socket:[", "").replace(']', "");
        let of_it = |line: &&str| line.split_whitespace().nth(9) == Some(&*inode);
        if let Some(line) = connections.lines().find(of_it) {
            let _ = writeln!(reported, "      {}", line.trim());
        }
    }
}

fn monitor_of(process: &Path) -> Option<Vec<u8>> {
    let environment = fs::read(process.join("environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    variables.find(|variable| variable.starts_with(MONITOR_VARIABLE)).map(<[u8]>::to_vec)
}

/// Numeric entries of a folder of `/proc`.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_numbered = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.bytes().all(|byte| byte.is_ascii_digit())
    };
    all.filter(is_numbered).collect()
}

fn text(path: PathBuf) -> String {
    fs::read_to_string(path).unwrap_or_default()
}
