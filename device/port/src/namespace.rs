// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Network namespaces. A port's interface may be in another namespace than the process. Tests and
//! measurements run in one of their own, which the kernel removes, with everything in it, when its
//! last holder closes it.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// A namespace, kept alive by an open file.
#[derive(Debug)]
pub struct Namespace {
    inside: File,
}

const OF_THIS_THREAD: &str = "/proc/thread-self/ns/net";
/// Folder where `ip netns add` keeps named namespaces.
const NAMED: &str = "/run/netns";

impl Namespace {
    /// Creates an empty namespace without a name; the calling thread stays in its own.
    ///
    /// # Errors
    /// No permission to create one.
    pub fn new() -> io::Result<Self> {
        let home = File::open(OF_THIS_THREAD)?;
        // SAFETY: the call passes no memory; it changes only the network namespace of this thread.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let inside = File::open(OF_THIS_THREAD);
        enter(&home)?;
        Ok(Self { inside: inside? })
    }

    /// Opens the namespace that `ip netns add` created under that name, or the one at a path, such
    /// as `/proc/4711/ns/net` for that of a container's process.
    ///
    /// # Errors
    /// There is none, or no permission to open it.
    pub fn named(name: &str) -> io::Result<Self> {
        Ok(Self { inside: File::open(Path::new(NAMED).join(name))? })
    }

    /// Returns a path to the namespace, valid as long as this value lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.inside.as_raw_fd()).into()
    }

    /// Opens the namespace of the calling thread.
    ///
    /// # Errors
    /// No `/proc`.
    pub fn current() -> io::Result<Self> {
        Ok(Self { inside: File::open(OF_THIS_THREAD)? })
    }

    /// Runs `work` inside the namespace, with this thread and the processes and threads that it
    /// starts; then the thread returns to its own namespace.
    ///
    /// # Errors
    /// No permission to enter the namespace, or to return.
    pub fn with<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let home = File::open(OF_THIS_THREAD)?;
        enter(&self.inside)?;
        let result = work();
        enter(&home)?;
        Ok(result)
    }
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open; the call changes only the network namespace of this thread.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the index of an interface in the thread's namespace.
///
/// # Errors
/// There is no interface with that name.
pub fn interface(name: &str) -> io::Result<u32> {
    let text = std::ffi::CString::new(name)?;
    // SAFETY: the name ends with a 0.
    match unsafe { libc::if_nametoindex(text.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        number => Ok(number),
    }
}

/// Returns whether the thread's namespace has an interface with this index, under any name.
pub fn has_interface(number: u32) -> bool {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: the buffer has room for the longest name with its 0.
    !unsafe { libc::if_indextoname(number, name.as_mut_ptr()) }.is_null()
}

#[cfg(test)]
mod tests {
    use super::*;
    use freeport_testbed::skip;

    #[test]
    fn a_namespace_has_interfaces_of_its_own() {
        let namespace = match Namespace::new() {
            Ok(namespace) => namespace,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                skip("this process may not make network namespaces");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let add = ["link", "add", "fp0", "type", "veth", "peer", "name", "fp1"];
        let made = namespace.with(|| {
            let status = std::process::Command::new("ip").args(add).status()?;
            assert!(status.success(), "ip makes a pair of interfaces");
            interface("fp1")
        });
        let number = made.expect("the thread starts").expect("it was just made");
        assert!(number > 0);
        assert!(interface("fp1").is_err(), "the thread is at home again");
        assert!(namespace.with(|| has_interface(number)).expect("the thread starts"));
        assert!(!namespace.with(|| has_interface(number + 1_000)).expect("the thread starts"));
        let path = namespace.path();
        let again = Namespace::named(path.to_str().expect("it is text")).expect("it is there");
        again.with(|| interface("fp1")).expect("the thread starts").expect("the same one");
    }

    #[test]
    fn a_name_that_nobody_made_is_not_found() {
        let error = Namespace::named("no such namespace").expect_err("no such namespace");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
