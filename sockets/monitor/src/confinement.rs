// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Drops privileges of a monitor once it listens, to limit what an attacker gains by taking it
//! over.
//!
//! 1. Capabilities. It needs one, and only if it runs as root: [`NEEDED`]. All others are removed
//!    from its sets and from its bounding set.
//! 2. `no_new_privs`: no program that it could execute gains privileges.
//! 3. It is not dumpable: its memory and descriptors, which include its members' sockets, are
//!    accessible only to processes that may trace any process.
//! 4. System calls that it never makes are filtered.
//!
//! All of this applies to the calling thread and to threads it starts later, so the process must
//! still have one thread.

mod filter;

use crate::Error;
use crate::text::decoded;
use std::fs;

/// A capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capability {
    /// Its number in the kernel.
    pub number: u32,
    /// Its name, without `CAP_`.
    pub name: &'static str,
    /// Purpose for which a monitor uses it.
    pub meaning: &'static str,
}

/// Capabilities that root's monitor keeps. It inspects sockets through the sockets themselves,
/// which needs no privilege; it listens, sets limits and opens its files before it drops the
/// others, and its socket and lock belong to its user. But the kernel reveals properties of another
/// user's process only to a process that may trace it: its network namespace, for rules with `net`,
/// and, where `/proc` is mounted with `hidepid`, everything.
pub const NEEDED: [Capability; 1] = [Capability {
    number: 19,
    name: "SYS_PTRACE",
    meaning: "to know the network namespaces of other users' processes, for rules with `net`",
}];

/// Number of possible capabilities.
const NUMBERS: u32 = 64;
/// `_LINUX_CAPABILITY_VERSION_3` of the kernel: two halves of 32 bits.
const VERSION: u32 = 0x2008_0522;

/// Privileges of a process, as the kernel reports them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rights {
    /// Effective capabilities, one bit each.
    pub effective: u64,
    /// Bounding set: capabilities that it can ever have.
    pub bounding: u64,
    /// Whether programs that it executes gain no privileges.
    pub no_new_privileges: bool,
    /// Whether its system calls are filtered.
    pub is_filtered: bool,
}

impl Rights {
    /// Returns the privileges of a process; `None` if it cannot be inspected.
    pub fn of(pid: u32) -> Option<Self> {
        // The status contains the process name, which need not be UTF-8.
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

    /// Effective capabilities that a monitor does not [need](NEEDED), one bit each.
    pub fn others(&self) -> u64 {
        self.effective & !needed()
    }

    /// Whether it has dropped everything that a monitor does not need.
    pub fn is_confined(&self) -> bool {
        self.others() == 0 && self.no_new_privileges && self.is_filtered
    }

    /// Whether a capability is effective.
    pub fn has(&self, capability: Capability) -> bool {
        self.effective >> capability.number & 1 == 1
    }
}

/// Drops everything that a monitor does not need, for good. The process must have one thread.
///
/// # Errors
/// [`Error::System`] if the kernel refuses a step. The steps before it stay in effect.
pub fn confine() -> Result<(), Error> {
    drop_capabilities()?;
    set(libc::PR_SET_NO_NEW_PRIVS, 1, "PR_SET_NO_NEW_PRIVS")?;
    set(libc::PR_SET_DUMPABLE, 0, "PR_SET_DUMPABLE")?;
    filter::install()
}

fn set(option: i32, value: libc::c_ulong, what: &'static str) -> Result<(), Error> {
    let none: libc::c_ulong = 0;
    // SAFETY: the options passed here take only numbers.
    let result = unsafe { libc::prctl(option, value, none, none, none) };
    if result == 0 { Ok(()) } else { Err(Error::system(what)) }
}

/// Set of needed capabilities, one bit each.
fn needed() -> u64 {
    NEEDED.iter().fold(0, |set, it| set | 1 << it.number)
}

/// Keeps only those needed capabilities that the process already has.
fn drop_capabilities() -> Result<(), Error> {
    let needed = needed();
    for number in (0..NUMBERS).filter(|number| needed >> number & 1 == 0) {
        // SAFETY: only numbers are passed.
        let exists = unsafe { libc::prctl(libc::PR_CAPBSET_READ, libc::c_ulong::from(number)) };
        // An unprivileged process may not shrink the set, and need not: it gains nothing from it.
        if exists == 1
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
    // SAFETY: the structures are those of this version, and outlive the call.
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

/// Returns the capabilities of this thread.
fn capabilities() -> Result<[Half; 2], Error> {
    let mut header = Header { version: VERSION, pid: 0 };
    let mut halves = [Half::default(); 2];
    // SAFETY: the structures are those of this version, and there is room for both halves.
    let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) };
    if result == 0 { Ok(halves) } else { Err(Error::system("capget")) }
}
