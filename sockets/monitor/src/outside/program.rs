// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Whether a process has the library, and why not.

use crate::Location;
use freeport_sockets_proto::MONITOR_VARIABLE;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// What the library's file is called in `/proc/PID/maps`.
const LIBRARY: &str = "libfreeport_preload";

/// It has the library.
pub struct Preloaded;

/// Why a process does not have the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Without {
    Foreign,
    Static,
    Privileged,
    Plain,
}

impl Without {
    /// Behind `process N`.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Foreign => "is another user's: ask as that user, or as root",
            Self::Static => "is not preloaded: it is linked statically, so it takes no library",
            Self::Privileged => {
                "is not preloaded: it has more rights than who began it, so it takes no library"
            }
            Self::Plain => "is not preloaded: begin it with `freeport exec`",
        }
    }
}

/// Whether a process has the library.
pub fn preloaded(pid: i32) -> Result<Preloaded, Without> {
    let file = |name: &str| PathBuf::from(format!("/proc/{pid}/{name}"));
    match fs::read_to_string(file("maps")) {
        Ok(maps) if maps.contains(LIBRARY) => return Ok(Preloaded),
        Ok(_) => {}
        Err(_) => return Err(Without::Foreign),
    }
    let executable = file("exe");
    if is_static(&executable).unwrap_or(false) {
        return Err(Without::Static);
    }
    let mode = fs::metadata(&executable).map_or(0, |it| it.permissions().mode());
    let is_privileged = mode & (libc::S_ISUID | libc::S_ISGID) != 0 || is_secure(pid);
    Err(if is_privileged { Without::Privileged } else { Without::Plain })
}

/// The processes that have a socket, as far as they may be looked at.
pub fn owners(inode: u64) -> Vec<i32> {
    let name = PathBuf::from(format!("socket:[{inode}]"));
    let folders = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let pids = folders.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    let has_it = |pid: &i32| {
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
        let mut targets = descriptors.filter_map(|it| fs::read_link(it.ok()?.path()).ok());
        targets.any(|target| target == name)
    };
    pids.filter(has_it).collect()
}

/// Whether a process has rings of the kernel (`io_uring`).
pub fn has_uring(pid: i32) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten();
    let mut targets = descriptors.filter_map(|it| fs::read_link(it.ok()?.path()).ok());
    targets.any(|target| target.as_os_str() == "anon_inode:[io_uring]")
}

/// The monitor that a process was told of, if it is not the one that is asked here.
pub fn other_monitor(pid: i32) -> Option<PathBuf> {
    let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let mut variables = environment.split(|byte| *byte == 0);
    let value = variables.find_map(|variable| {
        variable.strip_prefix(MONITOR_VARIABLE.as_bytes())?.strip_prefix(b"=")
    })?;
    let path = PathBuf::from(std::ffi::OsString::from_vec(value.to_vec()));
    (path != Location::of_environment().path()).then_some(path)
}

/// Whether an executable names no loader.
fn is_static(executable: &PathBuf) -> io::Result<bool> {
    const HEADER_BYTES: usize = 64;
    const LOADER: u32 = 3;
    let mut file = File::open(executable)?;
    let mut header = [0; HEADER_BYTES];
    file.read_exact(&mut header)?;
    // Of 64 bits: where the headers of its parts are, how long each is, and how many.
    let number = |at: usize, bytes: usize| {
        let digits = header[at..at + bytes].iter().rev();
        digits.fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
    };
    if &header[..5] != b"\x7fELF\x02" {
        return Ok(false);
    }
    let (start, length, count) = (number(32, 8), number(54, 2), number(56, 2));
    for part in 0..count {
        let mut kind = [0; 4];
        file.seek(SeekFrom::Start(start.saturating_add(part * length)))?;
        file.read_exact(&mut kind)?;
        if u32::from_le_bytes(kind) == LOADER {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the kernel told the loader that the process has rights which it was not begun with.
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
    fn an_executable_without_a_loader_is_static() {
        let folder = tempfile::tempdir().unwrap();
        let made = |kinds: &[u32]| {
            let mut bytes = vec![0; 64];
            bytes[..5].copy_from_slice(b"\x7fELF\x02");
            (bytes[32], bytes[54], bytes[56]) = (64, 56, kinds.len() as u8);
            for kind in kinds {
                bytes.extend(kind.to_le_bytes());
                bytes.extend([0; 52]);
            }
            let path = folder.path().join("it");
            fs::write(&path, bytes).unwrap();
            is_static(&path)
        };
        assert!(made(&[1, 2, 6]).unwrap());
        assert!(!made(&[6, 3, 1]).unwrap());
        fs::write(folder.path().join("it"), "#!/bin/sh").unwrap();
        assert!(is_static(&folder.path().join("it")).is_err());
        assert!(!is_static(&"/proc/self/exe".into()).unwrap());
    }
}
