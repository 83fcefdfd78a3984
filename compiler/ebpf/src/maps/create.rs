// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Creates a map from its definition, or reports why the kernel would not.

use super::Map;
use super::bloom::Bloom;
use super::content::Content;
use super::elements::Elements;
use super::events::Events;
use super::flags;
use super::hash::HashIndex;
use super::lpm::PrefixTree;
use super::lru::Recency;
use super::queue::{Order, Queue as QueueContent};
use super::ring::Ring;
use super::slots::{Holds, Slots};
use crate::object::{MapDefinition, MapKind};
use thiserror::Error;

/// Default number of hash functions of a Bloom filter.
const BLOOM_HASHES: u32 = 5;
/// Maximum number of hash functions of a Bloom filter.
const BLOOM_HASHES_MAX: u32 = 15;
/// The size of a ring buffer is a multiple of this, in bytes.
const PAGE_BYTES: u32 = 4_096;
/// Maximum data of a prefix, in bytes.
const PREFIX_BYTES_MAX: u32 = 256;

/// Reason for which a map cannot be created.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("map `{name}`: {reason}")]
pub struct MapError {
    /// Name of the map.
    pub name: String,
    /// Description of the error.
    pub reason: String,
}

impl Map {
    /// Creates an empty map, or one with its initial value. `seed` is for its hashes; `bytes_max`
    /// limits its memory.
    ///
    /// # Errors
    /// The kernel has no such map, it is too large, or its kind is not supported here.
    pub fn new(definition: &MapDefinition, seed: u64, bytes_max: usize) -> Result<Self, MapError> {
        let failure = |reason| MapError { name: definition.name.clone(), reason };
        definition.check().map_err(failure)?;
        let bytes = bytes_for(definition).unwrap_or(usize::MAX);
        if bytes > bytes_max {
            let (entries, value) = (definition.max_entries, definition.value_size);
            return Err(failure(format!(
                "{entries} entries with values of {value} bytes take {bytes} bytes of memory, and \
                 {bytes_max} are left: give it fewer entries, with `--map-size NAME=ENTRIES`"
            )));
        }
        let content = content(definition, seed).map_err(failure)?;
        let count = match &content {
            Content::Hash { .. } => definition.max_entries + 1,
            Content::Ring(_) | Content::Queue(_) | Content::Bloom(_) => 0,
            _ => definition.max_entries,
        };
        let mut elements = Elements::new(count, definition.value_size);
        if let Some(initial) = &definition.initial {
            let room = elements.get_mut(0);
            if !matches!(content, Content::Array) || initial.len() > room.len() {
                return Err(failure("its initial bytes do not fit its value".to_owned()));
            }
            room[..initial.len()].copy_from_slice(initial);
        }
        Ok(Self { definition: definition.clone(), elements, content })
    }

    /// Creates a placeholder for a map that cannot be created; it only has the name.
    pub(crate) fn absent(definition: &MapDefinition) -> Self {
        let (elements, content) = (Elements::new(0, 0), Content::Absent);
        Self { definition: definition.clone(), elements, content }
    }
}

impl MapDefinition {
    /// Checks that the kernel would create such a map, and that its kind is supported here.
    ///
    /// # Errors
    /// Description of the error, and what to do about it.
    pub fn check(&self) -> Result<(), String> {
        match &self.fault {
            Some(fault) => Err(fault.clone()),
            None => check_definition(self),
        }
    }
}

/// Checks the requirements of a kind on a definition's flags and sizes.
///
/// # Errors
/// The kernel would refuse the definition, or the kind is not supported here.
fn check_definition(definition: &MapDefinition) -> Result<(), String> {
    use MapKind::*;
    let MapDefinition { key_size, value_size, max_entries, flags, .. } = *definition;
    flags::check_of_map(definition.kind, flags)?;
    let demand = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
    // Loaders set its size to one buffer for each processor.
    let is_for_processors = definition.kind == PerfEventArray;
    demand(
        max_entries > 0 || is_for_processors,
        "max_entries is 0: give it a size, with `--map-size NAME=ENTRIES`",
    )?;
    demand(max_entries < u32::MAX, "max_entries is too large")?;
    let number = || demand(key_size == 4, "its key must have 4 bytes");
    let value = || demand(value_size > 0, "its value has no bytes");
    let descriptor = || demand(value_size == 4, "its value must have 4 bytes");
    let target = || demand(matches!(value_size, 4 | 8), "its value must have 4 or 8 bytes");
    let no_key = || demand(key_size == 0, "it has a key");
    if let Some(inner) = &definition.inner {
        check_definition(inner).map_err(|reason| format!("inner maps: {reason}"))?;
    }
    match definition.kind {
        Array | PerCpuArray => number().and_then(|()| value()),
        Hash | PerCpuHash | LruHash | LruPerCpuHash => {
            demand(key_size > 0, "its key has no bytes").and_then(|()| value())
        }
        LpmTrie => {
            let sizes = 5..=4 + PREFIX_BYTES_MAX;
            demand(
                sizes.contains(&key_size),
                "its key must have 4 bytes for the length and 1 to 256 bytes of data",
            )?;
            value()
        }
        ProgramArray | PerfEventArray | ArrayOfMaps | Xskmap => {
            number().and_then(|()| descriptor())
        }
        HashOfMaps => demand(key_size > 0, "its key has no bytes").and_then(|()| descriptor()),
        Devmap | DevmapHash | Cpumap => number().and_then(|()| target()),
        Queue | Stack => no_key().and_then(|()| value()),
        BloomFilter => {
            let most = u64::from(BLOOM_HASHES_MAX);
            demand(definition.extra <= most, "it has more than 15 hash functions")?;
            no_key().and_then(|()| value())
        }
        RingBuffer => {
            demand(key_size == 0 && value_size == 0, "it has a key or a value")?;
            let is_right = max_entries.is_power_of_two() && max_entries.is_multiple_of(PAGE_BYTES);
            demand(is_right, "max_entries is not a power of two and a multiple of 4096")
        }
        other => Err(format!("maps of {other} are not supported")),
    }
}

/// Returns the maximum memory of a map in bytes, or `None` on overflow. Pages for values and for
/// flags of slots are only allocated when they are written to.
pub(crate) fn bytes_for(definition: &MapDefinition) -> Option<usize> {
    use MapKind::*;
    let MapDefinition { key_size, value_size, max_entries, .. } = *definition;
    let count = u64::from(max_entries) + 1;
    let entries = usize::try_from(count).ok()?;
    let values = Elements::bytes_for(count, value_size)?;
    let beside = match definition.kind {
        Array | PerCpuArray | Queue | Stack => 0,
        RingBuffer => return entries.checked_mul(2),
        BloomFilter => {
            let hashes = definition.extra.min(u64::from(BLOOM_HASHES_MAX)) as u32;
            let hashes = if hashes == 0 { BLOOM_HASHES } else { hashes };
            return Bloom::bits_for(max_entries, hashes).map(|bits| bits as usize / 8);
        }
        ProgramArray | PerfEventArray | ArrayOfMaps | Devmap | Cpumap | Xskmap => entries,
        LpmTrie => PrefixTree::bytes_for(count, key_size)?,
        _ => HashIndex::bytes_for(count, key_size)?,
    };
    beside.checked_add(values)
}

fn content(definition: &MapDefinition, seed: u64) -> Result<Content, String> {
    let MapDefinition { key_size, value_size, max_entries, .. } = *definition;
    let index = || HashIndex::new(max_entries, key_size, seed);
    let slots = |holds| Slots::new(holds, max_entries);
    use MapKind::*;
    Ok(match definition.kind {
        Array | PerCpuArray => Content::Array,
        Hash => {
            let mut index = HashIndex::new(max_entries + 1, key_size, seed);
            let spare = index.take().ok_or("it has no entries")?;
            Content::Hash { index, spare }
        }
        PerCpuHash | HashOfMaps => Content::HashInPlace(index()),
        DevmapHash => Content::DeviceHash(index()),
        LruHash => Content::Lru(index(), Recency::new(max_entries)),
        LruPerCpuHash => Content::LruInPlace(index(), Recency::new(max_entries)),
        LpmTrie => Content::Prefixes(PrefixTree::new(max_entries, key_size)),
        Devmap => Content::Slots(slots(Holds::Devices)),
        Cpumap => Content::Slots(slots(Holds::Processors)),
        Xskmap => Content::Slots(slots(Holds::Sockets)),
        PerfEventArray => Content::Events(slots(Holds::Descriptors), Events::default()),
        ProgramArray | ArrayOfMaps => Content::Slots(slots(Holds::Descriptors)),
        RingBuffer => Content::Ring(Ring::new(max_entries)),
        Queue => Content::Queue(QueueContent::new(Order::Queue, max_entries, value_size)),
        Stack => Content::Queue(QueueContent::new(Order::Stack, max_entries, value_size)),
        BloomFilter => {
            let hashes = match definition.extra {
                0 => BLOOM_HASHES,
                hashes => u32::try_from(hashes)
                    .ok()
                    .filter(|&hashes| hashes <= BLOOM_HASHES_MAX)
                    .ok_or("it has more than 15 hash functions")?,
            };
            let bits = Bloom::bits_for(max_entries, hashes);
            let bits = bits.ok_or("it is too large for a Bloom filter")?;
            Content::Bloom(Bloom::new(bits, hashes, seed))
        }
        other => return Err(format!("maps of {other} are not supported")),
    })
}
