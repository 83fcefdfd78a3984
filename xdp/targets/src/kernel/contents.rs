// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Reading a whole map of the kernel, by what kind it is.

use crate::Contents;
use freeport_ebpf::object::MapKind;
use libbpf_rs::{Map, MapCore, MapFlags, MapType, Result, RingBufferBuilder};
use std::collections::BTreeMap;

/// What is in a map; of maps with a value for each processor, the values of the given one.
pub fn read(map: &Map<'_>, processor: usize) -> Result<Contents> {
    if let MapKind::Other(_) = MapKind::from(u32::from(map.map_type())) {
        // Sockets and the like.
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
        // Places of a devmap may be empty, and programs that run meanwhile may take entries away.
        entries.extend(value.map(|value| (key, value)));
    }
    Ok(Contents::Entries(entries))
}

/// The value of an entry; of maps with a value for each processor, that of the given one.
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
