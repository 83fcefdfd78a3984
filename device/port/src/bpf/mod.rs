// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Commands of the `bpf` system call that Freeport uses, for ports on network interfaces and for
//! the kernel's programs in the bench: creating maps, loading XDP programs, running them on test
//! frames, and attaching them to interfaces. Each command has its part of `union bpf_attr`; the
//! kernel takes fields beyond the given ones as 0.
//!
//! Maps, programs and attachments are descriptors: the kernel removes all of them when the process
//! ends, however it ends.

mod map;
mod program;

pub use map::{Map, MapDefinition};
pub use program::{AttachMode, Attachment, LoadOptions, TestRun, XdpProgram, attach};

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Bytes of an instruction.
pub const INSTRUCTION_BYTES: usize = 8;

/// Errors of the `bpf` system call.
#[derive(Debug, thiserror::Error)]
pub enum BpfError {
    /// A map could not be created, read or changed.
    #[error("BPF map {name}: {source}")]
    Map {
        /// Name of the map.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// A key or value of another length than the map has.
    #[error("BPF map {name} has keys and values of {expected:?} bytes, not {given:?}")]
    EntryLength {
        /// Name of the map.
        name: String,
        /// Bytes of its keys and values.
        expected: (usize, usize),
        /// Bytes of the key and value given.
        given: (usize, usize),
    },
    /// A program could not be loaded.
    #[error("the kernel refuses to load the BPF program {name}: {source}{}", reported(log))]
    Load {
        /// Name of the program.
        name: String,
        /// Last lines of the verifier's log.
        log: String,
        /// The system's error.
        source: io::Error,
    },
    /// A program could not be run on a frame.
    #[error("the kernel's test run failed: {0}")]
    TestRun(#[source] io::Error),
    /// A program could not be attached to an interface.
    #[error("the kernel refuses to attach the program to the interface: {0}")]
    Attach(#[source] io::Error),
}

impl BpfError {
    /// Returns the system's error; none for an error found before the call.
    pub fn system(&self) -> Option<&io::Error> {
        match self {
            Self::Map { source, .. } | Self::Load { source, .. } => Some(source),
            Self::TestRun(source) | Self::Attach(source) => Some(source),
            Self::EntryLength { .. } => None,
        }
    }
}

fn reported(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!(" ({log})") }
}

/// Calls the `bpf` system call.
///
/// # Safety
/// `attributes` has the type that the command requires, and its pointers are valid for their
/// lengths.
unsafe fn bpf<T>(command: libc::c_long, attributes: &mut T) -> io::Result<i32> {
    let size = size_of::<T>();
    // SAFETY: the caller upholds that the attributes fit the command and their pointers are valid.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes as *mut T, size) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// Like [`bpf`], for commands that return a descriptor.
///
/// # Safety
/// The obligations of `bpf`, and the command must be one that returns a new descriptor.
unsafe fn bpf_descriptor<T>(command: libc::c_long, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller upholds the contract of `bpf`.
    let number = unsafe { bpf(command, attributes) }?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}
