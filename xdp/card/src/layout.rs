// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Layout of an object's maps in map memory, and their entries in the card's table of maps.

use freeport_ebpf::object::{MapDefinition, MapKind};

/// Bytes at the start of map memory that are reserved for the host: keys and values of commands.
pub const STAGING_BYTES: u64 = 1024;
/// Maximum number of maps in the table.
pub const MAPS_MAX: usize = 32;
/// Alignment in map memory, in bytes: a window of this size is read at once.
const ALIGNMENT: u64 = 32;
/// Longest keys that the card compares, in bytes.
const KEY_BYTES_MAX: u64 = 64;
/// Maximum number of entries: the card multiplies their numbers.
const ENTRIES_MAX: u64 = 1 << 20;
/// Size in bytes of an inner map's handle in a value.
const HANDLE_BYTES: u64 = 8;
/// Words of a Bloom filter for each value of its capacity: at full capacity the false-positive rate
/// is about one in this number.
const BLOOM_WORDS: u64 = 32;
/// Longest values of maps whose values are passed with a command, in bytes.
const VALUE_BYTES_MAX: u64 = 512;

/// Kinds of maps on the card.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Values by index, all of which exist.
    Array = 1,
    /// Values by keys.
    Hash = 2,
    /// As `Hash`, with eviction of old values.
    LruHash = 3,
    /// Values by the longest prefix.
    Prefixes = 4,
    /// Values by index, some of which exist.
    Sparse = 5,
    /// As `Sparse`; values are the first rows of programs.
    Programs = 6,
    /// Values removed in the order of insertion.
    Queue = 7,
    /// Values removed in reverse order of insertion.
    Stack = 8,
    /// A Bloom filter.
    Bloom = 9,
}

/// Meaning of the values of a map other than plain bytes: bits of its kind in the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Holds {
    /// Plain bytes.
    Bytes = 0,
    /// Devices, to all of which a packet may be sent.
    Devices = 0x40,
    /// Handles of maps; 0 for none.
    Maps = 0x80,
}

/// Place of a map.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// Kind of the map.
    pub kind: Kind,
    /// Meaning of its values.
    pub holds: Holds,
    /// Size of keys in bytes; for maps without keys, of values.
    pub key_bytes: u64,
    /// Size of values in bytes.
    pub value_bytes: u64,
    /// Values of an entry: one, or one for each core.
    pub values: u64,
    /// Maximum number of entries.
    pub entries: u64,
    /// Offset of the entries.
    pub entries_at: u64,
    /// Distance between entries in bytes.
    pub stride: u64,
    /// Number of buckets, a power of two; 0 for kinds without buckets.
    pub buckets: u64,
    /// Offset of the heads of buckets.
    pub heads_at: u64,
    /// Offset of the links of entries.
    pub links_at: u64,
}

impl Placed {
    /// Returns the writable words of its table entry.
    pub fn words(&self) -> [u64; 7] {
        let by_core = u64::from(self.values > 1) << 56;
        let kind = self.kind as u64 | self.holds as u64 | by_core;
        let kind = kind | self.key_bytes << 8 | self.value_bytes << 24;
        let mask = self.buckets.saturating_sub(1);
        let (at, stride) = (self.entries_at, self.stride);
        [kind, self.entries, at, stride, mask, self.heads_at, self.links_at]
    }

    /// Returns whether its values have keys or indices.
    pub fn has_keys(&self) -> bool {
        !matches!(self.kind, Kind::Queue | Kind::Stack | Kind::Bloom)
    }

    /// Returns the offset of an entry.
    pub fn entry_at(&self, entry: u64) -> u64 {
        self.entries_at + entry * self.stride
    }

    /// Returns the offset of the value within an entry.
    pub fn value_offset(&self) -> u64 {
        match self.kind {
            Kind::Array | Kind::Queue | Kind::Stack | Kind::Bloom => 0,
            Kind::Hash | Kind::LruHash | Kind::Prefixes => self.key_bytes.next_multiple_of(8),
            Kind::Sparse | Kind::Programs => 8,
        }
    }

    /// Returns the offset of a core's value within an entry. If all cores share one value, it is
    /// that of core 0.
    pub fn value_of(&self, core: u64) -> u64 {
        self.value_offset() + core * self.value_bytes.next_multiple_of(8)
    }

    /// Returns the offset of an entry's link in map memory, in bytes.
    pub fn link_at(&self, entry: u64) -> u64 {
        self.links_at + 4 * entry
    }
}

/// Places of all maps of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// For each map, in the object's order, its place, or the reason for which it has none.
    pub maps: Vec<Result<Placed, String>>,
    /// Number of bytes in use.
    pub bytes: u64,
}

impl Layout {
    /// Places maps consecutively in their order, for a card with this number of cores. A map that
    /// does not fit, or is of an unsupported kind, has no place.
    pub fn new(maps: &[MapDefinition], map_bytes: u64, cores: u8) -> Self {
        let mut layout = Self { maps: vec![], bytes: STAGING_BYTES };
        for (number, map) in maps.iter().enumerate() {
            let placed = layout.place(number, map, map_bytes, cores);
            layout.maps.push(placed.map_err(|reason| format!("map `{}`: {reason}", map.name)));
        }
        layout
    }

    fn place(
        &mut self,
        number: usize,
        map: &MapDefinition,
        map_bytes: u64,
        cores: u8,
    ) -> Result<Placed, String> {
        let (kind, holds) = kind_of(map.kind)?;
        if let Some(inner) = &map.inner {
            kind_of(inner.kind).map_err(|reason| format!("inner maps: {reason}"))?;
        }
        map.check()?;
        if number >= MAPS_MAX {
            return Err(format!("the card's table has room for {MAPS_MAX} maps"));
        }
        let is_line = matches!(kind, Kind::Queue | Kind::Stack);
        let has_keys = !is_line && kind != Kind::Bloom;
        let entries = u64::from(map.max_entries);
        let value_bytes = match holds {
            Holds::Maps => HANDLE_BYTES,
            _ => u64::from(map.value_size),
        };
        let key_bytes = if has_keys { u64::from(map.key_size) } else { value_bytes };
        if entries == 0 || entries > ENTRIES_MAX {
            return Err(format!("it has {entries} entries; 1 to {ENTRIES_MAX} are supported"));
        }
        if (key_bytes > KEY_BYTES_MAX && !is_line)
            || (kind != Kind::Array && value_bytes > VALUE_BYTES_MAX)
        {
            return Err(format!(
                "its key has {key_bytes} bytes and its value {value_bytes}, of at most \
                 {KEY_BYTES_MAX} and {VALUE_BYTES_MAX}"
            ));
        }
        let mut placed = Placed {
            kind,
            holds,
            key_bytes,
            value_bytes,
            values: if has_values_by_core(map.kind) { cores.into() } else { 1 },
            entries,
            entries_at: 0,
            stride: 0,
            buckets: 0,
            heads_at: 0,
            links_at: 0,
        };
        if kind == Kind::Bloom {
            // Values are not stored.
            placed.value_bytes = 0;
        }
        placed.stride = placed.value_of(placed.values);
        let mut end = self.bytes;
        let mut take = |bytes: u64| {
            let start = end.next_multiple_of(ALIGNMENT);
            end = start + bytes;
            start
        };
        placed.entries_at = take(entries * placed.stride);
        if matches!(kind, Kind::Hash | Kind::LruHash | Kind::Prefixes) {
            placed.buckets = entries.next_power_of_two();
            placed.heads_at = take(4 * placed.buckets);
            placed.links_at = take(4 * entries);
        }
        if kind == Kind::Bloom {
            placed.buckets = (BLOOM_WORDS * entries).next_power_of_two();
            placed.heads_at = take(4 * placed.buckets);
        }
        if end > map_bytes {
            return Err(format!(
                "it takes {} bytes, and of {map_bytes} bytes of map memory {} are left",
                end - self.bytes,
                map_bytes - self.bytes
            ));
        }
        self.bytes = end;
        Ok(placed)
    }
}

/// Returns whether each core has separate values.
fn has_values_by_core(kind: MapKind) -> bool {
    matches!(kind, MapKind::PerCpuArray | MapKind::PerCpuHash | MapKind::LruPerCpuHash)
}

/// Returns the card's kind for one of the kernel's, and the meaning of its values.
fn kind_of(kind: MapKind) -> Result<(Kind, Holds), String> {
    use MapKind::*;
    Ok(match kind {
        Array | PerCpuArray => (Kind::Array, Holds::Bytes),
        ArrayOfMaps => (Kind::Array, Holds::Maps),
        Hash | PerCpuHash => (Kind::Hash, Holds::Bytes),
        HashOfMaps => (Kind::Hash, Holds::Maps),
        DevmapHash => (Kind::Hash, Holds::Devices),
        LruHash | LruPerCpuHash => (Kind::LruHash, Holds::Bytes),
        LpmTrie => (Kind::Prefixes, Holds::Bytes),
        Devmap => (Kind::Sparse, Holds::Devices),
        Cpumap | Xskmap => (Kind::Sparse, Holds::Bytes),
        ProgramArray => (Kind::Programs, Holds::Bytes),
        Queue => (Kind::Queue, Holds::Bytes),
        Stack => (Kind::Stack, Holds::Bytes),
        BloomFilter => (Kind::Bloom, Holds::Bytes),
        _ => return Err(format!("the card does not support maps of kind {kind}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(kind: MapKind, key_size: u32, value_size: u32, max_entries: u32) -> MapDefinition {
        let name = kind.to_string();
        MapDefinition { name, kind, key_size, value_size, max_entries, ..Default::default() }
    }

    #[test]
    fn maps_lie_behind_each_other() {
        let maps = [
            map(MapKind::Array, 4, 12, 5),
            map(MapKind::LruHash, 6, 20, 5),
            map(MapKind::Devmap, 4, 4, 3),
        ];
        let layout = Layout::new(&maps, 1 << 16, 1);
        let placed: Vec<_> = layout.maps.iter().map(|map| map.as_ref().expect("room")).collect();
        assert_eq!(placed[0].words(), [1 | 4 << 8 | 12 << 24, 5, 1024, 16, 0, 0, 0]);
        // Five times 16 bytes end at 1104.
        assert_eq!(placed[1].words(), [3 | 6 << 8 | 20 << 24, 5, 1120, 32, 7, 1280, 1312]);
        assert_eq!(placed[2].words(), [5 | 0x40 | 4 << 8 | 4 << 24, 3, 1344, 16, 0, 0, 0]);
        assert_eq!(layout.bytes, 1392);
        assert_eq!((placed[1].value_offset(), placed[1].entry_at(2)), (8, 1184));
    }

    #[test]
    fn values_of_cores_lie_behind_each_other() {
        let maps = [map(MapKind::PerCpuHash, 6, 20, 5), map(MapKind::Hash, 6, 20, 5)];
        let layout = Layout::new(&maps, 1 << 16, 4);
        let placed: Vec<_> = layout.maps.iter().map(|map| map.as_ref().expect("room")).collect();
        assert_eq!(placed[0].words()[0], 2 | 6 << 8 | 20 << 24 | 1 << 56);
        assert_eq!([placed[0].stride, placed[0].value_of(0), placed[0].value_of(3)], [104, 8, 80]);
        assert_eq!((placed[1].stride, placed[1].words()[0]), (32, 2 | 6 << 8 | 20 << 24));
    }

    #[test]
    fn maps_without_keys_and_of_maps_have_their_own_shapes() {
        let maps = [
            map(MapKind::Queue, 0, 12, 5),
            map(MapKind::BloomFilter, 0, 13, 3),
            map(MapKind::ArrayOfMaps, 4, 4, 3),
        ];
        let layout = Layout::new(&maps, 1 << 16, 1);
        let placed: Vec<_> = layout.maps.iter().map(|map| map.as_ref().expect("room")).collect();
        assert_eq!(placed[0].words(), [7 | 12 << 8 | 12 << 24, 5, 1024, 16, 0, 0, 0]);
        // 32 words for each of three values, rounded up to a power of two.
        assert_eq!(placed[1].words(), [9 | 13 << 8, 3, 1120, 0, 127, 1120, 0]);
        assert_eq!(placed[2].words(), [1 | 0x80 | 4 << 8 | 8 << 24, 3, 1632, 8, 0, 0, 0]);
        let inner = Some(Box::new(map(MapKind::RingBuffer, 0, 0, 64)));
        let layout = Layout::new(&[MapDefinition { inner, ..maps[2].clone() }], 1 << 16, 1);
        let reason =
            "map `array_of_maps`: inner maps: the card does not support maps of kind ringbuf";
        assert_eq!(layout.maps[0], Err(reason.into()));
    }

    #[test]
    fn what_has_no_place_is_said_and_leaves_room() {
        let maps = [
            map(MapKind::RingBuffer, 0, 0, 4096),
            map(MapKind::Hash, 8, 8, 4000),
            map(MapKind::Array, 4, 8, 1),
        ];
        let layout = Layout::new(&maps, 1 << 16, 1);
        let reasons: Vec<_> = layout.maps.iter().map(|map| map.as_ref().err()).collect();
        assert_eq!(
            reasons[0].map(String::as_str),
            Some("map `ringbuf`: the card does not support maps of kind ringbuf")
        );
        let room = "map `hash`: it takes 96384 bytes, and of 65536 bytes of map memory 64512 are \
                    left";
        assert_eq!(reasons[1].map(String::as_str), Some(room));
        assert_eq!(layout.bytes, 1032);
    }
}
