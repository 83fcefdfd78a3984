// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Helpers that move the packet's ends, and copy bytes from and to it.

use super::{Called, returned};
use crate::maps::ErrorNumber;
use crate::run::{Reason, Run};

/// Maximum size of metadata, in bytes.
const METADATA_MAX: usize = 252;
/// Maximum offset and length of a copy.
const COPY_MAX: u64 = 0xffff;

/// Moves the start of the packet.
pub fn adjust_head(run: &mut Run, helper: &'static str) -> Called {
    run.context_argument(1, helper)?;
    let moved = run.packet.move_head(run.argument_as_i32(2));
    returned(if moved { Ok(0) } else { Err(ErrorNumber::EINVAL) })
}

/// Moves the end of the packet.
pub fn adjust_tail(run: &mut Run, helper: &'static str) -> Called {
    run.context_argument(1, helper)?;
    let moved = run.packet.move_tail(run.argument_as_i32(2));
    returned(if moved { Ok(0) } else { Err(ErrorNumber::EINVAL) })
}

/// Moves the start of the metadata before the packet.
pub fn adjust_metadata(run: &mut Run, helper: &'static str) -> Called {
    run.context_argument(1, helper)?;
    let Some(metadata) = run.packet.moved_metadata(run.argument_as_i32(2)) else {
        return returned(Err(ErrorNumber::EINVAL));
    };
    let length = run.packet.places()[1] as usize - metadata;
    if !length.is_multiple_of(4) || length > METADATA_MAX {
        return returned(Err(ErrorNumber::EACCES));
    }
    run.packet.set_metadata(metadata);
    Ok(Some(0))
}

/// Returns the packet's length in bytes.
pub fn length(run: &mut Run, helper: &'static str) -> Called {
    run.context_argument(1, helper)?;
    Ok(Some(run.packet.len() as u64))
}

/// Copies bytes of the packet into the program's memory.
pub fn load_bytes(run: &mut Run, helper: &'static str) -> Called {
    let (offset, size) = match copied(run, helper)? {
        Ok(place) => place,
        Err(error) => return returned(Err(error)),
    };
    let mut bytes = std::mem::take(&mut run.scratch.bytes);
    bytes.clear();
    bytes.extend_from_slice(&run.packet.bytes()[offset..offset + size]);
    run.write(run.argument(3), size)?.copy_from_slice(&bytes);
    run.scratch.bytes = bytes;
    Ok(Some(0))
}

/// Copies bytes of the program's memory into the packet.
pub fn store_bytes(run: &mut Run, helper: &'static str) -> Called {
    let (offset, size) = match copied(run, helper)? {
        Ok(place) => place,
        Err(error) => return returned(Err(error)),
    };
    let mut bytes = std::mem::take(&mut run.scratch.bytes);
    bytes.clear();
    bytes.extend_from_slice(run.read(run.argument(3), size)?);
    let start = run.packet.places()[1] + offset as u64;
    if let Some(room) = run.packet.at_mut(start, size) {
        room.copy_from_slice(&bytes);
    }
    run.scratch.bytes = bytes;
    Ok(Some(0))
}

/// Returns the range of a copy in the packet: offset and size.
fn copied(run: &Run, helper: &'static str) -> Result<Result<(usize, usize), ErrorNumber>, Reason> {
    run.context_argument(1, helper)?;
    let (offset, size) = (run.argument(2) & 0xffff_ffff, run.argument(4) & 0xffff_ffff);
    Ok(if offset > COPY_MAX || size > COPY_MAX {
        Err(ErrorNumber::EFAULT)
    } else if offset + size > run.packet.len() as u64 {
        Err(ErrorNumber::EINVAL)
    } else {
        Ok((offset as usize, size as usize))
    })
}
