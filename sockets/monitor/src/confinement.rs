// SPDX-License-Identifier: Apache-2.0 OR MIT
//! What a monitor gives up once it listens: whoever takes it over by what it is sent has little.
//!
//! 1. Capabilities. It needs one, and only where it is root's: [`NEEDED`]. All others leave its
//!    sets, and the set of those that it could ever have again.
//! 2. `no_new_privs`: no program that it could execute has more rights than it has.
//! 3. It is not dumpable: its memory and descriptors, which are its members' sockets, are open to
//!    nobody but who may trace any process.
//! 4. System calls that it never makes.
//!
//! All hold for the calling thread and for those that it begins, so there must be no other yet.

mod filter;

use crate::Error;
use crate::text::decoded;
use std::fs;

/// A capability by its number in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capability {
    /// The number.
    pub number: u32,
    /// The name, without `CAP_`.
    pub name: &'static str,
    /// What a monitor uses it for.
    pub meaning: &'static str,
}

/// Those that a monitor of root keeps. It asks the kernel of sockets with the sockets themselves,
/// which anybody may who has them; it listens, sets limits and opens its files before it gives up
/// the others, and its socket and lock are its user's. But what another user's process is, the
/// kernel tells only who may trace it: its namespace of the network, for rules with `net`, and all
/// of it where `/proc` is mounted with `hidepid`.
pub const NEEDED: [Capability; 1] = [Capability {
    number: 19,
    name: "SYS_PTRACE",
    meaning: "to know the network namespaces of other users' processes, for rules with `net`",
}];

/// The highest number that a capability can have.
const NUMBERS: u32 = 64;
/// `_LINUX_CAPABILITY_VERSION_3` of the kernel: two halves of 32 bits.
const VERSION: u32 = 0x2008_0522;

/// What the kernel says of a process's rights.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    /// The capabilities that hold, a bit each.
    pub effective: u64,
    /// Those that it may ever have.
    pub bounding: u64,
    /// Whether no program that it executes has more.
    pub no_new_privileges: bool,
    /// Whether its system calls are filtered.
    pub is_filtered: bool,
}

impl Rights {
    /// Those of a process; `None`: it cannot be looked at.
    pub fn of(pid: u32) -> Option<Self> {
        // With its name, which need not be UTF-8.
        let status = decoded(&fs::read(format!("/proc/{pid}/status")).ok()?);
        let value = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let set = |name| u64::from_str_radix(value(name)?, 16).ok();
        Some(Self {
            effective: set("CapEff:")?,
            bounding: set("CapBnd:")?,
            no_new_privileges: value("NoNewPrivs:") == Some("1"),
            is_filtered: value("Seccomp:") == Some("2"),
        })
    }

    /// Capabilities that hold and that a monitor does not [need](NEEDED), a bit each.
    pub fn others(&self) -> u64 {
        self.effective & !needed()
    }

    /// Whether a monitor has given up what it does not need.
    pub fn is_confined(&self) -> bool {
        self.others() == 0 && self.no_new_privileges && self.is_filtered
    }

    /// Whether a capability holds.
    pub fn has(&self, capability: Capability) -> bool {
        self.effective >> capability.number & 1 == 1
    }
}

/// Gives up what a monitor does not need, for good. The process must have one thread.
///
/// # Errors
/// `System`: the kernel refuses something. What comes before that is given up.
pub fn confine() -> Result<(), Error> {
    drop_capabilities()?;
    set(libc::PR_SET_NO_NEW_PRIVS, 1, "PR_SET_NO_NEW_PRIVS")?;
    set(libc::PR_SET_DUMPABLE, 0, "PR_SET_DUMPABLE")?;
    filter::install()
}

fn set(option: i32, value: libc::c_ulong, what: &'static str) -> Result<(), Error> {
    let none: libc::c_ulong = 0;
    // SAFETY: the options that are passed here take numbers only.
    let result = unsafe { libc::prctl(option, value, none, none, none) };
    if result == 0 { Ok(()) } else { Err(Error::system(what)) }
}

/// The needed ones, a bit each.
fn needed() -> u64 {
    NEEDED.iter().fold(0, |set, it| set | 1 << it.number)
}

/// Keeps of the needed ones those that are there.
fn drop_capabilities() -> Result<(), Error> {
    let needed = needed();
    for number in (0..NUMBERS).filter(|number| needed >> number & 1 == 0) {
        // SAFETY: numbers only.
        let is_there = unsafe { libc::prctl(libc::PR_CAPBSET_READ, libc::c_ulong::from(number)) };
        // A process without rights may not shrink the set, and need not: it gets none from it.
        if is_there == 1
            && let Err(error) =
                set(libc::PR_CAPBSET_DROP, libc::c_ulong::from(number), "PR_CAPBSET_DROP")
        {
            match error {
                Error::System { source, .. } if source.raw_os_error() == Some(libc::EPERM) => break,
                error => return Err(error),
            }
        }
    }
    let before = capabilities()?;
    let kept = [0, 1].map(|at| {
        let permitted = before[at].permitted & (needed >> (32 * at)) as u32;
        Half { effective: permitted, permitted, inheritable: 0 }
    });
    let header = Header { version: VERSION, pid: 0 };
    // SAFETY: the structures are those of this version, and live as long as the call.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw const header, kept.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(Error::system("capset")) }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Those of this thread.
fn capabilities() -> Result<[Half; 2], Error> {
    let mut header = Header { version: VERSION, pid: 0 };
    let mut halves = [Half::default(); 2];
    // SAFETY: the structures are those of this version, and there is room for both halves.
    let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) };
    if result == 0 { Ok(halves) } else { Err(Error::system("capget")) }
}
