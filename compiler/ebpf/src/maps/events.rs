// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Perf event buffers: events that programs wrote, until the host takes them.

use super::ErrorNumber;
use std::collections::VecDeque;

/// Maximum size of waiting events in bytes, over all buffers of a map.
const WAITING_BYTES_MAX: usize = 1 << 20;

/// An event that a program wrote to an event buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Index of the buffer in the map.
    pub buffer: u32,
    /// The program's own bytes.
    pub data: Vec<u8>,
    /// Bytes of the packet that the program requested.
    pub packet: Vec<u8>,
}

/// Events of all buffers of a map, in their order.
#[derive(Default)]
pub(crate) struct Events {
    waiting: VecDeque<Event>,
    bytes: usize,
}

impl Events {
    /// Appends an event.
    ///
    /// # Errors
    /// `ENOSPC` if too many wait.
    pub fn put(&mut self, event: Event) -> Result<(), ErrorNumber> {
        let bytes = size_of::<Event>() + event.data.len() + event.packet.len();
        if self.bytes + bytes > WAITING_BYTES_MAX {
            return Err(ErrorNumber::ENOSPC);
        }
        self.bytes += bytes;
        self.waiting.push_back(event);
        Ok(())
    }

    /// Takes all waiting events.
    pub fn take(&mut self) -> Vec<Event> {
        self.bytes = 0;
        self.waiting.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_events_are_refused_until_some_are_taken() {
        let event = Event { buffer: 0, data: vec![1; 400_000], packet: vec![] };
        let mut events = Events::default();
        assert_eq!(events.put(event.clone()), Ok(()));
        assert_eq!(events.put(event.clone()), Ok(()));
        assert_eq!(events.put(event.clone()), Err(ErrorNumber::ENOSPC));
        assert_eq!(events.take().len(), 2);
        assert_eq!(events.put(event), Ok(()));
    }
}
