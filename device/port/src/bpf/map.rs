// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Maps: tables in the kernel that programs and this process share.

use super::{BpfError, bpf, bpf_descriptor};
use std::os::fd::{AsRawFd, OwnedFd};

const BPF_MAP_CREATE: libc::c_long = 0;
const BPF_MAP_LOOKUP_ELEM: libc::c_long = 1;
const BPF_MAP_UPDATE_ELEM: libc::c_long = 2;
const BPF_MAP_DELETE_ELEM: libc::c_long = 3;

/// Definition of a map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MapDefinition {
    /// Name used in messages.
    pub name: String,
    /// `BPF_MAP_TYPE_...`.
    pub kind: u32,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Maximum number of entries.
    pub entries: u32,
    /// `BPF_F_...`.
    pub flags: u32,
}

/// A map of the kernel.
#[derive(Debug)]
pub struct Map {
    file: OwnedFd,
    definition: MapDefinition,
}

impl Map {
    /// Creates an empty map.
    ///
    /// # Errors
    /// The kernel refuses to create the map.
    pub fn create(definition: MapDefinition) -> Result<Self, BpfError> {
        let mut attributes = MapAttributes {
            kind: definition.kind,
            key_bytes: definition.key_bytes,
            value_bytes: definition.value_bytes,
            entries: definition.entries,
            flags: definition.flags,
        };
        // SAFETY: the attributes hold no pointers, and the command returns a descriptor.
        match unsafe { bpf_descriptor(BPF_MAP_CREATE, &mut attributes) } {
            Ok(file) => Ok(Self { file, definition }),
            Err(source) => Err(BpfError::Map { name: definition.name, source }),
        }
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// A key or value of another length, or an update that the kernel refuses, such as for a full
    /// map.
    pub fn update(&self, key: &[u8], value: &[u8]) -> Result<(), BpfError> {
        self.check(key, value.len())?;
        let mut attributes = self.entry(key, value.as_ptr() as u64);
        // SAFETY: key and value have the lengths that the map has, and outlive the call.
        let result = unsafe { bpf(BPF_MAP_UPDATE_ELEM, &mut attributes) };
        result.map(drop).map_err(|source| self.error(source))
    }

    /// Reads the value of a key.
    ///
    /// # Errors
    /// A key of another length, or one that does not exist.
    pub fn lookup(&self, key: &[u8]) -> Result<Vec<u8>, BpfError> {
        let mut value = vec![0; self.definition.value_bytes as usize];
        self.check(key, value.len())?;
        let mut attributes = self.entry(key, value.as_mut_ptr() as u64);
        // SAFETY: as above; the kernel writes a value to memory that is as long.
        let result = unsafe { bpf(BPF_MAP_LOOKUP_ELEM, &mut attributes) };
        result.map_err(|source| self.error(source))?;
        Ok(value)
    }

    /// Removes a key.
    ///
    /// # Errors
    /// A key of another length, or one that does not exist.
    pub fn delete(&self, key: &[u8]) -> Result<(), BpfError> {
        self.check(key, self.definition.value_bytes as usize)?;
        let mut attributes = self.entry(key, 0);
        // SAFETY: the key has the length that the map has, and outlives the call.
        let result = unsafe { bpf(BPF_MAP_DELETE_ELEM, &mut attributes) };
        result.map(drop).map_err(|source| self.error(source))
    }

    /// Returns the number that a program contains in place of the map's address.
    pub fn number(&self) -> u32 {
        self.file.as_raw_fd() as u32
    }

    fn check(&self, key: &[u8], value_bytes: usize) -> Result<(), BpfError> {
        let expected = (self.definition.key_bytes as usize, self.definition.value_bytes as usize);
        let given = (key.len(), value_bytes);
        if given == expected {
            return Ok(());
        }
        Err(BpfError::EntryLength { name: self.definition.name.clone(), expected, given })
    }

    fn entry(&self, key: &[u8], value: u64) -> EntryAttributes {
        EntryAttributes { map: self.number(), spare: 0, key: key.as_ptr() as u64, value, flags: 0 }
    }

    fn error(&self, source: std::io::Error) -> BpfError {
        BpfError::Map { name: self.definition.name.clone(), source }
    }
}

/// Attributes of `BPF_MAP_CREATE`.
#[repr(C)]
struct MapAttributes {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

/// Attributes of `BPF_MAP_LOOKUP_ELEM`, `BPF_MAP_UPDATE_ELEM` and `BPF_MAP_DELETE_ELEM`.
#[repr(C)]
struct EntryAttributes {
    map: u32,
    spare: u32,
    key: u64,
    value: u64,
    flags: u64,
}
