// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The side that answers messages, over any transport. One-sided requests need nothing of it, so it
//! sleeps meanwhile.

use crate::error::Error;
use freeport_fabric::endpoint::{Region, Target, Transfer};
use freeport_fabric::{Completion, Endpoint};
use std::thread;
use std::time::Duration;

/// Polls without anything before it sleeps, after those without yielding.
const YIELDS: u32 = 4000;
/// Longest sleep before the peer is checked.
const LONGEST: Duration = Duration::from_secs(1);

/// Returns the number of polls without anything before the core is offered to others.
pub fn spins(shares_core: bool) -> u32 {
    if shares_core { 50 } else { 20_000 }
}

/// The meaning of a message's data: its place and its length, and how to wait for the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Number of the slot, below 128.
    pub slot: u8,
    /// Payload in bytes, a multiple of 8, and less than 128 MiB.
    pub bytes: u64,
    /// Whether the two sides may have to share a core.
    pub shares_core: bool,
}

impl Call {
    /// Returns the data of a write.
    pub fn data(self) -> u32 {
        let shares_core = u32::from(self.shares_core) << 7;
        ((self.bytes / 8) as u32) << 8 | shares_core | u32::from(self.slot)
    }

    /// Reads the data of a write.
    pub fn of(data: u32) -> Self {
        let [low, ..] = data.to_le_bytes();
        Self { slot: low & 0x7f, bytes: u64::from(data >> 8) * 8, shares_core: low & 0x80 != 0 }
    }
}

/// Answers each message with its contents, until the peer is gone.
///
/// # Errors
/// The fabric refuses an operation, or the peer asks for what is outside of its memory.
pub fn answer<E: Endpoint>(
    endpoint: &E,
    region: &E::Region,
    target: &E::Target,
) -> Result<(), Error> {
    let most = region.bytes().min(target.bytes());
    let (mut polls, mut spins_now) = (0, spins(false));
    loop {
        match endpoint.poll()? {
            Some(Completion::Arrived { data }) => {
                let Call { slot, bytes, shares_core } = Call::of(data);
                spins_now = spins(shares_core);
                let bytes = (bytes as usize).min(most);
                let at = (usize::from(slot) * bytes).min(most - bytes);
                let transfer = Transfer {
                    here: region,
                    here_at: at,
                    there: target,
                    there_at: at,
                    bytes,
                    token: 0,
                };
                endpoint.write_with_data(transfer, data)?;
                polls = 0;
            }
            Some(_) => {}
            None if polls < spins_now + YIELDS => {
                polls += 1;
                if polls >= spins_now {
                    thread::yield_now();
                }
            }
            None => {
                if !endpoint.peer_is_alive()? {
                    return Ok(());
                }
                // A peer that is gone is found by the next look.
                if endpoint.arm()? && endpoint.sleep(LONGEST).is_err() {
                    return Ok(());
                }
                polls = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_survive_the_way_as_data() {
        let cases = [(0, 8, false), (63, 1 << 20, true), (127, (1 << 27) - 8, false)];
        for (slot, bytes, shares_core) in cases {
            let call = Call { slot, bytes, shares_core };
            assert_eq!(Call::of(call.data()), call);
        }
    }
}
