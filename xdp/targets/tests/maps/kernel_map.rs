// SPDX-License-Identifier: Apache-2.0 OR MIT
//! A map of the kernel, through `bpf(2)` directly, so that libbpf's own checks do not intervene.

use freeport_ebpf::maps::ErrorNumber;
use freeport_ebpf::object::MapDefinition;
use libbpf_rs::libbpf_sys as sys;
use std::ffi::c_void;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// A map and the sizes of its keys and values.
pub struct KernelMap {
    descriptor: OwnedFd,
    key_size: usize,
    value_size: usize,
    /// Number of values of each key; if there are several, each is padded to a multiple of 8 bytes.
    processors: usize,
}

/// Converts the result of a call.
fn result(returned: i32) -> Result<(), ErrorNumber> {
    if returned < 0 { Err(ErrorNumber(-returned)) } else { Ok(()) }
}

impl KernelMap {
    /// Creates a map.
    pub fn create(definition: &MapDefinition, is_per_processor: bool) -> Result<Self, ErrorNumber> {
        let options = sys::bpf_map_create_opts {
            sz: size_of::<sys::bpf_map_create_opts>() as sys::size_t,
            map_flags: definition.flags,
            map_extra: definition.extra,
            ..Default::default()
        };
        // SAFETY: the name is a C string, and the options outlive the call.
        let descriptor = unsafe {
            sys::bpf_map_create(
                definition.kind.number(),
                c"freeport".as_ptr(),
                definition.key_size,
                definition.value_size,
                definition.max_entries,
                &raw const options,
            )
        };
        result(descriptor)?;
        let processors = if is_per_processor {
            libbpf_rs::num_possible_cpus().expect("a machine has processors")
        } else {
            1
        };
        Ok(Self {
            // SAFETY: the kernel has just returned the descriptor, and this value is its only
            // owner.
            descriptor: unsafe { OwnedFd::from_raw_fd(descriptor) },
            key_size: definition.key_size as usize,
            value_size: definition.value_size as usize,
            processors,
        })
    }

    /// Returns a buffer for the values of a key.
    fn room(&self) -> Vec<u8> {
        let each = self.value_size.next_multiple_of(8);
        vec![0; if self.processors > 1 { each * self.processors } else { each }]
    }

    /// Returns the key as the kernel takes it; null for maps without keys.
    fn key(&self, key: &[u8]) -> *const c_void {
        assert_eq!(key.len(), self.key_size);
        if key.is_empty() { ptr::null() } else { key.as_ptr().cast() }
    }

    /// Sets the value of a key, for all processors.
    pub fn update(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), ErrorNumber> {
        assert_eq!(value.len(), self.value_size);
        let mut room = self.room();
        for place in room.chunks_mut(self.value_size.next_multiple_of(8).max(1)) {
            place[..value.len()].copy_from_slice(value);
        }
        // SAFETY: key and value have the sizes of the map.
        result(unsafe {
            sys::bpf_map_update_elem(self.raw(), self.key(key), room.as_ptr().cast(), flags)
        })
    }

    /// Returns the value of a key, on the first processor.
    pub fn lookup(&self, key: &[u8]) -> Result<Vec<u8>, ErrorNumber> {
        let mut room = self.room();
        // SAFETY: as above.
        result(unsafe {
            sys::bpf_map_lookup_elem(self.raw(), self.key(key), room.as_mut_ptr().cast())
        })?;
        room.truncate(self.value_size);
        Ok(room)
    }

    /// Removes and returns the value of a key, or the next value of a queue.
    pub fn take(&self, key: &[u8]) -> Result<Vec<u8>, ErrorNumber> {
        let mut room = self.room();
        // SAFETY: as above.
        result(unsafe {
            sys::bpf_map_lookup_and_delete_elem(self.raw(), self.key(key), room.as_mut_ptr().cast())
        })?;
        room.truncate(self.value_size);
        Ok(room)
    }

    /// Checks whether a Bloom filter may contain a value.
    pub fn may_hold(&self, value: &[u8]) -> Result<(), ErrorNumber> {
        let mut room = value.to_vec();
        // SAFETY: as above.
        result(unsafe {
            sys::bpf_map_lookup_elem(self.raw(), ptr::null(), room.as_mut_ptr().cast())
        })
    }

    /// Deletes a key.
    pub fn delete(&self, key: &[u8]) -> Result<(), ErrorNumber> {
        // SAFETY: as above.
        result(unsafe { sys::bpf_map_delete_elem(self.raw(), self.key(key)) })
    }

    /// Returns all keys, in the kernel's order.
    pub fn keys(&self) -> Result<Vec<Vec<u8>>, ErrorNumber> {
        let (mut keys, mut next): (Vec<Vec<u8>>, _) = (vec![], vec![0; self.key_size]);
        loop {
            let before = keys.last().map_or(ptr::null(), |key| key.as_ptr().cast());
            // SAFETY: as above.
            let came = result(unsafe {
                sys::bpf_map_get_next_key(self.raw(), before, next.as_mut_ptr().cast())
            });
            match came {
                Ok(()) => keys.push(next.clone()),
                Err(ErrorNumber::ENOENT) => return Ok(keys),
                Err(error) => return Err(error),
            }
        }
    }

    fn raw(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }
}
