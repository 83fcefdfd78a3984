// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The outer ends of the graph: what the host feeds in and collects.

use super::Error;
use super::channel::{ChannelState, Token};
use crate::flit::Joiner;
use crate::{Bits, ChannelId};
use std::collections::VecDeque;

/// An end into the graph: an unbounded queue of the host in front of a channel.
#[derive(Debug)]
pub(super) struct InputEnd {
    pub channel: ChannelId,
    pub queue: VecDeque<Token>,
}

impl InputEnd {
    /// Moves one item into the channel if there is room; whether it did. A fed item is never lost
    /// to a lossy channel for want of room; in a replay the record decides.
    pub fn advance(&mut self, channel: &mut ChannelState, replays: bool) -> Result<bool, Error> {
        if channel.fill() >= channel.depth() && !replays {
            return Ok(false);
        }
        let Some(token) = self.queue.pop_front() else { return Ok(false) };
        let left = channel.offer(token)?;
        let moved = left.is_none();
        if let Some(token) = left {
            self.queue.push_front(token);
        }
        Ok(moved)
    }
}

/// An end out of the graph: what was collected from a channel.
#[derive(Debug)]
pub(super) struct OutputEnd {
    pub channel: ChannelId,
    pub collected: VecDeque<Token>,
    joiner: Joiner,
    stall: Option<Stall>,
}

/// When an output end does not read.
#[derive(Debug)]
struct Stall {
    percent: u8,
    generator: fastrand::Rng,
}

impl OutputEnd {
    pub fn new(channel: ChannelId) -> Self {
        Self { channel, collected: VecDeque::new(), joiner: Joiner::default(), stall: None }
    }

    /// From now on, reads only at `100 - percent` of its chances, drawn from `seed`.
    pub fn stall(&mut self, percent: u8, seed: u64) {
        self.stall = Some(Stall { percent, generator: fastrand::Rng::with_seed(seed) });
    }

    /// Whether it never reads.
    pub fn is_closed(&self) -> bool {
        self.stall.as_ref().is_some_and(|stall| stall.percent >= 100)
    }

    /// Whether it does not read this time.
    pub fn is_stalled(&mut self) -> bool {
        self.stall.as_mut().is_some_and(|stall| stall.generator.u8(0..100) < stall.percent)
    }

    /// Moves one item out of the channel; whether there was one.
    pub fn advance(&mut self, channel: &mut ChannelState) -> bool {
        let token = channel.take();
        let moved = token.is_some();
        self.collected.extend(token);
        moved
    }

    /// The whole packets collected, from flits or as they are.
    pub fn take_packets(&mut self) -> Vec<Vec<u8>> {
        let mut packets = vec![];
        for token in self.collected.drain(..) {
            match token {
                Token::Packet(packet) => packets.push(packet.bytes().to_vec()),
                // The channel has checked the framing; only the packet that `take_items` took the
                // start of is left out.
                Token::Bits(flit) => packets.extend(self.joiner.push(&flit).ok().flatten()),
            }
        }
        packets
    }

    /// The items collected; a packet as its bytes' bits.
    pub fn take_items(&mut self) -> Vec<Bits> {
        self.collected.drain(..).map(Token::into_bits).collect()
    }
}
