// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Observation of the card: the stages of its core, cycle by cycle.

use crate::{Card, Moment, Nic, NicError};

/// Bits of [`Moment::events`]: those of `stage_events` in `core.sv`, then those of the packet.
pub mod event {
    /// A packet is being processed.
    pub const ACTIVE: u32 = 1;
    /// A row is in fetch.
    pub const FETCH: u32 = 1 << 1;
    /// A row is in decode.
    pub const DECODE: u32 = 1 << 2;
    /// A row is in execute.
    pub const EXECUTE: u32 = 1 << 3;
    /// The row in execute completes in this cycle.
    pub const EXECUTE_FINISHES: u32 = 1 << 4;
    /// The row in decode advances to execute.
    pub const DECODE_GOES: u32 = 1 << 5;
    /// The row in decode waits for bytes or for a store.
    pub const DECODE_WAITS: u32 = 1 << 6;
    /// The row in decode waits for results of the row in execute.
    pub const DECODE_CONFLICTS: u32 = 1 << 7;
    /// Decode or execute waits for memory.
    pub const WAITS_MEMORY: u32 = 1 << 8;
    /// Execute waits for a helper.
    pub const WAITS_HELPER: u32 = 1 << 9;
    /// Execute waits for long arithmetic or an atomic operation.
    pub const WAITS_LONG: u32 = 1 << 10;
    /// A jump is taken in decode.
    pub const DECODE_JUMPS: u32 = 1 << 11;
    /// A jump is taken in execute, or a function is entered or left, or a tail call is made.
    pub const EXECUTE_JUMPS: u32 = 1 << 12;
    /// The program ends in execute.
    pub const EXECUTE_ENDS: u32 = 1 << 13;
    /// The program ends in decode.
    pub const DECODE_ENDS: u32 = 1 << 14;
    /// The program ends in fetch.
    pub const FETCH_ENDS: u32 = 1 << 15;
    /// The row in fetch is beyond the last row.
    pub const FETCH_BEYOND: u32 = 1 << 16;
    /// The row in fetch advances to decode.
    pub const FETCH_GOES: u32 = 1 << 17;
    /// The first row of a packet is fetched: it is processed from the next cycle on.
    pub const PACKET_BEGINS: u32 = 1 << 18;
    /// The current packet is done.
    pub const PACKET_ENDS: u32 = 1 << 19;
}

/// Observer that is shown each cycle.
pub type Watcher<'a> = &'a mut dyn FnMut(&Moment);

/// Cycles after which recorded moments are taken: fewer than the shim's buffer holds.
const PIECE_CYCLES: u64 = 1 << 15;

impl Moment {
    /// Returns whether an event happens, or all of several events.
    pub fn has(&self, events: u32) -> bool {
        self.events & events == events
    }

    /// Returns the row in fetch.
    pub fn in_fetch(&self) -> Option<u16> {
        self.has(event::FETCH).then_some(self.fetch)
    }

    /// Returns the row in decode.
    pub fn in_decode(&self) -> Option<u16> {
        self.has(event::DECODE).then_some(self.decode)
    }

    /// Returns the row in execute.
    pub fn in_execute(&self) -> Option<u16> {
        self.has(event::EXECUTE).then_some(self.execute)
    }
}

impl Nic {
    /// Calls `runs`, which advances the clock for a number of cycles at a time, until it returns
    /// that its condition is met; `watcher` is shown all cycles in order.
    ///
    /// # Errors
    /// Cycles were dropped before they could be shown.
    pub(crate) fn watched(
        &mut self,
        cycles_max: u64,
        watcher: Watcher<'_>,
        mut runs: impl FnMut(&mut Card, u64) -> bool,
    ) -> Result<(), NicError> {
        let mut moments = vec![Moment::default(); PIECE_CYCLES as usize];
        let card = self.card_mut();
        card.watch(true);
        let end = card.cycles().saturating_add(cycles_max);
        let mut is_over = false;
        while !is_over && card.cycles() < end {
            is_over = runs(card, PIECE_CYCLES.min(end - card.cycles()));
            let taken = card.moments(&mut moments);
            moments[..taken].iter().for_each(&mut *watcher);
        }
        let lost = card.moments_lost();
        card.watch(false);
        match lost {
            0 => Ok(()),
            _ => Err(NicError::Stuck {
                what: format!("{lost} cycles were dropped before they could be observed"),
            }),
        }
    }
}
