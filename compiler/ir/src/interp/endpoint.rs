// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Endpoints of the graph: items that the host feeds in and collects.

use super::Error;
use super::channel::{ChannelState, Token};
use crate::flit::Joiner;
use crate::{Bits, ChannelId};
use std::collections::VecDeque;

/// An endpoint into the graph: an unbounded queue of the host in front of a channel.
#[derive(Debug)]
pub(super) struct InputEnd {
    pub channel: ChannelId,
    pub queue: VecDeque<Token>,
}

impl InputEnd {
    /// Moves one item into the channel if there is room; returns whether it did. A lossy channel
    /// never drops a fed item for lack of room; in a replay the record decides.
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

/// An endpoint out of the graph: the items collected from a channel.
#[derive(Debug)]
pub(super) struct OutputEnd {
    pub channel: ChannelId,
    pub collected: VecDeque<Token>,
    joiner: Joiner,
    stall: Option<Stall>,
}

/// How often an output endpoint does not read.
#[derive(Debug)]
struct Stall {
    percent: u8,
    generator: fastrand::Rng,
}

impl OutputEnd {
    pub fn new(channel: ChannelId) -> Self {
        Self { channel, collected: VecDeque::new(), joiner: Joiner::default(), stall: None }
    }

    /// From now on, reads only with a probability of `100 - percent` percent, drawn from `seed`.
    pub fn stall(&mut self, percent: u8, seed: u64) {
        self.stall = Some(Stall { percent, generator: fastrand::Rng::with_seed(seed) });
    }

    /// Returns whether it never reads.
    pub fn is_closed(&self) -> bool {
        self.stall.as_ref().is_some_and(|stall| stall.percent >= 100)
    }

    /// Decides whether to skip this read.
    pub fn is_stalled(&mut self) -> bool {
        self.stall.as_mut().is_some_and(|stall| stall.generator.u8(0..100) < stall.percent)
    }

    /// Moves one item out of the channel; returns whether there was one.
    pub fn advance(&mut self, channel: &mut ChannelState) -> bool {
        let token = channel.take();
        let moved = token.is_some();
        self.collected.extend(token);
        moved
    }

    /// Returns the whole packets collected, joined from flits if necessary.
    pub fn take_packets(&mut self) -> Vec<Vec<u8>> {
        let mut packets = vec![];
        for token in self.collected.drain(..) {
            match token {
                Token::Packet(packet) => packets.push(packet.bytes().to_vec()),
                // The channel has checked the framing. Only a packet whose start `take_items` took
                // is discarded.
                Token::Bits(flit) => packets.extend(self.joiner.push(&flit).ok().flatten()),
            }
        }
        packets
    }

    /// Returns the bytes collected of an unfinished packet.
    pub fn take_begun(&mut self) -> Option<Vec<u8>> {
        std::mem::take(&mut self.joiner).into_begun()
    }

    /// Continues with an unfinished packet.
    pub fn put_begun(&mut self, bytes: Vec<u8>) {
        self.joiner = Joiner::resumed(bytes);
    }

    /// Returns the items collected; a packet as the bits of its bytes.
    pub fn take_items(&mut self) -> Vec<Bits> {
        self.collected.drain(..).map(Token::into_bits).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{Fixture, done, put, run_to_idle, take};
    use super::super::{Interpreter, Options};
    use crate::flit::cut;
    use crate::*;

    /// Passes items of one kind from `to_in0` to `from_out0`.
    fn passing(item: Item) -> Program {
        let mut fixture = Fixture::default();
        let element = fixture.element(&[item], &[item], |b| {
            let width = item.value_type().bits().expect("an item of bits");
            let value = take(b, 0, width);
            put(b, 0, value);
            done(b);
        });
        fixture.alone(element)
    }

    #[test]
    fn what_is_fed_into_a_lossy_channel_waits_for_room() {
        let mut program = passing(Item::Bits(8));
        program.graph.channels[0].on_full = OnFull::DropCounted;
        program.graph.channels[0].depth = 1;
        let schedule = super::super::Schedule::Random { seed: 5 };
        let options = Options { schedule, ..Options::default() };
        let mut interpreter = Interpreter::new(&program, &options).unwrap();
        for value in 0..20 {
            interpreter.feed_item(EndpointId(0), Bits::from_u64(8, value)).unwrap();
        }
        run_to_idle(&mut interpreter);
        assert_eq!(interpreter.take_items(EndpointId(1)).unwrap().len(), 20);
        assert_eq!(interpreter.oracles().channels[0].keep, [true; 20]);
    }

    #[test]
    fn a_replay_drops_fed_items_as_recorded() {
        let mut program = passing(Item::Flit);
        program.graph.channels[0].on_full = OnFull::DropCounted;
        let idle = Interpreter::new(&program, &Options::default()).unwrap();
        let mut oracles = idle.oracles();
        oracles.channels[0].keep = vec![true, true, false, false, true, true];
        let mut replay = Interpreter::replay(&program, oracles, &Options::default()).unwrap();
        let packets = [[1; 40], [2; 40], [3; 40]];
        for packet in &packets {
            replay.feed_packet(EndpointId(0), packet).unwrap();
        }
        run_to_idle(&mut replay);
        let kept = [packets[0].to_vec(), packets[2].to_vec()];
        assert_eq!(replay.take_packets(EndpointId(1)).unwrap(), kept);
    }

    #[test]
    fn only_whole_packets_are_taken() {
        let program = passing(Item::Flit);
        let mut interpreter = Interpreter::new(&program, &Options::default()).unwrap();
        let flits = cut(&[9; 70]);
        let mut take_after = |flits: &[Bits]| {
            for flit in flits {
                interpreter.feed_item(EndpointId(0), flit.clone()).unwrap();
            }
            run_to_idle(&mut interpreter);
            interpreter.take_packets(EndpointId(1)).unwrap()
        };
        assert!(take_after(&flits[..2]).is_empty());
        assert_eq!(take_after(&flits[2..]), [vec![9; 70]]);
    }
}
