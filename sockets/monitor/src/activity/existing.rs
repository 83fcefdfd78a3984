// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Determines which sockets that a monitor remembers still exist. Each process is read once.

use std::collections::HashMap;
use std::fs;
use std::io;

/// Whether a socket still exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existence {
    /// Its process holds it, under this descriptor number.
    Open(i32),
    /// Its process cannot be inspected.
    Hidden,
    /// Its process has closed it, or has exited.
    Gone,
}

/// Descriptors of a process by the inodes of their sockets; `None` if it cannot be inspected.
type Sockets = Option<HashMap<u64, i32>>;

/// Sockets of the processes read so far.
#[derive(Default)]
pub struct Existing(HashMap<i32, Sockets>);

impl Existing {
    /// Looks up the socket with this inode in a process.
    pub fn look(&mut self, pid: i32, inode: u64) -> Existence {
        match self.0.entry(pid).or_insert_with(|| sockets(pid)) {
            Some(sockets) => sockets.get(&inode).map_or(Existence::Gone, |it| Existence::Open(*it)),
            None => Existence::Hidden,
        }
    }
}

fn sockets(pid: i32) -> Sockets {
    let folder = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(folder) => folder,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(HashMap::new()),
        Err(_) => return None,
    };
    let socket = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()?;
        Some((inode, entry.file_name().to_str()?.parse().ok()?))
    };
    Some(folder.flatten().filter_map(socket).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_socket_exists_while_its_process_has_it() {
        let pid = i32::try_from(std::process::id()).unwrap();
        let (one, _other) = UnixStream::pair().unwrap();
        let number = one.as_raw_fd();
        let inode = fs::metadata(format!("/proc/self/fd/{number}")).unwrap().ino();
        assert_eq!(Existing::default().look(pid, inode), Existence::Open(number));
        drop(one);
        assert_eq!(Existing::default().look(pid, inode), Existence::Gone);
        assert_eq!(Existing::default().look(i32::MAX, inode), Existence::Gone);
    }
}
