// SPDX-License-Identifier: Apache-2.0 OR MIT
//! State of processes from `/proc`: groups, descriptors, mappings, and where threads wait.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// All processes.
fn all() -> Vec<i32> {
    let entries = fs::read_dir("/proc").expect("there is /proc").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The fields after the command in `stat`, starting with the state.
fn stat(pid: i32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split(' ').map(str::to_owned).collect())
}

/// A process, distinguished from later ones with the same ID.
pub fn name(pid: i32) -> (i32, String) {
    const BEGUN: usize = 19;
    let begun = stat(pid).and_then(|stat| stat.get(BEGUN).cloned());
    (pid, begun.unwrap_or_default())
}

/// Whether the process exists, and not only its ID.
pub fn exists(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(&*stat[0], "Z" | "X"))
}

/// Whether it is stopped.
pub fn is_stopped(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| stat[0] == "T")
}

/// The existing processes of a group.
pub fn of_group(group: i32) -> Vec<i32> {
    let is_of = |pid: &i32| {
        stat(*pid)
            .is_some_and(|stat| stat[2] == group.to_string() && !matches!(&*stat[0], "Z" | "X"))
    };
    all().into_iter().filter(is_of).collect()
}

/// Processes whose working directory is a folder.
pub fn in_folder(folder: &Path) -> Vec<i32> {
    let folder = folder.canonicalize().expect("it is there");
    let is_in = |pid: &i32| {
        fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|it| it.starts_with(&folder))
            && exists(*pid)
    };
    all().into_iter().filter(is_in).collect()
}

/// Targets of the descriptors of a process.
pub fn descriptors(pid: i32) -> Vec<String> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let targets = entries.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.map(|target| target.display().to_string()).collect()
}

/// Number of slabs that a process has mapped, and their resident size in KiB.
pub fn slabs(pid: i32) -> (usize, u64) {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap_or_default();
    let (mut count, mut kibibytes, mut is_slab) = (0, 0, false);
    for line in text.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        if !first.ends_with(':') {
            is_slab = line.contains("memfd:freeport-slab");
            count += usize::from(is_slab);
        } else if is_slab && first == "Rss:" {
            kibibytes += line.split_whitespace().nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        }
    }
    (count, kibibytes)
}

/// The memory of a process, in KiB.
pub fn memory(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

/// TCP sockets with one of these ports at either end, except those in TIME_WAIT or SYN_RECV, which
/// end by themselves. Listeners are included if requested.
pub fn sockets(ports: &BTreeSet<u16>, with_listeners: bool) -> Vec<String> {
    const LISTENS: &str = "0A";
    const GOES_BY_ITSELF: [&str; 2] = ["06", "03"];
    let mut found = vec![];
    for name in ["/proc/net/tcp", "/proc/net/tcp6"] {
        let text = fs::read_to_string(name).unwrap_or_default();
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [_, here, there, state, ..] = words[..] else { continue };
            let port = |place: &str| {
                place.rsplit_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok())
            };
            let is_ours = [here, there].into_iter().filter_map(port).any(|it| ports.contains(&it));
            let is_wanted = with_listeners || state != LISTENS;
            if is_ours && is_wanted && !GOES_BY_ITSELF.contains(&state) {
                found.push(line.trim().to_owned());
            }
        }
    }
    found
}

/// State of all threads of a process.
pub fn dump(pid: i32) -> String {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default();
    let command = read(format!("/proc/{pid}/cmdline")).replace('\0', " ");
    let mut text = format!("-- process {pid}: {command}\n");
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for thread in threads.map(|entry| entry.path().display().to_string()) {
        for name in ["stat", "wchan", "syscall", "stack"] {
            text += &format!("{name}: {}\n", read(format!("{thread}/{name}")).trim());
        }
    }
    let folder = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    for entry in folder {
        let target = fs::read_link(entry.path()).unwrap_or_default();
        text += &format!("{} -> {}\n", entry.file_name().display(), target.display());
    }
    // Stacks of threads, if a debugger is installed.
    let arguments = ["-p", &pid.to_string(), "-batch", "-ex", "thread apply all bt 25"];
    if let Ok(output) = std::process::Command::new("gdb").args(arguments).output() {
        text += &String::from_utf8_lossy(&output.stdout);
    }
    text
}
