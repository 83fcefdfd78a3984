// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Output to perf event buffers.

use super::{Called, returned};
use crate::maps::content::Content;
use crate::maps::{ErrorNumber, Event};
use crate::object::MapKind;
use crate::run::{Reason, Run};

/// Bits of the flags that select the buffer.
const BUFFER_FLAGS: u64 = 0xffff_ffff;
/// Bits with the number of packet bytes to append.
const PACKET_FLAGS: u64 = 0xf_ffff << 32;

/// Writes bytes of the program, and optionally of the packet, to a buffer.
pub fn output(run: &mut Run, helper: &'static str) -> Called {
    run.context_argument(1, helper)?;
    let map = run.map_argument(2, helper)?;
    let kind = run.maps[map].kind();
    if kind != MapKind::PerfEventArray {
        return Err(Reason::WrongKind { helper, kind });
    }
    let (flags, size) = (run.argument(3), run.argument(5) as usize);
    let data = run.read(run.argument(4), size)?;
    let packet_bytes = ((flags & PACKET_FLAGS) >> 32) as usize;
    if flags & !(BUFFER_FLAGS | PACKET_FLAGS) != 0 {
        return returned(Err(ErrorNumber::EINVAL));
    }
    let Some(packet) = run.packet.bytes().get(..packet_bytes) else {
        return returned(Err(ErrorNumber::EFAULT));
    };
    let buffer = match flags & BUFFER_FLAGS {
        BUFFER_FLAGS => run.environment.processor,
        buffer => buffer as u32,
    };
    let event = Event { buffer, data: data.to_vec(), packet: packet.to_vec() };
    if buffer >= run.maps[map].definition().max_entries {
        return returned(Err(ErrorNumber::E2BIG));
    }
    let Content::Events(buffers, events) = run.maps[map].content_mut() else {
        return returned(Err(ErrorNumber::EINVAL));
    };
    if buffers.find(&buffer.to_ne_bytes()).is_none() {
        return returned(Err(ErrorNumber::ENOENT));
    }
    returned(events.put(event).map(|()| 0))
}
