// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Flags of maps and of their updates, with the kernel's numbers.

use super::ErrorNumber;
use crate::object::MapKind;

/// Update: insert or replace.
pub const ANY: u64 = 0;
/// Update: insert only.
pub const NOEXIST: u64 = 1;
/// Update: replace only; a full queue drops its oldest value.
pub const EXIST: u64 = 2;
/// Update: under the lock in the value, which must have one. The lock is always free here.
pub const LOCK: u64 = 4;

/// Map: elements are not preallocated.
pub const NO_PREALLOC: u32 = 1;
/// Map: each processor has its own LRU list. There is only one here.
pub const NO_COMMON_LRU: u32 = 1 << 1;
/// Map: its memory is allocated on a given NUMA node. This has no effect on its behaviour.
pub const NUMA_NODE: u32 = 1 << 2;
/// Map: user space may only read.
pub const READ_ONLY: u32 = 1 << 3;
/// Map: user space may only write.
pub const WRITE_ONLY: u32 = 1 << 4;
/// Map: its hash seed is 0.
pub const ZERO_SEED: u32 = 1 << 6;
/// Map: programs may only read.
pub const READ_ONLY_TO_PROGRAMS: u32 = 1 << 7;
/// Map: programs may only write.
pub const WRITE_ONLY_TO_PROGRAMS: u32 = 1 << 8;
/// Map: user space may map its memory.
pub const MAPPABLE: u32 = 1 << 10;
/// Map: entries remain after the process that set them closes the map.
pub const PRESERVE_ELEMENTS: u32 = 1 << 11;
/// Map: as an inner map, it allows maps with any number of entries.
pub const INNER_MAP: u32 = 1 << 12;

/// Flags that restrict reading and writing.
const ACCESS: u32 = READ_ONLY | WRITE_ONLY | READ_ONLY_TO_PROGRAMS | WRITE_ONLY_TO_PROGRAMS;

/// Checks the flags of a map as the kernel does.
///
/// # Errors
/// Flags that the kind does not support or requires, or that exclude each other.
pub(crate) fn check_of_map(kind: MapKind, flags: u32) -> Result<(), String> {
    use MapKind::*;
    let known = match kind {
        Hash | PerCpuHash | HashOfMaps => NO_PREALLOC | NUMA_NODE | ACCESS | ZERO_SEED,
        LruHash => NO_COMMON_LRU | NUMA_NODE | ACCESS | ZERO_SEED,
        LruPerCpuHash => NO_COMMON_LRU | ACCESS | ZERO_SEED,
        Array => MAPPABLE | INNER_MAP | NUMA_NODE | ACCESS,
        PerCpuArray => ACCESS,
        ArrayOfMaps => NUMA_NODE | ACCESS,
        PerfEventArray => PRESERVE_ELEMENTS | NUMA_NODE | READ_ONLY | WRITE_ONLY,
        ProgramArray => NUMA_NODE | READ_ONLY | WRITE_ONLY,
        LpmTrie => NO_PREALLOC | NUMA_NODE | ACCESS,
        Devmap | DevmapHash => NUMA_NODE | READ_ONLY | WRITE_ONLY,
        Queue | Stack => NUMA_NODE | ACCESS,
        BloomFilter => NUMA_NODE | ZERO_SEED | ACCESS,
        RingBuffer | Cpumap | Xskmap => NUMA_NODE,
        _ => u32::MAX,
    };
    let unknown = flags & !known;
    let both = READ_ONLY_TO_PROGRAMS | WRITE_ONLY_TO_PROGRAMS;
    if unknown != 0 {
        return Err(format!("a map of kind {kind} does not support the flags {unknown:#x}"));
    }
    if flags & both == both {
        return Err("it is both read-only and write-only for programs".to_owned());
    }
    if kind == LpmTrie && flags & NO_PREALLOC == 0 {
        return Err("it lacks the flag BPF_F_NO_PREALLOC".to_owned());
    }
    Ok(())
}

/// Checks the flags of an update against the existence of the element.
///
/// # Errors
/// `EINVAL` for unknown flags, `EEXIST` and `ENOENT` where the flags exclude this update.
pub(crate) fn check(flags: u64, exists: bool) -> Result<(), ErrorNumber> {
    match flags & !LOCK {
        ANY => Ok(()),
        NOEXIST if exists => Err(ErrorNumber::EEXIST),
        EXIST if !exists => Err(ErrorNumber::ENOENT),
        NOEXIST | EXIST => Ok(()),
        _ => Err(ErrorNumber::EINVAL),
    }
}
