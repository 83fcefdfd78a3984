// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Which sockets still exist of those that a monitor remembers: each process is looked at once.

use std::collections::HashMap;
use std::fs;
use std::io;

/// What has become of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existence {
    /// Its process has it, by that number.
    Open(i32),
    /// Its process may not be looked at.
    Hidden,
    /// Its process does not have it any more, or is gone.
    Gone,
}

/// The sockets of a process by their inodes; `None`: it may not be looked at.
type Sockets = Option<HashMap<u64, i32>>;

/// See above.
#[derive(Default)]
pub struct Existing(HashMap<i32, Sockets>);

impl Existing {
    /// Looks for the socket of that inode in a process.
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
