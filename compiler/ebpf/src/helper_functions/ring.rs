// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Records of ring buffers.

use super::{Called, returned};
use crate::maps::ErrorNumber;
use crate::maps::content::Content;
use crate::maps::ring::Ring;
use crate::object::MapKind;
use crate::run::memory::{value_address, value_place};
use crate::run::{Reason, Run};

/// Flags that control the wake-up of a reader; there is no waiting reader here.
const WAKING_FLAGS: u64 = 3;
/// Longest record in bytes.
const RECORD_MAX: u64 = u32::MAX as u64 / 4;

/// Appends a record in one step.
pub fn output(run: &mut Run, helper: &'static str) -> Called {
    let map = ring_argument(run, helper)?;
    let mut bytes = std::mem::take(&mut run.scratch.bytes);
    bytes.clear();
    bytes.extend_from_slice(run.read(run.argument(2), run.argument(3) as usize)?);
    if run.argument(4) & !WAKING_FLAGS != 0 {
        return returned(Err(ErrorNumber::EINVAL));
    }
    let put = ring(run, map).is_some_and(|ring| ring.put(&bytes));
    run.scratch.bytes = bytes;
    returned(if put { Ok(0) } else { Err(ErrorNumber::EAGAIN) })
}

/// Reserves a record and returns its address, or 0 if there is no room.
pub fn reserve(run: &mut Run, helper: &'static str) -> Called {
    let map = ring_argument(run, helper)?;
    let (size, flags) = (run.argument(2), run.argument(3));
    if flags != 0 || size > RECORD_MAX {
        return Ok(Some(0));
    }
    let place = ring(run, map).and_then(|ring| ring.reserve(size));
    if place.is_some() {
        run.scratch.records_reserved += 1;
    }
    Ok(Some(place.map_or(0, |offset| value_address(map, offset))))
}

/// Makes a record visible to the reader.
pub fn submit(run: &mut Run, helper: &'static str) -> Called {
    finish(run, helper, true)
}

/// Discards a record.
pub fn discard(run: &mut Run, helper: &'static str) -> Called {
    finish(run, helper, false)
}

fn finish(run: &mut Run, helper: &'static str, is_kept: bool) -> Called {
    let value = run.argument(1);
    let place = value_place(value).filter(|&(map, _)| map < run.maps.len());
    let record = place.and_then(|(map, offset)| Some((ring(run, map)?, offset)));
    if !record.is_some_and(|(ring, offset)| ring.finish(offset, is_kept)) {
        return Err(Reason::NotARecord { helper, value });
    }
    run.scratch.records_reserved -= 1;
    Ok(Some(0))
}

/// Returns sizes and positions of a ring.
pub fn query(run: &mut Run, helper: &'static str) -> Called {
    let map = ring_argument(run, helper)?;
    let what = run.argument(2);
    Ok(Some(ring(run, map).map_or(0, |ring| ring.query(what))))
}

fn ring_argument(run: &Run, helper: &'static str) -> Result<usize, Reason> {
    let map = run.map_argument(1, helper)?;
    match run.maps[map].kind() {
        MapKind::RingBuffer => Ok(map),
        kind => Err(Reason::WrongKind { helper, kind }),
    }
}

fn ring<'r>(run: &'r mut Run, map: usize) -> Option<&'r mut Ring> {
    match run.maps[map].content_mut() {
        Content::Ring(ring) => Some(ring),
        _ => None,
    }
}
