// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers that look up, set and remove elements, and access maps without keys.

use super::{Called, returned};
use crate::maps::ErrorNumber;
use crate::maps::content::Content;
use crate::maps::slots::number;
use crate::object::MapKind;
use crate::run::memory::{map_handle, value_address};
use crate::run::{Reason, Run};

/// Returns the address of a key's value, or for an inner map its handle; 0 if there is none.
pub fn lookup(run: &mut Run, helper: &'static str) -> Called {
    let map = run.map_argument(1, helper)?;
    use MapKind::*;
    let kind = run.maps[map].kind();
    if matches!(kind, ProgramArray | PerfEventArray | Cpumap | RingBuffer)
        || matches!(kind, Queue | Stack | BloomFilter)
    {
        return Err(Reason::WrongKind { helper, kind });
    }
    let key = run.read(run.argument(2), run.maps[map].definition().key_size as usize)?;
    let Some(element) = run.maps[map].find(key) else { return Ok(Some(0)) };
    let found = &mut run.maps[map];
    found.content_mut().touch(element);
    Ok(Some(match kind {
        ArrayOfMaps | HashOfMaps => {
            let inner = number(found.value(element)).map_or(usize::MAX, |inner| inner as usize);
            if inner < run.maps.len() { map_handle(inner) } else { 0 }
        }
        _ => value_address(map, found.offset_of(element)),
    }))
}

/// As `lookup`, for a given processor; there is only one.
pub fn lookup_on_processor(run: &mut Run, helper: &'static str) -> Called {
    let map = run.map_argument(1, helper)?;
    let kind = run.maps[map].kind();
    if !matches!(kind, MapKind::PerCpuArray | MapKind::PerCpuHash | MapKind::LruPerCpuHash) {
        return Err(Reason::WrongKind { helper, kind });
    }
    let address = lookup(run, helper)?;
    let is_ours = run.argument(3) as u32 == run.environment.processor;
    Ok(if is_ours { address } else { Some(0) })
}

/// Sets the value of a key.
pub fn update(run: &mut Run, helper: &'static str) -> Called {
    let map = changed_map(run, helper)?;
    let definition = run.maps[map].definition();
    let (key_size, value_size) = (definition.key_size as usize, definition.value_size as usize);
    let mut bytes = std::mem::take(&mut run.scratch.bytes);
    bytes.clear();
    bytes.extend_from_slice(run.read(run.argument(2), key_size)?);
    bytes.extend_from_slice(run.read(run.argument(3), value_size)?);
    let (key, value) = bytes.split_at(key_size);
    let result = run.maps[map].set(key, value, run.argument(4));
    run.scratch.bytes = bytes;
    returned(result.map(|()| 0))
}

/// Removes a key.
pub fn delete(run: &mut Run, helper: &'static str) -> Called {
    let map = changed_map(run, helper)?;
    let size = run.maps[map].definition().key_size as usize;
    let mut key = std::mem::take(&mut run.scratch.bytes);
    key.clear();
    key.extend_from_slice(run.read(run.argument(2), size)?);
    let result = run.maps[map].content_mut().delete(&key);
    run.scratch.bytes = key;
    returned(result.map(|()| 0))
}

/// Returns the map argument, if programs may set and remove its elements.
fn changed_map(run: &Run, helper: &'static str) -> Result<usize, Reason> {
    let map = run.map_argument(1, helper)?;
    use MapKind::*;
    match run.maps[map].kind() {
        Array | PerCpuArray | Hash | PerCpuHash | LruHash | LruPerCpuHash | LpmTrie => {}
        kind => return Err(Reason::WrongKind { helper, kind }),
    }
    if run.maps[map].is_read_only_to_programs() {
        let (address, name) = (run.argument(1), run.maps[map].definition().name.clone());
        return Err(Reason::read_only(address, name));
    }
    Ok(map)
}

/// Adds a value to a queue, a stack or a Bloom filter.
pub fn push(run: &mut Run, helper: &'static str) -> Called {
    let map = run.map_argument(1, helper)?;
    let kind = run.maps[map].kind();
    if !matches!(kind, MapKind::Queue | MapKind::Stack | MapKind::BloomFilter) {
        return Err(Reason::WrongKind { helper, kind });
    }
    let size = run.maps[map].definition().value_size as usize;
    let mut value = std::mem::take(&mut run.scratch.bytes);
    value.clear();
    value.extend_from_slice(run.read(run.argument(2), size)?);
    let flags = run.argument(3);
    let result = run.maps[map].content_mut().push(&value, flags);
    run.scratch.bytes = value;
    returned(result.map(|()| 0))
}

/// Removes and returns the next value of a queue or a stack.
pub fn pop(run: &mut Run, helper: &'static str) -> Called {
    let map = run.map_argument(1, helper)?;
    match run.maps[map].kind() {
        MapKind::Queue | MapKind::Stack => next_value(run, map, true),
        kind => Err(Reason::WrongKind { helper, kind }),
    }
}

/// Returns the next value of a queue or a stack, or tests whether a Bloom filter may contain a
/// value.
pub fn peek(run: &mut Run, helper: &'static str) -> Called {
    let map = run.map_argument(1, helper)?;
    match run.maps[map].kind() {
        MapKind::Queue | MapKind::Stack => next_value(run, map, false),
        MapKind::BloomFilter => {
            let size = run.maps[map].definition().value_size as usize;
            let value = run.read(run.argument(2), size)?;
            let Content::Bloom(bloom) = run.maps[map].content() else { return Ok(Some(0)) };
            let found = if bloom.may_hold(value) { Ok(0) } else { Err(ErrorNumber::ENOENT) };
            returned(found)
        }
        kind => Err(Reason::WrongKind { helper, kind }),
    }
}

fn next_value(run: &mut Run, map: usize, leaves: bool) -> Called {
    let size = run.maps[map].definition().value_size as usize;
    let address = run.argument(2);
    run.write(address, size)?;
    let mut value = std::mem::take(&mut run.scratch.bytes);
    value.clear();
    value.resize(size, 0);
    let result = run.maps[map].next_value_into(&mut value, leaves);
    run.write(address, size)?.copy_from_slice(&value);
    run.scratch.bytes = value;
    returned(result.map(|()| 0))
}
