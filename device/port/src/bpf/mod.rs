// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The commands of the `bpf` system call that Freeport uses, for ports on network interfaces and
//! for the kernel's programs in the bench: maps, programs of type XDP, their test runs, and
//! putting them on interfaces. Each command has its part of `union bpf_attr`; the kernel takes
//! fields behind the given ones for 0.
//!
//! Maps, programs and attachments are descriptors: all of them go when the process ends, however
//! it ends.

mod map;
mod program;

pub use map::{Map, MapDefinition};
pub use program::{AttachMode, Attachment, LoadOptions, TestRun, XdpProgram, attach};

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Bytes of an instruction.
pub const INSTRUCTION_BYTES: usize = 8;

/// What the kernel refused.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// A map could not be made, read or changed.
    #[error("BPF map {name}: {source}")]
    Map {
        /// Which map.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A key or value of another length than the map has.
    #[error("BPF map {name} has keys and values of {expected:?} bytes, not {given:?}")]
    EntryLength {
        /// Which map.
        name: String,
        /// Bytes of its keys and values.
        expected: (usize, usize),
        /// Bytes of those given.
        given: (usize, usize),
    },
    /// A program could not be loaded.
    #[error("the kernel does not load the BPF program {name}: {source}{}", told(log))]
    Load {
        /// Which program.
        name: String,
        /// The last lines of the verifier.
        log: String,
        /// Why.
        source: io::Error,
    },
    /// A program could not be run on a frame.
    #[error("the kernel's test run: {0}")]
    TestRun(#[source] io::Error),
    /// A program could not be put on an interface.
    #[error("the kernel does not put the program on the interface: {0}")]
    Attach(#[source] io::Error),
}

impl BpfError {
    /// What the system said; none where it was not asked.
    pub fn system(&self) -> Option<&io::Error> {
        match self {
            Self::Map { source, .. } | Self::Load { source, .. } => Some(source),
            Self::TestRun(source) | Self::Attach(source) => Some(source),
            Self::EntryLength { .. } => None,
        }
    }
}

fn told(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!(" ({log})") }
}

/// The `bpf` system call.
///
/// # Safety
/// `attributes` is what the command takes, and its pointers are valid for their lengths.
unsafe fn bpf<T>(command: libc::c_long, attributes: &mut T) -> io::Result<i32> {
    let size = size_of::<T>();
    // SAFETY: the caller vouches for what is behind the pointers.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes as *mut T, size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// As [`bpf`], for commands that give a descriptor.
///
/// # Safety
/// As for `bpf`; and the command is one that gives a new descriptor.
unsafe fn bpf_descriptor<T>(command: libc::c_long, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller vouches for it.
    let number = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just given us this descriptor, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
