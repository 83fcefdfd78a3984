// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Channels: bounded queues that record their history and check the framing of flits.
//!
//! A lossy channel decides when an item is offered. On a flit channel, the flit with `sop` decides
//! for its whole packet. Once the first flit of a packet is accepted, the packet is never
//! truncated: its later flits wait for room as in any other channel.

use super::packet::{PacketBuffer, packet_bits};
use super::{Error, Options};
use crate::flit::{Framing, Header, PAYLOAD_BYTES};
use crate::oracle::ChannelCounters;
use crate::{Bits, Channel, Item, OnFull, Source};
use std::collections::VecDeque;

/// An item in transit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    Bits(Bits),
    Packet(PacketBuffer),
}

impl Token {
    /// Converts the item to bits; a packet to the bits of its bytes.
    pub fn into_bits(self) -> Bits {
        match self {
            Token::Bits(bits) => bits,
            Token::Packet(packet) => packet_bits(packet.bytes()),
        }
    }
}

/// A channel at run time.
#[derive(Debug)]
pub(super) struct ChannelState {
    /// Writer and reader, as `a.out -> b.in`.
    pub name: String,
    /// Every item that entered, in order.
    pub history: Vec<Bits>,
    /// For a lossy channel: whether each offered item was kept.
    pub keep: Vec<bool>,
    pub counters: ChannelCounters,
    /// In a replay: the recorded decisions, which `keep` must reproduce.
    recorded: Option<Vec<bool>>,
    items: VecDeque<Token>,
    /// Maximum number of items it has held at once.
    most: usize,
    depth: usize,
    is_flit: bool,
    is_lossy: bool,
    /// Whether the host feeds it.
    is_fed: bool,
    keeps_history: bool,
    framing: Framing,
    /// Whether the current packet is being dropped.
    is_dropping: bool,
    /// Items that entered or were dropped.
    offered: u64,
    /// Sequence number of the offered item for which a stall was last counted.
    stalled_at: Option<u64>,
}

/// Outcome of offering an item.
enum Fate {
    Enters,
    IsDropped,
    Waits,
}

impl ChannelState {
    pub fn new(channel: &Channel, name: String, options: &Options) -> Self {
        Self {
            name,
            history: vec![],
            keep: vec![],
            counters: ChannelCounters::default(),
            recorded: None,
            items: VecDeque::new(),
            most: 0,
            depth: if options.unbounded_channels { usize::MAX } else { channel.depth as usize },
            is_flit: channel.item == Item::Flit,
            is_lossy: channel.on_full == OnFull::DropCounted,
            is_fed: matches!(channel.source, Source::Endpoint(_)),
            keeps_history: options.keep_histories,
            framing: Framing::default(),
            is_dropping: false,
            offered: 0,
            stalled_at: None,
        }
    }

    /// Discards the history; keeps the decisions of a replay, because they mark its position.
    pub fn forget(&mut self) {
        self.history.clear();
        if self.recorded.is_none() {
            self.keep.clear();
        }
    }

    /// From now on, keeps exactly the items that `recorded` selects.
    pub fn replay(&mut self, recorded: Vec<bool>) {
        self.recorded = Some(recorded);
    }

    /// Returns whether the record of a replay has been used up.
    pub fn is_replayed(&self) -> bool {
        self.recorded.as_ref().is_none_or(|recorded| self.keep.len() >= recorded.len())
    }

    /// Accepts an item, or drops it as lossy channels do; returns the item if it has to wait.
    ///
    /// # Errors
    /// A flit that breaks the framing; in a replay, an item that the record does not cover.
    pub fn offer(&mut self, token: Token) -> Result<Option<Token>, Error> {
        let header = match &token {
            Token::Bits(bits) if self.is_flit => Some(Header::of(bits)),
            _ => None,
        };
        let fate = self.fate(header)?;
        if matches!(fate, Fate::Waits) {
            return Ok(Some(token));
        }
        let item = self.offered;
        self.offered += 1;
        if let Some(header) = header {
            self.framing.accept(header).map_err(|malformed| Error::Malformed {
                channel: self.name.clone(),
                item,
                malformed,
            })?;
        }
        let enters = matches!(fate, Fate::Enters);
        if self.is_lossy {
            self.keep.push(enters);
            self.is_dropping = !enters;
            self.counters.dropped += u64::from(!enters);
        }
        if enters {
            if !self.is_fed {
                self.count(&token);
            }
            if self.keeps_history {
                self.history.push(token.clone().into_bits());
            }
            self.put_back(token);
        }
        Ok(None)
    }

    /// Returns the next item.
    pub fn front(&self) -> Option<&Token> {
        self.items.front()
    }

    /// Removes the next item.
    pub fn take(&mut self) -> Option<Token> {
        let token = self.items.pop_front()?;
        if self.is_fed {
            self.count(&token);
        }
        Some(token)
    }

    /// Counts a stall of the writer, once for each item that has to wait.
    pub fn count_stall(&mut self) {
        if self.stalled_at != Some(self.offered) {
            self.stalled_at = Some(self.offered);
            self.counters.stalls += 1;
        }
    }

    /// Counts an item that enters an element or leaves one.
    pub fn count(&mut self, token: &Token) {
        let (is_first, bytes) = match token {
            Token::Packet(packet) => (true, packet.bytes().len()),
            Token::Bits(bits) if self.is_flit => {
                let header = Header::of(bits);
                (header.sop, PAYLOAD_BYTES - usize::from(header.pad))
            }
            Token::Bits(bits) => (true, bits.width().div_ceil(8) as usize),
        };
        self.counters.items += 1;
        self.counters.packets += u64::from(is_first);
        self.counters.bytes += bytes as u64;
    }

    /// Removes all items.
    pub fn take_all(&mut self) -> Vec<Token> {
        self.items.drain(..).collect()
    }

    /// Appends an item that was accepted elsewhere: no decision is made, and it always fits.
    pub fn put_back(&mut self, token: Token) {
        self.items.push_back(token);
        self.most = self.most.max(self.items.len());
    }

    /// Returns whether the current packet is being dropped, and whether a kept packet is
    /// incomplete, if known.
    pub fn passing(&self) -> (bool, Option<bool>) {
        let is_inside = self.framing.is_inside_packet();
        (self.is_dropping, is_inside.map(|is_inside| is_inside && !self.is_dropping))
    }

    /// Restores the state that `passing` returns.
    pub fn set_passing(&mut self, is_dropping: bool, is_inside: Option<bool>) {
        self.is_dropping = is_dropping;
        // The framing is unknown from the last flit of a dropped packet until the next packet
        // begins.
        self.set_inside_packet(is_inside.filter(|_| !is_dropping));
    }

    /// Sets whether the next flit continues a packet, if known.
    pub fn set_inside_packet(&mut self, is_inside: Option<bool>) {
        self.framing = Framing::resumed(is_inside);
    }

    /// Returns the maximum number of items that have waited at once.
    pub fn most(&self) -> usize {
        self.most
    }

    /// Returns the number of waiting items.
    pub fn fill(&self) -> usize {
        self.items.len()
    }

    /// Returns the maximum number of items it holds.
    pub fn depth(&self) -> usize {
        self.depth
    }

    fn fate(&self, header: Option<Header>) -> Result<Fate, Error> {
        let is_full = self.items.len() >= self.depth;
        let into_room = if is_full { Fate::Waits } else { Fate::Enters };
        if !self.is_lossy {
            return Ok(into_room);
        }
        if let Some(recorded) = &self.recorded {
            return match recorded.get(self.keep.len()) {
                Some(true) => Ok(into_room),
                Some(false) => Ok(Fate::IsDropped),
                None => {
                    Err(Error::ReplayChannel { channel: self.name.clone(), item: self.offered })
                }
            };
        }
        let continues_with_packet = header.is_some_and(|header| !header.sop);
        Ok(match continues_with_packet {
            true if self.is_dropping => Fate::IsDropped,
            true => into_room,
            false if is_full => Fate::IsDropped,
            false => Fate::Enters,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flit::{Malformed, cut};
    use crate::{EndpointId, Loc, Sink, Source};

    fn channel(item: Item, depth: u32, on_full: OnFull) -> ChannelState {
        let channel = Channel {
            source: Source::Endpoint(EndpointId(0)),
            sink: Sink::Endpoint(EndpointId(1)),
            item,
            depth,
            on_full,
            loc: Loc::default(),
        };
        ChannelState::new(&channel, "a.out -> b.in".into(), &Options::default())
    }

    fn record(value: u64) -> Token {
        Token::Bits(Bits::from_u64(32, value))
    }

    fn offer_all(channel: &mut ChannelState, flits: &[Bits]) -> usize {
        let mut offered = 0;
        for flit in flits {
            match channel.offer(Token::Bits(flit.clone())) {
                Ok(None) => offered += 1,
                Ok(Some(_)) => break,
                Err(error) => panic!("{error}"),
            }
        }
        offered
    }

    #[test]
    fn a_full_channel_gives_the_item_back_until_there_is_room() {
        let mut channel = channel(Item::Bits(32), 2, OnFull::Block);
        assert_eq!(channel.offer(record(1)), Ok(None));
        assert_eq!(channel.offer(record(2)), Ok(None));
        assert_eq!(channel.offer(record(3)), Ok(Some(record(3))));
        assert_eq!(channel.take(), Some(record(1)));
        assert_eq!(channel.offer(record(3)), Ok(None));
        assert_eq!((channel.fill(), channel.depth()), (2, 2));
        while channel.take().is_some() {}
        assert_eq!((channel.fill(), channel.most()), (0, 2));
        let history: Vec<u64> = channel.history.iter().map(Bits::to_u64).collect();
        assert_eq!(history, [1, 2, 3]);
    }

    #[test]
    fn packets_and_bytes_are_counted_as_they_enter_and_a_stall_once_for_each_item() {
        let mut flits = channel(Item::Flit, 2, OnFull::Block);
        // The host feeds this channel, so items are counted when they are taken.
        assert_eq!(offer_all(&mut flits, &cut(&[7; 40])), 2);
        assert_eq!(flits.counters, ChannelCounters::default());
        flits.take();
        let first = ChannelCounters { items: 1, packets: 1, bytes: 32, ..Default::default() };
        assert_eq!(flits.counters, first);
        flits.take();
        assert_eq!(flits.counters, ChannelCounters { items: 2, bytes: 40, ..first });
        let mut records = channel(Item::Bits(33), 1, OnFull::Block);
        records.is_fed = false;
        let record = || Token::Bits(Bits::from_u64(33, 1));
        assert_eq!(records.offer(record()), Ok(None));
        for stalls in [1, 1, 2] {
            if stalls == 2 {
                records.take();
                assert_eq!(records.offer(record()), Ok(None));
            }
            assert_eq!(records.offer(record()), Ok(Some(record())));
            records.count_stall();
            assert_eq!(records.counters.stalls, stalls);
        }
        let ChannelCounters { items, packets, bytes, .. } = records.counters;
        assert_eq!((items, packets, bytes), (2, 2, 10));
    }

    #[test]
    fn a_full_lossy_channel_drops_records() {
        let mut channel = channel(Item::Bits(32), 1, OnFull::DropCounted);
        for value in 1..=3 {
            assert_eq!(channel.offer(record(value)), Ok(None));
        }
        assert_eq!(channel.keep, [true, false, false]);
        assert_eq!(channel.counters.dropped, 2);
        assert_eq!((channel.fill(), channel.history.len()), (1, 1));
    }

    #[test]
    fn a_lossy_flit_channel_keeps_or_drops_whole_packets() {
        let packet = cut(&[7; 96]);
        let mut channel = channel(Item::Flit, 3, OnFull::DropCounted);
        assert_eq!(offer_all(&mut channel, &packet), 3);
        assert_eq!(offer_all(&mut channel, &packet), 3);
        assert_eq!(channel.keep, [true, true, true, false, false, false]);
        // Room does not help the rest of a packet whose start was dropped.
        assert_eq!(offer_all(&mut channel, &packet[..1]), 1);
        channel.take();
        assert_eq!(offer_all(&mut channel, &packet[1..]), 2);
        assert_eq!(channel.keep[6..], [false; 3]);
        // A packet whose start was accepted is kept whole: its later flits wait.
        assert_eq!(offer_all(&mut channel, &packet), 1);
        channel.take();
        channel.take();
        assert_eq!(offer_all(&mut channel, &packet[1..]), 2);
        assert_eq!(channel.keep[9..], [true; 3]);
        assert_eq!(channel.history, [packet.clone(), packet].concat());
    }

    #[test]
    fn a_replay_keeps_what_the_record_says() {
        let mut channel = channel(Item::Bits(32), 1, OnFull::DropCounted);
        channel.replay(vec![false, true, true]);
        assert_eq!(channel.offer(record(1)), Ok(None));
        assert_eq!(channel.offer(record(2)), Ok(None));
        assert_eq!(channel.offer(record(3)), Ok(Some(record(3))));
        channel.take();
        assert!(!channel.is_replayed());
        assert_eq!(channel.offer(record(3)), Ok(None));
        assert!(channel.is_replayed());
        let error = channel.offer(record(4)).expect_err("the record has ended");
        assert!(error.to_string().contains("a.out -> b.in"), "{error}");
        assert_eq!(channel.history.len(), 2);
    }

    #[test]
    fn a_malformed_stream_is_an_error_that_names_the_channel() {
        let mut channel = channel(Item::Flit, 8, OnFull::Block);
        let flits = cut(&[7; 64]);
        assert_eq!(channel.offer(Token::Bits(flits[0].clone())), Ok(None));
        let error = channel.offer(Token::Bits(flits[0].clone()));
        let malformed = Malformed::NestedSop;
        let channel_name = "a.out -> b.in".to_owned();
        assert_eq!(error, Err(Error::Malformed { channel: channel_name, item: 1, malformed }));
        assert_eq!(channel.fill(), 1);
    }
}
