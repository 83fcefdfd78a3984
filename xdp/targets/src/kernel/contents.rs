// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading of a whole map of the kernel, by its kind.

use crate::Contents;
use freeport_ebpf::object::MapKind;
use libbpf_rs::{Map, MapCore, MapFlags, MapType, Result, RingBufferBuilder};
use std::collections::BTreeMap;

/// Returns the contents of a map; for a per-CPU map, the values of the given processor.
pub fn read(map: &Map<'_>, processor: usize) -> Result<Contents> {
    if let MapKind::Other(_) = MapKind::from(u32::from(map.map_type())) {
        // Maps of sockets, for example.
        return Ok(Contents::Opaque);
    }
    match map.map_type() {
        MapType::Queue | MapType::Stack => items(map),
        MapType::RingBuf => records(map),
        MapType::ProgArray
        | MapType::PerfEventArray
        | MapType::ArrayOfMaps
        | MapType::HashOfMaps
        | MapType::Xskmap
        | MapType::BloomFilter => Ok(Contents::Opaque),
        _ => entries(map, processor),
    }
}

fn entries(map: &Map<'_>, processor: usize) -> Result<Contents> {
    let mut entries = BTreeMap::new();
    for key in map.keys() {
        let value = lookup(map, &key, processor)?;
        // A devmap may have empty slots, and a concurrently running program may delete entries.
        entries.extend(value.map(|value| (key, value)));
    }
    Ok(Contents::Entries(entries))
}

/// Returns the value of an entry; for a per-CPU map, that of the given processor.
pub fn lookup(map: &Map<'_>, key: &[u8], processor: usize) -> Result<Option<Vec<u8>>> {
    if !map.map_type().is_percpu() {
        return map.lookup(key, MapFlags::ANY);
    }
    let values = map.lookup_percpu(key, MapFlags::ANY)?;
    Ok(values.map(|mut values| values.swap_remove(processor)))
}

fn items(map: &Map<'_>) -> Result<Contents> {
    let mut items = vec![];
    while let Some(item) = map.lookup_and_delete(&[])? {
        items.push(item);
    }
    Ok(Contents::Items(items))
}

fn records(map: &Map<'_>) -> Result<Contents> {
    let mut records = vec![];
    let mut builder = RingBufferBuilder::new();
    builder.add(map, |record| {
        records.push(record.to_vec());
        0
    })?;
    builder.build()?.consume()?;
    Ok(Contents::Items(records))
}
