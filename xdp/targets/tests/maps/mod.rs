// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Maps changed from user space behave like the kernel's: the same values, and the same error for
//! the same misuse, for each supported kind. `FREEPORT_SEED` sets another first seed.

mod kernel_map;
mod references;

use fastrand::Rng;
use freeport_ebpf::maps::flags::{NO_PREALLOC, READ_ONLY_TO_PROGRAMS};
use freeport_ebpf::maps::{ErrorNumber, Map};
use freeport_ebpf::object::{MapDefinition, MapKind};
use freeport_testbed::seed;
use freeport_testbed::skip;
use freeport_xdp::Kernel;
use kernel_map::KernelMap;
use std::collections::BTreeMap;

const OPERATIONS: usize = 3_000;

/// Kinds with arbitrary keys.
const BY_KEY: [MapKind; 4] =
    [MapKind::Hash, MapKind::PerCpuHash, MapKind::LruHash, MapKind::LruPerCpuHash];
/// Kinds whose keys are indices.
const BY_PLACE: [MapKind; 4] =
    [MapKind::Array, MapKind::PerCpuArray, MapKind::Devmap, MapKind::Cpumap];

fn is_per_processor(kind: MapKind) -> bool {
    matches!(kind, MapKind::PerCpuArray | MapKind::PerCpuHash | MapKind::LruPerCpuHash)
}

fn definition(kind: MapKind, key_size: u32, value_size: u32, max_entries: u32) -> MapDefinition {
    let flags = if kind == MapKind::LpmTrie { NO_PREALLOC } else { 0 };
    let name = "map".to_owned();
    MapDefinition { name, kind, key_size, value_size, max_entries, flags, ..Default::default() }
}

/// The same map here and in the kernel.
struct Pair {
    kind: MapKind,
    ours: Map,
    kernel: KernelMap,
    random: Rng,
}

impl Pair {
    fn new(definition: &MapDefinition, seed: u64) -> Self {
        let kind = definition.kind;
        let ours = Map::new(definition, seed, 1 << 20).unwrap_or_else(|error| panic!("{error}"));
        let kernel = KernelMap::create(definition, is_per_processor(kind));
        let kernel = kernel.unwrap_or_else(|error| panic!("{definition:?}: {error}"));
        Self { kind, ours, kernel, random: Rng::with_seed(seed) }
    }

    /// Makes a random change or lookup; both maps must give the same result.
    fn step(&mut self, key: &[u8], value: &[u8]) {
        let flags = if self.random.u8(..4) > 0 { 0 } else { self.random.u64(..10) };
        let kind = self.kind;
        match self.random.u8(..10) {
            0..5 => {
                let expected = self.kernel.update(key, value, flags);
                let found = self.ours.update(key, value, flags);
                assert_eq!(found, expected, "{kind}: update {key:?} to {value:?}, flags {flags}");
            }
            5..7 => {
                let (expected, found) = (self.kernel.delete(key), self.ours.delete(key));
                assert_eq!(found, expected, "{kind}: delete {key:?}");
            }
            7..9 => {
                let expected = self.kernel.lookup(key);
                let found = self.ours.lookup(key).map(<[u8]>::to_vec);
                assert_eq!(found, expected, "{kind}: look up {key:?}");
            }
            _ => self.compare_keys(),
        }
    }

    fn compare_keys(&mut self) {
        let mut expected = self.kernel.keys().expect("a map with keys");
        let mut found = vec![];
        let mut next = self.ours.next_key(None);
        while let Some(key) = next {
            next = self.ours.next_key(Some(&key));
            found.push(key);
        }
        expected.sort();
        found.sort();
        assert_eq!(found, expected, "keys of {}", self.kind);
    }
}

/// Returns whether the kernel can be used; if not, marks the test as skipped with the reason.
#[track_caller]
fn may_ask_kernel() -> bool {
    let refusal = Kernel::refusal();
    if let Some(reason) = &refusal {
        skip(reason);
    }
    refusal.is_none()
}

#[test]
fn hashes_answer_as_the_kernels() {
    if !may_ask_kernel() {
        return;
    }
    for kind in BY_KEY {
        let is_lru = matches!(kind, MapKind::LruHash | MapKind::LruPerCpuHash);
        // More keys than fit, except where the least recently used ones are evicted.
        let max_entries = if is_lru { 400 } else { 12 };
        let mut pair = Pair::new(&definition(kind, 3, 5, max_entries), seed());
        for _ in 0..OPERATIONS {
            let key = [pair.random.u8(..17), 0, 7];
            let value = [pair.random.u8(..); 5];
            pair.step(&key, &value);
        }
    }
}

/// The two implementations may evict different keys. The key set last is present in both, no map
/// exceeds its capacity, and each remaining key has the value that was set.
#[test]
fn full_maps_that_forget_keep_what_was_set_last() {
    if !may_ask_kernel() {
        return;
    }
    const FITS: u32 = 256;
    for kind in [MapKind::LruHash, MapKind::LruPerCpuHash] {
        let Pair { mut ours, kernel, mut random, .. } =
            Pair::new(&definition(kind, 4, 4, FITS), seed());
        let mut given = BTreeMap::new();
        for number in 0..OPERATIONS as u32 {
            let (key, value) = (random.u32(..2 * FITS).to_ne_bytes(), number.to_ne_bytes());
            given.insert(key.to_vec(), value.to_vec());
            assert_eq!(
                (ours.update(&key, &value, 0), kernel.update(&key, &value, 0)),
                (Ok(()), Ok(()))
            );
            assert_eq!(ours.lookup(&key), Ok(&value[..]), "{kind}");
            assert_eq!(kernel.lookup(&key).as_deref(), Ok(&value[..]), "{kind}");
        }
        let entries = ours.entries();
        assert_eq!(entries.len(), FITS as usize, "{kind}: all places are used");
        assert!(entries.iter().all(|(key, value)| given.get(key) == Some(value)), "{kind}");
        let keys = kernel.keys().expect("a map with keys");
        assert!(keys.len() <= FITS as usize && keys.len() > FITS as usize / 4, "{}", keys.len());
        for key in &keys {
            assert_eq!(kernel.lookup(key).as_ref().ok(), given.get(key), "{kind}");
        }
    }
}

#[test]
fn places_answer_as_the_kernels() {
    if !may_ask_kernel() {
        return;
    }
    for kind in BY_PLACE {
        let processors = libbpf_rs::num_possible_cpus().expect("a machine has processors") as u32;
        let count = if kind == MapKind::Cpumap { processors } else { 5 };
        let mut pair = Pair::new(&definition(kind, 4, 4, count), seed());
        // Creating queues of processors starts kernel threads, which takes time.
        for _ in 0..if kind == MapKind::Cpumap { OPERATIONS / 20 } else { OPERATIONS } {
            let key = pair.random.u32(..count + 2).to_ne_bytes();
            let value = match kind {
                MapKind::Array | MapKind::PerCpuArray => pair.random.u32(..),
                // The loopback interface, or none.
                MapKind::Devmap => pair.random.u32(..2),
                _ => [0, 1, 192, 16_384, 16_385][pair.random.usize(..5)],
            };
            pair.step(&key, &value.to_ne_bytes());
        }
    }
}

#[test]
fn devices_by_key_answer_as_the_kernels() {
    if !may_ask_kernel() {
        return;
    }
    for value_size in [4, 8] {
        let mut pair = Pair::new(&definition(MapKind::DevmapHash, 4, value_size, 4), seed());
        for _ in 0..OPERATIONS {
            let key = pair.random.u32(..7).to_ne_bytes();
            let mut value = vec![0; value_size as usize];
            value[..4].copy_from_slice(&pair.random.u32(..2).to_ne_bytes());
            pair.step(&key, &value);
        }
    }
}

#[test]
fn prefixes_answer_as_the_kernels() {
    if !may_ask_kernel() {
        return;
    }
    for data_size in [1, 4, 16] {
        let definition = definition(MapKind::LpmTrie, 4 + data_size, 5, 20);
        let mut pair = Pair::new(&definition, seed());
        for _ in 0..OPERATIONS {
            // Keys that differ in few bits, with prefix lengths up to one above the maximum.
            let mut key = pair.random.u32(..8 * data_size + 2).to_ne_bytes().to_vec();
            key.extend((0..data_size).map(|_| pair.random.u8(..4) << 6));
            let value = [pair.random.u8(..); 5];
            pair.step(&key, &value);
        }
    }
}

#[test]
fn queues_and_stacks_answer_as_the_kernels() {
    if !may_ask_kernel() {
        return;
    }
    for kind in [MapKind::Queue, MapKind::Stack] {
        let Pair { mut ours, kernel, mut random, .. } =
            Pair::new(&definition(kind, 0, 6, 3), seed());
        for _ in 0..OPERATIONS {
            let value = [random.u8(..); 6];
            let flags = if random.bool() { 0 } else { random.u64(..6) };
            match random.u8(..5) {
                0..2 => {
                    let expected = kernel.update(&[], &value, flags);
                    assert_eq!(ours.push(&value, flags), expected, "{kind}: push, flags {flags}");
                }
                2 => assert_eq!(ours.peek(), kernel.lookup(&[]), "{kind}: peek"),
                3 => assert_eq!(ours.pop(), kernel.take(&[]), "{kind}: pop"),
                _ => {
                    assert!(kernel.delete(&[]).is_err() && ours.delete(&[]).is_err());
                    assert!(kernel.keys().is_err() && ours.next_key(None).is_none());
                }
            }
        }
    }
}

/// False positives of a filter are random on both sides; a value that was added is always found.
#[test]
fn filters_answer_as_the_kernels() {
    if !may_ask_kernel() {
        return;
    }
    let Pair { mut ours, kernel, mut random, .. } =
        Pair::new(&definition(MapKind::BloomFilter, 0, 4, 100), seed());
    for _ in 0..OPERATIONS {
        let value = random.u32(..200).to_ne_bytes();
        let flags = if random.u8(..4) > 0 { 0 } else { random.u64(..6) };
        let expected = kernel.update(&[], &value, flags);
        assert_eq!(ours.push(&value, flags), expected, "push, flags {flags}");
        if expected.is_ok() {
            assert_eq!((ours.may_hold(&value), kernel.may_hold(&value)), (Ok(true), Ok(())));
        }
    }
    let of_strangers: Vec<_> = (1_000_u32..1_400).map(u32::to_ne_bytes).collect();
    let chance = |holds: &mut dyn FnMut(&[u8; 4]) -> bool| {
        of_strangers.iter().filter(|value| holds(value)).count()
    };
    let expected = chance(&mut |value| kernel.may_hold(value) == Ok(()));
    let found = chance(&mut |value| ours.may_hold(value) == Ok(true));
    // A few of 400 in a hundred are false positives on either side.
    assert!(expected < 100 && found < 100, "{expected} in the kernel, {found} here");
}

#[test]
fn definitions_are_refused_as_by_the_kernel() {
    if !may_ask_kernel() {
        return;
    }
    let kinds = [
        BY_KEY.as_slice(),
        BY_PLACE.as_slice(),
        &[MapKind::DevmapHash, MapKind::LpmTrie, MapKind::Queue, MapKind::Stack],
        &[MapKind::BloomFilter, MapKind::RingBuffer, MapKind::ProgramArray],
    ];
    let mut random = Rng::with_seed(seed());
    let mut made = 0;
    for kind in kinds.concat() {
        for _ in 0..200 {
            let key_size = [0, 1, 4, 4, 4, 5, 8, 260, 261][random.usize(..9)];
            let value_size = [0, 1, 4, 4, 4, 8, 9][random.usize(..7)];
            let max_entries = [0, 1, 7, 4096, 8192, 12_288][random.usize(..6)];
            let flags = [0, 0, NO_PREALLOC, READ_ONLY_TO_PROGRAMS][random.usize(..4)];
            let definition =
                MapDefinition { flags, ..definition(kind, key_size, value_size, max_entries) };
            let kernel = KernelMap::create(&definition, is_per_processor(kind));
            let ours = Map::new(&definition, 1, 1 << 24);
            let (expected, found) = (kernel.map(|_| ()), ours.map(|_| ()));
            // Privileges, available memory, and the number of processors for which the kernel was
            // built differ between the two.
            let is_own = match expected {
                Err(ErrorNumber::EPERM | ErrorNumber(libc::ENOMEM)) => true,
                Err(ErrorNumber::E2BIG) => kind == MapKind::Cpumap,
                _ => false,
            };
            let agrees = found.is_ok() == expected.is_ok();
            assert!(is_own || agrees, "{definition:?}: {found:?}, the kernel {expected:?}");
            made += usize::from(expected.is_ok());
        }
    }
    assert!(made > 200, "{made} were made, which proves nothing");
}
