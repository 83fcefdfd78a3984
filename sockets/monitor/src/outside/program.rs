// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Determines whether a process has the library, and why not.

use crate::private::user;
use crate::{Location, executable};
use freeport_sockets_proto::MONITOR_VARIABLE;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

/// Minimum limit on descriptors for a process: the library puts its own descriptor above those that
/// programs expect to get.
pub const DESCRIPTORS_MIN: u64 = 49;

/// Name of the library's file in `/proc/PID/maps`.
const LIBRARY: &str = "libfreeport_preload";

/// Proof that a process has the library.
pub struct Preloaded;

/// Reason for which a process does not have the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Without {
    /// The process cannot be inspected.
    Hidden,
    Monitor,
    Static,
    Privileged,
    Plain,
}

impl Without {
    /// Explanation for a process, to follow `process N`.
    pub fn text(self, pid: i32) -> String {
        let text = match self {
            Self::Hidden => return why_hidden(pid),
            Self::Monitor => "is a Freeport monitor itself",
            Self::Static => "is not preloaded: it is linked statically, so it loads no library",
            Self::Privileged => {
                "is not preloaded: it gained privileges at its start, so it loads no library"
            }
            Self::Plain => "is not preloaded: start it with `freeport exec`",
        };
        text.to_owned()
    }
}

/// Returns whether a process has the library.
pub fn preloaded(pid: i32) -> Result<Preloaded, Without> {
    let file = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
    match fs::read_to_string(file("maps")) {
        Ok(maps) if maps.contains(LIBRARY) => return Ok(Preloaded),
        Ok(_) => {}
        Err(_) => return Err(Without::Hidden),
    }
    if is_monitor(pid) {
        return Err(Without::Monitor);
    }
    if kind_of(pid) == Some(executable::Kind::Static) {
        return Err(Without::Static);
    }
    let mode = fs::metadata(file("exe")).map_or(0, |it| it.permissions().mode());
    let is_privileged = mode & (libc::S_ISUID | libc::S_ISGID) != 0 || is_secure(pid);
    Err(if is_privileged { Without::Privileged } else { Without::Plain })
}

/// Returns the processes that hold a socket, as far as they can be inspected; without monitors,
/// which only hold a copy.
pub fn owners(inode: u64) -> Vec<i32> {
    let name = PathBuf::from(format!("socket:[{inode}]"));
    let folders = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let pids = folders.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    let has_it = |pid: &i32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
        let mut targets = descriptors.filter_map(|it| fs::read_link(it.ok()?.path()).ok());
        targets.any(|target| target == name)
    };
    pids.filter(has_it).filter(|pid| !is_monitor(*pid)).collect()
}

/// Returns whether a process uses `io_uring`.
pub fn has_uring(pid: i32) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let mut targets = descriptors.filter_map(|it| fs::read_link(it.ok()?.path()).ok());
    targets.any(|target| target.as_os_str() == "anon_inode:[io_uring]")
}

/// Returns the monitor in a process's initial environment; `None` if there is none or it cannot be
/// read.
pub fn monitor_of(pid: i32) -> Option<Location> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| {
        variable.strip_prefix(MONITOR_VARIABLE.as_bytes())?.strip_prefix(b"=")
    });
    let value = value.filter(|it| !it.is_empty())?;
    Some(Location::at(PathBuf::from(OsString::from_vec(value.to_vec()))))
}

/// Returns whether a process is a monitor, by its name and arguments: a monitor briefly holds other
/// processes' sockets.
pub fn is_monitor(pid: i32) -> bool {
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = words.split(|byte| *byte == 0);
    let name = words.next().and_then(|it| it.rsplit(|byte| *byte == b'/').next());
    name == Some(b"freeport") && words.next() == Some(b"node")
}

/// Returns the limit on the number of a process's descriptors.
pub fn descriptor_limit(pid: i32) -> Option<u64> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Returns whether a process restricts its system calls (seccomp).
pub fn is_confined(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mode = status.lines().find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|it| it.trim() != "0")
}

/// Returns the effective user of a process.
pub fn user_of(pid: i32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|it| it.uid())
}

/// Returns the kind of a process's executable, if it can be read.
pub fn kind_of(pid: i32) -> Option<executable::Kind> {
    executable::Kind::of(&PathBuf::from(format!("/proc/{pid}/exe"))).ok()
}

/// Explains why a process cannot be inspected, and who can. The text follows `process N`.
pub fn why_hidden(pid: i32) -> String {
    // The kernel treats processes that changed their credentials as root's here, whatever their
    // user.
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let owner = users.and_then(|it| it.split_whitespace().nth(1)?.parse::<u32>().ok());
    match (user(), owner) {
        (0, _) => {
            "cannot be inspected from here, not even by root: it is protected, or this shell \
             lacks the capability to trace processes (CAP_SYS_PTRACE)"
                .to_owned()
        }
        (own, Some(owner)) if own != owner => {
            format!("belongs to another user ({owner}): ask as that user, or as root")
        }
        _ => "can be inspected only by root, since it has changed its privileges or runs a file \
              that is not readable: ask as root"
            .to_owned(),
    }
}

/// Returns whether the kernel reported to the loader that the process gained privileges on exec.
fn is_secure(pid: i32) -> bool {
    let pairs = fs::read(format!("/proc/{pid}/auxv")).unwrap_or_default();
    pairs.chunks_exact(16).any(|pair| {
        let word = |at: usize| pair[at..at + 8].try_into().map_or(0, u64::from_ne_bytes);
        word(0) == libc::AT_SECURE && word(8) != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::os::fd::AsFd;

    #[test]
    fn this_process_is_plain_and_has_its_sockets() {
        let pid = i32::try_from(std::process::id()).unwrap();
        assert_eq!(preloaded(pid).err(), Some(Without::Plain));
        assert!(!is_secure(pid));
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let file = File::from(socket.as_fd().try_clone_to_owned().unwrap());
        let inode = std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap());
        assert!(owners(inode).contains(&pid));
        drop((file, socket));
        assert!(!owners(inode).contains(&pid));
    }
    #[test]
    fn what_the_kernel_says_of_a_process_is_read() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        // SAFETY: the place has room for the answer.
        assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) }, 0);
        assert_eq!(descriptor_limit(pid), Some(limit.rlim_cur));
        assert_eq!((user_of(pid), user_of(i32::MAX)), (Some(user()), None));
        assert_eq!(kind_of(pid), Some(executable::Kind::Dynamic));
        assert!(!is_monitor(pid) && descriptor_limit(i32::MAX).is_none());
        let reported = why_hidden(i32::MAX);
        // Root is never advised to ask as root.
        assert_eq!(reported.contains("ask as root"), user() != 0, "{reported}");
    }
}
