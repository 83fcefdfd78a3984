// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Network namespaces: interfaces of a port may be in another one than the process, and what is
//! tested or measured is in one of its own, which is gone, with all that is in it, when nobody
//! holds it any more.

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
/// Where `ip netns add` keeps namespaces by name.
const NAMED: &str = "/run/netns";

impl Namespace {
    /// An empty one without a name; the calling thread stays where it was.
    ///
    /// # Errors
    /// No right to make one.
    pub fn new() -> io::Result<Self> {
        let home = File::open(OF_THIS_THREAD)?;
        // SAFETY: it changes only which network this thread sees.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let inside = File::open(OF_THIS_THREAD);
        enter(&home)?;
        Ok(Self { inside: inside? })
    }

    /// The one that `ip netns add` made with that name, or the one that a path leads to, such as
    /// `/proc/4711/ns/net` to that of a container's process.
    ///
    /// # Errors
    /// There is none, or no right to open it.
    pub fn named(name: &str) -> io::Result<Self> {
        Ok(Self { inside: File::open(Path::new(NAMED).join(name))? })
    }

    /// A path that leads to it as long as this value lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.inside.as_raw_fd()).into()
    }

    /// That of the calling thread.
    ///
    /// # Errors
    /// No `/proc`.
    pub fn current() -> io::Result<Self> {
        Ok(Self { inside: File::open(OF_THIS_THREAD)? })
    }

    /// Does something inside, with this thread and the processes and threads that it starts; then
    /// the thread is where it was.
    ///
    /// # Errors
    /// No right to enter it, or to come back.
    pub fn with<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let home = File::open(OF_THIS_THREAD)?;
        enter(&self.inside)?;
        let result = work();
        enter(&home)?;
        Ok(result)
    }
}

fn enter(namespace: &File) -> io::Result<()> {
    // SAFETY: it changes only which network this thread sees.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The number of an interface in the thread's namespace.
///
/// # Errors
/// There is none with that name.
pub fn interface(name: &str) -> io::Result<u32> {
    let text = std::ffi::CString::new(name)?;
    // SAFETY: the name ends with a 0.
    match unsafe { libc::if_nametoindex(text.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        number => Ok(number),
    }
}

/// Whether the thread's namespace has an interface of that number, whatever its name is.
pub fn has_interface(number: u32) -> bool {
    let mut name = [0; libc::IF_NAMESIZE];
    // SAFETY: there is room for the longest name with its 0.
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
        let number = made.expect("the thread comes and goes").expect("it was just made");
        assert!(number > 0);
        assert!(interface("fp1").is_err(), "the thread is at home again");
        assert!(namespace.with(|| has_interface(number)).expect("it comes and goes"));
        assert!(!namespace.with(|| has_interface(number + 1_000)).expect("it comes and goes"));
        let path = namespace.path();
        let again = Namespace::named(path.to_str().expect("it is text")).expect("it is there");
        again.with(|| interface("fp1")).expect("the thread comes and goes").expect("the same one");
    }

    #[test]
    fn a_name_that_nobody_made_is_not_found() {
        let error = Namespace::named("no such namespace").expect_err("nobody made it");
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
